"""Objects as kubectl sends them: as Go types write them, annotated, and as the patch from one to
another.

Upstream: ``kubectl/pkg/util/apply.go``, ``cli-runtime/pkg/genericclioptions/record_flags.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubepy.api.meta import Object, annotations_of, clone, nested_map
from kubepy.cli.errors import CliError
from kubepy.cli.names import program_of
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import patches
    from kubepy.api import types as go_types
    from kubepy.api.patches import documents as patch_documents
    from kubepy.api.schema import openapi
    from kubepy.api.values import goformat
    from kubepy.apiserver import kinds
    from kubepy.apiserver import request as requests

if TYPE_CHECKING:
    from kubepy.api.scheme import Resource
    from kubepy.apiserver.cluster import LocalCluster

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CHANGE_CAUSE = "kubernetes.io/change-cause"


# --- Go types -------------------------------------------------------------------------------------


def type_name(obj: Object) -> str:
    """Return the name of the object's Go type. Raises CliError for a kind that kubectl has no type
    for."""
    if name := go_types.type_of(obj):
        return name
    raise CliError(
        f"no kind {quote(obj['kind'])} is registered for version {quote(obj['apiVersion'])} in "
        f"scheme "
        '"pkg/scheme/scheme.go:28"'
    )


def typed(obj: Object, source: str) -> Object:
    """Return an object of a file as its Go type writes it: without unknown fields, and with all
    structs.

    Raises CliError, which names the file (``source``).
    """
    try:
        return go_types.decode(obj).object
    except go_types.DecodeError as error:
        raise CliError(f"unable to decode {quote(source)}: {error}") from None


def two_way_patch(before: Object, after: Object) -> tuple[Object, str]:
    """Return the patch from one object to another (``{}``: no difference) and its type.

    It is strategic for built-in kinds, JSON merge for custom ones. Raises CliError for objects that
    cannot be compared.
    """
    schema = openapi.schema_for(after["apiVersion"], after["kind"])
    if schema is None:
        return patch_documents.create_merge_patch(before, after), requests.MERGE_PATCH
    try:
        return patch_documents.two_way_strategic(
            before, after, schema
        ), requests.STRATEGIC_MERGE_PATCH
    except patches.PatchError as error:
        raise CliError(str(error)) from None


# --- defaults -------------------------------------------------------------------------------------


def defaulted(cluster: LocalCluster, resource: Resource, obj: Object) -> Object:
    """Return a copy of an object of a built-in kind with the defaults of its kind."""
    strategy = kinds.new_strategy(resource, lambda _: {})
    strategy.settings = cluster.settings
    copy: Object = clone(obj)
    strategy.default(copy)
    return copy


def without_defaults(cluster: LocalCluster, resource: Resource, obj: Object) -> Object:
    """Return an object of a built-in kind without the fields of its spec that its kind's defaults
    would set alike."""
    bare: Object = clone(obj)

    def strip(value: Any) -> None:
        for entry in value if isinstance(value, list) else ():
            strip(entry)
        for key in list(value) if isinstance(value, dict) else ():
            entry = value.pop(key)
            if defaulted(cluster, resource, bare) != whole:
                value[key] = entry
                strip(entry)

    whole = defaulted(cluster, resource, bare)
    strip(bare.get("spec"))
    return bare


# --- the last-applied annotation, in which apply keeps the manifest -------------------------------


def serialized(obj: Object) -> str:
    """Return the JSON of an object as the annotation keeps it: compact, sorted, ended by a
    newline."""
    return goformat.to_json(obj) + "\n"


def configuration_of(obj: Object) -> str:
    """Return a manifest's own last-applied annotation: the manifest without one, with a map of
    annotations."""
    return serialized(without_annotation(obj))


def modified_configuration(obj: Object) -> Object:
    """Return a manifest as apply sends it: with its own configuration as annotation
    (``GetModifiedConfiguration``)."""
    return annotated(obj, configuration_of(obj))


def without_annotation(obj: Object) -> Object:
    """Return a manifest without the last-applied annotation, and with a map of annotations even if
    it is empty."""
    meta = obj["metadata"]
    kept = {
        key: value for key, value in nested_map(meta, "annotations").items() if key != LAST_APPLIED
    }
    return {**obj, "metadata": {**meta, "annotations": kept}}


def annotated(obj: Object, configuration: str) -> Object:
    """Return a copy of an object with another last-applied annotation."""
    meta = obj["metadata"]
    annotations = {**nested_map(meta, "annotations"), LAST_APPLIED: configuration}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def save_last_applied(obj: Object, *, create: bool) -> None:
    """Annotate an object that is about to be written, if it has the annotation already or with
    ``create``.

    Changes the object (``CreateOrUpdateAnnotation``).
    """
    if create or LAST_APPLIED in annotations_of(obj):
        obj["metadata"] = modified_configuration(obj)["metadata"]


def original_configuration(obj: Object) -> str | None:
    """Return the text of the manifest that was applied last, None if none ever was."""
    return annotations_of(obj).get(LAST_APPLIED)


# --- the change cause (--record) ------------------------------------------------------------------


def record(obj: Object, options: Options) -> None:
    """Annotate an object with the command line that changes it; changes the object."""
    metadata = obj["metadata"]
    metadata["annotations"] = {
        **nested_map(metadata, "annotations"),
        CHANGE_CAUSE: command_line(options),
    }


def cause(options: Options) -> Object:
    """Return the merge patch that does the same in the cluster."""
    return {"metadata": {"annotations": {CHANGE_CAUSE: command_line(options)}}}


def command_line(options: Options) -> str:
    """Return the command with its words and, behind them, the flags in the order they were given
    in."""
    line = options.line
    program = program_of(line.path)
    return " ".join(
        [program, *line.typed, *line.args, *(f"--{name}={text}" for name, text in line.flags_set)]
    )
