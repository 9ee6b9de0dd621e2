"""Values with their schema: which fields they have, and in which they differ.

A schema of None means that the type says nothing: maps are granular, lists atomic, as upstream
deduces it. Upstream: ``structured-merge-diff/typed/{tofieldset,compare,helpers}.go``,
``kube-openapi/pkg/schemaconv``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kubepy.api.schema.openapi import Schema, only_v3
from kubepy.apiserver.managedfields.fieldpath import Fields, Path, field, item, keys
from kubepy.quoting import quote
from kubepy.storage.frozen import plain_type

# Not there, which is something else than null.
ABSENT: Any = object()


class TypedError(Exception):
    """A value that is not of its type, at ``path``."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(detail)
        self.path = path
        self.detail = detail


class Comparison(NamedTuple):
    """The paths that a new value removed, changed and added; no path is in two of them."""

    removed: Fields
    modified: Fields
    added: Fields


# --- types ----------------------------------------------------------------------------------------


def is_atomic(schema: Schema | None, value: Any) -> bool:
    """Tell whether a map or list is set as a whole, as a list of maps without keys or of no
    declared type is."""
    if isinstance(value, list):
        return schema is None or schema.items() is None or list_keys(schema) is None
    return schema is not None and schema.map_type == "atomic"


def list_keys(schema: Schema) -> list[str] | None:
    """Return the keys of a list's items; [] for a set of scalars, None for an atomic list."""
    if schema.list_type:
        return {"map": schema.list_map_keys, "set": []}.get(schema.list_type)
    if schema.patch_strategies[:1] == ["merge"]:
        if schema.merge_key:
            return [schema.merge_key]
        return []
    return None


def child(schema: Schema | None, name: str) -> Schema | None:
    """Return the schema of an entry of a map; None where anything goes."""
    if schema is None:
        return None
    return schema.field(name) or schema.values()


def is_declared(schema: Schema | None, name: str) -> bool:
    """Tell whether an entry is a field of the type, not just a key of a map."""
    return schema is not None and schema.field(name) is not None


def element_of(schema: Schema, value: Any) -> str:
    """Return the path element of an item of a granular list. Raises ValueError if it has none."""
    keys_of_list = list_keys(schema)
    if not keys_of_list:
        if isinstance(value, dict):
            raise ValueError("associative list without keys has an element that's a map type")
        if isinstance(value, list):
            raise ValueError("not supported: associative list with lists as elements")
        if value is None:
            raise ValueError("associative list without keys has an element that's an explicit null")
        return item(value)

    if value is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(value, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    items = schema.items()  # the server sets the defaults of keys before it looks for them
    fields = {name: items and items.field(name) for name in keys_of_list}
    defaults = {
        name: field.default for name, field in fields.items() if field and field.default is not None
    }
    if items and len(keys_of_list) > len(defaults):
        built_in = only_v3()["defaults"].get(items.name, {})
    else:
        built_in = {}

    known = {**built_in, **defaults, **value}
    key_values = {name: known[name] for name in keys_of_list if name in known}
    if not key_values:
        names = " ".join(quote(name) for name in keys_of_list)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}] (and "
            f"doesn't "
            "have default values for any key fields)"
        )

    return keys(key_values)


def elements(schema: Schema, values: list[Any], path: Path) -> list[str]:
    """Return the path elements of all items of a granular list. Raises TypedError."""
    path_elements = []
    for index, value in enumerate(values):
        try:
            path_elements.append(element_of(schema, value))
        except ValueError as error:
            raise TypedError(path, f"element {index}: {error}") from None
    return path_elements


def path_at(value: Any, schema: Schema | None, place: Iterable[str | int]) -> Path:
    """Return the path of a place given by names and indexes; within an atomic list, the path of the
    list."""
    path: Path = ()
    for step in place:
        if isinstance(step, str):
            path = (*path, field(step))
            value = value.get(step) or {}
            schema = child(schema, step)
        elif is_atomic(schema, value) or schema is None or step >= len(value):
            break
        else:
            path = (*path, elements(schema, value, path)[step])
            value = value[step]
            schema = schema.items()
    return path


# --- the fields of a value ------------------------------------------------------------------------


def field_set(value: Any, schema: Schema | None) -> Fields:
    """Return every leaf and every list item of a value. Raises TypedError."""
    return frozenset(_fields(value, schema, ()))


def _fields(value: Any, schema: Schema | None, path: Path) -> Iterator[Path]:
    if not isinstance(value, dict | list) or is_atomic(schema, value):
        if path:
            yield path
    elif isinstance(value, dict):
        for name, entry in value.items():
            place = (*path, field(name))
            yield from _fields(entry, child(schema, name), place)
            if entry is None or entry == {} or not is_declared(schema, name):
                yield place
    elif schema is not None:
        items = elements(schema, value, path)
        for element, item in zip(items, value, strict=True):
            if items.count(element) == 1:
                yield from _fields(item, schema.items(), (*path, element))
            yield (*path, element)


# --- comparing ------------------------------------------------------------------------------------


class Comparer:
    """Walks two values for :func:`compare`."""

    def __init__(self) -> None:
        self.removed: set[Path] = set()
        self.modified: set[Path] = set()
        self.added: set[Path] = set()

    def compare(self, old: Any, new: Any, schema: Schema | None, path: Path) -> None:
        if old is ABSENT:
            self._add(new, schema, path)
            return
        if old is new or old == new:
            return
        before = _kind_of(old, schema)
        after = _kind_of(new, schema)
        kinds = {before} if new is ABSENT else {before, after}
        wholes = [self._compare_as(kind, old, new, schema, path) for kind in kinds]
        if (any(wholes) or new is ABSENT) and path:
            (self.removed if new is ABSENT else self.modified).add(path)

    def _add(self, value: Any, schema: Schema | None, path: Path) -> None:
        """Note a value that was not there, and all that is in it."""
        if path:
            self.added.add(path)
        if not value or not isinstance(value, (dict, list)) or is_atomic(schema, value):
            return
        if isinstance(value, dict):
            for name, entry in value.items():
                place = (*path, f"f:{name}")
                if entry and isinstance(entry, (dict, list)):
                    self._add(entry, child(schema, name), place)
                else:
                    self.added.add(place)
        elif schema is not None:
            for element, items in _by_element(schema, value, path).items():
                place = (*path, element)
                if len(items) == 1:
                    self._add(items[0], schema.items(), place)
                else:
                    self.added.add(place)

    def _compare_as(
        self, kind: type, old: Any, new: Any, schema: Schema | None, path: Path
    ) -> bool:
        """Compare values of a kind, one of another kind as empty; returns whether they count as a
        whole."""
        before = _as(kind, old)
        after = _as(kind, new)
        if kind is object or not (before or after) or is_atomic(schema, before or after):
            return True
        if kind is dict:
            for name in before.keys() | after.keys():
                self.compare(
                    before.get(name, ABSENT),
                    after.get(name, ABSENT),
                    child(schema, name),
                    (*path, field(name)),
                )
        elif schema is not None:
            before = _by_element(schema, before, path)
            after = _by_element(schema, after, path)
            for element in before.keys() | after.keys():
                self._items(
                    before.get(element, []),
                    after.get(element, []),
                    schema.items(),
                    (*path, element),
                )

        return False

    def _items(self, old: list[Any], new: list[Any], schema: Schema | None, path: Path) -> None:
        """Compare two list items; duplicates compare by presence only."""
        if len(old) > 1 and len(new) > 1:
            if old != new:
                self.modified.add(path)
            return
        before, after = (items[0] if len(items) == 1 else ABSENT for items in (old, new))
        if before is not ABSENT or after is not ABSENT:
            self.compare(before, after, schema, path)
        if len(old) > 1:
            self.removed.add(path)
        if len(new) > 1:
            self.added.add(path)


def compare(old: Any, new: Any, schema: Schema | None) -> Comparison:
    """Compare two values along their schema. Raises TypedError."""
    comparer = Comparer()
    comparer.compare(old, new, schema, ())
    return Comparison(
        frozenset(comparer.removed), frozenset(comparer.modified), frozenset(comparer.added)
    )


def _kind_of(value: Any, schema: Schema | None) -> type:
    """Return ``dict``, ``list``, or ``object`` for scalars; null is of the kind of its type, else a
    map."""
    if value is None or value is ABSENT:
        kind = "" if schema is None else schema.type
        return {"array": list, "object": dict, "": dict}.get(kind, object)
    return plain_type(value) if isinstance(value, dict | list) else object


def _as(kind: type, value: Any) -> Any:
    """Return the value if it is of the kind, else an empty one."""
    return value if isinstance(value, kind) else kind()


def _by_element(schema: Schema, values: list[Any], path: Path) -> dict[str, list[Any]]:
    by_element: dict[str, list[Any]] = {}
    for element, value in zip(elements(schema, values, path), values, strict=True):
        by_element.setdefault(element, []).append(value)
    return by_element
