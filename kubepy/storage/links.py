"""Look objects up by what is in them: a uid, an owner, a node.

A store knows no kinds: the API server gives it :class:`Lookups <Lookup>`, each a path in the JSON
of objects and the resources that it is for: what client-go calls an Indexer. A store in memory
keeps sorted entries beside its objects (:class:`LinkEntries`); another store may have indexes of
its own, which give the same as :meth:`Lookup.value_of`.

Controllers read through a :class:`RecordedView`: all that is recorded at one revision. It shows no
edit of a file before that is recorded, and so goes with the change log exactly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

from kubepy.storage.model import Key, Object
from kubepy.storage.sortedmap import SortedMap

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
LinkedObjects = list[tuple[Key, Object]]
Keys = list[Key]
Names = list[str]
Places = list[tuple[str, str]]


class LinkKind(Enum):
    """The value by which a link finds an object."""

    TEXT = "the text at the path"
    PRESENCE = "the empty text, if there is anything at the path"
    MENTION = "the empty text, if anything in the object has the path as its name"
    ABSENCE = "the empty text, unless there is true at the path"


class Lookup(NamedTuple):
    """One way to find objects.

    :ivar name: names its index.
    :ivar path: where the value is: ``metadata.ownerReferences[0].uid``.
    :ivar resources: of these only; () for all but ``others``.
    :ivar usual: a text that is not worth an entry: objects with it are not found by it. Without one
        it is the empty text.
    """

    name: str
    path: str
    resources: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    kind: LinkKind = LinkKind.TEXT
    usual: str = ""

    def includes(self, resource: str) -> bool:
        """Return whether objects of a resource have entries."""
        return resource in self.resources if self.resources else resource not in self.others

    def value_of(self, obj: Object, text: str) -> str | None:
        """Return the value under which an object is found, None for one that is not. ``text``: its
        JSON."""
        if self.kind is LinkKind.MENTION:
            return "" if f'"{self.path}":' in text else None
        value = _value_at(obj, self.path)
        if self.kind is LinkKind.PRESENCE:
            return None if value is None else ""
        if self.kind is LinkKind.ABSENCE:
            return None if value is True else ""
        if not isinstance(value, str) or value == self.usual:
            return None
        return value


def _value_at(obj: Object, path: str) -> Any:
    """Return the value at a path, None where there is none."""
    value: Any = obj
    for name, number in _STEP.findall(path):
        if number:
            is_there = isinstance(value, list) and len(value) > int(number)
            value = value[int(number)] if is_there else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


NewLinks = Callable[[], Sequence[Lookup]]
Values = tuple[tuple[str, str], ...]  # names of links with the values of one object


def link_values(links: Iterable[Lookup], key: Key, obj: Object, text: str) -> Values:
    """Return the entries of an object. ``text``: its JSON."""
    return tuple(
        (link.name, value)
        for link in links
        if link.includes(key.resource) and (value := link.value_of(obj, text)) is not None
    )


def partial_object(fields: Sequence[Sequence[str]], values: Iterable[Any]) -> Object:
    """Return an object that has only some fields, each in a section, but for those without a
    value."""
    obj: Object = {section: {} for section, _ in fields}
    for (section, field), value in zip(fields, values, strict=True):
        if value is not None:
            obj[section][field] = value
    return obj


class LinkEntries(NamedTuple):
    """The entries of the objects in memory, which never change: (link, value, resource, namespace,
    name)."""

    entries: SortedMap[tuple[str, ...], bool] = SortedMap()

    def keys(
        self, link: str, value: str, resource: str | None = None, namespace: str | None = None
    ) -> list[Key]:
        """Return the keys of the objects with a value (of one resource, in one namespace), in key
        order."""
        prefix: tuple[str, ...] = (link, value)
        for part in (resource, namespace):
            if part is None:
                break
            prefix = (*prefix, part)
        found: list[Key] = []
        for entry, _ in self.entries.after(prefix):
            if entry[: len(prefix)] != prefix:
                break
            found.append(Key(*entry[2:]))
        return found

    def counts(self, link: str) -> Counter[str]:
        """Return the values of a link, with the numbers of objects that have them."""
        entries = takewhile(lambda entry: entry[0][0] == link, self.entries.after((link,)))
        return Counter(entry[1] for entry, _ in entries)

    def changed(self, changes: Mapping[Key, tuple[Values, Values]]) -> LinkEntries:
        """Return the entries after a commit. ``changes``: the values of each object before and
        after it."""
        edits: list[tuple[tuple[str, ...], bool | None]] = []
        for key, (before, after) in changes.items():
            if before != after:
                edits += [((*value, *key), None) for value in before if value not in after]
                edits += [((*value, *key), True) for value in after if value not in before]
        return LinkEntries(self.entries.changed(sorted(edits))) if edits else self


class RecordedView(Protocol):
    """All that a store has recorded at one revision. The objects that come out are shared or new:
    never change one.

    What files say that is not recorded yet does not show. Raises FolderError where it cannot be
    read.
    """

    @property
    def revision(self) -> int:
        """The revision of everything that is seen."""

    def refresh(self) -> None:
        """Go on to the newest revision."""

    def release(self) -> None:
        """Let go of what is seen; nothing can be read until :meth:`refresh`. Others may need to
        wait for that."""

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none."""

    def get_all(self, keys: Collection[Key]) -> LinkedObjects:
        """Return the objects that are there at these keys."""

    def list(self, resource: str, namespace: str | None = None) -> LinkedObjects:
        """Return the objects of a resource (in one namespace, or None: everywhere), in key
        order."""

    def linked(
        self, link: str, value: str, resource: str | None = None, namespace: str | None = None
    ) -> LinkedObjects:
        """Return the objects that a link finds by a value (of one resource, in one namespace), in
        key order."""

    def linked_all(
        self,
        link: str,
        values: Collection[str],
        resource: str | None = None,
        namespace: str | None = None,
    ) -> LinkedObjects:
        """Return the objects that a link finds by any of some values, in no order."""

    def counts(self, link: str) -> Mapping[str, int]:
        """Return the values by which a link finds objects, each with a number: at most so many."""

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None = None,
        link: str = "",
        value: str = "",
    ) -> LinkedObjects:
        """Return only some fields, each in a section (``metadata.labels``), of the objects of a
        resource (that a link finds), in key order; the section is there without the field, too."""

    def keys(self, resource: str, limit: int | None = None) -> Keys:
        """Return the keys of the objects of a resource, at most so many, in key order."""

    def count(self, resource: str) -> int:
        """Return the number of objects of a resource, without reading them."""

    def names(self, resource: str, namespace: str, prefix: str) -> Names:
        """Return the names of the objects of a resource in a namespace that begin so (with ASCII),
        in order."""

    def places(self) -> Places:
        """Return the resources and namespaces in which there are objects, in no order."""
