"""The functions of indexes that SQLite can compute from the rows: it gives the same values for a
row as they do for its object, and keeps an index of them whoever writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.storage.indexes import Mention, Presence, TextAt, Untruth

if TYPE_CHECKING:
    from kubepy.storage.indexes import FieldIndex


def expression_of(index: FieldIndex) -> str:
    """Return the value of a row, as an expression of SQLite, "" for a function that it does not
    know. Earlier versions of kubepy have made indexes over these very texts."""
    function = index.values
    if isinstance(function, TextAt):
        return f"nullif(json_extract(json, '$.{function.path}'), '{function.usual}')"
    if isinstance(function, Presence):
        json_type = f"json_type(json, '$.{function.path}')"
        return f"CASE WHEN coalesce({json_type}, 'null') <> 'null' THEN '' END"
    if isinstance(function, Untruth):
        is_untrue = f"json_type(json, '$.{function.path}') IS NOT 'true'"
        return f"CASE WHEN json IS NOT NULL AND {is_untrue} THEN '' END"
    if isinstance(function, Mention):
        return f"CASE WHEN instr(json, '\"{function.field}\":') THEN '' END"
    return ""


def condition_of(index: FieldIndex) -> str:
    """Return the condition of SQLite for the rows that have an entry."""
    has_value = f"{expression_of(index)} IS NOT NULL"
    names = ", ".join(f"'{name}'" for name in index.resources or index.others)
    if not names:
        return has_value
    operator = "IN" if index.resources else "NOT IN"
    return f"resource {operator} ({names}) AND {has_value}"
