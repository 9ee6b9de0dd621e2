"""``kubepy clock``: show the time of the cluster and what is due next; move the cluster's own
time."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from types import FrameType
from typing import Any

from kubepy.api.clock import CLOCK_YEARS, YEARS_RULE, format_exact_time, later, parse_time
from kubepy.api.values.goformat import parse_span
from kubepy.apiserver.settings import FINEST, is_too_exact
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command, reading
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import Options, output_flag
from kubepy.cli.runtime.output import document
from kubepy.controlplane.summary import Summary
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote
from kubepy.runtime.checkpoint import CHECKPOINT, Pending, latest

with lazy_imports():
    from kubepy.controlplane import manager as managers

DAY = 24 * 3600.0


class ClockOptions(Options):
    """The flags of ``clock``."""

    output: str = output_flag("json, yaml")


@reading
@command(
    "clock",
    ClockOptions,
    examples="""
# The time of the cluster, and what happens next
kubepy clock

# The same for a program
kubepy clock -o json

# Go on by half an hour, with everything that falls due on the way
kubepy clock advance 30m
""",
)
def clock(factory: Factory, options: ClockOptions) -> None:
    """Show the time of the cluster, and what its controllers will do next: when, which controller, about which object.

    A cluster whose kubepy.yaml has a clock has time of its own, which "clock advance" and "clock set" move. The time of
    others is the system's."""  # noqa: E501
    if options.args:
        options.usage_error(f"unknown command {quote(' '.join(options.args))}")
    if options.output not in ("", "json", "yaml"):
        raise CliError(
            f"unable to match a printer suitable for the output format {quote(options.output)}, "
            f"allowed "
            "formats are: json,yaml"
        )

    factory.catch_up()
    now = factory.cluster.clock.now()
    checkpoint = latest(factory.cluster.store.meta(CHECKPOINT))
    pending = sorted(
        checkpoint.pending if checkpoint else (), key=lambda pending: pending.due or now
    )
    due = [(max(entry.due or now, now), entry) for entry in pending]
    if options.output:
        listed = [
            {"at": format_exact_time(at), "controller": entry.reconciler, **entry.key._asdict()}
            for at, entry in due
        ]
        factory.print(
            document(options.output, {"now": format_exact_time(now), "due": listed}, typed=True),
            end="",
        )
        return

    factory.print(format_exact_time(now))
    if due:
        factory.print(_table(due))


def _table(due: list[tuple[datetime, Pending]]) -> str:
    from tabulate import tabulate

    rows = [
        (format_exact_time(at), entry.reconciler, printable(entry.key.place)) for at, entry in due
    ]
    return str(
        tabulate(
            rows, headers=("TIME", "CONTROLLER", "OBJECT"), tablefmt="plain", disable_numparse=True
        )
    )


class AdvanceOptions(Options):
    """The flags of ``clock advance``: none of its own."""

    @classmethod
    def explain(cls, message: str) -> str:
        negative = re.fullmatch(r"unknown shorthand flag: '[0-9.]' in (.*)", message, re.DOTALL)
        if negative:
            return f"time cannot go back: {printable(negative[1])} is negative"
        return message


@command(
    "advance DURATION",
    AdvanceOptions,
    examples="""
# Half an hour
kubepy clock advance 30m

# A week, in days or in hours
kubepy clock advance 7d
kubepy clock advance 168h

# Only what is due now
kubepy clock advance 0s
""",
)
def advance(factory: Factory, options: Options) -> None:
    """Move the cluster's own time by a duration (90s, 1h30m, 7d), and print the time that it is then.

    It stops at every moment on the way at which something falls due, and the controllers do it then, in order. Beside
    "kubepy controller --watch" that process does the work."""  # noqa: E501
    if len(options.args) != 1:
        options.usage_error("exactly one duration is required, such as 30m")
    try:
        seconds = parse_span(options.args[0])
    except ValueError as error:
        raise CliError(printable(str(error))) from None
    if seconds < 0:
        raise CliError(f"time cannot go back: {printable(options.args[0])} is negative")
    _require_own_time(factory)
    _move(factory, moment_after(factory.cluster.clock.now(), seconds))


@command(
    "set TIME",
    Options,
    examples="""
# To a time in UTC
kubepy clock set 2026-03-01T00:00:00Z

# To one with another offset
kubepy clock set 2026-03-01T00:00:00+01:00
""",
)
def set_(factory: Factory, options: Options) -> None:
    """Move the cluster's own time to a later one, as "clock advance" does, and print it."""
    if len(options.args) != 1:
        options.usage_error("exactly one time is required, such as 2026-03-01T00:00:00Z")
    moment = parse_moment(options.args[0])
    _require_own_time(factory)
    require_not_before(moment, factory.cluster.clock.now())
    _move(factory, moment)


def _require_own_time(factory: Factory) -> None:
    """Raise CliError where time is the system's."""
    now = factory.cluster.clock
    if now.own is None:
        fixed = "the time of this cluster is the system's, which cannot be moved"
        if not factory.folder:
            raise CliError(f'{fixed}: "kubepy init --clock=TIME" makes a cluster with its own')
        raise CliError(
            f"{fixed}: to give it a time of its own, add the line "
            f"'clock: \"{now.timestamp()}\"' to {printable(factory.folder)}/kubepy.yaml"
        )


def _move(factory: Factory, moment: datetime) -> None:
    factory.cluster.controller_client = (
        factory.client
    )  # here -v=6 shows the requests of the controllers
    with stop_signals() as received:
        end = factory.driver.advance(managers.Horizon(moment), stop=lambda: bool(received))
    if factory.options.v and end.summary:
        say_failures(factory, end.summary)
    factory.print(format_exact_time(factory.cluster.clock.now()))
    if received:
        raise SilentExit(128 + received[0])


# --- for all commands that move time --------------------------------------------------------------


def parse_moment(text: str) -> datetime:
    """Read a time with its offset from UTC. Raises CliError, also for one that no clock can
    show."""
    try:
        moment = parse_time(text)
        if is_too_exact(text):
            raise CliError(f"the time {quote(text)} is too exact: {FINEST}")
        return _in_range(moment, moment.year)
    except (ValueError, OverflowError):
        raise CliError(
            f"{quote(text)} is not a time such as 2026-11-20T10:13:48Z: it must have a date, a "
            f"time of day "
            "and Z or an offset such as +01:00"
        ) from None


def moment_after(now: datetime, seconds: float) -> datetime:
    """Return the moment so many seconds later. Raises CliError for one that no clock can show."""
    moment = later(now, seconds)
    return _in_range(moment, moment.year)


def _in_range(moment: datetime, year: int) -> datetime:
    if year not in CLOCK_YEARS:
        raise CliError(f"{YEARS_RULE}, and that would be the year {year}")
    return moment


def require_not_before(moment: datetime, now: datetime) -> None:
    """Raise CliError for a time that is over."""
    if moment < now:
        raise CliError(
            f"time cannot go back: {format_exact_time(moment)} is before "
            f"{format_exact_time(now)}, the time "
            "of the cluster"
        )


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collect the signals that ask to stop: work under way is finished first, unless a second
    signal comes."""
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        received.append(number)
        for handled in before:
            signal.signal(handled, signal.SIG_DFL)

    before: dict[signal.Signals, Any] = {}
    try:
        with suppress(
            ValueError
        ):  # in another than the main thread, which a Python program may run a command in
            before = {
                handled: signal.signal(handled, receive)
                for handled in (signal.SIGINT, signal.SIGTERM)
            }
        yield received
    finally:
        for handled, handler in before.items():
            signal.signal(handled, handler)


def say_failures(factory: Factory, summary: Summary) -> None:
    """Say which syncs failed (-v)."""
    for failure in summary.failures:
        factory.say(f"{failure.reconciler}: {failure.key.place}: {failure.error}")
