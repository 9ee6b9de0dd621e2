"""Histories of operations of several processes, and a check that they are linearizable.

Every key is checked by itself as Wing and Gong do: by a search for an order of its operations in
which each has its result, and none comes before one that ended before it began. An operation of a
killed process may have happened or not. Lists are also checked against the revisions of all keys:
each is a snapshot of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

NEVER = 1 << 62  # the end of an operation that was never heard of again
CREATE, UPDATE, DELETE, GET = "create", "update", "delete", "get"
OK, EXISTS, MISSING, CONFLICT, UNKNOWN = "ok", "exists", "missing", "conflict", "unknown"
OVERTAKEN = "overtaken"  # somebody else has written, or removed, the object meanwhile


class State(NamedTuple):
    """An object's value and revision; the revision is 0 if the writer was killed before it could
    report it."""

    value: str
    revision: int


class Operation(NamedTuple):
    """One operation on one key.

    :param expected: the revision that an update or deletion requires, 0 for none.
    :param state: the object of a read, or the result of a successful write (its revision).
    """

    start: int
    end: int
    kind: str
    key: str
    result: str
    value: str = ""
    expected: int = 0
    state: State | None = None


class Listing(NamedTuple):
    """A list of all keys."""

    start: int
    end: int
    revision: int
    states: dict[str, State]


def is_linearizable(operations: Iterable[Operation]) -> bool:
    """Report whether the operations on one key, which begin without an object, have a valid
    order."""
    ordered = sorted(operations)
    return _Search(ordered).run()


class _Search:
    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations
        self._seen: set[tuple[int, State | None]] = set()

    def run(self) -> bool:
        """Search depth first; each bit of ``done`` stands for an operation already in the order."""
        pending: list[tuple[int, State | None]] = [(0, None)]
        required = sum(
            1 << index for index, one in enumerate(self._operations) if one.result != UNKNOWN
        )
        while pending:
            done, state = pending.pop()
            if done & required == required:
                return True
            if (done, state) in self._seen:
                continue
            self._seen.add((done, state))
            pending += [
                (done | 1 << index, after)
                for index in self._next(done)
                for after in after_operation(self._operations[index], state)
            ]
        return False

    def _next(self, done: int) -> list[int]:
        """Return the operations that may come next: they began before any other remaining one
        ended."""
        found: list[int] = []
        earliest = NEVER
        for index, operation in enumerate(self._operations):
            if done >> index & 1:
                continue
            if operation.start > earliest:
                break
            found.append(index)
            earliest = min(earliest, operation.end)
        return found


def after_operation(operation: Operation, state: State | None) -> Iterator[State | None]:
    """Yield the states after an operation with this result; none if it cannot have had it in this
    state."""
    if operation.kind == GET:
        yield from _after_read(operation.state, state)
    elif operation.result == EXISTS:
        if state is not None:
            yield state
    elif operation.result == MISSING:
        if state is None:
            yield None
    elif operation.result == CONFLICT:
        if state is not None and state.revision != operation.expected:
            yield state
    elif operation.result == OVERTAKEN:
        if operation.expected == 0 or state is None or state.revision != operation.expected:
            yield state
    elif operation.kind == CREATE:
        if state is None:
            yield _made(operation)
    elif state is not None and _is_expected(operation, state):
        yield None if operation.kind == DELETE else _made(operation)


def _after_read(seen: State | None, state: State | None) -> Iterator[State | None]:
    if seen is None or state is None:
        if seen is state:
            yield state
    elif seen.value == state.value and state.revision in (0, seen.revision):
        yield seen


def _made(operation: Operation) -> State:
    return State(operation.value, operation.state.revision if operation.state else 0)


def _is_expected(operation: Operation, state: State) -> bool:
    return operation.expected == 0 or state.revision in (0, operation.expected)


def check_keys(operations: Iterable[Operation], listings: Iterable[Listing]) -> Iterator[str]:
    """Yield the keys without a linearization; a list is a read of every key."""
    by_key: dict[str, list[Operation]] = {}
    for operation in operations:
        by_key.setdefault(operation.key, []).append(operation)
    for listing in listings:
        for key, found in by_key.items():
            found.append(
                Operation(listing.start, listing.end, GET, key, OK, state=listing.states.get(key))
            )
    for key, found in sorted(by_key.items()):
        if not is_linearizable(found):
            yield f"the {len(found)} operations on {key} are not linearizable"


def check_revisions(operations: list[Operation]) -> Iterator[str]:
    """Yield revisions that were given twice, or do not rise with time."""
    writes = sorted(
        (one for one in operations if one.result == OK and one.kind != GET), key=lambda one: one.end
    )
    seen: set[int] = set()
    highest: list[tuple[int, int]] = []  # the end of a write, and the highest revision until then
    for write in writes:
        revision = _revision(write)
        if revision in seen:
            yield f"revision {revision} was given twice"
        seen.add(revision)
        highest.append((write.end, max(revision, highest[-1][1] if highest else 0)))
    for write in writes:
        before = max((revision for end, revision in highest if end < write.start), default=0)
        if _revision(write) <= before:
            yield (
                f"{write.kind} of {write.key} has revision {_revision(write)}, though {before} "
                f"was given before it"
            )


def check_listings(operations: list[Operation], listings: list[Listing]) -> Iterator[str]:
    """Yield lists that lack an object of their revision, or have a later one."""
    writes = [one for one in operations if one.result == OK and one.kind != GET]
    lost_deletions = {one.key for one in operations if one.result == UNKNOWN and one.kind == DELETE}
    for listing in listings:
        for key, state in listing.states.items():
            if state.revision > listing.revision:
                yield (
                    f"a list of revision {listing.revision} has {key} of revision {state.revision}"
                )
        for write in writes:
            if wrong := _wrong_in_list(write, listing, writes, lost_deletions):
                yield f"a list of revision {listing.revision} {wrong}"


def _wrong_in_list(
    write: Operation, listing: Listing, writes: list[Operation], lost_deletions: set[str]
) -> str:
    revision, shown = _revision(write), listing.states.get(write.key)
    if revision > listing.revision:
        return (
            f"began after {write.kind} of {write.key} of revision {revision}"
            if write.end < listing.start
            else ""
        )
    if write.kind == DELETE:
        return (
            f"still has {write.key}, deleted at {revision}"
            if shown and shown.revision < revision
            else ""
        )
    if shown is None:
        is_deleted = write.key in lost_deletions or any(
            one.kind == DELETE
            and one.key == write.key
            and revision < _revision(one) <= listing.revision
            for one in writes
        )
        return "" if is_deleted else f"lacks {write.key} of revision {revision}"
    return (
        f"has {write.key} of {shown.revision}, not of {revision}"
        if shown.revision < revision
        else ""
    )


def _revision(write: Operation) -> int:
    assert write.state is not None
    return write.state.revision
