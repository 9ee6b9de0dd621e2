"""The writes of a transaction, one object after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.storage.errors import ConflictError, StorageError
from kubepy.storage.etcd.client import Compare, Delete, Get, Operation, Put, RangeResult
from kubepy.storage.etcd.errors import EtcdError
from kubepy.storage.etcd.ownkeys import dump_entries, dump_settings, dump_text
from kubepy.storage.etcd.rest import Rest
from kubepy.storage.etcd.source import RangeSource
from kubepy.storage.memory import MemoryTransaction
from kubepy.storage.model import ADDED, DELETED, MODIFIED, Key, LogEntry, Object, set_version
from kubepy.storage.state import ObjectRecord, State

if TYPE_CHECKING:
    from collections.abc import Collection

    from kubepy.storage.etcd.client import PendingTxn, TxnResult
    from kubepy.storage.etcd.keyspace import Keyspace
    from kubepy.storage.etcd.leases import HeldLock, SharedLeases
    from kubepy.storage.etcd.writeorder import WriteOrder
    from kubepy.storage.timeline import TimelineEntry, TimelineRecorder
    from kubepy.storage.transaction import TransactionEntry

MAX_VALUE = 1_400_000  # bytes of an object: etcd takes requests of 1.5 MiB
MAX_RIDING = 100_000  # bytes of what may be written along with an object
MAX_OPERATIONS = 100  # of a transaction: etcd takes 128
LONGEST_LEASE = 1e8  # seconds: what is to last longer has no end
WINDOW = 64  # transactions that are under way at once, of those whose order does not matter
NO_LEASE = 5  # etcd's code where a lease is not there
Operations = dict[bytes, Operation]  # by key: etcd takes no two writes of one


class KeyWrite(NamedTuple):
    """One object that a transaction changes.

    :ivar predicted: the revision that it has within the transaction.
    :ivar before: the object as it was read; None where there was none.
    :ivar json: the object; None: it is removed.
    :ivar entry: of the change log.
    :ivar obj: the object, where the transaction has written it.
    :ivar is_passed: the transaction has written the object again later.
    """

    key: Key
    predicted: int
    before: ObjectRecord | None
    json: str | None
    expires: float | None
    entry: LogEntry
    obj: Object | None
    is_passed: bool = False


class EtcdTransaction(MemoryTransaction):
    """Changes to a store in etcd.

    Of several writes of an object the last one is committed, at its place. Where an object is a
    record of what happened to others, these are committed before it as they were then, too.

    :param order: see :class:`WriteOrder`.
    :ivar values: the small values, each with the newest revision when it was set.
    """

    foresees_revision = False  # several writes of an object are one, and others write between

    def __init__(
        self,
        state: State,
        volatile: Mapping[str, float],
        now: Callable[[], float],
        recorder: TimelineRecorder | None,
        order: WriteOrder,
    ) -> None:
        super().__init__(state, volatile, now, recorder)
        self._order = order
        self._passed: list[KeyWrite] = []
        self._last_record = 0  # the revision of the last write of a record
        self.base = state.revision
        self.recorder = recorder
        self.values: list[tuple[int, str, str | None]] = []
        self._led_to: int | None = None

    @property
    def revision(self) -> int:
        """The newest revision at the start, then that of each write as it is predicted. After the
        end: up to where the transaction knows all that has happened. It is that of its last write,
        or that before the first write of somebody else among its own."""
        return self._revision if self._led_to is None else self._led_to

    def lead_to(self, revision: int) -> None:
        self._led_to = revision

    def read_ahead(self, keys: Collection[Key]) -> None:
        """Read objects together that will be asked for one by one."""
        source = self._state.source
        if isinstance(source, RangeSource):
            unread = [key for key in keys if key not in self._entries]
            source.read_ahead(unread)

    def load_all(self, resource: str, namespace: str | None) -> Iterable[ObjectRecord]:
        source = self._state.source
        if namespace is None and isinstance(source, RangeSource):
            source.read_whole(resource)
        return super().load_all(resource, namespace)

    def set_values(self, meta: Mapping[str, str | None], settings: Mapping[str, Any]) -> None:
        """Set small values, which are written along with the object that is changed next."""
        self.meta.update(meta)
        self.settings.update(settings)
        self.values += [(self._revision, name, value) for name, value in meta.items()]

    def all_settings(self) -> Object:
        """Return the settings with those that were set."""
        settings = {**self._state.settings, **self.settings}
        return {name: value for name, value in settings.items() if value is not None}

    def meta_value(self, name: str) -> str | None:
        """Return a small value as it is in the transaction."""
        if name in self.meta:
            return self.meta[name]
        return self._state.meta_value(name)

    def _put(
        self, key: Key, entry: TransactionEntry[ObjectRecord], obj: Object, text: str | None
    ) -> Object:
        if key in self._touched:
            self._pass(key, entry)
        stored = super()._put(key, entry, obj, text)
        if self._order.is_record(key):
            self._last_record = self._revision
        return stored

    def _pass(self, key: Key, entry: TransactionEntry[ObjectRecord]) -> None:
        """Keep an object as it was written before, if a record was written since, or if it is one
        and others were."""
        last = self._revision if self._order.is_record(key) else self._last_record
        if entry.written is None or entry.revision >= last:
            return
        is_new = entry.before is None or bool(entry.deleted_at)
        log = LogEntry(entry.revision, ADDED if is_new else MODIFIED, *key, None)
        before = None if is_new else entry.before
        self._passed.append(
            KeyWrite(
                key, entry.revision, before, entry.json, entry.expires, log, entry.written, True
            )
        )

    def writes(self) -> list[KeyWrite]:
        """Return what is to be written, in order. An object that was replaced by another of its
        name is two writes."""
        by_key = {change.key: change for change in self.changed()}
        deleted = {
            Key(*entry[2:5]): entry.revision for entry in self.log() if entry.type == DELETED
        }
        writes = [
            write
            for write in self._passed
            if write.key in by_key and write.predicted > deleted.get(write.key, 0)
        ]
        gone: set[Key] = set()
        for entry in self.log():
            change = by_key[Key(*entry[2:5])]
            before, text, expires = change.before, change.json, change.expires
            if entry.type == DELETED:
                gone.add(change.key)
                text = expires = None
            elif change.key in gone:
                before = None
            obj = change.object if text is not None else None
            writes.append(KeyWrite(change.key, entry.revision, before, text, expires, entry, obj))
        return sorted(writes, key=_predicted)


class CommitContext(NamedTuple):
    """The parts of a store that a commit needs.

    :ivar locks: what this process holds: with any of them lost nothing is written.
    :ivar leases: of volatile objects; None in a cluster with a clock of its own.
    :ivar tell: is called with each object that was written, and its revision.
    """

    keyspace: Keyspace
    locks: tuple[HeldLock, ...]
    leases: SharedLeases | None
    volatile: Mapping[str, float]
    tell: Callable[[KeyWrite, int], None]
    order: WriteOrder


class Sent(NamedTuple):
    """A transaction of etcd that is under way, and what it consists of."""

    write: KeyWrite
    compares: list[Compare]
    operations: list[Operation]
    pending: PendingTxn


class EtcdCommit:
    """Writes what a transaction has changed, in order: each write waits for those before it. Only
    objects whose order does not matter are under way together; a removal is always alone."""

    def __init__(self, context: CommitContext, changes: EtcdTransaction) -> None:
        self._context = context
        self._own = context.keyspace.own
        self._changes = changes
        self._values = changes.values[::-1]  # what is written next is last
        self._entries = changes.timeline[::-1]
        self._revisions: list[int] = []  # of all that was written
        self._newest: dict[Key, int] = {}  # the revisions of what was written
        self._under_way: list[Sent] = []
        self._last_values: dict[str, str | None] = {}  # of what is written together
        self._is_alone = True

    def run(self) -> None:
        """Write everything. Raises ConflictError at the first object that somebody else has
        changed: what comes before it is written."""
        try:
            for together in self._groups():
                self._write_together(together)
            self._write_rest()
        finally:
            self._changes.lead_to(self._reached())

    def _groups(self) -> Iterator[list[KeyWrite]]:
        """Yield all writes in order, those together that may be under way at once."""
        together: list[KeyWrite] = []
        keys: set[Key] = set()
        present_side: str | None = ""
        for write in self._changes.writes():
            side = self._side(write)
            is_free = side is not None and present_side is not None
            is_opposed = "" not in (side, present_side) and side != present_side
            is_over = not is_free or is_opposed or write.key in keys or len(together) == WINDOW
            if together and is_over:
                yield together
                together = []
                keys.clear()
                present_side = ""
            together.append(write)
            keys.add(write.key)
            present_side = side if side is None else side or present_side
        if together:
            yield together

    def _side(self, write: KeyWrite) -> str | None:
        """Return on which side a write is that others may be under way with, "" for none; None for
        one that is to be alone."""
        order = self._context.order
        if write.obj is None or order.is_record(write.key):
            return None
        if not order.is_unordered(write.key, write.obj):
            return None
        return order.side(write.key, write.obj)

    def _write_together(self, together: Sequence[KeyWrite]) -> None:
        """Write objects whose order does not matter, or one. Each small value is the last that is
        set before any of them, so that it does not matter which is written last."""
        last = together[-1].predicted
        self._last_values.clear()
        for revision, name, value in reversed(self._values):
            if revision >= last:
                break
            self._last_values[name] = value
        self._is_alone = len(together) == 1
        for write in together:
            self._write_object(write)
        self._wait()

    def _reached(self) -> int:
        """Return the revision up to which all writes are those of this transaction."""
        revision = self._changes.base
        for written in sorted(self._revisions):
            if written != revision + 1:
                break
            revision = written
        return revision

    def _write_object(self, write: KeyWrite) -> None:
        riding = self._riding(write.predicted)
        riding |= self._expiry(write)
        operation = self._operation(write)
        if _size(riding) > MAX_RIDING or len(riding) > MAX_OPERATIONS:
            self._wait()
            self._write_own(riding)
            riding = {}
        path = self._context.keyspace.keys.of(write.key)
        before = write.before.revision if write.before is not None else 0
        expected = self._newest.get(write.key, before)
        compares, operations = [Compare(path, expected)], [*riding.values(), operation]
        if self._is_alone:
            self._written(write, self._send(compares, operations, write))
        else:
            self._submit(write, compares, operations)

    def _submit(
        self, write: KeyWrite, compares: list[Compare], operations: list[Operation]
    ) -> None:
        """Send a write without waiting for its answer."""
        compares = self._with_locks(compares)
        pending = self._context.keyspace.client.submit(compares, operations, self._reads())
        self._under_way.append(Sent(write, compares, operations, pending))

    def _wait(self) -> None:
        """Wait for all writes that are under way, and tell of them in the order of their revisions.
        Raises the error of the first that has failed."""
        sent, self._under_way = self._under_way, []
        failures: list[Exception] = []
        done: list[tuple[int, KeyWrite]] = []
        for each in sent:
            try:
                result = self._result(each)
                done.append((self._checked(result, each.write), each.write))
            except StorageError as error:
                failures.append(error)
        for revision, write in sorted(done, key=_revision_of):
            self._written(write, revision)
        if failures:
            raise failures[0]

    def _result(self, sent: Sent) -> TxnResult:
        try:
            return sent.pending.result()
        except EtcdError as error:
            return self._with_another_lease(error, sent.write, sent.compares, sent.operations)

    def _written(self, write: KeyWrite, revision: int) -> None:
        self._newest[write.key] = revision if write.json is not None else 0
        if write.is_passed and write.obj is not None:
            set_version(write.obj, revision)
        elif write.json is not None:
            self._changes.settle(write.key, revision)
        self._context.tell(write, revision)

    def _write_rest(self) -> None:
        """Write the last small values, the settings, what the timeline has of objects that came
        and went."""
        operations = self._riding(None)
        if self._changes.settings:
            text = dump_settings(self._changes.all_settings())
            operations[self._own.settings] = Put(self._own.settings, text)
        self._write_own(operations)

    def _write_own(self, operations: Operations) -> None:
        """Write what no client can see, in parts that etcd takes."""
        some: list[Operation] = []
        size = 0
        for operation in operations.values():
            length = _length(operation)
            if some and (size + length > MAX_VALUE or len(some) == MAX_OPERATIONS):
                self._send([], some, None)
                some, size = [], 0
            some.append(operation)
            size += length
        if some:
            self._send([], some, None)

    def _riding(self, predicted: int | None) -> Operations:
        """Take the small values that were set before an object, and the entries of the timeline up
        to it. None: all that are left."""
        operations: Operations = {}
        while self._values and (predicted is None or self._values[-1][0] < predicted):
            _, name, value = self._values.pop()
            if predicted is not None:
                value = self._last_values[name]
            key = self._own.meta_key(name)
            operations[key] = Delete(key) if value is None else Put(key, dump_text(value))
        entries: list[TimelineEntry] = []
        while self._entries and (predicted is None or self._entries[-1].revision <= predicted):
            entries.append(self._entries.pop())
        if entries:
            key = self._own.new_timeline_key()
            operations[key] = Put(key, dump_entries(entries))
        return operations

    def _expiry(self, write: KeyWrite) -> Operations:
        """Say when a volatile object is over, in a cluster with a clock of its own."""
        operations: Operations = {}
        if self._context.leases is not None:
            return operations
        before = write.before.expires if write.before is not None else None
        if before is not None:
            key = self._own.expiry(before, write.key)
            operations[key] = Delete(key)
        if write.expires is not None and self._lifetime(write) is not None:
            key = self._own.expiry(write.expires, write.key)
            operations[key] = Put(key, b"")
        return operations

    def _lifetime(self, write: KeyWrite) -> float | None:
        """Return after how many seconds an object is over; None for one that has no end."""
        seconds = self._context.volatile.get(write.key.resource)
        if seconds is None or seconds > LONGEST_LEASE:
            return None
        return seconds

    def _operation(self, write: KeyWrite) -> Operation:
        path = self._context.keyspace.keys.of(write.key)
        if write.json is None:
            return Delete(path)
        value = self._context.keyspace.values.encode(write.key, write.json)
        if len(value) > MAX_VALUE:
            raise EtcdError(
                f"{write.key.place}: with {len(value)} bytes it is larger than etcd takes "
                f"({MAX_VALUE})",
                3,
            )
        lease = 0
        seconds = self._lifetime(write)
        if seconds is not None and self._context.leases is not None:
            lease = self._context.leases.lease(seconds)
        return Put(path, value, lease)

    def _send(
        self, compares: list[Compare], operations: list[Operation], write: KeyWrite | None
    ) -> int:
        """Write something if nobody has changed the object, and all locks are held; return the
        revision. Raises ConflictError, LockTimeoutError."""
        compares = self._with_locks(compares)
        keyspace = self._context.keyspace
        if write is None:
            return self._checked(keyspace.rest.write(compares, operations, self._reads()), None)
        try:
            result = keyspace.client.txn(compares, operations, self._reads())
        except EtcdError as error:
            result = self._with_another_lease(error, write, compares, operations)
        return self._checked(result, write)

    def _with_locks(self, compares: list[Compare]) -> list[Compare]:
        """Add the conditions that all locks are held. Raises LockTimeoutError."""
        for lock in self._context.locks:
            if lock.is_lost():
                raise lock.lost()
        return [*compares, *(lock.compare for lock in self._context.locks)]

    def _reads(self) -> list[Get]:
        """Return what tells which condition does not hold."""
        return [Get(lock.compare.key) for lock in self._context.locks]

    def _with_another_lease(
        self,
        error: EtcdError,
        write: KeyWrite,
        compares: list[Compare],
        operations: list[Operation],
    ) -> TxnResult:
        """Write an object again whose lease is not there any more: an administrator has revoked it.
        Raises other errors again."""
        if error.code != NO_LEASE or self._context.leases is None:
            raise error
        self._context.leases.forget()
        client = self._context.keyspace.client
        return client.txn(compares, [*operations[:-1], self._operation(write)], self._reads())

    def _checked(self, result: TxnResult, write: KeyWrite | None) -> int:
        """Return the revision of a write. Raises ConflictError, LockTimeoutError."""
        if not result.succeeded:
            for lock, answer in zip(self._context.locks, result.responses, strict=True):
                if not _is_held(lock, answer):
                    raise lock.lost()
            place = write.key.place if write is not None else "a value"
            raise ConflictError(f"{place} was changed by somebody else")
        self._context.keyspace.rest.learn(Rest(result.revision, result.revision))
        self._revisions.append(result.revision)
        return result.revision


def _predicted(write: KeyWrite) -> int:
    return write.predicted


def _revision_of(done: tuple[int, KeyWrite]) -> int:
    return done[0]


def _is_held(lock: HeldLock, answer: object) -> bool:
    assert isinstance(answer, RangeResult)
    return bool(answer.kvs) and answer.kvs[0].create_revision == lock.compare.value


def _size(operations: Operations) -> int:
    return sum(map(_length, operations.values()))


def _length(operation: Operation) -> int:
    if isinstance(operation, Put):
        return len(operation.value)
    return 0
