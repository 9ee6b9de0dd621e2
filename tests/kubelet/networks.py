"""Small clusters in memory for the tests of the network: objects, and nothing that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kubepy.apiserver.rule_settings import HttpReply, HttpSchedule, Phase
from kubepy.controllers.endpointslice import new_slice, pod_to_endpoint
from kubepy.controllers.service_endpoints import (
    endpoint_ports,
    has_endpoints,
    is_endpoint,
    selects,
)
from kubepy.kubelet.behaviours import Behaviour
from kubepy.kubelet.modelled.listening import Listeners
from kubepy.kubelet.network import Network
from kubepy.kubelet.network.connections import Connections
from kubepy.kubelet.network.view import ENDPOINT_SLICES
from kubepy.shell.surroundings import NetworkError, NetworkRequest

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
NOW_TEXT = "2026-01-01T12:00:00Z"

Object = dict[str, Any]


def schedule(first: int, until: float, then: int, body: str | None = None) -> HttpSchedule:
    """Return the answers of a path: a status until so many seconds have passed, then another."""
    served = (("X-Served-By", "rule"),)
    phases = (Phase(HttpReply(first, body, served), until), Phase(HttpReply(then, body, served)))
    return HttpSchedule(phases)


class SmallCluster:
    """A cluster of two nodes. Pods get addresses in turn, Services their endpoints when asked."""

    def __init__(self) -> None:
        self.now = NOW
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.behaviours: dict[str, Behaviour] = {}  # by image
        self.turns: dict[str, int] = {}
        self.network = Network(self, Listeners(self._behaviour_of), self.turns)
        self.put("namespaces", "", "default")
        self.node("node-1", "192.168.0.11")
        self.node("node-2", "192.168.0.12")

    def _behaviour_of(self, pod: Any, container: Any) -> Behaviour:
        return self.behaviours.get(container["image"], Behaviour())

    # --- what the network reads -------------------------------------------------------------------

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((resource, namespace, name))

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Object]:
        stored = [
            obj
            for key, obj in self.objects.items()
            if key[0] == resource and namespace in (None, key[1])
        ]
        if resource != ENDPOINT_SLICES:
            return stored
        services = [obj for obj in self.list("services", namespace) if has_endpoints(obj)]
        return stored + [self._slice(service) for service in services]

    def _slice(self, service: Object) -> Object:
        """Return the slice of a Service whose ports are the same in all its pods."""
        namespace = service["metadata"]["namespace"]
        pods = [
            pod
            for pod in self.list("pods", namespace)
            if selects(service, pod["metadata"].get("labels") or {})
            and is_endpoint(pod, terminating=True)
        ]
        ports = endpoint_ports(service, pods[0]) if pods else []
        made: Object = dict(new_slice(service, ports, "IPv4"))
        made["metadata"] = {**made["metadata"], "name": service["metadata"]["name"]}
        made["endpoints"] = [pod_to_endpoint(pod, None, service, "IPv4") for pod in pods]
        return made

    # --- what a test puts into it -----------------------------------------------------------------

    def put(self, resource: str, namespace: str, name: str, **fields: Any) -> Object:
        metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
        obj = {**fields, "metadata": {**metadata, **fields.get("metadata", {})}}
        self.objects[resource, namespace, name] = obj
        return obj

    def node(self, name: str, address: str, **annotations: str) -> Object:
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        metadata = {"annotations": annotations}
        return self.put("nodes", "", name, metadata=metadata, status=status)

    def namespace(self, name: str, **labels: str) -> Object:
        return self.put("namespaces", "", name, metadata={"labels": labels})

    def pod(
        self,
        name: str,
        *,
        namespace: str = "default",
        labels: Object | None = None,
        ports: Sequence[Object] = (),
        node: str = "node-1",
        phase: str = "Running",
        is_ready: bool = True,
        metadata: Object | None = None,
        **spec: Any,
    ) -> Object:
        container = {"name": "c", "image": "own", "ports": list(ports)}
        spec = {"containers": [container], "nodeName": node, **spec}
        count = len([key for key in self.objects if key[0] == "pods"])
        address = f"10.244.0.{count + 1}"
        if spec.get("hostNetwork"):
            address = self.objects["nodes", "", node]["status"]["addresses"][0]["address"]
        running = {"running": {"startedAt": NOW_TEXT}}
        statuses = [{"name": entry["name"], "state": running} for entry in spec["containers"]]
        status = {
            "phase": phase,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "containerStatuses": statuses if phase == "Running" else [],
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
        }
        metadata = {"labels": labels or {}, **(metadata or {})}
        return self.put("pods", namespace, name, metadata=metadata, spec=spec, status=status)

    def web(self, name: str, **fields: Any) -> Object:
        """Make a pod labelled ``app: web`` that declares port 80 with the name ``http``."""
        ports = [{"containerPort": 80, "name": "http"}]
        return self.pod(name, **{"labels": {"app": "web"}, "ports": ports, **fields})

    def service(
        self, name: str, address: str = "10.96.1.1", namespace: str = "default", **spec: Any
    ) -> Object:
        spec = {
            "clusterIP": address,
            "clusterIPs": [address],
            "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 80}],
            **spec,
        }
        return self.put("services", namespace, name, apiVersion="v1", kind="Service", spec=spec)

    def policy(self, name: str, namespace: str = "default", **spec: Any) -> Object:
        return self.put("networkpolicies.networking.k8s.io", namespace, name, spec=spec)

    # --- what a test asks -------------------------------------------------------------------------

    def inside(self, pod: Object) -> Connections:
        return self.network.from_pod(pod)  # type: ignore[arg-type]

    def ask(self, who: Object | Connections, url: str, seconds: float = 0.0) -> str:
        """Return the status and body of an answer, or how the request fails."""
        connections = self.inside(who) if isinstance(who, dict) else who
        try:
            now = NOW + timedelta(seconds=seconds)
            answer = connections.http(NetworkRequest("GET", url), now)
        except NetworkError as error:
            return error.kind
        return f"{answer.status} {answer.body.decode().strip()}"

    def resolve(self, pod: Object, name: str) -> str:
        """Return the addresses of a name, or how the lookup fails."""
        try:
            return " ".join(self.inside(pod).resolve(name, NOW))
        except NetworkError as error:
            return error.kind

    def records(self, pod: Object, name: str, kind: str) -> list[str]:
        """Return the data of the records of a name, or how the lookup fails."""
        try:
            return [record.data for record in self.inside(pod).lookup(name, kind, NOW)]
        except NetworkError as error:
            return [error.kind]
