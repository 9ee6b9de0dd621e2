"""The containers of a source's pods, as learning looks at them: what each has done, of which
workload and which template it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import (
    AnyObject,
    Object,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
)
from kubepy.api.objects.deployments import HASH_LABEL
from kubepy.api.objects.nodes import is_node_unknown
from kubepy.api.objects.pods import is_pod_terminal, is_restartable_init_container
from kubepy.controllers.statefulset.pods import REVISION_LABEL

INIT, SIDECAR, MAIN = "init container", "sidecar", "container"
REVISION_LABELS = (HASH_LABEL, REVISION_LABEL)
LISTS = (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses"))
# The resources of the kinds that pods need, or are owned by.
RESOURCES = {
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "PersistentVolume": "persistentvolumes",
    "Service": "services",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "Job": "jobs.batch",
    "ReplicaSet": "replicasets.apps",
    "EndpointSlice": "endpointslices.discovery.k8s.io",
    "NetworkPolicy": "networkpolicies.networking.k8s.io",
}
OWNED_OWNERS = ("ReplicaSet", "Job")


class Workload(NamedTuple):
    """The things that make a pod anew: the controller of its controller, its controller, or nobody.

    :ivar owner: as rules name it, ``Deployment/web``; "" for a pod that nobody owns.
    :ivar pod: the name of such a pod.
    """

    namespace: str
    owner: str
    pod: str = ""

    @property
    def kind(self) -> str:
        return self.owner.partition("/")[0]

    @property
    def makes_jobs(self) -> bool:
        return self.kind in ("Job", "CronJob")

    def __str__(self) -> str:
        return self.owner or f"Pod/{self.pod}"


class ContainerEvidence(NamedTuple):
    """A container of a pod, and what its status says of it.

    :ivar kind: INIT, SIDECAR or MAIN.
    :ivar revision: label and value of the template that the pod is of; empty for none.
    """

    pod: Object
    container: Object
    status: Object
    kind: str
    workload: Workload
    revision: tuple[str, str]

    @property
    def name(self) -> str:
        return str(self.container["name"])

    @property
    def image(self) -> str:
        return str(self.container.get("image") or "")

    @property
    def waiting(self) -> Object:
        return nested_map(
            self.status,
            "state",
            "waiting",
        )

    @property
    def running_since(self) -> datetime | None:
        """The begin of the run that is under way."""
        return time_of(
            nested_map(
                self.status,
                "state",
                "running",
            ),
            "startedAt",
        )

    @property
    def end(self) -> Object:
        """The end of the last run, empty where none has ended."""
        ended = nested_map(
            self.status,
            "state",
            "terminated",
        )
        return ended or nested_map(
            self.status,
            "lastState",
            "terminated",
        )

    @property
    def restarts(self) -> int:
        return int(self.status.get("restartCount") or 0)

    @property
    def is_ready(self) -> bool:
        return bool(self.status.get("ready"))

    @property
    def pod_has_ended(self) -> bool:
        return is_pod_terminal(self.pod)


class SourceObjects:
    """The objects of a source, and how they belong together.

    :ivar now: the moment of the source.
    """

    def __init__(self, objects: Sequence[Object], now: datetime) -> None:
        self.now = now
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        for obj in objects:
            resource = RESOURCES.get(obj.get("kind", ""))
            if resource is not None:
                of_resource = self._objects.setdefault(resource, {})
                of_resource[namespace_of(obj), name_of(obj)] = obj
        self._messages = dict(_newest_messages(objects))

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """Return an object, None where the source does not hold it."""
        return self._objects.get(resource, {}).get((namespace, name))

    def list(self, resource: str, namespace: str | None = None) -> list[Any]:
        """Return the objects of a resource, in one namespace or in all."""
        objects = self._objects.get(resource, {})
        return [obj for key, obj in objects.items() if namespace in (None, key[0])]

    def pods(self) -> Sequence[Object]:
        """Return the pods by namespace and name."""
        pods = self._objects.get("pods", {})
        return [pods[key] for key in sorted(pods)]

    def is_silent(self, pod: Object) -> bool:
        """Tell whether the kubelet of a pod has fallen silent, so that nothing happens to it."""
        node = self.get(
            "nodes",
            "",
            nested_map(pod, "spec").get("nodeName") or "",
        )
        return node is not None and is_node_unknown(node)

    def message(self, pod: Object, *reasons: str) -> str:
        """Return the newest message of a pod's events for one of these reasons, "" for none."""
        for reason in reasons:
            message = self._messages.get((pod["metadata"].get("uid", ""), reason))
            if message:
                return message
        return ""

    def workload(self, pod: Object) -> Workload:
        """Return the workload of a pod."""
        namespace = namespace_of(pod)
        owner = controller_of(pod)
        if owner is None or owner["kind"] == "Node":
            return Workload(
                namespace,
                "",
                name_of(pod),
            )
        if owner["kind"] in OWNED_OWNERS:
            holder = self.get(
                RESOURCES[owner["kind"]],
                namespace,
                owner["name"],
            )
            above = controller_of(holder) if holder is not None else None
            owner = above or owner
        return Workload(namespace, f"{owner['kind']}/{owner['name']}")

    def evidence(self) -> Iterator[ContainerEvidence]:
        """Yield the containers of all pods, those of which no status is known left out."""
        for pod in self.pods():
            workload = self.workload(pod)
            revision = revision_of(pod)
            for field, status_field in LISTS:
                statuses = {
                    status["name"]: status
                    for status in nested_list(
                        pod,
                        "status",
                        status_field,
                    )
                    if status.get("name")
                }
                for container in nested_list(
                    pod,
                    "spec",
                    field,
                ):
                    status = statuses.get(container["name"])
                    if status is not None:
                        kind = _kind_of(field, container)
                        yield ContainerEvidence(
                            pod,
                            container,
                            status,
                            kind,
                            workload,
                            revision,
                        )


def _kind_of(field: str, container: AnyObject) -> str:
    if field == "containers":
        return MAIN
    return SIDECAR if is_restartable_init_container(container) else INIT


def revision_of(pod: Object) -> tuple[str, str]:
    """Return label and value of the template that a pod is of; empty for none."""
    labels = labels_of(pod)
    for label in REVISION_LABELS:
        if labels.get(label):
            return label, labels[label]
    return "", ""


def _newest_messages(objects: Iterable[Object]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the messages of events by the uid of their object and their reason, the newest last."""
    events = [obj for obj in objects if obj.get("kind") == "Event"]
    events.sort(key=_time_of_event)
    for event in events:
        subject = nested_map(event, "involvedObject") or nested_map(event, "regarding")
        uid = subject.get("uid")
        reason = event.get("reason") or ""
        message = event.get("message") or event.get("note")
        if uid and message:
            yield (uid, reason), message


def _time_of_event(event: Object) -> str:
    return event.get("lastTimestamp") or event.get("eventTime") or ""


def time_of(holder: AnyObject, field: str) -> datetime | None:
    """Return a time of a status; None where it is absent, or the one that stands for never."""
    text = holder.get(field)
    if not text:
        return None
    moment = parse_time(text).astimezone(UTC)
    return None if moment.year <= 1970 else moment


def seconds_between(begin: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds from one moment to a later one; None where one is not known or they are in
    the wrong order."""
    if begin is None or end is None or end < begin:
        return None
    return (end - begin).total_seconds()


def condition_time(pod: Object, condition_type: str, status: str) -> datetime | None:
    """Return since when a condition of a pod has a status; None where it has another."""
    for condition in nested_list(
        pod,
        "status",
        "conditions",
    ):
        if condition.get("type") == condition_type and condition.get("status") == status:
            return time_of(condition, "lastTransitionTime")
    return None


def run_length(ended: AnyObject) -> float | None:
    """Return how long a run took that has ended, in seconds."""
    return seconds_between(time_of(ended, "startedAt"), time_of(ended, "finishedAt"))


def is_terminating(evidence: ContainerEvidence) -> bool:
    """Tell whether a container runs whose pod is being deleted."""
    return is_being_deleted(evidence.pod) and evidence.running_since is not None
