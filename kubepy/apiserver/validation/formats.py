"""The formats of values that are not names: ports, percentages, keys, addresses
(``apimachinery/pkg/util/validation``).

Each function returns the complaints about a value in upstream's words; an empty list for a good
one.
"""

from __future__ import annotations

import re

from kubepy.api.errors import invalid_value, required
from kubepy.api.values.names import dns1123_subdomain, regex_error
from kubepy.apiserver.validation.fields import Errors, between, validate_as
from kubepy.quoting import quote

_PORT_NAME = re.compile(r"[-a-z0-9]+")
_PERCENT = re.compile(r"[0-9]+%")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_HEADER_NAME = re.compile(r"[-A-Za-z0-9]+")

PORT_RANGE = between(1, 65535)


def port_number(port: int) -> list[str]:
    return [] if 1 <= port <= 65535 else [PORT_RANGE]


def port_name(name: str) -> list[str]:
    """Check an IANA service name."""
    complaints = []
    if len(name) > 15:
        complaints.append("must be no more than 15 characters")
    if not _PORT_NAME.fullmatch(name):
        complaints.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in name):
        complaints.append("must contain at least one letter (a-z)")
    if "--" in name:
        complaints.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        complaints.append("must not begin or end with a hyphen")
    return complaints


def port_number_or_name(port: int | str) -> list[str]:
    if isinstance(port, str):
        return port_name(port)
    return port_number(port)


def percent(text: str) -> list[str]:
    if _PERCENT.fullmatch(text):
        return []
    return [
        "a valid percent string must be a numeric string followed by an ending '%' "
        "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
    ]


def config_map_key(key: str) -> list[str]:
    complaints = []
    if len(key) > 253:
        complaints.append("must be no more than 253 characters")
    if not _CONFIG_KEY.fullmatch(key):
        complaints.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
            "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
            "regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key in (".", ".."):
        complaints.append(f"must not be '{key}'")
    elif key.startswith(".."):
        complaints.append("must not start with '..'")
    return complaints


def env_var_name(name: str) -> list[str]:
    """Check a name of an environment variable: since v1.34 any printable ASCII but ``=``."""
    if all(" " <= letter <= "~" and letter != "=" for letter in name):
        if name:
            return []
        return ["environment variable name must be non-empty"]
    return [
        "a valid environment variable name must consist only of printable ASCII characters other "
        "than '='"
    ]


def http_header_name(name: str) -> list[str]:
    if _HEADER_NAME.fullmatch(name):
        return []
    return [
        "a valid HTTP header must consist of alphanumeric characters or '-' "
        "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
    ]


def user_or_group_id(number: int) -> list[str]:
    if 0 <= number < 2**31:
        return []
    return [between(0, 2**31 - 1)]


# --- addresses ------------------------------------------------------------------------------------


def canonical_ip(address: str) -> list[str]:
    """Check an address that must be written as Go writes it (``IsValidIP``)."""
    import ipaddress

    if problems := ip_address(address):
        return problems
    shown = str(ipaddress.ip_address(address))
    if shown == address:
        return []
    return [f"must be in canonical form ({quote(shown)})"]


def ip_address(address: str) -> list[str]:
    """Check an IPv4 or IPv6 address as v1.36 wants it in old fields: no leading zeros, no IPv4
    inside IPv6."""
    import ipaddress

    try:
        parsed = ipaddress.ip_address(_without_zone(address))
    except ValueError:
        if without_leading_zeros(address) is not None:
            return ["must not have leading 0s"]
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def _without_zone(address: str) -> str:
    """Return the address. Raises ValueError for one with a zone (``fe80::1%eth0``), which only
    Python accepts."""
    if "%" in address:
        raise ValueError(address)
    return address


def without_leading_zeros(address: str) -> str | None:
    """Return an IPv4 address with leading zeros (``010.0.0.1``) without them; None for anything
    else."""
    parts = address.split(".")
    if len(parts) != 4:
        return None
    for part in parts:
        if not part.isascii() or not part.isdigit() or int(part) > 255:
            return None
    return ".".join(str(int(part)) for part in parts)


def cidr(network: str) -> list[str]:
    """Check a network as v1.36 wants it in old fields: no leading zeros, no bits beyond the
    prefix."""
    import ipaddress

    address, slash, length = network.partition("/")
    try:
        ipaddress.ip_interface(_without_zone(network))
    except ValueError:
        is_prefix = slash and length.isdigit() and int(length) <= 32
        if is_prefix and without_leading_zeros(address):
            return ["must not have leading 0s in IP or prefix length"]
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]

    if not (slash and length.isdigit()):
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    if str(int(length)) != length:
        return ["must not have leading 0s in IP or prefix length"]
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    interface = ipaddress.ip_interface(network)
    if interface.ip == interface.network.network_address:
        return []
    return ["must not have bits set beyond the prefix length"]


def is_ipv6(address: str) -> bool:
    return ":" in address


def have_families_of_their_own(addresses: list[str]) -> bool:
    """Return whether there is at most one address or network of each IP family."""
    if len(addresses) == 2:
        return is_ipv6(addresses[0]) != is_ipv6(addresses[1])
    return len(addresses) < 2


def ip_warnings(address: str, path: str) -> list[str]:
    """Warn of an address that is valid but not in canonical form (``GetWarningsForIP``)."""
    import ipaddress

    if not is_ipv6(address) or ip_address(address):
        return []
    canonical = str(ipaddress.ip_address(address))
    if canonical == address:
        return []
    return [
        f"{path}: IPv6 address {quote(address)} should be in RFC 5952 canonical format "
        f"({quote(canonical)})"
    ]


def cidr_warnings(network: str, path: str) -> list[str]:
    """Warn of a network that is valid but not in canonical form (``GetWarningsForCIDR``)."""
    import ipaddress

    address, _, length = network.partition("/")
    if not is_ipv6(address) or cidr(network):
        return []
    canonical = f"{ipaddress.ip_address(address)}/{length}"
    if canonical == network:
        return []
    return [
        f"{path}: IPv6 CIDR value {quote(network)} should be in RFC 5952 canonical format "
        f"({quote(canonical)})"
    ]


def validate_ip(address: str, path: str, errors: Errors) -> None:
    validate_as(ip_address, address, path, errors)


def validate_cidr(network: str, path: str, errors: Errors) -> None:
    validate_as(cidr, network, path, errors)


def dns1123_subdomain_with_underscore(name: str) -> list[str]:
    """Check a DNS search path: a subdomain whose labels may start with and contain ``_``."""
    label = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
    pattern = rf"{label}(\.{label})*"
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
        "'-' or '.', and "
        "must start and end with an alphanumeric character"
    )
    return _subdomain_like(name, pattern, rule, "example.com")


def wildcard_subdomain(name: str) -> list[str]:
    """Check a host name like ``*.example.com``."""
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    pattern = rf"\*\.{label}(\.{label})*"
    rule = (
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
        "which must "
        "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
        "character"
    )
    return _subdomain_like(name, pattern, rule, "*.example.com")


def _subdomain_like(name: str, pattern: str, rule: str, example: str) -> list[str]:
    complaints = ["must be no more than 253 characters"] if len(name.encode()) > 253 else []
    if not re.fullmatch(pattern, name):
        complaints.append(regex_error(rule, pattern, example))
    return complaints


def domain_prefixed_path(text: str, path: str) -> Errors:
    """Validate a path like ``acme.io/foo`` (``IsDomainPrefixedPath``)."""
    host, _, rest = text.partition("/")
    if not text:
        return [required(path)]
    if not host or not rest:
        return [invalid_value(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid_value(path, host, complaint) for complaint in dns1123_subdomain(host)]
    pattern = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
    if not re.fullmatch(pattern, rest):
        errors.append(invalid_value(path, rest, regex_error("Invalid path", pattern)))
    return errors
