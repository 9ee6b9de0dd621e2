"""The error of an import."""

from __future__ import annotations

from kubepy.quoting import printable
from kubepy.storage import StorageError


class SourceError(StorageError):
    """A source that cannot be imported; the message is one line, and names it."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))
