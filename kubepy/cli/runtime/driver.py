"""Run the controllers when a command reads the cluster, and while one waits for something that they
bring about."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import format_time, later
from kubepy.api.meta import controller_of, uid_of
from kubepy.cli.errors import CliError, EndlessWaitError
from kubepy.controlplane import MANAGER_LOCK, build_manager, manager_lock
from kubepy.lazy import lazy_imports
from kubepy.runtime.checkpoint import CHECKPOINT, latest, settled_checkpoint
from kubepy.storage import FolderError, LockTimeoutError, NoClusterError

with lazy_imports():
    from kubepy.controlplane import manager as managers
    from kubepy.controlplane import running

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.cli.runtime.notes import Notes
    from kubepy.cli.runtime.progress import Progress
    from kubepy.controlplane.manager import Horizon, Manager
    from kubepy.controlplane.summary import Summary
    from kubepy.runtime.checkpoint import Checkpoint
    from kubepy.storage import Key

WAIT_PATIENCE = (
    366 * 86400.0
)  # own time's seconds: how long a wait lets things repeat before others are due
NOTE_SECONDS = 2  # after which a user at a terminal is told why pods have no node
MOST_CONTESTS = 5  # controllers that undo each other's work, and workloads, that are named
TAKE_OVER_SECONDS = (
    1.0  # how soon a waiting command notices that the process that ran the controllers has ended
)
TICK_SECONDS = (
    1.0  # of the cluster's time that pass with a command that reads, where the cluster says so
)
OTHERS_WORK_SECONDS = (
    10.0  # how long such a command waits until another process has done the work of that time
)
OTHERS_SECONDS = (
    2.0  # how long a command that must not run the controllers waits for another process to do so
)
ENDLESS = (
    "this would wait for ever: nothing is due in the cluster's own time that could bring about "
    "what is waited "
    "for"
)
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def settle(
    progress: Progress,
    manager: Manager,
    quiet_for: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
    *,
    skip_waits: bool = False,
    most_writes: float = math.inf,
) -> Summary:
    """Run :meth:`Manager.run_until_settled`, showing the progress on a terminal."""

    def is_over() -> bool:
        changed, waiting = manager.workload()
        progress.show(f"{changed} objects changed, {waiting} to do")
        return stop()

    return manager.run_until_settled(
        quiet_for, is_over, skip_waits=skip_waits, most_writes=most_writes
    )


def is_unwritable(error: FolderError) -> bool:
    """Return whether an error says that this user may not write the folder, or nobody may."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in NOT_WRITABLE


class Advance(NamedTuple):
    """The end of an advance of time.

    :param is_idle: nothing is due later but what repeats for ever.
    :param summary: the changes; None where another process runs the controllers.
    """

    is_idle: bool
    summary: Summary | None = None


class Retry(NamedTuple):
    """When a wait asks again, whatever happens in the cluster.

    :ivar moment: returns the next time to ask, None for none.
    :ivar goes_on: something happens at each of these times, though no object changes: the processes
        of a container go on.
    """

    moment: Callable[[], datetime | None]
    goes_on: bool = False


NO_RETRY = Retry(lambda: None)


class Driver:
    """Runs the controllers in a command: what is due before it reads, and what it waits for.

    It does a burst of work at a time, and releases the manager's lock between bursts: other
    commands may wait as well, and ``kubepy controller`` may start.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        folder: str,
        progress: Progress,
        notes: Notes,
        *,
        reconciles: bool,
        begun: float = -math.inf,
    ) -> None:
        """Without ``reconciles`` it only waits for another process to run the controllers.

        :param begun: when the command began (``time.monotonic``), which looks at all files once.
        """
        self._cluster = cluster
        self._folder = folder
        self._progress = progress
        self._notes = notes
        self._say = notes.say
        self._reconciles = reconciles
        self._begun = begun
        self._manager: Manager | None = None
        self._warned = False
        self._noted = False
        self._has_settled = False
        self.has_given_up = False  # a wait has ended without what it was for
        self.before_time_passes: Callable[[], None] = lambda: None
        self._told: set[Key] = (
            set()
        )  # the objects about which controllers are said to undo each other's work
        self._has_told_cut = False
        self._others_run_until = (
            0.0  # when to look again whether another process runs the controllers
        )

    def react(self, watch: Callable[[], None] | None = None) -> bool:
        """Let the controllers do what is due now, as they would have done by now in a cluster; wait
        for nothing.

        Returns whether there was work. What takes more than READ_WRITES is left to the next
        command. Work stays undone where another process runs the controllers or writes, where git
        is in the midst of changing the folder, and where the folder cannot be written.

        :param watch: shows what has changed, after the turn of each controller.
        """
        if not self._reconciles:
            return False
        if self._manager is not None:
            self._manager.poll()
            is_idle = not self._manager.has_work()
        else:
            is_idle = settled_checkpoint(self._cluster) is not None

        store = self._cluster.store
        if (
            is_idle
            or store.holder(MANAGER_LOCK) is not None
            or running.is_git_amid_changes(self._folder)
        ):
            return False

        def burst(manager: Manager) -> Summary:
            manager.commits_each_turn = watch is not None

            def show() -> bool:
                if watch:
                    watch()
                return False

            return settle(self._progress, manager, stop=show, most_writes=managers.READ_WRITES)

        return self._try(lambda: self._run(burst))

    def tick(self) -> bool:
        """Move the cluster's own time to the next moment at which something falls due, by
        TICK_SECONDS at most.

        Returns whether it was moved. As for :meth:`react`, what is in the way of that is no error.
        Beside a process that runs the controllers it waits until that one has done the work of the
        moment.
        """
        if running.is_git_amid_changes(self._folder):
            return False
        cluster = self._cluster
        clock = self._cluster.clock
        cluster.client.take_over_time()
        begin = clock.now()
        deadline = clock.real_monotonic() + OTHERS_WORK_SECONDS
        horizon = managers.Horizon(later(begin, TICK_SECONDS))

        def has_moved() -> bool:
            return clock.now() > begin

        def burst(manager: Manager) -> Summary:
            return manager.go_on(horizon, has_moved, most_writes=managers.READ_WRITES)

        def move() -> bool:
            if not self._run(burst):
                self.accompany(horizon, has_moved, stop=lambda: clock.real_monotonic() > deadline)
            return has_moved()

        return self._try(move)

    def _try(self, work: Callable[[], bool]) -> bool:
        """Do work of the controllers in a command that only reads; return whether it was done. It
        waits for no lock, and a folder that cannot be written is no error."""
        store = self._cluster.store
        patience = store.lock_timeout
        store.lock_timeout = 0.0
        try:
            return work()
        except LockTimeoutError:
            return False  # another process writes: the command reads what stands
        except NoClusterError:
            raise
        except FolderError as error:
            if not is_unwritable(error):
                self._say(f"note: the controllers could not work: {error}")
            return False
        finally:
            store.lock_timeout = patience

    def wait_until(
        self,
        done: Callable[[], bool],
        timeout: float | None = None,
        about: str = "",
        owner: Object | None = None,
        retry: Retry = NO_RETRY,
    ) -> bool:
        """Wait until ``done()`` holds, at most ``timeout`` seconds (None: for ever), and return it.

        ``done`` is asked after every batch of the controllers, and whenever something changed. A
        cluster's own time is moved meanwhile, and it is asked when the work of each moment is done.
        ``about`` names what is waited for, to be shown on a terminal. ``owner``: the workload whose
        pods it is about, if it is one's. ``retry`` tells when ``done`` is to be asked again in any
        case.

        Raises CliError where the wait would never end.
        """
        self.before_time_passes()
        self.has_given_up = True
        wait = self._move_until if self._cluster.clock.own else self._sleep_until
        has_come = wait(done, timeout, about, owner, retry)
        self.has_given_up = not has_come
        return has_come

    def _sleep_until(
        self,
        done: Callable[[], bool],
        timeout: float | None,
        about: str,
        owner: Object | None,
        retry: Retry,
    ) -> bool:
        """Wait in the system's time; see :meth:`wait_until`."""
        clock = self._cluster.clock
        progress = self._progress
        deadline = None if timeout is None else clock.monotonic() + timeout

        def is_over() -> bool:
            progress.show(f"waiting {progress.seconds()}s", about=about)
            return deadline is not None and clock.monotonic() >= deadline

        def burst(manager: Manager) -> Summary:
            return self._checked(
                manager.run_until_settled(
                    done=lambda: done() or is_over(),
                    skip_waits=True,
                    most_writes=managers.WAIT_WRITES,
                )
            )

        pause = managers.POLL_SECONDS
        is_first = True
        reason = "--reconcile=never"
        while not done():
            if is_over():
                self._note_unscheduled(owner, at_once=True)
                return False
            has_work = is_first or self._manager is None or self._manager.has_work()
            is_first = False
            try:
                if self._reconciles and has_work and self._run(burst):
                    if owner is not None:
                        self._check_excesses(owner)
                    continue
            except FolderError as error:
                if not is_unwritable(error):
                    raise
                self._reconciles, reason = False, str(error)
            self._note_unscheduled(owner)
            if not self._reconciles and not self._warned:
                if self._cluster.store.holder(MANAGER_LOCK) is None:
                    self._say(
                        f"no controller is running ({reason}): waiting for another process to run "
                        f"one"
                    )
                self._warned = True
            seconds = (
                pause if deadline is None else max(min(pause, deadline - clock.monotonic()), 0.0)
            )
            if self._manager is not None:
                pause = self._manager.wait_for_work(seconds)
            else:
                clock.sleep(seconds)
                pause = managers.POLL_SECONDS

        return True

    def _move_until(
        self,
        done: Callable[[], bool],
        timeout: float | None,
        about: str,
        owner: Object | None,
        retry: Retry,
    ) -> bool:
        """Wait in the cluster's own time; see :meth:`wait_until`."""
        clock = self._cluster.clock
        deadline = None if timeout is None else later(clock.now(), timeout)
        tried = -1  # the revision at which a retry did not help, with nothing else to come
        while not done():
            if deadline is not None and clock.now() >= deadline:
                self._note_unscheduled(owner, at_once=True)
                return False
            if not self._reconciles:
                self._find_others(done)
            until = min(
                (moment for moment in (deadline, retry.moment()) if moment is not None),
                default=None,
            )
            if deadline:
                horizon = managers.Horizon(until)
            else:
                horizon = managers.Horizon(until, math.inf, WAIT_PATIENCE)
            is_idle = self._wait_for(horizon, done, about).is_idle
            if until is None and not is_idle and not done() and self._has_stopped(horizon):
                raise CliError(
                    "this would wait for more than a year, in which nothing is due but what is "
                    "tried again "
                    "and again: --timeout says how long to wait"
                )
            if deadline is None and is_idle and not done():
                revision = self._cluster.client.revision()
                if until is None or (revision == tried and not retry.goes_on):
                    self._note_unscheduled(owner, at_once=True)
                    raise EndlessWaitError(ENDLESS)
                tried = revision
                self._wait_for(managers.Horizon(until), done, about)

        return True

    def _wait_for(self, horizon: Horizon, done: Callable[[], bool], about: str) -> Advance:
        """Let time go on in a command that waits. Raises CliError at the bound of its writes."""
        end = self.advance(horizon, done, about=about, most_writes=managers.WAIT_WRITES)
        if end.summary is not None and not done():
            self._checked(end.summary)
        return end

    def _checked(self, summary: Summary) -> Summary:
        """Raise CliError for a run that has ended at its bound: the wait ends as well."""
        if summary.is_cut:
            raise CliError(
                f"the controllers have written {managers.WAIT_WRITES:,} times and are not done: "
                f'"{self._notes.program} controller --once" lets them go on'
            )
        return summary

    def _has_stopped(self, horizon: Horizon) -> bool:
        """Tell whether time goes no further, and not only the lock of the controllers was lost."""
        checkpoint = settled_checkpoint(self._cluster, of_this_version=False)
        return (
            checkpoint is not None
            and horizon.next_moment(
                self._cluster.clock.now(), checkpoint.next_due(), checkpoint.next_due(single=True)
            )
            is None
        )

    def _find_others(self, done: Callable[[], bool]) -> None:
        """Wait a while, in real time, until another process runs the controllers. Raises
        CliError."""
        clock = self._cluster.clock
        end = clock.real_monotonic() + OTHERS_SECONDS
        while self._cluster.store.holder(MANAGER_LOCK) is None and not done():
            if clock.real_monotonic() > end:
                raise CliError(
                    "no controller is running (--reconcile=never), so nothing moves the cluster's "
                    "own time"
                )
            clock.sleep(managers.POLL_SECONDS)

    def advance(
        self,
        horizon: Horizon,
        done: Callable[[], bool] | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
        about: str = "",
        most_writes: float = math.inf,
    ) -> Advance:
        """Let time go on with the controllers (:meth:`Manager.go_on`).

        Where another process runs them, the cluster's own time is moved for it to each moment, and
        its work awaited.
        """
        self.before_time_passes()

        def is_over() -> bool:
            self._progress.show(format_time(self._cluster.clock.now()), about=about)
            return stop()

        while True:
            with manager_lock(self._cluster) as is_lost:
                if is_lost is not None:
                    manager = self._open_manager()
                    summary = manager.go_on(
                        horizon,
                        done,
                        stop=lambda: is_over() or is_lost(),
                        skip_waits=done is not None,
                        most_writes=most_writes,
                    )
                    self._has_settled = True
                    self.tell(summary)
                    return Advance(manager.is_settled(), summary)
            if (checkpoint := self.accompany(horizon, done, stop=is_over)) or is_over():
                return Advance(checkpoint is not None and checkpoint.next_due(single=True) is None)

    def accompany(
        self,
        horizon: Horizon,
        done: Callable[[], bool] | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> Checkpoint | None:
        """Move time for another process that runs the controllers, as long as it does.

        Returns its last checkpoint when time has gone as far as it goes, or ``done()`` holds.
        """
        cluster = self._cluster
        while not stop():
            checkpoint = settled_checkpoint(cluster, of_this_version=False)
            if checkpoint is None:
                if cluster.store.holder(MANAGER_LOCK) is None:
                    break
                cluster.clock.sleep(managers.MOVED_POLL_SECONDS)
                continue
            moment = horizon.next_moment(
                cluster.clock.now(), checkpoint.next_due(), checkpoint.next_due(single=True)
            )
            if moment is None or (done and done()):
                return checkpoint
            if cluster.clock.own:
                cluster.client.move_time_to(moment)
            else:
                cluster.clock.sleep(managers.POLL_SECONDS)

        return None

    def has_observed(self, obj: Object) -> bool:
        """Return whether controllers have seen this version of an object, in this process or before
        it."""
        if self._has_settled:
            return True
        checkpoint = latest(self._cluster.store.meta(CHECKPOINT))
        return (
            checkpoint is not None
            and int(obj["metadata"]["resourceVersion"]) <= checkpoint.revision
        )

    def _run(self, burst: Callable[[Manager], Summary]) -> bool:
        """Do a burst of work, if no other process runs the controllers; return whether it was
        done."""
        clock = self._cluster.clock
        if clock.real_monotonic() < self._others_run_until:
            return False
        with manager_lock(self._cluster) as is_lost:
            if is_lost is None:
                self._others_run_until = clock.real_monotonic() + TAKE_OVER_SECONDS
                return False
            self.tell(burst(self._open_manager()))
            self._has_settled = True
            return True

    def tell(self, summary: Summary) -> None:
        """Say, once, what kept the controllers from their work: others that undo it, or the bound
        of a read."""
        contests = [contest for contest in summary.contests if contest.subject not in self._told]
        self._told.update(contest.subject for contest in contests)
        for contest in contests[:MOST_CONTESTS]:
            self._say(f"note: {contest.sentence}")
        if len(contests) > MOST_CONTESTS:
            self._say(
                f"note: controllers undo each other's work about {len(contests) - MOST_CONTESTS} "
                f"more objects"
            )

        self._tell_excesses(summary)
        if summary.is_cut and not self._has_told_cut:
            self._has_told_cut = True
            self._say(
                f"note: the controllers have written {managers.READ_WRITES:,} times and are not "
                f"done: the next "
                f'command lets them go on, "{self._notes.program} controller --once" to the end'
            )

    def _tell_excesses(self, summary: Summary) -> None:
        """Say, once, which workloads ask for far more pods than they get."""
        excesses = [excess for excess in summary.excesses if excess.key not in self._told]
        self._told.update(excess.key for excess in excesses)
        for excess in excesses[:MOST_CONTESTS]:
            self._say(
                f"note: {excess.sentence} for now: "
                f'"{self._notes.program} controller --once" lets the controllers go on'
            )

    def _check_excesses(self, owner: Object) -> None:
        """Raise CliError where the workload whose pods are waited for does not get them all."""
        for excess in self._open_manager().excesses:
            maker = self._cluster.store.get(excess.key)
            if maker is None:
                continue
            controller = controller_of(maker) or {}
            if uid_of(owner) in (uid_of(maker), controller.get("uid")):
                raise CliError(f"this would wait for ever: {excess.sentence}")

    def _open_manager(self) -> Manager:
        """Return the manager of this command."""
        if self._manager is None:
            self._manager = build_manager(self._cluster)
            self._manager.freshness.command_begun = self._begun
        return self._manager

    def _note_unscheduled(self, owner: Object | None, *, at_once: bool = False) -> None:
        """Say once on a terminal why pods have no node, when the controllers have come to rest or
        time is up."""
        if (
            self._noted
            or not self._progress.is_watched
            or (not at_once and self._progress.seconds() < NOTE_SECONDS)
        ):
            return
        self._notes.unscheduled_pods(self._cluster.client, owner)
        self._noted = True
