"""Errors in a YAML or JSON text."""

from __future__ import annotations

from kubepy.quoting import quote


class YamlError(Exception):
    """A text cannot be read.

    :ivar message: kubectl's words (``error converting YAML to JSON: yaml: line 7: …``).
    :ivar line: the place in the text, counted from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class NumberRangeError(YamlError):
    """A number in JSON is too large for a float64; the message is that of Go's decoder."""

    def __init__(self, digits: str, line: int = 0) -> None:
        super().__init__(f"json: cannot unmarshal number {digits} into Go value of type float64", line)
        self.digits = digits


class RepeatedKeyError(Exception):
    """A mapping has a key twice; the message is for the user."""

    def __init__(self, key: str) -> None:
        super().__init__(f"has the key {quote(key)} more than once")
