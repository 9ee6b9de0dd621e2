"""``--overrides``: JSON that changes what a generator made, on the client. Upstream:
``kubectl/pkg/cmd/util/{override_options,helpers}.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.objects import type_name
from kubepy.cli.runtime.verbs import Invocation
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors


def override_flags() -> list[Flag]:
    return [
        string("overrides", help="Inline JSON that overrides the generated object. It has to name its apiVersion."),
        string("override-type", default="merge", help="How to override the generated object: json, merge, or "
               "strategic."),
    ]


def overridden(given: Invocation, obj: Object) -> Object:
    """The object with ``--overrides``, its fields in Go's order. Raises CliError."""
    if not given.overrides:
        return obj
    return _decoded(_patched(obj, given.overrides, given.override_type or "merge"))


def _patched(obj: Object, text: str, kind: str) -> Any:
    if kind == "json":
        return _json_patched(obj, text)
    if kind == "merge":
        return _merged(obj, text)
    if kind == "strategic":
        return _strategically_merged(obj, text)
    raise CliError(f"invalid override type: {kind}")


def _merged(obj: Object, text: str) -> Any:
    from kubepy.api.patches.documents import merge_patch
    from kubepy.storage.yaml import YamlError, read_json

    try:
        patch = read_json(text)
    except YamlError:
        raise CliError("Invalid JSON Patch") from None
    if isinstance(patch, list):
        return patch
    if not isinstance(patch, dict):
        raise CliError("Invalid JSON Patch")
    return merge_patch(obj, patch)


def _strategically_merged(obj: Object, text: str) -> Any:
    from kubepy.api.patches.documents import strategic_merge_patch
    from kubepy.api.schema.openapi import schema_for
    from kubepy.storage.yaml import YamlError, read_json

    try:
        patch = read_json(text)
    except YamlError:
        patch = []
    if patch is None:
        return obj
    if not isinstance(patch, dict):
        raise CliError("invalid JSON document")
    try:
        return strategic_merge_patch(obj, patch, schema_for(obj["apiVersion"], obj["kind"]))
    except api_errors.Status as error:
        raise CliError(str(error)) from None


# --- JSON patches, whose errors the client words more closely than the API ----------------------------------------

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def _json_patched(obj: Object, text: str) -> Any:
    from kubepy.api.patches.documents import json_patch

    operations = _operations(text)
    for operation in operations:
        _check_operation(operation)
    for operation in operations:
        if why := _obstacle(obj, operation):
            raise CliError(why)
        try:
            obj = json_patch(obj, [operation])
        except api_errors.Status as error:
            raise CliError(f"{operation['op']} operation does not apply: {error}") from None
    return obj


def _operations(text: str) -> list[Any]:
    from kubepy.storage.yaml import YamlError, read_json

    try:
        operations = read_json(text)
    except YamlError as error:
        raise CliError(str(error)) from None
    if not isinstance(operations, list):
        kind = {dict: "object", str: "string", bool: "bool"}.get(type(operations), "number")
        raise CliError(f"json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch")
    return operations


def _check_operation(operation: Any) -> None:
    import json

    shown = json.dumps(operation, separators=(",", ":"))
    if not isinstance(operation, dict) or operation.get("op") not in OPERATIONS:
        raise CliError(f"invalid operation {shown}: unsupported operation")
    if operation["op"] in ("add", "replace") and "value" not in operation:
        raise CliError(f"invalid operation {shown}: failed to decode 'value': operation, missing value field: missing "
                       "value")
    if "path" not in operation:
        raise CliError(f"invalid operation {shown}: failed to decode 'path': operation missing path field: missing "
                       "value")


def _obstacle(obj: Any, operation: dict[str, Any]) -> str:
    """Why an operation cannot be applied, "" if nothing is known against it."""
    op, path = operation["op"], operation["path"]
    *parents, key = (part.replace("~1", "/").replace("~0", "~") for part in f"{path}".split("/")[1:] or [""])
    where: Any = obj
    for part in parents:
        where = _child(where, part)
    missing = _child(where, key) is None
    if where is None and op in ("add", "replace", "remove"):
        quoted = path if op == "replace" else quote(path)
        return f"{op} operation does not apply: doc is missing path: {quoted}: missing value"
    if op == "replace" and missing:
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    if op == "remove" and missing:
        return f"error in remove for path: '{path}': unable to remove nonexistent key: {key}: missing value"
    if op == "test" and _child(where, key) != operation.get("value"):
        return f"testing value {path} failed: test failed"
    return ""


def _child(where: Any, key: str) -> Any:
    if isinstance(where, dict):
        return where.get(key)
    index = int_or_none(key) if isinstance(where, list) else None
    return where[index] if index is not None and 0 <= index < len(where) else None


# --- the type -----------------------------------------------------------------------------------------------------


def _decoded(obj: Any) -> Object:
    """What the object's type keeps of it, since it goes through a Go struct. Raises CliError."""
    from kubepy.api.types import DecodeError, decode, go_order

    name = _type_name(obj)
    try:
        kept = decode(obj).object
    except DecodeError as error:
        raise CliError(str(error)) from None
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **go_order(name, kept)}


def _type_name(obj: Any) -> str:
    """The name of the object's Go type. Raises CliError where it has none."""
    from kubepy.api.values.goformat import to_json

    if not isinstance(obj, dict):
        raise CliError("couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of "
                       'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
                       '"json:\\"kind,omitempty\\"" }')
    for field, word in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not obj.get(field):
            raise CliError(f"Object '{word}' is missing in '{to_json(obj, sort_keys=False)}'")
    return type_name(obj)
