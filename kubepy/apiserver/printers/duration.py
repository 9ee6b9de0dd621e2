"""How long something lasted, in two or three figures (``apimachinery/pkg/util/duration``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.clock import parse_time

MINUTE, HOUR, DAY, YEAR = 60, 3600, 24 * 3600, 365 * 24 * 3600


def human_duration(seconds: float) -> str:
    """``3m20s``, ``5d``; ``<invalid>`` for what lies two seconds or more in the future (``HumanDuration``)."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    return _two(whole, YEAR, "y", DAY, "d") if whole < 8 * YEAR else f"{whole // YEAR}y"


def _two(seconds: int, unit: int, letter: str, smaller: int, smaller_letter: str) -> str:
    rest = seconds % unit // smaller
    return f"{seconds // unit}{letter}{rest}{smaller_letter}" if rest else f"{seconds // unit}{letter}"


def since(time: str | None, now: datetime) -> str:
    """How long ago an API time was, ``<unknown>`` without one (``translateTimestampSince``)."""
    return human_duration((now - parse_time(time)).total_seconds()) if time else "<unknown>"


def age(obj: dict[str, Any], now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)
