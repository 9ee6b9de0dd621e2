"""Addresses of etcd: what ``--state`` takes."""

from __future__ import annotations

import pytest

from kubepy.storage.etcd.address import Address, is_address, parse_address
from kubepy.storage.etcd.errors import AddressError


def parse(text: str, **environ: str) -> Address:
    return parse_address(text, {f"KUBEPY_ETCD_{name}": value for name, value in environ.items()})


def test_address_with_everything_is_read() -> None:
    address = parse(
        "etcd://10.0.0.1:2379,h2,[::1]:1234,[fe80::1]/teams/a/?values=protobuf&ca=ca.pem"
        "&cert=c.pem&key=k.pem&server-name=etcd.local&user=me&password=p%26q&timeout=1500ms&lease=5s"
    )
    assert address == Address(
        endpoints=(("10.0.0.1", 2379), ("h2", 2379), ("::1", 1234), ("fe80::1", 2379)),
        prefix="/teams/a",
        tls=True,
        ca="ca.pem",
        cert="c.pem",
        key="k.pem",
        server_name="etcd.local",
        user="me",
        password="p&q",
        values="protobuf",
        timeout=1.5,
        lease=5,
    )


def test_plain_address_has_defaults() -> None:
    address = parse("etcd://localhost")
    assert address == Address((("localhost", 2379),))
    assert (address.prefix, address.tls, address.values, address.timeout) == ("", False, "json", 5)
    assert address.lease == 15
    assert parse("etcds://localhost").tls
    assert parse("etcd://localhost/") == address


@pytest.mark.parametrize(
    "text",
    [
        "etcd://h:2379",
        "etcd://[::1]:2379/a/b",
        "etcds://me@h:1,g:2/p?values=protobuf",
        "etcds://h:2379?ca=/a/b.pem&cert=c%26.pem&key=k.pem&server-name=n&timeout=2.5",
        "etcd://h:2379?lease=2",
    ],
)
def test_shown_address_is_read_as_the_same(text: str) -> None:
    address = parse(text, PASSWORD="x")
    assert str(address) == text
    assert parse(str(address), PASSWORD="x") == address


def test_password_is_never_shown() -> None:
    for text in ("etcd://me:s3cret@h/p", "etcd://h/p?user=me&password=s3cret"):
        address = parse(text)
        assert address.password == "s3cret"
        assert "s3cret" not in f"{address} {address!r} {[address]}"
        with pytest.raises(AddressError) as raised:
            parse(f"{text.replace('h/', 'h:x/')}")
        assert "s3cret" not in str(raised.value)


def test_environment_gives_what_the_address_leaves_out() -> None:
    both = {"USER": "env", "PASSWORD": "secret"}
    assert parse("etcd://h", **both)[7:9] == ("env", "secret")
    assert parse("etcd://me@h", **both)[7:9] == ("me", "secret")
    assert parse("etcd://me:mine@h", **both)[7:9] == ("me", "mine")
    assert parse("etcd://h", PASSWORD="secret")[7:9] == ("", "")
    files = {"CA": "ca.pem", "CERT": "c.pem", "KEY": "k.pem"}
    assert parse("etcds://h", **files)[2:6] == (True, "ca.pem", "c.pem", "k.pem")
    assert parse("etcds://h?cert=mine.pem", **files)[2:6] == (True, "ca.pem", "mine.pem", "")
    assert parse("etcd://h", **files)[2:6] == (False, "", "", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("etcd://", 'etcd://: "" is no HOST:PORT (an IPv6 address: [ADDRESS]:PORT)'),
        ("etcd://a,,b", 'etcd://a,,b: "" is no HOST:PORT (an IPv6 address: [ADDRESS]:PORT)'),
        ("etcd://::1", 'etcd://::1: "::1" is no HOST:PORT (an IPv6 address: [ADDRESS]:PORT)'),
        ("etcd://h:99999", 'etcd://h:99999: "h:99999": 99999 is no port'),
        (
            "etcd://h?vlaues=json",
            'etcd://h: there is no option "vlaues": the options are values, ca, cert, key, '
            "server-name, user, password, timeout, lease",
        ),
        ("etcd://h?ca", 'etcd://h: the option "ca" has no value'),
        ("etcd://h?ca=", 'etcd://h: the option "ca" has no value'),
        ("etcd://h?ca=a&ca=b", 'etcd://h: the option "ca" is there twice'),
        ("etcd://h?values=yaml", "etcd://h: values=yaml: json or protobuf"),
        ("etcd://h?timeout=soon", "etcd://h: timeout=soon: seconds, as 5, 2.5s or 500ms"),
        ("etcd://h?timeout=0", "etcd://h: timeout=0: seconds, as 5, 2.5s or 500ms"),
        ("etcd://h?lease=2.5", "etcd://h: lease=2.5: whole seconds, as 5 or 15s"),
        ("etcd://h?lease=0", "etcd://h: lease=0: whole seconds, as 5 or 15s"),
        ("etcd://h?key=k.pem", "etcd://h: key=k.pem needs cert=FILE"),
        ("etcd://h?password=x", "etcd://h: a password needs user=NAME"),
        ("etcd://me@h", "etcd://h: user=me needs a password: set KUBEPY_ETCD_PASSWORD"),
        ("etcd://h/a//b", 'etcd://h/a//b: "/a//b" is no prefix of keys'),
        (
            "etcd://h/registry",
            'etcd://h/registry: the prefix begins with "/registry", which kubepy adds by itself: '
            "leave it out",
        ),
        ("http://h", "http://h: an address of etcd begins with etcd:// or etcds://"),
    ],
)
def test_wrong_address_is_one_line(text: str, message: str) -> None:
    with pytest.raises(AddressError) as raised:
        parse(text)
    assert str(raised.value) == message


def test_only_addresses_of_etcd_are_addresses() -> None:
    assert is_address("etcd://h")
    assert is_address("etcds://h")
    assert not is_address("etcd")
    assert not is_address("./etcd:/h")
