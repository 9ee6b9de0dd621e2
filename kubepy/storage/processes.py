"""The processes that have left something unfinished, by the numbers in the names of files."""

from __future__ import annotations

from kubepy import system


def is_alive(pid: str) -> bool:
    """Return whether there is a process of a number."""
    try:
        return system.is_running(int(pid))
    except (ValueError, OverflowError):
        return False
