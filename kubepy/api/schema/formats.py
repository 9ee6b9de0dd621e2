"""The string formats of schemas that a v1.36 API server checks (``kube-openapi/pkg/validation/strfmt``).

Any value has a format that is not listed here. Names are compared without dashes, as upstream does.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date
from ipaddress import ip_address, ip_network

_UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}$"
_ANY_GROUP, _VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]{1,})?(z|([+-][0-9]{2}:[0-9]{2}))")
_GO_DURATION = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[+-]?0")
_SCALA_DURATION = re.compile(
    r"(?<!\d)\d+\s*(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|"
    r"s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])", re.I)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def supports(name: str) -> bool:
    return name.replace("-", "") in _CHECKS


def fits(name: str, value: str) -> bool:
    """Return whether a value has a format, which must be a supported one."""
    return _CHECKS[name.replace("-", "")](value)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda value: compiled.search(value) is not None


def _is_date(value: str) -> bool:
    return _parses(date.fromisoformat, value) and _DATE.fullmatch(value) is not None


def _is_datetime(value: str) -> bool:
    day, separator, time = value.lower().partition("t")
    found = _TIME.search(time) if separator and _is_date(day) else None
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(value: str) -> bool:
    return _GO_DURATION.fullmatch(value) is not None or _SCALA_DURATION.search(value) is not None


def _is_base64(value: str) -> bool:
    return _parses(lambda text: b64decode(text, validate=True), value)


def _is_ipv4(value: str) -> bool:
    return "." in value and _parses(ip_address, value)


def _is_ipv6(value: str) -> bool:
    return ":" in value and _parses(ip_address, value)


def _is_cidr(value: str) -> bool:
    return "/" in value and _parses(lambda text: ip_network(text, strict=False), value)


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except (ValueError, binascii.Error):
        return False
    return True


def _is_email(value: str) -> bool:
    local, at, domain = value.rpartition("@")
    return bool(local and at and domain) and not re.search(r"[\s<>]", value)


def _is_hostname(value: str) -> bool:
    labels = value.split(".")
    return (0 < len(value) <= 255 and all(len(label) <= 63 for label in labels)
            and all(re.fullmatch(r"[^\W_]([^\W_]|-)*", label) for label in labels))


def _is_uri(value: str) -> bool:
    """Accept an absolute path or an absolute URI (``url.ParseRequestURI``)."""
    return value.startswith("/") or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:\S", value) is not None


def _is_short_name(value: str) -> bool:
    return len(value) <= 63 and re.fullmatch(_LABEL, value) is not None


def _is_long_name(value: str) -> bool:
    return len(value) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", value) is not None


_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"^[0-9a-fA-F]{24}$"), "uri": _is_uri, "email": _is_email, "hostname": _is_hostname,
    "ipv4": _is_ipv4, "ipv6": _is_ipv6, "cidr": _is_cidr,
    "mac": _matches(r"^(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1)*[0-9a-fA-F]{2}$"),
    "uuid": _matches(_UUID % (_ANY_GROUP, _ANY_GROUP)), "uuid3": _matches(_UUID % ("3[0-9a-f]{3}", _ANY_GROUP)),
    "uuid4": _matches(_UUID % ("4[0-9a-f]{3}", _VARIANT)), "uuid5": _matches(_UUID % ("5[0-9a-f]{3}", _VARIANT)),
    "ssn": _matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"), "hexcolor": _matches(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _matches(r"^rgb\(\s*(\d{1,3}%?)\s*,\s*(\d{1,3}%?)\s*,\s*(\d{1,3}%?)\s*\)$"),
    "byte": _is_base64, "password": lambda value: True, "date": _is_date, "duration": _is_duration,
    "datetime": _is_datetime, "k8sshortname": _is_short_name, "k8slongname": _is_long_name,
}
