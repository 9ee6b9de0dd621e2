"""The conditions of ``test``, ``[`` and ``[[``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from kubepy.shell import globbing
from kubepy.shell.files import FileSystem
from kubepy.shell.utilities.patterns import CLASSES

UNARY_FILES = frozenset("abcdefghkLnNOGprSstuwxz")
COMPARISONS = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
BINARY = {"=", "==", "!=", "<", ">", "=~", "-nt", "-ot", "-ef", *COMPARISONS}


class ConditionError(Exception):
    """A condition that is wrong: exit status 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Condition:
    """One condition over words.

    :param is_extended: the rules of ``[[``: the right side of ``=`` is a pattern.
    :ivar groups: what the last ``=~`` and its groups have matched; None: there was none.
    """

    def __init__(
        self, words: Sequence[str], files: FileSystem, cwd: str, *, is_extended: bool = False
    ) -> None:
        self._words = list(words)
        self._position = 0
        self._files = files
        self._cwd = cwd
        self._is_extended = is_extended
        self.groups: list[str] | None = None

    def holds(self) -> bool:
        """Tell whether the condition holds. Raises ConditionError."""
        words = self._words
        if not words:
            return False
        if not self._is_extended and len(words) <= 4:
            return self._posix(words)
        result = self._either()
        if self._position < len(words):
            raise ConditionError(f"{words[self._position]}: unexpected operator")
        return result

    def _posix(self, words: list[str]) -> bool:
        """Judge a short condition by the number of its words, as POSIX has it."""
        if len(words) == 1:
            return words[0] != ""
        if words[0] == "!" and not (len(words) == 3 and words[1] in BINARY):
            return not self._posix(words[1:])
        if len(words) == 2:
            return self._unary(words[0], words[1])
        if len(words) == 3:
            if words[1] in BINARY:
                return self._binary(words[0], words[1], words[2])
            if words[1] == "-a":
                return bool(words[0]) and bool(words[2])
            if words[1] == "-o":
                return bool(words[0]) or bool(words[2])
            if words[0] == "(" and words[2] == ")":
                return words[1] != ""
            raise ConditionError(f"{words[1]}: unexpected operator")
        if words[0] == "(" and words[3] == ")":
            return self._posix(words[1:3])
        result = self._either()
        if self._position < len(words):
            raise ConditionError(f"{words[self._position]}: unexpected operator")
        return result

    # --- longer conditions

    def _peek(self) -> str | None:
        if self._position < len(self._words):
            return self._words[self._position]
        return None

    def _take(self) -> str:
        word = self._peek()
        if word is None:
            raise ConditionError("argument expected")
        self._position += 1
        return word

    def _either(self) -> bool:
        result = self._both()
        while self._peek() == ("||" if self._is_extended else "-o"):
            self._take()
            other = self._both()
            result = result or other
        return result

    def _both(self) -> bool:
        result = self._not()
        while self._peek() == ("&&" if self._is_extended else "-a"):
            self._take()
            other = self._not()
            result = result and other
        return result

    def _not(self) -> bool:
        if self._peek() == "!":
            self._take()
            return not self._not()
        return self._primary()

    def _primary(self) -> bool:
        word = self._take()
        following = self._peek()
        if following in BINARY and self._position + 1 < len(self._words):
            operator = self._take()
            return self._binary(word, operator, self._take())
        if word == "(":
            result = self._either()
            if self._take() != ")":
                raise ConditionError("closing paren expected")
            return result
        is_unary = word in ("-z", "-n", "-v") or word.removeprefix("-") in UNARY_FILES
        if is_unary and len(word) == 2 and following is not None:
            return self._unary(word, self._take())
        return word != ""

    # --- single tests

    def _unary(self, operator: str, operand: str) -> bool:
        match operator:
            case "-n":
                return operand != ""
            case "-z":
                return operand == ""
            case "-t":
                return False
            case "-v":
                return operand != ""
        if len(operator) != 2 or operator[0] != "-" or operator[1] not in UNARY_FILES:
            raise ConditionError(f"{operator}: unexpected operator")
        path = posixpath.join(self._cwd, operand)
        if not operand:
            return False
        files = self._files
        match operator:
            case "-e" | "-a":
                return files.exists(path)
            case "-f":
                return files.is_file(path)
            case "-d":
                return files.is_dir(path)
            case "-L" | "-h":
                return files.is_link(path)
            case "-s":
                return files.exists(path) and files.stat(path).size > 0
            case "-r" | "-O" | "-G":
                return files.exists(path)
            case "-w":
                return files.exists(path) and files.is_writable(path)
            case "-x":
                return files.exists(path) and bool(
                    files.is_dir(path) or files.stat(path).mode & 0o111
                )
            case "-c":
                return files.exists(path) and files.stat(path).kind == "c"
            case "-u" | "-g" | "-k":
                bit = {"-u": 0o4000, "-g": 0o2000, "-k": 0o1000}[operator]
                return files.exists(path) and bool(files.stat(path).mode & bit)
        return False

    def _binary(self, left: str, operator: str, right: str) -> bool:
        if operator in COMPARISONS:
            return _compare(_integer(left), operator, _integer(right))
        match operator:
            case "=" | "==":
                return globbing.matches(left, right) if self._is_extended else left == right
            case "!=":
                return not globbing.matches(left, right) if self._is_extended else left != right
            case "<":
                return left < right
            case ">":
                return left > right
            case "=~":
                self.groups = _regex_groups(left, right)
                return bool(self.groups)
        return self._compare_files(left, operator, right)

    def _compare_files(self, left: str, operator: str, right: str) -> bool:
        files = self._files
        first = posixpath.join(self._cwd, left)
        second = posixpath.join(self._cwd, right)
        if operator == "-ef":
            return (
                files.exists(first)
                and files.exists(second)
                and files.real_path(first) == files.real_path(second)
            )
        older, newer = (second, first) if operator == "-nt" else (first, second)
        if not files.exists(newer):
            return False
        if not files.exists(older):
            return True
        return files.stat(newer).modified > files.stat(older).modified


def _integer(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise ConditionError(f"Illegal number: {text}") from None


def _compare(left: int, operator: str, right: int) -> bool:
    match operator:
        case "-eq":
            return left == right
        case "-ne":
            return left != right
        case "-lt":
            return left < right
        case "-le":
            return left <= right
        case "-gt":
            return left > right
    return left >= right


def _regex_groups(text: str, pattern: str) -> list[str]:
    """Return what a regular expression and its groups match in a text; nothing where it does not
    match."""
    for name, members in CLASSES.items():
        pattern = pattern.replace(f"[:{name}:]", members)
    try:
        match = re.search(pattern, text)
    except re.error:
        raise ConditionError(f"{pattern}: bad regular expression") from None
    if match is None:
        return []
    return [match[0], *match.groups("")]
