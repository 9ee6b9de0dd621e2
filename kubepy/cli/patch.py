"""``kubepy patch``. Upstream: ``kubectl/pkg/cmd/patch/patch.go``."""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.meta import Object, clone
from kubepy.api.values.goformat import json_type_name, printable
from kubepy.apiserver.request import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Patch,
    PatchOptions,
)
from kubepy.cli.errors import CliError
from kubepy.cli.files import read_string
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import bringing, command
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
    from kubepy.api.patches import documents as patch_documents
    from kubepy.api.patches import json_patch
    from kubepy.api.schema import openapi
    from kubepy.cli.runtime import manifests
    from kubepy.storage import yaml

TYPES = {"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_MERGE_PATCH}


class PatchFlags(
    KustomizeOptions,
    SubresourceOptions,
    PrintFlags,
    DryRunOptions,
    FieldManagerOptions,
    RecordOptions,
):
    """The flags of ``patch``."""

    patch: str = string_flag(
        "patch", "p", help="The patch to be applied to the resource, as JSON or YAML."
    )
    patch_file: str = string_flag(
        "patch-file", help="A file containing a patch to be applied to the resource."
    )
    type: str = string_flag(
        "type",
        default="strategic",
        help="The type of patch being provided; one of [json merge strategic]",
    )
    filename: list[str] = filename_flag("identifying the resource to update")
    local: bool = bool_flag(
        "local", help="If true, patch will operate on the content of the file, not on the cluster."
    )
    subresource: str = subresource_flag("patch")
    field_manager: str = field_manager_flag("kubectl-patch")


@bringing
@command(
    "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
    PatchFlags,
    examples="""
# Change a field
kubepy patch deploy/web -p '{"spec":{"minReadySeconds":5}}'

# With a patch in YAML
kubepy patch node node-1 -p 'spec: {unschedulable: true}'

# One container of several: its name says which
kubepy patch ds/log-agent -p '{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"fluent-bit:3.1"}]}}}}'

# By operations on paths
kubepy patch deploy/web --type=json -p '[{"op":"replace","path":"/spec/revisionHistoryLimit","value":5}]'

# Remove a field
kubepy patch deploy/web --type=merge -p '{"spec":{"minReadySeconds":null}}'

# Through a subresource
kubepy patch deploy/web --subresource=scale --type=merge -p '{"spec":{"replicas":2}}'

# The object of a file, by the patch in another
kubepy patch -f web.yaml --patch-file=patch.yaml
""",  # noqa: E501
)
def patch(factory: Factory, options: PatchFlags) -> None:
    """Update fields of a resource using strategic merge patch, a JSON merge patch, or a JSON patch.

    JSON and YAML formats are accepted."""
    strategy = factory.dry_run_strategy(options)
    validate(options, strategy)
    content = read_patch(options)
    is_local = options.local or strategy == CLIENT
    factory.brings_containers = "ontainers" in str(content.value)  # or initContainers
    count = 0

    def patch_one(info: Info) -> None:
        nonlocal count
        count += 1
        if is_local:
            patched = patched_locally(info, content)
        else:
            patched = send(factory, options, info, content, dry_run=strategy == SERVER)

        # Upstream sets the operation after it has added "(dry run)" to it, so that a dry run does
        # not say so.
        operation = "patched (no change)" if patched == info.object else "patched"
        if options.record and not is_local:
            patched = factory.client.patch(
                info.resource.gvr,
                info.name,
                Patch(MERGE_PATCH, cause(options)),
                namespace=info.namespace,
                subresource=options.subresource,
                options=PatchOptions(
                    dry_run=strategy == SERVER, field_manager=options.field_manager
                ),
            )

        printer_for(factory, options, operation)(patched)

    Builder(factory, options, local=options.local).do().visit(patch_one)
    if not count:
        raise CliError("no objects passed to patch")


def validate(options: PatchFlags, strategy: str) -> None:
    """Raise CliError for flags that contradict each other or say too little."""
    if options.patch and options.patch_file:
        raise CliError("cannot specify --patch and --patch-file together")
    if not options.patch and not options.patch_file:
        raise CliError("must specify --patch or --patch-file containing the contents of the patch")
    if options.local and options.args:
        raise CliError("cannot specify --local and server resources")
    if options.local and strategy == SERVER:
        raise CliError(
            "cannot specify --local and --dry-run=server - did you mean --dry-run=client?"
        )
    if options.type and options.type.lower() not in TYPES:
        raise CliError(f"--type must be one of [json merge strategic], not {quote(options.type)}")


# --- reading --------------------------------------------------------------------------------------


class PatchContent(NamedTuple):
    """A patch as it was given.

    :param error: the reason why it is no JSON, "" if it is.
    :param repeated: the paths of keys that a map in it has twice.
    """

    type: str
    value: Any
    error: str = ""
    repeated: tuple[str, ...] = ()


def read_patch(options: PatchFlags) -> PatchContent:
    """Read a patch: JSON when it begins with ``{``, else YAML. Raises CliError; broken JSON is left
    to the server."""
    patch_type = TYPES[options.type.lower() or "strategic"]
    text = options.patch
    if path := options.patch_file:
        try:
            text = read_string(path)
        except IsADirectoryError:
            raise CliError(
                f"unable to read patch file: read {printable(path)}: is a directory"
            ) from None
        except OSError as error:
            raise CliError(
                f"unable to read patch file: open {printable(path)}: "
                f"{(error.strerror or str(error)).lower()}"
            ) from None

    if text.lstrip().startswith("{"):
        try:
            return PatchContent(patch_type, yaml.read_json(text), "", _repeated_keys(text))
        except yaml.YamlError as error:
            return PatchContent(patch_type, None, str(error))

    try:
        return PatchContent(
            patch_type, next((document.object for document in yaml.load_all(text)), None)
        )
    except yaml.YamlError as error:
        reason = str(error).removeprefix("error converting YAML to JSON: ")
        raise CliError(f"unable to parse {quote(options.patch)}: {reason}") from None


def _repeated_keys(text: str) -> tuple[str, ...]:
    return tuple(path for path, is_repeated in yaml.key_paths(text) if is_repeated)


# --- patching -------------------------------------------------------------------------------------


def send(
    factory: Factory, options: PatchFlags, info: Info, content: PatchContent, *, dry_run: bool
) -> Object:
    """Let the server patch an object. Raises Status, CliError."""
    if content.error:
        raise api_errors.BadRequest(
            content.error
            if content.type == TYPES["strategic"]
            else f"error decoding patch: {content.error}"
        )

    for path in content.repeated:
        factory.warn(
            f"{'json patch ' if content.type == TYPES['json'] else ''}duplicate field {quote(path)}"
        )

    try:
        return factory.client.patch(
            info.resource.gvr,
            info.name,
            Patch(content.type, content.value),
            namespace=info.namespace,
            subresource=options.subresource,
            options=PatchOptions(
                dry_run=dry_run, field_manager=options.field_manager, field_validation="Warn"
            ),
        )
    except api_errors.UnsupportedMediaType as error:
        kind = f"{info.resource.api_version}, Kind={info.resource.kind}"
        raise CliError(f"{content.type} is not supported by {kind}: {error}") from None


def patched_locally(info: Info, content: PatchContent) -> Object:
    """Return the object with the patch applied, without the cluster. Raises CliError."""
    try:
        if content.type == TYPES["json"]:
            patched: Any = _with_operations(info.content, content)
        elif content.type == TYPES["merge"]:
            if content.error or not isinstance(content.value, dict | list):
                raise CliError("Invalid JSON Patch")
            # A list takes the place of the object; that it is none is reported below.
            if isinstance(content.value, dict):
                patched = patch_documents.merge_patch(info.content, content.value)
            else:
                patched = content.value
        else:
            resource = info.resource
            schema = openapi.schema_for(resource.api_version, resource.kind)
            if schema is None:
                raise CliError(
                    f"strategic merge patch is not supported for {resource.api_version}, "
                    f"Kind={resource.kind} locally, try --type merge"
                )
            if content.error or not isinstance(content.value, dict | None):
                raise CliError("invalid JSON document")
            patched = patch_documents.strategic_merge_patch(
                info.content, content.value or {}, schema
            )
    except api_errors.Status as error:
        raise CliError(str(error.__cause__ or error)) from None

    if problem := manifests.shape_problem(patched):
        raise CliError(problem)
    obj: Object = patched
    return obj


def _with_operations(obj: Object, content: PatchContent) -> Any:
    if content.error or not isinstance(content.value, list | None):
        kind = json_type_name(content.value)
        raise CliError(
            content.error or f"json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch"
        )

    patcher = json_patch.Patcher(clone(obj))
    for operation in content.value or ():
        if not isinstance(operation, dict):
            raise CliError(
                f"json: cannot unmarshal {json_type_name(operation)} into Go value of type "
                "jsonpatch.Operation"
            )
        try:
            patcher.apply(operation)
        except json_patch.OperationError as error:
            key = str(error).partition("doc is missing key: ")[2]
            raise CliError(
                f"Object to be patched is missing field ({key})" if key else str(error)
            ) from None

    return patcher.document
