"""Choices in words."""

from __future__ import annotations

from collections.abc import Sequence

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
from kubepy.fuzz.words import said
from kubepy.runtime.oracle import Choice
from kubepy.storage import Key


def described(choice: Choice) -> str:
    """Return a line about what a choice disturbs."""
    controller, *rest = choice.subject
    return f"{controller}: {_what_happens(choice, rest)}"


def _what_happens(choice: Choice, rest: Sequence[str]) -> str:
    """Return what a choice does to its controller.

    :param rest: the words of its subject behind the controller.
    """
    if choice.purpose == LATE:
        hears_of = said(Key(*rest))
        late = format_duration(DELAYS[choice.value])
        return f"hears of {hears_of} {late} late"
    if choice.purpose == ORDER:
        waiting = said(Key(*rest))
        return f"{waiting} waits until another key was synced"
    if choice.purpose == CONFLICT:
        request = _request(*rest)
        return f"its {request} meets a conflict"
    if choice.purpose == OLDER:
        lag = lag_of(choice.value)
        return f"begins with a cache that {_lag(lag)}"
    assert choice.purpose == CRASH
    where = _end(*rest)
    begins = "at once"
    down_for = DOWN_FOR[choice.value]
    if down_for:
        begins = f"after {format_duration(down_for)}"
    return f"ends {where}, and begins anew {begins}"


def _end(verb: str, *rest: str) -> str:
    """Return where a controller ends."""
    if verb == "sync":
        synced = said(Key(*rest))
        return f"before it syncs {synced}"
    request = _request(verb, *rest)
    return f"after its {request}"


def _lag(lag: Lag) -> str:
    """Return what a cache lacks, and for how long."""
    events = "event" if lag.events == 1 else f"{lag.events} events"
    which = ""
    if lag.resource is not None:
        number = lag.resource + 1
        which = f" of its resource {number}"
    after = format_duration(lag.caught_up_after)
    return f"lacks the last {events}{which}, and has them {after} later"


def _request(verb: str, resource: str, subresource: str, namespace: str, name: str) -> str:
    part = resource
    if subresource:
        part = f"{resource}/{subresource}"
    obj = said(Key(part, namespace, name))
    return f"{verb} of {obj}"
