"""The work queues of all reconcilers, as the manager works them off: in turns.

The reconcilers take turns in the order given. In its turn each syncs the keys that were waiting
when the turn began, up to a few hundred: a DaemonSet then sees that many of its pods bound or
started at once. A round is over when the turn of the last one is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from kubepy.controlplane.summary import Due
from kubepy.runtime.checkpoint import Pending
from kubepy.runtime.contention import Party
from kubepy.runtime.reconcile import Key, Reconciler
from kubepy.runtime.workqueue import WorkQueue

KEYS_PER_TURN = 250
Entry = tuple[Reconciler, Key]
# Gets the key whose turn it is, and a function that lists the others that are ready; returns one of
# those, or None.
Chooser = Callable[[Entry, Callable[[], list[Entry]]], Entry | None]


class Queues:
    """The queues of some reconcilers: one key after the other, whose turn it is, what is due when.

    :ivar choose: where it is set, picks another of the keys that are ready in place of the one
        whose turn it is.
    :ivar restored: keys of a checkpoint that are due. They are queued once there are informers
        (:meth:`add_restored`).
    """

    def __init__(self, reconcilers: Sequence[Reconciler]) -> None:
        self.reconcilers = reconcilers
        self.restored: list[Pending] = []
        self.choose: Chooser | None = None
        self._by_name = {reconciler.name: reconciler.queue for reconciler in reconcilers}
        self._turn = len(reconcilers) - 1  # the position of the reconciler whose turn it is
        self._keys_left = 0  # of its keys, in this turn

    # --- keys

    def get(self) -> Entry | None:
        """Return the next key of the reconciler whose turn it is, or of the next one that has
        any."""
        entry = self._next()
        if entry is None or self.choose is None:
            return entry
        chosen = self.choose(entry, self._others)
        if chosen is None:
            return entry
        reconciler, key = entry
        reconciler.queue.take_back(key)
        other, other_key = chosen
        return other, other.queue.take(other_key)

    def _others(self) -> list[Entry]:
        """Return the keys that are ready beside the one that was handed out."""
        return [
            (reconciler, key) for reconciler in self.reconcilers for key in reconciler.queue.ready()
        ]

    def _next(self) -> Entry | None:
        for _ in range(len(self.reconcilers) + 1):
            reconciler = self.reconcilers[self._turn]
            if self._keys_left > 0:
                key = reconciler.queue.get()
                if key is not None:
                    self._keys_left -= 1
                    return reconciler, key
            self._turn = (self._turn + 1) % len(self.reconcilers)
            self._keys_left = min(len(self.reconcilers[self._turn].queue), KEYS_PER_TURN)
        # begin with the first, as a new process would
        self._turn = len(self.reconcilers) - 1
        self._keys_left = 0
        return None

    def has_failures(self) -> bool:
        """Return whether a key has failed, and not come to a good end since."""
        return any(queue.has_failures() for queue in self._by_name.values())

    def put_off(self, reconciler: Reconciler, key: Key, seconds: float) -> None:
        """Give a key back without a sync, until later."""
        reconciler.queue.add_after(key, seconds)
        reconciler.queue.done(key)

    def is_turn_over(self) -> bool:
        if not self._keys_left:
            return True
        return not len(self.reconcilers[self._turn].queue)

    def is_first_turn(self) -> bool:
        """Return whether it is the turn of the first reconciler."""
        return self._turn == 0

    def __len__(self) -> int:
        """Count the keys that are ready."""
        return sum(len(reconciler.queue) for reconciler in self.reconcilers)

    def has_keys(self) -> bool:
        return any(len(reconciler.queue) for reconciler in self.reconcilers)

    def skip_waits(self) -> bool:
        """Add the keys now whose delay is skippable; return whether a reconciler has any."""
        return any(reconciler.queue.skip_waits() for reconciler in self.reconcilers)

    def hold(self, party: Party, until: datetime, is_longest: bool) -> None:
        """Keep a controller from an object until a moment."""
        self._by_name[party.reconciler].hold(party.key, until, repeating=is_longest)

    def release(self, party: Party) -> None:
        self._by_name[party.reconciler].release(party.key)

    # --- moments

    def next_due(self) -> datetime | None:
        """Return when the next key falls due."""
        return self._earliest(WorkQueue.next_due)

    def next_single_due(self) -> datetime | None:
        """Return when the next key falls due that does not repeat."""
        return self._earliest(WorkQueue.next_single_due)

    def _earliest(self, due_of: Callable[[WorkQueue[Key]], datetime | None]) -> datetime | None:
        moments = map(due_of, self._by_name.values())
        return min((moment for moment in moments if moment is not None), default=None)

    def all_due(self) -> list[Due]:
        """Return the keys that fall due later, earliest first."""
        due = [
            Due(moment, reconciler.name, key)
            for reconciler in self.reconcilers
            for key, moment in reconciler.queue.pending()
            if moment
        ]
        return sorted(due, key=lambda due: due.time)

    # --- from process to process

    def position(self) -> tuple[int, ...]:
        """Return whose turn it is and how many keys are left to it; () between two rounds."""
        if not self.has_keys():
            return ()
        return self._turn, self._keys_left

    def pending(self) -> Iterator[Pending]:
        """Yield all keys that are waiting, as a checkpoint has them."""
        yield from self.restored
        for name, queue in self._by_name.items():
            for key, due in queue.pending():
                is_put_off = due is not None
                yield Pending(
                    name,
                    key,
                    due,
                    is_put_off and queue.can_skip(key),
                    is_put_off and queue.is_repeating(key),
                    queue.failures(key),
                )

    def restore(self, pending: Iterable[Pending], position: tuple[int, ...], now: datetime) -> None:
        """Go on where the queues of a checkpoint were."""
        if position:
            self._turn, self._keys_left = position
        for entry in pending:
            queue = self._by_name[entry.reconciler]
            queue.set_failures(entry.key, entry.failures)
            if entry.due is None or entry.due <= now:
                self.restored.append(entry)
                continue
            queue.add_after(
                entry.key,
                (entry.due - now).total_seconds(),
                skippable=entry.skippable,
                repeating=entry.repeating,
            )

    def add_restored(self) -> None:
        for entry in self.restored:
            self._by_name[entry.reconciler].add(entry.key)
        self.restored.clear()
