"""The names of the programs that the model knows."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

SHELLS = frozenset({"sh", "bash", "ash", "dash", "ksh", "zsh"})
OWN_WORDS = frozenset(
    {
        ".", ":", "[", "[[", "alias", "break", "cd", "command", "continue", "echo", "eval", "exec",
        "exit", "export", "false", "getopts", "jobs", "kill", "killall", "let", "local", "printf",
        "pwd", "read", "readonly", "return", "set", "shift", "shopt", "sleep", "source", "test",
        "times", "trap", "true", "type", "typeset", "declare", "ulimit", "umask", "unalias",
        "unset", "wait",
    }
)  # fmt: skip
# Words of the shell for which images have a program as well, so that they can be a container's
# command.
PROGRAMS = frozenset(
    {"[", "echo", "false", "kill", "killall", "printf", "pwd", "sleep", "test", "true"}
)
# Programs that are known as far as their script stands in the command line, after this option.
INTERPRETERS = {"perl": "e", "python": "c", "python3": "c"}
PLAIN_COMMAND = re.compile(r"[\w./+-]+(?: +[\w./:@%+=,-]+)*")
# Programs that install others, of which nothing is known afterwards.
INSTALLERS = frozenset({"apk", "apt", "apt-get", "dnf", "microdnf", "tdnf", "yum"})
PATHS = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/busybox")


# Programs in the root of an image, which are known by their paths, and those of their commands that
# print something and end.
IN_ROOT = frozenset({"/agnhost", "/agnhost-2"})
KNOWN_COMMANDS = frozenset(
    {"dns-server-list", "dns-suffix", "entrypoint-tester", "etc-hosts", "mounttest"}
)


def program_name(word: str) -> str:
    """Return the name of a program that is called by name or by a usual path; the path of one in
    the root of its image; "" for another path."""
    if "/" not in word or word in IN_ROOT:
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


def names_program(word: str) -> bool:
    """Tell whether a word can name a program: an empty one cannot, nor one with blanks, which is a
    whole command line where only its first word should be."""
    return bool(word) and not re.search(r"\s", word)


def is_known_command(words: Sequence[str]) -> bool:
    """Tell whether the model knows what a command line does, as far as its words show."""
    if not is_known_program(words[0]):
        return False
    if words[0] in IN_ROOT:
        return not KNOWN_COMMANDS.isdisjoint(words[1:2])
    letter = INTERPRETERS.get(program_name(words[0]))
    if letter is None:
        return True
    return any(re.fullmatch(rf"-\w*{letter}", word) for word in words[1:])


def is_replaced_by(script: str) -> bool:
    """Tell whether a shell gives its process to the one program that its script runs."""
    if not PLAIN_COMMAND.fullmatch(script):
        return False
    word = script.partition(" ")[0]
    return word == "sleep" or word not in OWN_WORDS
