"""Choices in words."""

from __future__ import annotations

from kubepy.api.values.goformat import format_duration
from kubepy.controlplane.disturbance import CONFLICT, CRASH, CRASHES, DELAYS, LATE, ORDER, Crash
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
    assert choice.purpose == CRASH
    is_write = rest[0] != "sync"
    where = f"after its {_request(*rest)}" if is_write else f"before it syncs {_object(*rest[1:])}"
    return f"{controller}: ends {where}, and begins anew {_beginning(CRASHES[choice.value])}"


def _beginning(crash: Crash) -> str:
    """Return how a controller begins anew."""
    begins = f"after {format_duration(crash.down_for)}" if crash.down_for else "at once"
    if not crash.older_by:
        return begins
    events = "event" if crash.older_by == 1 else f"{crash.older_by} events"
    return f"{begins}, with a cache that lacks the last {events}"


def _object(resource: str, namespace: str, name: str) -> str:
    return f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"


def _request(verb: str, resource: str, subresource: str, namespace: str, name: str) -> str:
    part = f"{resource}/{subresource}" if subresource else resource
    return f"{verb} of {_object(part, namespace, name)}"
