"""Read the subject and the alternative names of a PKCS #10 certificate request.

This is a parser of our own because it is small: it reads DER, and knows the attributes and kinds of
names that kubectl prints. It verifies nothing. docs/decisions/x509.md compares it with libraries.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from ipaddress import ip_address
from typing import NamedTuple

_PEM = re.compile(
    rb"-----BEGIN CERTIFICATE REQUEST-----\s(.*?)-----END CERTIFICATE REQUEST-----", re.DOTALL
)
# The attributes of names that kubectl prints, by the last number of their object identifiers
# (2.5.4.n).
_SUBJECT = {
    3: "Common Name",
    5: "Serial Number",
    6: "Country",
    7: "Locality",
    8: "Province",
    9: "StreetAddress",
    10: "Organization",
    11: "Organizational Unit",
    17: "PostalCode",
}
# AnyObject identifiers, in DER.
_X520 = b"\x55\x04"  # 2.5.4
_EXTENSION_REQUEST = bytes.fromhex("2a864886f70d01090e")  # 1.2.840.113549.1.9.14
_ALTERNATIVE_NAMES = b"\x55\x1d\x11"  # 2.5.29.17
_GENERAL_NAMES = {0x82: "DNS Names", 0x81: "Email Addresses", 0x86: "URIs", 0x87: "IP Addresses"}
_IP_ADDRESS = 0x87


class CertificateError(Exception):
    """A text is not a certificate request."""


class CertificateRequest(NamedTuple):
    """The values of each attribute of the subject, and the alternative names of each kind."""

    subject: dict[str, list[str]]
    names: dict[str, list[str]]


class _Element(NamedTuple):
    tag: int
    content: bytes


def parse_request(pem: bytes) -> CertificateRequest:
    """Parse a certificate request. Raises CertificateError."""
    block = _PEM.search(pem)
    if block is None:
        raise CertificateError("PEM block type must be CERTIFICATE REQUEST")
    try:
        [request] = _elements(b64decode(block[1]))
        info = next(_elements(request.content))
        _version, subject, _key, *attributes = _elements(info.content)
        names: dict[str, list[str]] = {title: [] for title in _GENERAL_NAMES.values()}
        for name in _alternative_names(attributes):
            if title := _GENERAL_NAMES.get(name.tag):
                is_ip = name.tag == _IP_ADDRESS
                names[title].append(
                    str(ip_address(name.content)) if is_ip else name.content.decode()
                )
        values: dict[str, list[str]] = {}
        for attribute in _grandchildren(subject):
            identifier, value = _elements(attribute.content)
            if identifier.content[:2] == _X520 and identifier.content[2] in _SUBJECT:
                values.setdefault(_SUBJECT[identifier.content[2]], []).append(
                    value.content.decode(errors="replace")
                )
        return CertificateRequest(values, names)
    except (ValueError, IndexError, StopIteration, binascii.Error):
        raise CertificateError("x509: malformed certificate request") from None


def _elements(data: bytes) -> Iterator[_Element]:
    """Yield the elements of DER data one after the other, without looking into them."""
    position = 0
    while position < len(data):
        tag = data[position]
        length = data[position + 1]
        position = position + 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[position : position + size], "big")
            position = position + size
        if position + length > len(data):
            raise ValueError("data truncated")
        yield _Element(tag, data[position : position + length])
        position += length


def _grandchildren(element: _Element) -> Iterator[_Element]:
    for child in _elements(element.content):
        yield from _elements(child.content)


def _alternative_names(attribute_sets: list[_Element]) -> Iterator[_Element]:
    for attribute in (
        attribute for attributes in attribute_sets for attribute in _elements(attributes.content)
    ):
        identifier, values = _elements(attribute.content)
        if identifier.content == _EXTENSION_REQUEST:
            for extension in _grandchildren(values):
                extension_id, *_critical, value = _elements(extension.content)
                if extension_id.content == _ALTERNATIVE_NAMES:
                    yield from _elements(next(_elements(value.content)).content)
