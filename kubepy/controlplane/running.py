"""Run the controllers beside other programs: the loop of ``kubepy controller --watch``, and of the
server.

git changes many files one by one; while it does, the controllers begin nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kubepy.controlplane import MANAGER_LOCK, manager_lock
from kubepy.controlplane.manager import POLL_SECONDS
from kubepy.controlplane.timekeeping import MAX_POLL_SECONDS
from kubepy.storage import StorageError
from kubepy.storage.homes import find_worktree

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.controlplane.manager import Manager
    from kubepy.controlplane.summary import Summary

LOCK_SECONDS = (
    60.0  # how old a lock of git may be before it counts as left behind by a git that was killed
)
UNDER_WAY = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")


def run_controllers(
    cluster: LocalCluster,
    manager: Manager,
    stop: Callable[[], bool],
    settled: Callable[[Summary], None],
    failed: Callable[[Exception], None],
    *,
    occupied: Callable[[str], None],
) -> None:
    """Run the manager of a cluster until ``stop()`` holds. What others run meanwhile is waited for;
    so is a store that is not a folder, where it has gone away.

    :param settled: is called whenever nothing is left to do now.
    :param failed: is given an error of the store; the work is tried again after it.
    :param occupied: is called again and again while another process, which it gets, runs the
        controllers.
    """
    if cluster.worktree is not None:
        cluster.worktree.watch_files()
    while not stop():
        try:
            with manager_lock(cluster) as is_lost:
                if is_lost is None:
                    occupied(cluster.store.holder(MANAGER_LOCK) or "")
                    # a command that reads or waits ends its burst soon
                    cluster.clock.sleep(POLL_SECONDS)
                    continue
                manager.run(
                    partial(_holds_any, stop, is_lost),
                    settled,
                    (StorageError,),
                    failed,
                    paused=lambda: is_git_at_work(cluster.folder),
                )
        except StorageError as error:
            if cluster.worktree is not None:
                raise
            failed(error)
            cluster.clock.sleep(MAX_POLL_SECONDS)


class FileReporter:
    """Warns once of each file that is no object, or is one no more, and says when it is in order
    again.

    :param warn: takes a warning.
    :param say: takes the good news.
    """

    def __init__(
        self, cluster: LocalCluster, warn: Callable[[str], None], say: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._warn = warn
        self._say = say
        self._told: dict[str, str] = {}

    def look(self) -> None:
        """Compare what is known of the files with what was told. No file without a problem is
        looked at."""
        for text in self._cluster.edit_warnings():
            self._warn(text)
        problems = self._cluster.known_problems()
        if problems == self._told:
            return
        for path, text in problems.items():
            if self._told.get(path) != text:
                self._warn(text)
        for path in self._told.keys() - problems.keys():
            if not self._cluster.folder:
                self._say(f"note: the value of {path} can be read again, or is gone")
                continue
            is_there = os.path.lexists(os.path.join(self._cluster.folder, path))
            self._say(
                f"note: {self._cluster.folder}/{path}: is "
                f"{'in order again' if is_there else 'gone'}"
            )

        self._told = problems


def _holds_any(*conditions: Callable[[], bool]) -> bool:
    return any(condition() for condition in conditions)


def is_git_at_work(folder: str) -> bool:
    """Return whether git is changing the working tree around a folder: it holds the lock of its
    index."""
    worktree = find_worktree(os.path.realpath(folder)) if folder else None
    if worktree is None:
        return False
    try:
        return (
            time.time() - os.stat(os.path.join(worktree.directory, "index.lock")).st_mtime
            < LOCK_SECONDS
        )
    except OSError:
        return False


def is_git_amid_changes(folder: str) -> bool:
    """Return whether git is changing the working tree around a folder, or waits for a merge or
    rebase to be ended."""
    if not folder:  # a cluster in memory
        return False
    worktree = find_worktree(os.path.realpath(folder))
    if is_git_at_work(folder):
        return True
    if worktree is None:
        return False
    return any(os.path.lexists(os.path.join(worktree.directory, name)) for name in UNDER_WAY)
