"""Demo: a lesson in a terminal, and broken clusters to repair.

``scenarios`` reads the files of challenges, ``preparation`` makes the broken cluster of one,
``grading`` says whether it is repaired, ``environment`` lets a program try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubepy.lazy import load

if TYPE_CHECKING:
    from kubepy.demo.environment import ChallengeEnvironment as ChallengeEnvironment

__all__ = ["ChallengeEnvironment"]


def __getattr__(name: str) -> Any:
    """Import the class ``ChallengeEnvironment`` when it is first used."""
    if name != "ChallengeEnvironment":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load("kubepy.demo.environment").ChallengeEnvironment
