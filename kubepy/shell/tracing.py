"""The lines that a shell prints of the commands that it carries out, after ``set -x``."""

from __future__ import annotations

import re
from collections.abc import Sequence

Variables = Sequence[tuple[str, str]]

METAS = re.compile(r"[\s'\"\\|&;()<>!{}*\[\]?^$`]|^[#~]")


def posix_trace(variables: Variables, words: Sequence[str]) -> str:
    """Return the line of dash and of busybox, "" for a command of nothing."""
    settings = [f"{name}={value}" for name, value in variables]
    line = " ".join((*settings, *words))
    return f"+ {line}\n" if line else ""


def bash_trace(variables: Variables, words: Sequence[str], *, is_quoted: bool) -> str:
    """Return the lines of bash: one for each variable that is set, then the command.

    :param is_quoted: what means something to a shell stands in quotes.
    """
    lines: list[str] = []
    for name, value in variables:
        lines.append(f"{name}={_quoted(value) if value else value}")
    if words:
        shown = [_quoted(word) for word in words] if is_quoted else words
        lines.append(" ".join(shown))
    return "".join(f"+ {line}\n" for line in lines)


def _quoted(word: str) -> str:
    if word and not METAS.search(word):
        return word
    text = word.replace("'", "'\\''")
    return f"'{text}'"
