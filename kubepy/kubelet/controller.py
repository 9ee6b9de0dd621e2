"""The kubelets of all nodes as one reconciler. This module alone writes to the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import (
    annotations_of,
    controller_of,
    is_being_deleted,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.nodes import DOWN_UNTIL, down_until, is_down, is_node_unknown
from kubepy.api.objects.outcomes import (
    EXIT_CODE,
    POD_OUTCOME,
    READY_AFTER,
    REFERENCES,
    RUNS_FOR,
    STOPS_AFTER,
)
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal, node_name
from kubepy.apiserver.request import DeleteOptions
from kubepy.apiserver.settings import MODELLED
from kubepy.kubelet.admission import Rejection, is_scheduled, rejection
from kubepy.kubelet.lifetimes import Moments, Rules
from kubepy.kubelet.nodes import (
    NodeAddresses,
    PodAddresses,
    internal_ip,
    is_registration_due,
    is_report_due,
    register,
    report,
)
from kubepy.kubelet.obstacles import NO_OBSTACLES, are_reported, events_of, reported_obstacles
from kubepy.kubelet.outcomes import KILLED, RUNNING, PodOutcome, StartObstacles, TerminationBackoff
from kubepy.kubelet.restarts import deletion_time
from kubepy.kubelet.stages import (
    Acknowledge,
    Expire,
    Refuse,
    Remove,
    Start,
    Step,
    UpdateReadiness,
    next_due,
    next_step,
    rests_once_started,
    starts_plainly,
)
from kubepy.kubelet.statuses import (
    DEADLINE_MESSAGE,
    DEADLINE_REASON,
    acknowledged_status,
    expired_status,
    pod_status,
    rejected_status,
)
from kubepy.kubelet.users import kubelet_of
from kubepy.lazy import lazy_imports
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import CONFIG_MAPS, NODES, PODS, SECRETS, Query, ResourceClient
from kubepy.runtime.ownwrites import OwnWrites
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

with lazy_imports():
    from kubepy.kubelet import reporting, resizing
    from kubepy.kubelet.modelled import agent as modelled_agent
    from kubepy.kubelet.modelled import statuses as modelled_statuses

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod, PodStatus
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.modelled.pods import Look, ModelledPods
    from kubepy.kubelet.modelled.worker import Foreseen

# What the answers of the network to a pod's processes are made from.
NETWORK = ("services", "endpointslices.discovery.k8s.io", "networkpolicies.networking.k8s.io")
CLAIMS = ("persistentvolumeclaims",)
# Annotations of a node about its pods.
PACED_BY_NODE = (POD_OUTCOME, READY_AFTER, STOPS_AFTER, RUNS_FOR, EXIT_CODE, REFERENCES, DOWN_UNTIL)


class Kubelet:
    """Reconciles nodes, which it registers, and the pods bound to them."""

    name = "kubelet"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._informers = context.informers
        self._nodes = context.informers.lister(NODES)
        self._pods = context.informers.lister(PODS)
        self._clock = context.clock
        self._recorder = Recorder(context.client, self.name)
        self._addresses = PodAddresses(context.informers)
        self._node_addresses = NodeAddresses(self._nodes)
        self._backoff = TerminationBackoff()
        self._moments = Moments()
        self._started = OwnWrites(
            context.informers
        )  # the pods for which nothing is due after their start
        # Pods in the queue for a step that stays due as long as pod and node are the same: the
        # start of a plain pod, a removal.
        self._decided: dict[Key, tuple[Pod, Node, Step]] = {}
        defaults = {
            name: value
            for name, value in context.client.settings.kubelet.annotations().items()
            if value
        }
        self._rules = Rules(self._draw, defaults, self._moments.exact, context.informers.get)
        self._silent_nodes = context.client.settings.kubelet.silent_nodes
        self._turns: dict[str, int] = {}  # how often each Service was asked
        self._modelled: ModelledPods | None = None
        if context.client.settings.kubelet.containers == MODELLED:
            self._modelled = modelled_agent.modelled_pods(
                context, self._draw, defaults, self._turns
            )
        self._foreseen: dict[Key, Foreseen] = {}  # of modelled pods, until their write is observed
        self._deferred: set[Key] = set()  # pods whose resize waits for room on their node
        self._reserved: dict[str, str] = {}  # addresses of pods that do not report one yet, by uid
        self._held_pods = context.informers.add_index(
            PODS,
            lambda pod: (namespace_of(pod), None) if reported_obstacles(pod) else None,
            lambda namespace: (Query(PODS, namespace, "waiting"),),
        )

    def refresh(self) -> None:
        """Look at all pods again where other rules hold from now on."""
        if self._modelled is None or not self._modelled.agent.behaviours.refresh():
            return
        for pod in self._pods.list():
            if node_name(pod):
                self.queue.add(Key(PODS, namespace_of(pod), name_of(pod)))

    def remember(self) -> Any:
        memory = {
            "terminations": self._backoff.remember(),
            "moments": self._moments.remember(),
            "address": self._addresses.last,
            "deferred": sorted(key[1:] for key in self._deferred),
            "turns": self._turns,
        }
        if self._modelled is not None:
            memory |= self._modelled.remember()
        return {name: value for name, value in memory.items() if value}

    def recall(self, memory: Any) -> None:
        self._backoff.recall(memory.get("terminations", {}))
        self._moments.recall(memory.get("moments", {}))
        self._addresses.last = memory.get("address", 0)
        self._deferred = {Key(PODS, *key) for key in memory.get("deferred", ())}
        self._turns.update(memory.get("turns", {}))
        if self._modelled is not None:
            self._modelled.recall(memory)

    def handlers(self) -> Mapping[str, Handler]:
        handlers: dict[str, Handler] = {
            NODES: self._node_changed,
            PODS: self._pod_changed,
            CONFIG_MAPS: self._reference_changed,
            SECRETS: self._reference_changed,
        }
        if self._modelled is not None:
            handlers |= dict.fromkeys(NETWORK, self._network_changed)
            handlers |= dict.fromkeys(CLAIMS, self._claim_changed)
        return handlers

    def _reference_changed(self, event: WatchEvent) -> None:
        """Look again at the pods of the namespace that could not be started."""
        for key in sorted(self._held_pods.group(event.key.namespace)):
            self.queue.add(key)
        if self._modelled is not None and event.new is not None:
            self._refresh(self._modelled, event)

    def _refresh(self, modelled: ModelledPods, event: WatchEvent) -> None:
        """Let the volumes of running pods show a changed object, at the next look of the
        kubelet."""
        for key in modelled.readers(event.key):
            pod = self._pods.get(key.namespace, key.name)
            if pod is not None:
                due = modelled.plan_refresh(pod, self._clock.now())
                self.queue.add_at(key, due)

    def _network_changed(self, event: WatchEvent) -> None:
        """Look again at the pods whose processes ask the network."""
        if self._modelled is not None:
            for key in self._modelled.network_users():
                self.queue.add(key)

    def _claim_changed(self, event: WatchEvent) -> None:
        """Look again at the pods that wait for a claim."""
        for key in sorted(self._held_pods.group(event.key.namespace)):
            self.queue.add(key)

    def _node_changed(self, event: WatchEvent) -> None:
        node = cast("Node | None", event.new)
        if node is None:
            return
        self._node_addresses.observe(node)
        until = down_until(node)
        if until is not None:
            self.queue.add_at(event.key, until)
        elif self._is_report_due(node):
            self.queue.add(event.key)
        if self._deferred:
            self._retry_resizes(event.key.name)

        before = annotations_of(event.old) if event.old is not None else {}
        annotations = annotations_of(node)
        if event.old is None or any(
            before.get(name) != annotations.get(name) for name in PACED_BY_NODE
        ):
            for key in self._informers.pods_on(event.key.name):
                self.queue.add(key)

    def _pod_changed(self, event: WatchEvent) -> None:
        key = event.key
        before = cast("Pod | None", event.old)
        pod = cast("Pod | None", event.new)
        self.queue.cancel(key)
        self._decided.pop(key, None)
        if self._modelled is not None:
            self._note_room(key, before, pod)
        if self._started.observe(event) and pod is not None:
            foreseen = self._foreseen.pop(key, None)
            if foreseen is not None:
                self.queue.add_at(key, foreseen.at, repeating=foreseen.repeats)
            self._moments.forget(pod)
            return
        if pod is None or not (node := node_name(pod)):
            if before is not None:
                self._forget(before)
            return

        if is_being_deleted(pod) and not (before is not None and is_being_deleted(before)):
            self._note_deletion(pod)
        live_node = self._live_node(pod)
        if live_node is not None and self._is_modelled(pod, live_node):
            self.queue.add(key)
            return
        if live_node is not None and starts_plainly(pod, live_node, self._rules):
            self._decided[key] = pod, live_node, Start(RUNNING)
            self.queue.add(key)
            return

        step = next_step(pod, live_node, self._clock.now(), rules=self._rules)
        is_reported = (
            isinstance(step, Refuse)
            and before is not None
            and node_name(before) == node
            and next_step(before, self._live_node(before), self._clock.now(), rules=self._rules)
            == step
        )
        if step is not None and not is_reported:
            if isinstance(step, Remove) and live_node is not None:
                self._decided[key] = pod, live_node, step
            self.queue.add(key)
        else:
            self._wait(key, pod)

    def _note_room(self, key: Key, before: Pod | None, pod: Pod | None) -> None:
        """Look again at resizes that wait for room on a node where a pod has given some back."""
        if pod is not None and resizing.is_deferred(pod):
            self._deferred.add(key)
            if before is None:  # what has happened on its node is not known
                self.queue.add(key)
        else:
            self._deferred.discard(key)
        if not self._deferred or before is None:
            return
        was_resized = False
        if pod is not None:
            observed = (pod.get("status") or {}).get("observedGeneration")
            was_resized = observed != (before.get("status") or {}).get("observedGeneration")
        if pod is None or is_pod_terminal(pod) or was_resized:
            self._retry_resizes(node_name(before))

    def _retry_resizes(self, node: str) -> None:
        """Look again at the pods of a node whose resize waits for room."""
        for key in sorted(self._deferred):
            pod = self._pods.get(key.namespace, key.name)
            if pod is not None and node_name(pod) == node:
                self.queue.add(key)

    def _forget(self, pod: Pod) -> None:
        """Drop what is known of a pod that is gone."""
        self._moments.forget(pod)
        if self._modelled is not None:
            self._modelled.forget(pod)  # one that only runs may have been looked into

    def _is_modelled(self, pod: Pod, node: Node) -> bool:
        return self._modelled is not None and self._modelled.lives(pod, node)

    def _note_deletion(self, pod: Pod) -> None:
        """Remember when the deletion was asked for: at the latest now, and in the second that the
        pod names."""
        asked = deletion_time(pod)
        now = self._clock.now()
        if self._moments.is_known(pod, format_time(asked)):
            return
        if now - asked < timedelta(seconds=1):
            self._moments.note(pod, now)
        elif self._clock.own is None:
            self._moments.note(pod, asked + timedelta(microseconds=999_999))

    def _live_node(self, pod: Pod) -> Node | None:
        """Return the node of a pod, if its kubelet is not down; where faults choose the pod's
        outcome, as if the node did."""
        node = self._nodes.get("", node_name(pod))
        if node is None or is_down(node, self._clock.now()):
            return None
        if node_name(pod) in self._silent_nodes and is_node_unknown(node):
            return None
        faults = self._client.settings.faults
        annotations = annotations_of(node)
        if (
            faults is None
            or annotations.get(POD_OUTCOME)
            or not (outcome := faults.pod_outcome(pod))
        ):
            return node

        return {
            **node,
            "metadata": {**node["metadata"], "annotations": {**annotations, POD_OUTCOME: outcome}},
        }

    def _wait(self, key: Key, pod: Pod) -> None:
        """Put a pod off until its next step is due, if there is one."""
        now = self._clock.now()
        node = self._nodes.get("", node_name(pod))
        if node is not None and is_down(node, now):
            return  # it is looked at when the node comes back
        due = next_due(pod, self._live_node(pod), now, self._rules)
        if due:
            self.queue.add_at(key, due.at, repeating=due.repeats)
        else:
            self._moments.forget(pod)

    def _draw(self, pod: Pod, purpose: str, low: float, high: float) -> float:
        """Draw a number of seconds for a pod; whole ones between whole ones."""
        subject = ("Pod", namespace_of(pod), name_of(pod), purpose)
        fraction = self._client.ids.fraction(*subject, unseeded=uid_of(pod))
        seconds = low + (high - low) * fraction
        if low.is_integer() and high.is_integer():
            return round(seconds, 0)
        return round(seconds, 3)

    def sync(self, key: Key) -> None:
        if key.resource == NODES:
            self._sync_node(key)
            return
        pod = self._pods.get(key.namespace, key.name)
        node = self._live_node(pod) if pod is not None else None
        decided_pod, decided_node, decided = self._decided.pop(key, (None, None, None))
        if pod is None or node is None:
            return
        is_decided = decided is not None and decided_pod is pod and decided_node is node
        if self._modelled is not None and not is_decided and self._is_modelled(pod, node):
            self._live(self._modelled, key, pod, node)
            return
        step: Step | None
        if decided is None or not is_decided:
            now = self._clock.now()
            step = next_step(pod, node, now, lambda: self._admit(pod, node), self._rules)
        elif isinstance(decided, Remove):
            step = decided
        else:
            step = self._admit(pod, node) or decided

        if step is None and key in self._deferred and self._has_room(pod, node):
            step = Acknowledge()
        if step is None or isinstance(step, Refuse):
            self._wait(key, pod)
        if step is None:
            return
        ends_pod = isinstance(step, Rejection)
        if isinstance(step, Start):
            ends_pod = step.outcome.state == "terminated"
        if not ends_pod or not self._must_wait(key, pod):
            self._take(step, pod, node)

    def _live(self, modelled: ModelledPods, key: Key, pod: Pod, node: Node) -> None:
        """Let a modelled pod live on up to now, and report what it is then."""
        if is_pod_terminal(pod):
            if is_being_deleted(pod):
                self._take(Remove(), pod, node)
            return
        status = pod.get("status") or {}
        if not status.get("containerStatuses"):
            refused = self._admit(pod, node)
            if refused is not None:
                self._take(refused, pod, node)
                return

        now = self._clock.now()
        placed = self._placed(pod, node, now)
        resize = self._resize_of(pod, node)
        restarts = () if resize is None or resize.pending is not None else resize.restarts
        look = modelled.look(placed, node, now, restarts)
        if look.events:
            self._recorder.events(pod, look.events, host=name_of(node))
        if look.next is not None:
            self.queue.add_at(key, look.next.at, repeating=look.next.repeats)
        is_outdated = modelled_statuses.is_outdated(pod, look.record)
        has_room = key in self._deferred and self._has_room(pod, node)
        if look.is_changed or is_outdated or has_room:
            self._report(key, placed, node, look, now)
        if look.is_removed:
            self._remove(pod, node)

    def _placed(self, pod: Pod, node: Node, now: datetime) -> Pod:
        """Return a pod with the addresses and the start that its first report will give it."""
        status = pod.get("status") or {}
        if status.get("podIP") and status.get("startTime"):
            return pod
        host_ip = internal_ip(node)
        uid = uid_of(pod)
        if uid not in self._reserved:
            self._reserved[uid] = self._pod_ip(pod, host_ip)
        address = self._reserved[uid]
        placed: PodStatus = {
            **status,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": host_ip,
            "startTime": status.get("startTime") or format_time(now),
        }
        return {**pod, "status": placed}

    def _report(self, key: Key, pod: Pod, node: Node, look: Look, now: datetime) -> None:
        """Write the status of a modelled pod."""
        host_ip = internal_ip(node)
        has_address = not look.record.mounts_fail or pod["spec"].get("hostNetwork")
        address = (pod.get("status") or {}).get("podIP", "") if has_address else ""
        status = modelled_statuses.reported_status(pod, look.record, host_ip, address, now)
        stopping = look.stopping_for_resize(pod)
        status = self._resized(
            pod,
            node,
            status,
            now,
            restarts=False,
            stopping=stopping,
        )
        status = reporting.with_runtime_fields(
            pod,
            status,
            now,
            mounts_fail=look.record.mounts_fail,
            resizing=stopping,
        )
        pods = ResourceClient(self._client_of(node), PODS)
        with suppress(NotFound):
            stored = pods.update_status(pod, status)
            self._started.note(key, stored)
            if look.next is not None:
                self._foreseen[key] = look.next
        if address:
            self._reserved.pop(uid_of(pod), None)

    def _remove(self, pod: Pod, node: Node) -> None:
        """Delete a pod for good whose containers have ended."""
        client = self._client_of(node)
        options = DeleteOptions(grace_period_seconds=0, uid=uid_of(pod))
        with suppress(NotFound):
            client.delete(PODS, name_of(pod), namespace=namespace_of(pod), options=options)

    def _sync_node(self, key: Key) -> None:
        """Let a node come back that is down, and register one that has not been."""
        node = self._nodes.get("", key.name)
        if node is None:
            return
        until = down_until(node)
        if until is not None:
            self._come_back(key, node, until)
        elif self._is_report_due(node):
            self._report_node(node)

    def _is_report_due(self, node: Node) -> bool:
        """Tell whether the status of a node lacks what its kubelet would report."""
        if name_of(node) in self._silent_nodes:
            return False
        if self._modelled is not None:
            return is_report_due(node)
        return is_registration_due(node)

    def _report_node(self, node: Node) -> Node:
        """Write what a kubelet reports on its node."""
        now = self._clock.now()
        if self._modelled is not None:
            reported = report(node, now, self._node_addresses.next)
        else:
            reported = register(node, now)
        return self._node_client(node).update_status(node, reported["status"])

    def _come_back(self, key: Key, node: Node, until: datetime) -> None:
        """Let a kubelet that was down report again on its pods, which count as not ready since, and
        on its node."""
        now = self._clock.now()
        if until > now:
            self.queue.add_at(key, until)
            return
        for pod in self._pods.at(self._informers.pods_on(key.name)):
            containers = (pod.get("status") or {}).get("containerStatuses") or ()
            if (
                not is_pod_ready(pod)
                and containers
                and all(container.get("ready") for container in containers)
            ):
                self._take(UpdateReadiness(), pod, node)

        if self._is_report_due(node):
            node = self._report_node(node)
        metadata = node["metadata"]
        kept = {name: value for name, value in annotations_of(node).items() if name != DOWN_UNTIL}
        self._node_client(node).update({**node, "metadata": {**metadata, "annotations": kept}})

    def _admit(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why the node does not admit a pod that names it. A node without a report admits
        everything."""
        status = node.get("status") or {}
        if is_scheduled(pod) or not status.get("allocatable"):
            return None
        others: list[Pod] = []
        for other in self._pods.at(self._informers.pods_on(name_of(node))):
            if uid_of(other) != uid_of(pod) and not is_pod_terminal(other) and is_scheduled(other):
                others.append(other)
        return rejection(pod, node, others)

    def _must_wait(self, key: Key, pod: Pod) -> bool:
        """Tell whether the end of a pod that will be replaced is to be delayed; if not, count
        it."""
        controller = controller_of(pod)
        if controller is None or pod["spec"].get("restartPolicy") != "Always":
            return False
        now = self._clock.now()
        delay = self._backoff.delay(controller["uid"], now)
        if delay > 0:
            self.queue.add_after(key, delay, repeating=self._backoff.is_longest(controller["uid"]))
            return True
        self._backoff.record(controller["uid"], now)
        return False

    # --- writes

    def _client_of(self, node: Node) -> Client:
        """Return the client of a node's own kubelet."""
        return self._client.as_user(kubelet_of(name_of(node)))

    def _node_client(self, node: Node) -> ResourceClient[Node]:
        return ResourceClient(self._client_of(node), NODES)

    def _take(self, step: Step, pod: Pod, node: Node) -> None:
        now = self._clock.now()
        client = self._client_of(node)
        pods = ResourceClient(client, PODS)
        match step:
            case Remove():
                if self._modelled is not None and not is_pod_terminal(pod):
                    stop_events = self._modelled.stop_events(pod)
                    if stop_events:
                        self._recorder.events(pod, stop_events, host=name_of(node))
                if pod["metadata"].get("finalizers") and not is_pod_terminal(pod):
                    # The finalizer will hold the pod: it gets the status of an ended one.
                    pods.update_status(pod, self._status(pod, node, KILLED, now))
                self._remove(pod, node)
            case Start(outcome, obstacles):
                self._moments.note(pod, now)
                if not are_reported(obstacles, pod):
                    for reason, message in events_of(obstacles):
                        self._recorder.event(pod, "Warning", reason, message, host=name_of(node))
                if self._modelled is not None and outcome is RUNNING and not has_started(pod):
                    started_events = self._modelled.start_events(pod, node)
                    self._recorder.events(pod, started_events, host=name_of(node))
                started = pods.update_status(pod, self._status(pod, node, outcome, now, obstacles))
                if obstacles == NO_OBSTACLES and rests_once_started(
                    pod, node, outcome, self._rules
                ):
                    self._started.note(Key(PODS, namespace_of(pod), name_of(pod)), started)
            case UpdateReadiness():
                pods.update_status(pod, self._status(pod, node, RUNNING, now))
            case Acknowledge():
                status = acknowledged_status(pod, now)
                if self._modelled is not None:
                    status = self._resized(pod, node, status, now, restarts=True)
                pods.update_status(pod, self._reported(pod, status, now))
            case Expire():
                self._recorder.event(
                    pod, "Normal", DEADLINE_REASON, DEADLINE_MESSAGE, host=name_of(node)
                )
                host_ip = internal_ip(node)
                expired = expired_status(pod, host_ip, self._pod_ip(pod, host_ip), now)
                pods.update_status(pod, self._reported(pod, expired, now))
            case Rejection(reason, message):
                self._recorder.event(pod, "Warning", reason, message, host=name_of(node))
                pods.update_status(pod, rejected_status(pod, reason, message, now))
            case Refuse(reason, message):
                self._recorder.event(pod, "Warning", reason, message, host=name_of(node))

    def _status(
        self,
        pod: Pod,
        node: Node,
        outcome: PodOutcome,
        now: datetime,
        obstacles: StartObstacles = NO_OBSTACLES,
    ) -> PodStatus:
        host_ip = internal_ip(node)
        has_address = not obstacles.mounts or pod["spec"].get("hostNetwork")
        pod_ip = self._pod_ip(pod, host_ip) if has_address else ""
        status = pod_status(pod, outcome, host_ip, pod_ip, now, obstacles)
        return self._reported(pod, status, now, mounts_fail=bool(obstacles.mounts))

    def _reported(
        self, pod: Pod, status: PodStatus, now: datetime, *, mounts_fail: bool = False
    ) -> PodStatus:
        """Return a status with what a container runtime tells, where containers are modelled."""
        if self._modelled is None:
            return status
        return reporting.with_runtime_fields(pod, status, now, mounts_fail=mounts_fail)

    def _resized(
        self,
        pod: Pod,
        node: Node,
        status: PodStatus,
        now: datetime,
        *,
        restarts: bool,
        stopping: tuple[str, ...] = (),
    ) -> PodStatus:
        """Carry out the resize that the spec of a pod asks for, or report why it is not.

        :param stopping: the containers that still run with the resources that they had.
        """
        resize = self._resize_of(pod, node)
        if resize is not None:
            resize = resize._replace(stopping=stopping)
            events = resizing.resize_events(pod, resize, restarts=restarts)
            self._recorder.events(pod, events, host=name_of(node))
        return resizing.resized_status(pod, status, resize, now, restarts=restarts)

    def _has_room(self, pod: Pod, node: Node) -> bool:
        """Tell whether a node has room now for the resize of a pod that waits for it."""
        resize = self._resize_of(pod, node)
        return resize is None or resize.pending is None

    def _resize_of(self, pod: Pod, node: Node) -> resizing.Resize | None:
        def others() -> Iterator[Pod]:
            for other in self._pods.at(self._informers.pods_on(name_of(node))):
                if uid_of(other) != uid_of(pod) and not is_pod_terminal(other):
                    yield other

        return resizing.resize_of(pod, node, others())

    def _pod_ip(self, pod: Pod, host_ip: str) -> str:
        """Return the address that the pod has, or assign one."""
        address = (pod.get("status") or {}).get("podIP")
        if address:
            return str(address)
        if pod["spec"].get("hostNetwork"):
            return host_ip
        return self._addresses.next()


def has_started(pod: Pod) -> bool:
    """Tell whether containers of a pod have been reported on."""
    return bool((pod.get("status") or {}).get("containerStatuses"))
