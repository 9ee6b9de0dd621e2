"""The suffix of generated names."""

from __future__ import annotations

import hashlib

from kubepy.api.meta import Object
from kubepy.api.values.goformat import to_json


def content_hash(content: Object) -> str:
    """Ten characters that change with the content (``kubectl/pkg/util/hash``)."""
    digest = hashlib.sha256(to_json(content).encode()).hexdigest()
    return digest[:10].translate(str.maketrans("013ae", "ghkmt"))
