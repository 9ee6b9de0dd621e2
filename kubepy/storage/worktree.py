"""The protocol of what only a store of files has: edits from outside, files that are no objects,
how fresh what was read must be, and the folder itself.

A cluster has a work tree or has none (``LocalCluster.worktree``). Only commands about files, and
what looks for edits of files, ask for it.

``max_age`` says everywhere how fresh files must be: a look at all of them that is no older than so
many seconds is fresh enough, and there is no other. 0: look now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from kubepy.storage.model import Admit, Key, Object, Problem, Removal
from kubepy.storage.state import State
from kubepy.storage.store import Transaction

Names = list[str]
Objects = list[Object]
Problems = list[Problem]


class WorkTree(Protocol):
    """Objects as files in a folder, one object a file, which anybody may edit. Everything here may
    raise FolderError where the folder cannot be used."""

    @property
    def folder(self) -> str:
        """The path of the folder."""

    def admit_edits(self, admit: Admit, removal: Removal) -> None:
        """Take what the API server does with objects that something else than it has written."""

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Take a function for lines to the user, such as that something damaged was made anew."""

    # --- edits from outside ---

    def look(self, max_age: float = 0.0, *, keys: Iterable[Key] | None = None) -> None:
        """Record edits of files, so that the change log has them.

        :param keys: the objects that are to be read, where edits of others may be left for later.
        """

    def look_in(
        self, resource: str, namespace: str | None = None
    ) -> tuple[int, tuple[Problem, ...]]:
        """Record edits of the files of a resource (in one namespace, or None: everywhere).

        :return: the newest revision after that, and the files among them that cannot be objects.
        """

    def fresh_transaction(self, max_age: float = 0.0) -> AbstractContextManager[Transaction]:
        """Run a transaction in which all edits count from the beginning; in others each counts from
        when its object is first read. Raises as :meth:`Store.transaction` does."""

    def newest_state(self) -> State:
        """Return everything as the files are now, for a fork: edits that cannot be recorded are in
        it as well, with revisions of their own."""

    def watch_files(self) -> None:
        """Let the operating system tell what is edited, as long as the store is open, so that looks
        cost next to nothing. Only the cost differs."""

    def is_quiet(self) -> bool:
        """Return whether it is known, at next to no cost, that nothing has changed here for a
        moment."""

    # --- files that are no objects ---

    def find(self, key: Key) -> tuple[Object | None, Problem | None]:
        """Return an object, and the problem because of which it counts as it last was."""

    def problems(self, max_age: float = 0.0) -> Problems:
        """Return everything that should be an object and cannot be one, by path."""

    def known_problems(self) -> Problems:
        """Return the problems that are recorded, each as its file is now, by path; no other file is
        looked at."""

    def describe(self, problem: Problem) -> str:
        """Return a problem and what follows from it, for a warning."""

    def other_files(self) -> tuple[Names, Names]:
        """Return the paths of files below the folders of objects that are neither an object's nor a
        problem of their own: those with the ending of a manifest, and all others."""

    # --- what an edited file is checked by ---

    def knows_files(self) -> bool:
        """Return whether the files were read before: not while an index is made anew."""

    def object_of_file(self, key: Key) -> Object | None:
        """Return an object as its file is at this moment, or as it last was if the file cannot be
        an object; None without either."""

    def is_recorded(self, key: Key) -> bool:
        """Return whether there is an object, or a problem with its file."""

    def recorded(self, resource: str) -> Objects:
        """Return the objects of a resource without a look at their files."""

    def recorded_resources(self) -> Names:
        """Return the resources of which there are objects with files, sorted, without a look at
        files."""

    def namespaces(self) -> Names:
        """Return the namespaces in which there are objects with files, sorted."""

    def warn_of_file(self, key: Key, text: str) -> None:
        """Tell the user something about the file of an object."""

    # --- the folder as a whole ---

    def network_refusal(self) -> str:
        """Return why no webhook may be called from this folder, "" where they may."""

    def check(self) -> Names:
        """Return everything in which files and index disagree, a line each."""

    def repair(self) -> Names:
        """Repair what can be repaired safely, and return each repair as a line."""

    def copy_to(self, folder: str) -> None:
        """Copy everything to a new folder: the files as they are, and the index."""
