"""The manager: feeds the reconcilers from the change log and runs their queues.

Level-based and single-threaded. One batch is one transaction: changes are observed and handed to
the handlers, then keys are synced, and the writes of each sync are observed before the next one
runs. So informers never lag behind inside a batch, and expectations are met as soon as their sync
has ended.

The reconcilers take turns in the order given. In its turn each syncs the keys that were waiting
when the turn began, up to a few hundred: a DaemonSet then sees that many of its pods bound or
started at once. A batch ends, if it can, after the first reconciler's turn. With the kubelet there,
a pod is mostly made, bound and started within one transaction, and its file is written once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import Clock
from kubepy.api.errors import AlreadyExists, Conflict, Expired, Status
from kubepy.api.meta import Object, name_of, namespace_of, uid_of
from kubepy.apiserver.client import CRDS, Batch, Client
from kubepy.controlplane.summary import Due, Summary, SyncFailure
from kubepy.controlplane.users import user_of
from kubepy.runtime.checkpoint import (
    CONTENTION,
    EVENTS,
    UNWATCHED,
    Checkpoint,
    Pending,
    dump,
    parse,
)
from kubepy.runtime.contention import Contention, Party
from kubepy.runtime.reconcile import (
    EVERY_RESOURCE,
    Handler,
    Informers,
    Key,
    Reconciler,
    Remembering,
    WatchEvent,
)
from kubepy.runtime.workqueue import WorkQueue
from kubepy.storage import StorageError

if TYPE_CHECKING:
    from kubepy.storage.links import RecordedView

# A batch ends with the first reconciler's turn once it has taken BATCH_SECONDS × (1 + BEGIN_SHARE ×
# the seconds that it took to begin, which grow with the folder), …
BATCH_SECONDS = 0.5
BEGIN_SHARE = 20
MAX_BATCH_SECONDS = 2.0  # … and after any sync once it has taken so long: other writers wait
SHORT_RUN_SECONDS = 1.0  # a run as short as this looks for edits from outside only once
# a batch that begins so soon after a look for edits from outside leaves others to the next poll
LOOK_SECONDS = 0.05
KEYS_PER_TURN = 250
RETRY_PATIENCE = 0.1  # back-offs this short are waited for: the second try mostly succeeds
POLL_SECONDS = 0.05  # how often a waiting manager polls the change log …
MOVED_POLL_SECONDS = 0.01  # … or the clock that another process moves from moment to moment …
POLL_COST_RATIO = 20  # … unless polling takes more than a twentieth of that
MAX_POLL_SECONDS = 1.0
QUIET_SECONDS = 1.0  # how often it polls where it is known that nothing has changed
LISTEN_SECONDS = 0.2  # how long it listens for changes before it looks whether it is to stop
MAX_CONFLICTS = 20  # in a row
# Writes of controllers without a moment in which nothing is left to do: in a command that reads,
# after which the rest is left to the next one (some 5,000 pods get ready), and in one that waits or
# predicts (25,000 pods are replaced).
READ_WRITES, WAIT_WRITES = 20_000, 300_000


class CheckpointStore(NamedTuple):
    """Loads and saves the text of a checkpoint; ``build_manager`` connects it to the state folder.

    ``identity``: what a checkpoint must be of: the names of the reconcilers, and the settings that
    they go by.
    """

    load: Callable[[], str | None]
    save: Callable[[str], None]
    identity: Sequence[str] = ()


class ListWatch(NamedTuple):
    """The objects that controllers work with, as the store has recorded them.

    ``is_served``: tells of which resources; files of a kind that nothing defines are left alone.
    """

    view: RecordedView
    is_served: Callable[[str], bool] = lambda resource: True


class Horizon(NamedTuple):
    """How far time goes on while the controllers work.

    :param until: the moment at which it stands in the end; None: there is no limit.
    :param settled: it stops where nothing falls due within so many seconds but what repeats; None:
        it does not.
    :param patience: without ``until`` it stops where it would let something repeat for more seconds
        than these.
    """

    until: datetime | None = None
    settled: float | None = None
    patience: float = math.inf

    def next_moment(
        self, now: datetime, due: datetime | None, single: datetime | None
    ) -> datetime | None:
        """Return the moment to which time goes next, None where it has gone far enough.

        :param due: when the next key falls due; ``single``: the next one that does not repeat.
        """
        if self.until is not None and now >= self.until:
            return None
        if self.settled is not None and (
            single is None or (single - now).total_seconds() > self.settled
        ):
            return None
        repeats = self.until is None and single is not None and due is not None and due < single
        if repeats and single is not None and (single - now).total_seconds() > self.patience:
            return None
        return min((moment for moment in (due, self.until) if moment is not None), default=None)


class Manager:
    """Runs reconcilers over one cluster.

    :param source: the objects that informers read.
    :param checkpoints: keeps the manager's checkpoint; without, it reconciles every object when it
        starts.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        reconcilers: Sequence[Reconciler],
        *,
        source: ListWatch,
        checkpoints: CheckpointStore | None = None,
    ) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._reconcilers = reconcilers
        self._remembering = [
            reconciler for reconciler in reconcilers if isinstance(reconciler, Remembering)
        ]
        self._view, self._is_served = source
        self._checkpoints = checkpoints
        self.commits_each_turn = False  # for whoever watches: pods are seen Pending before they run
        # Waits until a file has changed, at most so many seconds; returns False, at once, where
        # that cannot be told.
        self.listen: Callable[[float], bool] = lambda seconds: False
        self.is_awaited: Callable[[], bool] = lambda: (
            False
        )  # another writer waits: a batch ends after a sync
        self.polled: Callable[[], None] = lambda: (
            None
        )  # is called when a wait has looked for changes
        # When the command that runs this manager began (time.monotonic), and when the present run
        # did: while that is not long ago, a look at all files since then is recent enough.
        self.begun = self._began = -math.inf
        self._is_short_of_room = False  # the disk was full: a batch is one sync
        self._batches_without_room = 0  # that have failed in a row
        self._conflicts = (
            0  # batches in a row that failed because another program wrote to the folder meanwhile
        )
        self._users = {
            reconciler.name: user_of(reconciler.name, informers) for reconciler in reconcilers
        }
        self._queues = {reconciler.name: reconciler.queue for reconciler in reconcilers}
        self._contention = Contention(
            clock.now, self._hold, lambda party: self._queues[party.reconciler].release(party.key)
        )
        self._acting: Party | None = None  # the sync whose writes are observed
        self._handlers: dict[str, list[Handler]] = {}  # by resource
        self._handlers_of = cache(
            lambda resource: [  # those of a resource, and those of every resource
                *self._handlers.get(resource, ()),
                *self._handlers.get(EVERY_RESOURCE, ()),
            ]
        )
        for reconciler in reconcilers:
            for resource, handler in reconciler.handlers().items():
                self._handlers.setdefault(resource, []).append(handler)
        # The reconciler whose turn it is, and the number of its keys that are left in this turn.
        self._turn, self._keys_left = len(reconcilers) - 1, 0
        self._revision = 0  # changes up to it have been delivered, or are in the inbox
        self._delivered = 0  # changes up to it have been delivered
        self._seen = 0  # the revision of the informers when the last batch was committed
        self._inbox: list[WatchEvent] = []
        self._carried: list[
            Pending
        ] = []  # keys from a checkpoint that are due, to be queued once there are informers
        self._loaded = False  # the informers hold the cluster as it was at _revision
        self._polled = 0.0  # when a wait has polled last
        # how long the next wait does not listen, so that polling takes no more than its share
        self._rest = 0.0
        self._stale = False  # the informers cannot be trusted: list everything again
        self._saved: str | None = None  # the checkpoint that was read or written last
        self._summary = Summary()
        self._written = 0  # objects that were written since the controllers last had nothing to do
        self._most_writes = math.inf  # the bound of that in this run
        # How far the cluster's own time is moved, and how often in one batch: infinity unless
        # somebody looks at each moment.
        self._horizon, self._moves = Horizon(), 0.0

    # --- running

    def run_until_settled(
        self,
        quiet_for: float = 0.0,
        done: Callable[[], bool] = lambda: False,
        *,
        skip_waits: bool = False,
        most_writes: float = math.inf,
    ) -> Summary:
        """Work until nothing is left to do now, nor falls due within ``quiet_for`` seconds, or
        ``done()`` holds.

        Repeating keys are not waited for, as there would be no end.
        ``skip_waits``: skippable delays are not waited for. ``done`` is asked after each batch.
        ``most_writes``: as for :meth:`go_on`. Raises the errors of a transaction: LockTimeoutError,
        FolderError.
        """
        patience = quiet_for if self._clock.own else max(quiet_for, RETRY_PATIENCE)
        return self.go_on(
            Horizon(settled=patience), stop=done, skip_waits=skip_waits, most_writes=most_writes
        )

    def advance(
        self,
        until: datetime | None = None,
        *,
        settled: bool = False,
        done: Callable[[], bool] | None = None,
        stop: Callable[[], bool] = lambda: False,
        skip_waits: bool = False,
        most_writes: float = math.inf,
    ) -> Summary:
        """Work until a moment, at each moment on the way at which something falls due; None: only
        what is due now.

        The cluster's own time is moved, and stands at ``until`` in the end; the system's is waited
        for.

        :param settled: stop after the last thing that happens when all that is due later repeats
            for ever. Then ``until`` is only a limit, and None is no limit.
        :param done: see :meth:`go_on`, as for the others.
        """
        self._client.take_over_time()
        horizon = Horizon(
            until or (None if settled else self._clock.now()), math.inf if settled else None
        )
        return self.go_on(horizon, done, stop=stop, skip_waits=skip_waits, most_writes=most_writes)

    def go_on(
        self,
        horizon: Horizon,
        done: Callable[[], bool] | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
        skip_waits: bool = False,
        most_writes: float = math.inf,
    ) -> Summary:
        """Work, and go on with time from one moment at which something falls due to the next.

        :param done: ends it. If time is the cluster's own, it is asked whenever the work of a
            moment is done, otherwise after each batch.
        :param stop: ends it between two batches; the rest stays to be done.
        :param skip_waits: skippable delays are not waited for.
        :param most_writes: about so many objects are written without a moment in which nothing is
            left to do; then the rest stays to be done, and the summary says so.

        Raises the errors of a transaction: LockTimeoutError, FolderError.
        """
        self._summary = Summary()
        self._written, self._most_writes = 0, most_writes
        self._contention.noticed.clear()
        start = time.monotonic()
        self._began = self.begun if start - self.begun < SHORT_RUN_SECONDS else start
        self._resume()
        moves_each_time = 1 if done or skip_waits else math.inf
        self._horizon, self._moves = horizon, 0 if moves_each_time == 1 else math.inf
        is_over = stop if done is None or self._clock.own else lambda: stop() or done()
        interval = POLL_SECONDS
        while True:
            self._work(is_over)
            if is_over() or self._is_spent() or (done and done()):
                break
            if skip_waits and any(
                reconciler.queue.skip_waits() for reconciler in self._reconcilers
            ):
                continue
            moment = self._next_moment()
            if moment is None:
                break
            if self._clock.own is None:
                interval = self.wait_for_work(
                    min(interval, max((moment - self._clock.now()).total_seconds(), 0.0))
                )
            else:
                self._moves = moves_each_time
                self._run_batch()
        self._moves = 0
        self._summary.is_cut = self._is_cut()
        self._save()
        self._summary.contests = list(self._contention.noticed.values())
        due = [
            Due(due, reconciler.name, key)
            for reconciler in self._reconcilers
            for key, due in reconciler.queue.pending()
            if due
        ]
        self._summary.due = sorted(due, key=lambda due: due.time)
        return self._summary

    def is_settled(self) -> bool:
        """Return whether nothing is to be done now, nor falls due later but what repeats for
        ever."""
        return not self.has_work() and self._earliest(WorkQueue.next_single_due) is None

    def run(
        self,
        stop: Callable[[], bool],
        settled: Callable[[Summary], None] = lambda _: None,
        transient: tuple[type[Exception], ...] = (),
        failed: Callable[[Exception], None] = lambda _: None,
        *,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        """Work until ``stop()`` holds; it is asked between batches and while waiting.

        While ``paused()`` holds no new work is begun. ``settled`` is called whenever nothing is
        left to do now. An exception of a ``transient`` type is given to ``failed``, and after a
        pause the cluster is listed again.
        """
        pause = POLL_SECONDS
        while not stop():
            if paused():
                self._clock.sleep(POLL_SECONDS)
                continue
            try:
                settled(self.run_until_settled(done=stop))
                interval = POLL_SECONDS
                while not stop() and not self.has_work():
                    interval = self.wait_for_work(interval)
                pause = POLL_SECONDS
            except transient as error:
                failed(error)
                self._stale = True
                pause = min(2 * pause, MAX_POLL_SECONDS)
                self._clock.sleep(pause)

    def workload(self) -> tuple[int, int]:
        """Return how many objects this run has changed so far, and how many keys are queued now."""
        return self._summary.touched(), sum(
            len(reconciler.queue) for reconciler in self._reconcilers
        )

    def wait_for_work(self, seconds: float) -> float:
        """Wait until something has changed or is due, at most so long; return how long to wait next
        time.

        Polling the change log takes time that grows with the folder; the pause grows with it. Where
        the manager can listen, it waits out only that pause, and then until a file changes.
        """
        due = self._earliest(WorkQueue.next_due)
        until_due = (
            (due - self._clock.now()).total_seconds() if due and not self._clock.own else seconds
        )
        pause = max(min(seconds, until_due), 0.0)
        if self._rest:
            self._clock.sleep(rest := min(self._rest, pause))
            pause -= rest
        if not (listens := self.listen(pause)):
            self._clock.sleep(pause)
        start, shortest = (
            time.perf_counter(),
            MOVED_POLL_SECONDS if self._clock.own else POLL_SECONDS,
        )
        if start - self._polled < QUIET_SECONDS and self._client.is_quiet():
            self._rest = 0.0
            return LISTEN_SECONDS if listens else shortest
        self.poll()
        self.polled()
        self._polled = start
        cost = time.perf_counter() - start
        self._rest = POLL_COST_RATIO * cost if listens else 0.0
        return min(max(shortest, POLL_COST_RATIO * cost), MAX_POLL_SECONDS)

    def _work(self, done: Callable[[], bool]) -> None:
        """Run batches until nothing is left to do now, or ``done()`` holds."""
        while not done() and not self._is_spent():
            if self._stale or not self.has_work():  # a batch polls by itself when it begins
                self.poll(self._looked_within())
            if not self.has_work():
                return
            self._run_batch()

    def _is_spent(self) -> bool:
        """Tell whether this run has written as much as it may."""
        return self._written >= self._most_writes

    def _is_cut(self) -> bool:
        """Tell whether this run leaves work to be done now because it has written as much as it
        may."""
        return self._is_spent() and self.has_work()

    def has_work(self) -> bool:
        """Return whether something is to be done now."""
        return self._stale or bool(self._inbox) or bool(self._carried) or self._has_keys()

    def _has_keys(self) -> bool:
        return any(len(reconciler.queue) for reconciler in self._reconcilers)

    def _run_batch(self) -> None:
        """Run one transaction. When it fails nothing was written, but informers have observed it:
        they become stale. The revisions of a failed transaction are given again, to the writes of
        others."""
        start = time.monotonic()
        before = self._revision, self._delivered, self._saved
        try:
            self._client.observe_from(self._revision)
            with self._client.batch(
                looked_within=max(LOOK_SECONDS, self._looked_within())
            ) as batch:
                patience = BATCH_SECONDS * (1 + BEGIN_SHARE * (time.monotonic() - start))
                self._observe_outside(batch)
                passed = 0.0
                while not self._is_spent():
                    if (picked := self._next()) is None:
                        self._written = 0
                        if passed > patience or not self._move_clock():
                            break
                        continue
                    self._sync(*picked)
                    self._observe(batch.drain(), ours=True)
                    passed = time.monotonic() - start
                    if self._is_short_of_room:
                        break  # what is deleted makes room for the next one
                    is_turn_over = not (
                        self._keys_left and len(self._reconcilers[self._turn].queue)
                    )
                    if self.commits_each_turn:  # watchers see the same states on a slow machine
                        if is_turn_over or self.is_awaited():
                            break
                    elif (
                        is_turn_over and self._turn == 0 and passed > patience
                    ) or passed > MAX_BATCH_SECONDS:
                        break
                self._revision = self._delivered = self._client.revision()
                if self._clock.own or not self._has_keys():
                    self._save()  # in the same transaction, which costs next to nothing
                self._view.release()  # so that the index can be shortened when it is written
            self._seen, self._inbox = self._revision, []
            self._view.refresh()
            self._forget_gone()
        except Status as error:
            self._stale = True
            self._revision, self._delivered, self._saved = before
            self._began = time.monotonic()  # somebody has edited a file since
            self._conflicts += 1
            if (
                not isinstance(error, (AlreadyExists, Conflict, Expired))
                or self._conflicts > MAX_CONFLICTS
            ):
                raise
            self._clock.sleep(POLL_SECONDS)
        except StorageError as error:
            self._stale = True
            self._revision, self._delivered, self._saved = before
            self._is_short_of_room = True
            self._batches_without_room += 1
            self._view.release()
            if self._batches_without_room > 2 or not self._client.make_room(
                error, for_deletion=False
            ):
                raise
        except BaseException:
            self._stale = True
            self._revision, self._delivered, self._saved = before
            raise
        else:
            self._conflicts = self._batches_without_room = 0

    def _next(self) -> tuple[Reconciler, Key] | None:
        """Return the next key of the reconciler whose turn it is, or of the next one that has
        any."""
        for _ in range(len(self._reconcilers) + 1):
            reconciler = self._reconcilers[self._turn]
            if self._keys_left > 0 and (key := reconciler.queue.get()) is not None:
                self._keys_left -= 1
                return reconciler, key
            self._turn = (self._turn + 1) % len(self._reconcilers)
            self._keys_left = min(len(self._reconcilers[self._turn].queue), KEYS_PER_TURN)
        self._turn, self._keys_left = (
            len(self._reconcilers) - 1,
            0,
        )  # begin with the first, as a new process would
        return None

    def _sync(self, reconciler: Reconciler, key: Key) -> None:
        """Sync one key. An exception of any class, a bug included, must not keep other reconcilers
        from their work."""
        queue, requester = reconciler.queue, self._client.requester
        self._acting = Party(reconciler.name, key)
        self._client.requester = self._users[reconciler.name](key)
        try:
            reconciler.sync(key)
        except Exception as error:
            message = " ".join(str(error).split())
            if not isinstance(error, Status):
                message = f"{type(error).__name__}: {message}"
            self._summary.failures.append(SyncFailure(reconciler.name, key, message))
            queue.add_rate_limited(key, RETRY_PATIENCE if self._clock.own else 0.0)
        else:
            queue.forget(key)
        finally:
            self._client.requester = requester
            queue.done(key)

    # --- observing

    def _looked_within(self) -> float:
        """Return the age in seconds up to which a look at all files is recent enough: that of this
        run, or 0 (look again) when the run is no short one any more."""
        passed = time.monotonic() - self._began
        return passed if passed < SHORT_RUN_SECONDS else 0.0

    def poll(self, looked_within: float = 0.0) -> None:
        """Put the changes since the last poll into the inbox, or find out that everything must be
        listed.

        :param looked_within: no look for edits from outside where all files were looked at within
            so many seconds.
        """
        try:
            if self._stale and not self._loaded:
                raise Expired("nothing was listed yet")
            self._revision, events = self._client.changes(
                self._revision, looked_within=looked_within
            )
        except Expired:
            self._stale = True
            self._revision = (
                self._client.revision()
            )  # the next batch lists objects of a newer revision
            return
        self._inbox += [event for event in events if event.key.resource not in UNWATCHED]
        if not self._inbox:
            self._delivered = self._revision

    def _observe_outside(self, batch: Batch) -> None:
        """Take in the changes that others made since the last batch."""
        inbox = self._inbox = [
            *self._inbox,
            *batch.drain(),
        ]  # kept until the commit, which may fail
        if any(event.key.resource not in UNWATCHED for event in inbox):
            self._contention.change_outside()
        if self._stale:
            self._relist(inbox)
        elif not self._loaded:
            self._load()
            self._deliver_again(inbox)
        elif self._view.revision != self._seen and any(
            self._informers.is_known_in_part(event.key) for event in inbox
        ):
            self._relist(inbox)  # the view does not show any more what these were
        else:
            self._recall_before(inbox)
            self._view.refresh()
            self._observe(inbox)
        for pending in self._carried:
            self._queues[pending.reconciler].add(pending.key)
        self._carried.clear()

    def _load(self) -> None:
        """Let the informers begin anew, with what is stored now."""
        self._informers.clear()
        self._view.refresh()
        self._informers.follow(self._view, self._is_watched)
        self._loaded = True

    def _forget_gone(self) -> None:
        """Let the informers begin anew where they know much of what has gone, as another process
        would here.

        Not where faults are wanted: controllers whose events are late would miss those that are
        under way.
        """
        if (
            self._informers.is_overgrown()
            and not self._has_keys()
            and self._client.settings.faults is None
        ):
            self._load()

    def _recall_before(self, events: Sequence[WatchEvent]) -> None:
        """Let the informers know the objects of events as they were before these, which the view
        still shows.

        It does not where another process has written between the commit of the last batch and the
        next look.
        """
        for key, event in {event.key: event for event in reversed(events)}.items():
            if self._view.revision != self._seen and not self._informers.is_known(key):
                self._informers.assume(key, event.old)
            elif self._is_watched(key.resource):
                self._informers.get(*key)

    def _is_watched(self, resource: str) -> bool:
        """Return whether a reconciler watches a resource that there is."""
        return (
            (EVERY_RESOURCE in self._handlers or resource in self._handlers)
            and resource not in UNWATCHED
            and self._is_served(resource)
        )

    def _deliver_again(self, events: Sequence[WatchEvent]) -> None:
        """Hand over changes that the informers hold already; the states before them are not known
        any more."""
        latest: dict[Key, WatchEvent] = {}
        for event in events:
            earlier = latest.pop(event.key, None)
            if earlier is not None and earlier.former is not None:
                event = event._replace(former=earlier.former)
            if event.new is not None:
                latest[event.key] = event
            elif event.old is not None and not self._is_present(event.key, event.old):
                self._handle_all(event.steps())
        for key, event in latest.items():
            if (present := self._informers.get(*key)) is not None:
                self._handle_all(event._replace(old=None, new=present).steps())
                if _defines_resource(event):
                    self._deliver_objects(key.name)

    def _is_present(self, key: Key, obj: Object) -> bool:
        present = self._informers.get(*key)
        return present is not None and uid_of(present) == uid_of(obj)

    def _relist(self, inbox: Sequence[WatchEvent]) -> None:
        """List everything and hand all of it over: missing objects as deleted, present ones as
        added.

        :param inbox: changes that are not handed over yet: they tell of deleted objects that were
            never read.
        """
        deleted = [
            (event.key, event.old) for event in inbox if event.new is None and event.old is not None
        ]
        before = {(key, uid_of(old)): old for key, old in [*deleted, *self._informers.known()]}
        self._load()
        self._informers.read_everything()
        self._stale = False
        for (key, _), old in before.items():
            if not self._is_present(key, old):
                self._handle(WatchEvent(key, old, None))
        for key, obj in self._informers.known():
            self._handle(WatchEvent(key, None, obj))

    def _observe(self, events: Iterable[WatchEvent], *, ours: bool = False) -> None:
        """Take events into the informers and hand them to the handlers; those already observed are
        dropped."""
        for event in events:
            if event.key.resource in UNWATCHED:
                continue
            if ours and event.old is None and not self._informers.is_known(event.key):
                self._informers.assume(event.key, None)  # it is new: nothing needs to be read
            for change in _changes_to(self._informers.get(*event.key), event):
                self._informers.observe(change)
                self._handle(change)
                if ours:
                    self._note_own(change)
                if _defines_resource(change):
                    self._deliver_objects(change.key.name)

    def _note_own(self, change: WatchEvent) -> None:
        """Take notice of a write that a sync has made."""
        self._written += 1
        self._summary.record(change)
        if self._acting is not None:
            self._contention.note(change, self._acting)

    def _hold(self, party: Party, until: datetime, is_longest: bool) -> None:
        """Keep a controller from an object until a moment."""
        self._queues[party.reconciler].hold(party.key, until, repeating=is_longest)

    def _deliver_objects(self, resource: str) -> None:
        """Hand over the objects of a custom resource as added: they could not be read before its
        definition."""
        if not self._is_watched(resource):
            return
        for obj in self._client.list_stored(resource):
            event = WatchEvent(Key(resource, namespace_of(obj), name_of(obj)), None, obj)
            self._informers.observe(event)
            self._handle(event)

    def _handle_all(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            self._handle(event)

    def _handle(self, event: WatchEvent) -> None:
        for handler in self._handlers_of(event.key.resource):
            handler(event)

    # --- time

    def _next_moment(self) -> datetime | None:
        return self._horizon.next_moment(
            self._clock.now(),
            self._earliest(WorkQueue.next_due),
            self._earliest(WorkQueue.next_single_due),
        )

    def _earliest(self, due_of: Callable[[WorkQueue[Key]], datetime | None]) -> datetime | None:
        return min(
            (due for queue in self._queues.values() if (due := due_of(queue)) is not None),
            default=None,
        )

    def _move_clock(self) -> bool:
        """Move the cluster's own time to the next moment of :meth:`advance`, if there is one;
        return whether it was."""
        if not self._moves or self._clock.own is None or (moment := self._next_moment()) is None:
            return False
        self._moves -= 1
        self._clock.move_to(moment)
        return True

    # --- checkpoints

    def _resume(self) -> None:
        """Go on from the checkpoint of a manager, this one or another process's."""
        if self._checkpoints is None:
            self._stale = self._stale or not self._loaded
            return
        text = self._checkpoints.load()
        if text == self._saved and (text or self._loaded):
            return
        self._saved = text
        checkpoint = parse(text, self._checkpoints.identity)
        if checkpoint is None:
            self._stale = self._stale or not self._loaded
            return
        if not self._loaded:
            self._revision = self._delivered = checkpoint.revision
        if checkpoint.turn:
            self._turn, self._keys_left = checkpoint.turn
        now = self._clock.now()
        for pending in checkpoint.pending:
            self._queues[pending.reconciler].set_failures(pending.key, pending.failures)
            if pending.due is None or pending.due <= now:
                self._carried.append(pending)
            else:
                delay = (pending.due - now).total_seconds()
                self._queues[pending.reconciler].add_after(
                    pending.key, delay, skippable=pending.skippable, repeating=pending.repeating
                )
        for reconciler in self._remembering:
            if memory := checkpoint.memories.get(reconciler.name):
                reconciler.recall(memory)
        self._contention.recall(checkpoint.memories.get(CONTENTION, {}))
        for component, recorder in self._client.event_memories.items():
            recorder.recall(checkpoint.memories.get(EVENTS, {}).get(component))

    def _save(self) -> None:
        if self._checkpoints is None or self._stale:
            return
        pending = [
            Pending(
                name,
                key,
                due,
                due is not None and queue.can_skip(key),
                due is not None and queue.is_repeating(key),
                queue.failures(key),
            )
            for name, queue in self._queues.items()
            for key, due in queue.pending()
        ]
        memories = {
            reconciler.name: memory
            for reconciler in self._remembering
            if (memory := reconciler.remember())
        }
        now, recorders = self._clock.now(), self._client.event_memories
        memories[EVENTS] = {
            component: memory
            for component, recorder in recorders.items()
            if (memory := recorder.remember(now))
        }
        if memory := self._contention.remember():
            memories[CONTENTION] = memory
        turn = (self._turn, self._keys_left) if self._has_keys() else ()
        checkpoint = Checkpoint(
            self._delivered, (*self._carried, *pending), memories, turn, self._is_cut()
        )
        text = dump(checkpoint, self._checkpoints.identity)
        if text != self._saved:
            self._checkpoints.save(text)
            self._saved = text


def _defines_resource(event: WatchEvent) -> bool:
    """Return whether a CustomResourceDefinition, which is named as its resource, is new or has
    another spec."""
    if event.key.resource != CRDS or event.new is None:
        return False
    return event.old is None or event.old["spec"] != event.new["spec"]


def _changes_to(known: Object | None, event: WatchEvent) -> list[WatchEvent]:
    """Return the changes that an event makes to the known object: none for an old event, two for
    another object."""
    key, new = event.key, event.new
    if new is None:
        return _deletions(known, event)
    if known is None:
        return event._replace(old=None).steps()
    if _version(new) <= _version(known):
        return []
    if uid_of(new) != uid_of(known):
        return [WatchEvent(key, known, None), WatchEvent(key, None, new)]
    return [WatchEvent(key, known, new)]


def _deletions(known: Object | None, event: WatchEvent) -> list[WatchEvent]:
    """Return what a deletion means to the known object.

    An object that was made and deleted between two looks at the change log was never known, and its
    deletion counts nevertheless: what others have noted of it (admission has charged it to a quota)
    is undone by whoever hears of it.
    """
    key, deleted = event.key, event.old
    if known is None:
        return event.steps() if deleted is not None else []
    if deleted is None or uid_of(deleted) == uid_of(known):
        return [WatchEvent(key, known, None)]
    if _version(deleted) < _version(known):
        return []  # the known object came after the deleted one
    return [WatchEvent(key, known, None), WatchEvent(key, deleted, None)]


def _version(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)
