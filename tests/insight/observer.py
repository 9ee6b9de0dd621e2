"""An observer of harm that shares no code with kubepy's: it looks at the objects of a cluster after
every write while a command runs there and the controllers work.

It knows small clusters only: Deployments, StatefulSets, DaemonSets, pods of nobody, Services,
Ingresses, budgets and claims, without ``minReadySeconds``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from kubepy import Cluster

Obj = dict[str, Any]
Name = tuple[str, str]  # resource and name; all is in one namespace
WORKLOADS = ("deployments", "statefulsets", "daemonsets")
OTHERS = ("services", "ingresses", "poddisruptionbudgets", "persistentvolumeclaims")
GROUPS = {
    "deployments": ".apps",
    "statefulsets": ".apps",
    "daemonsets": ".apps",
    "replicasets": ".apps",
    "ingresses": ".networking.k8s.io",
    "poddisruptionbudgets": ".policy",
    "endpointslices": ".discovery.k8s.io",
}
EVICTED = "EvictionByEvictionAPI"


class Observer:
    """Looks at a cluster from now on, until :meth:`harm` is asked for."""

    def __init__(self, cluster: Cluster) -> None:
        local = cluster._local
        assert local is not None
        self._client = local.client
        cluster._local = local.observed(lambda *write: self._look())
        self._before = self._objects()
        self._harm: set[tuple[str, Name]] = set()
        self._had: dict[Name, bool] = {}
        self._size: dict[Name, int] = {}  # to which a workload has come up
        self._uids: dict[Name, str] = {}
        self._lacks: dict[Name, int] = {}  # at the beginning
        self._evicted: set[Name] = set()
        self._endpoints: dict[Name, int] = {}
        self._gone: set[Name] = set()  # pods of nobody that somebody has told to go
        self._pods = self._lonely(self._before)
        self._first = True
        self._look()
        self._first = False

    # --- looking

    def _objects(self) -> dict[str, list[Obj]]:
        resources = (*WORKLOADS, *OTHERS, "pods", "replicasets", "endpointslices")
        return {
            resource: self._client.list(resource + GROUPS.get(resource, "")).items
            for resource in (*resources, "nodes", "persistentvolumes")
        }

    def _look(self) -> None:
        objects = self._objects()
        for resource in WORKLOADS:
            for workload in objects[resource]:
                self._look_at_workload((resource, name(workload)), workload, objects)
        for service in objects["services"]:
            count = endpoints(service, objects)
            self._look_at_endpoints(("services", name(service)), count)
        for ingress in objects["ingresses"]:
            backend = ingress["spec"]["defaultBackend"]["service"]
            services = [s for s in objects["services"] if name(s) == backend["name"]]
            ports = [port["port"] for s in services for port in s["spec"]["ports"]]
            has_port = backend["port"]["number"] in ports
            count = endpoints(services[0], objects) if has_port else 0
            self._look_at_endpoints(("ingresses", name(ingress)), count)
        up = {name(pod) for pod in self._lonely(objects)}
        for pod in self._pods:
            if name(pod) not in up:
                self._harm.add(("outage", ("pods", name(pod))))

    def _look_at_workload(self, key: Name, workload: Obj, objects: dict[str, list[Obj]]) -> None:
        if "deletionTimestamp" in workload["metadata"]:
            return
        pods = pods_of(workload, objects)
        available = sum(is_up(pod) for pod in pods)
        wanted = desired(workload, objects)
        if self._uids.setdefault(key, workload["metadata"]["uid"]) != workload["metadata"]["uid"]:
            self._uids[key] = workload["metadata"]["uid"]
            self._size[key] = 0  # it was made anew: nothing is required until it is up
        if any(is_evicted(pod) for pod in pods):
            self._evicted.add(key)
        elif available >= wanted:
            self._evicted.discard(key)
        if wanted == 0:
            self._had[key] = False
            self._size[key] = 0
            return
        if available == 0 and self._had.get(key):
            self._harm.add(("outage", key))
        self._had[key] = self._had.get(key, False) or available > 0
        if key in self._evicted:
            least = least_by_budgets(workload, wanted, objects)
        else:
            least = least_by_strategy(workload, wanted)
        if least is None:
            return
        size = self._size.get(key, 0)
        if self._first or available >= least or wanted <= size:
            size = wanted
        self._size[key] = size
        required = min(least, size) if size else 0
        lack = max(required - available, 0)
        if self._first:
            self._lacks[key] = lack
        if lack > self._lacks.get(key, 0):
            self._harm.add(("below-bound", key))

    def _look_at_endpoints(self, key: Name, count: int) -> None:
        if count == 0 and self._endpoints.get(key, 0):
            self._harm.add(("unreachable", key))
        self._endpoints[key] = count or self._endpoints.get(key, 0)

    def _lonely(self, objects: dict[str, list[Obj]]) -> list[Obj]:
        return [
            pod
            for pod in objects["pods"]
            if not pod["metadata"].get("ownerReferences") and is_up(pod)
        ]

    # --- at the end

    def harm(self, deleted: Iterable[str] = ()) -> set[str]:
        """Return all harm as ``kind resource/name``.

        :param deleted: ``resource/name`` of what the command deletes.
        """
        after = self._objects()
        for resource in WORKLOADS:
            for workload in self._before[resource]:
                self._compare(resource, workload, after)
        up = {name(pod) for pod in self._lonely(after)}
        for pod in self._pods:
            if name(pod) not in up:
                self._harm.add(("worse", ("pods", name(pod))))
        self._compare_budgets(after)
        for resource in ("persistentvolumeclaims", "persistentvolumes"):
            there = {
                obj["metadata"]["uid"]
                for obj in after[resource]
                if "deletionTimestamp" not in obj["metadata"]
            }
            for obj in self._before[resource]:
                if obj["status"].get("phase") == "Bound" and obj["metadata"]["uid"] not in there:
                    self._harm.add(("data", (resource, name(obj))))
        present = {
            f"{resource}/{name(obj)}" for resource, objects in after.items() for obj in objects
        }
        return {
            f"{kind} {'/'.join(key)}"
            for kind, key in self._harm
            if kind == "data"
            or "/".join(key) in present
            or (key[0] == "pods" and "/".join(key) not in deleted)
        }

    def _compare(self, resource: str, workload: Obj, after: dict[str, list[Obj]]) -> None:
        for other in after[resource]:
            if name(other) != name(workload):
                continue
            was, now = share(workload, self._before), share(other, after)
            if was is not None and now is not None and now < was:
                self._harm.add(("worse", (resource, name(workload))))

    def _compare_budgets(self, after: dict[str, list[Obj]]) -> None:
        allowed = {
            name(budget): budget["status"].get("disruptionsAllowed", 0)
            for budget in self._before["poddisruptionbudgets"]
        }
        for budget in after["poddisruptionbudgets"]:
            status = budget["status"]
            is_blocked = status.get("expectedPods") and not status.get("disruptionsAllowed")
            if is_blocked and allowed.get(name(budget)) != 0:
                self._harm.add(("blocked", ("poddisruptionbudgets", name(budget))))


def name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def desired(workload: Obj, objects: dict[str, list[Obj]]) -> int:
    """Return how many pods a workload asks for: a DaemonSet one on each node that it tolerates."""
    if workload["kind"] == "DaemonSet":
        taints = [node["spec"].get("taints") or () for node in objects["nodes"]]
        return sum(
            all(taint["key"].startswith("node.kubernetes.io/") for taint in of_node)
            for of_node in taints
        )
    return int(workload["spec"]["replicas"])


def pods_of(workload: Obj, objects: dict[str, list[Obj]]) -> list[Obj]:
    """Return the pods that a workload owns, directly or by its ReplicaSets."""
    owners = {workload["metadata"]["uid"]}
    owners |= {rs["metadata"]["uid"] for rs in objects["replicasets"] if owner(rs) in owners}
    return [pod for pod in objects["pods"] if owner(pod) in owners]


def owner(obj: Obj) -> str:
    references = obj["metadata"].get("ownerReferences") or [{"uid": ""}]
    return str(references[0]["uid"])


def is_up(pod: Obj) -> bool:
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", ())}
    return (
        conditions.get("Ready") == "True"
        and pod["status"].get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    )


def is_evicted(pod: Obj) -> bool:
    return any(c.get("reason") == EVICTED for c in pod["status"].get("conditions", ()))


def share(workload: Obj, objects: dict[str, list[Obj]]) -> float | None:
    wanted = desired(workload, objects)
    if not wanted:
        return None
    return min(sum(map(is_up, pods_of(workload, objects))) / wanted, 1.0)


def least_by_strategy(workload: Obj, wanted: int) -> int | None:
    """Return how many pods the workload itself wants available at least; None: it does not say."""
    spec = workload["spec"]
    if workload["kind"] == "StatefulSet":
        return max(wanted - 1, 0)
    if workload["kind"] == "DaemonSet":
        rolling = spec["updateStrategy"]["rollingUpdate"]
        return wanted - min(number(rolling["maxUnavailable"], wanted, math.ceil), wanted)
    if spec["strategy"]["type"] == "Recreate":
        return 0
    rolling = spec["strategy"]["rollingUpdate"]
    away = number(rolling["maxUnavailable"], wanted, math.floor)
    if not away and not number(rolling["maxSurge"], wanted, math.ceil):
        away = 1
    return wanted - min(away, wanted)


def least_by_budgets(workload: Obj, wanted: int, objects: dict[str, list[Obj]]) -> int | None:
    labels = workload["spec"]["template"]["metadata"]["labels"]
    leasts = []
    for budget in objects["poddisruptionbudgets"]:
        spec = budget["spec"]
        if spec["selector"]["matchLabels"].items() <= labels.items():
            if "minAvailable" in spec:
                leasts.append(number(spec["minAvailable"], wanted, math.ceil))
            elif workload["kind"] == "DaemonSet":
                leasts.append(wanted)
            else:
                leasts.append(wanted - number(spec["maxUnavailable"], wanted, math.ceil))
    return min(max(leasts), wanted) if leasts else None


def number(value: int | str, of: int, rounded: Any) -> int:
    if isinstance(value, int):
        return value
    return int(rounded(int(value.removesuffix("%")) * of / 100))


def endpoints(service: Obj, objects: dict[str, list[Obj]]) -> int:
    """Return how many ready endpoints the slices of a Service have."""
    return sum(
        bool(endpoint["conditions"].get("ready"))
        for endpoint_slice in objects["endpointslices"]
        if endpoint_slice["metadata"]["labels"].get("kubernetes.io/service-name") == name(service)
        for endpoint in endpoint_slice.get("endpoints") or ()
    )
