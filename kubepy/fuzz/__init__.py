"""Fuzz: the search for the schedule that breaks a workload.

``checks`` says what must hold in each run, and judges it after each write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubepy.lazy import load

if TYPE_CHECKING:
    from kubepy.fuzz.session import fuzz as fuzz

__all__ = ["fuzz"]


def __getattr__(name: str) -> Any:
    """Import the function ``fuzz`` when it is first used."""
    if name != "fuzz":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load("kubepy.fuzz.session").fuzz
