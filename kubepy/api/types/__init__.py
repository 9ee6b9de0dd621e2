"""The built-in API types as Go sees them: decoding drops unknown fields, converts and completes the
others.

``data`` holds the fields of every type in Go's order, generated from upstream's sources
(``tools/generate_types.py``); ``table`` reads it a package at a time. :func:`decode` gives an
object as an API server encodes it again; :func:`go_fields` and :func:`go_order` show a value as
Go's ``json.Marshal`` does in an error message. Each type is compiled on first use, so that a
command pays only for the kinds it touches.
"""

from kubepy.api.types.decoder import (
    Decoded,
    decode,
    decode_as,
    decode_metadata,
    first_error,
    type_of,
)
from kubepy.api.types.goview import as_encoded, go_fields, go_order, in_key_order
from kubepy.api.types.special import DecodeError

__all__ = [
    "DecodeError",
    "Decoded",
    "as_encoded",
    "decode",
    "decode_as",
    "decode_metadata",
    "first_error",
    "go_fields",
    "go_order",
    "in_key_order",
    "type_of",
]
