"""The outcomes of pods as a table, and the back-off of pods that end and are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from kubepy.api.clock import format_micro_time, parse_time


class Waiting(NamedTuple):
    """The reason why a container has not been started."""

    reason: str
    message: str = ""


class StartObstacles(NamedTuple):
    """The things for which the containers of a pod are not started, beside their outcome.

    :param mounts: (volume, why it cannot be mounted): nothing of the pod is started.
    :param containers: by the names of containers.
    """

    mounts: tuple[tuple[str, str], ...] = ()
    containers: tuple[tuple[str, Waiting], ...] = ()

    def of(self, container: str) -> Waiting | None:
        """Return the obstacle of a container."""
        for name, waiting in self.containers:
            if name == container:
                return waiting
        return None


class PodOutcome(NamedTuple):
    """The phase of a pod and the state of each of its containers.

    :param ended: the end of the run that was before: it becomes ``lastState``.
    :param init: the outcome of the first init container, where it is not that it has completed.
    """

    phase: str
    state: str  # running, waiting, terminated
    ready: bool = False
    reason: str = ""
    message: str = ""  # of a waiting container; may name {container}, {image}, {pod}
    exit_code: int = 0
    restarts: int = 0
    ended: PodOutcome | None = None
    init: PodOutcome | None = None


# There is no "pending": the kubelet never starts such a pod.
OUTCOMES: Mapping[str, PodOutcome] = {
    "ready": PodOutcome("Running", "running", ready=True),
    "not-ready": PodOutcome("Running", "running"),
    "crash-loop": PodOutcome(
        "Running", "waiting", reason="CrashLoopBackOff", restarts=3,
        message="back-off 40s restarting failed container={container} pod={pod}",
    ),
    "image-pull-backoff": PodOutcome(
        "Pending", "waiting", reason="ImagePullBackOff", message='Back-off pulling image "{image}"',
    ),
    "failed": PodOutcome("Failed", "terminated", reason="Error", exit_code=1),
    "succeeded": PodOutcome("Succeeded", "terminated", reason="Completed"),
}  # fmt: skip
RUNNING = OUTCOMES["ready"]
COMPLETED = OUTCOMES["succeeded"]
CRASHED = OUTCOMES["crash-loop"]
UNPULLED = OUTCOMES["image-pull-backoff"]
PULL_FAILED = UNPULLED._replace(
    reason="ErrImagePull",
    message=(
        'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": not found'
    ),
)
KILLED = OUTCOMES["failed"]._replace(exit_code=137)
OUT_OF_MEMORY = KILLED._replace(reason="OOMKilled")


class TerminationBackoff:
    """Delays the end of pods, the longer the more pods of their controller have ended lately.

    A controller replaces a pod that ended; where all its pods end as soon as they begin, this would
    go on for ever. (The outcomes end the pod itself; a kubelet would restart its containers, as it
    does after ``runs-for``.)
    """

    FREE = 20  # pods that end without delay
    LONGEST = timedelta(minutes=5)
    FORGOTTEN_AFTER = timedelta(minutes=10)

    def __init__(self) -> None:
        self._ended: dict[
            str, tuple[int, datetime]
        ] = {}  # by the controller's uid: how many, and the last one

    def delay(self, controller: str, now: datetime) -> float:
        """Return the seconds until the next pod may end: none for the first ones, then 1, 2, 4 …
        since the last."""
        number, last = self._ended.get(controller, (0, now))
        if number < self.FREE or now - last > self.FORGOTTEN_AFTER:
            return 0.0
        return max((last + self._length(number) - now).total_seconds(), 0.0)

    def is_longest(self, controller: str) -> bool:
        """Tell whether the delay does not grow any more."""
        return self._length(self._ended[controller][0]) == self.LONGEST

    def _length(self, number: int) -> timedelta:
        return min(timedelta(seconds=2 ** min(max(number - self.FREE, 0), 10)), self.LONGEST)

    def record(self, controller: str, now: datetime) -> None:
        """Count one more pod of the controller as ended."""
        self._ended = {
            uid: ended
            for uid, ended in self._ended.items()
            if now - ended[1] <= self.FORGOTTEN_AFTER
        }
        number, _ = self._ended.get(controller, (0, now))
        self._ended[controller] = (number + 1, now)

    def remember(self) -> Any:
        """Return the counts as JSON, for the next process."""
        return {
            uid: [number, format_micro_time(last)]
            for uid, (number, last) in sorted(self._ended.items())
        }

    def recall(self, memory: Any) -> None:
        """Take over the counts from the JSON of :meth:`remember`."""
        for uid, (number, last) in memory.items():
            self._ended.setdefault(uid, (number, parse_time(last)))
