"""The formats of ``printf`` as C has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kubepy.shell.utilities.program import Failure
from kubepy.shell.utility import Unknown

DIRECTIVE = re.compile(r"%([-+ 0#]*)(\*|\d*)(?:(\.)(\*|\d*))?[hlLqjzt]*(.)", re.DOTALL)


def format_text(
    pattern: str,
    values: Sequence[Any],
    to_number: Callable[[Any], float],
    to_text: Callable[[Any], str],
) -> str:
    """Fill the directives of a format with values. Raises Failure where one is missing."""
    remaining = list(values)

    def take() -> Any:
        if not remaining:
            raise Failure('not enough arguments passed to sprintf("' + pattern + '")', 2)
        return remaining.pop(0)

    pieces: list[str] = []
    position = 0
    while (place := pattern.find("%", position)) >= 0:
        pieces.append(pattern[position:place])
        if pattern.startswith("%%", place):
            pieces.append("%")
            position = place + 2
            continue
        match = DIRECTIVE.match(pattern, place)
        if match is None:
            pieces.append(pattern[place:])
            position = len(pattern)
            break
        flags, width, point, precision, kind = match.groups()
        if width == "*":
            width = str(int(to_number(take())))
        if precision == "*":
            precision = str(int(to_number(take())))
        layout = f"%{flags}{width}{point or ''}{precision or ''}"
        pieces.append(_directive(layout, kind, take(), to_number, to_text))
        position = match.end()
    pieces.append(pattern[position:])
    return "".join(pieces)


def _directive(
    layout: str,
    kind: str,
    value: Any,
    to_number: Callable[[Any], float],
    to_text: Callable[[Any], str],
) -> str:
    if kind in "di":
        return f"{layout}d" % int(to_number(value))
    if kind in "oxXu":
        number = int(to_number(value)) % 2**64
        letter = kind
        if kind == "u":
            letter = "d"
        if "#" in layout and kind == "o":
            raise Unknown("printf %#o")
        return f"{layout}{letter}" % number
    if kind in "eEfFgG":
        return f"{layout}{kind}" % to_number(value)
    if kind == "c":
        return f"{layout}s" % _character(value, to_text)
    if kind == "s":
        return f"{layout}s" % to_text(value)
    raise Unknown(f"printf %{kind}")


def _character(value: Any, to_text: Callable[[Any], str]) -> str:
    if isinstance(value, str):
        return value[:1]
    return chr(int(value) & 255)
