"""Headers of HTTP/2 (RFC 7541), as far as a client of gRPC needs them.

What is sent is written out as literals. What comes is read without a dynamic table: the settings
that open the connection forbid the server one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

# The static table: the names by index, and the values of those that have one.
_NAMES = (
    ":authority :method :method :path :path :scheme :scheme"
    + " :status" * 7
    + " accept-charset accept-encoding accept-language accept-ranges accept"
    " access-control-allow-origin age allow authorization cache-control content-disposition"
    " content-encoding content-language content-length content-location content-range content-type"
    " cookie date etag expect expires from host if-match if-modified-since if-none-match if-range"
    " if-unmodified-since last-modified link location max-forwards proxy-authenticate"
    " proxy-authorization range referer refresh retry-after server set-cookie"
    " strict-transport-security transfer-encoding user-agent vary via www-authenticate"
).split()
_VALUES = ["", "GET", "POST", "/", "/index.html", "http", "https"]
_VALUES += ["200", "204", "206", "304", "400", "404", "500", "", "gzip, deflate"]

# The symbols of Huffman's code by the length of their codes, each in its order: the codes of one
# length follow each other, and those of the next length follow them (canonical form).
_SYMBOLS = {
    5: b"012aceiost",
    6: b" %-./3456789=A_bdfghlmnpru",
    7: b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: b"&*,;XZ",
    10: b'!"()?',
    11: b"'+|",
    12: b"#>",
    13: b"\x00$@[]~",
    14: b"^}",
    15: b"<`{",
}


class HeaderError(ValueError):
    """A block of headers cannot be read."""


def encode(headers: Iterable[tuple[str, str]]) -> bytes:
    """Return a block of headers: literals that are not to be indexed."""
    block = bytearray()
    for name, value in headers:
        block.append(0)
        block += _text(name) + _text(value)
    return bytes(block)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _integer(len(encoded), 7) + encoded


def _integer(number: int, bits: int) -> bytes:
    limit = (1 << bits) - 1
    if number < limit:
        return bytes((number,))
    encoded = bytearray((limit,))
    number -= limit
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def decode(block: bytes) -> dict[str, str]:
    """Read a block of headers. Raises HeaderError."""
    headers: dict[str, str] = {}
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _read_integer(block, at, 7)
                headers[_name(index)] = _VALUES[index - 1] if index <= len(_VALUES) else ""
            elif first & 0xE0 == 0x20:
                _, at = _read_integer(block, at, 5)  # a change of the dynamic table's size
            else:
                index, at = _read_integer(block, at, 6 if first & 0x40 else 4)
                if index:
                    name = _name(index)
                else:
                    name, at = _read_text(block, at)
                headers[name], at = _read_text(block, at)
    except IndexError:
        raise HeaderError("a block of headers ends too early") from None
    return headers


def _name(index: int) -> str:
    if not 0 < index <= len(_NAMES):
        raise HeaderError("a header is taken from a table that the server may not use")
    return _NAMES[index - 1]


def _read_integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    limit = (1 << bits) - 1
    number = block[at] & limit
    at += 1
    if number < limit:
        return number, at
    shift = 0
    while True:
        byte = block[at]
        at += 1
        number += (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def _read_text(block: bytes, at: int) -> tuple[str, int]:
    is_huffman = block[at] & 0x80
    size, at = _read_integer(block, at, 7)
    end = at + size
    if end > len(block):
        raise HeaderError("a block of headers ends too early")
    text = block[at:end]
    return (_huffman(text) if is_huffman else text.decode("latin-1")), end


@cache
def _codes() -> dict[tuple[int, int], int]:
    """The symbols by length and bits of their codes."""
    codes = {}
    code = length = 0
    for next_length, symbols in _SYMBOLS.items():
        code <<= next_length - length
        length = next_length
        for symbol in symbols:
            codes[length, code] = symbol
            code += 1
    return codes


def _huffman(text: bytes) -> str:
    """Decode a text. Symbols that are no ASCII are not known: they are never in a header here."""
    codes = _codes()
    decoded = bytearray()
    code = length = 0
    for byte in text:
        for bit in range(7, -1, -1):
            code = code << 1 | byte >> bit & 1
            length += 1
            symbol = codes.get((length, code))
            if symbol is not None:
                decoded.append(symbol)
                code = length = 0
    if length > 7 or code != (1 << length) - 1:
        raise HeaderError("a header's text is in a code that is not known")
    return decoded.decode("latin-1")
