"""Strict reading of settings that are maps and lists: an unknown field or a wrong type is an error
that names its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kubepy.quoting import printable, quote
from kubepy.storage import FolderError

Parser = Callable[[str, Any], Any]  # of the path of a field and its value


def field_error(path: str, message: str) -> FolderError:
    """Build the error for a field by its path; a path that ends with ``: `` is that of a file."""
    return FolderError(printable(f"{path.removesuffix(': ')}: {message}"))


def parse_fields(
    path: str, value: Any, parsers: Mapping[str, Parser], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Check a map. Returns its values by the names that they have in Python; a null counts as left
    out."""
    if not isinstance(value, dict):
        raise field_error(
            path,
            f"must be a map of {', '.join(parsers)}",
        )
    for key in value:
        if key not in parsers:
            raise field_error(
                join_path(path, key),
                f"unknown field: must be one of {', '.join(parsers)}",
            )
    for key in required:
        if value.get(key) is None:
            raise field_error(
                join_path(path, key),
                "is required",
            )
    return {
        python_name(str(key)): parsers[key](join_path(path, key), entry)
        for key, entry in value.items()
        if entry is not None
    }


def python_name(field: str) -> str:
    """Return the name that a field has in Python: ``downFor`` is ``down_for``."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", field)


def join_path(path: str, key: Any) -> str:
    return f"{path}{'' if path.endswith(': ') else '.'}{key}"


def list_of(parse: Parser) -> Parser:
    """Build the parser of a list that is not empty."""

    def parse_list(path: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise field_error(
                path,
                "must be a list with at least one entry",
            )
        return tuple(parse(f"{path}[{index}]", entry) for index, entry in enumerate(value))

    return parse_list


def parse_text(path: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise field_error(
            path,
            "must be a string",
        )
    return value


def shown(value: Any) -> str:
    """Return a value as errors quote it."""
    if isinstance(value, list | dict):
        return "a list or map"
    return quote(str(value).lower() if isinstance(value, bool) else str(value))


def map_of(kind: Callable[..., Any], parsers: Mapping[str, Parser], *required: str) -> Parser:
    """Build the parser of a map whose fields are those of ``kind``."""
    return lambda path, value: kind(**parse_fields(path, value, parsers, required))
