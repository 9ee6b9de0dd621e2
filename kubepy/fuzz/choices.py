"""Choices in words."""

from __future__ import annotations

from kubepy.api.values.goformat import format_duration
from kubepy.controlplane.disturbance import (
    CONFLICT,
    CRASH,
    DELAYS,
    DOWN_FOR,
    LATE,
    OLDER,
    ORDER,
    Lag,
    lag_of,
)
from kubepy.runtime.oracle import Choice


def described(choice: Choice) -> str:
    """Return a line about what a choice disturbs."""
    controller, *rest = choice.subject
    if choice.purpose == LATE:
        late = format_duration(DELAYS[choice.value])
        return f"{controller}: hears of {_object(*rest)} {late} late"
    if choice.purpose == ORDER:
        return f"{controller}: {_object(*rest)} waits until another key was synced"
    if choice.purpose == CONFLICT:
        return f"{controller}: its {_request(*rest)} meets a conflict"
    if choice.purpose == OLDER:
        return f"{controller}: begins with a cache that {_lag(lag_of(choice.value))}"
    assert choice.purpose == CRASH
    is_write = rest[0] != "sync"
    where = f"after its {_request(*rest)}" if is_write else f"before it syncs {_object(*rest[1:])}"
    down_for = DOWN_FOR[choice.value]
    begins = f"after {format_duration(down_for)}" if down_for else "at once"
    return f"{controller}: ends {where}, and begins anew {begins}"


def _lag(lag: Lag) -> str:
    """Return what a cache lacks, and for how long."""
    events = "event" if lag.events == 1 else f"{lag.events} events"
    which = "" if lag.resource is None else f" of its resource {lag.resource + 1}"
    after = format_duration(lag.caught_up_after)
    return f"lacks the last {events}{which}, and has them {after} later"


def _object(resource: str, namespace: str, name: str) -> str:
    return f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"


def _request(verb: str, resource: str, subresource: str, namespace: str, name: str) -> str:
    part = f"{resource}/{subresource}" if subresource else resource
    return f"{verb} of {_object(part, namespace, name)}"
