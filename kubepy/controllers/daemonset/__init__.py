"""The DaemonSet controller: one pod on every node that should have one (``pkg/controller/daemon``).

A sync observes a :class:`~kubepy.controllers.daemonset.state.DaemonSetState`, has
``update_daemon_set`` make DaemonSetActions of it, and acts: this module alone writes. :mod:`decide`
has ``pods_should_be_on_node``, which decides about each node for itself; :mod:`rolling_update`
replaces old pods, with surge or without; :mod:`status` says what the status will be. They go by
:mod:`placement` (the nodes that should run the pod), :mod:`pods` and :mod:`nodes` (the pods on each
node, and what follows from them). All of these are pure functions, but for the nodes, which follow
the informers' index of pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kubepy.api.clock import later
from kubepy.api.errors import AlreadyExists, NotFound, Status
from kubepy.api.meta import (
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import next_availability, node_name
from kubepy.api.selectors import from_label_selector
from kubepy.controllers.daemonset.decide import DaemonSetActions, update_daemon_set
from kubepy.controllers.daemonset.nodes import DaemonSetNodes
from kubepy.controllers.daemonset.placement import PLACEMENT_PARTS, node_should_run_daemon_pod
from kubepy.controllers.daemonset.pods import (
    DAEMON_POD_PARTS,
    HASH_LABEL,
    DaemonPod,
    PodCriteria,
    for_node,
    is_generation_reused,
    new_pod,
    read_daemon_pod,
    template_generation,
    with_hash,
)
from kubepy.controllers.daemonset.state import DaemonSetState, FailedPodsBackoff
from kubepy.controllers.daemonset.status import new_status
from kubepy.controllers.expectations import Expectations
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import PodControl, failures
from kubepy.controllers.ref_manager import RefManager
from kubepy.lazy import lazy_imports
from kubepy.runtime import history
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS, ResourceClient
from kubepy.runtime.ownwrites import OwnWrites
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, raise_all

with lazy_imports():
    from kubepy.api.types import hashing  # knows all types of the API; most runs make no revision

if TYPE_CHECKING:
    from kubepy.api.typed import ControllerRevision, DaemonSet, Pod

BURST_REPLICAS = 250
DEFAULT_HISTORY_LIMIT = 10


class DaemonSetController:
    """A key is a DaemonSet, or a node whose change may concern DaemonSets."""

    name = "daemonset-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._informers = context.informers
        self._daemon_sets = context.informers.lister(DAEMON_SETS)
        self._nodes = context.informers.lister(NODES)
        self._pods = context.informers.lister(PODS)
        self._revisions = context.informers.lister(CONTROLLER_REVISIONS)
        self._writer = ResourceClient(context.client, DAEMON_SETS)
        self._recorder = Recorder(context.client, self.name)
        self._pod_control = PodControl(context.client, self._recorder)
        self._history = history.History(context.client)
        self._expectations: Expectations[Key] = Expectations(context.clock.now)
        self._failed_pods_backoff = FailedPodsBackoff()
        self._own_writes = OwnWrites(context.informers)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, DAEMON_SETS, "DaemonSet", self.queue)
        self._daemon_pods = context.informers.add_index(
            PODS, self._index_daemon_pod, self._owners.queries_of_group, DAEMON_POD_PARTS
        )
        self._daemon_set_nodes = self._daemon_pods.accumulate(lambda uid: DaemonSetNodes())
        self._node_parts = context.informers.add_index(
            NODES, lambda node: ("", node), parts=PLACEMENT_PARTS
        )

    def remember(self) -> Any:
        return self._failed_pods_backoff.memory()

    def recall(self, memory: Any) -> None:
        self._failed_pods_backoff.recall(memory)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {
            DAEMON_SETS: self._daemon_set_changed,
            PODS: self._pod_changed,
            NODES: self._node_changed,
            CONTROLLER_REVISIONS: self._revision_changed,
        }

    def _daemon_set_changed(self, event: WatchEvent) -> None:
        """Reconcile a DaemonSet that others changed: after a write of its own counts the controller
        would find nothing to do, at the price of another look at all nodes."""
        if event.new is None:
            self._expectations.forget(event.key)
            if event.old is not None:
                self._daemon_set_nodes.forget(uid_of(event.old))
        if not self._own_writes.observe(event):
            self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        self._owners.changed(
            event,
            lambda key, _: self._expectations.creation_observed(key),
            lambda key, _: self._expectations.deletion_observed(key),
        )

    def _revision_changed(self, event: WatchEvent) -> None:
        """Wake the owners of a revision, but not for one that is new and has its owner
        (``addHistory``): until something else happens, a second revision of the same template
        stays."""
        is_owned = event.new is not None and controller_of(event.new) is not None
        if event.old is None and is_owned:
            return
        self._owners.changed(event)

    def _node_changed(self, event: WatchEvent) -> None:
        """Enqueue a node that is new, or whose labels or taints changed
        (``shouldIgnoreNodeUpdate``).

        Nothing follows from the deletion of a node: its pods' deletion will be seen.
        """
        old = event.old
        new = event.new
        if new is not None and (
            old is None
            or labels_of(old) != labels_of(new)
            or (old.get("spec") or {}).get("taints") != (new.get("spec") or {}).get("taints")
        ):
            self.queue.add(event.key)

    # --- sync

    def sync(self, key: Key) -> None:
        if key.resource == NODES:
            self._sync_node(key.name)
            return
        daemon_set = self._daemon_sets.get(key.namespace, key.name)
        if daemon_set is None:
            self._expectations.forget(key)
        elif not daemon_set["spec"].get("selector"):
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(daemon_set, "Warning", "SelectingAll", message)
        elif not is_being_deleted(daemon_set):
            self._sync_daemon_set(self.observe(key, daemon_set))

    def _sync_daemon_set(self, state: DaemonSetState) -> None:
        """Act, then write the status whatever came of it. Raises Status, ValueError."""
        if not self._expectations.are_satisfied(state.key):
            self._update_daemon_set_status(state, observed=False)
            return
        error: Exception | None = None
        try:
            self.act(state, update_daemon_set(state))
        except (Status, ValueError) as failure:
            error = failure
        self._update_daemon_set_status(state, observed=True)
        if error is not None:
            raise error

    def _sync_node(self, name: str) -> None:
        """Wake the DaemonSets that must do something about a node (``syncNodeUpdate``)."""
        node = self._nodes.get("", name)
        if node is None:
            return
        controllers = [controller_of(pod) for pod in self._pods.at(self._informers.pods_on(name))]
        owners_on_node = {controller["uid"] for controller in controllers if controller is not None}
        for daemon_set in self._daemon_sets.list():
            should_run, should_continue = node_should_run_daemon_pod(daemon_set)(node)
            is_misscheduled = (daemon_set.get("status") or {}).get("numberMisscheduled", 0) > 0
            if uid_of(daemon_set) in owners_on_node:
                needs_sync = not should_continue or is_misscheduled
            else:
                needs_sync = should_run
            if needs_sync:
                self._owners.wake(daemon_set)

    # --- observing

    def observe(self, key: Key, daemon_set: DaemonSet) -> DaemonSetState:
        """Gather the state of a DaemonSet; its pods and revisions are claimed, and the current
        template gets its revision. Raises Status, AdoptionError."""
        pods, nodes = self._get_daemon_pods(daemon_set)
        current, old_revisions = self._construct_history(daemon_set, pods)
        now = self._clock.now()
        criteria = PodCriteria(
            labels_of(current).get(HASH_LABEL, ""),
            _template_generation(daemon_set, old_revisions),
            _ready_by(daemon_set, now),
        )
        nodes.place(daemon_set, self._node_parts.group(""), self._informers.changes(NODES))
        nodes.observe(criteria)
        return DaemonSetState(
            key, daemon_set, criteria, nodes, self._failed_pods_backoff, now, pods, old_revisions
        )

    def _index_daemon_pod(self, pod: Pod) -> tuple[str, DaemonPod] | None:
        """Group the pods that DaemonSets control by the DaemonSet's uid; those that are to be
        claimed are apart."""
        controller = controller_of(pod)
        if controller is None or controller["kind"] != "DaemonSet":
            return None
        return self._owners.index_group(pod, controller["uid"]), read_daemon_pod(pod)

    def _get_daemon_pods(
        self, daemon_set: DaemonSet
    ) -> tuple[Collection[DaemonPod], DaemonSetNodes]:
        """Return the DaemonSet's pods, with those that are claimed now, and its nodes
        (``getDaemonPods``, ``getNodesToDaemonPods``). Raises Status, AdoptionError."""
        to_claim = self._owners.to_claim(PODS, daemon_set, self._daemon_pods)
        pods = self._daemon_pods.group(uid_of(daemon_set)).values()
        if to_claim:
            selector = from_label_selector(daemon_set["spec"]["selector"])
            manager = RefManager(self._client, PODS, DAEMON_SETS, daemon_set)
            claimed_pods = manager.claim(self._pods.at(to_claim), selector)
            all_pods = [*pods, *map(read_daemon_pod, claimed_pods)]
            if len(all_pods) > len(pods):  # the index has them when the claims were observed
                return all_pods, DaemonSetNodes(all_pods)
        return pods, self._daemon_set_nodes.of(uid_of(daemon_set))

    def _construct_history(
        self, daemon_set: DaemonSet, pods: Iterable[DaemonPod]
    ) -> tuple[ControllerRevision, list[ControllerRevision]]:
        """Return the revision of the current template, made or renumbered if need be, and the
        others (``constructHistory``). Raises Status, AdoptionError."""
        revisions = self._controlled_histories(daemon_set)
        template = daemon_set["spec"]["template"]
        current = [revision for revision in revisions if history.holds(revision, template)]
        old = [revision for revision in revisions if not history.holds(revision, template)]
        number = history.next_number(old)
        if not current:
            return self._snapshot(daemon_set, number), old
        current_revision = self._dedup_current_histories(current, pods)
        if history.number_of(current_revision) < number:
            current_revision = self._history.renumber(current_revision, number)
        return current_revision, old

    def _controlled_histories(self, daemon_set: DaemonSet) -> list[ControllerRevision]:
        """Claim the DaemonSet's revisions (``controlledHistories``); those made before the hash
        label existed get their own name as hash."""
        selector = from_label_selector(daemon_set["spec"]["selector"])
        manager = RefManager(self._client, CONTROLLER_REVISIONS, DAEMON_SETS, daemon_set)
        revisions: list[ControllerRevision] = []
        for revision in manager.claim(self._revisions.claimable_by(daemon_set), selector):
            if HASH_LABEL not in labels_of(revision):
                revision = self._history.label(revision, HASH_LABEL, name_of(revision))
            revisions.append(revision)
        return revisions

    def _snapshot(self, daemon_set: DaemonSet, number: int) -> ControllerRevision:
        """Create a revision. Where its name is taken by another template, the collision count goes
        up and the sync ends with an error: the next one computes another hash. Raises Status."""
        collisions = history.collision_count(daemon_set)
        hash_ = hashing.compute_hash(daemon_set["spec"]["template"], collisions)
        revision = history.new_revision(daemon_set, number, hash_, HASH_LABEL)
        created = self._history.create(revision)
        if created is not None:
            return created
        status = {**(daemon_set.get("status") or {}), "collisionCount": (collisions or 0) + 1}
        self._writer.update_status(daemon_set, status)
        raise AlreadyExists(f'controllerrevisions.apps "{name_of(revision)}" already exists')

    def _dedup_current_histories(
        self, current: list[ControllerRevision], pods: Iterable[DaemonPod]
    ) -> ControllerRevision:
        """Keep the newest of several revisions of one template; the pods of the others become its
        own."""
        *others, newest = sorted(current, key=history.number_of)
        if not others:
            return newest
        hash_ = labels_of(newest)[HASH_LABEL]
        writer = ResourceClient(self._client, PODS)
        for daemon_pod in sorted(pods, key=lambda pod: pod.name):
            if daemon_pod.hash == hash_:
                continue
            pod = self._pods.get(namespace_of(newest), daemon_pod.name)
            if pod is not None:
                writer.update(with_hash(pod, hash_))
        self._history.delete(others)
        return newest

    # --- acting

    def act(self, state: DaemonSetState, actions: DaemonSetActions) -> None:
        """Do as decided, then prune the history to revisionHistoryLimit and what pods carry. Raises
        Status."""
        for pod in actions.ended_pods:
            if pod.backoff_key:
                self._failed_pods_backoff.step(pod.backoff_key, state.now)
            self._recorder.event(state.daemon_set, pod.event_type, pod.reason, pod.message)
        if actions.requeue_after is not None:
            self.queue.add_after(
                state.key, actions.requeue_after, repeating=actions.is_backoff_at_cap
            )
        self._sync_nodes(state, actions)
        self._cleanup_history(state)

    def _sync_nodes(self, state: DaemonSetState, actions: DaemonSetActions) -> None:
        """Create and delete pods, at most a burst of each; the rest follows when they were observed
        (``syncNodes``)."""
        nodes = actions.nodes_needing_daemon_pods[:BURST_REPLICAS]
        names = actions.pods_to_delete[:BURST_REPLICAS]
        self._expectations.expect(state.key, len(nodes), len(names))
        errors: list[Status] = []
        self._read_ahead([Key(PODS, state.key.namespace, name) for name in names], nodes)
        if nodes:
            pod = new_pod(state.daemon_set, state.criteria.hash)
            errors += self._pod_control.create_expected(
                state.daemon_set,
                [for_node(pod, node) for node in nodes],
                self._expectations,
                state.key,
            )

        def delete(name: str) -> None:
            try:
                self._pod_control.delete(state.daemon_set, name)
            except Status as error:
                self._expectations.deletion_observed(state.key)
                if not isinstance(error, NotFound):
                    raise

        raise_all(errors + failures(names, delete))

    def _cleanup_history(self, state: DaemonSetState) -> None:
        """Delete the oldest revisions beyond revisionHistoryLimit, but for those that pods carry,
        whatever became of these pods (``cleanupHistory``)."""
        limit = state.daemon_set["spec"].get("revisionHistoryLimit", DEFAULT_HISTORY_LIMIT)
        if len(state.old_revisions) <= limit:
            return
        live_hashes = {pod.hash for pod in state.pods if pod.hash}

        def is_live(revision: ControllerRevision) -> bool:
            return labels_of(revision).get(HASH_LABEL) in live_hashes

        self._history.delete(history.surplus(state.old_revisions, limit, is_live))

    def _read_ahead(self, pods: Collection[Key], nodes: Iterable[str]) -> None:
        """Read what the deletion of pods and the creation of pods for nodes ask for one by one,
        here and in the scheduler and the kubelets."""
        self._informers.read_ahead(pods)
        names = dict.fromkeys([*nodes, *map(node_name, self._pods.at(pods))])
        keys = [Key(NODES, "", name) for name in names if name]
        self._informers.read_ahead(keys)
        self._client.read_ahead([*pods, *keys])

    def _update_daemon_set_status(self, state: DaemonSetState, *, observed: bool) -> None:
        """Write the status if it changes. Raises Status."""
        status = new_status(state.daemon_set, state.nodes.counts(), observed=observed)
        before = state.daemon_set.get("status") or {}
        if status != before:
            stored = self._writer.update_status(state.daemon_set, status)
            if status.get("observedGeneration") == before.get("observedGeneration"):
                self._own_writes.note(state.key, stored)  # else back-offs, which go by it, change
        ready_times = (pod.ready_since for pod in state.pods)
        min_ready_seconds = state.daemon_set["spec"].get("minReadySeconds") or 0
        due = next_availability(ready_times, min_ready_seconds, state.now)
        if due is not None:
            self.queue.add_at(state.key, due)


def _template_generation(
    daemon_set: DaemonSet, old_revisions: Iterable[ControllerRevision]
) -> str | None:
    """Return the template generation by which pods of the current template are told; None where
    another template had it."""
    if is_generation_reused(daemon_set, old_revisions):
        return None
    return template_generation(daemon_set)


def _ready_by(daemon_set: DaemonSet, now: datetime) -> datetime | None:
    """Return since when an available pod has been Ready; None where it need only be Ready."""
    min_ready_seconds = daemon_set["spec"].get("minReadySeconds")
    if not min_ready_seconds:
        return None
    return later(now, -min_ready_seconds)
