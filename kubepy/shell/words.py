"""The names of the programs that the model knows."""

from __future__ import annotations

import posixpath

SHELLS = frozenset({"sh", "bash", "ash", "dash", "ksh", "zsh"})
OWN_WORDS = frozenset(
    {
        ".", ":", "[", "[[", "alias", "break", "cd", "command", "continue", "echo", "eval", "exec",
        "exit", "export", "false", "getopts", "jobs", "kill", "let", "local", "printf", "pwd",
        "read", "readonly", "return", "set", "shift", "shopt", "sleep", "source", "test", "times",
        "trap", "true", "type", "typeset", "declare", "ulimit", "umask", "unalias", "unset", "wait",
    }
)  # fmt: skip
# Words of the shell for which images have a program as well, so that they can be a container's
# command.
PROGRAMS = frozenset({"[", "echo", "false", "kill", "printf", "pwd", "sleep", "test", "true"})
PATHS = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/busybox")


def program_name(word: str) -> str:
    """Return the name of a program that is called by name or by a usual path; "" for another
    path."""
    if "/" not in word:
        return word
    folder, name = posixpath.split(word)
    return name if folder in PATHS else ""


def is_known_program(word: str) -> bool:
    """Tell whether the model knows what a command does that begins with this word."""
    from kubepy.shell.utilities import UTILITIES

    name = program_name(word)
    if name in SHELLS or name in PROGRAMS:
        return True
    return name in UTILITIES
