"""What a kubelet answers to requests through the subresource ``proxy`` of its node.

Upstream: ``pkg/kubelet/server/server.go``, ``pkg/kubelet/apis/stats/v1alpha1``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from kubepy.api import errors
from kubepy.api.clock import format_time
from kubepy.api.meta import Object, name_of, namespace_of, uid_of
from kubepy.api.objects.nodes import is_down
from kubepy.api.values.quantity import Quantity
from kubepy.kubelet import inside
from kubepy.kubelet.logs import LogOptions, read_log
from kubepy.server import parameters
from kubepy.server.messages import JSON, TEXT, HandlerContext, Response

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kubepy.api.typed import Node, Pod

PLAIN = "text/plain; charset=utf-8"
PORT = 10250
READING = ("GET", "HEAD")
HEALTH_PATHS = ("healthz", "healthz/ping", "healthz/syncloop", "healthz/log")
NO_SNIFFING = (("x-content-type-options", "nosniff"),)
POD_METRICS = "pods.metrics.k8s.io"


def answer(context: HandlerContext, node: Object) -> Response:
    """Answer as the kubelet of a node: what has no meaning in the model it does not have. Raises
    ServiceUnavailable for a node that is down."""
    if is_down(cast("Node", node), context.cluster.clock.now()):
        raise errors.ServiceUnavailable(
            f"error trying to reach service: dial tcp {_address_of(node)}:{PORT}: connect: no "
            "route to host"
        )
    path = context.info.subresource_path.strip("/")
    if context.request.method not in READING:
        return _plain(405, "405: Method Not Allowed")
    if path in HEALTH_PATHS:
        return _plain(200, "ok")
    if path == "pods":
        items = [_without_type(pod) for pod in _pods_of(context, node)]
        return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
    if path == "stats/summary":
        return _json(summary(context, node))
    if path.startswith("containerLogs/"):
        return _log(context, node, path.split("/")[1:])
    return Response(404, b"404 page not found\n", PLAIN, NO_SNIFFING)


def _plain(status: int, text: str) -> Response:
    return Response(status, text.encode(), PLAIN)


def _json(value: object) -> Response:
    text = json.dumps(value, separators=(",", ":"))
    return Response(200, text.encode(), JSON)


def _address_of(node: Object) -> str:
    for address in (node.get("status") or {}).get("addresses") or ():
        if address["type"] == "InternalIP":
            return str(address["address"])
    return name_of(node)


def _pods_of(context: HandlerContext, node: Object) -> list[Object]:
    """Return the pods that are bound to a node."""
    selector = f"spec.nodeName={name_of(node)}"
    return context.client.list("pods", field_selector=selector).items


def _without_type(pod: Object) -> Object:
    """Return an item of a list."""
    return {key: value for key, value in pod.items() if key not in ("kind", "apiVersion")}


# --- logs -----------------------------------------------------------------------------------------


def _log(context: HandlerContext, node: Object, names: Sequence[str]) -> Response:
    """Return the log of a container: ``containerLogs/NAMESPACE/POD/CONTAINER``."""
    if len(names) != 3:
        return Response(404, b"404 page not found\n", PLAIN, NO_SNIFFING)
    namespace, name, container = names
    request = context.request
    options = LogOptions(
        container,
        previous=bool(parameters.flag(request, "previous")),
        timestamps=bool(parameters.flag(request, "timestamps")),
        tail_lines=parameters.integer(request, "tailLines"),
        limit_bytes=parameters.integer(request, "limitBytes"),
    )
    for pod in _pods_of(context, node):
        if (namespace_of(pod), name_of(pod)) == (namespace, name):
            break
    else:
        return _plain(404, f'pod "{name}" does not exist\n')
    typed_pod = cast("Pod", pod)
    reader = inside.log_reader(context.client, typed_pod)
    log = read_log(
        typed_pod,
        options,
        lambda name: cast("Node", node),
        context.cluster.clock.now(),
        reader,
    )
    return Response(200, b"" if log is None else log.data, TEXT)


# --- usage ----------------------------------------------------------------------------------------


def summary(context: HandlerContext, node: Object) -> Object:
    """Return what the pods of a node use (``Summary``), as far as it is known."""
    now = context.cluster.clock.now()
    pods: list[Object] = []
    cpu = Quantity(0)
    memory = Quantity(0)
    for pod in _pods_of(context, node):
        stats = _stats_of(context, pod, now)
        pods.append(stats.entry)
        cpu += stats.cpu
        memory += stats.memory
    of_node = {
        "nodeName": name_of(node),
        "startTime": node["metadata"].get("creationTimestamp"),
        **_usage(cpu, memory, now),
    }
    return {"node": of_node, "pods": pods}


class _PodStats:
    """What a pod uses."""

    def __init__(self, entry: Object) -> None:
        self.entry = entry
        self.cpu = Quantity(0)
        self.memory = Quantity(0)


def _stats_of(context: HandlerContext, pod: Object, now: datetime) -> _PodStats:
    name = name_of(pod)
    namespace = namespace_of(pod)
    reference = {"name": name, "namespace": namespace, "uid": uid_of(pod)}
    entry: Object = {"podRef": reference, "startTime": (pod.get("status") or {}).get("startTime")}
    stats = _PodStats(entry)
    containers: list[Object] = []
    try:
        metrics: Any = context.client.get(POD_METRICS, name, namespace=namespace)
    except errors.NotFound:
        metrics = {"containers": []}
    for measured in metrics["containers"]:
        cpu = Quantity.parse(measured["usage"].get("cpu", "0"))
        memory = Quantity.parse(measured["usage"].get("memory", "0"))
        containers.append({"name": measured["name"], **_usage(cpu, memory, now)})
        stats.cpu += cpu
        stats.memory += memory
    entry["containers"] = containers
    entry.update(_usage(stats.cpu, stats.memory, now))
    return stats


def _usage(cpu: Quantity, memory: Quantity, now: datetime) -> Object:
    time = format_time(now)
    used = memory.value()
    return {
        "cpu": {"time": time, "usageNanoCores": cpu.nanos},
        "memory": {"time": time, "usageBytes": used, "workingSetBytes": used},
    }
