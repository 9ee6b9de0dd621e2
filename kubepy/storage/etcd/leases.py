"""Leases of etcd: for named locks, which are lost with them, and for objects that are over after a
while."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kubepy.storage.errors import LockTimeoutError
from kubepy.storage.etcd.client import Compare, Delete, Get, Put, RangeResult
from kubepy.storage.etcd.compaction import Compactor
from kubepy.storage.etcd.errors import EtcdCompactedError, EtcdError, LeaseLostError

if TYPE_CHECKING:
    from kubepy.storage.etcd.client import EtcdClient
    from kubepy.storage.etcd.rest import RestNotes

RENEW_SHARE = 4 / 15  # of the time of a lock, after which it is renewed
MAX_COMMAND = 200  # characters of the command that names a holder …
# … which others may read: without the passwords of addresses
_PASSWORDS = re.compile(r"(://[^:/@\s]*:)[^/\s]*(?=@)|(\bpassword=)[^&\s]*")
SHARED_SECONDS = 60.0  # for so long objects with the same time to live get the same lease …
SHARED_OBJECTS = 1000  # … as kube-apiserver does, so many of them at most


class HeldLock:
    """A named lock of this process: a key that goes with its lease.

    A thread keeps the lease alive, and compacts etcd (``compaction``). The lock counts as lost as
    soon as it may be: after its time by this process's clock, counted from when the last renewal
    was sent.

    :ivar compare: holds as long as the lock is held, for transactions.
    """

    def __init__(
        self, client: EtcdClient, rest: RestNotes, name: str, key: bytes, seconds: int
    ) -> None:
        """Take the lock. Raises LockTimeoutError at once where another process has it.

        :param seconds: after which it is free where this process has died or was cut off.
        """
        self._client = client
        self._rest = rest
        self._name = name
        self._key = key
        self._is_over = threading.Event()
        self._renew_seconds = seconds * RENEW_SHARE
        begun = time.monotonic()
        self._lease = client.grant_lease(seconds)
        self._until = begun + seconds
        program, *arguments = sys.argv or [""]
        command = " ".join([os.path.basename(program), *arguments])
        command = _PASSWORDS.sub(r"\1\2…", command)[:MAX_COMMAND]
        holder = f"process {os.getpid()} on {socket.gethostname()} ({command})"
        put = Put(key, holder.encode(), self._lease)
        taken = rest.write([Compare(key, 0)], [put], [Get(key)])
        if not taken.succeeded:
            with suppress(EtcdError):
                client.revoke_lease(self._lease)
            raise LockTimeoutError(f"{name} is held by {_holder_of(taken.responses[0])}")
        self.compare = Compare(key, taken.revision, "create_revision")
        self._thread = threading.Thread(target=self._renew, name=f"lease of {name}", daemon=True)
        self._thread.start()

    def is_lost(self) -> bool:
        return time.monotonic() >= self._until

    def lost(self) -> LockTimeoutError:
        """Return the error of a write that comes after the loss."""
        self._until = 0.0
        return LockTimeoutError(f"{self._name} is not held any more: nothing is written")

    def _renew(self) -> None:
        compactor = Compactor(self._client)
        while not self._is_over.wait(self._renew_seconds):
            asked = time.monotonic()
            try:
                seconds = self._client.keep_alive(self._lease)
            except LeaseLostError:
                self._until = 0.0
                return
            except EtcdError:
                continue
            self._until = asked + seconds
            with suppress(EtcdError, EtcdCompactedError):  # the next time will do as well
                compactor.tick()

    def release(self) -> None:
        """Give the lock back."""
        self._is_over.set()
        with suppress(EtcdError):  # then it is over by itself
            self._rest.write([self.compare], [Delete(self._key)])
            self._client.revoke_lease(self._lease)


def _holder_of(answer: object) -> str:
    if isinstance(answer, RangeResult) and answer.kvs:
        return answer.kvs[0].value.decode()
    return "another process"


class SharedLeases:
    """The leases of objects that are over after a while. Objects written within a minute share
    one."""

    def __init__(self, client: EtcdClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._leases: dict[int, tuple[int, float, int]] = {}  # id, when it was made, objects

    def lease(self, seconds: float) -> int:
        """Return a lease that ends after so many seconds, or up to a minute later."""
        ttl = int(seconds)
        now = self._clock()
        with self._lock:
            lease, made, count = self._leases.get(ttl, (0, 0.0, 0))
            if not lease or now - made > SHARED_SECONDS or count >= SHARED_OBJECTS:
                lease, made, count = self._client.grant_lease(ttl + int(SHARED_SECONDS)), now, 0
            self._leases[ttl] = lease, made, count + 1
        return lease

    def forget(self) -> None:
        """Make new ones: one that was given is not there any more."""
        with self._lock:
            self._leases.clear()
