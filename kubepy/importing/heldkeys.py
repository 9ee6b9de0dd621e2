"""The keys of the objects that an import has brought, as a small value of the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kubepy.storage import Key

KEYS = "import.keys"  # the name of the value


def keys_value(keys: Iterable[Key]) -> dict[str, str]:
    """Return the small value that tells a later import what this one has brought."""
    by_place: dict[str, list[str]] = {}
    for key in sorted(keys):
        by_place.setdefault(f"{key.resource}/{key.namespace}", []).append(key.name)
    return {KEYS: json.dumps(by_place, separators=(",", ":"))}


def parse_keys(text: str | None) -> set[Key]:
    """Read the value; nothing was imported where there is none."""
    keys: set[Key] = set()
    for place, names in json.loads(text or "{}").items():
        resource, _, namespace = place.partition("/")
        keys |= {Key(resource, namespace, name) for name in names}
    return keys
