"""The node lifecycle controller: taints nodes by what their kubelets report
(``pkg/controller/nodelifecycle``).

The pure functions decide which taints and labels a node should have (:func:`lifecycle_change`), and
what is reported in place of a kubelet that never did (:func:`unknown_status`). :class:`Zones` tells
how much of each zone is not ready, which decides whether pods are evicted from such nodes at all.

Upstream looks at all nodes every 5 s and adds NoExecute taints to one node in 10 s; here both are
done at once. A kubelet that falls silent is not given up: the simulated kubelet has no heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.clock import format_micro_time, format_time, later, parse_optional_time, parse_time
from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import AnyObject, Object, labels_of, name_of, uid_of
from kubepy.api.objects.nodes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
    get_condition,
    is_down,
    is_node_ready,
    taints_of,
)
from kubepy.api.objects.pods import set_condition
from kubepy.runtime.events import EVENTS_LAST, Recorder
from kubepy.runtime.informers import NODES, PODS, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, raise_all

if TYPE_CHECKING:
    from kubepy.api.typed import Node, NodeCondition, NodeSpec, Taint

REGISTERED = "RegisteredNode"


# The small value that tells of a cluster that was imported up to when its nodes were made, which
# another cluster's controller has registered.
REGISTERED_UNTIL = "nodes.registered-until"


class NodeLifecycleController:
    """Reconciles nodes: taints, labels, the status of those that never reported, and events."""

    name = "node-lifecycle-controller"

    def __init__(self, context: Context) -> None:
        self._informers = context.informers
        self._nodes = context.informers.lister(NODES)
        self._pods = context.informers.lister(PODS)
        self._client = context.client
        self._node_client = ResourceClient(context.client, NODES)
        self._pod_client = ResourceClient(context.client, PODS)
        self._clock = context.clock
        self._recorder = Recorder(context.client, "node-controller")
        self._zones: Zones | None = None  # filled from the informers when first needed
        # The creation times of the newest node that earlier processes have registered, and of the
        # newest that is registered by now.
        self._known_until = self._registered_until = context.client.value(REGISTERED_UNTIL) or ""
        self._registered: set[str] = set()  # uids of those that this process has registered
        self._unregistered: set[str] = set()  # uids of new nodes that nobody has registered
        self._recalled_modes: dict[
            str, str
        ] = {}  # the modes of zones in the process before this one
        self._deleted: dict[Key, str] = {}  # nodes whose deletion has not been reported: uid
        self._silent: dict[
            str, datetime
        ] = {}  # uid → since when the node's kubelet has said nothing
        self.queue = context.new_queue()

    def remember(self) -> Any:
        """Return when the newest registered node was made, new nodes that are not registered, the
        modes of zones and the silent nodes, as JSON."""
        modes = self._zones.modes() if self._zones is not None else self._recalled_modes
        silent = {uid: format_micro_time(since) for uid, since in sorted(self._silent.items())}
        return {
            "registeredUntil": self._registered_until,
            "modes": modes,
            **({"unregistered": sorted(self._unregistered)} if self._unregistered else {}),
            **({"silent": silent} if silent else {}),
        }

    def recall(self, memory: Any) -> None:
        """Take over the JSON of :meth:`remember`."""
        until = max(self._registered_until, memory.get("registeredUntil", ""))
        self._known_until = self._registered_until = until
        self._unregistered.update(memory.get("unregistered", ()))
        self._recalled_modes = memory["modes"]
        self._silent.update(
            (uid, parse_time(since)) for uid, since in memory.get("silent", {}).items()
        )

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {NODES: self._node_changed}

    def _node_changed(self, event: WatchEvent) -> None:
        key = event.key
        node = cast("Node | None", event.new)
        if self._get_zones().set(key.name, node):
            self._enqueue_unready_nodes()
        if node is None:
            if event.old is not None:
                self._deleted[key] = uid_of(event.old)
                self._silent.pop(uid_of(event.old), None)
                self._unregistered.discard(uid_of(event.old))
                self.queue.add(key)
            return

        if event.old is None and not event.is_update and self._is_new(node):
            self._unregistered.add(uid_of(node))
        self.queue.cancel(key)
        if (
            has_never_reported(node)
            or self._silence_end(node) is not None
            or not self._is_registered(node)
            or self._change(node) is not None
        ):
            self.queue.add(key)

    def _get_zones(self) -> Zones:
        """Return the zones: filled once from the informers, then kept up to date by the handler."""
        if self._zones is None:
            self._zones = Zones()
            for node in self._nodes.list():
                self._zones.set(name_of(node), node)
            if self._zones.modes() != self._recalled_modes:
                self._enqueue_unready_nodes()
        return self._zones

    def _enqueue_unready_nodes(self) -> None:
        """Reconcile all nodes that are not ready: the mode of their zone has changed."""
        for node in self._nodes.list():
            if not is_node_ready(node):
                self.queue.add(Key(NODES, "", name_of(node)))

    # --- sync

    def sync(self, key: Key) -> None:
        node = self._nodes.get("", key.name)
        self._record_events(key, node)
        if node is None:
            return
        now = self._clock.now()
        grace_ends = startup_grace_end(node)
        silence_ends = self._silence_end(node)
        if has_never_reported(node) and grace_ends > now:
            self.queue.add_at(key, grace_ends)
        if silence_ends is not None and silence_ends > now:
            self.queue.add_at(key, silence_ends)
        if has_never_reported(node) and grace_ends <= now:
            self._node_client.update_status(node, unknown_status(node, now))
        elif silence_ends is not None and silence_ends <= now:
            self._mark_unknown(node, now)
        elif (changed := self._change(node)) is not None:
            self._node_client.update(changed)

    def _change(self, node: Node) -> Node | None:
        return lifecycle_change(
            node, self._get_zones().eviction_mode(zone_of(node)), self._clock.now()
        )

    def _silence_end(self, node: Node) -> datetime | None:
        """Return until when a silent kubelet is waited for; None if it reports, or has been given
        up."""
        now = self._clock.now()
        if not is_down(node, now):
            self._silent.pop(uid_of(node), None)
            return None
        since = self._silent.setdefault(uid_of(node), now)
        if unknown_conditions(node, now):
            return later(since, MONITOR_GRACE_SECONDS)
        return None

    def _mark_unknown(self, node: Node, now: datetime) -> None:
        """Give a silent kubelet up: nothing is known of its node, and its pods are not ready
        (``MarkPodsNotReady``)."""
        self._node_client.update_status(node, unknown_status(node, now))
        if not is_node_ready(node):
            return
        self._recorder.event(
            _about(name_of(node), uid_of(node)),
            "Normal",
            "NodeNotReady",
            f"Node {name_of(node)} status is now: NodeNotReady",
        )
        errors: list[Exception] = []
        for pod in self._pods.at(self._informers.pods_on(name_of(node))):
            ready = get_condition(pod, "Ready")
            conditions: list[Any] = list((pod.get("status") or {}).get("conditions") or ())
            if ready is None or not set_condition(conditions, {**ready, "status": "False"}, now):
                continue
            try:
                self._pod_client.update_status(pod, {**pod["status"], "conditions": conditions})
            except NotFound:
                continue
            except Status as error:
                errors.append(error)
            self._recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")

        raise_all(errors)

    def _is_new(self, node: Node) -> bool:
        """Return whether a node that is handed over as added was not registered yet. All nodes are
        handed over as added where the informers list everything anew.

        Of nodes made in the second of the last one that earlier processes have registered, their
        events tell, and are there while that second is of late.
        """
        created = _created(node)
        if uid_of(node) in self._registered or created != self._known_until:
            return created > self._known_until
        if self._clock.now() - parse_time(created) >= EVENTS_LAST:
            return False
        events = self._client.list("events", namespace="default").items
        return not any(
            event["reason"] == REGISTERED and event["involvedObject"].get("uid") == uid_of(node)
            for event in events
        )

    def _is_registered(self, node: Node) -> bool:
        if uid_of(node) in self._registered:
            return True
        return _created(node) <= self._known_until and uid_of(node) not in self._unregistered

    def _record_events(self, key: Key, node: Node | None) -> None:
        """Report that a node was deleted or registered."""

        def record(uid: str, reason: str, message: str) -> None:
            self._recorder.event(
                _about(key.name, uid), "Normal", reason, f"Node {key.name} event: {message}"
            )

        deleted = self._deleted.pop(key, "")
        if deleted:
            record(deleted, "RemovingNode", f"Removing Node {key.name} from Controller")
        if node is not None and not self._is_registered(node):
            self._registered.add(uid_of(node))
            self._unregistered.discard(uid_of(node))
            self._registered_until = max(self._registered_until, _created(node))
            record(uid_of(node), REGISTERED, f"Registered Node {key.name} in Controller")


def _created(node: Node) -> str:
    return node["metadata"].get("creationTimestamp") or ""


def _about(name: str, uid: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": uid}}


# --- kubelets that do not report ------------------------------------------------------------------

STARTUP_GRACE_SECONDS = 60.0
MONITOR_GRACE_SECONDS = 50.0  # --node-monitor-grace-period
REPORTED_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
NEVER_UPDATED, NEVER_UPDATED_MESSAGE = "NodeStatusNeverUpdated", "Kubelet never posted node status."
UNKNOWN, UNKNOWN_MESSAGE = "NodeStatusUnknown", "Kubelet stopped posting node status."


def has_never_reported(node: Node) -> bool:
    return get_condition(node, "Ready") is None


def startup_grace_end(node: Node) -> datetime:
    return later(
        parse_optional_time(node["metadata"].get("creationTimestamp")), STARTUP_GRACE_SECONDS
    )


def unknown_conditions(node: Node, now: datetime) -> dict[str, NodeCondition]:
    """Return those conditions as Unknown that the kubelet should report and that are not Unknown
    yet (``tryUpdateNodeHealth``)."""
    found: dict[str, NodeCondition] = {}
    for kind in REPORTED_CONDITIONS:
        present = cast("NodeCondition | None", get_condition(node, kind))
        since = format_time(now)
        if present is None:
            found[kind] = {
                "type": kind,
                "status": "Unknown",
                "reason": NEVER_UPDATED,
                "message": NEVER_UPDATED_MESSAGE,
                "lastHeartbeatTime": node["metadata"].get("creationTimestamp", since),
                "lastTransitionTime": since,
            }
        elif present["status"] != "Unknown":
            found[kind] = {
                **present,
                "status": "Unknown",
                "reason": UNKNOWN,
                "message": UNKNOWN_MESSAGE,
                "lastTransitionTime": since,
            }

    return found


def unknown_status(node: Node, now: datetime) -> Object:
    """Return the status with all conditions Unknown that the kubelet should report."""
    unknown = unknown_conditions(node, now)
    present = (node.get("status") or {}).get("conditions") or ()
    conditions: list[AnyObject] = [
        unknown.pop(condition["type"], condition) for condition in present
    ]
    return {**(node.get("status") or {}), "conditions": [*conditions, *unknown.values()]}


# --- zones ----------------------------------------------------------------------------------------

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
EXCLUDE_DISRUPTION = "node.kubernetes.io/exclude-disruption"  # a label: the node does not count
UNHEALTHY_ZONE_THRESHOLD = 0.55
UNHEALTHY_NODES_TOLERATED = 2  # so many may be not ready, whatever share of a zone they are
LARGE_ZONE_THRESHOLD = 50  # a larger zone goes on evicting


class ZoneCount(NamedTuple):
    """The number of nodes of a zone that are ready, and that are not."""

    ready: int = 0
    not_ready: int = 0

    @property
    def is_fully_disrupted(self) -> bool:
        """No node is ready (``stateFullDisruption``)."""
        return self.ready == 0 and self.not_ready > 0

    @property
    def is_partially_disrupted(self) -> bool:
        """The greater part of a small zone is not ready (``statePartialDisruption``)."""
        total = self.ready + self.not_ready
        unhealthy = (
            self.not_ready > UNHEALTHY_NODES_TOLERATED
            and self.not_ready / total >= UNHEALTHY_ZONE_THRESHOLD
        )
        if not unhealthy:
            return False
        if self.is_fully_disrupted:
            return False
        return total <= LARGE_ZONE_THRESHOLD


class EvictionMode(Enum):
    """The treatment of NoExecute taints of nodes that are not ready."""

    ADD = "added"
    KEEP = "left as they are"
    REMOVE = "removed"


class Zones:
    """The number of ready nodes in each zone, kept from change to change (``handleDisruption``,
    ``ComputeZoneState``).

    Where a great part of a zone does not answer, the network is broken rather than the nodes: no
    further node gets a NoExecute taint there. Where no node of the cluster is ready, all such
    taints are removed.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[str, bool]] = {}  # name → zone, ready
        self._counts: dict[str, ZoneCount] = {}

    def eviction_mode(self, zone: str) -> EvictionMode:
        if bool(self._counts) and all(count.is_fully_disrupted for count in self._counts.values()):
            return EvictionMode.REMOVE  # upstream's "master disruption mode"
        is_held = self._counts.get(zone, ZoneCount()).is_partially_disrupted
        if is_held:
            return EvictionMode.KEEP
        return EvictionMode.ADD

    def modes(self) -> dict[str, str]:
        """Return the modes of the zones that are not treated as usual."""
        modes = {zone: self.eviction_mode(zone) for zone in sorted(self._counts)}
        return {zone: mode.value for zone, mode in modes.items() if mode is not EvictionMode.ADD}

    def set(self, name: str, node: Node | None) -> bool:
        """Take in a node's present state (None: deleted); return whether the mode of other nodes
        has changed."""
        before = self._nodes.pop(name, None)
        is_counted = node is not None and EXCLUDE_DISRUPTION not in labels_of(node)
        now = (zone_of(node), is_node_ready(node)) if node is not None and is_counted else None
        if now is not None:
            self._nodes[name] = now
        zones = [entry[0] for entry in (before, now) if entry is not None] if before != now else []
        modes = [self.eviction_mode(zone) for zone in zones]
        for entry, number in ((before, -1), (now, 1)):
            if zones and entry is not None:
                zone, ready = entry
                count = self._counts.pop(zone, ZoneCount())
                count = ZoneCount(
                    count.ready + number * ready, count.not_ready + number * (not ready)
                )
                if any(count):
                    self._counts[zone] = count

        return modes != [self.eviction_mode(zone) for zone in zones]


def zone_of(node: Node) -> str:
    """Return the region and zone of a node, "" without (``GetZoneKey``)."""
    labels = labels_of(node)
    region = labels.get(REGION, "")
    zone = labels.get(ZONE, "")
    if region or zone:
        return f"{region}/{zone}"
    return ""


# --- taints and labels ----------------------------------------------------------------------------

READINESS_TAINTS = {"False": TAINT_NOT_READY, "Unknown": TAINT_UNREACHABLE}
# condition type → its status → the taint's key (``nodeConditionToTaintKeyStatusMap``)
CONDITION_TAINTS: Mapping[str, Mapping[str, str]] = {
    "Ready": READINESS_TAINTS,
    "MemoryPressure": {"True": TAINT_MEMORY_PRESSURE},
    "DiskPressure": {"True": TAINT_DISK_PRESSURE},
    "NetworkUnavailable": {"True": TAINT_NETWORK_UNAVAILABLE},
    "PIDPressure": {"True": TAINT_PID_PRESSURE},
}
OWN_KEYS = frozenset(key for taints in CONDITION_TAINTS.values() for key in taints.values()) | {
    TAINT_UNSCHEDULABLE
}
# The older label follows the newer one (``labelReconcileInfo``).
FOLLOWING_LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}

TaintKey = tuple[str, str]  # key, effect


def lifecycle_change(node: Node, mode: EvictionMode, now: datetime) -> Node | None:
    """Return the node with the taints and labels that it should have, or None when it has them."""
    taints = updated_taints(taints_of(node), desired_taints(node, mode), now)
    labels = labels_of(node)
    following = {
        older: labels[newer] for newer, older in FOLLOWING_LABELS.items() if newer in labels
    }
    updated_labels = {**labels, **following}
    if taints == taints_of(node) and updated_labels == labels:
        return None
    spec: NodeSpec = {**(node.get("spec") or {})}
    spec.pop("taints", None)
    if taints:
        spec["taints"] = taints
    metadata = node["metadata"]
    if updated_labels:
        metadata = {**metadata, "labels": updated_labels}
    return {**node, "metadata": metadata, "spec": spec}


def desired_taints(node: Node, mode: EvictionMode) -> list[TaintKey]:
    """Return the taints that conditions and spec call for, in upstream's order: NoSchedule first,
    NoExecute last."""
    taints: list[TaintKey] = []
    for condition in (node.get("status") or {}).get("conditions") or ():
        key = CONDITION_TAINTS.get(condition["type"], {}).get(condition["status"])
        if key:
            taints.append((key, NO_SCHEDULE))
    if (node.get("spec") or {}).get("unschedulable"):
        taints.append((TAINT_UNSCHEDULABLE, NO_SCHEDULE))
    return taints + _desired_no_execute_taints(node, mode)


def _desired_no_execute_taints(node: Node, mode: EvictionMode) -> list[TaintKey]:
    """Return at most one taint. In mode KEEP a present one still changes with the Ready
    condition."""
    present = [
        (taint["key"], NO_EXECUTE)
        for taint in taints_of(node)
        if taint.get("effect") == NO_EXECUTE and taint["key"] in READINESS_TAINTS.values()
    ]
    ready = get_condition(node, "Ready")
    if ready is None:
        return present  # nothing is known of the node yet
    key = READINESS_TAINTS.get(ready["status"])
    if key is None or mode is EvictionMode.REMOVE or (mode is EvictionMode.KEEP and not present):
        return []
    return [(key, NO_EXECUTE)]


def updated_taints(taints: list[Taint], desired: Iterable[TaintKey], now: datetime) -> list[Taint]:
    """Add the desired taints at the end, and remove those of this controller that are not
    desired."""

    def is_own(taint: Taint) -> bool:
        if taint.get("effect") == NO_EXECUTE:
            return taint["key"] in READINESS_TAINTS.values()
        if taint.get("effect") != NO_SCHEDULE:
            return False
        return taint["key"] in OWN_KEYS

    desired = dict.fromkeys(desired)
    kept = [
        taint for taint in taints if not is_own(taint) or (taint["key"], taint["effect"]) in desired
    ]
    present = {(taint["key"], taint["effect"]) for taint in kept}
    added: list[Taint] = [
        {"effect": effect, "key": key, "timeAdded": format_time(now)}
        for key, effect in desired
        if (key, effect) not in present
    ]
    return [*kept, *added]
