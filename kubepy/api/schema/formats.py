"""The string formats of schemas that a v1.36 API server checks
(``kube-openapi/pkg/validation/strfmt``).

Any value has a format that is not listed here. Names are compared without dashes, as upstream does.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date
from ipaddress import ip_address, ip_network

from kubepy.lazy import lazy_imports

with lazy_imports():  # few schemas have URLs
    from kubepy.api.values import gourls

_UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}$"
_ANY_GROUP = "[0-9a-f]{4}"
_VARIANT = "[89ab][0-9a-f]{3}"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]{1,})?(z|([+-][0-9]{2}:[0-9]{2}))")
_GO_DURATION = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[+-]?0")
_SCALA_DURATION = re.compile(
    r"(?<!\d)\d+\s*(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|"
    r"s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])",
    re.I,
)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def supports(name: str) -> bool:
    """Return whether the server checks values of a format."""
    name = name.replace("-", "")
    return name in _PATTERNS or name in _PARSED


def fits(name: str, value: str) -> bool:
    """Return whether a value has a format, which must be a supported one."""
    name = name.replace("-", "")
    if name in _PATTERNS:
        return re.search(_PATTERNS[name], value) is not None
    match name:
        case "date":
            return _parses(date.fromisoformat, value) and _DATE.fullmatch(value) is not None
        case "datetime":
            day, separator, time = value.lower().partition("t")
            clock = _TIME.search(time) if separator and fits("date", day) else None
            return clock is not None and clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"
        case "duration":
            return (
                _GO_DURATION.fullmatch(value) is not None
                or _SCALA_DURATION.search(value) is not None
            )
        case "uri":
            return gourls.is_request_uri(value)
        case "byte":
            return _parses(lambda text: b64decode(text, validate=True), value)
        case "ipv4":
            return "." in value and _parses(ip_address, value)
        case "ipv6":
            return ":" in value and _parses(ip_address, value)
        case "cidr":
            return "/" in value and _parses(lambda text: ip_network(text, strict=False), value)
        case "email":
            local, at, domain = value.rpartition("@")
            return bool(local and at and domain) and not re.search(r"[\s<>]", value)
        case "hostname":
            labels = value.split(".")
            return (
                0 < len(value) <= 255
                and all(len(label) <= 63 for label in labels)
                and all(re.fullmatch(r"[^\W_]([^\W_]|-)*", label) for label in labels)
            )
        case "k8sshortname":
            return len(value) <= 63 and re.fullmatch(_LABEL, value) is not None
        case "k8slongname":
            return len(value) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", value) is not None

    return True  # a password


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except (ValueError, binascii.Error):
        return False
    return True


_PARSED = frozenset(
    (
        "date",
        "datetime",
        "duration",
        "byte",
        "ipv4",
        "ipv6",
        "cidr",
        "uri",
        "email",
        "hostname",
        "password",
        "k8sshortname",
        "k8slongname",
    )
)
_PATTERNS = {
    "bsonobjectid": r"^[0-9a-fA-F]{24}$",
    "mac": r"^(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1)*[0-9a-fA-F]{2}$",
    "uuid": _UUID % (_ANY_GROUP, _ANY_GROUP),
    "uuid3": _UUID % ("3[0-9a-f]{3}", _ANY_GROUP),
    "uuid4": _UUID % ("4[0-9a-f]{3}", _VARIANT),
    "uuid5": _UUID % ("5[0-9a-f]{3}", _VARIANT),
    "ssn": r"^\d{3}[- ]?\d{2}[- ]?\d{4}$",
    "hexcolor": r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    "rgbcolor": r"^rgb\(\s*(\d{1,3}%?)\s*,\s*(\d{1,3}%?)\s*,\s*(\d{1,3}%?)\s*\)$",
}
