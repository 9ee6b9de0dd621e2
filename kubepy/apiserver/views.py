"""Views of objects for the timeline: what a step, or a number beside it, can be made of, and
nothing else.

Storage calls :meth:`Looker.look` for each write of an object of these resources, and keeps what it
returns. A view is a flat tuple of texts, numbers and booleans. It must be cheap: most writes change
nothing that shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

from kubepy.api.meta import Object, controller_of, labels_of
from kubepy.api.objects.deployments import HASH_LABEL, REVISION, template_without_hash
from kubepy.storage import Key
from kubepy.storage.timeline import View

REVISION_LABEL = "controller-revision-hash"
STATEFUL_SET_LABEL = "controller.kubernetes.io/hash"  # of a StatefulSet's ControllerRevision
STARTING = frozenset(
    ("ContainerCreating", "PodInitializing")
)  # reasons of a container that waits as it should
NO_STATUS: Object = {}


class PodView(NamedTuple):
    """A pod.

    :ivar owner: the resource and name of its controller: ``replicasets.apps/web-5d4c4ff75b``.
    :ivar revision: the hash of its template.
    :ivar ready_since: the time of its Ready condition.
    :ivar reason: why it fails or waits: ``CrashLoopBackOff``, ``Unschedulable``, ``Evicted``.
    :ivar ended: the reason for the last end of a container that was started again.
    :ivar disruption: the reason of its DisruptionTarget condition.
    """

    uid: str
    is_terminating: bool
    owner: str = ""
    node: str = ""
    revision: str = ""
    phase: str = ""
    is_ready: bool = False
    ready_since: str = ""
    reason: str = ""
    restarts: int = 0
    ended: str = ""
    disruption: str = ""


class NodeView(NamedTuple):
    """A node. ``ready``: the status of its Ready condition, ``reason`` that condition's.
    ``taints``: those by hand."""

    uid: str
    is_terminating: bool
    ready: str = ""
    reason: str = ""
    is_unschedulable: bool = False
    taints: str = ""


class WorkloadView(NamedTuple):
    """A Deployment, DaemonSet, StatefulSet, ReplicaSet or ReplicationController.

    :ivar template: a digest of the template.
    :ivar revision: the hash of a ReplicaSet's template, and that of a StatefulSet's newest
        revision.
    :ivar number: the revision of a Deployment's ReplicaSet.
    :ivar is_observed: its controller has seen the present spec.
    :ivar scheduled: on how many nodes there should be a pod of a DaemonSet.
    :ivar failure: the reason for which it does not come on.
    :ivar labels: those of its template, as JSON: budgets select by them.
    """

    uid: str
    is_terminating: bool
    owner: str = ""
    replicas: int = 0
    min_ready_seconds: int = 0
    is_paused: bool = False
    template: str = ""
    revision: str = ""
    number: int = 0
    is_observed: bool = True
    scheduled: int = 0
    failure: str = ""
    strategy: str = ""
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    labels: str = ""


class BudgetView(NamedTuple):
    """A PodDisruptionBudget. It makes no steps, but sets bounds. ``selector``: as JSON, "" for
    none."""

    uid: str
    is_terminating: bool
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: str = ""


class ControllerRevisionView(NamedTuple):
    """A ControllerRevision."""

    uid: str
    is_terminating: bool
    owner: str = ""
    revision: str = ""
    number: int = 0


class JobView(NamedTuple):
    """A Job. ``end``: the type of the condition with which it has ended, ``reason`` that
    condition's."""

    uid: str
    is_terminating: bool
    owner: str = ""
    parallelism: int = 1
    completions: int | None = None
    succeeded: int = 0
    is_suspended: bool = False
    end: str = ""
    reason: str = ""


class ClaimView(NamedTuple):
    """A claim of a volume."""

    uid: str
    is_terminating: bool
    owner: str = ""
    phase: str = ""
    volume: str = ""
    capacity: str = ""


class SimpleView(NamedTuple):
    """A CronJob, or a namespace, which is never suspended."""

    uid: str
    is_terminating: bool
    is_suspended: bool = False


# --- objects --------------------------------------------------------------------------------------


def _identity(obj: Object) -> tuple[str, bool]:
    metadata = obj["metadata"]
    return metadata.get("uid") or "", bool(metadata.get("deletionTimestamp"))


def owner_of(obj: Object) -> str:
    """Return the resource and name of an object's controller, "" without one."""
    if (owner := controller_of(obj)) is None:
        return ""
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{_plural(owner['kind'])}{group and '.'}{group}/{owner['name']}"


def _plural(kind: str) -> str:
    """Guess the plural of a kind (``UnsafeGuessKindToResource``)."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}s"


def _condition(status: Object, kind: str) -> Object:
    return next(
        (
            condition
            for condition in status.get("conditions") or ()
            if condition.get("type") == kind
        ),
        NO_STATUS,
    )


def view_pod(pod: Object) -> PodView:
    status = pod.get("status") or NO_STATUS
    labels = labels_of(pod)
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready", NO_STATUS)
    is_ready = ready.get("status") == "True"
    phase = status.get("phase") or ""
    node = (pod.get("spec") or NO_STATUS).get("nodeName") or ""
    restarts, ended, reason = _container_facts(status)
    if phase in ("Failed", "Succeeded"):
        reason = status.get("reason") or (reason if phase == "Failed" else "")
    elif (
        not node
        and (scheduled := conditions.get("PodScheduled", NO_STATUS)).get("status") == "False"
    ):
        reason = scheduled.get("reason") or ""

    disruption = conditions.get("DisruptionTarget", NO_STATUS)
    owner = owner_of(pod)
    revision = labels.get(HASH_LABEL) or labels.get(REVISION_LABEL) or ""
    if revision and owner.startswith(
        "statefulsets"
    ):  # the label has the whole name of the ControllerRevision
        revision = revision.rpartition("-")[2]

    return PodView(
        *_identity(pod),
        owner,
        node,
        revision,
        phase,
        is_ready,
        ready.get("lastTransitionTime") or "" if is_ready else "",
        reason,
        restarts,
        ended,
        disruption.get("reason") or "" if disruption.get("status") == "True" else "",
    )


def _container_facts(status: Object) -> tuple[int, str, str]:
    """Return the number of restarts, the reason for the last end before one, and the first
    container's reason to wait or to have failed."""
    restarts = 0
    reason = ""
    last = ""
    ended = ""
    for container in chain(
        status.get("initContainerStatuses") or (), status.get("containerStatuses") or ()
    ):
        state = container.get("state") or NO_STATUS
        waiting = state.get("waiting")
        terminated = state.get("terminated")
        if not reason and waiting and waiting.get("reason") not in STARTING:
            reason = waiting.get("reason") or ""
        elif not reason and terminated and terminated.get("exitCode"):
            reason = terminated.get("reason") or "Error"
        if count := container.get("restartCount"):
            restarts += count
            before = (container.get("lastState") or NO_STATUS).get("terminated") or NO_STATUS
            if (time := before.get("finishedAt") or "") >= last:
                last = time
                ended = before.get("reason") or ""

    return restarts, ended, reason


def view_node(node: Object) -> NodeView:
    spec = node.get("spec") or NO_STATUS
    ready = _condition(node.get("status") or NO_STATUS, "Ready")
    taints = sorted(
        f"{taint.get('key')}{'=' if taint.get('value') else ''}{taint.get('value') or ''}:"
        f"{taint.get('effect')}"
        for taint in spec.get("taints") or ()
        if not str(taint.get("key")).startswith("node.kubernetes.io/")
    )
    return NodeView(
        *_identity(node),
        ready.get("status") or "",
        ready.get("reason") or "",
        bool(spec.get("unschedulable")),
        ",".join(taints),
    )


def view_workload(obj: Object) -> WorkloadView:
    """Make the view of any workload with pods of its own or ReplicaSets, without the digest of its
    template."""
    metadata = obj["metadata"]
    spec = obj.get("spec") or NO_STATUS
    status = obj.get("status") or NO_STATUS
    strategy = spec.get("strategy") or spec.get("updateStrategy") or NO_STATUS
    rolling = strategy.get("rollingUpdate") or NO_STATUS
    progressing = _condition(status, "Progressing")
    is_stuck = (
        progressing.get("status") == "False"
        and progressing.get("reason") == "ProgressDeadlineExceeded"
    )
    failing = progressing if is_stuck else _condition(status, "ReplicaFailure")
    number = (metadata.get("annotations") or NO_STATUS).get(REVISION, "")
    return WorkloadView(
        *_identity(obj),
        owner_of(obj),
        spec.get("replicas", 0),
        spec.get("minReadySeconds") or 0,
        bool(spec.get("paused")),
        "",
        labels_of(obj).get(HASH_LABEL) or (status.get("updateRevision") or "").rpartition("-")[2],
        int(number) if number.isdecimal() else 0,
        (status.get("observedGeneration") or 0) >= (metadata.get("generation") or 0),
        status.get("desiredNumberScheduled") or 0,
        failing.get("reason") or "" if is_stuck or failing.get("status") == "True" else "",
        strategy.get("type") or "",
        rolling.get("maxSurge"),
        rolling.get("maxUnavailable"),
        _json(((spec.get("template") or NO_STATUS).get("metadata") or NO_STATUS).get("labels")),
    )


def view_budget(budget: Object) -> BudgetView:
    spec = budget.get("spec") or NO_STATUS
    return BudgetView(
        *_identity(budget),
        spec.get("minAvailable"),
        spec.get("maxUnavailable"),
        _json(spec.get("selector")),
    )


def _json(value: Any) -> str:
    if value is not None:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return ""


def view_controller_revision(revision: Object) -> ControllerRevisionView:
    labels = labels_of(revision)
    return ControllerRevisionView(
        *_identity(revision),
        owner_of(revision),
        labels.get(REVISION_LABEL) or labels.get(STATEFUL_SET_LABEL) or "",
        revision.get("revision") or 0,
    )


def view_job(job: Object) -> JobView:
    spec = job.get("spec") or NO_STATUS
    status = job.get("status") or NO_STATUS
    end = next(
        (
            condition
            for condition in status.get("conditions") or ()
            if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed")
        ),
        NO_STATUS,
    )
    return JobView(
        *_identity(job),
        owner_of(job),
        spec.get("parallelism", 1),
        spec.get("completions"),
        status.get("succeeded") or 0,
        bool(spec.get("suspend")),
        end.get("type") or "",
        end.get("reason") or "",
    )


def view_claim(claim: Object) -> ClaimView:
    spec = claim.get("spec") or NO_STATUS
    status = claim.get("status") or NO_STATUS
    return ClaimView(
        *_identity(claim),
        owner_of(claim),
        status.get("phase") or "",
        spec.get("volumeName") or "",
        str((status.get("capacity") or NO_STATUS).get("storage") or ""),
    )


def view_simple(obj: Object) -> SimpleView:
    return SimpleView(*_identity(obj), bool((obj.get("spec") or NO_STATUS).get("suspend")))


AnyView = (
    PodView
    | NodeView
    | WorkloadView
    | BudgetView
    | ControllerRevisionView
    | JobView
    | ClaimView
    | SimpleView
)
BUDGETS = "poddisruptionbudgets.policy"
WORKLOADS = (
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
)
VIEWS: Mapping[str, Any] = {
    "pods": (view_pod, PodView),
    "nodes": (view_node, NodeView),
    **dict.fromkeys(WORKLOADS, (view_workload, WorkloadView)),
    "controllerrevisions.apps": (view_controller_revision, ControllerRevisionView),
    BUDGETS: (view_budget, BudgetView),
    "jobs.batch": (view_job, JobView),
    "cronjobs.batch": (view_simple, SimpleView),
    "namespaces": (view_simple, SimpleView),
    "persistentvolumeclaims": (view_claim, ClaimView),
}
WITH_DIGEST = frozenset(WORKLOADS)
WITH_NOTES = frozenset(
    (*WORKLOADS, "cronjobs.batch", "jobs.batch")
)  # generations of other kinds tell nothing
IN_VIEW = frozenset(
    ("replicas", "paused", "suspend", "parallelism")
)  # fields of a spec whose changes views show


def view(resource: str, obj: Object) -> AnyView:
    """Return the view of an object."""
    seen: AnyView = VIEWS[resource][0](obj)
    if resource in WITH_DIGEST and isinstance(seen, WorkloadView):
        return seen._replace(template=_digest(obj))
    return seen


def from_stored(resource: str, stored: View) -> Any:
    """Return a view that storage has kept, perhaps of another version with fewer or more fields at
    the end."""
    kind = VIEWS[resource][1]
    return kind(*stored[: len(kind._fields)])


class Looker:
    """Looks at the writes of one transaction.

    The objects of a transaction do not change, so the view of an object after a write is that
    before the next.
    """

    def __init__(self) -> None:
        self._last: dict[
            Key, tuple[Object, Any]
        ] = {}  # the object that was written last, and its view

    def look(
        self, key: Key, old: Object | None, new: Object | None
    ) -> tuple[View | None, View | None, str] | None:
        """Return the views of an object before and after a write, and which other fields of its
        spec have changed; None where nothing shows."""
        make = VIEWS[key.resource][0]
        last, seen = self._last.get(key, (None, None))
        before = None
        if old is not None:
            before = seen if old is last else make(old)
        after = make(new) if new is not None else None
        if new is not None:
            self._last[key] = new, after
        note = ""
        has_same_spec = False
        if old is not None and new is not None:
            has_same_spec = old["metadata"].get("generation") == new["metadata"].get("generation")
            if not has_same_spec and key.resource in WITH_NOTES:
                note = ", ".join(
                    _changed_fields(old.get("spec") or NO_STATUS, new.get("spec") or NO_STATUS)
                )
            if before == after and not note:
                return None

        if key.resource in WITH_DIGEST:
            digest = _digest(old) if old is not None else ""
            before = before and before._replace(template=digest)
            after = after and after._replace(
                template=digest if has_same_spec else _digest(new or NO_STATUS)
            )

        return before, after, note


def _digest(obj: Object) -> str:
    """Return a digest of an object's template, by which that of a Deployment and of its ReplicaSet
    are the same."""
    template = (obj.get("spec") or NO_STATUS).get("template") or NO_STATUS
    return f"{crc32(json.dumps(template_without_hash(template), sort_keys=True).encode()):08x}"


def _changed_fields(old: Object, new: Object) -> Iterator[str]:
    """Yield the fields of a spec that have changed; of a template its images, if they have. A
    CronJob has its template in that of its Jobs."""
    for field in sorted({*old, *new} - IN_VIEW):
        before = old.get(field)
        after = new.get(field)
        if before == after:
            continue
        images: list[str] = []
        if field == "template":
            images = list(_changed_images(before, after))
        elif field == "jobTemplate":
            images = list(_changed_images(*map(_template_of_jobs, (before, after))))
        yield from images or [field]


def _template_of_jobs(job_template: Object | None) -> Object:
    return ((job_template or NO_STATUS).get("spec") or NO_STATUS).get("template") or NO_STATUS


def _changed_images(old: Object | None, new: Object | None) -> Iterator[str]:
    before, after = (
        {
            container.get("name"): container.get("image")
            for field in ("initContainers", "containers")
            for container in ((template or NO_STATUS).get("spec") or NO_STATUS).get(field) or ()
        }
        for template in (old, new)
    )
    return (
        f"{before[name]} to {image}"
        for name, image in after.items()
        if before.get(name, image) != image
    )
