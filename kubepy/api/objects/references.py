"""References to objects (client-go ``tools/reference``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.meta import Object, name_of


def reference(obj: Mapping[str, Any], field_path: str = "") -> Object:
    """A ``core/v1 ObjectReference`` to an object or to a part of it."""
    metadata = obj["metadata"]
    found: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": name_of(obj)}
    for field in ("namespace", "resourceVersion", "uid"):
        if metadata.get(field):
            found[field] = metadata[field]
    if field_path:
        found["fieldPath"] = field_path
    return found
