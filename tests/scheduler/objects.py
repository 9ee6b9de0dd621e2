"""Nodes, pods and a Handle over them for the scheduler's tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubepy.runtime.reconcile import Informers, Key, WatchEvent
from kubepy.scheduler.cache import Cache, PodInfo, pod_info
from kubepy.scheduler.framework import Handle
from kubepy.scheduler.plugins import FILTER_PLUGINS
from kubepy.scheduler.preemption import preempt
from kubepy.scheduler.schedule_one import FitResult, find_nodes_that_fit_pod, fit_error_message

Object = dict[str, Any]


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods}
    meta = {"name": name, "labels": labels or {}, "uid": f"uid-{name}"}
    return {"kind": "Node", "metadata": meta, "spec": spec, "status": {"allocatable": allocatable}}


def pod(
    name: str,
    *,
    on: str = "",
    requests: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    namespace: str = "default",
    nominated: str = "",
    **spec: Any,
) -> Object:
    containers = [
        {"name": "c", "image": "c:1", "resources": {"requests": requests} if requests else {}}
    ]
    whole = {"containers": containers, **spec} | ({"nodeName": on} if on else {})
    status = {"nominatedNodeName": nominated} if nominated else {}
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}}
    return {"kind": "Pod", "metadata": meta, "spec": whole, "status": status}


def handle(*objects: Object) -> Handle:
    """Return the scheduler's Handle over these objects."""
    informers = Informers()
    kinds = {
        "Node": "nodes",
        "Pod": "pods",
        "Namespace": "namespaces",
        "Service": "services",
        "PersistentVolumeClaim": "persistentvolumeclaims",
        "PersistentVolume": "persistentvolumes",
        "StorageClass": "storageclasses.storage.k8s.io",
        "PodDisruptionBudget": "poddisruptionbudgets.policy",
        "ReplicaSet": "replicasets.apps",
        "CSINode": "csinodes.storage.k8s.io",
        "ReplicationController": "replicationcontrollers",
    }
    for obj in objects:
        meta = obj["metadata"]
        key = Key(kinds[obj["kind"]], meta.get("namespace", ""), meta["name"])
        informers.observe(WatchEvent(key, None, obj))
    return Handle(Cache(informers), informers)


def look(incoming: Object, *objects: Object) -> FitResult:
    return find_nodes_that_fit_pod(info(incoming), handle(*objects), FILTER_PLUGINS)


def info(incoming: Object) -> PodInfo:
    return pod_info(incoming)


def feasible(incoming: Object, *objects: Object) -> list[str]:
    return [one.name for one in look(incoming, *objects).feasible]


def reasons(incoming: Object, *objects: Object) -> dict[str, str]:
    """Return the reasons for which each candidate node is rejected."""
    return {
        name: ", ".join(one.reasons)
        for name, one in look(incoming, *objects).diagnosis.node_to_status.items()
    }


def message(incoming: Object, *objects: Object) -> str:
    """Return the event message of a pod that fits on no node."""
    found = look(incoming, *objects)
    assert not found.feasible
    number = len(found.cycle.handle.cache.nodes())
    return fit_error_message(number, found.diagnosis, preempt(found.cycle, found.diagnosis).message)


def names(infos: Iterable[PodInfo]) -> list[str]:
    return [one.key.name for one in infos]
