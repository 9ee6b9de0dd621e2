"""``kubepy controller``: run the controllers, the scheduler and the simulated kubelets."""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Iterable, Sequence

from kubepy.api.clock import format_exact_time, format_time
from kubepy.api.meta import name_of, namespace_of
from kubepy.api.values.goformat import parse_span
from kubepy.cli.clock import (
    DAY,
    moment_after,
    parse_moment,
    require_not_before,
    say_failures,
    stop_signals,
)
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.driver import settle
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, go_duration, string_flag, typed_flag
from kubepy.cli.runtime.options import Options
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.summary import Due, Summary, SyncFailure
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.runtime.checkpoint import settled_checkpoint

with lazy_imports():
    from kubepy.controlplane import manager as managers
    from kubepy.controlplane import open as openings
    from kubepy.controlplane import running
    from kubepy.insight.why import overview
    from kubepy.storage import errors as storage_errors

MAX_STUCK = 5  # workloads that are named
_RUNS_CONTROLLERS = re.compile(r"\b(controller\b.* (--watch|-\w*w)|serve)\b")


class ControllerOptions(Options):
    """The flags of ``controller``."""

    once: bool = bool_flag("once", help="Work until nothing is left to do now, then exit.")
    watch: bool = bool_flag("watch", "w", help="Go on until SIGINT or SIGTERM.")
    quiet: bool = bool_flag("quiet", "q", help="Print nothing for the objects that change.")
    quiet_for: float = duration_flag(
        "quiet-for", help="With --once, also wait for what falls due within this time (1.5s, 2m)."
    )
    for_: float = typed_flag(
        "for",
        0.0,
        parse_span,
        help="Go on for so long (30m, 7d): the cluster's own time is moved, the system's passes.",
    )
    until: str = string_flag(
        "until", help="Go on until that time (2026-03-01T00:00:00Z), as --for does."
    )
    until_settled: float = typed_flag(
        "until-settled",
        DAY,
        parse_span,
        no_value="24h",
        help="Go on until nothing is "
        "due but what repeats for ever, as the next start of a CronJob; at most so long.",
    )


@command(
    "controller (--once | --watch | --for=DURATION | --until=TIME | --until-settled[=LIMIT])",
    ControllerOptions,
    examples="""
# Work until nothing is left to do now
kubepy controller --once

# Also wait for timers and back-offs of up to two seconds
kubepy controller --once --quiet-for=2s

# Go on until interrupted, and say what goes wrong
kubepy controller --watch -v=1

# Go on for half an hour of the cluster's time
kubepy controller --for=30m

# Go on until a rollout and everything else has come to an end
kubepy controller --until-settled
""",
)
def controller(factory: Factory, options: ControllerOptions) -> None:
    """Run controllers, scheduler and simulated kubelets.

    Prints a line for each object that changed. Work that falls due later, and errors, are reported on stderr; on a
    terminal also the workloads that are stuck.

    In a cluster whose kubepy.yaml has a clock, time is the cluster's own: --once does what is due now, --watch what
    falls due when another command moves the clock, and the others move it themselves, in no time."""  # noqa: E501
    options.require_no_args()
    modes = [
        flag for flag in ("once", "watch", "for", "until", "until-settled") if options.changed(flag)
    ]
    if len(modes) != 1 or options.once + options.watch != (modes[0] in ("once", "watch")):
        options.usage_error("give one of --once, --watch, --for, --until and --until-settled")
    if options.quiet_for < 0:
        raise CliError("--quiet-for must not be negative")
    if options.changed("quiet-for") and modes[0] not in ("once", "watch"):
        options.usage_error(f"--quiet-for goes with --once, not with --{modes[0]}")
    horizon = None if options.once or options.watch else _horizon(factory, options)
    factory.cluster.start()
    factory.cluster.controller_client = (
        factory.client
    )  # here -v=6 shows the requests of the controllers
    if horizon:
        _go_on(factory, options, horizon)
    else:
        (_once if options.once else _watch)(factory, options)

    factory.note_look()
    factory.cluster.claims.clear()  # the controllers have taken in what was edited meanwhile


# --- once


def _once(factory: Factory, options: ControllerOptions) -> None:
    """Run the controllers here; beside a process that runs them already, wait until that one is
    quiet."""
    cluster = factory.cluster
    others_run = False
    while True:
        checkpoint = settled_checkpoint(cluster, options.quiet_for, of_this_version=not others_run)
        has_more = checkpoint is not None and (checkpoint.can_skip_waits() or checkpoint.is_paced)
        if checkpoint is not None and (others_run or not has_more):
            _warn_of_problems(factory, math.inf)  # everything was looked at just now
            factory.notes.unscheduled_pods(factory.client)
            due = [
                Due(entry.due, entry.reconciler, entry.key)
                for entry in checkpoint.pending
                if entry.due
            ]
            _say_due(factory, sorted(due, key=lambda work: work.time))
            _say_stuck(factory)
            return
        factory.believe_checkouts()
        with manager_lock(cluster) as is_lost, stop_signals() as received:
            if is_lost is not None:
                summary = settle(
                    factory.progress,
                    build_manager(cluster),
                    options.quiet_for,
                    lambda: bool(received),
                    skip_waits=True,
                )
                _report(factory, options, summary)
                factory.driver.tell(summary)
                _warn_of_problems(
                    factory, math.inf
                )  # the controllers have looked at everything when they were done
                factory.notes.unscheduled_pods(factory.client)
                _say_due(factory, summary.due, summary.failures)
                if received:
                    raise SilentExit(128 + received[0])
                _say_stuck(factory)
                return
        others_run = True
        factory.progress.show(f"waiting {factory.progress.seconds()}s", about="for another process")
        if cluster.clock.own:
            factory.driver.accompany(managers.Horizon(settled=options.quiet_for))
        else:
            cluster.clock.sleep(managers.POLL_SECONDS)


# --- for a time


def _horizon(factory: Factory, options: ControllerOptions) -> managers.Horizon:
    """Return how far the controllers are to go. Raises CliError."""
    now = factory.cluster.clock.now()
    if options.changed("until"):
        moment = parse_moment(options.until)
        require_not_before(moment, now)
        return managers.Horizon(moment)

    flag, seconds = (
        ("for", options.for_)
        if options.changed("for")
        else ("until-settled", options.until_settled)
    )
    if seconds < 0:
        raise CliError(f"--{flag} must not be negative")
    return managers.Horizon(
        moment_after(now, seconds), math.inf if flag == "until-settled" else None
    )


def _go_on(factory: Factory, options: ControllerOptions, horizon: managers.Horizon) -> None:
    """Run the controllers as far as the horizon; beside a process that runs them, move the time for
    it."""
    factory.look_for_checkouts()
    with stop_signals() as received:
        end = factory.driver.advance(horizon, stop=lambda: bool(received))
    if end.summary:
        _report(factory, options, end.summary)
    _warn_of_problems(factory)
    factory.notes.unscheduled_pods(factory.client)
    if received:
        raise SilentExit(128 + received[0])
    if horizon.settled is not None and not end.is_idle:
        factory.say(
            f"note: not settled after {go_duration(options.until_settled)}: the clock stands at "
            f"{format_exact_time(factory.cluster.clock.now())}"
        )
        if factory.fault_run is not None:
            factory.fault_run.failed()

    _say_stuck(factory)


# --- watch


def _watch(factory: Factory, options: ControllerOptions) -> None:
    cluster = factory.cluster

    def failed(error: Exception) -> None:
        is_gone = bool(factory.folder) and not os.path.isdir(factory.folder)
        if is_gone or isinstance(error, storage_errors.NoClusterError):
            raise error
        if str(error) not in failures:  # it is tried again every second
            failures.add(str(error))
            factory.say(f"error: {error}")

    def settled(summary: Summary) -> None:
        cluster.store.sync()
        if failures:
            failures.clear()
            factory.say("note: the controllers go on")
        if holders:
            holders.clear()
            factory.say("note: this process runs the controllers now")
        _report(factory, options, summary)
        factory.driver.tell(summary)
        files.look()

    holders: set[str] = set()  # that were told of
    failures: set[str] = set()  # likewise, since the controllers last got to their end

    def occupied(holder: str) -> None:
        if holder in holders or not _RUNS_CONTROLLERS.search(holder):
            return
        running_already = f"the controllers of {factory.shown_place} are run by {holder}"
        if not openings.is_in_etcd(factory.place):
            raise CliError(f"{running_already} already")
        holders.add(holder)
        factory.say(f"note: {running_already}: this process takes over when that one ends")

    files = running.FileReporter(cluster, factory.warn_again, factory.say)
    factory.tells_problems = False
    with stop_signals() as received:
        manager = build_manager(cluster)
        manager.poller.listen = cluster.store.wait_for_change
        manager.poller.reads_folder = cluster.worktree is not None
        manager.poller.polled = files.look
        running.run_controllers(
            cluster, manager, lambda: bool(received), settled, failed, occupied=occupied
        )

    if received == [signal.SIGINT]:  # SIGTERM is how a watch is meant to end
        raise SilentExit(128 + signal.SIGINT)


# --- output


def _report(factory: Factory, options: ControllerOptions, summary: Summary) -> None:
    if not options.quiet:
        for change in summary.changes():
            factory.print(printable(f"{change.printed_name} {change.verb}"))
        factory.stdout.flush()
    if factory.options.v or options.changed("v"):
        say_failures(factory, summary)


def _warn_of_problems(factory: Factory, max_age: float = 0.0) -> None:
    """Warn of files that cannot be objects, and are ignored; each once."""
    worktree = factory.cluster.worktree
    if worktree is not None:
        for problem in worktree.problems(max_age):
            if "/" not in problem.path:  # beside the folders of objects
                factory.warn(worktree.describe(problem))
    factory.warn_of_files()


def _say_due(
    factory: Factory, remaining: Iterable[Due], failures: Iterable[SyncFailure] = ()
) -> None:
    """Print the work that falls due later, with its time, and the last error where that is the
    reason."""
    now = factory.cluster.clock.now()
    reasons = {(failure.reconciler, failure.key): f"since {failure.error}" for failure in failures}
    rows = [
        (
            f"due at {format_time(due.time)}",
            f"in {max((due.time - now).total_seconds(), 0.0):.0f}s",
            due.reconciler,
            due.key.place,
            reasons.get((due.reconciler, due.key), ""),
        )
        for due in remaining
    ]
    if rows:
        factory.say(in_columns(rows))


def _say_stuck(factory: Factory) -> None:
    """Say on a terminal which workloads do not come on by themselves, and the command that tells
    more."""
    if not factory.stderr.isatty():
        return
    stuck = overview.stuck_workloads(factory.cluster)
    for obj in stuck[:MAX_STUCK]:
        kind = obj["kind"].lower()
        name = name_of(obj)
        namespace = namespace_of(obj)
        place = f" -n {namespace}" if namespace != factory.namespace else ""
        factory.say(
            f'note: {kind}/{name} in {namespace} is stuck: "{factory.notes.program} why '
            f'{kind}/{name}{place}" '
            "tells more"
        )

    if len(stuck) > MAX_STUCK:
        factory.say(f"note: {len(stuck) - MAX_STUCK} more workloads are stuck")


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Align the rows of a report of kubepy's own. One row needs no library: importing it takes as
    long as a run."""
    if len(rows) == 1:
        return "  ".join(filter(None, rows[0]))
    from tabulate import tabulate

    return str(tabulate(rows, tablefmt="plain", disable_numparse=True))
