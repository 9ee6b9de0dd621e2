"""Field selectors: ``metadata.name=x,status.phase!=Running`` (``apimachinery/pkg/fields/selector.go``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from kubepy.api.selectors.labels import SelectorError
from kubepy.quoting import printable

_TERM = re.compile(r"(?P<field>.*?)(?P<operator>!=|==|=)(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)|([,=])", re.DOTALL)


class Term(NamedTuple):
    """One condition on one field; a field that is not there is empty."""

    field: str
    value: str
    negated: bool

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) != self.negated


def parse_fields(text: str) -> list[Term]:
    """What a user typed after ``--field-selector``. Raises SelectorError with upstream's message."""
    return [_parse_term(text, part) for part in sorted(_split(text)) if part]


def _split(text: str) -> list[str]:
    r"""At commas, but not at ``\,``."""
    return [part for part in re.findall(r"(?:\\.|[^,\\]|\\$)*", text, re.DOTALL) if part]


def _parse_term(selector: str, part: str) -> Term:
    found = _TERM.fullmatch(part)
    if not found:
        raise SelectorError(printable(f"invalid selector: '{selector}'; can't understand '{part}'"))
    return Term(found["field"], _unescape(found["value"]), found["operator"] == "!=")


def _unescape(value: str) -> str:
    return _ESCAPED.sub(_unescape_one, value)


def _unescape_one(found: re.Match[str]) -> str:
    if found[2]:
        raise SelectorError(f"invalid field selector: unescaped character in value: {ord(found[2])}")
    if found[1] not in ("\\", ",", "=") or not found[1]:
        raise SelectorError(f"invalid field selector: invalid escape sequence: \\{found[1]}")
    return found[1]
