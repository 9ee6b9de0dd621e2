"""Objects in words, as all that a fuzz prints names them."""

from __future__ import annotations

from kubepy.storage import Key


def said(key: Key) -> str:
    """Return an object as messages name it: ``pods default/web-1``, ``nodes node-1``."""
    return f"{key.resource} {key.namespace and f'{key.namespace}/'}{key.name}"
