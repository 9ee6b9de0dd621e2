"""The failures of containers, read off their statuses: an image that cannot be pulled, a container
that cannot be started, one that ends again and again, one that does not get ready.

Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.meta import Object, namespace_of, nested_map
from kubepy.api.objects.references import missing_references
from kubepy.apiserver.rule_settings import FAILS, NEVER
from kubepy.importing.evidence import (
    INIT,
    ContainerEvidence,
    SourceObjects,
    condition_time,
    run_length,
    seconds_between,
)
from kubepy.kubelet.lastingvolumes import unprocessed_claims
from kubepy.kubelet.modelled.statuses import START_ERROR
from kubepy.kubelet.obstacles import (
    CRASH_LOOP,
    CREATING,
    INITIALIZING,
    INVALID_IMAGE_NAME,
    PULL_REASONS,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

RUNTIME_ERRORS = (START_ERROR, "ContainerCannotRun")
OUT_OF_MEMORY = "OOMKilled"
# Ends that say nothing of the container: its node or its kubelet was restarted.
LOST = ("ContainerStatusUnknown", "Unknown")
LOST_CODE = 255
PLAIN_ENDS = ("Error", "Completed")
BACKOFF_FORGOTTEN = 600.0  # seconds of a run after which a kubelet forgets its back-off
MANY_RESTARTS = 3
STUCK_AFTER = 120.0  # seconds for which nothing has happened to a container that ought to go on
PULL_BACKOFF = re.compile(r'Back-off pulling image ".*?"(?:: ErrImagePull: )?')
PULL_EVENT = re.compile(r'Failed to pull image ".*?": ')


class ContainerFailure(NamedTuple):
    """The way in which a container fails.

    :ivar field: the field of a rule that says so most of all: pull, start, runsFor, readyAfter.
    :ivar values: fields of a rule, but for lengths of time.
    :ivar lengths: how long runs took that ended, in seconds.
    :ivar words: the failure in words, for the comment of the rule.
    """

    field: str
    values: dict[str, Any]
    words: str
    lengths: tuple[float, ...] = ()


def failure_of(evidence: ContainerEvidence, source: SourceObjects) -> ContainerFailure | None:
    """Return how a container of a pod that has not ended fails; None where it does not, or where
    the cause is an object that is missing."""
    waiting = evidence.waiting
    if waiting:
        return _failure_of_waiting(
            evidence,
            waiting,
            source,
        )
    if nested_map(
        evidence.status,
        "state",
        "terminated",
    ):
        return _failure_of_ended(evidence)
    if _ends_again(evidence, source):
        return crash(evidence, evidence.end)
    if _is_stuck_unready(evidence, source):
        return ContainerFailure(
            "readyAfter",
            {"readyAfter": NEVER},
            "is not ready",
        )
    return None


def _failure_of_waiting(
    evidence: ContainerEvidence, waiting: Object, source: SourceObjects
) -> ContainerFailure | None:
    reason = waiting.get("reason") or CREATING
    message = waiting.get("message") or ""
    if reason in PULL_REASONS:
        return _failed_pull(
            evidence,
            message,
            source,
        )
    if reason == CRASH_LOOP:
        return crash(evidence, evidence.end)
    if reason in (INITIALIZING, INVALID_IMAGE_NAME):
        return None
    if _lacks_objects(evidence.pod, source):
        return None
    if reason == CREATING:
        return _failed_creation(evidence, source)
    words = f"is not started: {reason}"
    return ContainerFailure(
        "start",
        {"start": _start(reason, message)},
        words,
    )


def _start(reason: str, message: str) -> dict[str, str]:
    if not message:
        return {"reason": reason}
    return {"reason": reason, "message": message}


def _failed_pull(
    evidence: ContainerEvidence, message: str, source: SourceObjects
) -> ContainerFailure:
    problem = PULL_BACKOFF.sub(
        "",
        message,
        count=1,
    )
    if not problem:
        problem = PULL_EVENT.sub(
            "",
            source.message(evidence.pod, "Failed"),
            count=1,
        )
    if problem.startswith("Error: "):
        problem = ""
    pull = f"{FAILS}: {problem}" if problem else FAILS
    return ContainerFailure(
        "pull",
        {"pull": pull},
        "cannot be pulled",
    )


def _lacks_objects(pod: Object, source: SourceObjects) -> bool:
    """Tell whether a pod names a ConfigMap, a Secret, a key or a claim that is not there: that it
    waits follows from it."""
    missing = missing_references(
        pod["spec"],
        namespace_of(pod),
        source.get,
    )
    if any(True for _ in missing):
        return True
    return bool(unprocessed_claims(cast("Pod", pod), source.get))


def _failed_creation(evidence: ContainerEvidence, source: SourceObjects) -> ContainerFailure | None:
    """Return why a container has not been created for long: its volumes, its network, or nobody
    knows."""
    since = condition_time(
        evidence.pod,
        "PodScheduled",
        "True",
    )
    waited = seconds_between(since, source.now)
    if waited is None or waited < STUCK_AFTER or evidence.kind == INIT:
        return None
    message = source.message(
        evidence.pod,
        "FailedMount",
        "FailedAttachVolume",
        "FailedCreatePodSandBox",
    )
    return ContainerFailure(
        "start",
        {"start": _start(CREATING, message)},
        "is not created",
    )


def _failure_of_ended(evidence: ContainerEvidence) -> ContainerFailure | None:
    """Return the failure of a container that has just ended and starts again."""
    ended = evidence.end
    if evidence.kind == INIT and not ended.get("exitCode"):
        return None
    policy = nested_map(evidence.pod, "spec").get("restartPolicy") or "Always"
    if policy == "Never" or (policy == "OnFailure" and not ended.get("exitCode")):
        return None
    if not ended.get("exitCode") and not evidence.restarts:
        return None
    return crash(evidence, ended)


def is_lost(ended: Object) -> bool:
    """Tell whether an end says nothing of the container itself."""
    return ended.get("reason") in LOST or ended.get("exitCode") == LOST_CODE


def crash(evidence: ContainerEvidence, ended: Object) -> ContainerFailure | None:
    """Return the failure of a container whose runs end so."""
    if not ended or is_lost(ended):
        return None
    code = int(ended.get("exitCode") or 0)
    reason = ended.get("reason") or ""
    message = ended.get("message") or ""
    if reason in RUNTIME_ERRORS:
        values: dict[str, Any] = {"start": _start(START_ERROR, message), "exitCode": code}
        return ContainerFailure(
            "start",
            values,
            "cannot be started",
        )
    values = {"exitCode": code}
    words = f"ends with exit code {code}"
    if reason and reason not in PLAIN_ENDS:
        values["exitReason"] = reason
        words = f"is {reason}" if reason == OUT_OF_MEMORY else f"ends with {reason}"
    if message:
        values["exitMessage"] = message
    if _was_never_ready(evidence):
        values["readyAfter"] = NEVER
    length = run_length(ended)
    lengths = () if length is None else (length,)
    return ContainerFailure(
        "runsFor",
        values,
        words,
        lengths,
    )


def _was_never_ready(evidence: ContainerEvidence) -> bool:
    """Tell whether a container ends before it gets ready: the pod has not been ready since its
    start."""
    since = condition_time(
        evidence.pod,
        "Ready",
        "False",
    )
    scheduled = condition_time(
        evidence.pod,
        "PodScheduled",
        "True",
    )
    initialized = condition_time(
        evidence.pod,
        "Initialized",
        "True",
    )
    if since is None or scheduled is None:
        return False
    begin = max(scheduled, initialized or scheduled)
    return since <= begin + timedelta(seconds=2)


def _ends_again(evidence: ContainerEvidence, source: SourceObjects) -> bool:
    """Tell whether a container that runs is to end as its last run did: it is in a crash loop, or
    has ended that often."""
    last = nested_map(
        evidence.status,
        "lastState",
        "terminated",
    )
    age = seconds_between(evidence.running_since, source.now)
    if not last or age is None or is_lost(last) or not evidence.restarts:
        return False
    length = run_length(last)
    if length is None:
        return False
    is_out_of_memory = last.get("reason") == OUT_OF_MEMORY
    is_recent = age < BACKOFF_FORGOTTEN and length < BACKOFF_FORGOTTEN
    if is_recent and (evidence.restarts >= 2 or is_out_of_memory):
        return True
    is_often = evidence.restarts >= MANY_RESTARTS or is_out_of_memory
    return is_often and age <= 2 * length


def _is_stuck_unready(evidence: ContainerEvidence, source: SourceObjects) -> bool:
    """Tell whether a container has run for long and is not ready."""
    if evidence.kind == INIT or evidence.is_ready or not evidence.container.get("readinessProbe"):
        return False
    age = seconds_between(evidence.running_since, source.now)
    if age is None:
        return False
    delay = evidence.container["readinessProbe"].get("initialDelaySeconds") or 0
    return age >= STUCK_AFTER + delay


def merged(failures: Sequence[ContainerFailure]) -> list[tuple[ContainerFailure, int]]:
    """Return the different failures among some, each with how often it is there, the most frequent
    first. Lengths and messages do not make a difference; the first message counts."""
    kinds: dict[tuple[str, str], list[ContainerFailure]] = {}
    for failure in failures:
        kinds.setdefault((failure.field, failure.words), []).append(failure)
    result = []
    for alike in sorted(kinds.values(), key=len, reverse=True):
        lengths = tuple(length for failure in alike for length in failure.lengths)
        result.append((alike[0]._replace(lengths=lengths), len(alike)))
    return result


def names_of(evidences: Iterable[ContainerEvidence]) -> list[str]:
    """Return the names of pods, each once, in order."""
    return sorted({evidence.pod["metadata"]["name"] for evidence in evidences})
