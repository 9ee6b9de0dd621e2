"""The messages between the server and its workers: a length of four bytes, and JSON in UTF-8.

A worker gets a ServedCluster, and answers ``{}`` or ``{"error": TEXT}``; then it gets Calls, and
answers each with ``{"results": [...]}``, of CommandOutputs, or ``{"refused": TEXT}``.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

HEAD = 4  # bytes
MAX_MESSAGE = 64 * 1024 * 1024  # bytes

Message = dict[str, Any]


class ServedCluster(NamedTuple):
    """The cluster that a worker works on, and as whom.

    :ivar place: the state folder, absolute, or the address of an etcd.
    :ivar namespace: that of command lines without ``-n``.
    :ivar user: whom requests are made as, as a context describes a user; empty: the administrator.
    :ivar reconcile: ``auto``, ``never``, or "" for what ``kubepy.yaml`` says.
    :ivar program: the name that the program was called by.
    :ivar trusts: the folder counts as made here.
    :ivar writes: command lines work on the cluster itself, not on a fork.
    """

    place: str
    namespace: str
    user: dict[str, Any]
    reconcile: str = ""
    program: str = "kubepy"
    trusts: bool = False
    writes: bool = False


class Call(NamedTuple):
    """Command lines to run one after another.

    :ivar commands: each as a text, quoted as for a shell, or as its words.
    :ivar kind: which commands are allowed: ``read``, ``plan`` or ``change``.
    :ivar files: the names of the files in the working directory.
    :ivar stdin: what each of the commands reads from its standard input.
    :ivar flags: those of ``plan`` before its command.
    :ivar room: how many characters all commands together may print.
    :ivar seconds: of CPU that the call may take.
    """

    commands: list[str | list[str]]
    kind: str
    files: list[str]
    stdin: str
    flags: list[str]
    room: int
    seconds: float


class CommandOutput(NamedTuple):
    """The output of one command line.

    :ivar left_out: the lines that were not kept, and their characters.
    """

    stdout: str
    stderr: str
    status: int
    left_out: tuple[int, int] = (0, 0)


def encode(message: Message) -> bytes:
    """Return a message with its length before it."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(HEAD, "big") + body


def decode(body: bytes) -> Message:
    message: Message = json.loads(body)
    return message


def length_of(head: bytes) -> int:
    """Return the length of the body of a message. Raises ValueError for one that is too long."""
    length = int.from_bytes(head, "big")
    if length > MAX_MESSAGE:
        raise ValueError(f"a message of {length} bytes")
    return length
