"""Indexes: objects are found by what is in them: a uid, an owner, a node.

An index is one function, which gives the values by which an object is found (upstream: an
``IndexFunc`` of client-go's ``Indexer``). A store knows no kinds: the API server gives it its
indexes. A state keeps sorted entries beside its objects (:class:`IndexEntries`). Functions of the
classes below tell what they read, so that a store may have a faster way to find the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

from kubepy.storage.model import Key, Object
from kubepy.storage.sortedmap import SortedMap

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
Values = tuple[tuple[str, str], ...]  # names of indexes with the values of one object
THERE, ABSENT = ("",), ()  # the values of objects that an index finds by the empty text, or not


class FieldIndex(NamedTuple):
    """One way to find objects.

    :ivar values: gives the values by which an object is found.
    :ivar resources: of these only; () for all but ``others``.
    """

    name: str
    values: Callable[[Object], Sequence[str]]
    resources: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def values_of(self, key: Key, obj: Object) -> Sequence[str]:
        """Return the values by which an object is found under its key."""
        if self.resources:
            is_included = key.resource in self.resources
        else:
            is_included = key.resource not in self.others
        return self.values(obj) if is_included else ABSENT


NewIndexes = Callable[[], Sequence[FieldIndex]]


class TextAt:
    """The text at a path of an object (``metadata.ownerReferences[0].uid``).

    :param usual: a text that is not worth an entry: objects with it are not found by it.
    """

    def __init__(self, path: str, usual: str = "") -> None:
        self.path = path
        self.usual = usual

    def __call__(self, obj: Object) -> Sequence[str]:
        value = _value_at(obj, self.path)
        return (value,) if isinstance(value, str) and value != self.usual else ABSENT


class Presence:
    """The empty text, if there is anything at a path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, obj: Object) -> Sequence[str]:
        return ABSENT if _value_at(obj, self.path) is None else THERE


class Untruth:
    """The empty text, unless there is true at a path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, obj: Object) -> Sequence[str]:
        return ABSENT if _value_at(obj, self.path) is True else THERE


class Mention:
    """The empty text, if anything in an object has a name."""

    def __init__(self, field: str) -> None:
        self.field = field

    def __call__(self, obj: Object) -> Sequence[str]:
        return THERE if _mentions(obj, self.field) else ABSENT


@cache
def _steps(path: str) -> tuple[str | int, ...]:
    return tuple(int(number) if number else name for name, number in _STEP.findall(path))


def _value_at(obj: Object, path: str) -> Any:
    """Return the value at a path, None where there is none."""
    value: Any = obj
    for step in _steps(path):
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            is_there = isinstance(value, list) and len(value) > step
            value = value[step] if is_there else None
        if value is None:
            return None
    return value


def _mentions(value: Any, field: str) -> bool:
    """Return whether a field anywhere in a value has a name."""
    if isinstance(value, dict):
        return field in value or any(_mentions(item, field) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, field) for item in value)


def index_values(indexes: Iterable[FieldIndex], key: Key, obj: Object) -> Values:
    """Return the entries of an object."""
    return tuple((index.name, value) for index in indexes for value in index.values_of(key, obj))


def parts_of(
    objects: Iterable[tuple[Key, Object]], paths: Sequence[str]
) -> list[tuple[Key, Object]]:
    """Return only some fields of objects, each in a section (``metadata.labels``); the section is
    there without the field, too."""
    fields = [path.split(".") for path in paths]
    parts: list[tuple[Key, Object]] = []
    for key, obj in objects:
        values = [(obj.get(section) or {}).get(field) for section, field in fields]
        parts.append((key, partial_object(fields, values)))
    return parts


def partial_object(fields: Sequence[Sequence[str]], values: Iterable[Any]) -> Object:
    """Return an object that has only some fields, each in a section, but for those without a
    value."""
    obj: Object = {section: {} for section, _ in fields}
    for (section, field), value in zip(fields, values, strict=True):
        if value is not None:
            obj[section][field] = value
    return obj


class IndexEntries(NamedTuple):
    """The entries of the objects in memory, which never change: (index, value, resource, namespace,
    name)."""

    entries: SortedMap[tuple[str, ...], bool] = SortedMap()

    def keys(
        self, index: str, value: str, resource: str | None = None, namespace: str | None = None
    ) -> list[Key]:
        """Return the keys of the objects with a value (of one resource, in one namespace), in key
        order."""
        prefix: tuple[str, ...] = (index, value)
        for part in (resource, namespace):
            if part is None:
                break
            prefix = (*prefix, part)
        found = takewhile(
            lambda entry: entry[0][: len(prefix)] == prefix, self.entries.after(prefix)
        )
        return [Key(*entry[2:]) for entry, _ in found]

    def counts(self, index: str) -> Counter[str]:
        """Return the values of an index, with the numbers of objects that have them."""
        entries = takewhile(lambda entry: entry[0][0] == index, self.entries.after((index,)))
        return Counter(entry[1] for entry, _ in entries)

    def changed(self, changes: Mapping[Key, tuple[Values, Values]]) -> IndexEntries:
        """Return the entries after a commit. ``changes``: the values of each object before and
        after it."""
        edits: list[tuple[tuple[str, ...], bool | None]] = []
        for key, (before, after) in changes.items():
            if before != after:
                edits += [((*value, *key), None) for value in before if value not in after]
                edits += [((*value, *key), True) for value in after if value not in before]
        return IndexEntries(self.entries.changed(sorted(edits))) if edits else self
