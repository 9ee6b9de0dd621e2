"""Errors of the store in etcd.

StorageError
├── EtcdError                 etcd refuses a request, or cannot be used
│   ├── AddressError          an address of etcd, or an option of it, is wrong
│   ├── UnreachableError      no endpoint answers; nothing was done
│   ├── UncertainError        the answer is lost: a write may have been done or not
│   ├── LeaseLostError        the lease does not exist any more
│   ├── WatchDeniedError      the user may not watch this
│   └── ValueFormatError      a value cannot be read: encrypted, or no object
└── CompactedError
    └── EtcdCompactedError    … and the revision that etcd was compacted at
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubepy.storage.errors import CompactedError, LostStateError, StorageError


class EtcdError(StorageError):
    """etcd refuses a request, or cannot be used; the message is one line for the user.

    :ivar code: the status of gRPC: 3 invalid argument (a request that is too large has it too), 5
        not found, 7 permission denied, 8 resource exhausted (no space), 14 unavailable …
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class AddressError(EtcdError):
    """An address of etcd, or an option of it, is wrong."""


class UnreachableError(EtcdError):
    """No endpoint answers. Nothing of the request was done; it can be sent again."""


class UncertainError(EtcdError):
    """The connection ended, or the time was up, before the answer came: a write may have been done
    or not, and may still be done. Reads never end so: they are sent to the next endpoint."""


class LeaseLostError(EtcdError):
    """The lease has expired or was revoked."""


class WatchDeniedError(EtcdError):
    """The user may not watch all that is to be watched."""


class ValueFormatError(EtcdError):
    """A value cannot be read as an object; the message names the key."""


class EtcdCompactedError(CompactedError):
    """The revision is no longer there.

    :ivar compact_revision: the oldest revision that can be read; 0 where etcd does not say it (it
        says it to watches, not to ranges).
    """

    def __init__(self, message: str, compact_revision: int = 0) -> None:
        super().__init__(message)
        self.compact_revision = compact_revision


@contextmanager
def lost_if_compacted() -> Iterator[None]:
    """Raise LostStateError where a block meets a compacted revision: the state that it reads is no
    longer there."""
    try:
        yield
    except CompactedError as error:
        raise LostStateError(str(error)) from error
