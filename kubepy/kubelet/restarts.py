"""The changes that come to a pod's containers by themselves: they become ready, end, wait, and
start again.

Everything is read off the pod: the start of the present run, the end of the last one, the count of
restarts, and the back-off that the status names. Upstream: ``doBackOff`` in
``pkg/kubelet/kuberuntime``, ``pkg/kubelet/images``, the limits in ``pkg/kubelet/kubelet.go``. Pure
functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import ZERO_TIME, format_time, later, parse_time
from kubepy.api.objects.outcomes import CRASHES, IMAGE_PULL_BACKOFF, OOM_KILLED
from kubepy.api.objects.pods import get_condition
from kubepy.api.values.goformat import format_duration, parse_duration
from kubepy.kubelet.lifetimes import COMPLETES, Lifetime, Rules, first_init_container
from kubepy.kubelet.obstacles import is_held, lacks_configuration
from kubepy.kubelet.outcomes import CRASHED, KILLED, OUTCOMES, PULL_FAILED, UNPULLED, PodOutcome

if TYPE_CHECKING:
    from kubepy.api.typed import ContainerState, ContainerStatus, Pod

BACKOFFS = (
    10,
    20,
    40,
    80,
    160,
    300,
)  # seconds: before the second restart, the third …; the last one stays
LONGEST_BACKOFF = BACKOFFS[-1]
STABLE_RUN = 600  # seconds: a longer run makes the back-off begin anew
CRASH_LOOP_RESTARTS = (
    3  # of a crash loop that no other outcome follows: it is under way when it is first seen
)
PULL_ATTEMPTS = (
    0,
    10,
    30,
    70,
    150,
    310,
)  # seconds from the first pull of an image; later ones LONGEST_BACKOFF apart
PULL_ERROR_SECONDS = (
    10  # how long a failed pull is reported: until the kubelet looks at the pod again
)


class RunChange(NamedTuple):
    """A pod's change to an outcome, and when it is due.

    :param repeats: the like of it happens again and again, for ever.
    """

    due: datetime
    outcome: PodOutcome
    repeats: bool = False


class ContainerRun(NamedTuple):
    """The containers of a pod as its status has them: the first one that is not kept from starting
    stands for all.

    :param lifetime: that of the containers, or of the init container that has not completed.
    :param next: the lifetime of the containers, where this is the run of the init container.
    """

    pod: Pod
    lifetime: Lifetime
    rules: Rules
    status: ContainerStatus
    next: Lifetime | None = None

    @property
    def state(self) -> ContainerState:
        return self.status.get("state") or {}

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def is_in_backoff(self) -> bool:
        waiting = self.state.get("waiting") or {}
        return waiting.get("reason") == CRASHED.reason

    @property
    def started(self) -> datetime | None:
        text = (self.state.get("running") or {}).get("startedAt")
        if text:
            return self.rules.moment(self.pod, text)
        return None

    @property
    def restarts(self) -> int:
        return self.status.get("restartCount", 0)

    @property
    def runs(self) -> int:
        """Count the runs that have ended."""
        if self.is_in_backoff:
            return self.restarts + 1
        is_over = not self.is_running and bool(last_end(self.status))
        return self.restarts + is_over

    @property
    def waiting_since(self) -> datetime:
        """Return when the last run ended, or the pod stopped being ready where its status does not
        say it."""
        condition = get_condition(self.pod, "ContainersReady") or {}
        since = last_end(self.status) or condition.get("lastTransitionTime")
        return self.rules.moment(
            self.pod, since or self.pod["status"].get("startTime") or format_time(ZERO_TIME)
        )

    @property
    def backoff(self) -> int:
        """Return the seconds from the end of the last run to the next one, as the status names
        them."""
        message = (self.state.get("waiting") or {}).get("message", "")
        named = re.match(r"back-off (\S+) restarting", message)
        try:
            if named:
                return round(parse_duration(named[1]))
            return _backoff_after(self.restarts)
        except ValueError:
            return _backoff_after(self.restarts)

    @property
    def waited(self) -> int:
        """Return the back-off before the present run, 0 where there was none."""
        started = (self.state.get("running") or {}).get("startedAt")
        ended = last_end(self.status)
        if started and ended:
            return round((parse_time(started) - parse_time(ended)).total_seconds())
        return 0

    @property
    def fits(self) -> bool:
        """Tell whether the containers are in a state that their lifetime leads to, so that time
        alone changes it."""
        if self.is_in_backoff:
            outcome = self.lifetime.attempt(self.runs - 1).outcome
            if self.lifetime.run_length(outcome) is None:
                return False
            return self.lifetime.end_of(outcome)[1]

        attempt = self.lifetime.attempt(self.runs)
        if self.is_running:
            if attempt.outcome == "ready":
                return True
            if attempt.outcome != "not-ready":
                return False
            return not self.status.get("ready")

        if "waiting" not in self.state:
            return False
        if attempt.failed_pulls > 0:
            return True
        return attempt.outcome == IMAGE_PULL_BACKOFF


def last_end(status: ContainerStatus) -> str:
    """Return when the last run of a container ended, empty if it has had but one."""
    last_state = status.get("lastState") or {}
    terminated = last_state.get("terminated") or {}
    return terminated.get("finishedAt", "")


def container_run(pod: Pod, lifetime: Lifetime, rules: Rules) -> ContainerRun | None:
    """Return what the pod's status says of its containers; None before the kubelet has started
    any."""
    status = pod.get("status") or {}
    for entry in status.get("initContainerStatuses") or ():
        is_meant = entry["name"] == first_init_container(pod)
        if is_meant and _has_failed(entry) and not is_held(pod, entry):
            return ContainerRun(pod, lifetime.init or COMPLETES, rules, entry, lifetime)
    for entry in status.get("containerStatuses") or ():
        if not is_held(pod, entry):
            return ContainerRun(pod, lifetime, rules, entry)
    return None


def _has_failed(status: ContainerStatus) -> bool:
    """Tell whether an init container waits for its next run, or has ended with an error."""
    state = status.get("state") or {}
    if "waiting" in state:
        return True
    terminated = state.get("terminated") or {}
    return bool(terminated.get("exitCode"))


def _with_init(init: PodOutcome, start_containers: Callable[[], PodOutcome]) -> PodOutcome:
    """Return the outcome of a pod by that of its init container: the containers start when it has
    completed."""
    if init.phase == "Succeeded":
        return start_containers()._replace(init=init)
    return PodOutcome(
        "Failed" if init.phase == "Failed" else "Pending",
        "waiting",
        reason="PodInitializing",
        init=init,
    )


def start(pod: Pod, lifetime: Lifetime, rules: Rules) -> PodOutcome:
    """Return the outcome of a pod that is to be started, or to live by another lifetime than so
    far."""
    run = container_run(pod, lifetime, rules)
    if run is not None and run.next is not None:
        return _with_init(_start(run.lifetime, run), lambda: _start(lifetime, None))
    if lifetime.init is not None and not has_initialized(pod):
        return _with_init(_start(lifetime.init, None), lambda: _start(lifetime, None))
    return _start(lifetime, run, has_image=lacks_configuration(pod))


def has_initialized(pod: Pod) -> bool:
    """Tell whether the init container that outcomes speak of has completed."""
    status = pod.get("status") or {}
    name = first_init_container(pod)
    end = None
    for entry in status.get("initContainerStatuses") or ():
        if entry["name"] == name:
            state = entry.get("state") or {}
            end = state.get("terminated")
    return end is not None and not end.get("exitCode")


def _start(lifetime: Lifetime, run: ContainerRun | None, *, has_image: bool = False) -> PodOutcome:
    """Return the outcome of the containers, or of the init container, whose run this is; None: they
    have not run."""
    if lifetime.outcome in CRASHES and not lifetime.before:
        return _start_crashing(lifetime, run)
    if run is None:
        return begin(lifetime, 0, 0, pulled=has_image)
    outcome = lifetime.attempt(run.runs).outcome
    if outcome == IMAGE_PULL_BACKOFF or lifetime.run_length(outcome) == 0:
        return begin(lifetime, run.runs, run.waited, KILLED if run.is_running else None)
    if run.is_running:
        return OUTCOMES[outcome]
    restarts = run.runs if last_end(run.status) else 0
    return lifetime.running(outcome)._replace(restarts=restarts)


def _start_crashing(lifetime: Lifetime, run: ContainerRun | None) -> PodOutcome:
    """Return the outcome of containers that are in a crash loop from their start."""
    end, starts_again = lifetime.end_of(lifetime.outcome)
    if not starts_again:
        return end
    restarts = CRASH_LOOP_RESTARTS
    is_running = False
    if run is not None:
        restarts = max(run.restarts, CRASH_LOOP_RESTARTS)
        is_running = run.is_running
    is_shown = is_running or lifetime.outcome == OOM_KILLED
    return crashed(restarts, _backoff_after(restarts), end if is_shown else None)


def begin(
    lifetime: Lifetime,
    runs: int,
    waited: int,
    ended: PodOutcome | None = None,
    *,
    pulled: bool = False,
) -> PodOutcome:
    """Return the outcome when the next run begins; runs that end at once are gone through.

    :param runs: how many runs have ended.
    :param waited: the back-off before this run, in seconds.
    :param ended: how the last run ended, if it ends now.
    :param pulled: the image for the next run is there.
    """
    while True:
        attempt = lifetime.attempt(runs)
        if attempt.outcome == IMAGE_PULL_BACKOFF or (attempt.failed_pulls and not pulled):
            return UNPULLED._replace(phase="Running" if runs else "Pending", ended=ended)
        if lifetime.run_length(attempt.outcome) != 0:
            return lifetime.running(attempt.outcome)._replace(restarts=runs, ended=ended)
        before, (ended, starts_again) = ended, lifetime.end_of(attempt.outcome)
        if not starts_again:
            return ended._replace(restarts=runs, ended=before)
        delay = next_backoff(runs, waited, 0)
        if delay:
            return crashed(runs, delay, ended)
        runs = runs + 1
        waited = 0
        pulled = False


def crashed(restarts: int, delay: int, ended: PodOutcome | None = None) -> PodOutcome:
    """Return the outcome of containers that have ended and wait for their restart."""
    message = CRASHED.message.replace("40s", format_duration(delay))
    return CRASHED._replace(restarts=restarts, message=message, ended=ended)


def next_backoff(restarts: int, waited: int, length: float) -> int:
    """Return the back-off after a run, in seconds: none after the first run and after a long one,
    else twice the last.

    A kubelet that was late has waited for longer than it had to: the count of restarts limits what
    is doubled.
    """
    if restarts == 0 or length > STABLE_RUN:
        return 0
    doubled = next(
        (backoff for backoff in reversed(BACKOFFS) if backoff <= 2 * (waited + 1)), BACKOFFS[0]
    )
    return min(doubled, _backoff_after(restarts))


def _backoff_after(restarts: int) -> int:
    return BACKOFFS[min(max(restarts, 1), len(BACKOFFS)) - 1]


# --- the next change ------------------------------------------------------------------------------


def next_change(run: ContainerRun, now: datetime) -> RunChange | None:
    """Return what happens next to the containers by itself; None where nothing does."""
    change = _change(run, now) if run.fits else None
    containers = run.next
    if change is None or containers is None:
        return change
    return change._replace(outcome=_with_init(change.outcome, lambda: begin(containers, 0, 0)))


def _change(run: ContainerRun, now: datetime) -> RunChange | None:
    if run.is_in_backoff:
        delay = run.backoff
        repeats = delay >= LONGEST_BACKOFF and run.lifetime.attempt(run.runs - 1).is_last
        return RunChange(
            later(run.waiting_since, delay), begin(run.lifetime, run.runs, delay), repeats
        )
    if run.is_running:
        return _change_of_run(run, now)
    return _change_of_pull(run, now)


def _change_of_run(run: ContainerRun, now: datetime) -> RunChange | None:
    """Return the end of a run, or that its containers become ready, whichever is first."""
    lifetime = run.lifetime
    started = run.started
    attempt = lifetime.attempt(run.runs)
    length = lifetime.run_length(attempt.outcome)
    is_like_last = (
        run.restarts > 0
        and lifetime.attempt(run.runs - 1).is_last
        and lifetime.end_of(attempt.outcome)[1]
    )
    repeats = (
        is_like_last
        and length is not None
        and (length > STABLE_RUN or run.waited >= LONGEST_BACKOFF)
    )
    changes = []
    if length is not None and (started or not length):
        changes.append(
            RunChange(later(started, length) if started else now, _end_of_run(run), repeats)
        )

    if attempt.outcome == "ready" and not run.status.get("ready"):
        ready = OUTCOMES["ready"]._replace(restarts=run.restarts)
        changes.append(
            RunChange(later(started, lifetime.ready_after) if started else now, ready, repeats)
        )

    return min(changes, key=lambda change: change.due, default=None)


def _end_of_run(run: ContainerRun) -> PodOutcome:
    outcome = run.lifetime.attempt(run.runs).outcome
    ended, starts_again = run.lifetime.end_of(outcome)
    if not starts_again:
        return ended
    delay = next_backoff(run.restarts, run.waited, run.lifetime.run_length(outcome) or 0)
    if delay:
        return crashed(run.restarts, delay, ended)
    return begin(run.lifetime, run.restarts + 1, 0, ended)


def _change_of_pull(run: ContainerRun, now: datetime) -> RunChange | None:
    """Return the next pull of an image, or the next report on it. A failed pull is reported, then
    that it is waited."""
    attempt = run.lifetime.attempt(run.runs)
    reason = (run.state.get("waiting") or {}).get("reason")
    begun = run.waiting_since
    waited = _backoff_after(run.runs - 1) if run.runs > 1 else 0
    if last_end(run.status):
        begun = later(begun, waited)
    fails = attempt.failed_pulls if attempt.outcome != IMAGE_PULL_BACKOFF else None
    success = begin(run.lifetime, run.runs, waited, pulled=True)
    pulls = max(_pulls_by((now - begun).total_seconds()), 1)
    if fails is not None and pulls > fails:
        return RunChange(later(begun, pull_time(fails)), success)
    if reason not in (UNPULLED.reason, PULL_FAILED.reason):
        if fails is None:
            return None
        return RunChange(later(begun, pull_time(fails)), success)

    reported = later(begun, pull_time(pulls - 1) + PULL_ERROR_SECONDS)
    in_error = pulls > 1 and now < reported
    phase = (run.pod.get("status") or {}).get("phase", "Pending")
    repeats = fails is None and pulls > len(PULL_ATTEMPTS)
    waiting = UNPULLED._replace(phase=phase)
    failed = PULL_FAILED._replace(phase=phase)
    if in_error != (reason == PULL_FAILED.reason):
        return RunChange(now, failed if in_error else waiting, repeats)
    if in_error:
        return RunChange(reported, waiting, repeats)
    outcome = success if pulls == fails else failed
    return RunChange(
        later(begun, pull_time(pulls)), outcome, fails is None and pulls >= len(PULL_ATTEMPTS)
    )


def pull_time(number: int) -> float:
    """Return the seconds from the first pull of an image to a later one."""
    last = len(PULL_ATTEMPTS) - 1
    if number <= last:
        return PULL_ATTEMPTS[number]
    return PULL_ATTEMPTS[last] + LONGEST_BACKOFF * (number - last)


def _pulls_by(seconds: float) -> int:
    """Return how many pulls have been tried so many seconds after the first one."""
    over = max(seconds - PULL_ATTEMPTS[-1], 0.0) // LONGEST_BACKOFF
    return sum(time <= seconds for time in PULL_ATTEMPTS) + int(over)


def deletion_time(pod: Pod) -> datetime:
    """Return when the deletion of a pod was asked for: its grace period before the time when it
    must be gone."""
    metadata = pod["metadata"]
    return parse_time(metadata["deletionTimestamp"]) - _grace_period(pod)


def _grace_period(pod: Pod) -> timedelta:
    seconds = pod["metadata"].get("deletionGracePeriodSeconds")
    return timedelta(seconds=seconds or 0)


def stop_time(run: ContainerRun) -> datetime | None:
    """Return when the containers of a pod that is being deleted have stopped; None if none of them
    runs."""
    status = run.pod["status"]
    statuses = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    if not run.lifetime.stops_after or not any(
        "running" in (entry.get("state") or {}) for entry in statuses
    ):
        return None

    asked = run.rules.moment(run.pod, format_time(deletion_time(run.pod)))
    ends = [asked + _grace_period(run.pod), later(asked, run.lifetime.stops_after)]
    length = run.lifetime.run_length(run.lifetime.attempt(run.runs).outcome)
    if length is not None and run.started:
        ends.append(later(run.started, length))
    return min(ends)
