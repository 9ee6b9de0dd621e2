"""Stamps: entries without fields, which stand for all that no other entry names.

What a client creates gets one, so that creating costs nothing more; ``tracking`` works out the fields when they are
asked for.
"""

from __future__ import annotations

from typing import Any

Entry = dict[str, Any]


def stamp(manager: str, api_version: str, time: str) -> Entry:
    """The entry of the client that creates an object."""
    return {"apiVersion": api_version, "manager": manager, "operation": "Update", "time": time}


def is_stamp(entry: Any) -> bool:
    return isinstance(entry, dict) and "fieldsV1" not in entry and "fieldsType" not in entry
