"""The simulated kubelet: plays the life of nodes and pods.

A node that reports nothing becomes Ready; a pod bound to a node runs and is Ready at once; a deleted one is gone at
once. Annotations steer it (DESIGN.md, "The simulated kubelet"). What a pod looks like is a table, :data:`OUTCOMES`;
:func:`next_step` decides what is due, :class:`Kubelet` alone writes. It writes at transitions only, so that a status
set by hand stays as it was set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from kubepy.cluster.client import DeleteOptions
from kubepy.cluster.clock import format_micro_time, format_time, parse_time
from kubepy.cluster.errors import Status
from kubepy.cluster.events import Recorder
from kubepy.cluster.objects.meta import (
    Object,
    annotations_of,
    controller_of,
    is_being_deleted,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.cluster.objects.nodes import is_node_ready
from kubepy.cluster.objects.pods import is_pod_terminal, is_restartable_init_container, node_name
from kubepy.cluster.reconcile import Context, Handler, Key, WatchEvent

OUTCOME = "kubepy.dev/outcome"
TERMINATION = "kubepy.dev/termination"
POD_OUTCOME = "kubepy.dev/pod-outcome"

HOST_IP = "192.168.0.1"  # of a node whose status has no InternalIP
POD_NETWORK = "10.244.{}.{}"  # a /16
DEFAULT_CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}
NODE_INFO = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "sim://1",
    "kernelVersion": "0",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.36.0",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "kubepy",
    "systemUUID": "",
}
NODE_CONDITIONS = (  # pkg/kubelet/nodestatus/setters.go; Ready comes last
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class Outcome(NamedTuple):
    """What becomes of a pod: its phase and the state of each of its containers."""

    phase: str
    state: str  # running, waiting, terminated
    ready: bool = False
    reason: str = ""
    message: str = ""  # of a waiting container; may name {container}, {image}, {pod}
    exit_code: int = 0
    restarts: int = 0


PENDING = "pending"  # the kubelet never gets to such a pod
OUTCOMES: Mapping[str, Outcome] = {
    "ready": Outcome("Running", "running", ready=True),
    "not-ready": Outcome("Running", "running"),
    "crash-loop": Outcome(
        "Running", "waiting", reason="CrashLoopBackOff", restarts=3,
        message="back-off 40s restarting failed container={container} pod={pod}",
    ),
    "image-pull-backoff": Outcome(
        "Pending", "waiting", reason="ImagePullBackOff", message='Back-off pulling image "{image}"',
    ),
    "failed": Outcome("Failed", "terminated", reason="Error", exit_code=1),
    "succeeded": Outcome("Succeeded", "terminated", reason="Completed"),
}  # fmt: skip


# --- nodes --------------------------------------------------------------------------------------------------------


def is_registration_due(node: Mapping[str, Any]) -> bool:
    """Whether the node's kubelet would report Ready where the node does not say so."""
    return annotations_of(node).get(OUTCOME) != "not-ready" and not is_node_ready(node)


def register(node: Object, now: datetime) -> Object:
    """The node as its kubelet reports it: Ready, with what its manifest's status says of capacity and allocatable.

    A node annotated ``kubepy.dev/outcome: not-ready`` comes back as it is. Never changes the node it is given.
    """
    if not is_registration_due(node):
        return node
    status = dict(node.get("status") or {})
    status["capacity"] = status.get("capacity") or dict(DEFAULT_CAPACITY)
    status["allocatable"] = status.get("allocatable") or dict(status["capacity"])
    status["conditions"] = _node_conditions(status.get("conditions") or (), now)
    status["nodeInfo"] = {key: (status.get("nodeInfo") or {}).get(key) or value for key, value in NODE_INFO.items()}
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    return {**node, "status": status}


def _node_conditions(old: Sequence[Object], now: datetime) -> list[Object]:
    """The kubelet's conditions in its order, then those that others have set."""
    time, before = format_time(now), {condition["type"]: condition for condition in old}
    conditions = []
    for kind, status, reason, message in NODE_CONDITIONS:
        last = before.pop(kind, {})
        since = last.get("lastTransitionTime") if last.get("status") == status else None
        conditions.append({
            "lastHeartbeatTime": time, "lastTransitionTime": since or time, "message": message, "reason": reason,
            "status": status, "type": kind,
        })  # fmt: skip
    return [*conditions, *before.values()]


def internal_ip(node: Mapping[str, Any]) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((one["address"] for one in addresses if one.get("type") == "InternalIP"), HOST_IP)


# --- pods: what is due --------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """Give the pod the status of this outcome."""

    outcome: Outcome


class Regate(NamedTuple):
    """Set the Ready condition anew: a readiness gate has moved."""


class Remove(NamedTuple):
    """The pod has terminated; take it away."""


class Refuse(NamedTuple):
    """The pod, or its node, asks for an outcome that there is not."""

    outcome: str


Step = Start | Regate | Remove | Refuse


def wanted_outcome(pod: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """The pod's annotation, else its node's, else ``ready``."""
    return annotations_of(pod).get(OUTCOME) or annotations_of(node).get(POD_OUTCOME) or "ready"


def shown_outcome(pod: Mapping[str, Any]) -> str:
    """The outcome that the pod's first container shows; ``pending`` when its kubelet has not reported yet."""
    statuses = (pod.get("status") or {}).get("containerStatuses")
    if not statuses:
        return PENDING
    state = statuses[0].get("state") or {}
    if "running" in state:
        return "ready" if statuses[0].get("ready") else "not-ready"
    if "terminated" in state:
        return "failed" if state["terminated"].get("exitCode") else "succeeded"
    return "crash-loop" if (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff" else "image-pull-backoff"


def next_step(pod: Mapping[str, Any], node: Mapping[str, Any] | None) -> Step | None:
    """What the kubelet of the pod's node has to do for it now. Nobody looks after the pods of an absent node."""
    if node is None:
        return None
    if is_being_deleted(pod):
        done = pod["metadata"].get("deletionGracePeriodSeconds") == 0  # only finalizers hold it now
        return None if done or annotations_of(pod).get(TERMINATION) == "stuck" else Remove()
    if is_pod_terminal(pod):
        return None  # a pod that has ended never runs again
    wanted, shown = wanted_outcome(pod, node), shown_outcome(pod)
    if wanted == PENDING:
        return None
    if (outcome := OUTCOMES.get(wanted)) is None:
        return Refuse(wanted)
    if wanted != shown:
        return Start(outcome)
    if shown == "ready" and pod["spec"].get("readinessGates") and _ready_condition(pod, outcome) != _shown_ready(pod):
        return Regate()
    return None


def _shown_ready(pod: Mapping[str, Any]) -> tuple[str, str, str]:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return condition["status"], condition.get("reason", ""), condition.get("message", "")
    return "", "", ""


# --- pods: the status of an outcome -------------------------------------------------------------------------------


def pod_status(pod: Mapping[str, Any], outcome: Outcome, host_ip: str, pod_ip: str, now: datetime) -> Object:
    """The status that a kubelet reports for a pod with this outcome; qosClass and others' conditions stay."""
    old, time, spec = pod.get("status") or {}, format_time(now), pod["spec"]
    status = {key: value for key, value in old.items() if key not in ("reason", "message")}
    status["conditions"] = _pod_conditions(pod, outcome, time)
    status["containerStatuses"] = [container_status(pod, one, outcome, time) for one in spec["containers"]]
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [
            _init_container_status(pod, one, outcome, time) for one in spec["initContainers"]
        ]
    status |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    status |= {"phase": outcome.phase, "startTime": old.get("startTime") or time}
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    return status


def container_status(pod: Mapping[str, Any], container: Mapping[str, Any], outcome: Outcome, time: str) -> Object:
    """One entry of ``containerStatuses``. A count of restarts never goes down."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    restarts = next((one.get("restartCount", 0) for one in statuses if one["name"] == container["name"]), 0)
    return {
        "image": container["image"],
        "imageID": "",
        "lastState": {},
        "name": container["name"],
        "ready": outcome.ready,
        "restartCount": max(outcome.restarts, restarts),
        "started": outcome.state == "running",
        "state": {outcome.state: _state(pod, container, outcome, time)},
    }


def _state(pod: Mapping[str, Any], container: Mapping[str, Any], outcome: Outcome, time: str) -> Object:
    if outcome.state == "running":
        return {"startedAt": time}
    if outcome.state == "terminated":
        return {"exitCode": outcome.exit_code, "finishedAt": time, "reason": outcome.reason, "startedAt": time}
    message = outcome.message.format(
        container=container["name"],
        image=container["image"],
        pod=f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})",
    )
    return {"message": message, "reason": outcome.reason}


RUNNING = OUTCOMES["ready"]
COMPLETED = OUTCOMES["succeeded"]
KILLED = OUTCOMES["failed"]._replace(exit_code=137)


def _init_container_status(pod: Mapping[str, Any], container: Object, outcome: Outcome, time: str) -> Object:
    """A sidecar runs for as long as the pod does; any other init container has done its work, and is then ready."""
    if is_restartable_init_container(container) and outcome.state != "terminated":
        return container_status(pod, container, RUNNING, time)
    return {**container_status(pod, container, COMPLETED, time), "ready": not is_restartable_init_container(container)}


def _pod_conditions(pod: Mapping[str, Any], outcome: Outcome, time: str) -> list[Object]:
    """The kubelet's conditions before those of others (pkg/kubelet/status/generate.go)."""
    old = {condition["type"]: condition for condition in (pod.get("status") or {}).get("conditions") or ()}
    own = {
        "Initialized": ("True", "PodCompleted" if outcome.phase == "Succeeded" else "", ""),
        "Ready": _ready_condition(pod, outcome),
        "ContainersReady": _containers_ready(pod, outcome),
    }
    if "PodScheduled" not in old:  # bound by its manifest, past the scheduler
        own["PodScheduled"] = ("True", "", "")
    conditions = [_condition(pod, kind, *values, old=old.pop(kind, None), time=time) for kind, values in own.items()]
    return [*conditions, *old.values()]


def _condition(
    pod: Mapping[str, Any], kind: str, status: str, reason: str, message: str, *, old: Object | None, time: str
) -> Object:
    since = old.get("lastTransitionTime") if old is not None and old.get("status") == status else None
    condition: Object = {"lastProbeTime": None, "lastTransitionTime": since or time, "status": status, "type": kind}
    if message:
        condition["message"] = message
    if reason:
        condition["reason"] = reason
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    return condition


def _containers_ready(pod: Mapping[str, Any], outcome: Outcome) -> tuple[str, str, str]:
    """Status, reason and message of the ContainersReady condition."""
    if outcome.ready:
        return "True", "", ""
    if outcome.state == "terminated":
        return "False", "PodFailed" if outcome.phase == "Failed" else "PodCompleted", ""
    names = " ".join(container["name"] for container in pod["spec"]["containers"])
    return "False", "ContainersNotReady", f"containers with unready status: [{names}]"


def _ready_condition(pod: Mapping[str, Any], outcome: Outcome) -> tuple[str, str, str]:
    """Status, reason and message of the Ready condition: the containers', then the readiness gates'."""
    containers = _containers_ready(pod, outcome)
    gates = pod["spec"].get("readinessGates")
    if containers[0] != "True" or not gates:
        return containers
    held = {one["type"]: one["status"] for one in (pod.get("status") or {}).get("conditions") or ()}
    complaints = [_gate_complaint(gate["conditionType"], held.get(gate["conditionType"])) for gate in gates]
    message = ", ".join(complaint for complaint in complaints if complaint)
    return ("False", "ReadinessGatesNotReady", message) if message else containers


def _gate_complaint(gate: str, status: str | None) -> str:
    if status is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    return "" if status == "True" else f'the status of pod readiness gate "{gate}" is not "True", but {status}'


# --- addresses ----------------------------------------------------------------------------------------------------


class PodAddresses:
    """Hands out pod addresses: each pod its own, the lowest free one above the last, so that a run repeats itself."""

    def __init__(self) -> None:
        self._used: dict[str, Key] = {}
        self._of: dict[Key, str] = {}
        self._last = 0

    def observe(self, key: Key, pod: Mapping[str, Any] | None) -> None:
        """Take in the address of a pod that has one; None: the pod is gone."""
        address = ((pod or {}).get("status") or {}).get("podIP", "")
        if self._of.get(key, "") == address:
            return
        if (before := self._of.pop(key, None)) and self._used.get(before) == key:
            del self._used[before]
        if address:
            self._of[key] = address
            self._used[address] = key

    def next(self) -> str:
        """An address that no pod has. Raises RuntimeError when the network is full."""
        for _ in range(0xFFFE):
            self._last = self._last % 0xFFFE + 1
            if (address := POD_NETWORK.format(self._last >> 8, self._last & 0xFF)) not in self._used:
                return address
        raise RuntimeError(f"every address of {POD_NETWORK.format(0, 0)}/16 belongs to a pod")


# --- pods that end as soon as they begin --------------------------------------------------------------------------


class Endings:
    """How many pods of each controller have ended lately: the more, the longer the next one takes to.

    A controller replaces a pod that ended, and pods that are to end do so as soon as they begin: it would go on for
    ever. (A real kubelet restarts their containers with a back-off, which is not played here.)
    """

    FREE = 20  # that end without delay
    LONGEST = timedelta(minutes=5)
    FORGOTTEN_AFTER = timedelta(minutes=10)

    def __init__(self) -> None:
        self._ended: dict[str, tuple[int, datetime]] = {}  # by the controller's uid: how many, and the last one

    def delay(self, controller: str, now: datetime) -> float:
        """Seconds until the next pod may end: none for the first ones, then 1, 2, 4 … since the last."""
        number, last = self._ended.get(controller, (0, now))
        if number < self.FREE or now - last > self.FORGOTTEN_AFTER:
            return 0.0
        length = min(timedelta(seconds=2 ** min(number - self.FREE, 10)), self.LONGEST)
        return max((last + length - now).total_seconds(), 0.0)

    def note(self, controller: str, now: datetime) -> None:
        self._ended = {one: ended for one, ended in self._ended.items() if now - ended[1] <= self.FORGOTTEN_AFTER}
        number, _ = self._ended.get(controller, (0, now))
        self._ended[controller] = (number + 1, now)

    def remember(self) -> Any:
        return {one: [number, format_micro_time(last)] for one, (number, last) in sorted(self._ended.items())}

    def recall(self, memory: Any) -> None:
        for one, (number, last) in memory.items():
            self._ended.setdefault(one, (number, parse_time(last)))


# --- the reconciler -----------------------------------------------------------------------------------------------


def _asks_the_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return annotations_of(old).get(OUTCOME) == annotations_of(new).get(OUTCOME) and node_name(old) == node_name(new)


class Kubelet:
    """The kubelets of all nodes. A key is a pod or a node."""

    name = "kubelet"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._recorder = Recorder(context.client, self.name)
        self._addresses: PodAddresses | None = None  # known once one is needed
        self._endings = Endings()
        self.remember, self.recall = self._endings.remember, self._endings.recall

    def handlers(self) -> Mapping[str, Handler]:
        return {"nodes": self._node_changed, "pods": self._pod_changed}

    def sync(self, key: Key) -> None:
        if key.resource == "nodes":
            self._sync_node(key)
        else:
            self._sync_pod(key)

    # What changed → what to look at.

    def _node_changed(self, event: WatchEvent) -> None:
        node = event.new
        if node is None:
            return
        if is_registration_due(node):
            self.queue.add(event.key)
        appeared = event.old is None
        if appeared or annotations_of(event.old or {}).get(POD_OUTCOME) != annotations_of(node).get(POD_OUTCOME):
            for key in self._informers.pods_on(event.key.name):
                self.queue.add(key)

    def _pod_changed(self, event: WatchEvent) -> None:
        pod, key = event.new, event.key
        if self._addresses is not None:
            self._addresses.observe(key, pod)
        if pod is None or not (node := node_name(pod)):
            return
        step = next_step(pod, self._informers.get("nodes", "", node))
        if isinstance(step, Refuse) and event.old is not None and _asks_the_same(event.old, pod):
            return  # said before
        if step is not None:
            self.queue.add(key)

    # What to look at → what is written.

    def _sync_node(self, key: Key) -> None:
        node = self._informers.get("nodes", "", key.name)
        if node is not None and is_registration_due(node):
            self._client.update("nodes", register(node, self._clock.now()), subresource="status")

    def _sync_pod(self, key: Key) -> None:
        pod = self._informers.get("pods", key.namespace, key.name)
        if pod is None:
            return
        node = self._informers.get("nodes", "", node_name(pod))
        match next_step(pod, node):
            case Remove():
                self._remove(pod)
            case Start(outcome):
                if not self._must_wait(key, pod, outcome):
                    self._write_status(pod, node or {}, outcome)
            case Regate():
                self._write_status(pod, node or {}, RUNNING)
            case Refuse(outcome):
                known = ", ".join([*OUTCOMES, PENDING])
                message = f'Outcome "{outcome}" is not known: it must be one of {known}'
                self._recorder.event(pod, "Warning", "UnknownOutcome", message)

    def _must_wait(self, key: Key, pod: Object, outcome: Outcome) -> bool:
        """Whether a pod that would end, and be replaced, is to take its time."""
        controller = controller_of(pod)
        if controller is None or outcome.state != "terminated" or pod["spec"].get("restartPolicy") != "Always":
            return False
        now = self._clock.now()
        delay = self._endings.delay(controller["uid"], now)
        if delay > 0:
            self.queue.add_after(key, delay)
            return True
        self._endings.note(controller["uid"], now)
        return False

    def _write_status(self, pod: Object, node: Object, outcome: Outcome) -> None:
        host_ip = internal_ip(node)
        pod_ip = (pod.get("status") or {}).get("podIP") or self._pod_ip(pod, host_ip)
        status = pod_status(pod, outcome, host_ip, pod_ip, self._clock.now())
        self._client.update("pods", {**pod, "status": status}, namespace=namespace_of(pod), subresource="status")

    def _pod_ip(self, pod: Object, host_ip: str) -> str:
        if pod["spec"].get("hostNetwork"):
            return host_ip
        if self._addresses is None:
            self._addresses = PodAddresses()
            for other in self._informers.list("pods"):
                self._addresses.observe(Key("pods", namespace_of(other), name_of(other)), other)
        return self._addresses.next()

    def _remove(self, pod: Object) -> None:
        """A pod that a finalizer will hold is seen to have ended; any other is just gone."""
        if pod["metadata"].get("finalizers") and not is_pod_terminal(pod):
            self._write_status(pod, self._informers.get("nodes", "", node_name(pod)) or {}, KILLED)
        options = DeleteOptions(grace_period_seconds=0, uid=uid_of(pod))
        try:
            self._client.delete("pods", name_of(pod), namespace=namespace_of(pod), options=options)
        except Status as refusal:
            if refusal.reason != "NotFound":
                raise
