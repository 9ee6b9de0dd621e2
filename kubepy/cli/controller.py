"""``kubepy controller``: run the controllers, the scheduler and the simulated kubelets."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

from kubepy.api.clock import format_time
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.driver import is_git_at_work, settle
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag
from kubepy.cli.runtime.options import Options
from kubepy.controlplane import MANAGER_LOCK, build_manager, manager_lock
from kubepy.controlplane.summary import Due, Summary, SyncFailure
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.runtime.checkpoint import settled_checkpoint
from kubepy.runtime.reconcile import Key

with lazy_imports():
    from kubepy.controlplane import manager as managers
    from kubepy.storage import errors as storage_errors


class ControllerOptions(Options):
    """The flags of ``controller``."""

    once: bool = bool_flag("once", help="Work until nothing is left to do now, then exit.")
    watch: bool = bool_flag("watch", "w", help="Go on until SIGINT or SIGTERM.")
    quiet: bool = bool_flag("quiet", "q", help="Print nothing for the objects that change.")
    quiet_for: float = duration_flag("quiet-for", help="With --once, also wait for what falls due within this time "
                                     "(1.5s, 2m).")


@command("controller (--once | --watch)", ControllerOptions, examples="""
# Work until nothing is left to do now
kubepy controller --once

# Also wait for timers and back-offs of up to two seconds
kubepy controller --once --quiet-for=2s

# Go on until interrupted, and say what goes wrong
kubepy controller --watch -v=1
""")
def controller(factory: Factory, options: ControllerOptions) -> None:
    """Run controllers, scheduler and simulated kubelets.

    Prints a line for each object that changed. Work that falls due later, and errors, are reported on stderr."""
    options.require_no_args()
    if options.once == options.watch:
        options.usage_error("give one of --once and --watch")
    if options.quiet_for < 0:
        raise CliError("--quiet-for must not be negative")
    factory.cluster.start()
    factory.cluster.controller_client = factory.client  # here -v=6 shows the requests of the controllers
    (_once if options.once else _watch)(factory, options)


# --- once


def _once(factory: Factory, options: ControllerOptions) -> None:
    """Run the controllers here; beside a process that runs them already, wait until that one is quiet."""
    cluster = factory.cluster
    others_run = False
    while True:
        checkpoint = settled_checkpoint(cluster, options.quiet_for, of_this_version=not others_run)
        if checkpoint is not None and (others_run or not checkpoint.can_skip_waits()):
            _warn_of_problems(factory)
            factory.notes.unscheduled_pods(factory.client)
            due = [Due(entry.due, entry.reconciler, entry.key) for entry in checkpoint.pending if entry.due]
            _say_due(factory, sorted(due, key=lambda work: work.time))
            return
        with manager_lock(cluster) as is_lost, _signals() as received:
            if is_lost is not None:
                summary = settle(factory.progress, build_manager(cluster), options.quiet_for, lambda: bool(received),
                                 skip_waits=True)
                _report(factory, options, summary)
                _warn_of_problems(factory)
                factory.notes.unscheduled_pods(factory.client)
                _say_due(factory, summary.due, summary.failures)
                if received:
                    raise SilentExit(128 + received[0])
                return
        others_run = True
        factory.progress.show(f"waiting {factory.progress.seconds()}s", about="for another process")
        cluster.clock.sleep(managers.POLL_SECONDS)


# --- watch


def _watch(factory: Factory, options: ControllerOptions) -> None:
    cluster = factory.cluster

    def failed(error: Exception) -> None:
        if isinstance(error, storage_errors.NoClusterError):
            raise error
        factory.say(f"error: {error}")

    def settled(summary: Summary) -> None:
        cluster.store.sync()
        _report(factory, options, summary)
        _warn_of_problems(factory)

    retried = (storage_errors.FolderError, storage_errors.LockTimeoutError)
    with _signals() as received:
        manager = build_manager(cluster)
        while not received:
            with manager_lock(cluster) as is_lost:
                if is_lost is None:
                    holder = cluster.store.holder(MANAGER_LOCK) or ""
                    if re.search(r"\bcontroller\b.* (--watch|-\w*w)\b", holder):
                        raise CliError(f"the controllers of {factory.folder} are run by {holder} already")
                    cluster.clock.sleep(managers.POLL_SECONDS)  # a command that reads or waits ends its burst soon
                    continue
                stopped = partial(_is_stopped, received, is_lost)
                manager.run(stopped, settled, retried, failed,
                            paused=lambda: is_git_at_work(str(factory.folder)))
        if received == [signal.SIGINT]:  # SIGTERM is how a watch is meant to end
            raise SilentExit(128 + signal.SIGINT)


def _is_stopped(received: list[int], is_lost: Callable[[], bool]) -> bool:
    return bool(received) or is_lost()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect the signals that ask to stop: work under way is finished first, unless a second signal comes."""
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        received.append(number)
        for handled in before:
            signal.signal(handled, signal.SIG_DFL)

    before: dict[signal.Signals, Any] = {}
    try:
        with suppress(ValueError):  # in another than the main thread, which a Python program may run a command in
            before = {handled: signal.signal(handled, receive) for handled in (signal.SIGINT, signal.SIGTERM)}
        yield received
    finally:
        for handled, handler in before.items():
            signal.signal(handled, handler)


# --- output


def _report(factory: Factory, options: ControllerOptions, summary: Summary) -> None:
    if not options.quiet:
        for change in summary.changes():
            factory.print(printable(f"{change.printed_name} {change.verb}"))
        factory.stdout.flush()
    if factory.options.v or options.changed("v"):
        for failure in summary.failures:
            factory.say(f"{failure.reconciler}: {_place(failure.key)}: {failure.error}")


def _warn_of_problems(factory: Factory) -> None:
    """Warn of files that cannot be objects, and are ignored; each once."""
    for problem in factory.cluster.problems():
        factory.warn(factory.cluster.store.describe(problem))


def _say_due(factory: Factory, remaining: Iterable[Due], failures: Iterable[SyncFailure] = ()) -> None:
    """Print the work that falls due later, with its time, and the last error where that is the reason."""
    now = factory.cluster.clock.now()
    reasons = {(failure.reconciler, failure.key): f"since {failure.error}" for failure in failures}
    rows = [(f"due at {format_time(due.time)}", f"in {max((due.time - now).total_seconds(), 0.0):.0f}s",
             due.reconciler, _place(due.key), reasons.get((due.reconciler, due.key), "")) for due in remaining]
    if rows:
        factory.say(in_columns(rows))


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Align the rows of a report of kubepy's own. One row needs no library: importing it takes as long as a run."""
    if len(rows) == 1:
        return "  ".join(filter(None, rows[0]))
    from tabulate import tabulate

    return str(tabulate(rows, tablefmt="plain", disable_numparse=True))


def _place(key: Key) -> str:
    return f"{key.resource}/{key.name} in {key.namespace}" if key.namespace else f"{key.resource}/{key.name}"
