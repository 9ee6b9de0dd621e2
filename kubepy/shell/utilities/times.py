"""The program date, and the texts that it reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import absolute
from kubepy.shell.utilities.program import Arguments, Failure, program, usage_error
from kubepy.shell.utility import Execution, Unknown

ABSOLUTE = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[T ]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?"
    r" ?(Z|UTC|GMT|[-+]\d\d:?\d\d)?"
)
TIME_OF_DAY = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?")
RELATIVE = re.compile(
    r"([-+]?) ?(\d+|next|last|an?|) ?(second|sec|minute|min|hour|day|week|fortnight)s?( ago)?"
)
EPOCH = re.compile(r"@(-?\d+)(?:\.\d+)?")
LENGTHS = {
    "second": 1,
    "sec": 1,
    "minute": 60,
    "min": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
    "fortnight": 1209600,
}
DAYS = {"now": 0, "today": 0, "tomorrow": 1, "yesterday": -1}
COUNTS = {"": 1, "a": 1, "an": 1, "next": 1, "last": -1}
DIRECTIVE = re.compile(r"%([-_0^#]?)(\d*)([a-zA-Z%]|:z|::z)")


def read_time(text: str, now: datetime) -> datetime:
    """Read a time as ``date -d`` does: the forms that are plain. Raises Unknown."""
    remaining = text.strip()
    if match := EPOCH.fullmatch(remaining):
        return datetime.fromtimestamp(int(match[1]), UTC)
    time = now
    if match := ABSOLUTE.match(remaining):
        time = _absolute(match, text)
        remaining = remaining[match.end() :].strip()
    while remaining:
        time, remaining = _moved(time, remaining, now)
    return time


def _absolute(match: re.Match[str], text: str) -> datetime:
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        time = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0")[:6].ljust(6, "0")),
            tzinfo=UTC,
        )
    except ValueError:
        raise Failure(f"invalid date '{text}'") from None
    if zone and zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        time -= -offset if zone[0] == "-" else offset
    return time


def _moved(time: datetime, text: str, now: datetime) -> tuple[datetime, str]:
    """Apply the first relative part of a text; return the rest of it."""
    for word, days in DAYS.items():
        if text.startswith(word):
            rest = text[len(word) :]
            return time + timedelta(days=days), rest.strip()
    if match := TIME_OF_DAY.match(text):
        hour, minute, second = (int(part or 0) for part in match.groups())
        moment = time.replace(
            hour=hour,
            minute=minute,
            second=second,
            microsecond=0,
        )
        rest = text[match.end() :]
        return moment, rest.strip()
    match = RELATIVE.match(text)
    if match is None:
        raise Unknown(f"date -d {text}")
    sign, count, unit, ago = match.groups()
    number = COUNTS[count] if count in COUNTS else int(count)
    is_negative = sign == "-"
    is_ago = bool(ago)
    if is_negative != is_ago:
        number = -number
    seconds = number * LENGTHS[unit]
    moment = time + timedelta(seconds=seconds)
    rest = text[match.end() :]
    return moment, rest.strip()


def format_time(time: datetime, pattern: str) -> str:
    """Format a time as ``date`` and ``strftime`` do in the C locale. Raises Unknown."""
    return DIRECTIVE.sub(lambda match: _formatted(time, match), pattern)


def _formatted(time: datetime, match: re.Match[str]) -> str:
    flag, width, letter = match.groups()
    if letter in COMPOUND:
        text = format_time(time, COMPOUND[letter])
        pad = " "
        natural = 0
    elif letter in FIXED:
        text = FIXED[letter](time)
        pad = " "
        natural = 0
    elif letter in NUMBERS:
        number, natural, pad = NUMBERS[letter](time)
        text = str(number)
    else:
        raise Unknown(f"date %{letter}")
    if flag == "^":
        text = text.upper()
    if flag == "#":
        raise Unknown("date %#")
    size = natural
    if width:
        size = int(width)
    if flag == "-":
        return text
    if flag in ("_", "0"):
        pad = "0"
        if flag == "_":
            pad = " "
    return text.rjust(size, pad)


COMPOUND = {
    "c": "%a %b %e %H:%M:%S %Y",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "h": "%b",
    "R": "%H:%M",
    "r": "%I:%M:%S %p",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "x": "%m/%d/%y",
}
FIXED: dict[str, Callable[[datetime], str]] = {
    "%": lambda time: "%",
    "A": lambda time: time.strftime("%A"),
    "a": lambda time: time.strftime("%a"),
    "B": lambda time: time.strftime("%B"),
    "b": lambda time: time.strftime("%b"),
    "n": lambda time: "\n",
    "P": lambda time: time.strftime("%p").lower(),
    "p": lambda time: time.strftime("%p"),
    "t": lambda time: "\t",
    "u": lambda time: str(time.isoweekday()),
    "w": lambda time: str(time.isoweekday() % 7),
    "Z": lambda time: "UTC",
    "z": lambda time: "+0000",
    ":z": lambda time: "+00:00",
    "::z": lambda time: "+00:00:00",
    "s": lambda time: str(int(time.timestamp())),
}
# of each: the number, the width and what fills it
NUMBERS: dict[str, Callable[[datetime], tuple[int, int, str]]] = {
    "C": lambda time: (time.year // 100, 2, "0"),
    "d": lambda time: (time.day, 2, "0"),
    "e": lambda time: (time.day, 2, " "),
    "g": lambda time: (time.isocalendar().year % 100, 2, "0"),
    "G": lambda time: (time.isocalendar().year, 4, "0"),
    "H": lambda time: (time.hour, 2, "0"),
    "I": lambda time: ((time.hour - 1) % 12 + 1, 2, "0"),
    "j": lambda time: (time.timetuple().tm_yday, 3, "0"),
    "k": lambda time: (time.hour, 2, " "),
    "l": lambda time: ((time.hour - 1) % 12 + 1, 2, " "),
    "M": lambda time: (time.minute, 2, "0"),
    "m": lambda time: (time.month, 2, "0"),
    "q": lambda time: ((time.month + 2) // 3, 1, "0"),
    "S": lambda time: (time.second, 2, "0"),
    "U": lambda time: (int(time.strftime("%U")), 2, "0"),
    "V": lambda time: (time.isocalendar().week, 2, "0"),
    "W": lambda time: (int(time.strftime("%W")), 2, "0"),
    "Y": lambda time: (time.year, 4, "0"),
    "y": lambda time: (time.year % 100, 2, "0"),
}
ISO_FORMATS = {
    "": "%F",
    "date": "%F",
    "hours": "%FT%H%:z",
    "minutes": "%FT%H:%M%:z",
    "seconds": "%FT%T%:z",
    "ns": "%FT%T,%N%:z",
}
RFC_3339_FORMATS = {"date": "%F", "seconds": "%F %T%:z", "ns": "%F %T.%N%:z"}


def with_nanoseconds(time: datetime, pattern: str) -> str:
    """Fill in ``%N``, which may have a number of digits before it."""

    def digits(match: re.Match[str]) -> str:
        nanoseconds = f"{time.microsecond:06d}000"
        return nanoseconds[: int(match[1] or 9)].ljust(int(match[1] or 9), "0")

    return re.sub(r"%(\d?)N", digits, pattern)


@program(
    "-d,--date=STRING",
    "-u,--utc,--universal",
    "-I,--iso-8601[=FMT]",
    "-R,--rfc-email",
    "-r,--reference=FILE",
    "--rfc-3339=FMT",
)
def date(call: Execution, options: Arguments) -> int:
    """Print the cluster's time, or another."""
    time = _time(call, options)
    pattern = "%a %b %e %H:%M:%S %Z %Y"
    if options.has("I"):
        pattern = _choice(options.get("I"), ISO_FORMATS, "--iso-8601")
    elif options.has("rfc-3339"):
        pattern = _choice(options.get("rfc-3339"), RFC_3339_FORMATS, "--rfc-3339")
    elif options.has("R"):
        pattern = "%a, %d %b %Y %H:%M:%S %z"
    operands = options.operands
    if len(operands) > 1:
        raise usage_error(call.name, f"extra operand '{operands[1]}'")
    if operands:
        if not operands[0].startswith("+"):
            raise Unknown("date that sets the clock")
        pattern = operands[0][1:]
    call.out(format_time(time, with_nanoseconds(time, pattern)) + "\n")
    return 0


def _choice(text: str, formats: dict[str, str], option: str) -> str:
    if text not in formats:
        message = f"invalid argument '{text}' for '{option}'"
        raise usage_error("date", message)
    return formats[text]


def _time(call: Execution, options: Arguments) -> datetime:
    zone = call.env.get("TZ", "")
    if zone not in ("", "UTC", "UTC0", "Etc/UTC", "GMT") and not options.has("u"):
        raise Unknown(f"date in the time zone {zone}")
    if options.has("r"):
        name = options.get("r")
        try:
            path = absolute(call, name)
            return call.files.stat(path).modified
        except FileError as error:
            message = f"{name}: {error.problem}"
            raise Failure(message) from error
    call.reads_clock()
    if options.has("d"):
        return read_time(options.get("d"), call.now)
    return call.now
