"""Choices in words."""

from __future__ import annotations

from kubepy.api.values.goformat import format_duration
from kubepy.controlplane.disturbance import CONFLICT, CRASH, CRASHES, DELAYS, LATE, ORDER
from kubepy.runtime.oracle import Choice


def described(choice: Choice) -> str:
    """Return a line about what a choice disturbs."""
    controller, *rest = choice.subject
    about = " ".join(filter(None, rest))
    if choice.purpose == LATE:
        return f"{controller}: hears of {about} {format_duration(DELAYS[choice.value])} late"
    if choice.purpose == ORDER:
        return f"{controller}: {about} waits for another"
    if choice.purpose == CONFLICT:
        return f"{controller}: {about} meets a conflict"
    assert choice.purpose == CRASH
    crash = CRASHES[choice.value]
    where = f"before it syncs {about[5:]}" if about.startswith("sync ") else f"after {about}"
    begins = f"after {format_duration(crash.down_for)}" if crash.down_for else "at once"
    line = f"{controller}: ends {where}, begins anew {begins}"
    if crash.older_by:
        events = "event" if crash.older_by == 1 else "events"
        line += f", with a cache that lacks {crash.older_by} {events}"
    return line
