"""Which pods belong to a Service, and which Services a change concerns.

Upstream: ``k8s.io/endpointslice/util/controller_utils.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubepy.api.meta import Object, is_being_deleted, labels_of, name_of, namespace_of, uid_of
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal
from kubepy.runtime.reconcile import Handler, Informers, Key, WatchEvent
from kubepy.runtime.workqueue import WorkQueue

SERVICES, PODS, NODES = "services", "pods", "nodes"
SLICES = "endpointslices.discovery.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"  # the label of a slice that names its Service


def is_watched(service: Object) -> bool:
    """Whether the controllers keep the endpoints of this Service: it has a selector and is no ExternalName."""
    return bool(service["spec"].get("selector")) and service["spec"].get("type") != "ExternalName"


def selects(service: Object, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in service["spec"]["selector"].items())


def pods_of(informers: Informers, service: Object) -> list[Object]:
    """The pods that the selector fits, in order of their names."""
    return [pod for pod in informers.list(PODS, namespace_of(service)) if selects(service, labels_of(pod))]


def is_endpoint(pod: Object, *, terminating: bool) -> bool:
    """Whether a pod can be behind a Service at all (``ShouldPodBeInEndpoints``): it has an address and has not ended.

    ``terminating``: a pod that is being deleted counts too.
    """
    if is_pod_terminal(pod) or (is_being_deleted(pod) and not terminating):
        return False
    return bool(addresses_of(pod))


def addresses_of(pod: Object) -> list[str]:
    status = pod.get("status") or {}
    several = [one["ip"] for one in status.get("podIPs") or () if one.get("ip")]
    return several or ([status["podIP"]] if status.get("podIP") else [])


def hostname_within(pod: Object, service: Object) -> str:
    """The hostname that a pod has within a headless Service's domain, or "" (``ShouldSetHostname``)."""
    hostname: str = pod["spec"].get("hostname", "")
    return hostname if hostname and pod["spec"].get("subdomain") == name_of(service) else ""


def target_ref(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {"kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}


class Membership:
    """Turns changes of Services, pods and nodes into keys of Services."""

    def __init__(self, informers: Informers, queue: WorkQueue[Key]) -> None:
        self._informers = informers
        self._queue = queue
        self._shown: dict[str, set[Key]] | None = None  # uid of a pod → the Services whose slices have it

    def handlers(self) -> dict[str, Handler]:
        return {SERVICES: lambda event: self._queue.add(event.key), PODS: self._pod_changed,
                NODES: self._node_changed, SLICES: self.slice_changed}

    def _pod_changed(self, event: WatchEvent) -> None:
        old, new = event.old, event.new
        if old is None or new is None:
            pod = new or old or {}
            self._wake(event.key.namespace, labels_of(pod))
            for key in sorted(self._services_that_show(uid_of(pod))):  # its labels may have been others
                self._queue.add(key)
            if new is None and self._shown:
                self._shown.pop(uid_of(pod), None)
            return
        moved = labels_of(old) != labels_of(new) or _place(old) != _place(new)
        if moved or _shown(old) != _shown(new):
            self._wake(event.key.namespace, labels_of(new))
        if moved:
            self._wake(event.key.namespace, labels_of(old))

    def slice_changed(self, event: WatchEvent) -> None:
        if self._shown is not None and event.new is not None:
            _note(self._shown, event.new)

    def _services_that_show(self, uid: str) -> set[Key]:
        """At least those Services whose slices have the pod."""
        if self._shown is None:
            self._shown = {}
            for one in self._informers.list(SLICES):
                _note(self._shown, one)
        return self._shown.get(uid, set())

    def _node_changed(self, event: WatchEvent) -> None:
        """A node that comes brings back the endpoints of its pods; a zone that changes is theirs too."""
        if event.new is None or (event.old is not None and _zone(event.old) == _zone(event.new)):
            return
        for key in self._informers.pods_on(event.key.name):
            pod = self._informers.get(*key)
            if pod is not None:
                self._wake(key.namespace, labels_of(pod))

    def _wake(self, namespace: str, labels: Mapping[str, str]) -> None:
        for service in self._selecting(namespace, labels):
            self._queue.add(Key(SERVICES, namespace, name_of(service)))

    def _selecting(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Object]:
        return (service for service in self._informers.list(SERVICES, namespace)
                if is_watched(service) and selects(service, labels))


def _note(shown: dict[str, set[Key]], slice_: Object) -> None:
    key = Key(SERVICES, namespace_of(slice_), labels_of(slice_).get(SERVICE_NAME, ""))
    for endpoint in slice_.get("endpoints") or ():
        if "targetRef" in endpoint:
            shown.setdefault(endpoint["targetRef"].get("uid", ""), set()).add(key)


def _place(pod: Object) -> tuple[Any, ...]:
    return pod["spec"].get("hostname"), pod["spec"].get("subdomain")


def _shown(pod: Object) -> tuple[Any, ...]:
    """What endpoints show of a pod (``podEndpointsChanged``)."""
    return is_pod_ready(pod), is_being_deleted(pod), is_pod_terminal(pod), addresses_of(pod)


def _zone(node: Object) -> str | None:
    return labels_of(node).get("topology.kubernetes.io/zone")
