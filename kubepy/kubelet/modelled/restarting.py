"""The restarts of containers that have ended: whether, and when.

Upstream: ``ContainerShouldRestart`` in ``pkg/api/v1/pod``, ``doBackOff`` in
``pkg/kubelet/kuberuntime``, ``client-go/util/flowcontrol/backoff.go``. Pure functions.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.kubelet.restarts import BACKOFFS, LONGEST_BACKOFF, STABLE_RUN, pull_time

if TYPE_CHECKING:
    from kubepy.api.typed import Container, PodSpec
    from kubepy.kubelet.modelled.records import ContainerRecord

FIRST_BACKOFF = BACKOFFS[0]
FORGOTTEN_AFTER = timedelta(seconds=STABLE_RUN)


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
    return first + timedelta(seconds=pull_time(record.failed_pulls))
