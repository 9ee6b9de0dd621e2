"""The DaemonSet controller's handlers and its sync (``pkg/controller/daemon/daemon_controller.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kubepy.api.errors import AlreadyExists, NotFound, Status
from kubepy.api.meta import (
    Object,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import is_pod_ready
from kubepy.api.selectors import from_label_selector
from kubepy.controllers.daemonset.ledger import Ledger
from kubepy.controllers.daemonset.manage import Changes, FailedPodBackoff
from kubepy.controllers.daemonset.placement import Placements
from kubepy.controllers.daemonset.pods import (
    HASH_LABEL,
    is_generation_reused,
    new_pod,
    pinned,
    target_node,
    without_template_generation,
)
from kubepy.controllers.daemonset.status import new_status
from kubepy.controllers.expectations import Expectations
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import PodControl, failures, is_namespace_terminating, slow_start
from kubepy.controllers.ref_manager import RefManager, candidates
from kubepy.runtime import history
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

RESOURCE = "daemonsets.apps"
NODES = "nodes"
PODS = "pods"
BURST_REPLICAS = 250
DEFAULT_HISTORY_LIMIT = 10


class Situation(NamedTuple):
    """What one sync looks at: all of it as it was when the sync began."""

    key: Key
    daemon_set: Object
    hash: str
    ledger: Ledger


class Revisions(NamedTuple):
    current: Object
    old: list[Object]


class DaemonSetController:
    name = "daemonset-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._recorder = Recorder(context.client, self.name)
        self._pod_control = PodControl(context.client, self._recorder)
        self._history = history.History(context.client)
        self._expectations: Expectations[Key] = Expectations(context.clock.now)
        self._failed_pods = FailedPodBackoff()
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, RESOURCE, "DaemonSet", self.queue)
        self._placements = Placements(context.informers)
        self._ledgers: dict[str, Ledger] = {}  # by the DaemonSet's uid
        self._changed: dict[str, set[Key]] = {}  # by the same: pods that its ledger has to learn of

    def remember(self) -> Any:
        return self._failed_pods.memory()

    def recall(self, memory: Any) -> None:
        self._failed_pods.recall(memory)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {
            RESOURCE: self._daemon_set_changed,
            PODS: self._pod_changed,
            NODES: self._node_changed,
            history.RESOURCE: self._history_changed,
        }

    def _daemon_set_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self._expectations.forget(event.key)
            if event.old is not None:
                self._owners.forget(event.old)
                self._placements.forget(event.old)
                self._ledgers.pop(uid_of(event.old), None)
                self._changed.pop(uid_of(event.old), None)
        self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        old, new = event.old, event.new
        for one in (old, new):
            controller = controller_of(one) if one is not None else None
            if controller is not None and controller["uid"] in self._ledgers:
                self._changed.setdefault(controller["uid"], set()).add(event.key)
        owner = self._owners.changed(event, lambda key, _: self._expectations.creation_observed(key),
                                     lambda key, _: self._expectations.deletion_observed(key))
        seconds = owner["spec"].get("minReadySeconds") or 0 if owner is not None else 0
        if owner is not None and seconds > 0 and old and new and is_pod_ready(new) and not is_pod_ready(old):
            self.queue.add_after(self._owners.key_of(owner), seconds + 1)  # a second more, as times are cut to seconds

    def _node_changed(self, event: WatchEvent) -> None:
        """Nothing follows from the deletion of a node: its pods' deletion will be seen."""
        self._placements.node_changed()
        if event.new is not None and (event.old is None or _differs_for_daemons(event.old, event.new)):
            self.queue.add(event.key)

    def _history_changed(self, event: WatchEvent) -> None:
        self._owners.changed(event, _ignore, _ignore)

    # --- sync

    def sync(self, key: Key) -> None:
        if key.resource == NODES:
            self._sync_node(key.name)
        elif (daemon_set := self._informers.get(*key)) is None:
            self._expectations.forget(key)
            self.queue.cancel(key)
        else:
            self._sync_daemon_set(key, daemon_set)

    def _sync_node(self, name: str) -> None:
        """Wake the DaemonSets that must do something about a node (``syncNodeUpdate``)."""
        node = self._informers.get(NODES, "", name)
        if node is None:
            return
        with_pod = {owner["uid"] for key in self._informers.pods_on(name)
                    if (pod := self._informers.get(*key)) is not None and (owner := controller_of(pod)) is not None}
        for daemon_set in self._informers.list(RESOURCE):
            placement = self._placements.on(daemon_set, node)
            scheduled = uid_of(daemon_set) in with_pod
            misscheduled = (daemon_set.get("status") or {}).get("numberMisscheduled", 0) > 0
            if (placement.should_run if not scheduled else not placement.should_continue or misscheduled):
                self._owners.wake(daemon_set)

    def _sync_daemon_set(self, key: Key, daemon_set: Object) -> None:
        if not daemon_set["spec"].get("selector"):
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(daemon_set, "Warning", "SelectingAll", message)
            return
        if is_being_deleted(daemon_set):
            return
        ledger = self._claim_pods(daemon_set)
        revisions = self._construct_history(daemon_set, ledger)
        situation = Situation(key, daemon_set, labels_of(revisions.current).get(HASH_LABEL, ""), ledger)
        is_reused = is_generation_reused(daemon_set, revisions.old)
        judged = without_template_generation(daemon_set) if is_reused else daemon_set
        ledger.look(judged, self._placements.everywhere(daemon_set), situation.hash, self._clock.now())
        if not self._expectations.are_satisfied(key):
            self._write_status(situation, observed=False)
            return
        error: Exception | None = None
        try:
            self._update(situation, revisions.old)
        except (Status, ValueError) as failure:
            error = failure
        self._write_status(situation, observed=True)
        if error is not None:
            raise error

    def _claim_pods(self, daemon_set: Object) -> Ledger:
        """What has changed since the last time is claimed again; the rest stays, as a selector can't change.

        Raises Status, AdoptionError.
        """
        uid = uid_of(daemon_set)
        ledger = self._ledgers.get(uid)
        if ledger is None:
            ledger, found = Ledger(), candidates(self._informers, PODS, daemon_set)
            keys = {_key_of(pod) for pod in found}
        else:
            keys = {*self._changed.get(uid, ()), *self._informers.orphans(PODS, namespace_of(daemon_set))}
            found = [pod for key in sorted(keys) if (pod := self._informers.get(*key)) is not None]
        claimed = {_key_of(pod): pod for pod in self._claim(PODS, daemon_set, found)} if found else {}
        for key in sorted(keys):
            ledger.put(key, claimed.get(key))
        self._ledgers[uid] = ledger
        self._changed.pop(uid, None)
        return ledger

    def _claim(self, resource: str, daemon_set: Object, found: list[Object]) -> list[Object]:
        """Raises Status, AdoptionError."""
        selector = from_label_selector(daemon_set["spec"]["selector"])
        claimed, errors = RefManager(self._client, resource, RESOURCE, daemon_set).claim(found, selector)
        if errors:
            raise errors[0]
        return claimed

    def _update(self, situation: Situation, old_revisions: list[Object]) -> None:
        """manage, then the rolling update, then the history. Raises Status, ValueError."""
        self._carry_out(situation, self._manage(situation))
        strategy = situation.daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "RollingUpdate" and self._expectations.are_satisfied(situation.key):
            self._carry_out(situation, situation.ledger.rolling_update(situation.daemon_set))
        self._clean_up_history(situation, old_revisions)

    # --- manage

    def _manage(self, situation: Situation) -> Changes:
        changes = situation.ledger.manage()
        self._add_ended(situation, changes)
        return changes

    def _add_ended(self, situation: Situation, changes: Changes) -> None:
        """Let pods that ended be deleted, and say so; failed ones only after their back-off."""
        daemon_set, now = situation.daemon_set, self._clock.now()
        for pod in changes.failed:
            key = FailedPodBackoff.key(daemon_set, target_node(pod))
            if (seconds := self._failed_pods.remaining(key, now)) > 0:
                self.queue.add_after(situation.key, seconds)
                continue
            self._failed_pods.step(key, now)
            message = f"Found failed daemon pod {_where(pod)}, will try to kill it"
            self._recorder.event(daemon_set, "Warning", "FailedDaemonPod", message)
            changes.delete.append(name_of(pod))
        for pod in changes.succeeded:
            message = f"Found succeeded daemon pod {_where(pod)}, will try to delete it"
            self._recorder.event(daemon_set, "Normal", "SucceededDaemonPod", message)
            changes.delete.append(name_of(pod))

    def _carry_out(self, situation: Situation, changes: Changes) -> None:
        """Create and delete, at most a burst of each; the rest follows when these were observed (``syncNodes``)."""
        create, delete = changes.create[:BURST_REPLICAS], changes.delete[:BURST_REPLICAS]
        self._expectations.expect(situation.key, len(create), len(delete))
        errors = self._create(situation, create) + self._delete(situation, delete)
        if errors:
            raise errors[0]

    def _create(self, situation: Situation, nodes: list[str]) -> list[Status]:
        if not nodes:
            return []
        daemon_set, pod = situation.daemon_set, new_pod(situation.daemon_set, situation.hash)

        def create(node: str) -> None:
            try:
                self._pod_control.create(daemon_set, pinned(pod, node))
            except Status as error:
                if is_namespace_terminating(error):
                    return  # all further creations would fail alike: no error, and still expected
                self._expectations.creation_observed(situation.key)
                raise

        errors, skipped = slow_start(nodes, create)
        self._expectations.lower(situation.key, creations=skipped)
        return errors

    def _delete(self, situation: Situation, names: list[str]) -> list[Status]:
        def delete(name: str) -> None:
            try:
                self._pod_control.delete(situation.daemon_set, name)
            except Status as error:
                self._expectations.deletion_observed(situation.key)
                if not isinstance(error, NotFound):
                    raise

        return failures(names, delete)

    # --- history

    def _construct_history(self, daemon_set: Object, ledger: Ledger) -> Revisions:
        """The revision of the present template, made or renumbered if need be, and the others (``constructHistory``).

        Raises Status.
        """
        template = daemon_set["spec"]["template"]
        found = candidates(self._informers, history.RESOURCE, daemon_set)
        revisions = [self._labelled(one) for one in self._claim(history.RESOURCE, daemon_set, found)]
        current = [one for one in revisions if history.holds(one, template)]
        old = [one for one in revisions if not history.holds(one, template)]
        number = history.next_number(old)
        if not current:
            return Revisions(self._snapshot(daemon_set, number), old)
        kept = self._deduplicate(current, ledger)
        if history.number_of(kept) < number:
            kept = self._history.renumber(kept, number)
        return Revisions(kept, old)

    def _labelled(self, revision: Object) -> Object:
        """Revisions made before the hash label existed get their own name as hash."""
        if HASH_LABEL in labels_of(revision):
            return revision
        return self._history.label(revision, HASH_LABEL, name_of(revision))

    def _snapshot(self, daemon_set: Object, number: int) -> Object:
        """A new revision. Where its name is taken by another template, the collision count goes up and the sync ends
        with an error: the next one computes another hash."""
        from kubepy.api.types.hashing import compute_hash  # knows all types of the API; most runs make no revision

        template, collisions = daemon_set["spec"]["template"], history.collision_count(daemon_set)
        labels = (template.get("metadata") or {}).get("labels") or {}
        hash_ = compute_hash(template, collisions)
        revision = history.new_revision(daemon_set, number, hash_, HASH_LABEL, labels)
        if (created := self._history.create(revision)) is not None:
            return created
        status = {**(daemon_set.get("status") or {}), "collisionCount": (collisions or 0) + 1}
        self._client.update(RESOURCE, {**daemon_set, "status": status}, namespace=namespace_of(daemon_set),
                            subresource="status")
        raise AlreadyExists(f'controllerrevisions.apps "{name_of(revision)}" already exists')

    def _deduplicate(self, current: list[Object], ledger: Ledger) -> Object:
        """Of several revisions of one template the newest stays, and the pods of the others become its own."""
        ordered = sorted(current, key=history.number_of)
        kept, others = ordered[-1], ordered[:-1]
        if others:
            self._relabel(ledger.pods(), labels_of(kept)[HASH_LABEL])
            self._history.delete(others)
        return kept

    def _relabel(self, pods: Iterable[Object], hash_: str) -> None:
        for pod in pods:
            if labels_of(pod).get(HASH_LABEL) != hash_:
                metadata = {**pod["metadata"], "labels": {**labels_of(pod), HASH_LABEL: hash_}}
                self._client.update("pods", {**pod, "metadata": metadata}, namespace=namespace_of(pod))

    def _clean_up_history(self, situation: Situation, old: list[Object]) -> None:
        """Prune to revisionHistoryLimit; a revision that a pod carries stays, whatever became of that pod."""
        limit = situation.daemon_set["spec"].get("revisionHistoryLimit", DEFAULT_HISTORY_LIMIT)
        if len(old) <= limit:
            return
        live = history.live_labels(situation.ledger.pods(), HASH_LABEL)
        self._history.delete(history.surplus(old, limit, lambda one: labels_of(one).get(HASH_LABEL) in live))

    # --- status

    def _write_status(self, situation: Situation, *, observed: bool) -> None:
        """Write the status if it changes. Raises Status."""
        daemon_set = situation.daemon_set
        counts = situation.ledger.counts
        status = new_status(daemon_set, counts, observed=observed)
        if status != daemon_set.get("status"):
            self._client.update(RESOURCE, {**daemon_set, "status": status}, namespace=namespace_of(daemon_set),
                                subresource="status")
        min_ready_seconds = daemon_set["spec"].get("minReadySeconds") or 0
        if min_ready_seconds > 0 and counts.ready != counts.available:
            self.queue.add_after(situation.key, min_ready_seconds)


def _key_of(pod: Object) -> Key:
    return Key(PODS, namespace_of(pod), name_of(pod))


def _ignore(key: Key, obj: Object) -> None:
    """Revisions are not expected."""


def _where(pod: Object) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)} on node {target_node(pod)}"


def _differs_for_daemons(old: Object, new: Object) -> bool:
    """Whether labels or taints changed; nothing else of a node matters here (``shouldIgnoreNodeUpdate``)."""
    return (labels_of(old) != labels_of(new)
            or (old.get("spec") or {}).get("taints") != (new.get("spec") or {}).get("taints"))
