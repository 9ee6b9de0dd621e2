"""The values that the seed of a challenge draws, and their places in texts: ``${app}``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubepy.api.clock import Ids
from kubepy.apiserver.strict_fields import field_error, join_path, shown
from kubepy.quoting import printable

Values = Mapping[str, str]
NAME = re.compile(r"[a-z][a-zA-Z0-9]*")
_RANGE = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
_PLACE = re.compile(r"\$\$\{|\$\{([^}]*)\}")
PURPOSE = "challenge"


def parse_draws(path: str, value: Any) -> dict[str, tuple[str, ...]]:
    """Check what is drawn: names with lists of values, or ranges of whole numbers (``2..5``).
    Raises FolderError, which names the field."""
    if not isinstance(value, dict):
        raise field_error(path, "must be a map of names to lists, or ranges such as 2..5")
    draws: dict[str, tuple[str, ...]] = {}
    for name, choices in value.items():
        place = join_path(path, name)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise field_error(place, "is no name: letters and digits, a small letter first")
        draws[name] = _parse_choices(place, choices)
    return draws


def _parse_choices(path: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return _parse_range(path, value)
    if not isinstance(value, list) or not value:
        raise field_error(path, "must be a list with at least one entry, or a range such as 2..5")
    choices: list[str] = []
    for index, entry in enumerate(value):
        if isinstance(entry, bool) or not isinstance(entry, str | int):
            raise field_error(f"{path}[{index}]", f"{shown(entry)} is no text or whole number")
        choices.append(str(entry))
    return tuple(choices)


def _parse_range(path: str, value: str) -> tuple[str, ...]:
    match = _RANGE.fullmatch(value)
    if match is None:
        raise field_error(path, f"{shown(value)} is not a range such as 2..5, or a list")
    low, high = int(match[1]), int(match[2])
    if low > high:
        raise field_error(path, f"{shown(value)}: {low} is more than {high}")
    return tuple(str(number) for number in range(low, high + 1))


def draw(path: str, draws: Mapping[str, Sequence[str]], seed: int) -> dict[str, str]:
    """Draw a value for each name: a function of the seed, the name and its choices alone. A choice
    may name what stands above it."""
    ids = Ids(seed)
    values: dict[str, str] = {}
    for name, choices in draws.items():
        fraction = ids.fraction(PURPOSE, name, unseeded="")
        choice = choices[int(fraction * len(choices))]
        values[name] = _fill_text(join_path(path, name), choice, values)
    return values


def draw_one(choices: Sequence[str], seed: int) -> str:
    """Draw one of several."""
    return choices[int(Ids(seed).fraction(PURPOSE, unseeded="") * len(choices))]


def fill(path: str, value: Any, values: Values) -> Any:
    """Return a value of YAML with ``${name}`` replaced in each of its texts, ``$${`` by ``${``.

    Raises FolderError, which names the field, for a name that is not drawn.
    """
    if isinstance(value, str):
        return _fill_text(path, value, values)
    if isinstance(value, list):
        return [fill(f"{path}[{index}]", entry, values) for index, entry in enumerate(value)]
    if isinstance(value, dict):
        return {key: fill(join_path(path, key), entry, values) for key, entry in value.items()}
    return value


def _fill_text(path: str, text: str, values: Values) -> str:
    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "${"
        if name not in values:
            shown_name = printable(name)
            raise field_error(path, f"${{{shown_name}}} is not drawn (a plain ${{ is written $${{)")
        return values[name]

    return _PLACE.sub(replacement, text)
