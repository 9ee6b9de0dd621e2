"""Formats of single values that no other test uses."""

from __future__ import annotations

import pytest

from kubepy.apiserver.validation import formats

NO_ADDRESS = ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
NO_NETWORK = ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]


@pytest.mark.parametrize(
    ("address", "complaints"),
    [
        ("10.0.0.7", []),
        ("fd00::7", []),
        ("10.0.0.07", ["must not have leading 0s"]),
        ("::ffff:10.0.0.7", ["must not be an IPv4-mapped IPv6 address"]),
        ("fe80::7%eth1", NO_ADDRESS),
        ("10.0.0.7%eth1", NO_ADDRESS),
        ("[fd00::7]", NO_ADDRESS),
        ("", NO_ADDRESS),
    ],
)
def test_ip_address_with_zone_or_leading_zeros_is_refused(
    address: str, complaints: list[str]
) -> None:
    assert formats.ip_address(address) == complaints


@pytest.mark.parametrize(("network", "complaints"), [
    ("10.0.0.0/8", []), ("10.0.0.1/8", ["must not have bits set beyond the prefix length"]),
    ("fe80::%eth1/64", NO_NETWORK), ("10.0.0.0", NO_NETWORK), ("10.0.0.0/+8", NO_NETWORK),
])  # fmt: skip
def test_cidr_with_zone_or_host_bits_is_refused(network: str, complaints: list[str]) -> None:
    assert formats.cidr(network) == complaints
