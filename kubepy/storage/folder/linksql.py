"""Links as SQLite computes them from the rows of the index: the same values as
:meth:`Lookup.value_of` gives for the objects of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.storage.links import LinkKind

if TYPE_CHECKING:
    from kubepy.storage.links import Lookup

# Earlier versions of kubepy have made indexes over these very texts.
EXPRESSIONS = {
    LinkKind.TEXT: "json_extract(json, '$.{0}')",
    LinkKind.PRESENCE: "CASE WHEN coalesce(json_type(json, '$.{0}'), 'null') <> 'null' THEN '' END",
    LinkKind.MENTION: "CASE WHEN instr(json, '\"{0}\":') THEN '' END",
    LinkKind.ABSENCE: (
        "CASE WHEN json IS NOT NULL AND json_type(json, '$.{0}') IS NOT 'true' THEN '' END"
    ),
}


def expression_of(link: Lookup) -> str:
    """Return the value of a row, as an expression of SQLite."""
    expression = EXPRESSIONS[link.kind].format(link.path)
    if link.kind is LinkKind.TEXT:
        return f"nullif({expression}, '{link.usual}')"
    return expression


def condition_of(link: Lookup) -> str:
    """Return the condition of SQLite for the rows that have an entry."""
    has_value = f"{expression_of(link)} IS NOT NULL"
    names = ", ".join(f"'{name}'" for name in link.resources or link.others)
    if not names:
        return has_value
    operator = "IN" if link.resources else "NOT IN"
    return f"resource {operator} ({names}) AND {has_value}"
