"""``kubepy apply``: make the cluster as files say, by a three-way merge on the client.

The manifest is kept in an annotation; what it had before and has no more goes, what it says is set, the rest stays.
Upstream: ``kubectl/pkg/cmd/apply/{apply,patcher}.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.request import CreateOptions, DeleteOptions
from kubepy.cli.apply.patching import Options, patch_to, warn_if_deleting
from kubepy.cli.apply.prune import Visited, allowed_kinds, leftovers
from kubepy.cli.delete import deletion_flags, propagation_policy
from kubepy.cli.errors import CliError, is_expected, raise_all, with_source
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    CLIENT_SIDE_APPLY,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    field_validation,
    no_arguments,
    output_flags,
    prune_flags,
    record_flag,
    require_files,
    selector_flag,
    server_side_flags,
    server_side_manager,
    subresource_flag,
    validate_flag,
)
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import LAST_APPLIED, modified_configuration, record
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

FLAGS = [
    *deletion_flags("that contains the configuration to apply", wait=False),
    *output_flags(),
    selector_flag(),
    dry_run_flag(),
    validate_flag(),
    field_manager_flag(CLIENT_SIDE_APPLY),
    record_flag(),
    *prune_flags(),
    *server_side_flags(),
    boolean("overwrite", default=True, help="Resolve conflicts between the modified and live configuration by using "
            "values from the modified configuration."),
    boolean("openapi-patch", default=True, help="Accepted as kubectl does; patches go by the schema."),
    subresource_flag("apply"),
]
NO_ANNOTATION = ("Warning: resource {} is missing the {} annotation which is required by kubepy apply. kubepy apply "
                 "should only be used on resources created declaratively by either kubepy create --save-config or "
                 "kubepy apply. The missing annotation will be patched automatically.")


@verb("apply", "apply (-f FILENAME | -k DIRECTORY)", flags=FLAGS, creates=True, examples="""
# Apply what a file describes
kubepy apply -f manifests/nginx-ds.yaml

# Apply all manifests of a folder and its subfolders
kubepy apply -R -f manifests/

# See what would come of it
kubepy apply -f manifests/nginx-ds.yaml --dry-run=server -o yaml

# Let the server merge, and keep who set which field
kubepy apply --server-side -f manifests/nginx-ds.yaml
""")
def apply(factory: Factory, given: Invocation) -> None:
    """Apply a configuration to a resource by file name or stdin.

    The resource is created if it is not there yet. Use "create --save-config" or apply to create what you later want
    to apply again."""
    no_arguments(given)
    options = complete(factory, given)
    allowed = allowed_kinds(factory, given.prune_allowlist) if given.prune else []
    validate(given, options)
    visited = Visited(factory)
    infos, errors = _read(factory, find(factory, given, validation=options.validation))
    if not infos and not errors:
        raise CliError("no objects passed to apply")
    prints_each = given.output in ("", "name") and not given.template
    for number, info in enumerate(infos, 1):
        factory.progress.show("applying", number, len(infos))
        try:
            operation = _apply_visited(factory, given, info, options, visited)
        except Exception as error:
            if not is_expected(error):
                raise
            errors.append(error)
            continue
        if prints_each:
            printer_for(factory, given, operation, options.dry_run)(info.content)
    raise_all(errors)
    if not prints_each:
        _print_objects(printer_for(factory, given), infos)
    if given.prune:
        _prune(factory, given, options, leftovers(factory, visited, allowed, given.selector))


def _apply_visited(factory: Factory, given: Invocation, info: Info, options: Options, visited: Visited) -> str:
    """Apply one object, and take note of it for --prune; returns what was done. Raises what the API refuses."""
    visited.add_namespace(info)
    if given.record:
        record(info.content, given)
    operation = apply_one(factory, info, options)
    visited.add(info.content)
    return operation


def _read(factory: Factory, result: Result) -> tuple[list[Info], list[Exception]]:
    infos: list[Info] = []

    def take(info: Info) -> None:
        infos.append(info)
        factory.progress.show("reading", len(infos))

    return infos, result.errors_of(take)


def complete(factory: Factory, given: Invocation) -> Options:
    strategy = dry_run(factory, given)
    deletion = DeleteOptions(grace_period_seconds=given.grace_period if given.grace_period >= 0 else None,
                             propagation_policy=propagation_policy(factory, given.cascade))
    require_files(given)
    return Options(strategy, field_validation(given), server_side_manager(given), given.overwrite, given.force,
                   deletion, given.timeout, given.openapi_patch, given.server_side, given.force_conflicts,
                   given.subresource)


def validate(given: Invocation, options: Options) -> None:
    """Raises CliError for flags that contradict each other."""
    server_side = options.server_side
    contradictions = {
        "--force-conflicts only works with --server-side": options.force_conflicts and not server_side,
        "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)":
            options.dry_run == CLIENT and server_side,
        "--force cannot be used with --server-side": server_side and options.force,
        "--dry-run=server cannot be used with --force": options.dry_run == SERVER and options.force,
        "cannot set --all and --selector at the same time": given.all and given.selector,
        "--force cannot be used with --prune": given.prune and options.force,
        "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all "
        "flag. If you did not mean to prune all resources, specify a label selector":
            given.prune and not given.all and not given.selector,
        "--prune is in alpha and doesn't currently work on objects created by server-side apply":
            given.prune and server_side,
        "--subresource can only be specified for --server-side": options.subresource and not server_side,
    }
    for message, holds in contradictions.items():
        if holds:
            raise CliError(message)


def _prune(factory: Factory, given: Invocation, options: Options, pruned: Iterable[Info]) -> None:
    """Delete what is left over, with a line for each."""
    printer = printer_for(factory, given, "pruned", options.dry_run)
    asked = options.deletion._replace(dry_run=options.dry_run == SERVER)
    for info in pruned:
        if options.dry_run != CLIENT:
            factory.client.delete(info.resource.key, info.name, namespace=info.namespace, options=asked)
        printer(info.content)


def _print_objects(printer: Printer, infos: list[Info]) -> None:
    objects = [info.content for info in infos]
    if len(objects) == 1:
        printer(objects[0])
    else:
        printer({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": objects})


# --- one object ---------------------------------------------------------------------------------------------------


def apply_one(factory: Factory, info: Info, options: Options) -> str:
    """Apply one object of a file; returns ``created``, ``configured``, ``unchanged`` or ``serverside-applied``."""
    generate_name = info.content["metadata"].get("generateName")
    if not info.name and generate_name:
        raise CliError(f"from {generate_name}: cannot use generate name with apply")
    if options.server_side:
        from kubepy.cli.apply.server_side import apply_on_server

        apply_on_server(factory, info, options)
        return "serverside-applied"
    manifest = info.content
    if not _exists(factory, info):
        _create(factory, info, manifest, options)
        return "created"
    current = info.content
    if LAST_APPLIED not in annotations_of(current):
        factory.say(NO_ANNOTATION.format(info.object_name, LAST_APPLIED))
    patched = patch_to(factory, info, current, modified_configuration(manifest), options)
    info.refresh(patched.object)
    warn_if_deleting(factory, info)
    return "configured" if patched.patch else "unchanged"


def _exists(factory: Factory, info: Info) -> bool:
    """Read the object's current state into the Info, if there is one."""
    try:
        info.get(factory)
    except Exception as error:
        if isinstance(error, api_errors.NotFound):
            return False
        action = f"retrieving current configuration of:\n{info}\nfrom server for:"
        raise with_source(error, action, info.source) from None
    return True


def _create(factory: Factory, info: Info, manifest: Object, options: Options) -> None:
    obj = without_nulls(modified_configuration(manifest))
    if options.dry_run == CLIENT:
        info.object = obj
        return
    try:
        obj = factory.client.create(info.resource.gvr, obj, namespace=info.namespace,
                                    options=CreateOptions(dry_run=options.dry_run == SERVER,
                                                          field_manager=options.manager,
                                                          field_validation=options.validation))
    except Exception as error:
        raise with_source(error, "creating", info.source) from None
    info.refresh(obj)


def without_nulls(obj: Object) -> Object:
    """The object without keys whose value is null, at any depth: what an update by apply would leave."""
    return {key: _pruned(value) for key, value in obj.items() if value is not None}


def _pruned(value: object) -> object:
    if isinstance(value, dict):
        return without_nulls(value)
    return [_pruned(item) for item in value] if isinstance(value, list) else value
