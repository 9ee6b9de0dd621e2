"""Any kind without a describer of its own: its fields, one a line."""

from __future__ import annotations

import re
from typing import Any

from kubepy.api.meta import Object
from kubepy.cli.describers.writer import Surroundings, Writer, events, go_value, heading, labels_and_annotations

SKIPPED = {".metadata.managedFields", ".metadata.name", ".metadata.namespace", ".metadata.labels",
           ".metadata.annotations"}
ACRONYMS = {"API", "URL", "UID", "GUID"}
# Runs of upper case, lower case and all else; an upper-case run gives its last letter to a lower-case one.
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[^A-Za-z]+")


def generic(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj, namespaced=False)
    writer.field(0, "Namespace", obj["metadata"].get("namespace", ""))
    labels_and_annotations(writer, obj)
    _fields(writer, 0, obj, "")
    events(writer, around)


def _fields(writer: Writer, level: int, content: Object, prefix: str) -> None:
    for field, value in sorted(content.items()):
        path = f"{prefix}.{field}"
        if path not in SKIPPED:
            _field(writer, level, field, value, path)


def _field(writer: Writer, level: int, field: str, value: Any, path: str) -> None:
    label = smart_label(field)
    if not isinstance(value, dict | list):
        writer.field(level, label, go_value(value))
        return
    writer.line(level, f"{label}:")
    if isinstance(value, dict):
        _fields(writer, level + 1, value, path)
        return
    for child in value:
        if isinstance(child, dict):
            _fields(writer, level + 1, child, path)
        else:
            writer.line(level + 1, go_value(child))


def smart_label(field: str) -> str:
    """``creationTimestamp`` → ``Creation Timestamp``, ``uid`` → ``UID``; names with other signs stay as they are."""
    if not all(char.isalpha() or char == "-" for char in field):
        return field
    return " ".join(_word(part) for part in PARTS.findall(field))


def _word(part: str) -> str:
    if part.upper() in ACRONYMS:
        return part.upper()
    return part.capitalize() if part.islower() else part
