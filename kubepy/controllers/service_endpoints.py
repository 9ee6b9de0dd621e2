"""Services and their pods, for the controllers of EndpointSlices and of Endpoints.

The Services that a change concerns (:class:`ServiceHandlers`), the pods and ports behind a Service,
and the time of the change that endpoints follow. Upstream: ``k8s.io/endpointslice/util``,
``pkg/api/v1/endpoints``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.meta import ObjectT, is_being_deleted, labels_of, name_of, namespace_of, uid_of
from kubepy.api.objects.pods import (
    get_condition,
    is_pod_ready,
    is_pod_terminal,
    is_restartable_init_container,
)
from kubepy.runtime.informers import ENDPOINT_SLICES, NODES, PODS, SERVICES, Informers
from kubepy.runtime.reconcile import Handler, Key, WatchEvent
from kubepy.runtime.workqueue import WorkQueue

if TYPE_CHECKING:
    from kubepy.api.typed import (
        EndpointPort,
        Endpoints,
        EndpointSlice,
        Node,
        ObjectReference,
        Pod,
        Service,
        ServicePort,
    )

SERVICE_NAME = "kubernetes.io/service-name"  # the label of a slice that names its Service
MANAGED_BY = (
    "endpointslice.kubernetes.io/managed-by"  # the label of a slice that names its controller
)
HEADLESS = "service.kubernetes.io/headless"
ZONE = "topology.kubernetes.io/zone"


class ServiceHandlers:
    """Turns changes of Services, pods and nodes into keys of Services."""

    def __init__(self, informers: Informers, queue: WorkQueue[Key]) -> None:
        self._pods_on = informers.pods_on
        self._services = informers.lister(SERVICES)
        self._pods = informers.lister(PODS)
        self._slices = informers.lister(ENDPOINT_SLICES)
        self._queue = queue
        # uid of a pod → at least the Services whose slices have it; filled when first needed
        self._services_of_pod: dict[str, set[Key]] | None = None

    def handlers(self) -> dict[str, Handler]:
        return {
            SERVICES: lambda event: self._queue.add(event.key),
            PODS: self._pod_changed,
            NODES: self._node_changed,
            ENDPOINT_SLICES: self.slice_changed,
        }

    def _pod_changed(self, event: WatchEvent) -> None:
        old = cast("Pod | None", event.old)
        new = cast("Pod | None", event.new)
        if old is None or new is None:
            pod = new or old
            if pod is None:
                return
            self._enqueue_selecting(event.key.namespace, labels_of(pod))
            if self._services_of_pod is None:
                self._services_of_pod = {}
                for slice_ in self._slices.list():
                    self._add_slice(self._services_of_pod, slice_)
            for key in sorted(
                self._services_of_pod.get(uid_of(pod), ())
            ):  # it may have had other labels before
                self._queue.add(key)
            if new is None:
                self._services_of_pod.pop(uid_of(pod), None)
            return

        if not self._services.list(event.key.namespace):
            return
        moved = labels_of(old) != labels_of(new) or _hostname_and_subdomain(
            old
        ) != _hostname_and_subdomain(new)
        if moved or _endpoint_state(old) != _endpoint_state(new):
            self._enqueue_selecting(event.key.namespace, labels_of(new))
        if moved:
            self._enqueue_selecting(event.key.namespace, labels_of(old))

    def slice_changed(self, event: WatchEvent) -> None:
        """Take in the pods of a changed slice."""
        if self._services_of_pod is not None and event.new is not None:
            self._add_slice(self._services_of_pod, cast("EndpointSlice", event.new))

    def _add_slice(self, services_of_pod: dict[str, set[Key]], slice_: EndpointSlice) -> None:
        key = Key(SERVICES, namespace_of(slice_), labels_of(slice_).get(SERVICE_NAME, ""))
        for endpoint in slice_.get("endpoints") or ():
            if "targetRef" in endpoint:
                services_of_pod.setdefault(endpoint["targetRef"].get("uid", ""), set()).add(key)

    def _node_changed(self, event: WatchEvent) -> None:
        """Reconcile the Services of a node's pods when it was created or its zone has changed."""
        old = cast("Node | None", event.old)
        new = cast("Node | None", event.new)
        if new is None or (
            old is not None and labels_of(old).get(ZONE) == labels_of(new).get(ZONE)
        ):
            return
        for pod in self._pods.at(self._pods_on(event.key.name)):
            self._enqueue_selecting(namespace_of(pod), labels_of(pod))

    def _enqueue_selecting(self, namespace: str, labels: Mapping[str, str]) -> None:
        """Reconcile the Services that select pods with these labels."""
        for service in self._services.list(namespace):
            if has_endpoints(service) and selects(service, labels):
                self._queue.add(Key(SERVICES, namespace, name_of(service)))


def enqueue_owner_of_slice(queue: WorkQueue[Key], resource: str, controller: str) -> Handler:
    """Return a handler that enqueues the Service, or Endpoints, of a slice that is or was managed
    by a controller."""

    def handler(event: WatchEvent) -> None:
        for slice_ in (event.old, event.new):
            if slice_ is not None and labels_of(slice_).get(MANAGED_BY) == controller:
                queue.add(
                    Key(resource, event.key.namespace, labels_of(slice_).get(SERVICE_NAME, ""))
                )

    return handler


def _hostname_and_subdomain(pod: Pod) -> tuple[Any, ...]:
    return pod["spec"].get("hostname"), pod["spec"].get("subdomain")


def _endpoint_state(pod: Pod) -> tuple[Any, ...]:
    """Return the state of a pod that its endpoints show (``podEndpointsChanged``)."""
    return is_pod_ready(pod), is_being_deleted(pod), is_pod_terminal(pod), addresses_of(pod)


# --- the pods of a Service ------------------------------------------------------------------------


def has_endpoints(service: Service) -> bool:
    """Tell whether the controllers keep the endpoints of this Service: it has a selector and is no
    ExternalName."""
    if not service["spec"].get("selector"):
        return False
    return service["spec"].get("type") != "ExternalName"


def selects(service: Service, labels: Mapping[str, str]) -> bool:
    selector = service["spec"]["selector"]
    return all(labels.get(key) == value for key, value in selector.items())


def pods_of(informers: Informers, service: Service) -> list[Pod]:
    """Return the pods that the Service selects, by name."""
    return [
        pod
        for pod in informers.lister(PODS).list(namespace_of(service))
        if selects(service, labels_of(pod))
    ]


def slices_of(informers: Informers, key: Key, labels: Mapping[str, str]) -> list[EndpointSlice]:
    """Return the slices of the Service, or Endpoints, of this key with these labels that are not
    being deleted."""
    labels = {SERVICE_NAME: key.name, **labels}
    return [
        slice_
        for slice_ in informers.lister(ENDPOINT_SLICES).list(key.namespace)
        if labels_of(slice_).items() >= labels.items() and not is_being_deleted(slice_)
    ]


def is_endpoint(pod: Pod, *, terminating: bool) -> bool:
    """Tell whether a pod can be an endpoint at all (``ShouldPodBeInEndpoints``): it has an address
    and has not ended.

    ``terminating``: a pod that is being deleted counts too.
    """
    if is_pod_terminal(pod) or (is_being_deleted(pod) and not terminating):
        return False
    return bool(addresses_of(pod))


def addresses_of(pod: Pod) -> list[str]:
    status = pod.get("status") or {}
    pod_ips = status.get("podIPs") or ()
    addresses = [pod_ip["ip"] for pod_ip in pod_ips if pod_ip.get("ip")]
    if addresses:
        return addresses
    address = status.get("podIP")
    return [address] if address else []


def hostname_within(pod: Pod, service: Service) -> str:
    """Return the hostname that a pod has within a headless Service's domain, or ""
    (``ShouldSetHostname``)."""
    hostname = pod["spec"].get("hostname", "")
    if hostname and pod["spec"].get("subdomain") == name_of(service):
        return hostname
    return ""


def target_ref(pod: Pod) -> ObjectReference:
    metadata = pod["metadata"]
    return {
        "kind": "Pod",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }


# --- the ports of a Service -----------------------------------------------------------------------


def endpoint_ports(service: Service, pod: Pod) -> list[EndpointPort]:
    """Return the Service's ports as the pod has them, in the Service's order
    (``getEndpointPorts``).

    Ports that the pod does not have are left out.
    """
    ports: list[EndpointPort] = []
    for port in service["spec"].get("ports") or ():
        number = find_port(port, pod)
        if number is not None:
            app_protocol: EndpointPort = (
                {"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {}
            )
            ports.append(
                {
                    **app_protocol,
                    "name": port.get("name", ""),
                    "port": number,
                    "protocol": port.get("protocol", "TCP"),
                }
            )

    return ports


def find_port(port: ServicePort, pod: Pod) -> int | None:
    """Return the number of a Service's target port in a pod; None for a name that no container has
    (``FindPort``)."""
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    protocol = port.get("protocol", "TCP")
    sidecars = filter(is_restartable_init_container, pod["spec"].get("initContainers") or ())
    for container in (*(pod["spec"].get("containers") or ()), *sidecars):
        for container_port in container.get("ports") or ():
            if (
                container_port.get("name") == target
                and container_port.get("protocol", "TCP") == protocol
            ):
                return int(container_port["containerPort"])
    return None


# --- the time of the change that endpoints follow -------------------------------------------------

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"

ReadyPods = Mapping[str, bool]  # uid of a pod → whether its endpoint is ready


def trigger_time(service: Service, pods: Iterable[Pod], endpoints: ReadyPods | None) -> str:
    """Return the earliest time at which one of the changed pods became ready or unready, "" for
    none.

    Without endpoints so far (None) it is the creation of the Service. Upstream
    (``trigger_time_tracker.go``) remembers when it last saw each pod turn ready. Here this is
    derived from what the endpoints said of the pods so far, so that runs one after the other give
    the same as one long run.
    """
    if endpoints is None:
        return str(service["metadata"].get("creationTimestamp", ""))
    changed = (pod for pod in pods if endpoints.get(uid_of(pod)) is not is_pod_ready(pod))
    times = [
        str((get_condition(pod, "Ready") or {}).get("lastTransitionTime", "")) for pod in changed
    ]
    return min((time for time in times if time), default="")


def ready_pods_in_slices(slices: list[EndpointSlice]) -> ReadyPods | None:
    """Return the pods of EndpointSlices; None when there are no slices."""
    if not slices:
        return None
    return {
        endpoint["targetRef"]["uid"]: bool(endpoint.get("conditions", {}).get("serving"))
        for slice_ in slices
        for endpoint in slice_.get("endpoints") or ()
        if "targetRef" in endpoint
    }


def ready_pods_in_subsets(endpoints: Endpoints | None) -> ReadyPods | None:
    """Return the pods of an Endpoints object; None when there is none."""
    if endpoints is None:
        return None
    return {
        address["targetRef"]["uid"]: is_ready
        for subset in endpoints.get("subsets") or ()
        for is_ready, addresses in (
            (True, subset.get("addresses")),
            (False, subset.get("notReadyAddresses")),
        )
        for address in addresses or ()
        if "targetRef" in address
    }


def with_trigger_time(obj: ObjectT, time: str) -> ObjectT:
    """Return the object annotated with a trigger time, or without any
    (``addTriggerTimeAnnotation``)."""
    annotations = {
        key: value
        for key, value in (obj["metadata"].get("annotations") or {}).items()
        if key != TRIGGER_TIME
    }
    if time:
        annotations[TRIGGER_TIME] = time
    return cast(ObjectT, {**obj, "metadata": {**obj["metadata"], "annotations": annotations}})
