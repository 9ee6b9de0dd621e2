"""What can be known to be wrong of an expression from what is written out in it.

Kubernetes compiles with cel-go's validators of durations, timestamps, regular expressions and of lists and maps whose
items are of different types (``apiserver/pkg/cel/environment``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubepy.api.cel import times
from kubepy.api.cel.syntax import Call, Literal, Node
from kubepy.api.cel.types import DYN, Type
from kubepy.api.cel.values import CelError
from kubepy.api.values.goregex import GoRegexError, compile_go


class Wrong(NamedTuple):
    at: int
    why: str


def wrong_argument(call: Call) -> Iterator[Wrong]:
    """A text that is no duration, no time or no regular expression, where a call wants one."""
    arg = call.args[0] if len(call.args) == 1 else None
    if not isinstance(arg, Literal):
        return
    try:
        match call.function, arg.value:
            case "duration", str(text):
                times.parse_duration(text)
            case "timestamp", str(text):
                times.parse_timestamp(text)
            case "timestamp", int(seconds):
                times.shifted(times.EPOCH, seconds * 10**9)
            case "matches", str(text):
                compile_go(text)
    except (CelError, GoRegexError):
        yield Wrong(arg.at, f"invalid {call.function} argument")


def differing(items: Sequence[Node], types: Sequence[Type]) -> Iterator[Wrong]:
    """The first item of a list or map that is of another type than the first of all."""
    for item, found in zip(items, types, strict=True):
        if types[0] != found and DYN not in (types[0], found):
            yield Wrong(item.at, f"expected type '{types[0]}' but found '{found}'")
            return
