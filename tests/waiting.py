"""Waiting for what comes about by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SECONDS = 20.0


def eventually(condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Ask until the answer is true, and return it."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.02)
    return answer
