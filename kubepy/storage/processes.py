"""The processes that have left something unfinished, by the numbers in the names of files."""

from __future__ import annotations

import os


def is_alive(pid: str) -> bool:
    """Return whether there is a process of a number."""
    try:
        os.kill(int(pid), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:  # of another user
        return True
    return True
