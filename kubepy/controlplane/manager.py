"""The manager: it runs the reconcilers of one cluster in one thread, as controller-runtime's does
in many. It takes keys from a queue, lets them be synced, and takes in what happened meanwhile.

It stands on three objects, each of which can be understood alone:

- :class:`~kubepy.controlplane.queues.Queues`: the work queues of all reconcilers, which take turns;
- :class:`~kubepy.controlplane.source.EventSource`: takes what happens in the cluster into the
  informers, and hands it to the handlers of reconcilers, which add keys to the queues;
- :class:`~kubepy.controlplane.timekeeping.Timekeeper`: the clock, which goes on to the next moment
  at which a key falls due.

One batch is one transaction: changes are observed and handed to the handlers, then keys are synced,
and the writes of each sync are observed before the next one runs. So informers never lag behind
inside a batch, and expectations are met as soon as their sync has ended. A batch ends, if it can,
after the first reconciler's turn. With the kubelet there, a pod is mostly made, bound and started
within one transaction, and its file is written once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from kubepy.api.errors import AlreadyExists, Conflict, Expired, Status
from kubepy.apiserver.client import Batch
from kubepy.controlplane.checkpoints import Checkpoints
from kubepy.controlplane.checkpoints import CheckpointStore as CheckpointStore
from kubepy.controlplane.queues import Queues
from kubepy.controlplane.source import EventSource
from kubepy.controlplane.source import ListWatch as ListWatch
from kubepy.controlplane.summary import Summary, SyncFailure
from kubepy.controlplane.timekeeping import MAX_POLL_SECONDS, Poller, Timekeeper
from kubepy.controlplane.timekeeping import MOVED_POLL_SECONDS as MOVED_POLL_SECONDS
from kubepy.controlplane.timekeeping import POLL_SECONDS as POLL_SECONDS
from kubepy.controlplane.timekeeping import Horizon as Horizon
from kubepy.runtime.checkpoint import Pending
from kubepy.runtime.contention import Contention, Party
from kubepy.runtime.pacing import Excess
from kubepy.runtime.reconcile import Context, Key, Reconciler, Refreshing, WatchEvent
from kubepy.storage import StorageError, is_disk_full

# A batch ends with the first reconciler's turn once it has taken BATCH_SECONDS × (1 + BEGIN_SHARE ×
# the seconds that it took to begin, which grow with the folder), …
BATCH_SECONDS = 0.5
BEGIN_SHARE = 20
MAX_BATCH_SECONDS = 2.0  # … and after any sync once it has taken so long: other writers wait
# a batch that begins so soon after a look for edits from outside leaves others to the next poll
LOOK_SECONDS = 0.05
ROOM_SECONDS = 1.0  # after which a sync that found no room on the disk is tried again
RETRY_PATIENCE = 0.1  # back-offs this short are waited for: the second try mostly succeeds
MAX_CONFLICTS = 20  # in a row
# Writes of controllers without a moment in which nothing is left to do: in a command that reads,
# after which the rest is left to the next one (some 2,000 pods get ready), and in one that waits or
# predicts (10,000 pods are replaced).
READ_WRITES = 8_000
WAIT_WRITES = 100_000


class WriteBudget:
    """The number of objects that the controllers may write without a moment in which nothing is
    left to do."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._written = 0

    def spend(self) -> None:
        self._written += 1

    def renew(self) -> None:
        self._written = 0

    def is_spent(self) -> bool:
        return self._written >= self._most


class FailedBatches:
    """The numbers of batches in a row that have failed, by reason.

    :ivar conflicts: how many in a row: another program wrote to the folder meanwhile.
    :ivar is_short_of_room: the disk was full: until all is done a batch is one sync, as what that
        deletes makes room for the next one.
    :ivar without_room: the syncs that found no room since. Those that make some are not to wait for
        them.
    """

    def __init__(self) -> None:
        self.conflicts = 0
        self.is_short_of_room = False
        self.without_room: dict[Party, StorageError] = {}

    def end(self) -> None:
        """Begin to count conflicts anew: a batch was committed."""
        self.conflicts = 0

    def end_without_room(self) -> None:
        """Raise the StorageError of the first sync that found no room, if there is one."""
        self.is_short_of_room = False
        errors = list(self.without_room.values())
        self.without_room.clear()
        if errors:
            raise errors[0]


class Manager:
    """Runs reconcilers over one cluster.

    :param context: the one that the reconcilers were built with.
    :param list_watch: the objects that informers read.
    :param checkpoints: keeps the manager's checkpoint; without, it reconciles every object when it
        starts.
    :ivar poller: waits for changes; ``freshness``: how old the last look at all files may be.
    :ivar commits_each_turn: for whoever watches: pods are seen Pending before they run.
    :ivar is_undivided: a batch goes on until nothing is left to do, however long that takes: so
        that no speed of a machine shows.
    :ivar synced: where it is set, is called after each sync with its exception, or None.
    :ivar is_awaited: tells whether another writer waits: then a batch ends after a sync.
    """

    def __init__(
        self,
        context: Context,
        reconcilers: Sequence[Reconciler],
        *,
        source: ListWatch,
        checkpoints: CheckpointStore | None = None,
    ) -> None:
        self.queues = Queues(reconcilers)
        self.commits_each_turn = False
        self.is_undivided = False
        self.synced: Callable[[str, Key, Exception | None], object] | None = None
        self.is_awaited: Callable[[], bool] = lambda: False
        client = self._client = context.client
        clock = context.clock
        self._source = EventSource(client, context.informers, source, reconcilers)
        self.freshness = self._source.freshness
        self.poller = Poller(clock, self.poll, client.is_quiet)
        self._time = Timekeeper(clock, self.queues)
        self._contention = Contention(clock.now, self.queues.hold, self.queues.release)
        self._pacing = context.pacing
        self._refreshing = [entry for entry in reconcilers if isinstance(entry, Refreshing)]
        self._checkpoints = Checkpoints(
            checkpoints, self.queues, client, self._contention, self._pacing
        )
        self._syncing: Party | None = None  # the sync whose writes are observed
        self._summary = Summary()  # of this run
        self._budget = WriteBudget(math.inf)  # of this run
        self._failed_batches = FailedBatches()

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
        patience = quiet_for if self._time.is_own else max(quiet_for, RETRY_PATIENCE)
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
        horizon = Horizon(until, math.inf)
        if not settled:
            horizon = Horizon(until or self._time.clock.now())
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
        self._budget = WriteBudget(most_writes)
        self._contention.noticed.clear()
        self.freshness.begin_run()
        self._resume()
        self._begin_pacing(is_bounded=most_writes < math.inf)
        self._time.begin(horizon, shows_each_moment=done is not None or skip_waits)

        def is_over() -> bool:
            if stop():
                return True
            if done is None:
                return False
            if self._time.is_own:
                return False
            return done()

        interval = POLL_SECONDS
        while True:
            self._work(is_over)
            if is_over() or self._budget.is_spent() or (done is not None and done()):
                break
            if skip_waits and self.queues.skip_waits():
                continue
            moment = self._time.next_moment()
            if moment is None:
                break
            if self._time.is_own:
                self._time.allow_move()
                self._run_batch()
            else:
                seconds = (moment - self._time.clock.now()).total_seconds()
                interval = self.wait_for_work(min(interval, max(seconds, 0.0)))

        self._time.end()
        self._summary.is_cut = self._is_cut()
        self._save()
        self._summary.contests = list(self._contention.noticed.values())
        self._summary.excesses = list(self.excesses)
        self._summary.due = self.queues.all_due()
        return self._summary

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
        clock = self._time.clock
        pause = POLL_SECONDS
        while not stop():
            if paused():
                clock.sleep(POLL_SECONDS)
                continue
            try:
                settled(self.run_until_settled(done=stop))
                interval = POLL_SECONDS
                while not stop() and not self.has_work():
                    interval = self.wait_for_work(interval)
                pause = POLL_SECONDS
            except transient as error:
                failed(error)
                self._source.is_stale = True
                pause = min(2 * pause, MAX_POLL_SECONDS)
                clock.sleep(pause)

    def _begin_pacing(self, *, is_bounded: bool) -> None:
        """Let controllers go on that an earlier run has stopped, if this one works to the end."""
        for excess in self._pacing.begin_run(is_bounded=is_bounded):
            self.queues.restored.append(Pending(excess.reconciler, excess.key, None))

    # --- what is left to do

    def has_work(self) -> bool:
        """Return whether something is to be done now."""
        if self._source.has_events():
            return True
        if bool(self.queues.restored):
            return True
        return self.queues.has_keys()

    @property
    def excesses(self) -> Collection[Excess]:
        """The workloads that this run has looked at, and that ask for far more pods than they
        get."""
        return self._pacing.noticed.values()

    def is_settled(self) -> bool:
        """Return whether nothing is to be done now, nor falls due later but what repeats for
        ever."""
        if self.has_work():
            return False
        return self.queues.next_single_due() is None

    def workload(self) -> tuple[int, int]:
        """Return how many objects this run has changed so far, and how many keys are queued now."""
        return self._summary.touched(), len(self.queues)

    def poll(self, max_age: float = 0.0) -> None:
        """Read the changes of others (:meth:`EventSource.poll`), and what reconcilers go by beside
        objects."""
        self._source.poll(max_age)
        for reconciler in self._refreshing:
            reconciler.refresh()

    def wait_for_work(self, seconds: float) -> float:
        """Wait until something has changed or is due, at most so long; return how long to wait next
        time."""
        due = self.queues.next_due()
        if due is not None and not self._time.is_own:
            seconds = min(seconds, (due - self._time.clock.now()).total_seconds())
        return self.poller.wait(max(seconds, 0.0))

    def _is_cut(self) -> bool:
        """Return whether this run leaves work to be done now because it has written as much as it
        may."""
        return self._budget.is_spent() and self.has_work()

    # --- batches

    def _work(self, done: Callable[[], bool]) -> None:
        """Run batches until nothing is left to do now, or ``done()`` holds."""
        while not done() and not self._budget.is_spent():
            # a batch polls by itself when it begins
            if self._source.is_stale or not self.has_work():
                self.poll(self.freshness.max_age())
            if not self.has_work():
                self._end_without_room()
                return
            self._run_batch()

    def _end_without_room(self) -> None:
        try:
            self._failed_batches.end_without_room()
        except StorageError:
            self._source.is_stale = True
            raise

    def _run_batch(self) -> None:
        """Run one transaction. When it fails nothing was written, but informers have observed it:
        they become stale. The revisions of a failed transaction are given again, to the writes of
        others."""
        revisions = self._source.revisions
        saved = self._checkpoints.saved
        self._summary.discard()  # what a transaction has done that came to nothing
        try:
            self._run_transaction()
        except BaseException as error:
            self._source.failed(revisions)
            self._checkpoints.saved = saved
            if not self._can_try_again(error):
                raise
        else:
            self._failed_batches.end()

    def _can_try_again(self, error: BaseException) -> bool:
        """Return whether a batch that has failed with an error may be tried again, after a moment
        or when there is room."""
        if isinstance(error, Status):
            self.freshness.expire()
            self._failed_batches.conflicts += 1
            if not isinstance(error, (AlreadyExists, Conflict, Expired)):
                return False
            if self._failed_batches.conflicts > MAX_CONFLICTS:
                return False
            self._time.clock.sleep(POLL_SECONDS)
            return True

        if isinstance(error, StorageError):
            self._source.release()
            if not is_disk_full(error):
                return False
            if self._failed_batches.is_short_of_room:
                if self._syncing is None:
                    return False
                self._failed_batches.without_room[self._syncing] = error
            self._failed_batches.is_short_of_room = True
            return True

        return False

    def _run_transaction(self) -> None:
        start = time.monotonic()
        self._syncing = None
        self._client.observe_from(self._source.revisions.read)
        max_age = max(LOOK_SECONDS, self.freshness.max_age())
        with self._client.batch(max_age=max_age) as batch:
            patience = BATCH_SECONDS * (1 + BEGIN_SHARE * (time.monotonic() - start))
            self._observe_outside(batch)
            self._sync_keys(batch, start, patience)
            self._source.finish()
            predicted = self._source.revisions.delivered
            is_saved = self._time.is_own or not self.queues.has_keys()
            if is_saved and batch.transaction.foresees_revision:
                self._save()  # in the same transaction, which costs next to nothing
            self._source.release()

        self._summary.commit()
        transaction = batch.transaction
        self._source.committed(transaction.revision)
        is_foreseen = transaction.foresees_revision and transaction.revision == predicted
        if is_saved and not is_foreseen:
            self._save()
        # Not where faults are wanted: controllers whose events are late would miss those that are
        # under way.
        if not self.queues.has_keys() and self._client.settings.faults is None:
            self._source.reload_if_overgrown()

    def _observe_outside(self, batch: Batch) -> None:
        """Take in the changes that others made since the last batch."""
        if self._source.collect(batch):
            self._contention.change_outside()
        self._source.deliver()
        self.queues.add_restored()

    def _sync_keys(self, batch: Batch, start: float, patience: float) -> None:
        """Sync one key after the other, and move time on when none is left, until it is time to
        commit."""
        passed = 0.0
        without_room = self._failed_batches.without_room
        while not self._budget.is_spent():
            picked = self.queues.get()
            if picked is None:
                self._budget.renew()
                is_late = passed > patience and not self.is_undivided
                if is_late or without_room or not self._time.move():
                    return
                continue
            if without_room and Party(picked[0].name, picked[1]) in without_room:
                self.queues.put_off(*picked, ROOM_SECONDS)
                continue
            self._sync(*picked)
            for part in batch.drain_parts():
                if part.is_own:
                    self._source.observe(part.events, self._note)
                else:  # while webhooks were called
                    self._source.observe_others(part.events)
            passed = time.monotonic() - start
            if self._is_time_to_commit(passed, patience):
                return

    def _is_time_to_commit(self, passed: float, patience: float) -> bool:
        """Return whether a batch ends after a sync, so many seconds after it began."""
        if self._failed_batches.is_short_of_room:
            return True
        if self.is_undivided:
            return False
        is_turn_over = self.queues.is_turn_over()
        if self.commits_each_turn:  # watchers see the same states on a slow machine
            return is_turn_over or self.is_awaited()
        if passed > MAX_BATCH_SECONDS:
            return True
        if not is_turn_over:
            return False
        if not self.queues.is_first_turn():
            return False
        return passed > patience

    def _sync(self, reconciler: Reconciler, key: Key) -> None:
        """Sync one key. An exception of any class, a bug included, must not keep other reconcilers
        from their work."""
        queue = reconciler.queue
        failure: Exception | None = None
        self._syncing = Party(reconciler.name, key)
        try:
            reconciler.sync(key)
        except Exception as error:
            failure = error
            message = " ".join(str(error).split())
            if not isinstance(error, Status):
                message = f"{type(error).__name__}: {message}"
            self._summary.failures.append(SyncFailure(reconciler.name, key, message))
            queue.add_rate_limited(key, RETRY_PATIENCE if self._time.is_own else 0.0)
        else:
            queue.forget(key)
        finally:
            queue.done(key)
        if self.synced is not None:
            self.synced(reconciler.name, key, failure)

    def halt(self) -> None:
        """Let the present run end after the sync that is under way."""
        self._budget = WriteBudget(0)

    def _note(self, change: WatchEvent) -> None:
        """Take notice of a write that a sync has made."""
        self._budget.spend()
        self._summary.record(change)
        if self._syncing is not None:
            self._contention.note(change, self._syncing)

    # --- from process to process

    def _resume(self) -> None:
        """Go on from the checkpoint of a manager, this one or another process's."""
        text = self._checkpoints.load()
        if text == self._checkpoints.saved and (text or self._source.is_loaded):
            return
        checkpoint = self._checkpoints.parse(text)
        if checkpoint is None:
            self._source.restart()
            return
        self._source.resume(checkpoint.revision)
        self._checkpoints.restore(checkpoint, self._time.clock.now())

    def _save(self) -> None:
        """Save a checkpoint, unless everything is to be listed anyway."""
        if not self._source.is_stale:
            self._checkpoints.save(
                self._source.revisions.delivered, self._time.clock.now(), is_cut=self._is_cut()
            )
