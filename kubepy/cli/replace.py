"""``kubepy replace``. Upstream: ``kubectl/pkg/cmd/replace/replace.go``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.request import CreateOptions, UpdateOptions
from kubepy.cli.delete import complete as delete_options
from kubepy.cli.delete import delete_all, deletion_flags, wait_until_gone, warn_of_force
from kubepy.cli.errors import CliError, raise_all, unless_missing, with_source
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    NONE,
    SERVER,
    dry_run_flag,
    field_manager_flag,
    field_validation,
    output_flags,
    raw_flag,
    require_files,
    save_config_flag,
    subresource_flag,
    validate_flag,
)
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import save_last_applied
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

FLAGS = [
    *deletion_flags("to use to replace the resource.", wait=False),
    *output_flags(),
    dry_run_flag(),
    validate_flag(),
    field_manager_flag("kubectl-replace"),
    save_config_flag(),
    subresource_flag("replace"),
    raw_flag("PUT"),
]
FORCE_TIMEOUT = 300.0


@verb("replace", "replace -f FILENAME", flags=FLAGS, creates=True, examples="""
# Put what a file says in the place of what is there
kubepy replace -f manifests/nginx-ds.yaml

# Delete it and make it anew
kubepy replace --force -f manifests/nginx-ds.yaml
""")
def replace(factory: Factory, given: Invocation) -> None:
    """Replace a resource by file name or stdin.

    JSON and YAML formats are accepted. The complete resource has to be given."""
    options = delete_options(factory, given)
    validation = field_validation(given)
    printer = printer_for(factory, given, "replaced", options.dry_run)
    require_files(given)
    validate(given, options.dry_run)
    if given.raw:
        from kubepy.cli import raw_writes

        raw_writes.put(factory, given, given.output)
        return
    if given.force:
        _replace_by_force(factory, given, printer)
        return
    result = find(factory, given, args=[], validation=validation)
    result.visit(lambda info: printer(replaced(factory, given, info, options.dry_run, validation)))


def validate(given: Invocation, strategy: str) -> None:
    if given.grace_period >= 0 and not given.force:
        raise CliError("--grace-period must have --force specified")
    if given.timeout and not given.force:
        raise CliError("--timeout must have --force specified")
    if given.force and strategy != NONE:
        raise CliError("--dry-run can not be used when --force is set")


def replaced(factory: Factory, given: Invocation, info: Info, strategy: str, validation: str) -> Object:
    """Put one object of a file in the place of the one in the cluster; returns what to print."""
    save_last_applied(info.content, create=given.save_config)
    if strategy == CLIENT:
        return info.content
    try:
        _take_version(factory, given, info)
        obj = factory.client.update(info.resource.gvr, info.content, namespace=info.namespace,
                                    subresource=given.subresource,
                                    options=UpdateOptions(dry_run=strategy == SERVER,
                                                          field_manager=given.field_manager,
                                                          field_validation=validation))
    except Exception as error:
        raise with_source(error, "replacing", info.source) from None
    info.refresh(obj)
    return obj


def _take_version(factory: Factory, given: Invocation, info: Info) -> None:
    """Without a version of its own, the object replaces whatever version is there."""
    if not info.name:
        raise CliError("resource name may not be empty")
    if info.content["metadata"].get("resourceVersion"):
        return
    current = unless_missing(factory.client.get, info.resource.gvr, info.name, namespace=info.namespace)
    if current is not None:
        info.content["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]


def _replace_by_force(factory: Factory, given: Invocation, printer: Printer) -> None:
    """Delete what the files name, wait until it is gone, create it."""
    options = delete_options(factory, given)
    options = options._replace(grace=options.grace or 1, short=given.output == "name")
    warn_of_force(factory, options._replace(grace=0, force=options.grace == 0))
    infos = find(factory, given).all_infos()
    deletable = Result([Info(info.resource, info.namespace, info.name, source=info.source) for info in infos])
    deletable.ignore_not_found()
    wait_until_gone(factory, delete_all(factory, deletable, options), given.timeout or FORCE_TIMEOUT)
    errors: list[Exception] = []
    for info in infos:
        save_last_applied(info.content, create=given.save_config)
        try:
            printer(factory.client.create(info.resource.gvr, info.content, namespace=info.namespace,
                                          options=CreateOptions(field_manager=given.field_manager,
                                                                field_validation=field_validation(given))))
        except api_errors.Status as error:
            errors.append(error)
    raise_all(errors)
    if not infos:
        raise CliError("no objects passed to replace")
