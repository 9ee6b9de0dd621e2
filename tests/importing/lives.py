"""Pods as a kubelet of v1.36 reports them, in the states that people dump clusters for, with the
workloads that own them: what ``kubectl get -o json`` prints.

The shapes are those of the kubelet's own status manager (``pkg/kubelet/kubelet_pods.go``), of
containerd's messages and of dumps in public bug reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Object = dict[str, Any]
NOW = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
NAMESPACE = "shop"
DAY, HOUR, MINUTE = 86_400, 3_600, 60
NOT_FOUND = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "{0}": failed to resolve '
    'reference "{0}": {0}: not found'
)
UNAUTHORIZED = (
    'failed to pull and unpack image "{0}": failed to resolve reference "{0}": pull access denied, '
    "repository does not exist or may require authorization: server message: "
    "insufficient_scope: authorization failed"
)


def ago(seconds: float) -> str:
    """Return the time that was so many seconds before the dump."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def uid(*parts: str) -> str:
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def container_id(*parts: str) -> str:
    return "containerd://" + hashlib.sha256("/".join(parts).encode()).hexdigest()


def image_name(image: str) -> str:
    """Return an image as containerd names it."""
    first = image.partition("/")[0]
    if "/" not in image:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first:
        image = f"docker.io/{image}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


# --- states of containers -------------------------------------------------------------------------


def running(
    seconds: float, *, ready: bool = True, restarts: int = 0, last: Object | None = None
) -> Object:
    """Return the status of a container that has run for so many seconds.

    :param last: the end of its last run.
    """
    status: Object = {
        "ready": ready,
        "restartCount": restarts,
        "started": True,
        "lastState": {"terminated": last} if last else {},
        "state": {"running": {"startedAt": ago(seconds)}},
    }
    return status


def ended(code: int, begin: float, end: float, reason: str = "", message: str = "") -> Object:
    """Return the end of a run: its begin and end in seconds before the dump."""
    state: Object = {
        "containerID": container_id(str(code), str(begin)),
        "exitCode": code,
        "finishedAt": ago(end),
        "reason": reason or ("Error" if code else "Completed"),
        "startedAt": ago(begin),
    }
    if message:
        state["message"] = message
    return state


def terminated(end: Object, restarts: int = 0, last: Object | None = None) -> Object:
    """Return the status of a container that has ended."""
    return {
        "ready": False,
        "restartCount": restarts,
        "started": False,
        "lastState": {"terminated": last} if last else {},
        "state": {"terminated": end},
    }


def waiting(
    reason: str, message: str = "", restarts: int = 0, last: Object | None = None
) -> Object:
    """Return the status of a container that waits."""
    state = {"reason": reason}
    if message:
        state["message"] = message
    return {
        "ready": False,
        "restartCount": restarts,
        "started": False,
        "lastState": {"terminated": last} if last else {},
        "state": {"waiting": state},
    }


def crash_loop(pod: str, last: Object, restarts: int, delay: str) -> Object:
    """Return the status of a container ``app`` in CrashLoopBackOff."""
    full = f"{pod}_{NAMESPACE}({uid('Pod', pod)})"
    message = f"back-off {delay} restarting failed container=app pod={full}"
    return waiting("CrashLoopBackOff", message, restarts, last)


# --- pods -----------------------------------------------------------------------------------------


def pod(
    name: str,
    statuses: Mapping[str, Object],
    *,
    containers: Sequence[Object] = (),
    init: Sequence[Object] = (),
    image: str = "registry.example.com/shop/app:1.4",
    owner: Object | None = None,
    labels: Mapping[str, str] | None = None,
    age: float = 3 * DAY,
    ready_after: float = 12,
    unready_since: float | None = None,
    phase: str = "",
    node: str = "worker-1",
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Object:
    """Return a pod that was made so many seconds before the dump.

    :param statuses: those of its containers by name, init containers among them.
    :param ready_after: how long after its begin it was ready, where it is.
    :param unready_since: since when it is not ready; default: since its begin.
    """
    own = [dict(each) for each in containers or [{"name": "app", "image": image}]]
    of_init = [dict(each) for each in init]
    main = [statuses[each["name"]] for each in own if each["name"] in statuses]
    full: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid("Pod", name),
            "creationTimestamp": ago(age),
            "generation": 1,
            "labels": dict(labels or {}),
            **(metadata or {}),
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "serviceAccountName": "default",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "tolerations": _tolerations(),
            "containers": [_completed(each) for each in own],
            **({"initContainers": [_completed(each) for each in of_init]} if of_init else {}),
            **(spec or {}),
        },
    }
    if owner is not None:
        full["metadata"]["ownerReferences"] = [_reference(owner)]
    full["status"] = {
        **_status(full, statuses, main, age, ready_after, unready_since, phase),
        **(status or {}),
    }
    return full


def _completed(container: Object) -> Object:
    return {
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
    }


def _tolerations() -> list[Object]:
    return [
        {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]


def _reference(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _status(
    full: Object,
    statuses: Mapping[str, Object],
    main: Sequence[Object],
    age: float,
    ready_after: float,
    unready_since: float | None,
    phase: str,
) -> Object:
    is_ready = bool(main) and all(each["ready"] for each in main)
    begin = age - 1
    initialized = _initialized(full, statuses, begin)
    has_run = any("waiting" not in each["state"] or each["lastState"] for each in statuses.values())
    has_sandbox = has_run or any(
        each["state"].get("waiting", {}).get("reason") not in ("ContainerCreating", None)
        for each in main
    )
    unready = begin if unready_since is None else unready_since
    ready_time = begin - ready_after if is_ready else unready
    since = {
        "PodReadyToStartContainers": begin - 1,
        "Initialized": initialized if initialized is not None else begin,
        "Ready": ready_time,
        "ContainersReady": ready_time,
        "PodScheduled": begin,
    }
    values = {
        "PodReadyToStartContainers": has_sandbox,
        "Initialized": initialized is not None,
        "Ready": is_ready,
        "ContainersReady": is_ready,
        "PodScheduled": True,
    }
    names = [each["name"] for each in full["spec"]["containers"]]
    conditions = []
    for kind, value in values.items():
        condition: Object = {
            "lastProbeTime": None,
            "lastTransitionTime": ago(since[kind]),
            "observedGeneration": 1,
            "status": "True" if value else "False",
            "type": kind,
        }
        if not value and kind in ("Ready", "ContainersReady"):
            unready_names = [name for name in names if not statuses.get(name, {}).get("ready")]
            condition["reason"] = "ContainersNotReady"
            condition["message"] = f"containers with unready status: [{' '.join(unready_names)}]"
        if not value and kind == "Initialized":
            incomplete = " ".join(each["name"] for each in full["spec"]["initContainers"])
            condition["reason"] = "ContainersNotInitialized"
            condition["message"] = f"containers with incomplete status: [{incomplete}]"
        conditions.append(condition)
    result: Object = {
        "conditions": conditions,
        "hostIP": "172.18.0.2",
        "hostIPs": [{"ip": "172.18.0.2"}],
        "observedGeneration": 1,
        "phase": phase or ("Running" if has_run and initialized is not None else "Pending"),
        "qosClass": "BestEffort",
        "startTime": ago(begin),
    }
    if has_sandbox:
        address = f"10.244.1.{int(uid('ip', full['metadata']['name'])[:2], 16)}"
        result |= {"podIP": address, "podIPs": [{"ip": address}]}
    for field, status_field in (
        ("initContainers", "initContainerStatuses"),
        ("containers", "containerStatuses"),
    ):
        entries = [
            _entry(full, container, statuses[container["name"]])
            for container in full["spec"].get(field, ())
            if container["name"] in statuses
        ]
        if entries:
            result[status_field] = entries
    return result


def _initialized(full: Object, statuses: Mapping[str, Object], begin: float) -> float | None:
    """Return when the init containers had completed, in seconds before the dump; None: not yet."""
    at: float | None = begin
    for container in full["spec"].get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            continue
        state = statuses[container["name"]]["state"].get("terminated")
        if not state or state["exitCode"]:
            return None
        finished = datetime.fromisoformat(state["finishedAt"])
        at = (NOW - finished).total_seconds()
    return at


def _entry(full: Object, container: Object, status: Object) -> Object:
    entry: Object = {**status, "name": container["name"], "image": container["image"]}
    entry["imageID"] = ""
    if "waiting" not in status["state"] or status["lastState"]:
        entry["image"] = image_name(container["image"])
        digest = hashlib.sha256(container["image"].encode()).hexdigest()
        repository = entry["image"].rpartition(":")[0]
        entry["imageID"] = f"{repository}@sha256:{digest}"
        name = full["metadata"]["name"]
        run = str(status["restartCount"])
        entry["containerID"] = container_id(name, container["name"], run)
        entry["resources"] = container["resources"]
        if container["resources"].get("requests"):
            entry["allocatedResources"] = container["resources"]["requests"]
        entry["user"] = {"linux": {"gid": 0, "supplementalGroups": [0], "uid": 0}}
        ended_state = entry["state"].get("terminated")
        if ended_state:
            entry["state"] = {"terminated": {**ended_state, "containerID": entry["containerID"]}}
    return dict(sorted(entry.items()))


# --- workloads ------------------------------------------------------------------------------------


def node(name: str, ready: str = "True") -> Object:
    """Return a node; ``ready`` is the status of its condition Ready."""
    reasons = {
        "True": ("KubeletReady", "kubelet is posting ready status"),
        "False": ("KubeletNotReady", "container runtime network not ready: NetworkReady=false"),
        "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
    }
    reason, message = reasons[ready]
    key = {"False": "not-ready", "Unknown": "unreachable"}.get(ready, "")
    taints = [
        {"effect": effect, "key": f"node.kubernetes.io/{key}", "timeAdded": ago(10 * MINUTE)}
        for effect in ("NoSchedule", "NoExecute")
        if key
    ]
    resources = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid("Node", name),
            "creationTimestamp": ago(30 * DAY),
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
            },
        },
        "spec": {"taints": taints} if taints else {},
        "status": {
            "addresses": [
                {"address": "172.18.0.2", "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": resources,
            "capacity": resources,
            "conditions": [
                {
                    "lastHeartbeatTime": ago(0),
                    "lastTransitionTime": ago(10 * MINUTE),
                    "message": message,
                    "reason": reason,
                    "status": ready,
                    "type": "Ready",
                }
            ],
        },
    }


class DeploymentLife:
    """A Deployment with its revisions and their pods.

    :param revisions: by template hash the containers of each, the newest last.
    """

    def __init__(
        self,
        name: str,
        revisions: Mapping[str, Sequence[Object]],
        replicas: int = 1,
        init: Sequence[Object] = (),
    ) -> None:
        self.name = name
        self.replicas = replicas
        self.init = init
        self.revisions = {key: list(value) for key, value in revisions.items()}
        self.pods: list[Object] = []
        self.hash = [*revisions][-1]
        self.deployment: Object = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "uid": uid("Deployment", name)},
        }

    def replica_set(self, template_hash: str) -> Object:
        name = f"{self.name}-{template_hash}"
        metadata = {"name": name, "uid": uid("ReplicaSet", name)}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata}

    def add_pod(
        self, suffix: str, statuses: Mapping[str, Object], template_hash: str = "", **more: Any
    ) -> Object:
        """Add a pod of a revision, the newest by default."""
        template_hash = template_hash or self.hash
        made = pod(
            f"{self.name}-{template_hash}-{suffix}",
            statuses,
            containers=self.revisions[template_hash],
            init=self.init,
            owner=self.replica_set(template_hash),
            labels={"app": self.name, "pod-template-hash": template_hash},
            **more,
        )
        made["metadata"]["generateName"] = f"{self.name}-{template_hash}-"
        self.pods.append(made)
        return made

    def objects(self) -> list[Object]:
        """Return Deployment, ReplicaSets and pods, with the status that controllers give them."""
        sets = []
        for number, template_hash in enumerate(self.revisions, 1):
            sets.append(self._full_set(template_hash, number))
        return [self._full_deployment(sets), *sets, *self.pods]

    def _template(self, template_hash: str, *, with_hash: bool) -> Object:
        labels = {"app": self.name}
        if with_hash:
            labels["pod-template-hash"] = template_hash
        spec: Object = {
            "containers": [_completed(each) for each in self.revisions[template_hash]],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        }
        if self.init:
            spec["initContainers"] = [_completed(each) for each in self.init]
        return {"metadata": {"labels": labels}, "spec": spec}

    def _full_set(self, template_hash: str, number: int) -> Object:
        own = [
            each
            for each in self.pods
            if each["metadata"]["labels"]["pod-template-hash"] == template_hash
            and "deletionTimestamp" not in each["metadata"]
        ]
        ready = sum(_is_ready(each) for each in own)
        full = self.replica_set(template_hash)
        full["metadata"] |= {
            "namespace": NAMESPACE,
            "creationTimestamp": ago(10 * DAY - number),
            "generation": 1,
            "labels": {"app": self.name, "pod-template-hash": template_hash},
            "annotations": {
                "deployment.kubernetes.io/desired-replicas": str(self.replicas),
                "deployment.kubernetes.io/max-replicas": str(self._most()),
                "deployment.kubernetes.io/revision": str(number),
            },
            "ownerReferences": [_reference(self.deployment)],
        }
        full["spec"] = {
            "replicas": len(own),
            "selector": {"matchLabels": {"app": self.name, "pod-template-hash": template_hash}},
            "template": self._template(template_hash, with_hash=True),
        }
        full["status"] = {
            "observedGeneration": 1,
            "replicas": len(own),
            "terminatingReplicas": 0,
            **({"fullyLabeledReplicas": len(own)} if own else {}),
            **({"readyReplicas": ready, "availableReplicas": ready} if ready else {}),
        }
        return full

    def _most(self) -> int:
        return self.replicas + max(1, (self.replicas + 3) // 4)

    def _full_deployment(self, sets: list[Object]) -> Object:
        total = sum(each["spec"]["replicas"] for each in sets)
        ready = sum(each["status"].get("readyReplicas", 0) for each in sets)
        updated = sets[-1]["spec"]["replicas"]
        full = json.loads(json.dumps(self.deployment))
        full["metadata"] |= {
            "namespace": NAMESPACE,
            "creationTimestamp": ago(10 * DAY),
            "generation": 1,
            "annotations": {"deployment.kubernetes.io/revision": str(len(sets))},
            "labels": {"app": self.name},
        }
        full["spec"] = {
            "progressDeadlineSeconds": 600,
            "replicas": self.replicas,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": self.name}},
            "strategy": {
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                "type": "RollingUpdate",
            },
            "template": self._template(self.hash, with_hash=False),
        }
        unavailable = max(0, total - ready)
        is_complete = total == updated == self.replicas == ready
        newest = sets[-1]["metadata"]["name"]
        is_available = ready >= self.replicas - self.replicas // 4
        full["status"] = {
            "conditions": [
                _condition(
                    "Available",
                    is_available,
                    "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable",
                    "Deployment has minimum availability."
                    if is_available
                    else "Deployment does not have minimum availability.",
                ),
                _condition(
                    "Progressing",
                    is_complete,
                    "NewReplicaSetAvailable" if is_complete else "ProgressDeadlineExceeded",
                    f'ReplicaSet "{newest}" has successfully progressed.'
                    if is_complete
                    else f'ReplicaSet "{newest}" has timed out progressing.',
                ),
            ],
            "observedGeneration": 1,
            "terminatingReplicas": 0,
            **({"replicas": total, "updatedReplicas": updated} if total else {}),
            **({"readyReplicas": ready, "availableReplicas": ready} if ready else {}),
            **({"unavailableReplicas": unavailable} if unavailable else {}),
        }
        return full


def _condition(kind: str, value: bool, reason: str, message: str) -> Object:
    return {
        "lastTransitionTime": ago(2 * DAY),
        "lastUpdateTime": ago(2 * DAY),
        "message": message,
        "reason": reason,
        "status": "True" if value else "False",
        "type": kind,
    }


def _is_ready(obj: Object) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in obj["status"]["conditions"]
    )
