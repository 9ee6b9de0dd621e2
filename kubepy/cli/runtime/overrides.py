"""``--overrides``: JSON that changes what a generator made, on the client.

Upstream: ``kubectl/pkg/cmd/util/{override_options,helpers}.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.flags import string_flag
from kubepy.cli.runtime.objects import type_name
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api import types as go_types
    from kubepy.api.patches import documents as patch_documents
    from kubepy.api.schema import openapi
    from kubepy.api.values import goformat
    from kubepy.storage import yaml


class OverrideOptions(Options):
    """``--overrides`` and ``--override-type``."""

    overrides: str = string_flag(
        "overrides",
        help="Inline JSON that overrides the generated object. It has to name its apiVersion.",
    )
    override_type: str = string_flag(
        "override-type",
        default="merge",
        help="How to override the generated object: json, merge, or strategic.",
    )


def overridden(options: OverrideOptions, obj: Object) -> Object:
    """Return the object with ``--overrides``, its fields in Go's order. Raises CliError."""
    if not options.overrides:
        return obj
    kind = options.override_type or "merge"
    if kind == "json":
        return _decoded(_json_patched(obj, options.overrides))
    if kind == "merge":
        return _decoded(_merged(obj, options.overrides))
    if kind == "strategic":
        return _decoded(_strategically_merged(obj, options.overrides))
    raise CliError(f"invalid override type: {kind}")


def _merged(obj: Object, text: str) -> Any:
    try:
        patch = yaml.read_json(text)
    except yaml.YamlError:
        raise CliError("Invalid JSON Patch") from None
    if isinstance(patch, list):
        return patch
    if not isinstance(patch, dict):
        raise CliError("Invalid JSON Patch")
    return patch_documents.merge_patch(obj, patch)


def _strategically_merged(obj: Object, text: str) -> Any:
    try:
        patch = yaml.read_json(text)
    except yaml.YamlError:
        patch = []
    if patch is None:
        return obj
    if not isinstance(patch, dict):
        raise CliError("invalid JSON document")
    try:
        schema = openapi.schema_for(obj["apiVersion"], obj["kind"])
        return patch_documents.strategic_merge_patch(obj, patch, schema)
    except api_errors.Status as error:
        raise CliError(str(error)) from None


# --- JSON patches, whose errors the client words more closely than the API ------------------------

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def _json_patched(obj: Object, text: str) -> Any:
    try:
        operations = yaml.read_json(text)
    except yaml.YamlError as error:
        raise CliError(str(error)) from None

    if not isinstance(operations, list):
        kind = {dict: "object", str: "string", bool: "bool"}.get(type(operations), "number")
        raise CliError(f"json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch")
    for operation in operations:
        _check_operation(operation)
    for operation in operations:
        if problem := _obstacle(obj, operation):
            raise CliError(problem)
        try:
            obj = patch_documents.json_patch(obj, [operation])
        except api_errors.Status as error:
            raise CliError(f"{operation['op']} operation does not apply: {error}") from None

    return obj


def _check_operation(operation: Any) -> None:
    import json

    shown = json.dumps(operation, separators=(",", ":"))
    if not isinstance(operation, dict) or operation.get("op") not in OPERATIONS:
        raise CliError(f"invalid operation {shown}: unsupported operation")
    if operation["op"] in ("add", "replace") and "value" not in operation:
        raise CliError(
            f"invalid operation {shown}: failed to decode 'value': operation, missing value "
            f"field: missing "
            "value"
        )

    if "path" not in operation:
        raise CliError(
            f"invalid operation {shown}: failed to decode 'path': operation missing path field: "
            f"missing "
            "value"
        )


def _obstacle(obj: Any, operation: dict[str, Any]) -> str:
    """Return the reason why an operation cannot be applied, "" if none is known."""
    op = operation["op"]
    path = operation["path"]
    *parents, key = (
        part.replace("~1", "/").replace("~0", "~") for part in f"{path}".split("/")[1:] or [""]
    )
    holder: Any = obj
    for part in parents:
        holder = _child(holder, part)
    missing = _child(holder, key) is None
    if holder is None and op in ("add", "replace", "remove"):
        quoted = path if op == "replace" else quote(path)
        return f"{op} operation does not apply: doc is missing path: {quoted}: missing value"
    if op == "replace" and missing:
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    if op == "remove" and missing:
        return (
            f"error in remove for path: '{path}': unable to remove nonexistent key: {key}: "
            f"missing value"
        )

    if op == "test" and _child(holder, key) != operation.get("value"):
        return f"testing value {path} failed: test failed"
    return ""


def _child(holder: Any, key: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(key)
    index = int_or_none(key) if isinstance(holder, list) else None
    if index is not None and 0 <= index < len(holder):
        return holder[index]
    return None


# --- the type -------------------------------------------------------------------------------------


def _decoded(obj: Any) -> Object:
    """Return what the object's Go type keeps of it, since kubectl decodes it. Raises CliError."""
    if not isinstance(obj, dict):
        raise CliError(
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go "
            "value of "
            'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
            '"json:\\"kind,omitempty\\"" }'
        )

    for field, word in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not obj.get(field):
            raise CliError(
                f"Object '{word}' is missing in '{goformat.to_json(obj, sort_keys=False)}'"
            )

    name = type_name(obj)
    try:
        kept = go_types.decode(obj).object
    except go_types.DecodeError as error:
        raise CliError(str(error)) from None

    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **go_types.go_order(name, kept)}
