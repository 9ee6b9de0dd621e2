"""Programs as functions; their options are declared, and parsed as ``getopt_long`` does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubepy.shell.utility import Execution, Unknown

STDIN_NAMES = ("-", "/dev/stdin")
OLD_COUNT = re.compile(r"-\d+")

Body = Callable[[Execution, "Arguments"], int]


class Failure(Exception):
    """End a program with a message and an exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def usage_error(name: str, message: str, status: int = 1) -> Failure:
    """Return the failure of a call with wrong options or operands."""
    return Failure(f"{message}\nTry '{name} --help' for more information.", status)


class Option(NamedTuple):
    """A declared option: its names, the first of which is its key, and what it takes."""

    names: tuple[str, ...]
    value: str
    is_value_optional: bool

    @classmethod
    def parse(cls, text: str) -> Option:
        """Read ``-n,--lines=NUM``, ``-q,--quiet`` or ``--color[=WHEN]``."""
        names, separator, value = text.partition("[=")
        if separator:
            return cls(tuple(names.split(",")), value.rstrip("]"), True)
        names, _, value = text.partition("=")
        return cls(tuple(names.split(",")), value, False)

    @property
    def key(self) -> str:
        return self.names[0].lstrip("-")


class Arguments:
    """The options and operands of one call."""

    def __init__(self, operands: list[str] | None = None) -> None:
        self.operands = operands or []
        self.given: list[tuple[str, str]] = []

    def has(self, *keys: str) -> bool:
        """Tell whether one of these options was given."""
        return any(key in keys for key, _ in self.given)

    def all(self, *keys: str) -> list[str]:
        """List the values of these options, in the order in which they were given."""
        return [value for key, value in self.given if key in keys]

    def get(self, key: str, default: str = "") -> str:
        """Return the last value of an option."""
        values = self.all(key)
        if values:
            return values[-1]
        return default

    def last_of(self, *keys: str) -> str:
        """Return which of these options was given last, or an empty string."""
        given = [key for key, _ in self.given if key in keys]
        if given:
            return given[-1]
        return ""


class _Parser:
    """The reading of one list of arguments, as ``getopt_long`` reads it."""

    def __init__(
        self, name: str, declared: Sequence[Option], arguments: list[str], status: int
    ) -> None:
        self.program = name
        self.by_name = {name: option for option in declared for name in option.names}
        self.pending = arguments
        self.status = status
        self.options = Arguments()

    def parse(self, *, is_permuted: bool) -> Arguments:
        while self.pending:
            argument = self.pending.pop(0)
            if argument == "--":
                break
            if argument.startswith("--"):
                self._read_long(argument)
            elif argument.startswith("-") and len(argument) > 1:
                self._read_short(argument)
            else:
                self.options.operands.append(argument)
                if not is_permuted:
                    break
        self.options.operands += self.pending
        return self.options

    def _read_long(self, argument: str) -> None:
        name, separator, value = argument.partition("=")
        option = self.by_name.get(name) or self._abbreviated(name)
        if option.value and not option.is_value_optional and not separator:
            if not self.pending:
                raise self._error(f"option '{name}' requires an argument")
            value = self.pending.pop(0)
        if separator and not option.value:
            raise self._error(f"option '{name}' doesn't allow an argument")
        self.options.given.append((option.key, value))

    def _abbreviated(self, name: str) -> Option:
        matches = {self.by_name[known] for known in self.by_name if known.startswith(name)}
        if len(matches) != 1:
            raise Unknown(f"option {name}")
        return matches.pop()

    def _read_short(self, argument: str) -> None:
        name, separator, value = argument.partition("=")
        whole = self.by_name.get(name)
        if whole and len(name) > 2:  # a long option with one dash
            if whole.value and not separator:
                value = self._next_value(name[1:])
            self.options.given.append((whole.key, value))
            return
        letters = argument[1:]
        while letters:
            letter = letters[0]
            letters = letters[1:]
            option = self.by_name.get(f"-{letter}")
            if option is None:
                raise Unknown(f"option -{letter}")
            value = ""
            if option.is_value_optional:
                value = letters
                letters = ""
            elif option.value:
                value = letters or self._next_value(letter)
                letters = ""
            self.options.given.append((option.key, value))

    def _error(self, message: str) -> Failure:
        return usage_error(self.program, message, self.status)

    def _next_value(self, letter: str) -> str:
        if not self.pending:
            raise self._error(f"option requires an argument -- '{letter}'")
        return self.pending.pop(0)


class ArgumentStyle(NamedTuple):
    """How a program reads its arguments.

    :ivar is_permuted: options may follow operands.
    :ivar usage_status: the exit status after a wrong use.
    :ivar old_count: the option that a first argument such as ``-20`` stands for.
    :ivar is_raw: the program reads all arguments itself; the declared ones are for the docs.
    :ivar rewrite: changes the arguments before they are read.
    """

    is_permuted: bool = True
    usage_status: int = 1
    old_count: str = ""
    is_raw: bool = False
    rewrite: Callable[[list[str]], list[str]] | None = None


class Program:
    """A utility with declared options."""

    def __init__(self, body: Body, declared: Sequence[str], style: ArgumentStyle) -> None:
        self.body = body
        self.declared = declared
        self.style = style

    def __call__(self, call: Execution) -> int:
        try:
            return self.body(call, self.parse(call))
        except Failure as failure:
            if failure.message:
                complain(call, failure.message)
            return failure.status

    def parse(self, call: Execution) -> Arguments:
        """Parse the arguments of a call. Raises Unknown for an option that is not declared."""
        words = list(call.args)
        if self.style.rewrite:
            words = self.style.rewrite(words)
        if self.style.is_raw:
            return Arguments(words)
        if self.style.old_count and words and OLD_COUNT.fullmatch(words[0]):
            words[:1] = [self.style.old_count, words[0][1:]]
        options = [Option.parse(text) for text in self.declared]
        parser = _Parser(call.name, options, words, self.style.usage_status)
        return parser.parse(is_permuted=self.style.is_permuted)


USUAL = ArgumentStyle()


def program(*declared: str, style: ArgumentStyle = USUAL) -> Callable[[Body], Program]:
    """Make a utility of a function that takes a call and its parsed options.

    An option that is not declared makes the call one of an unknown program.
    """

    def decorate(body: Body) -> Program:
        return Program(body, declared, style)

    return decorate


def complain(call: Execution, message: str) -> None:
    """Write a message as GNU's programs do: the program's name before it."""
    call.err(f"{call.name}: {message}\n")
