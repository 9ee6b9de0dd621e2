"""Run the controllers when a command reads the cluster, and while one waits for something that they bring about."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kubepy.controlplane import MANAGER_LOCK, build_manager, manager_lock
from kubepy.lazy import lazy_imports
from kubepy.runtime.checkpoint import CHECKPOINT, latest, settled_checkpoint
from kubepy.storage import FolderError, LockTimeoutError, NoClusterError

with lazy_imports():
    from kubepy.controlplane import manager as managers

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.client import Client
    from kubepy.apiserver.cluster import Cluster
    from kubepy.cli.runtime.progress import Progress
    from kubepy.controlplane.manager import Manager
    from kubepy.controlplane.summary import Summary

NOTE_SECONDS = 2  # after which a user at a terminal is told why pods have no node
TAKE_OVER_SECONDS = 1.0  # how soon a waiting command notices that the process that ran the controllers has ended
# A node whose status is empty becomes Ready when the controllers run.
NEW_NODE = """echo '{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}"}}}}' | kubepy create -f -"""
LOCK_SECONDS = 60.0  # how old a lock of git may be before it counts as left behind by a git that was killed
UNDER_WAY = ("index.lock", "MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def note_unscheduled_pods(client: Client, say: Callable[[str], None]) -> None:
    """Tell the user which pods have no node, why, and the command that helps: kubectl's own messages do not say."""
    waiting: dict[str, list[Object]] = {}  # by the scheduler's message
    for pod in client.list("pods").items:
        if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            continue
        condition: Object = next((condition for condition in pod.get("status", {}).get("conditions") or ()
                          if condition["type"] == "PodScheduled" and condition["status"] == "False"), {})
        waiting.setdefault(condition.get("message", ""), []).append(pod)
    nodes = client.list("nodes").items if waiting else []
    if waiting and not nodes:
        waiting = {"there are no nodes": [pod for pods in waiting.values() for pod in pods]}
    for message, pods in waiting.items():
        if message:
            first, count = pods[0]["metadata"], len(pods)
            name = f"{first['namespace']}/{first['name']}"
            subject = f"pod {name} is" if count == 1 else f"{count} pods ({name} …) are"
            reason = message.partition(". no new claims")[0].partition(". preemption:")[0].rstrip(".")
            say(f"note: {subject} Pending: {reason}: {remedy(message, pods[0], nodes)}")


def remedy(message: str, pod: Object, nodes: Sequence[Object]) -> str:
    """Return the command that helps an unschedulable pod most, by the scheduler's message."""
    def on_node(command: str, matches: Callable[[Object], Any], suffix: Callable[[Object], str]) -> str | None:
        node = next((node for node in nodes if matches(node["spec"])), None)
        return f'"{command} {node["metadata"]["name"]}{suffix(node["spec"])}"' if node else None

    def is_own(taint: Object) -> bool:
        return "node.kubernetes.io/" not in taint["key"] and taint["effect"] != "PreferNoSchedule"

    def first_taint(spec: Object) -> str:
        taint = next(filter(is_own, spec["taints"]))
        return f" {taint['key']}:{taint['effect']}-"

    selector = pod["spec"].get("nodeSelector") or {}
    labels = "".join(f" {key}={value}" for key, value in selector.items())
    details = f'"kubepy describe pod {pod["metadata"]["name"]} -n {pod["metadata"]["namespace"]}" shows more'
    commands: dict[str, Callable[[], str | None]] = {
        "there are no nodes": lambda: f"make one with {NEW_NODE.format('node-1')}",
        "unschedulable": lambda: on_node("kubepy uncordon", lambda spec: spec.get("unschedulable"), lambda spec: ""),
        "untolerated taint": lambda: on_node(
            "kubepy taint nodes", lambda spec: any(map(is_own, spec.get("taints") or ())), first_taint),
        "affinity/selector": lambda: labels and on_node("kubepy label nodes", lambda spec: True, lambda spec: labels),
        "Insufficient": lambda: f"another node may help: {NEW_NODE.format(f'node-{len(nodes) + 1}')}",
        "Too many pods": lambda: f"another node may help: {NEW_NODE.format(f'node-{len(nodes) + 1}')}",
        "persistentvolumeclaim": lambda: f'"kubepy describe pvc -n {pod["metadata"]["namespace"]}" shows the claims',
        "PersistentVolumeClaims": lambda: f'"kubepy describe pvc -n {pod["metadata"]["namespace"]}" shows the claims',
    }
    found = (command() for words, command in commands.items() if words in message)
    return next(filter(None, found), details)


def settle(progress: Progress, manager: Manager, quiet_for: float = 0.0, stop: Callable[[], bool] = lambda: False, *,
           skip_waits: bool = False) -> Summary:
    """Run :meth:`Manager.run_until_settled`, showing the progress on a terminal."""
    def is_over() -> bool:
        changed, waiting = manager.workload()
        progress.show(f"{changed} objects changed, {waiting} to do")
        return stop()

    return manager.run_until_settled(quiet_for, is_over, skip_waits=skip_waits)


def is_git_at_work(folder: str) -> bool:
    """Return whether git is changing the working tree around a folder: it holds the lock of its index."""
    directory = _git_directory(os.path.realpath(folder))
    if directory is None:
        return False
    try:
        return time.time() - os.stat(os.path.join(directory, "index.lock")).st_mtime < LOCK_SECONDS
    except OSError:
        return False


def is_git_amid_changes(folder: str) -> bool:
    """Return whether git is changing the working tree around a folder, or waits for a merge or rebase to be ended."""
    directory = _git_directory(os.path.realpath(folder))
    return directory is not None and any(os.path.lexists(os.path.join(directory, name)) for name in UNDER_WAY)


def _git_directory(folder: str) -> str | None:
    """Return the directory with the index of the working tree around a folder, without running git."""
    path = os.path.join(folder, ".git")
    if not os.path.lexists(path):
        parent = os.path.dirname(folder)
        return _git_directory(parent) if parent != folder else None
    if os.path.isdir(path):
        return path
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # of a linked worktree, or a submodule
            return os.path.join(folder, file.read().removeprefix("gitdir:").strip())
    except OSError:
        return None


class Driver:
    """Runs the controllers in a command: what is due before it reads, and what it waits for.

    It does a burst of work at a time, and releases the manager's lock between bursts: other commands may wait as well,
    and ``kubepy controller`` may start.
    """

    def __init__(self, cluster: Cluster, folder: str, progress: Progress, say: Callable[[str], None], *,
                 reconciles: bool) -> None:
        """Without ``reconciles`` it only waits for another process to run the controllers."""
        self._cluster = cluster
        self._folder = folder
        self._progress = progress
        self._say = say
        self._reconciles = reconciles
        self._manager: Manager | None = None
        self._warned = False
        self._noted = False
        self._has_settled = False
        self._others_run_until = 0.0  # when to look again whether another process runs the controllers

    def react(self) -> bool:
        """Let the controllers do what is due now, as they would have done by now in a cluster; wait for nothing.

        Returns whether there was work. It stays undone where another process runs the controllers or writes, where git
        is in the midst of changing the folder, and where the folder cannot be written.
        """
        if not self._reconciles:
            return False
        if self._manager is not None:
            self._manager.poll()
            is_idle = not self._manager.has_work()
        else:
            is_idle = settled_checkpoint(self._cluster) is not None
        store = self._cluster.store
        if is_idle or store.holder(MANAGER_LOCK) is not None or is_git_amid_changes(self._folder):
            return False
        patience, store.lock_timeout = store.lock_timeout, 0.0
        try:
            return self._run(lambda manager: settle(self._progress, manager))
        except LockTimeoutError:
            return False  # another process writes: the command reads what stands
        except NoClusterError:
            raise
        except FolderError as error:
            if not (isinstance(error.__cause__, OSError) and error.__cause__.errno in NOT_WRITABLE):
                self._say(f"note: the controllers could not work: {error}")
            return False
        finally:
            store.lock_timeout = patience

    def wait_until(self, done: Callable[[], bool], timeout: float | None = None, about: str = "") -> bool:
        """Wait until ``done()`` holds, at most ``timeout`` seconds of real time (None: for ever), and return it.

        ``done`` is asked after every batch of the controllers, and whenever something changed. ``about`` names what is
        waited for, to be shown on a terminal.
        """
        clock, progress = self._cluster.clock, self._progress
        deadline = None if timeout is None else clock.monotonic() + timeout

        def is_over() -> bool:
            progress.show(f"waiting {progress.seconds()}s", about=about)
            return deadline is not None and clock.monotonic() >= deadline

        def burst(manager: Manager) -> Summary:
            return manager.run_until_settled(done=lambda: done() or is_over(), skip_waits=True)

        pause = managers.POLL_SECONDS
        is_first = True
        while not done():
            if is_over():
                self._note_unscheduled()
                return False
            has_work = is_first or self._manager is None or self._manager.has_work()
            is_first = False
            if self._reconciles and has_work and self._run(burst):
                continue
            self._note_unscheduled()
            if not self._reconciles and not self._warned:
                if self._cluster.store.holder(MANAGER_LOCK) is None:
                    self._say("no controller is running (--reconcile=never): waiting for another process to run one")
                self._warned = True
            seconds = pause if deadline is None else max(min(pause, deadline - clock.monotonic()), 0.0)
            if self._manager is not None:
                pause = self._manager.wait_for_work(seconds)
            else:
                clock.sleep(seconds)
                pause = managers.POLL_SECONDS
        return True

    def has_observed(self, obj: Object) -> bool:
        """Return whether controllers have seen this version of an object, in this process or before it."""
        if self._has_settled:
            return True
        checkpoint = latest(self._cluster.store.meta(CHECKPOINT))
        return checkpoint is not None and int(obj["metadata"]["resourceVersion"]) <= checkpoint.revision

    def _run(self, burst: Callable[[Manager], Summary]) -> bool:
        """Do a burst of work, if no other process runs the controllers; return whether it was done."""
        clock = self._cluster.clock
        if clock.monotonic() < self._others_run_until:
            return False
        with manager_lock(self._cluster) as is_lost:
            if is_lost is None:
                self._others_run_until = clock.monotonic() + TAKE_OVER_SECONDS
                return False
            if self._manager is None:
                self._manager = build_manager(self._cluster)
            burst(self._manager)
            self._has_settled = True
            return True

    def _note_unscheduled(self) -> None:
        """Say once why pods have no node, when the controllers have come to rest: before, they may create pods yet."""
        if self._noted or not self._progress.is_watched or self._progress.seconds() < NOTE_SECONDS:
            return
        note_unscheduled_pods(self._cluster.client, self._say)
        self._noted = True
