"""``kubepy apply``: make the cluster as files say, by a three-way merge on the client.

The manifest is kept in an annotation; what it had before and has no more goes, what it says is set, the rest stays.
Upstream: ``kubectl/pkg/cmd/apply/{apply,patcher}.go``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from kubepy.cli.apply.prune import Visited, allowed_kinds, leftovers
from kubepy.cli.delete import Options as DeleteOptions
from kubepy.cli.delete import complete as delete_options
from kubepy.cli.delete import delete_object, deletion_flags, wait_until_gone
from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.errors import CliError, is_expected, is_status, raise_all, with_source
from kubepy.cli.runtime.flags import boolean
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    CLIENT_SIDE_APPLY,
    NONE,
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
from kubepy.cli.runtime.last_applied import ANNOTATION, modified_configuration, original_configuration
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.record import record
from kubepy.cli.runtime.resources import Info, Result, find
from kubepy.cli.runtime.session import Session
from kubepy.cluster.objects.meta import Object, annotations_of, is_being_deleted
from kubepy.cluster.values.goformat import to_json

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
APPLY_WAIT = 7 * 24 * 3600.0


class Options(NamedTuple):
    dry_run: str
    validation: str
    manager: str
    overwrite: bool
    force: bool
    deletion: DeleteOptions
    timeout: float
    server_side: bool = False
    force_conflicts: bool = False
    subresource: str = ""


class Patched(NamedTuple):
    """``patch`` is {} when there was nothing to change."""

    patch: Object
    object: Object


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
def apply(session: Session, given: Invocation) -> None:
    """Apply a configuration to a resource by file name or stdin.

    The resource is created if it is not there yet. Use "create --save-config" or apply to create what you later want
    to apply again."""
    no_arguments(given)
    options = complete(session, given)
    allowed = allowed_kinds(session, given.prune_allowlist) if given.prune else []
    validate(given, options)
    visited = Visited(session)
    infos, errors = _read(session, find(session, given, validation=options.validation))
    if not infos and not errors:
        raise CliError("no objects passed to apply")
    printers = _printers(session, given, options)
    for number, info in enumerate(infos, 1):
        session.progress.show("applying", number, len(infos))
        visited.add_namespace(info)
        if given.record:
            record(info.content, given)
        try:
            operation = apply_one(session, info, options)
        except Exception as error:
            if not is_expected(error):
                raise
            errors.append(error)
            continue
        visited.add(info.content)
        if printers:
            printers[operation](info.content)
    raise_all(errors)
    if not printers:
        _print_objects(printer_for(session, given), infos)
    if given.prune:
        _prune(session, given, options, leftovers(session, visited, allowed, given.selector))


def _read(session: Session, result: Result) -> tuple[list[Info], list[Exception]]:
    infos: list[Info] = []

    def take(info: Info) -> None:
        infos.append(info)
        session.progress.show("reading", len(infos))

    return infos, result.errors_of(take)


def complete(session: Session, given: Invocation) -> Options:
    strategy = dry_run(session, given)
    require_files(given)
    deletion = delete_options(session, given)
    return Options(strategy, field_validation(given), server_side_manager(given), given.overwrite, given.force,
                   deletion, given.timeout, given.server_side, given.force_conflicts, given.subresource)


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


def _prune(session: Session, given: Invocation, options: Options, pruned: Iterable[Info]) -> None:
    """Delete what is left over, with a line for each."""
    printer = printer_for(session, given, "pruned", options.dry_run)
    for info in pruned:
        if options.dry_run != CLIENT:
            delete_object(session, Info(info.resource, info.namespace, info.name), options.deletion)
        printer(info.content)


def _printers(session: Session, given: Invocation, options: Options) -> dict[str, Printer]:
    """A printer for each operation; none when whole objects are asked for, which are printed at the end."""
    if given.template or given.output not in ("", "name"):
        printer_for(session, given)  # a wrong format is told before anything is written
        return {}
    return {name: printer_for(session, given, name, options.dry_run)
            for name in ("created", "configured", "unchanged", "serverside-applied")}


def _print_objects(printer: Printer, infos: list[Info]) -> None:
    objects = [info.content for info in infos]
    if len(objects) == 1:
        printer(objects[0])
    else:
        printer({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": objects})


# --- one object ---------------------------------------------------------------------------------------------------


def apply_one(session: Session, info: Info, options: Options) -> str:
    """Apply one object of a file; returns ``created``, ``configured``, ``unchanged`` or ``serverside-applied``."""
    generate_name = info.content["metadata"].get("generateName")
    if not info.name and generate_name:
        raise CliError(f"from {generate_name}: cannot use generate name with apply")
    if options.server_side:
        from kubepy.cli.apply.server_side import apply_on_server

        apply_on_server(session, info, options)
        return "serverside-applied"
    manifest = info.content
    if not _exists(session, info):
        _create(session, info, manifest, options)
        return "created"
    current = info.content
    if ANNOTATION not in annotations_of(current):
        session.say(NO_ANNOTATION.format(info.object_name, ANNOTATION))
    patched = patch_to(session, info, current, modified_configuration(manifest), options)
    info.refresh(patched.object)
    warn_if_deleting(session, info)
    return "configured" if patched.patch else "unchanged"


def warn_if_deleting(session: Session, info: Info) -> None:
    if info.object is not None and is_being_deleted(info.object):
        session.say(f"Warning: Detected changes to resource {info.name} which is currently being deleted.")


def _exists(session: Session, info: Info) -> bool:
    """Read the object's current state into the Info, if there is one."""
    try:
        info.get(session)
    except Exception as error:
        if is_status(error, "NotFound"):
            return False
        action = f"retrieving current configuration of:\n{info}\nfrom server for:"
        raise with_source(error, action, info.source) from None
    return True


def _create(session: Session, info: Info, manifest: Object, options: Options) -> None:
    obj = without_nulls(modified_configuration(manifest))
    if options.dry_run == CLIENT:
        info.object = obj
        return
    try:
        obj = session.client.create(info.resource.key, obj, namespace=info.namespace, dry_run=options.dry_run == SERVER,
                                    field_manager=options.manager, field_validation=options.validation)
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


def patch_to(session: Session, info: Info, current: Object, modified: Object, options: Options) -> Patched:
    """Patch the current object to the configuration. Raises with patch, object and file in the message."""
    patch: Object = {}
    try:
        patch, patch_type = three_way_patch(info, current, modified, overwrite=options.overwrite)
        if not patch:
            return Patched(patch, current)
        if options.dry_run == CLIENT:
            return Patched(patch, _patched_locally(info, current, patch, patch_type))
        return Patched(patch, _send(session, info, modified, patch, patch_type, options))
    except Exception as error:
        action = f"applying patch:\n{to_json(patch)}\nto:\n{info}\nfor:"
        raise with_source(error, action, info.source) from None


def three_way_patch(info: Info, current: Object, modified: Object, *, overwrite: bool = True) -> tuple[Object, str]:
    """The patch from what was applied last and is there now to the configuration, and its content type."""
    from kubepy.cluster.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH
    from kubepy.cluster.patches.documents import PatchError, three_way_json_merge, three_way_strategic
    from kubepy.cluster.schema.openapi import schema_for

    original = original_configuration(current)
    schema = None if info.resource.custom else schema_for(info.resource.api_version, info.resource.kind)
    try:
        if schema is None:
            return three_way_json_merge(original, modified, current), MERGE_PATCH
        return three_way_strategic(original, modified, current, schema, overwrite=overwrite), STRATEGIC_MERGE_PATCH
    except PatchError as error:
        texts = [json.dumps(one) for one in (original, modified, current)]
        raise CliError("creating patch with:\noriginal:\n{}\nmodified:\n{}\ncurrent:\n{}\nfor: {}".format(
            *texts, error)) from None


def _patched_locally(info: Info, current: Object, patch: Object, patch_type: str) -> Object:
    from kubepy.cluster.client import MERGE_PATCH
    from kubepy.cluster.patches.documents import merge_patch, strategic_merge_patch
    from kubepy.cluster.schema.openapi import schema_for

    if patch_type == MERGE_PATCH:
        return merge_patch(current, patch)
    return strategic_merge_patch(current, patch, schema_for(info.resource.api_version, info.resource.kind))


def _send(session: Session, info: Info, modified: Object, patch: Object, patch_type: str, options: Options) -> Object:
    try:
        return session.client.patch(info.resource.key, info.name, patch, patch_type, namespace=info.namespace,
                                    dry_run=options.dry_run == SERVER, field_manager=options.manager,
                                    field_validation=options.validation)
    except Exception as error:
        if options.force and is_status(error, "Conflict", "Invalid"):
            return _delete_and_create(session, info, modified, options)
        raise with_source(error, "patching", info.source) from None


def _delete_and_create(session: Session, info: Info, modified: Object, options: Options) -> Object:
    """``--force``: what cannot be changed is made anew."""
    delete_object(session, info, options.deletion._replace(dry_run=NONE))
    wait_until_gone(session, [info], options.timeout or APPLY_WAIT)
    return session.client.create(info.resource.key, modified, namespace=info.namespace, field_manager=options.manager)
