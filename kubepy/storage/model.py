"""The values that every store takes and gives: keys, objects, snapshots, changes, problems."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubepy.lazy import NamedTuple

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

LOG_LENGTH = 20_000  # revisions the change log reaches back at least
LOG_SLACK = 5_000
MAX_INTEGER = 2**63
_WHOLE_FLOAT = re.compile(r"[0-9](?:\.0|e\+[0-9]+)[],}]")  # a part of a JSON text that may be a float without fraction


class Key(NamedTuple):
    """The name of an object: ``resource`` is the plural with its group (``daemonsets.apps``, ``pods``), ``namespace``
    is "" for cluster scope.

    Keys sort by resource, namespace, name: the order of every list.
    """

    resource: str
    namespace: str
    name: str


Object = dict[str, Any]
Objects = list[Object]
# Called with an object read from a file that another program wrote: returns it complete, raises ValueError if the file
# cannot hold it (a kind that is not its folder's) and EditError if the object cannot become this. A pure function of
# (key, object, file mtime in seconds, the object last stored under the key, perhaps of another uid; None if there is
# none). Readers and writers each call it and must get the same: admit(file, admit(file, old)) == admit(file, old).
Admit = Callable[[Key, Object, float, Object | None], Object]
# Called when the file of an object is removed while there are files in the namespace of its name: returns the object as
# it is after that, or None if it is gone. A pure function of (key, the object, the cluster's time in seconds).
Removal = Callable[[Key, Object, float], Object | None]


class Problem(NamedTuple):
    """A file in the folder that cannot be an object, or a folder of objects that cannot be read.

    :ivar path: relative to the state folder.
    :ivar line: the line to blame, 0 for the whole file.
    :ivar reason: a predicate, as it follows the path in a message.
    :ivar keeps_object: the object of the file counts as it last was (an immutable field was edited); it cannot be
        written until the file is put right.
    """

    path: str
    line: int
    reason: str
    keeps_object: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}" if self.line else f"{self.path}: {self.reason}"


class Snapshot(NamedTuple):
    """Objects in key order as they were at one revision; each carries ``metadata.resourceVersion``.

    ``problems`` are the files among those listed that cannot be objects, by path, and the folders that cannot be read;
    the objects in such folders are given as they last were.
    """

    revision: int
    objects: Objects
    problems: tuple[Problem, ...] = ()


class ObjectStream(NamedTuple):
    """A snapshot whose objects are decoded while they are iterated over, which is possible once; none of them is kept.

    The fields are those of a Snapshot."""

    revision: int
    objects: Iterator[Object]
    problems: tuple[Problem, ...] = ()


class Change(NamedTuple):
    """One entry of the change log.

    :ivar type: ADDED, MODIFIED or DELETED.
    :ivar object: the state after the change, or for DELETED the last state.
    """

    revision: int
    type: str
    key: Key
    object: Object


class LoggedChange(NamedTuple):
    """A change with the object as text, for whoever keeps objects as a store does.

    :ivar json: the state after the change, or for DELETED the last state, without resourceVersion.
    :ivar expires: the time at which a volatile object is over; None for every other.
    """

    revision: int
    type: str
    key: Key
    json: str
    expires: float | None = None


LoggedChanges = list[LoggedChange]


class CommittedChanges(NamedTuple):
    """The changes of one transaction, oldest first.

    :ivar base: the newest revision when the transaction began.
    """

    base: int
    revision: int
    changes: list[LoggedChange]


class LogEntry(NamedTuple):
    """A change as a store logs it; ``json`` is the last state of a deleted object, None for the others."""

    revision: int
    type: str
    resource: str
    namespace: str
    name: str
    json: str | None


def coalesce(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Make one entry of what happened to an object between two deletions: only its newest state is still there."""
    newest: dict[Key, LogEntry] = {}
    coalesced: list[LogEntry] = []
    for entry in entries:
        key = Key(entry.resource, entry.namespace, entry.name)
        earlier = newest.pop(key, None)
        if entry.type == DELETED:
            coalesced.append(entry)
        else:
            is_new = ADDED in (entry.type, earlier and earlier.type)
            newest[key] = entry._replace(type=ADDED if is_new else MODIFIED)
    return sorted([*coalesced, *newest.values()])


# --- objects as JSON ---


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def to_json(obj: Object) -> str:
    """Return the JSON of an object for its row: all but the resourceVersion, which is the row's revision.

    Numbers without a fraction become integers in the object too, as they come back from a file. Raises ValueError for
    values that JSON or a file cannot hold.
    """
    metadata = obj["metadata"]
    version = metadata.pop("resourceVersion", None)
    try:
        text = _encoder.encode(obj)
        may_have_floats = ".0," in text or ".0}" in text or ".0]" in text or "e+" in text
        if may_have_floats and _WHOLE_FLOAT.search(text):  # the first look takes a fraction of the second's time
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
