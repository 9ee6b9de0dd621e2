"""Indexes: objects are found by what is in them: a uid, an owner, a node.

An index is one function, which gives the values by which an object is found (upstream: an
``IndexFunc`` of client-go's ``Indexer``). A store knows no kinds: the API server gives it its
indexes. A state keeps sorted entries beside its objects (:class:`IndexEntries`). Functions of the
classes below tell what they read, so that a store may have a faster way to find the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from kubepy.storage.model import Key, Object
from kubepy.storage.sortedmap import SortedMap

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
Values = tuple[tuple[str, str], ...]  # names of indexes with the values of one object
LAST_TEXT = "\U0010ffff"  # sorts after every value, resource, namespace and name
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

    def includes(self, resource: str) -> bool:
        """Return whether objects of a resource may be found by it."""
        if self.resources:
            return resource in self.resources
        return resource not in self.others

    def values_of(self, key: Key, obj: Object) -> Sequence[str]:
        """Return the values by which an object is found under its key."""
        return self.values(obj) if self.includes(key.resource) else ABSENT


NewIndexes = Callable[[], Sequence[FieldIndex]]


class AtPath:
    """What is read at a path of an object (``metadata.ownerReferences[0].uid``)."""

    def __init__(self, path: str) -> None:
        self.path = path
        steps = _STEP.findall(path)
        self._steps = [int(number) if number else name for name, number in steps]

    def value_of(self, obj: Object) -> Any:
        """Return the value at the path, None where there is none."""
        value: Any = obj
        for step in self._steps:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int):
                value = value[step] if len(value) > step else None
            else:
                return None
        return value


class TextAt(AtPath):
    """The text at a path.

    :param usual: a text that is not worth an entry: objects with it are not found by it.
    """

    def __init__(self, path: str, usual: str = "") -> None:
        super().__init__(path)
        self.usual = usual

    def __call__(self, obj: Object) -> Sequence[str]:
        value = self.value_of(obj)
        return (value,) if isinstance(value, str) and value != self.usual else ABSENT


class Presence(AtPath):
    """The empty text, if there is anything at a path."""

    def __call__(self, obj: Object) -> Sequence[str]:
        return ABSENT if self.value_of(obj) is None else THERE


class Untruth(AtPath):
    """The empty text, unless there is true at a path."""

    def __call__(self, obj: Object) -> Sequence[str]:
        return ABSENT if self.value_of(obj) is True else THERE


class Mention:
    """The empty text, if anything in an object has a name."""

    def __init__(self, field: str) -> None:
        self.field = field

    def __call__(self, obj: Object) -> Sequence[str]:
        return THERE if _mentions(obj, self.field) else ABSENT


def _mentions(value: Any, field: str) -> bool:
    """Return whether a field anywhere in a value has a name."""
    if isinstance(value, dict):
        return field in value or any(_mentions(item, field) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, field) for item in value)


def index_values(indexes: Iterable[FieldIndex], obj: Object) -> Values:
    """Return the entries of an object in indexes that include its resource."""
    values: list[tuple[str, str]] = []
    for index in indexes:
        for value in index.values(obj):
            values.append((index.name, value))
    return tuple(values)


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
    name), each with the object's key."""

    entries: SortedMap[tuple[str, ...], Key] = SortedMap()

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
        return self.entries.between(prefix, (*prefix, LAST_TEXT))

    def has(self, index: str, value: str) -> bool:
        """Return whether any object has a value."""
        entry, _ = next(self.entries.after((index, value)), ((), None))
        return entry[:2] == (index, value)

    def counts(self, index: str) -> Counter[str]:
        """Return the values of an index, with the numbers of objects that have them."""
        entries = takewhile(lambda entry: entry[0][0] == index, self.entries.after((index,)))
        return Counter(entry[1] for entry, _ in entries)

    def changed(self, edits: Iterable[tuple[tuple[str, ...], Key | None]]) -> IndexEntries:
        """Return the entries with some added, and those removed that have no key."""
        return IndexEntries(self.entries.changed(edits))
