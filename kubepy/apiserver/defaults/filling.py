"""How a default is given."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.meta import Object


def fill(target: Object, defaults: Mapping[str, object]) -> None:
    """Set what is absent or a zero value."""
    for key, value in defaults.items():
        if not target.get(key):
            target[key] = value
