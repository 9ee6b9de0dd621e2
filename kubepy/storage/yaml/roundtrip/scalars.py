"""Writes the new value of a scalar in the style of the old one."""

from __future__ import annotations

import re
from typing import Any

from kubepy.storage.yaml.emitter import atom, double_quote, literal, quote, string
from kubepy.storage.yaml.roundtrip.nodes import SCALAR, Node

_MAY_BE_PLAIN_IN_FLOW = re.compile(r"[\w./][\w./ -]*(?<! )", re.ASCII)
_NOT_PRINTABLE = re.compile("[^\\n\\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")


def flow_scalar(value: Any, style: str) -> str:
    """A scalar, or an empty collection, for one line and any place."""
    if not isinstance(value, str):
        return atom(value)
    if style == '"':
        return double_quote(value)
    if style == "'" and not _NOT_PRINTABLE.search(value) and not {"\n", "\t"} & set(value):
        return "'" + value.replace("'", "''") + "'"
    text = quote(value)
    return text if text[0] in "'\"" or _MAY_BE_PLAIN_IN_FLOW.fullmatch(text) else double_quote(value)


def block_scalar(node: Node, value: Any, column: int, indent: int, *, may_have_lines: bool) -> str:
    """A scalar, or an empty collection, as the value of an entry of a block collection.

    ``column``: where it begins; ``indent``: where its further lines stand. Without ``may_have_lines`` it takes one.
    """
    if not isinstance(value, str):
        return atom(value)
    style = node.style if node.kind == SCALAR and isinstance(node.value, str) else ""
    if not may_have_lines:
        return double_quote(value) if style == '"' or "\n" in value else quote(value)
    if style == '"' and ("\n" not in value or "\n" in node.value):
        return double_quote(value)
    if style == "'" and "\n" not in value:
        return flow_scalar(value, style)
    return quote(value) if style == "" and node.kind == SCALAR and "\n" not in value else string(
        value, column, " " * indent)


def literal_like(header: str, body: str, value: str, column: int) -> str | None:
    """A ``|`` block at the indentation of another, whose collection stands at ``column``; None where it can be none."""
    explicit = re.search(r"[1-9]", header.partition("#")[0])
    first = re.search(r"^( *)[^ \n]", body, re.MULTILINE)
    steps = int(explicit[0]) if explicit else len(first[1]) - column if first else 2
    if not value.strip(" \n") or _NOT_PRINTABLE.search(value) or not 0 < steps < 10:
        return None
    return literal(value, " " * (column + steps), steps)
