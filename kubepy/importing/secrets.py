"""The values of Secrets, and what stands in their places in an imported cluster."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from kubepy.api.meta import Object, annotations_of, nested_map

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
PLACEHOLDER = "replaced by kubepy import"
_EMPTY_CONFIG = "{}"  # of a registry: the value must be JSON
_CONFIG_KEYS = (".dockerconfigjson", ".dockercfg")


def has_values(secret: Object) -> bool:
    """Tell whether a Secret has values, or what was applied last may have some."""
    return bool(secret.get("data")) or LAST_APPLIED in annotations_of(secret)


def with_placeholders(secret: Object) -> Object:
    """Return a Secret with the same keys, and the same placeholder as the value of each; what was
    applied last is without the values, too."""
    replaced: Object = {**secret}
    if secret.get("data"):
        replaced["data"] = {key: _encoded(_placeholder(key)) for key in secret["data"]}
    applied = annotations_of(secret).get(LAST_APPLIED)
    if applied is not None:
        annotations = {**annotations_of(secret), LAST_APPLIED: _without_values(applied)}
        replaced["metadata"] = {**secret["metadata"], "annotations": annotations}
    return replaced


def _placeholder(key: str) -> str:
    return _EMPTY_CONFIG if key in _CONFIG_KEYS else PLACEHOLDER


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _without_values(applied: str) -> str:
    """Return the manifest that was applied last with the placeholders. One that cannot be read is
    replaced as a whole."""
    try:
        manifest: Any = json.loads(applied)
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        return "{}\n"
    for field, shown in (("data", _encoded), ("stringData", str)):
        if manifest.get(field) is not None:
            values = nested_map(manifest, field)
            manifest[field] = {key: shown(_placeholder(key)) for key in values}
    return json.dumps(manifest, separators=(",", ":"), ensure_ascii=False) + "\n"
