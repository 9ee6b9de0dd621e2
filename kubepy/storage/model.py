"""What storage hands out: snapshots, changes, problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.storage.keys import CLUSTER, NAMESPACES, Key

Object = dict[str, Any]
Objects = list[Object]
# Looks at an object read from a file that another program wrote: returns it complete, raises ValueError if the file
# cannot hold it (a kind that is not its folder's) and EditError if the object cannot become this. A pure function of
# (key, object, file mtime in seconds, the object last taken in under the key, perhaps of another uid; None if there is
# none). Every look derives the same again, so admit(file, admit(file, old)) == admit(file, old).
Admit = Callable[[Key, Object, float, Object | None], Object]
# Asked when the file of an object is removed while there are files in the namespace of its name: the object as it is
# after that, or None if it is gone. A pure function of (key, the object, the cluster's time in seconds).
Removal = Callable[[Key, Object, float], Object | None]

_FILE_DEPTHS = {CLUSTER: 2, NAMESPACES: 3}  # how many folders a file of an object is in
ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class EditError(ValueError):
    """A file whose object has a value that it cannot have or get. ``field``: the path of the field to blame."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


class Problem(NamedTuple):
    """A file in the folder that cannot be an object: its path relative to the folder, a line (0: none), and why.

    Or what keeps a whole folder of objects from being read. ``keeps_object``: the object of the file counts as it last
    was (an immutable field was edited); it cannot be written until the file is put right.
    """

    path: str
    line: int
    why: str
    keeps_object: bool = False

    @property
    def is_folder(self) -> bool:
        return self.path.count("/") < _FILE_DEPTHS.get(self.path.partition("/")[0], 0)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}" if self.line else f"{self.path}: {self.why}"


class Snapshot(NamedTuple):
    """Objects in key order as they were at one revision; each carries ``metadata.resourceVersion``.

    ``problems`` are the files among those listed that cannot be objects, by path, and the folders that cannot be read;
    the objects of those are given as they last were.
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
