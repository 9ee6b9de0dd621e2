"""What becomes of pods: for each outcome the phase, and the state of the containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Outcome(NamedTuple):
    """What becomes of a pod: its phase and the state of each of its containers."""

    phase: str
    state: str  # running, waiting, terminated
    ready: bool = False
    reason: str = ""
    message: str = ""  # of a waiting container; may name {container}, {image}, {pod}
    exit_code: int = 0
    restarts: int = 0


PENDING = "pending"  # no outcome: the kubelet never gets to such a pod
OUTCOMES: Mapping[str, Outcome] = {
    "ready": Outcome("Running", "running", ready=True),
    "not-ready": Outcome("Running", "running"),
    "crash-loop": Outcome(
        "Running", "waiting", reason="CrashLoopBackOff", restarts=3,
        message="back-off 40s restarting failed container={container} pod={pod}",
    ),
    "image-pull-backoff": Outcome(
        "Pending", "waiting", reason="ImagePullBackOff", message='Back-off pulling image "{image}"',
    ),
    "failed": Outcome("Failed", "terminated", reason="Error", exit_code=1),
    "succeeded": Outcome("Succeeded", "terminated", reason="Completed"),
}  # fmt: skip
RUNNING = OUTCOMES["ready"]
COMPLETED = OUTCOMES["succeeded"]
KILLED = OUTCOMES["failed"]._replace(exit_code=137)
