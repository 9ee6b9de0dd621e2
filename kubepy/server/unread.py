"""Answers that a client has not read yet, as far as the machine of the server knows.

An answer that was sent waits in up to three places: in the buffers of this process, in the kernel's
queue of what is to be sent, and, where the client is on this machine, in the kernel's queue of what
its socket has received. Linux tells of the last one over netlink (``sock_diag(7)``). What a client
has read into buffers of its own nobody sees.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from contextlib import suppress
from typing import Any

from kubepy import system

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
REQUEST = 1  # NLM_F_REQUEST
ANY_COOKIE = 0xFFFFFFFF
ALL_STATES = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
QUESTION = struct.Struct("=BBBBI")  # inet_diag_req_v2, up to the socket
PORTS = struct.Struct("!HH")
REST_OF_SOCKET = struct.Struct("=III")  # interface, and a cookie of 64 bits
ADDRESS_BYTES = 16
RECEIVE_QUEUE = HEADER.size + 4 + 48 + 4  # inet_diag_msg: family …, the socket, idiag_expires
NUMBER = struct.Struct("=I")


def has_unread(transport: asyncio.Transport) -> bool:
    """Return whether something that was sent on a connection has still to be read by its client.

    A client on another machine counts as having read what has arrived there.
    """
    if transport.is_closing():
        return False
    if transport.get_write_buffer_size():
        return True
    connection = transport.get_extra_info("socket")
    if connection is None:
        return False
    if _queued_to_send(connection):
        return True
    return bool(_queued_at_client(connection))


def _queued_to_send(connection: Any) -> int:
    """Return how many bytes the client's machine has not confirmed yet; 0 where that cannot be
    known."""
    with suppress(OSError):
        return system.queued_to_send(connection.fileno())
    return 0


def _queued_at_client(connection: Any) -> int:
    """Return how many bytes the client's socket has received that its program has not read; 0
    where that cannot be known."""
    if not sys.platform.startswith("linux") or connection.family not in (
        socket.AF_INET,
        socket.AF_INET6,
    ):
        return 0
    with suppress(OSError, struct.error):
        question = _question(connection.family, connection.getpeername(), connection.getsockname())
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
            kernel.send(question)
            answer = kernel.recv(4096)
        if HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:  # no such socket: it is elsewhere
            return 0
        queued: int = NUMBER.unpack_from(answer, RECEIVE_QUEUE)[0]
        return queued
    return 0


def _question(family: int, source: tuple[Any, ...], destination: tuple[Any, ...]) -> bytes:
    """Return the message that asks for one TCP socket, as its own program sees it."""
    asked = b"".join(
        (
            QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, ALL_STATES),
            PORTS.pack(source[1], destination[1]),
            _packed(family, source[0]),
            _packed(family, destination[0]),
            REST_OF_SOCKET.pack(0, ANY_COOKIE, ANY_COOKIE),
        )
    )
    return HEADER.pack(HEADER.size + len(asked), SOCK_DIAG_BY_FAMILY, REQUEST, 1, 0) + asked


def _packed(family: int, address: str) -> bytes:
    return socket.inet_pton(family, address.partition("%")[0]).ljust(ADDRESS_BYTES, b"\0")
