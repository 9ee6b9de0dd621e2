"""The words in which messages of an import name things."""

from __future__ import annotations

from typing import Any


def full_name(namespace: str, name: str) -> str:
    """Return the name of an object with its namespace, where it is in one: ``shop/web``."""
    return f"{namespace}/{name}" if namespace else name


def one_line(text: Any) -> str:
    """Return a text, or the text of an error, without its line breaks."""
    return " ".join(str(text).split())


def number(count: int, noun: str) -> str:
    """Return how many there are: ``1 object``, ``2 objects``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
