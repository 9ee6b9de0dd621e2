"""The messages of busybox, where they differ from those of GNU's programs.

The programs of the model say what GNU's say; in an image that has busybox in their place these
rules make its words of it. Upstream: ``libbb/wfopen.c``, ``libbb/xfuncs_printf.c`` and the applets
of busybox.
"""

from __future__ import annotations

import re
from functools import cache

Rule = tuple[re.Pattern[str], str]

CANNOT_OPEN = r"can't open '\1': \2"
PLAIN = r"\1: \2"
# By program: a pattern of GNU's message without the program's name, and busybox's.
_RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "cat": ((r"(.*): (Is a directory)", r"read error: \2"), (r"(.*): (.*)", CANNOT_OPEN)),
    "chmod": ((r"cannot access '(.*)': (.*)", PLAIN),),
    "cp": (
        (r"cannot stat '(.*)': (.*)", r"can't stat '\1': \2"),
        (r"cannot create (?:regular file|directory) '(.*)': (.*)", r"can't create '\1': \2"),
    ),
    "cut": ((r"(.*): (.*)", PLAIN),),
    "head": ((r"cannot open '(.*)' for reading: (.*)", PLAIN),),
    "ls": (
        (r"cannot access '(.*)': (.*)", PLAIN),
        (r"cannot open directory '(.*)': (.*)", r"can't open '\1': \2"),
    ),
    "mkdir": ((r"cannot create directory '(.*)': (.*)", r"can't create directory '\1': \2"),),
    "mv": ((r"cannot stat '(.*)': (.*)", r"can't rename '\1': \2"),),
    "rm": (
        (r"cannot remove '(.*)': (Is a directory)", r"'\1' is a directory"),
        (r"cannot remove '(.*)': (.*)", r"can't remove '\1': \2"),
    ),
    "rmdir": ((r"failed to remove '(.*)': (.*)", r"'\1': \2"),),
    "sed": ((r"can't read (.*): (.*)", PLAIN),),
    "sort": ((r"cannot read: (.*): (.*)", r"\1: \2"),),
    "stat": ((r"cannot statx? '(.*)': (.*)", r"can't stat '\1': \2"),),
    "tail": ((r"cannot open '(.*)' for reading: (.*)", CANNOT_OPEN),),
    "touch": ((r"cannot touch '(.*)': (.*)", PLAIN),),
}
for _name in ("md5sum", "sha1sum", "sha256sum", "sha512sum"):
    _RULES[_name] = ((r"(.*): (No such file or directory|Permission denied)", CANNOT_OPEN),)


# Of the shell itself, which is dash's elder: these it says without the number of a line.
_SHELL = "ash"
_RULES[_SHELL] = (
    (r"cannot create (.*): Directory nonexistent", r"can't create \1: nonexistent directory"),
    (r"cannot create (.*)", r"can't create \1"),
    (r"cannot open (.*): No such file", r"can't open \1: no such file"),
    (r"cannot open (.*)", r"can't open \1"),
    (r"(.*: not found)", r"\1"),
)


@cache
def _rules_of(program: str) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for pattern, replacement in _RULES.get(program, ()):
        rules.append((re.compile(pattern), replacement))
    return tuple(rules)


def shell_message(message: str) -> str | None:
    """Return what busybox's shell says in place of a message of dash; None where the model has no
    other words."""
    for pattern, replacement in _rules_of(_SHELL):
        match = pattern.fullmatch(message)
        if match:
            return match.expand(replacement)
    return None


def busybox_message(program: str, message: str) -> str:
    """Return what busybox's program says in place of a message of GNU's, without its name."""
    for pattern, replacement in _rules_of(program):
        match = pattern.fullmatch(message)
        if match:
            return match.expand(replacement)
    return message


def busybox_errors(program: str, data: bytes) -> bytes:
    """Return the standard error of a program, in busybox's words."""
    if program not in _RULES or not data:
        return data
    prefix = f"{program}: "
    lines: list[str] = []
    for line in data.decode("utf-8", "surrogateescape").splitlines(keepends=True):
        text = line.removesuffix("\n")
        if text.startswith(prefix):
            message = busybox_message(program, text.removeprefix(prefix))
            line = f"{prefix}{message}{line[len(text) :]}"
        lines.append(line)
    return "".join(lines).encode("utf-8", "surrogateescape")
