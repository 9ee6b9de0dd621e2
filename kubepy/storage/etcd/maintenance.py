"""Leases, users and the server itself: what the client asks etcd and what etcd answers."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.storage.etcd.wire import bytes_field, number_field, read_fields, signed


class LeaseState(NamedTuple):
    """``ttl``: seconds that are left, -1 for a lease that is over."""

    id: int
    ttl: int
    granted_ttl: int


class ServerStatus(NamedTuple):
    """The state of a server. ``version``: "3.4.23"; ``size``: of its database in bytes."""

    version: str
    size: int
    leader: int
    revision: int
    member: int


def read_lease(data: bytes) -> LeaseState:
    """Read the answer to a grant, a keep-alive or a question about a lease."""
    fields = dict(read_fields(data))
    lease_id = signed(fields.get(2, 0))
    ttl = signed(fields.get(3, 0))
    granted = fields.get(4, 0)
    return LeaseState(lease_id, ttl, granted)


def read_status(data: bytes) -> ServerStatus:
    """Read a StatusResponse."""
    fields = dict(read_fields(data))
    header = dict(read_fields(fields.get(1, b"")))
    return ServerStatus(
        version=fields.get(2, b"").decode(),
        size=fields.get(3, 0),
        leader=fields.get(4, 0),
        revision=header.get(3, 0),
        member=header.get(2, 0),
    )


def lease_request(lease_id: int, ttl: int = 0) -> bytes:
    """Encode the requests about a lease; the one that grants it has its time first."""
    if ttl:
        return number_field(1, ttl) + number_field(2, lease_id)
    return number_field(1, lease_id)


def names(*texts: str) -> bytes:
    """Encode a message of texts: the fields 1, 2 …"""
    fields = []
    for number, text in enumerate(texts, 1):
        fields.append(bytes_field(number, text.encode()))
    return b"".join(fields)


def first_text(data: bytes, field: int) -> str:
    """Read one text of a message."""
    for number, value in read_fields(data):
        if number == field:
            text: bytes = value
            return text.decode()
    return ""
