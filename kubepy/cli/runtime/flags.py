"""Flags as Go's pflag reads them: ``--x=v``, ``--x v``, ``-xv``, ``-wo yaml``, ``--watch=false``,
``--``.

A flag with ``no_value`` (pflag's NoOptDefVal; every bool) never takes the next word. Errors are
pflag's and strconv's words. Upstream: ``github.com/spf13/pflag/flag.go`` (parseLongArg,
parseSingleShortArg).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api.values import goformat


class FlagSyntaxError(Exception):
    """A mistake in the flags, in pflag's words."""


class HelpRequested(Exception):
    """``-h`` or ``--help`` was given."""


class FlagValue(NamedTuple):
    """The type of a flag's value.

    :param default: the value without the flag.
    :param parse: turns the text of a value into the value, or raises ValueError with Go's words.
    :param no_value: the text that the flag alone stands for; None: a value must follow.
    :param repeated: every value adds to a list (``parse`` returns a list), the first one replacing
        the default.
    """

    default: Any
    parse: Callable[[str], Any]
    no_value: str | None = None
    repeated: bool = False


class Flag:
    """One flag: a field of a command's options.

    :param long: the name behind the two dashes (``dry-run``); ``name`` is the field's
        (``dry_run``).
    :param short: the letter behind one dash, "" for none.
    :param deprecated: the text to print when the flag is used, "" for a flag that is not
        deprecated.
    :param hidden: the help of commands does not show it.
    """

    def __init__(
        self,
        long: str,
        short: str,
        value: FlagValue,
        help: str = "",
        *,
        deprecated: str = "",
        hidden: bool = False,
    ) -> None:
        self.name = long.replace("-", "_")
        self.deprecated = deprecated
        self.hidden = hidden
        self.long = long
        self.short = short
        self.default, self.parse, self.no_value, self.repeated = value
        self.help = help

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def label(self) -> str:
        """The flag as pflag names it in an error: ``-f, --filename`` or ``--filename``."""
        if self.short:
            return f"-{self.short}, --{self.long}"
        return f"--{self.long}"

    @property
    def default_text(self) -> str:
        """The default as Go prints it: ``false``, ``''``, ``[a,b]``, ``1m0s``."""
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if isinstance(self.default, list):
            return f"[{','.join(self.default)}]"
        if isinstance(self.default, float):
            return go_duration(self.default)
        if isinstance(self.default, str):
            return f"'{self.default}'"
        return str(self.default)


class Parsed(NamedTuple):
    """The words of a command line, read.

    :param args: the words that are neither flags nor values of flags.
    :param dash: the number of ``args`` before ``--`` (-1 without one).
    :param values: the value of every flag, by the flag's ``name``.
    :param flags_set: the flags on the line by their long names, each with its text, in the order of
        the words.
    """

    args: list[str]
    dash: int
    values: dict[str, Any]
    flags_set: list[tuple[str, str]]


# --- fields of options ----------------------------------------------------------------------------
#
# Each of these declares a field of an options class (see kubepy.cli.runtime.options), whose
# annotation is its type.


def bool_flag(
    long: str, short: str = "", default: bool = False, help: str = "", **more: Any
) -> Any:
    return Flag(long, short, FlagValue(default, parse_bool, "true"), help, **more)


def string_flag(long: str, short: str = "", default: str = "", help: str = "", **more: Any) -> Any:
    """Declare a string; ``no_value=…``: the value that the flag alone stands for."""
    value = FlagValue(default, str, more.pop("no_value", None))
    return Flag(long, short, value, help, **more)


def int_flag(
    long: str, short: str = "", default: int = 0, help: str = "", bits: int = 64, **more: Any
) -> Any:
    """Declare an integer of so many ``bits``; ``no_value="1"``: see FlagValue."""
    value = FlagValue(default, lambda text: parse_int(text, bits), more.pop("no_value", None))
    return Flag(long, short, value, help, **more)


def duration_flag(
    long: str, short: str = "", default: float = 0.0, help: str = "", **more: Any
) -> Any:
    """Declare a Go duration; its value is in seconds."""
    value = FlagValue(default, lambda text: goformat.parse_duration(text))
    return Flag(long, short, value, help, **more)


def string_slice_flag(
    long: str, short: str = "", default: Sequence[str] = (), help: str = "", **more: Any
) -> Any:
    """Declare pflag's StringSlice: repeated, and commas separate values."""
    value = FlagValue(list(default), split_csv, repeated=True)
    return Flag(long, short, value, help, **more)


def string_array_flag(
    long: str, short: str = "", default: Sequence[str] = (), help: str = "", **more: Any
) -> Any:
    """Declare pflag's StringArray: repeated, commas are part of the value."""
    value = FlagValue(list(default), lambda text: [text], repeated=True)
    return Flag(long, short, value, help, **more)


def typed_flag(
    long: str, default: Any, parse: Callable[[str], Any], help: str = "", **more: Any
) -> Any:
    """Declare a value that ``parse`` reads; ``repeated=True``, ``no_value="1h"``: see FlagValue."""
    value = FlagValue(default, parse, more.pop("no_value", None), more.pop("repeated", False))
    return Flag(long, "", value, help, **more)


# --- values ---------------------------------------------------------------------------------------


def parse_bool(text: str) -> bool:
    return goformat.parse_bool(text)


def parse_int(text: str, bits: int = 64) -> int:
    """Read an integer as ``strconv.ParseInt`` with base 0: ``0x10``, ``0b1``, ``0o7``, ``017``,
    ``1_000``."""
    digits = text.lstrip("+-")
    try:
        if len(text) - len(digits) > 1 or digits != digits.strip():
            raise ValueError(text)
        octal = digits[:1] == "0" and digits[1:2].isdigit()
        is_long = digits.isascii() and digits.isdecimal() and len(digits) > MAX_DIGITS
        value = 2**64 if is_long else int(f"0o{digits[1:]}" if octal else digits, 0)
    except ValueError:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax") from None
    value = -value if text.startswith("-") else value
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return value


# integers of more digits are too large in any case; Python raises an error of its own at 4,300
MAX_DIGITS = 64


def go_duration(seconds: float) -> str:
    """Return seconds as Go prints a duration: ``2s``, ``1m30s``, ``1h0m0s``."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    if minutes:
        return f"{minutes}m{text}"
    return text


def parse_flush_frequency(text: str) -> float:
    """Return the value of --log-flush-frequency in seconds; pflag gives no details of its
    errors."""
    try:
        return goformat.parse_duration(text)
    except ValueError:
        raise ValueError("parse error") from None


def parse_modules(text: str) -> str:
    """Check klog's ``--vmodule``: ``name=2,other=1``."""
    parts = [part.partition("=") for part in text.split(",") if part]
    if any(not name or not level.isdecimal() for name, _, level in parts):
        raise ValueError("syntax error: expect comma-separated list of filename=N")
    return text


def parse_timeout(text: str) -> float:
    """Read seconds or a duration as client-go's ``ParseTimeout``; returns 0 for none. Raises
    ValueError."""
    if text in ("", "0"):
        return 0.0
    try:
        if text.isascii() and text.isdecimal():
            return goformat.parse_duration(f"{text}s")
        return goformat.parse_duration(text)
    except ValueError:
        raise ValueError(
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer "
            "followed "
            "by a corresponding time unit (e.g. 1s | 2m | 3h)"
        ) from None


def split_csv(text: str) -> list[str]:
    """Split a value of a StringSlice at commas outside of double quotes (``encoding/csv``).

    Raises ValueError for quotes around a part of a field.
    """
    if '"' not in text:
        if text:
            return text.split(",")
        return []
    fields: list[str] = []
    at = 0
    while True:
        field, at = _quoted_field(text, at) if text.startswith('"', at) else _bare_field(text, at)
        fields.append(field)
        if at == len(text):
            return fields
        at += 1


def _bare_field(text: str, start: int) -> tuple[str, int]:
    """Return the field that begins at ``start``, and the position of the comma behind it."""
    end = text.find(",", start)
    end = len(text) if end < 0 else end
    mark = text.find('"', start, end)
    if mark >= 0:
        raise ValueError(
            f'parse error on line 1, column {_column(text, mark)}: bare " in non-quoted-field'
        )
    return text[start:end], end


def _quoted_field(text: str, start: int) -> tuple[str, int]:
    """Return a field in quotes, in which two quotes are one, and the position of the comma behind
    it."""
    field = ""
    at = start + 1
    while (end := text.find('"', at)) >= 0:
        field += text[at:end]
        if text[end + 1 : end + 2] in ("", ","):
            return field, end + 1
        if text[end + 1] != '"':
            raise ValueError(
                f'parse error on line 1, column {_column(text, end)}: extraneous or missing " in '
                "quoted-field"
            )
        field = field + '"'
        at = end + 2

    raise ValueError(
        f'parse error on line 1, column {_column(text, len(text))}: extraneous or missing " in '
        "quoted-field"
    )


def _column(text: str, position: int) -> int:
    return len(text[:position].encode()) + 1


# Every command has it; it only counts when everything else is right.
HELP: Flag = bool_flag("help", "h")


# --- parsing --------------------------------------------------------------------------------------


class Parser:
    """A reader of one command's words.

    :param flags: the command's own and the global ones; of two with one name the first counts.
    :param interspersed: flags may stand behind other words; otherwise the first other word ends
        them.
    """

    def __init__(self, flags: Iterable[Flag], *, interspersed: bool = True) -> None:
        self.interspersed = interspersed
        self.by_name: dict[str, Flag] = {}
        self.by_short: dict[str, Flag] = {}
        for flag in flags:
            self.by_name.setdefault(flag.long, flag)
            if flag.short:
                self.by_short.setdefault(flag.short, flag)
        self._values: dict[str, Any] = {}
        self._flags_set: list[tuple[str, str]] = []
        self._wants_help = False

    def parse(self, words: Sequence[str]) -> Parsed:
        """Read the words. Raises FlagSyntaxError, HelpRequested."""
        self._values = {flag.name: flag.default for flag in self.by_name.values()}
        self._flags_set = []
        self._wants_help = False
        args, dash = self._words(words)
        if self._wants_help:
            raise HelpRequested
        return Parsed(args, dash, self._values, self._flags_set)

    def _words(self, words: Sequence[str]) -> tuple[list[str], int]:
        """Read the flags; return the other words, and the number of them before ``--``."""
        args: list[str] = []
        rest = list(reversed(words))
        while rest:
            word = rest.pop()
            if word == "--":
                return args + rest[::-1], len(args)
            if len(word) < 2 or word[0] != "-":
                args.append(word)
                if not self.interspersed:
                    return args + rest[::-1], -1
            elif word.startswith("--"):
                self._long(word[2:], rest)
            else:
                self._shorts(word[1:], rest)

        return args, -1

    def first_word(self, words: Sequence[str]) -> int | None:
        """Return the position of the first word that is no flag and no flag's value (cobra's
        stripFlags)."""
        position = 0
        while position < len(words) and words[position] != "--":
            word = words[position]
            if not word.startswith("-") or word == "-":
                return position
            position += 2 if self._takes_next(word) else 1
        return None

    def _takes_next(self, word: str) -> bool:
        if "=" in word:
            return False
        if word.startswith("--"):
            flag = self.by_name.get(word[2:])
        elif len(word) == 2:
            flag = self.by_short.get(word[1])
        else:
            return False
        return flag is None or flag.no_value is None

    def _long(self, text: str, rest: list[str]) -> None:
        name, equals, value = text.partition("=")
        if not name or name.startswith("-"):
            raise FlagSyntaxError(f"bad flag syntax: --{text}")
        flag = self.by_name.get(name.replace("_", "-"))
        if flag is None:
            if name != "help":
                raise FlagSyntaxError(printable(f"unknown flag: --{name}"))
            flag = HELP

        if not equals:
            if flag.no_value is not None:
                value = flag.no_value
            elif rest:
                value = rest.pop()
            else:
                raise FlagSyntaxError(f"flag needs an argument: --{name}")

        self._set(flag, value)

    def _shorts(self, text: str, rest: list[str]) -> None:
        while text:
            letter = text[0]
            after = text[1:]
            flag = self.by_short.get(letter)
            if flag is None:
                if letter != "h":
                    raise FlagSyntaxError(f"unknown shorthand flag: '{letter}' in -{text}")
                flag = HELP
            if len(after) > 1 and after[0] == "=":
                self._set(flag, after[1:])
                return
            if flag.no_value is not None:
                self._set(flag, flag.no_value)
                text = after
                continue
            if not after and not rest:
                raise FlagSyntaxError(f"flag needs an argument: '{letter}' in -{text}")
            self._set(flag, after or rest.pop())
            return

    def _set(self, flag: Flag, text: str) -> None:
        try:
            value = flag.parse(text)
        except ValueError as error:
            raise FlagSyntaxError(
                f'invalid argument {quote(text)} for "{flag.label}" flag: {error}'
            ) from None
        if flag is HELP:
            self._wants_help = value
            return
        if flag.repeated and any(name == flag.long for name, _ in self._flags_set):
            value = self._values[flag.name] + value
        self._values[flag.name] = value
        self._flags_set.append((flag.long, text))
