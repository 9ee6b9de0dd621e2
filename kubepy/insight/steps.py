"""The steps that a write of an object makes, from the views before and after it. docs/timeline.md
lists them.

A write that changes nothing of what a step is made of makes none, and one that changes several
things makes several, in the order of this module. ``available`` and ``unavailable`` are not decided
here: they depend on the owner as well, and on time that goes by without a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.apiserver.views import (
    ClaimView,
    ControllerRevisionView,
    JobView,
    NodeView,
    PodView,
    SimpleView,
    WorkloadView,
)

CREATED = "created"
DELETED = "deleted"
TERMINATING = "terminating"
READY = "ready"
NOT_READY = "not-ready"
AVAILABLE = "available"
UNAVAILABLE = "unavailable"
ENDED = ("Failed", "Succeeded")
OUTSIDE = "from outside"  # in the reason of a step that an edited file has made


class Action(NamedTuple):
    """The name of a step and its reason."""

    name: str
    reason: str = ""


Actions = Iterator[Action]


def actions(resource: str, before: Any, after: Any, note: str = "") -> Actions:
    """Yield the steps that a write makes, by the views of the object before and after it (None: not
    there)."""
    if resource in NO_STEPS:
        return
    if after is None:
        yield Action(DELETED)
        return
    if before is None or before.uid != after.uid:
        yield Action(CREATED)
        before = BLANK[resource](after)
    else:
        yield from owner_actions(getattr(before, "owner", ""), getattr(after, "owner", ""))

    yield from CHANGES[resource](before, after)
    if note:
        yield Action("changed", note)
    if after.is_terminating and not before.is_terminating:
        yield Action(TERMINATING, getattr(after, "disruption", ""))


def owner_actions(before: str, after: str) -> Actions:
    """Yield the step of an object that its controller lets go, or that another one takes."""
    if before and not after:
        yield Action("orphaned", before)
    elif before != after:
        yield Action("adopted", after)


def scale(before: int | None, after: int | None) -> Actions:
    if before != after:
        yield Action(
            "scaled",
            f"{'none' if before is None else before} to {'none' if after is None else after}",
        )


def switch(before: bool, after: bool, on: str, off: str) -> Actions:
    """Yield a step where something was turned on or off."""
    if before != after:
        yield Action(on if after else off)


def pod_actions(before: PodView, after: PodView) -> Actions:
    if after.node and not before.node:
        yield Action("scheduled")
    if after.restarts > before.restarts:
        yield Action("restarted", after.ended)
    has_ended = after.phase in ENDED
    if (
        after.phase == "Running" != before.phase
        and not after.is_ready
        and not after.restarts
        and not after.reason
    ):
        yield Action("started")

    if after.reason and after.reason != before.reason and not has_ended:
        yield Action("waiting", after.reason)
    if after.disruption and not before.disruption and not after.is_terminating:
        yield Action("evicted", after.disruption)
    if has_ended and after.phase != before.phase:
        yield Action(after.phase.lower(), after.reason)
    elif after.is_ready != before.is_ready:
        yield Action(READY) if after.is_ready else Action(NOT_READY, after.reason)


def node_actions(before: NodeView, after: NodeView) -> Actions:
    if (before.ready == "True") != (after.ready == "True"):
        yield Action(READY) if after.ready == "True" else Action(NOT_READY, after.reason)
    yield from switch(before.is_unschedulable, after.is_unschedulable, "cordoned", "uncordoned")
    if before.taints != after.taints:
        yield Action("tainted" if after.taints else "untainted", after.taints)


def workload_actions(before: WorkloadView, after: WorkloadView) -> Actions:
    yield from switch(before.is_paused, after.is_paused, "paused", "resumed")
    yield from scale(before.replicas, after.replicas)
    if after.failure and after.failure != before.failure:
        yield Action("failed", after.failure)


def controller_revision_actions(
    before: ControllerRevisionView, after: ControllerRevisionView
) -> Actions:
    if before.number != after.number:
        yield Action("changed", f"revision {before.number} to {after.number}")


def job_actions(before: JobView, after: JobView) -> Actions:
    yield from switch(before.is_suspended, after.is_suspended, "suspended", "resumed")
    yield from scale(before.parallelism, after.parallelism)
    if after.end and after.end != before.end:
        yield Action("completed" if after.end == "Complete" else "failed", after.reason)


def claim_actions(before: ClaimView, after: ClaimView) -> Actions:
    if after.phase != before.phase and after.phase in ("Bound", "Lost"):
        yield Action(after.phase.lower(), after.volume)
    elif before.capacity and after.capacity != before.capacity:
        yield Action("resized", f"{before.capacity} to {after.capacity}")


def simple_actions(before: SimpleView, after: SimpleView) -> Actions:
    yield from switch(before.is_suspended, after.is_suspended, "suspended", "resumed")


WORKLOAD_RESOURCES = (
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
)
CHANGES: Mapping[str, Callable[[Any, Any], Actions]] = {
    "pods": pod_actions,
    "nodes": node_actions,
    **dict.fromkeys(WORKLOAD_RESOURCES, workload_actions),
    "controllerrevisions.apps": controller_revision_actions,
    "jobs.batch": job_actions,
    "persistentvolumeclaims": claim_actions,
    "cronjobs.batch": simple_actions,
    "namespaces": simple_actions,
}
NO_STEPS = frozenset(("poddisruptionbudgets.policy",))  # they only set bounds


# Views of objects as they are created, with which a new one is compared: its spec is part of its
# creation, its status is not.
BLANK: Mapping[str, Callable[[Any], Any]] = {
    "pods": lambda pod: PodView(pod.uid, False, pod.owner, pod.node, pod.revision),
    "nodes": lambda node: node._replace(is_terminating=False, ready=""),
    **dict.fromkeys(
        WORKLOAD_RESOURCES, lambda workload: workload._replace(is_terminating=False, failure="")
    ),
    "controllerrevisions.apps": lambda revision: revision._replace(is_terminating=False),
    "jobs.batch": lambda job: job._replace(is_terminating=False, end=""),
    "persistentvolumeclaims": lambda claim: claim._replace(
        is_terminating=False, phase="", capacity=""
    ),
    "cronjobs.batch": lambda cron_job: cron_job._replace(is_terminating=False),
    "namespaces": lambda namespace: namespace._replace(is_terminating=False),
}
