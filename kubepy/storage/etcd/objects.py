"""Objects as etcd has them: a key of the store to and from a key of etcd, JSON to and from a value.

Provisional.
"""

from __future__ import annotations

from kubepy.storage.etcd.keys import Keys
from kubepy.storage.model import Key


class ObjectCodec:
    """Provisional."""

    def __init__(self, prefix: str, values: str = "json") -> None:
        self._keys = Keys(prefix)
        self.start, self.end = self._keys.everything
        self.path = self._keys.of
        self.place = self._keys.range_of
        self.key = self._keys.parse

    def encode(self, key: Key, text: str) -> bytes:
        return text.encode()

    def decode(self, key: Key, value: bytes) -> str:
        return value.decode()
