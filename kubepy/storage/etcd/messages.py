"""Ranges and transactions: what the client asks etcd and what etcd answers, to and from the bytes
of its messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubepy.storage.etcd.wire import (
    WireError,
    bytes_field,
    message_field,
    number_field,
    read_fields,
    signed,
)


class KeyValue(NamedTuple):
    """A key and what etcd knows of it. ``lease`` is 0 for none."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int


class RangeResult(NamedTuple):
    """The keys that a range has found. ``revision``: of the store when it was read. ``total``: the
    number of keys of the range, also past the limit; ``more``: there are some past it."""

    revision: int
    kvs: list[KeyValue]
    total: int
    more: bool


class Compare(NamedTuple):
    """A condition: a key's target is as the value says. ``mod_revision`` 0 is: no such key.

    :ivar target: ``create_revision``, ``mod_revision``, ``version``, ``lease``, or ``value``.
    :ivar result: ``=``, ``!=``, ``<`` or ``>``.
    """

    key: bytes
    value: int | bytes
    target: str = "mod_revision"
    result: str = "="


class Put(NamedTuple):
    """A write of a key."""

    key: bytes
    value: bytes
    lease: int = 0
    prev_kv: bool = False


class Delete(NamedTuple):
    """Removal of a key, or with ``end`` of all from ``key`` up to it."""

    key: bytes
    end: bytes = b""
    prev_kv: bool = False


class Get(NamedTuple):
    """Reading of a key, or with ``end`` of all from ``key`` up to it."""

    key: bytes
    end: bytes = b""
    revision: int = 0
    limit: int = 0
    keys_only: bool = False
    count_only: bool = False


class PutResult(NamedTuple):
    """The answer to a write: what it has replaced, where that was asked for."""

    prev_kv: KeyValue | None


class DeleteResult(NamedTuple):
    """The answer to a removal: how many keys, and which, where that was asked for."""

    deleted: int
    prev_kvs: list[KeyValue]


Operation = Put | Delete | Get
OperationResult = PutResult | DeleteResult | RangeResult


class TxnResult(NamedTuple):
    """``revision``: of the store after the transaction: the mod_revision of all that it has
    written, if it has written anything."""

    revision: int
    succeeded: bool
    responses: list[OperationResult]


def prefix_end(prefix: bytes) -> bytes:
    """Return the first key after all that begin with a prefix."""
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return b"\0"
    last = stem[-1] + 1
    return stem[:-1] + bytes((last,))


# --- requests -------------------------------------------------------------------------------------

_RESULTS = {"=": 0, ">": 1, "<": 2, "!=": 3}
_TARGETS = {"version": 0, "create_revision": 1, "mod_revision": 2, "value": 3, "lease": 4}
_TARGET_FIELDS = {"version": 4, "create_revision": 5, "mod_revision": 6, "value": 7, "lease": 8}


def range_request(get: Get) -> bytes:
    """Encode a RangeRequest."""
    return (
        bytes_field(1, get.key)
        + bytes_field(2, get.end)
        + number_field(3, get.limit)
        + number_field(4, get.revision)
        + number_field(8, get.keys_only)
        + number_field(9, get.count_only)
    )


def txn_request(
    compares: Iterable[Compare], success: Iterable[Operation], failure: Iterable[Operation]
) -> bytes:
    """Encode a TxnRequest."""
    parts = [message_field(1, _compare(compare)) for compare in compares]
    parts += [message_field(2, _request_op(operation)) for operation in success]
    parts += [message_field(3, _request_op(operation)) for operation in failure]
    return b"".join(parts)


def _compare(compare: Compare) -> bytes:
    field = _TARGET_FIELDS[compare.target]
    if isinstance(compare.value, bytes):
        value = message_field(field, compare.value)
    else:
        value = number_field(field, compare.value)
    return (
        number_field(1, _RESULTS[compare.result])
        + number_field(2, _TARGETS[compare.target])
        + bytes_field(3, compare.key)
        + value
    )


def _request_op(operation: Operation) -> bytes:
    if isinstance(operation, Get):
        return message_field(1, range_request(operation))
    if isinstance(operation, Put):
        return message_field(
            2,
            bytes_field(1, operation.key)
            + bytes_field(2, operation.value)
            + number_field(3, operation.lease)
            + number_field(4, operation.prev_kv),
        )
    return message_field(
        3,
        bytes_field(1, operation.key)
        + bytes_field(2, operation.end)
        + number_field(3, operation.prev_kv),
    )


# --- answers --------------------------------------------------------------------------------------


def revision_of(header: bytes) -> int:
    """Read the revision of a ResponseHeader."""
    for field, value in read_fields(header):
        if field == 3:
            return int(value)
    return 0


def read_key_value(data: bytes) -> KeyValue:
    """Read a KeyValue."""
    key = value = b""
    create_revision = mod_revision = version = lease = 0
    for field, content in read_fields(data):
        if field == 1:
            key = content
        elif field == 2:
            create_revision = content
        elif field == 3:
            mod_revision = content
        elif field == 4:
            version = content
        elif field == 5:
            value = content
        elif field == 6:
            lease = signed(content)
    return KeyValue(key, value, create_revision, mod_revision, version, lease)


def read_range(data: bytes) -> RangeResult:
    """Read a RangeResponse."""
    revision = total = 0
    more = False
    kvs = []
    for field, content in read_fields(data):
        if field == 1:
            revision = revision_of(content)
        elif field == 2:
            kvs.append(read_key_value(content))
        elif field == 3:
            more = bool(content)
        elif field == 4:
            total = content
    return RangeResult(revision, kvs, total, more)


def read_txn(data: bytes) -> TxnResult:
    """Read a TxnResponse."""
    revision = 0
    succeeded = False
    responses = []
    for field, content in read_fields(data):
        if field == 1:
            revision = revision_of(content)
        elif field == 2:
            succeeded = bool(content)
        elif field == 3:
            responses.append(_read_response_op(content, revision))
    return TxnResult(revision, succeeded, responses)


def _read_response_op(data: bytes, revision: int) -> OperationResult:
    """Read the answer to one operation of a transaction; etcd gives those within one no revision
    of their own in every version."""
    for field, content in read_fields(data):
        if field == 1:
            return read_range(content)._replace(revision=revision)
        if field == 2:
            prev_kv = dict(read_fields(content)).get(2)
            return PutResult(None if prev_kv is None else read_key_value(prev_kv))
        if field == 3:
            deleted = dict(read_fields(content)).get(2, 0)
            prev_kvs = [read_key_value(value) for part, value in read_fields(content) if part == 3]
            return DeleteResult(deleted, prev_kvs)
    raise WireError("a transaction has an answer without content")
