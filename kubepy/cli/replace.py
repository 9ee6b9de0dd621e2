"""``kubepy replace``. Upstream: ``kubectl/pkg/cmd/replace/replace.go``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.request import CreateOptions, UpdateOptions
from kubepy.cli.delete import DeleteFlags, delete_all, deletion_of, wait_until_gone, warn_of_force
from kubepy.cli.errors import CliError, raise_all, unless_missing, with_source
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import save_last_applied
from kubepy.cli.runtime.options import (
    CLIENT,
    NONE,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    PrintFlags,
    RawOptions,
    SaveConfigOptions,
    SubresourceOptions,
    ValidateOptions,
    field_manager_flag,
    filename_flag,
    raw_flag,
    subresource_flag,
)
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.cli import raw


class ReplaceOptions(
    DeleteFlags,
    PrintFlags,
    DryRunOptions,
    ValidateOptions,
    FieldManagerOptions,
    SaveConfigOptions,
    SubresourceOptions,
    RawOptions,
):
    """The flags of ``replace``."""

    filename: list[str] = filename_flag("to use to replace the resource.")
    wait: bool = bool_flag("wait", help="If true, wait for resources to be gone before returning.")
    field_manager: str = field_manager_flag("kubectl-replace")
    subresource: str = subresource_flag("replace")
    raw: str = raw_flag("PUT")


FORCE_TIMEOUT = 300.0


@command(
    "replace -f FILENAME",
    ReplaceOptions,
    creates=True,
    examples="""
# Replace the object by that in a file
kubepy replace -f web.yaml

# Replace what cannot be changed: delete the object, and create it anew
kubepy replace --force -f web.yaml

# Change an object on its way through another program
kubepy get deploy web -o yaml | sed 's/nginx:1.27/nginx:1.28/' | kubepy replace -f -

# See what would be stored
kubepy replace -f web.yaml --dry-run=server -o yaml
""",
)
def replace(factory: Factory, options: ReplaceOptions) -> None:
    """Replace a resource by file name or stdin.

    JSON and YAML formats are accepted. The complete resource has to be given."""
    strategy = factory.dry_run_strategy(options)
    deletion_of(factory, options, options.grace_period, strategy, short=False)
    validation = options.field_validation()
    printer = printer_for(factory, options, "replaced", strategy)
    options.require_files()
    if options.grace_period >= 0 and not options.force:
        raise CliError("--grace-period must have --force specified")
    if options.timeout and not options.force:
        raise CliError("--timeout must have --force specified")
    if options.force and strategy != NONE:
        raise CliError("--dry-run can not be used when --force is set")
    if options.raw:
        raw.put(factory, options, options.output)
        return
    if options.force:
        _replace_by_force(factory, options, printer)
        return
    result = Builder(factory, options, args=[], validation=validation).do()
    result.visit(lambda info: printer(replaced(factory, options, info, strategy, validation)))


def replaced(
    factory: Factory, options: ReplaceOptions, info: Info, strategy: str, validation: str
) -> Object:
    """Replace the object in the cluster by one of a file; returns the object to print."""
    save_last_applied(info.content, create=options.save_config)
    if strategy == CLIENT:
        return info.content
    try:
        if not info.name:
            raise CliError("resource name may not be empty")
        if not info.content["metadata"].get(
            "resourceVersion"
        ):  # the object replaces whatever version is there
            current = unless_missing(
                factory.client.get, info.resource.gvr, info.name, namespace=info.namespace
            )
            if current is not None:
                info.content["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
        obj = factory.client.update(
            info.resource.gvr,
            info.content,
            namespace=info.namespace,
            subresource=options.subresource,
            options=UpdateOptions(
                dry_run=strategy == SERVER,
                field_manager=options.field_manager,
                field_validation=validation,
            ),
        )
    except Exception as error:
        raise with_source(error, "replacing", info.source) from None

    info.refresh(obj)
    return obj


def _replace_by_force(factory: Factory, options: ReplaceOptions, printer: Printer) -> None:
    """Delete the objects that the files name, wait until they are gone, create them."""
    deletion = deletion_of(
        factory, options, options.grace_period, NONE, short=options.output == "name"
    )
    deletion = deletion._replace(grace=deletion.grace or 1)
    warn_of_force(factory, deletion._replace(grace=0, force=deletion.grace == 0))
    infos = Builder(factory, options).do().all_infos()
    deletable = Result(
        [Info(info.resource, info.namespace, info.name, source=info.source) for info in infos]
    )
    deletable.ignore_not_found()
    wait_until_gone(
        factory, delete_all(factory, deletable, deletion), options.timeout or FORCE_TIMEOUT
    )
    errors: list[Exception] = []
    for info in infos:
        save_last_applied(info.content, create=options.save_config)
        try:
            printer(
                factory.client.create(
                    info.resource.gvr,
                    info.content,
                    namespace=info.namespace,
                    options=CreateOptions(
                        field_manager=options.field_manager,
                        field_validation=options.field_validation(),
                    ),
                )
            )
        except api_errors.Status as error:
            errors.append(error)

    raise_all(errors)
    if not infos:
        raise CliError("no objects passed to replace")
