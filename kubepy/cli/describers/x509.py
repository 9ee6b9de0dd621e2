"""What a PKCS #10 certificate request asks for: just enough of DER for its subject and alternative names."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from ipaddress import ip_address
from typing import NamedTuple

_PEM = re.compile(rb"-----BEGIN CERTIFICATE REQUEST-----\s(.*?)-----END CERTIFICATE REQUEST-----", re.DOTALL)
# The names of object identifiers, by their DER.
_SUBJECT = {3: "Common Name", 5: "Serial Number", 6: "Country", 7: "Locality", 8: "Province", 9: "StreetAddress",
            10: "Organization", 11: "Organizational Unit", 17: "PostalCode"}
_X520 = b"\x55\x04"  # 2.5.4, what names are made of
_EXTENSION_REQUEST = bytes.fromhex("2a864886f70d01090e")  # 1.2.840.113549.1.9.14
_ALTERNATIVE_NAMES = b"\x55\x1d\x11"  # 2.5.29.17
_GENERAL_NAMES = {0x82: "DNS Names", 0x81: "Email Addresses", 0x86: "URIs", 0x87: "IP Addresses"}


class CertificateError(Exception):
    """What is no certificate request."""


class Request(NamedTuple):
    """The values of each field of the subject, and the alternative names of each kind."""

    subject: dict[str, list[str]]
    names: dict[str, list[str]]


class _Element(NamedTuple):
    tag: int
    content: bytes


def parse_request(pem: bytes) -> Request:
    """Raises CertificateError."""
    found = _PEM.search(pem)
    if found is None:
        raise CertificateError("PEM block type must be CERTIFICATE REQUEST")
    try:
        [whole] = _elements(b64decode(found[1]))
        info = next(_elements(whole.content))
        _version, subject, _key, *rest = _elements(info.content)
        return Request(_subject(subject), _alternative_names(rest))
    except (ValueError, IndexError, StopIteration, binascii.Error):
        raise CertificateError("x509: malformed certificate request") from None


def _elements(data: bytes) -> Iterator[_Element]:
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at:at + size], "big"), at + size
        if at + length > len(data):
            raise ValueError("data truncated")
        yield _Element(tag, data[at:at + length])
        at += length


def _subject(name: _Element) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for one in (pair for group in _elements(name.content) for pair in _elements(group.content)):
        kind, value = _elements(one.content)
        if kind.content[:2] == _X520 and kind.content[2] in _SUBJECT:
            values.setdefault(_SUBJECT[kind.content[2]], []).append(value.content.decode(errors="replace"))
    return values


def _alternative_names(attributes: list[_Element]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {title: [] for title in _GENERAL_NAMES.values()}
    for name in _general_names(attributes):
        if title := _GENERAL_NAMES.get(name.tag):
            names[title].append(str(ip_address(name.content)) if name.tag == 0x87 else name.content.decode())
    return names


def _general_names(attributes: list[_Element]) -> Iterator[_Element]:
    for attribute in (one for every in attributes for one in _elements(every.content)):
        kind, values = _elements(attribute.content)
        if kind.content == _EXTENSION_REQUEST:
            for extension in (one for every in _elements(values.content) for one in _elements(every.content)):
                identifier, *_critical, value = _elements(extension.content)
                if identifier.content == _ALTERNATIVE_NAMES:
                    yield from _elements(next(_elements(value.content)).content)
