"""Patterns of the shell, for ``case``, ``${x%pattern}`` and names of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubepy.shell.files import FileSystem

SPECIAL = "*?["


def quoted(text: str) -> str:
    """Return a pattern that matches exactly a text."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)


def has_pattern(text: str) -> bool:
    """Tell whether a pattern is more than quoted text."""
    position = 0
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] in SPECIAL:
            return True
        position += 1
    return False


def unquoted(text: str) -> str:
    """Return the text that a pattern without special characters stands for."""
    return re.sub(
        r"\\(.)",
        r"\1",
        text,
        flags=re.DOTALL,
    )


@lru_cache(maxsize=1024)
def to_regex(pattern: str, *, is_lazy: bool = False) -> re.Pattern[str]:
    """Return a regular expression for a pattern, to be matched in full.

    :param is_lazy: stars match as little as they can.
    """
    parts = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "\\" and position < len(pattern):
            parts.append(re.escape(pattern[position]))
            position += 1
        elif character == "*":
            parts.append(".*?" if is_lazy else ".*")
        elif character == "?":
            parts.append(".")
        elif character == "[":
            bracket, position = _bracket(pattern, position)
            parts.append(bracket)
        else:
            parts.append(re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


def _bracket(pattern: str, position: int) -> tuple[str, int]:
    """Return the regular expression of ``[…]`` and the position after it."""
    end = position
    if pattern[end : end + 1] in ("!", "^"):
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        if pattern[end] == "\\":
            end += 1
        elif pattern.startswith("[:", end):
            closing = pattern.find(":]", end)
            end = closing + 1 if closing > 0 else end
        end += 1
    if end >= len(pattern):
        return r"\[", position
    inner = pattern[position:end]
    negation = ""
    if inner[:1] in ("!", "^"):
        negation = "^"
        inner = inner[1:]
    members = "".join(_members(inner))
    if not members:
        return ("." if negation else "(?!)"), end + 1
    return f"[{negation}{members}]", end + 1


def _members(inner: str) -> Iterator[str]:
    """Yield the members of ``[…]`` for a regular expression; a range that is empty has none."""
    position = 0
    while position < len(inner):
        found = CHARACTER_CLASS.match(inner, position)
        if found is not None and found[1] in CLASSES:
            yield CLASSES[found[1]]
            position = found.end()
            continue
        first, position = _character(inner, position)
        if inner[position : position + 1] == "-" and position + 1 < len(inner):
            last, position = _character(inner, position + 1)
            if first <= last:
                yield f"{re.escape(first)}-{re.escape(last)}"
        else:
            yield re.escape(first)


def _character(inner: str, position: int) -> tuple[str, int]:
    """Return a character of ``[…]``, of which a backslash is undone, and the position after it."""
    if inner[position] == "\\" and position + 1 < len(inner):
        position += 1
    return inner[position], position + 1


CHARACTER_CLASS = re.compile(r"\[:([a-z]+):\]")
CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\\\[-`{-~",
    "xdigit": "0-9a-fA-F",
}


def matches(text: str, pattern: str) -> bool:
    """Tell whether a pattern matches a whole text."""
    return to_regex(pattern).fullmatch(text) is not None


def remove_prefix(text: str, pattern: str, *, is_longest: bool) -> str:
    """Remove the shortest or longest beginning that a pattern matches."""
    lengths = range(len(text) + 1)
    for length in reversed(lengths) if is_longest else lengths:
        if matches(text[:length], pattern):
            return text[length:]
    return text


def remove_suffix(text: str, pattern: str, *, is_longest: bool) -> str:
    """Remove the shortest or longest end that a pattern matches."""
    lengths = range(len(text) + 1)
    for length in reversed(lengths) if is_longest else lengths:
        if matches(text[len(text) - length :], pattern):
            return text[: len(text) - length]
    return text


def replace(text: str, pattern: str, replacement: str, *, is_global: bool) -> str:
    """Replace the first match of a pattern, or all of them."""
    regex = to_regex(pattern)
    if not pattern:
        return text
    return regex.sub(lambda found: replacement, text, count=0 if is_global else 1)


def paths(pattern: str, cwd: str, files: FileSystem) -> list[str]:
    """Return the paths that a pattern matches, sorted; none where there is no such file."""
    is_absolute = pattern.startswith("/")
    prefixes = ["/" if is_absolute else ""]
    parts = [part for part in pattern.split("/") if part]
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1 and not pattern.endswith("/")
        following = []
        for prefix in prefixes:
            following += _entries(
                prefix,
                part,
                cwd,
                files,
                is_last=is_last,
            )
        prefixes = following
    return prefixes


def _entries(prefix: str, part: str, cwd: str, files: FileSystem, *, is_last: bool) -> list[str]:
    folder = prefix if prefix.startswith("/") else f"{cwd.rstrip('/')}/{prefix}"
    if not has_pattern(part):
        name = unquoted(part)
        names = [name] if files.exists(f"{folder.rstrip('/')}/{name}") else []
    elif files.is_dir(folder):
        shows_hidden = part.startswith(".")
        names = [
            name
            for name in files.list(folder)
            if (shows_hidden or not name.startswith(".")) and matches(name, part)
        ]
    else:
        names = []
    if is_last:
        return [prefix + name for name in names]
    return [f"{prefix}{name}/" for name in names if files.is_dir(f"{folder.rstrip('/')}/{name}")]
