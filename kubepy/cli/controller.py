"""``kubepy controller``: run the controllers, the scheduler and the simulated kubelets."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from kubepy.api.clock import format_time
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.driver import note_missing_nodes, settle
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag
from kubepy.cli.runtime.options import Options
from kubepy.controlplane import MANAGER_LOCK, build_manager, manager_lock, settled_checkpoint
from kubepy.controlplane.manager import POLL_SECONDS
from kubepy.controlplane.summary import Due, Summary, SyncFailure
from kubepy.quoting import printable
from kubepy.runtime.reconcile import Key


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

    Prints a line for each object that changed. What falls due later, and what went wrong, is said on stderr."""
    options.require_no_args()
    if options.once == options.watch:
        options.usage_error("give one of --once and --watch")
    if options.quiet_for < 0:
        raise CliError("--quiet-for must not be negative")
    (_once if options.once else _watch)(factory, options)


# --- once


def _once(factory: Factory, options: ControllerOptions) -> None:
    """Run here, or beside a process that runs already wait until that one is quiet."""
    cluster = factory.cluster
    others_run = False
    while True:
        checkpoint = settled_checkpoint(cluster, options.quiet_for, of_this_version=not others_run)
        if checkpoint is not None and (others_run or not checkpoint.can_skip_waits()):
            _warn_of_problems(factory)
            note_missing_nodes(factory.client, factory.say)
            _say_due(factory, [Due(one.due, one.reconciler, one.key) for one in checkpoint.pending if one.due])
            return
        with manager_lock(cluster) as ours, _signals() as received:
            if ours:
                summary = settle(factory.progress, build_manager(cluster), options.quiet_for, lambda: bool(received),
                                 skip_waits=True)
                _report(factory, options, summary)
                _warn_of_problems(factory)
                note_missing_nodes(factory.client, factory.say)
                _say_due(factory, summary.due, summary.failures)
                if received:
                    raise SilentExit(128 + received[0])
                return
        others_run = True
        factory.progress.show(f"waiting {factory.progress.seconds()}s", about="for another process")
        cluster.clock.sleep(POLL_SECONDS)


# --- watch


def _watch(factory: Factory, options: ControllerOptions) -> None:
    from kubepy.cli.git.repository import is_git_at_work
    from kubepy.storage import FolderError, LockTimeoutError, NoClusterError

    cluster = factory.cluster

    def failed(error: Exception) -> None:
        if isinstance(error, NoClusterError):
            raise error
        factory.say(f"error: {error}")

    def settled(summary: Summary) -> None:
        cluster.store.sync()
        _report(factory, options, summary)
        _warn_of_problems(factory)

    with _signals() as received:
        manager = build_manager(cluster)
        while not received:
            with manager_lock(cluster) as is_lost:
                if is_lost is None:
                    holder = cluster.store.holder(MANAGER_LOCK) or "another process"
                    raise CliError(f"the controllers of {factory.folder} are run by {holder} already")
                manager.run(_any(received, is_lost), settled, (FolderError, LockTimeoutError), failed,
                            paused=lambda: is_git_at_work(str(factory.folder)))
        if received == [signal.SIGINT]:  # SIGTERM is how a watch is meant to end
            raise SilentExit(128 + signal.SIGINT)


def _any(received: list[int], is_lost: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: bool(received) or is_lost()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that have asked to stop, as they come. What is under way is finished first; a second signal does not
    wait for that."""
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        received.append(number)
        for one in before:
            signal.signal(one, signal.SIG_DFL)

    before = {one: signal.signal(one, receive) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


# --- output


def _report(factory: Factory, options: ControllerOptions, summary: Summary) -> None:
    if not options.quiet:
        for change in summary.changes():
            factory.print(printable(f"{change.printed_name} {change.verb}"))
        factory.stdout.flush()
    if factory.options.v or options.changed("v"):
        for failure in summary.failures:
            factory.say(f"{failure.reconciler}: {_where(failure.key)}: {failure.error}")


def _warn_of_problems(factory: Factory) -> None:
    """Say which files could not be objects, and so played no part; each once."""
    for problem in factory.cluster.problems():
        factory.warn(factory.cluster.store.describe(problem))


def _say_due(factory: Factory, remaining: Iterable[Due], failures: Iterable[SyncFailure] = ()) -> None:
    """What is to be looked at again, and when; with what went wrong the last time, if that is why."""
    now = factory.cluster.clock.now()
    why = {(one.reconciler, one.key): f"since {one.error}" for one in failures}
    rows = [(f"due at {format_time(one.time)}", f"in {max((one.time - now).total_seconds(), 0.0):.0f}s",
             one.reconciler, _where(one.key), why.get((one.reconciler, one.key), "")) for one in remaining]
    if rows:
        factory.say(in_columns(rows))


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of a report of kubepy's own, aligned. One row needs no library, which takes as long to import as a run."""
    if len(rows) == 1:
        return "  ".join(filter(None, rows[0]))
    from tabulate import tabulate

    return str(tabulate(rows, tablefmt="plain", disable_numparse=True))


def _where(key: Key) -> str:
    return f"{key.resource}/{key.name} in {key.namespace}" if key.namespace else f"{key.resource}/{key.name}"
