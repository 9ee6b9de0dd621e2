"""Strategic merge patches as kustomize applies them: what a patch adds to a list comes first.

Upstream: ``kyaml/yaml/merge2``, ``kyaml/yaml/walk``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubepy.api.meta import Object, clone
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import schemas
from kubepy.cli.kustomization.schemas import FieldSchema
from kubepy.storage.yaml import dump

_DIRECTIVE = "$patch"


def node_kind(value: Any) -> str:
    """Return the kind of a value's node in YAML."""
    if isinstance(value, dict):
        return "MappingNode"
    if isinstance(value, list):
        return "SequenceNode"
    return "ScalarNode"


class Missing:
    """A field that is not there, in contrast to null."""


MISSING = Missing()


def merge(obj: Object, patch: Object) -> Object | None:
    """Apply a patch to an object, in place; return it, None if the patch deletes it. Raises
    CliError."""
    merged = _merged(obj, clone(patch), None)
    if isinstance(merged, dict):
        return merged
    return None


def _merged(old: Any, new: Any, schema: FieldSchema | None) -> Any:
    """Return the value to put for ``old``, MISSING for none."""
    present = [node for node in (old, new) if node is not MISSING and node is not None]
    schema = schema or _schema_of(present)
    kind = node_kind(present[0]) if present else "MappingNode"
    for node in present:
        actual = node_kind(node)
        if actual != kind:
            contents = dump(node) if isinstance(node, dict | list) else f"{text_of(node)}\n"
            raise CliError(
                f"wrong node kind: expected {kind} but got {actual}: node contents:\n{contents}"
            )

    if kind == "MappingNode":
        return _merged_map(old, new, schema)
    if kind == "SequenceNode" and schema is not None and (keys := schema.merge_keys) is not None:
        return _merged_list(old, new, keys, schema.elements())
    if new is MISSING:
        return old
    return new


def _schema_of(nodes: Sequence[Any]) -> FieldSchema | None:
    """Return the schema of a map that names its type."""
    for node in nodes:
        if isinstance(node, dict) and node.get("kind") and node.get("apiVersion"):
            schema = schemas.active.of(str(node["apiVersion"]), str(node["kind"]))
            if schema is not None:
                return schema
    return None


def _merged_map(old: Any, new: Any, schema: FieldSchema | None) -> Any:
    if old is MISSING or old is None:
        if new is MISSING:
            return old
        if isinstance(new, dict) and new.get(_DIRECTIVE) == "delete":
            return MISSING

    result = _chosen(old, new)
    if not isinstance(result, dict):
        return result
    changes = new if isinstance(new, dict) else {}
    for name in sorted({*result, *changes}):
        value = _merged(
            result.get(name, MISSING),
            changes.get(name, MISSING),
            schema.field(name) if schema else None,
        )
        if value is MISSING or (value is None and name in changes):
            result.pop(name, None)
        else:
            result[name] = value

    return result


def _chosen(old: Any, new: Any) -> Any:
    """Return the map or list to merge into, MISSING when it is deleted; directives are taken out.
    Raises CliError."""
    if old is MISSING or old is None:
        if isinstance(new, dict):
            new.pop(_DIRECTIVE, None)
        return new
    if new is None:
        return MISSING
    directive = take_directive(new)
    if directive == "delete":
        return MISSING
    if directive == "replace":
        return new
    if directive != "merge":
        raise CliError(f"unknown patch strategy '{directive}'")
    return old


def take_directive(patch: Any) -> str:
    """Remove the directive of a map or list from it, and return it."""
    if isinstance(patch, dict):
        return str(patch.pop(_DIRECTIVE, "merge"))
    if isinstance(patch, list):
        marked = next(
            (item for item in patch if isinstance(item, dict) and _DIRECTIVE in item), None
        )
        if marked is not None and len(marked) == 1:
            directive = str(marked[_DIRECTIVE])
            if directive in ("delete", "replace", "merge"):
                _set_element(patch, MISSING, [_DIRECTIVE], [directive])
            return directive
    return "merge"


# --- lists with keys ------------------------------------------------------------------------------


def _merged_list(old: Any, new: Any, keys: list[str], schema: FieldSchema | None) -> Any:
    result = _chosen(old, new)
    if not isinstance(result, list):
        return result
    sources = [source for source in (new, result) if isinstance(source, list)]
    if keys:
        values = [
            tuple(text_of(item.get(key)) if isinstance(item, dict) else "" for key in keys)
            for source in sources
            for item in source
        ]
    else:
        values = [(text_of(item),) for source in sources for item in source]

    keys = keys or [""]
    unique = list(dict.fromkeys(values))
    if len(keys) > 1:
        _complete(unique)
    added: list[Any] = []
    used_keys = keys
    for item_values in unique:
        used_keys, used_values = _valid_keys(unique, item_values, keys)
        inner = _valid_keys([tuple(used_values)], tuple(used_values), used_keys)
        item = _merged(_element(result, *inner), _element(new, *inner), schema)
        if item is MISSING or item is None or item == {}:
            _set_element(result, MISSING, used_keys, used_values)
            continue
        for key, value in zip(used_keys, used_values, strict=False):
            if key and value and isinstance(item, dict) and key not in item:
                item[key] = int(value) if value.isascii() and value.isdecimal() else value
        _set_element(added, item, used_keys, used_values)

    if not unique:
        return result
    for item in result:
        _put_element(added, item, used_keys)
    return added


def _complete(values: list[tuple[str, ...]]) -> None:
    """Make keys that differ only where one lacks a value the same (``mergeValues``)."""
    for left in range(len(values)):
        for right in range(len(values)):
            pairs = list(zip(values[left], values[right], strict=True))
            if any(a == b for a, b in pairs) and all(a == b or not a or not b for a, b in pairs):
                values[left] = values[right] = tuple(a or b for a, b in pairs)


def _valid_keys(
    all_values: Sequence[tuple[str, ...]], values: tuple[str, ...], keys: list[str]
) -> tuple[list[str], list[str]]:
    """Return the keys for which any item has a value, and an item's values of them
    (``validateKeys``)."""
    valid = {keys[index] for some in all_values for index, value in enumerate(some) if value}
    if not valid:
        return keys, list(values)
    return (
        [key for key in keys if key in valid],
        [value for key, value in zip(keys, values, strict=False) if value or key in valid],
    )


def _element(items: Any, keys: list[str], values: list[str]) -> Any:
    """Return the first item with these values, MISSING if there is none."""
    for item in items if isinstance(items, list) else ():
        if keys == [""]:
            if not isinstance(item, dict | list) and text_of(item) == values[0]:
                return item
        elif isinstance(item, dict) and all(
            key in item and text_of(item[key]) == value
            for key, value in zip(keys, values, strict=False)
        ):
            return item
    return MISSING


def _set_element(items: list[Any], element: Any, keys: list[str], values: list[str]) -> None:
    """Replace the items with these values, or append the element; MISSING removes them
    (``ElementSetter``)."""
    kept = []
    is_found = False
    for item in items:
        if item is None or item == {}:
            continue
        if isinstance(item, dict) and keys != [""]:
            is_match = all(
                key in item and (not value or text_of(item[key]) == value)
                for key, value in zip(keys, values, strict=False)
            )
        else:
            is_match = (
                keys == [""] and not isinstance(item, dict | list) and text_of(item) == values[0]
            )
        if not is_match:
            kept.append(item)
            continue
        is_found = True
        if element is not MISSING:
            kept.append(element)

    if not is_found and element is not MISSING:
        kept.append(element)
    items[:] = kept


def _put_element(items: list[Any], item: Any, keys: list[str]) -> None:
    """Put an item of the old list into the new one, in the place of the one with its keys
    (``appendListNode``)."""
    if keys == [""]:
        _set_element(items, item, keys, [text_of(item)])
        return
    if not isinstance(item, dict):
        raise CliError(
            f"wrong node kind: expected MappingNode but got {node_kind(item)}: node "
            f"contents:\n{text_of(item)}\n"
        )

    values = []
    for key in keys:
        if key in item:
            values.append(text_of(item[key]))
        else:
            items.append(item)

    if len(keys) > 1:
        _set_element(items, MISSING, keys, values)
    _set_element(items, item, keys, values)


def text_of(value: Any) -> str:
    """Return a scalar as it is written in YAML; "" for null, maps and lists."""
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if value is None or isinstance(value, dict | list | Missing):
        return ""
    return str(value)
