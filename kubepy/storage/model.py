"""What storage hands out: snapshots, changes, problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.storage.keys import Key

Object = dict[str, Any]
Objects = list[Object]
# Looks at an object read from a file that another program wrote: returns it complete, raises ValueError if the file
# cannot hold it (a kind that is not its folder's). A pure function of (key, object, file mtime in seconds).
Admit = Callable[[Key, Object, float], Object]

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class Problem(NamedTuple):
    """A file in the folder that cannot be an object: its path relative to the folder, a line (0: none), and why."""

    path: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}" if self.line else f"{self.path}: {self.why}"


class Snapshot(NamedTuple):
    """Objects in key order as they were at one revision; each carries ``metadata.resourceVersion``.

    ``problems`` are the files among those listed that cannot be objects, by path.
    """

    revision: int
    objects: Objects
    problems: tuple[Problem, ...] = ()


class Change(NamedTuple):
    """One entry of the change log. ``object`` is the state after it, or for DELETED the last state."""

    revision: int
    type: str  # ADDED, MODIFIED, DELETED
    key: Key
    object: Object
