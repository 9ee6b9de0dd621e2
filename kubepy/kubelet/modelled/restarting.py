"""The restarts of containers that have ended: whether, and when.

Upstream: ``ContainerShouldRestart`` in ``pkg/api/v1/pod``, ``doBackOff`` in
``pkg/kubelet/kuberuntime``, ``client-go/util/flowcontrol/backoff.go``. Pure functions.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kubepy.api.objects.pods import is_restartable_init_container

if TYPE_CHECKING:
    from kubepy.api.typed import Container, PodSpec
    from kubepy.kubelet.modelled.records import ContainerRecord

FIRST_BACKOFF = 10  # seconds
LONGEST_BACKOFF = 300  # seconds
FORGOTTEN_AFTER = timedelta(seconds=2 * LONGEST_BACKOFF)
PULL_BACKOFFS = (0, 10, 30, 70, 150, 310)  # seconds from the first pull; later LONGEST_BACKOFF


def restarts_after(container: Container, spec: PodSpec, exit_code: int) -> bool:
    """Tell whether a container starts again after a run that ended with a code."""
    if is_restartable_init_container(container):
        return True
    policy = container.get("restartPolicy")
    if policy:
        for rule in container.get("restartPolicyRules") or ():
            if rule.get("action") == "Restart" and _rule_matches(rule.get("exitCodes"), exit_code):
                return True
    else:
        policy = spec.get("restartPolicy") or "Always"

    if policy == "Always":
        return True
    return policy == "OnFailure" and exit_code != 0


def restarts_when_killed(container: Container, spec: PodSpec) -> bool:
    """Tell whether a container starts again that a failed probe has ended."""
    policy = container.get("restartPolicy") or spec.get("restartPolicy") or "Always"
    return policy != "Never"


def _rule_matches(exit_codes: object, exit_code: int) -> bool:
    if not isinstance(exit_codes, dict):
        return False
    is_listed = exit_code in (exit_codes.get("values") or ())
    if exit_codes.get("operator") == "NotIn":
        return not is_listed
    return is_listed


def backoff_end(record: ContainerRecord, finished: datetime) -> datetime | None:
    """Return until when a container waits after a run that has finished; None: not at all."""
    if not record.backoff or record.backoff_set is None:
        return None
    if finished - record.backoff_set > FORGOTTEN_AFTER:
        return None
    return finished + timedelta(seconds=record.backoff)


def set_next_backoff(record: ContainerRecord, finished: datetime, now: datetime) -> None:
    """Set the back-off that comes after the run which begins now."""
    is_forgotten = record.backoff_set is None or finished - record.backoff_set > FORGOTTEN_AFTER
    if is_forgotten:
        record.backoff = FIRST_BACKOFF
    else:
        record.backoff = min(2 * record.backoff, LONGEST_BACKOFF)
    record.backoff_set = now


def next_pull(record: ContainerRecord, now: datetime) -> datetime:
    """Return when an image is pulled again, after so many pulls that have failed."""
    first = record.pulled_first or now
    number = record.failed_pulls
    if number < len(PULL_BACKOFFS):
        return first + timedelta(seconds=PULL_BACKOFFS[number])
    late = number - len(PULL_BACKOFFS) + 1
    return first + timedelta(seconds=PULL_BACKOFFS[-1] + late * LONGEST_BACKOFF)
