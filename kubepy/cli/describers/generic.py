"""Describe an object of any kind without a describer of its own: its fields, one a line.

Upstream: ``genericDescriber`` in ``describe.go``.
"""

from __future__ import annotations

import re
from typing import Any

from kubepy.api.meta import AnyObject
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    events,
    go_value,
    heading,
    labels_and_annotations,
)

SKIPPED = {
    ".metadata.managedFields",
    ".metadata.name",
    ".metadata.namespace",
    ".metadata.labels",
    ".metadata.annotations",
}
ACRONYMS = {"API", "URL", "UID", "GUID"}
# Runs of upper case, lower case and all else; an upper-case run gives its last letter to a
# lower-case one.
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[^A-Za-z]+")


def generic(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    writer.field(0, "Namespace", obj["metadata"].get("namespace", ""))
    labels_and_annotations(writer, obj)
    _fields(writer, 0, obj, "")
    events(writer, context)


def _fields(writer: PrefixWriter, level: int, content: AnyObject, prefix: str) -> None:
    """Write all fields of a map, those of inner maps and lists one level further in."""
    for field, value in sorted(content.items()):
        path = f"{prefix}.{field}"
        label = smart_label(field)
        if path in SKIPPED:
            continue
        if not isinstance(value, dict | list):
            writer.field(level, label, go_value(value))
            continue
        writer.line(level, f"{label}:")
        items: list[Any] = [value] if isinstance(value, dict) else value
        for item in items:
            if isinstance(item, dict):
                _fields(writer, level + 1, item, path)
            else:
                writer.line(level + 1, go_value(item))


def smart_label(field: str) -> str:
    """Turn ``creationTimestamp`` into ``Creation Timestamp``, ``uid`` into ``UID``; other names
    stay as they are."""
    if not all(char.isalpha() or char == "-" for char in field):
        return field
    words = []
    for part in PARTS.findall(field):
        word = part
        if part.upper() in ACRONYMS:
            word = part.upper()
        elif part.islower():
            word = part.capitalize()
        words.append(word)
    return " ".join(words)
