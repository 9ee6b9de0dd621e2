"""The values that every store takes and gives: keys, objects, snapshots, changes, problems."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kubepy.storage.frozen import FrozenDict, shared, thaw

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

# The small value that a store has once it has lost its small values: a number beyond all counts
# that may have been among them.
REBUILT = "rebuilt"
LOG_LENGTH = 20_000  # revisions the change log reaches back at least
LOG_SLACK = 5_000
MAX_INTEGER = 2**63
VOLUME_PREFIX = "volume/"  # of small values that are the contents of volumes
_WHOLE_FLOAT = re.compile(
    r"[0-9](?:\.0|e\+[0-9]+)[],}]"
)  # a part of a JSON text that may be a float without fraction


class Key(NamedTuple):
    """The name of an object: ``resource`` is the plural with its group (``daemonsets.apps``,
    ``pods``), ``namespace`` is "" for cluster scope.

    Keys sort by resource, namespace, name: the order of every list.
    """

    resource: str
    namespace: str
    name: str

    @property
    def place(self) -> str:
        """The object as a report names it: ``pods/web-0 in default``."""
        return (
            f"{self.resource}/{self.name} in {self.namespace}"
            if self.namespace
            else f"{self.resource}/{self.name}"
        )


Object = dict[str, Any]
Objects = list[Object]
# Called with an object read from a file that another program wrote: returns it complete, raises
# ValueError if the file cannot hold it (a kind that is not its folder's) and EditError if the
# object cannot become this. A pure function of (key, object, file mtime in seconds, the object last
# stored under the key, perhaps of another uid; None if there is none). Readers and writers each
# call it and must get the same: admit(file, admit(file, old)) == admit(file, old).
Admit = Callable[[Key, Object, float, Object | None], Object]
# Called when the file of an object is removed while there are files in the namespace of its name:
# returns the object as it is after that, or None if it is gone. A pure function of (key, the
# object, the cluster's time in seconds).
Removal = Callable[[Key, Object, float], Object | None]


class Problem(NamedTuple):
    """A file in the folder that cannot be an object, or a folder of objects that cannot be read.

    :ivar path: relative to the state folder.
    :ivar line: the line to blame, 0 for the whole file.
    :ivar reason: a predicate, as it follows the path in a message.
    :ivar keeps_object: the object of the file counts as it last was (an immutable field was
        edited); it cannot be written until the file is put right.
    """

    path: str
    line: int
    reason: str
    keeps_object: bool = False

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line}: {self.reason}"
            if self.line
            else f"{self.path}: {self.reason}"
        )


class Snapshot(NamedTuple):
    """Objects in key order as they were at one revision; each carries ``metadata.resourceVersion``.

    ``problems`` are the files among those listed that cannot be objects, by path, and the folders
    that cannot be read; the objects in such folders are given as they last were.
    """

    revision: int
    objects: Objects
    problems: tuple[Problem, ...] = ()


class ObjectStream(NamedTuple):
    """A snapshot whose objects are decoded while they are iterated over, which is possible once;
    none of them is kept.

    The fields are those of a Snapshot."""

    revision: int
    objects: Iterator[Object]
    problems: tuple[Problem, ...] = ()


class Change:
    """One entry of the change log. Its objects are decoded when they are first asked for.

    :ivar type: ADDED, MODIFIED or DELETED.
    :ivar json: the state after the change, or for DELETED the last state, without resourceVersion.
    :ivar expires: the time at which a volatile object is over; None for every other.
    :ivar former_json: a state before it that had other labels or owners, where there was one:
        see :class:`LogEntry`.
    """

    __slots__ = (
        "_former",
        "_object",
        "expires",
        "former_json",
        "json",
        "key",
        "revision",
        "type",
    )

    def __init__(
        self,
        revision: int,
        type: str,
        key: Key,
        json: str,
        expires: float | None = None,
        former_json: str | None = None,
    ) -> None:
        self.revision = revision
        self.type = type
        self.key = key
        self.json = json
        self.expires = expires
        self.former_json = former_json
        self._object: Object | None = None
        self._former: Object | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Change) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.revision, self.key))

    def __repr__(self) -> str:
        return f"Change{self._fields()}"

    def _fields(self) -> tuple[object, ...]:
        return self.revision, self.type, self.key, self.json, self.expires, self.former_json

    @property
    def object(self) -> Object:
        """The object after the change, or its last state. Raises ValueError for a damaged text."""
        if self._object is None:
            self._object = decode(self.json, self.revision)
        return self._object

    @property
    def former(self) -> Object | None:
        """The state before that had other labels or owners, if there was one."""
        if self._former is None and self.former_json is not None:
            self._former = decode(self.former_json, self.revision - 1)
        return self._former


Changes = list[Change]


class ChangesSince(NamedTuple):
    """The part of a change log that leads from one revision to a later one.

    :ivar revision: the revision that the changes lead to: that of the last of them, or a later one.
    :ivar changes: oldest first; several changes of one object may have become one.
    :ivar has_more: the store gives the log in parts, and more of it is there already.
    """

    revision: int
    changes: Changes
    has_more: bool = False


def in_full(read: Callable[[int], ChangesSince], since: int) -> ChangesSince:
    """Return all the changes after a revision, from a store that may give them in parts.

    :param read: returns a part that begins at a revision (``Store.changes``).
    """
    part = read(since)
    if not part.has_more:
        return part
    changes = part.changes[:]
    while part.has_more:
        part = read(part.revision)
        changes += part.changes
    return ChangesSince(part.revision, changes)


class CommittedChanges(NamedTuple):
    """The changes of one transaction, oldest first.

    :ivar base: the newest revision when the transaction began.
    """

    base: int
    revision: int
    changes: Changes


class LogEntry(NamedTuple):
    """A change as a store logs it.

    :ivar json: the state before the change: the last one of a deleted object, and that of an object
        whose labels or owners have changed. It is None for all other changes. By labels and owners
        controllers find what an object concerns, and one that was not running needs the former
        ones, too.
    """

    revision: int
    type: str
    resource: str
    namespace: str
    name: str
    json: str | None


class CoalescedEntry(NamedTuple):
    """What happened to an object, up to its deletion or its newest state.

    :ivar revision: of the last of its changes.
    :ivar last: the last state of a deleted object; None for the others.
    :ivar former: the state before the first change of its labels or owners; None if these have not
        changed, or if there was no object before.
    """

    revision: int
    type: str
    key: Key
    last: str | None
    former: str | None


def coalesce(entries: Iterable[LogEntry]) -> list[CoalescedEntry]:
    """Make one entry of what happened to an object between two deletions: only its newest state is
    still there."""
    newest: dict[Key, CoalescedEntry] = {}
    coalesced: list[CoalescedEntry] = []
    for revision, change_type, *names, before in entries:
        key = Key(*names)
        earlier = newest.pop(key, None)
        is_deletion = change_type == DELETED
        is_new = change_type == ADDED or (earlier is not None and earlier.type == ADDED)
        former = earlier.former if earlier is not None else None
        if former is None and change_type == MODIFIED and not is_new:
            former = before
        if is_deletion:
            coalesced.append(CoalescedEntry(revision, DELETED, key, before, former))
        else:
            newest[key] = CoalescedEntry(revision, ADDED if is_new else MODIFIED, key, None, former)

    return sorted([*coalesced, *newest.values()], key=lambda entry: entry.revision)


def has_moved(before: Object, after: Object) -> bool:
    """Return whether the labels or the owners of an object have changed: what a controller finds it
    by."""
    old, new = before["metadata"], after["metadata"]
    return any(old.get(field) != new.get(field) for field in ("labels", "ownerReferences"))


def former_state(before: str | None, after: str | None) -> str | None:
    """Return the JSON of an object before a change if the change is one of its labels or owners
    (:class:`LogEntry`)."""
    if before is None or after is None or not has_moved(json.loads(before), json.loads(after)):
        return None
    return before


# --- objects as JSON ---


_encoder = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
)


def decode(text: str, revision: int) -> Object:
    """Return the object of a JSON text with its resourceVersion. Raises ValueError, TypeError,
    KeyError for a text that holds none."""
    obj: Object = json.loads(text)
    obj["metadata"]["resourceVersion"] = str(revision)
    return shared(obj)


def set_version(obj: Object, revision: int) -> None:
    """Set the resourceVersion of an object, and of one that is shared: a commit does so with the
    objects that it has written."""
    dict.__setitem__(obj["metadata"], "resourceVersion", str(revision))


def to_json(obj: Object) -> str:
    """Return the JSON of an object for its row: all but the resourceVersion, which is the row's
    revision.

    Numbers without a fraction become integers in the object too, as they come back from a file.
    Raises ValueError for values that JSON or a file cannot hold.
    """
    if obj["metadata"].__class__ is FrozenDict:
        obj = thaw(obj)
    metadata = obj["metadata"]
    version = metadata.pop("resourceVersion", None)
    try:
        text = _encoder.encode(obj)
        may_have_floats = ".0," in text or ".0}" in text or ".0]" in text or "e+" in text
        if may_have_floats and _WHOLE_FLOAT.search(
            text
        ):  # the first look takes a fraction of the second's time
            _make_integers(obj)
            text = _encoder.encode(obj)
    except TypeError as error:
        raise ValueError(str(error)) from error
    finally:
        if version is not None:
            metadata["resourceVersion"] = version

    return text


def _make_integers(value: Any) -> None:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(entries):
        if isinstance(item, dict | list):
            _make_integers(item)
        elif isinstance(item, float) and item.is_integer() and -MAX_INTEGER <= item < MAX_INTEGER:
            value[key] = int(item)
