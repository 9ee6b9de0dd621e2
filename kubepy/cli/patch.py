"""``kubepy patch``. Upstream: ``kubectl/pkg/cmd/patch/patch.go``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.goformat import printable
from kubepy.apiserver.request import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Patch, PatchOptions
from kubepy.cli.errors import CliError
from kubepy.cli.files import read_string
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import cause
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    KustomizeOptions,
    PrintFlags,
    RecordOptions,
    SubresourceOptions,
    field_manager_flag,
    filename_flag,
    subresource_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors

TYPES = {"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_MERGE_PATCH}


class PatchFlags(KustomizeOptions, SubresourceOptions, PrintFlags, DryRunOptions, FieldManagerOptions, RecordOptions):
    """The flags of ``patch``."""

    patch: str = string_flag("patch", "p", help="The patch to be applied to the resource, as JSON or YAML.")
    patch_file: str = string_flag("patch-file", help="A file containing a patch to be applied to the resource.")
    type: str = string_flag("type", default="strategic", help="The type of patch being provided; one of [json merge "
                            "strategic]")
    filename: list[str] = filename_flag("identifying the resource to update")
    local: bool = bool_flag("local", help="If true, patch will operate on the content of the file, not on the cluster.")
    subresource: str = subresource_flag("patch")
    field_manager: str = field_manager_flag("kubectl-patch")


@command("patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]", PatchFlags, examples="""
# Update two nodes at a time
kubepy patch ds nginx-ds -p '{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}}}'

# Replace one image by its place
kubepy patch ds nginx-ds --type=json \\
  -p '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:1.26"}]'
""")
def patch(factory: Factory, options: PatchFlags) -> None:
    """Update fields of a resource using strategic merge patch, a JSON merge patch, or a JSON patch.

    JSON and YAML formats are accepted."""
    strategy = factory.dry_run_strategy(options)
    validate(options, strategy)
    content = read_patch(options)
    seen = 0

    def patch_one(info: Info) -> None:
        nonlocal seen
        seen += 1
        if options.local or strategy == CLIENT:
            patched = patched_locally(info, content)
        else:
            patched = send(factory, options, info, content, dry_run=strategy == SERVER)
        # Upstream sets the operation after it has added "(dry run)" to it, so that a dry run does not say so.
        operation = "patched (no change)" if patched == info.object else "patched"
        if options.record and not (options.local or strategy == CLIENT):
            patched = _recorded(factory, options, info, patched, dry_run=strategy == SERVER)
        printer_for(factory, options, operation)(patched)

    Builder(factory, options, local=options.local).do().visit(patch_one)
    if not seen:
        raise CliError("no objects passed to patch")


def validate(options: PatchFlags, strategy: str) -> None:
    if options.patch and options.patch_file:
        raise CliError("cannot specify --patch and --patch-file together")
    if not options.patch and not options.patch_file:
        raise CliError("must specify --patch or --patch-file containing the contents of the patch")
    if options.local and options.args:
        raise CliError("cannot specify --local and server resources")
    if options.local and strategy == SERVER:
        raise CliError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
    if options.type and options.type.lower() not in TYPES:
        raise CliError(f"--type must be one of [json merge strategic], not {quote(options.type)}")


# --- reading ------------------------------------------------------------------------------------------------------


class Content(NamedTuple):
    """A patch. ``broken`` is why it is no JSON, "" if it is; ``repeated`` are the keys that maps in it have twice."""

    type: str
    value: Any
    broken: str = ""
    repeated: tuple[str, ...] = ()


def read_patch(options: PatchFlags) -> Content:
    """The patch: JSON when it begins with ``{``, else YAML. Raises CliError, but leaves broken JSON to the server."""
    from kubepy.storage.yaml import YamlError, read_json

    patch_type = TYPES[options.type.lower() or "strategic"]
    text = _file_text(options.patch_file) if options.patch_file else options.patch
    if not text.lstrip().startswith("{"):
        return Content(patch_type, _yaml(options, text))
    try:
        return Content(patch_type, read_json(text), "", tuple(repeated_keys(text)))
    except YamlError as error:
        return Content(patch_type, None, str(error))


def _file_text(path: str) -> str:
    try:
        return read_string(path)
    except IsADirectoryError:
        raise CliError(f"unable to read patch file: read {printable(path)}: is a directory") from None
    except OSError as error:
        raise CliError(f"unable to read patch file: open {printable(path)}: "
                       f"{(error.strerror or str(error)).lower()}") from None


def _yaml(options: PatchFlags, text: str) -> Any:
    from kubepy.api.values.goformat import quote
    from kubepy.storage.yaml import YamlError, load_all

    try:
        return next((document.object for document in load_all(text)), None)
    except YamlError as error:
        why = str(error).removeprefix("error converting YAML to JSON: ")
        raise CliError(f"unable to parse {quote(options.patch)}: {why}") from None


class _Pairs(list[tuple[str, Any]]):
    """A map of a JSON text, as its keys and values."""


def repeated_keys(text: str) -> Iterator[str]:
    """The paths of keys that a map in a JSON text has more than once."""
    return _repeated(json.loads(text, object_pairs_hook=_Pairs, parse_int=str), "")


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, one in value:
            place = f"{path}.{key}" if path else key
            if key in seen:
                yield place
            seen.add(key)
            yield from _repeated(one, place)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _repeated(one, f"{path}[{index}]")


# --- patching -----------------------------------------------------------------------------------------------------


def send(factory: Factory, options: PatchFlags, info: Info, content: Content, *, dry_run: bool) -> Object:
    """Let the server patch an object. Raises Status, CliError."""
    if content.broken:
        from kubepy.api.errors import BadRequest

        raise BadRequest(content.broken if content.type == TYPES["strategic"] else
                         f"error decoding patch: {content.broken}")
    for path in content.repeated:
        factory.warn(f'{"json patch " if content.type == TYPES["json"] else ""}duplicate field {quote(path)}')
    try:
        return factory.client.patch(info.resource.gvr, info.name, Patch(content.type, content.value),
                                    namespace=info.namespace, subresource=options.subresource,
                                    options=PatchOptions(dry_run=dry_run, field_manager=options.field_manager,
                                                         field_validation="Warn"))
    except api_errors.UnsupportedMediaType as error:
        kind = f"{info.resource.api_version}, Kind={info.resource.kind}"
        raise CliError(f"{content.type} is not supported by {kind}: {error}") from None


def _recorded(factory: Factory, options: PatchFlags, info: Info, patched: Object, *, dry_run: bool) -> Object:
    """The object with the command line as its change cause, which is a patch of its own."""
    return factory.client.patch(info.resource.gvr, info.name, Patch(MERGE_PATCH, cause(options)),
                                namespace=info.namespace, subresource=options.subresource,
                                options=PatchOptions(dry_run=dry_run, field_manager=options.field_manager))


def patched_locally(info: Info, content: Content) -> Object:
    """The object with the patch applied, without the cluster. Raises CliError."""
    from kubepy.api.errors import Status

    try:
        patched: Object = _patched_locally(info, content)
    except Status as error:
        raise CliError(str(error.__cause__ or error)) from None
    from kubepy.cli.runtime.manifests import shape_problem

    if problem := shape_problem(patched):
        raise CliError(problem)
    return patched


def _patched_locally(info: Info, content: Content) -> Any:
    if content.type == TYPES["json"]:
        return _with_operations(info.content, content)
    if content.type == TYPES["merge"]:
        return _merged(info.content, content)
    from kubepy.api.patches.documents import strategic_merge_patch
    from kubepy.api.schema.openapi import schema_for

    schema = schema_for(info.resource.api_version, info.resource.kind)
    if schema is None:
        raise CliError(f"strategic merge patch is not supported for {info.resource.api_version}, "
                       f"Kind={info.resource.kind} locally, try --type merge")
    if content.broken or not isinstance(content.value, dict | None):
        raise CliError("invalid JSON document")
    return strategic_merge_patch(info.content, content.value or {}, schema)


def _with_operations(obj: Object, content: Content) -> Any:
    from kubepy.api.meta import clone
    from kubepy.api.patches.json_patch import OperationError, Patcher
    from kubepy.api.values.goformat import json_type_name

    if content.broken or not isinstance(content.value, list | None):
        found = json_type_name(content.value)
        raise CliError(content.broken or f"json: cannot unmarshal {found} into Go value of type jsonpatch.Patch")
    patcher = Patcher(clone(obj))
    for operation in content.value or ():
        if not isinstance(operation, dict):
            raise CliError(f"json: cannot unmarshal {json_type_name(operation)} into Go value of type "
                           "jsonpatch.Operation")
        try:
            patcher.apply(operation)
        except OperationError as error:
            key = str(error).partition("doc is missing key: ")[2]
            raise CliError(f"Object to be patched is missing field ({key})" if key else str(error)) from None
    return patcher.document


def _merged(obj: Object, content: Content) -> Any:
    """What is no map takes the place of the object, as far as it goes."""
    from kubepy.api.patches.documents import merge_patch

    if content.broken or not isinstance(content.value, dict | list):
        raise CliError("Invalid JSON Patch")
    return merge_patch(obj, content.value) if isinstance(content.value, dict) else content.value
