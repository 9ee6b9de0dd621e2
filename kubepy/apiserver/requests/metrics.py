"""Objects that are made at each request: those of ``metrics.k8s.io``, and ComponentStatuses.

Metrics say what pods and nodes use of cpu and memory.

As metrics-server serves it; see :mod:`kubepy.api.objects.usage`. A pod without figures has no
metrics. Where no pod has any, nodes have none either; otherwise each node that is Ready uses what
its pods use. Upstream: ``sigs.k8s.io/metrics-server`` (``pkg/api``, ``pkg/storage``),
``pkg/registry/core/componentstatus``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from kubepy.api import errors
from kubepy.api.clock import format_time
from kubepy.api.meta import Object, labels_of, name_of, namespace_of
from kubepy.api.objects.nodes import is_node_ready
from kubepy.api.objects.pods import node_name
from kubepy.api.objects.usage import (
    MEASURED,
    WINDOW,
    KnownUsage,
    Usage,
    container_usage,
    total,
)
from kubepy.api.scheme import Resource
from kubepy.api.values.goformat import format_duration
from kubepy.api.values.quantity import Quantity

_COMPONENTS = ("controller-manager", "etcd-0", "scheduler")


def component_statuses() -> list[Object]:
    """Return the components of the control plane, which are healthy wherever there is an answer."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ComponentStatus",
            "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
        }
        for name in _COMPONENTS
    ]


def component_status(name: str) -> Object:
    """Return one of the components. Raises NotFound."""
    found = next(
        (component for component in component_statuses() if name_of(component) == name), None
    )
    if found is None:
        raise errors.not_found("componentstatus", name)
    return found


def metrics_of(
    resource: Resource,
    subjects: Sequence[Object],
    pods: Sequence[Object],
    now: datetime,
    known: KnownUsage | None,
) -> list[Object]:
    """Return the metrics of the subjects, pods or nodes, that have any.

    :param pods: all pods of the cluster, where the subjects are nodes.
    :param known: tells what containers use where no annotation does.
    """
    if resource.kind == "PodMetrics":
        return [
            new_metrics(
                resource,
                pod,
                now,
                {
                    "containers": [
                        {"name": name, "usage": _shown(usage)} for name, usage in used.items()
                    ]
                },
            )
            for pod in subjects
            if (used := container_usage(pod, now, known))
        ]

    usages: dict[str, list[Usage]] = {}
    for pod in pods:
        usages.setdefault(node_name(pod), []).extend(container_usage(pod, now, known).values())
    if not any(usages.values()):
        return []
    idle: Usage = {name: Quantity(0) for name in MEASURED}
    return [
        new_metrics(
            resource, node, now, {"usage": _shown(idle | total(usages.get(name_of(node), ())))}
        )
        for node in subjects
        if is_node_ready(node)
    ]


def first_of(resource: Resource, subject: Object, found: Iterable[Object]) -> Object:
    """Return the metrics of one pod or node. Raises NotFound where there are none, in
    metrics-server's words."""
    for metrics in found:
        return metrics
    name, namespace = name_of(subject), namespace_of(subject)
    raise errors.not_found(
        f"{resource.kind.lower()}.{resource.group}", f"{namespace}/{name}" if namespace else name
    )


def new_metrics(resource: Resource, subject: Object, now: datetime, measured: Object) -> Object:
    time = format_time(now)
    metadata: Object = {"name": name_of(subject), "creationTimestamp": time}
    if namespace := namespace_of(subject):
        metadata["namespace"] = namespace
    if labels := labels_of(subject):
        metadata["labels"] = labels
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "timestamp": time,
        "window": format_duration(WINDOW.total_seconds()),
        **measured,
    }


def _shown(usage: Usage) -> dict[str, str]:
    return {resource: str(usage[resource]) for resource in MEASURED if resource in usage}
