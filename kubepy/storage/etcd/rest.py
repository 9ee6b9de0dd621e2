"""The newest revisions of which it is known that they have written no object of a cluster.

A command asks what has changed since the controllers' checkpoint, and mostly that is nothing: the
checkpoint itself was saved since, and the election given back. To hear so from etcd's history costs
up to 100 ms, since etcd serves watches of the past as seldom as that. So whoever writes own keys
alone notes in the same transaction, in ``/kubepy/rest``, which revisions it knows to be such:
``SINCE UNTIL``.

Nobody knows the revision of its own transaction before it is done. But whoever reads the note sees
it: it is the key's mod_revision. If that is UNTIL + 1, nobody has written in between, and the note
holds for it as well; if it is the newest revision too, the note tells of everything after SINCE. A
write of anybody else, who may know nothing of this, makes the numbers differ. So nobody is trusted,
and where two write notes at once no condition is needed: the second one comes too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kubepy.storage.etcd.client import Put
from kubepy.storage.etcd.errors import EtcdError

if TYPE_CHECKING:
    from kubepy.storage.etcd.client import (
        Compare,
        EtcdClient,
        KeyValue,
        Operation,
        TxnResult,
    )


class Rest(NamedTuple):
    """No revision after ``since``, up to ``until``, has written an object of the cluster."""

    since: int
    until: int


class RestNotes:
    """The note of one cluster, and what this process knows by itself. Any thread may use it.

    :param key: the key of the note.
    """

    def __init__(self, client: EtcdClient, key: bytes) -> None:
        self._client = client
        self._key = key
        self._known: Rest | None = None  # up to the newest revision that this process has seen

    def newest(self) -> tuple[int, Rest]:
        """Return the newest revision, and what is noted, which may end before it."""
        kv, revision = self._client.get(self._key)
        noted = _read(kv) if kv is not None else Rest(0, 0)
        self.learn(Rest(revision, revision))
        self.learn(noted)
        return revision, noted

    def learn(self, rest: Rest) -> None:
        """Take in what an answer of etcd tells. Any revision that was seen is a rest that begins
        and ends with it."""
        known = self._known
        if known is None or (rest.until, -rest.since) > (known.until, -known.since):
            self._known = rest

    def write(
        self,
        compares: Sequence[Compare],
        operations: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> TxnResult:
        """Write own keys alone, as :meth:`EtcdClient.txn` does, and the note with them."""
        if self._known is None:
            self.newest()
        known = self._known
        assert known is not None
        text = f"{known.since} {known.until}"
        note = Put(self._key, text.encode())
        result = self._client.txn(compares, [*operations, note], failure)
        self.learn(Rest(result.revision, result.revision))
        if result.succeeded:
            self.learn(_after_write(known, result.revision))
        return result

    def note(self, rest: Rest) -> None:
        """Note for others what was read from etcd's history."""
        self.learn(rest)
        with suppress(EtcdError):  # the next one reads what this one has read
            self.write([], [])


def _read(kv: KeyValue) -> Rest:
    text = kv.value.decode()
    since, _, until = text.partition(" ")
    noted = Rest(int(since), int(until))
    return _after_write(noted, kv.mod_revision)


def _after_write(known: Rest, revision: int) -> Rest:
    """Return what is known after a write of own keys alone: it reaches up to that if the write was
    the next one in etcd."""
    if revision == known.until + 1:
        return Rest(known.since, revision)
    return known
