"""The StatefulSet controller: pods with ordinals, names and claims of their own, made and replaced
in order.

A sync observes a :class:`~kubepy.controllers.statefulset.state.StatefulSetState`, has :mod:`decide`
make StatefulSetActions of it, and acts: this module and :mod:`pod_control` alone
write. :mod:`decide` takes the steps of ``updateStatefulSet``; :mod:`pods` knows identity, storage
and health of pods, :mod:`claims` the claims' owners, :mod:`status` the counts: pure functions.
Upstream: ``pkg/controller/statefulset``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kubepy.api.errors import Status
from kubepy.api.meta import (
    controller_of,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import next_availability
from kubepy.api.selectors import LabelSelector
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import SLOW_START_INITIAL_BATCH_SIZE
from kubepy.controllers.ref_manager import RefManager
from kubepy.controllers.statefulset.claims import claim_names
from kubepy.controllers.statefulset.decide import PodAction, StatefulSetActions, Step, decide
from kubepy.controllers.statefulset.pod_control import ClaimError, StatefulPodControl
from kubepy.controllers.statefulset.pods import (
    Replica,
    considered_ordinals,
    is_ordered,
    new_stateful_pod,
    parent_name_and_ordinal,
    read_replica,
)
from kubepy.controllers.statefulset.state import StatefulSetState
from kubepy.controllers.statefulset.status import complete_rolling_update, is_inconsistent
from kubepy.lazy import lazy_imports
from kubepy.runtime import history
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    ResourceClient,
)
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, raise_all

with lazy_imports():
    from kubepy.api.types import hashing  # knows all types of the API; most runs make no revision

if TYPE_CHECKING:
    from kubepy.api.typed import (
        ControllerRevision,
        PersistentVolumeClaim,
        Pod,
        StatefulSet,
        StatefulSetStatus,
    )

HASH_LABEL = "controller.kubernetes.io/hash"
DEFAULT_HISTORY_LIMIT = 10


class StatefulSetController:
    name = "statefulset-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._informers = context.informers
        self._stateful_sets = context.informers.lister(STATEFUL_SETS)
        self._pods = context.informers.lister(PODS)
        self._claims = context.informers.lister(PERSISTENT_VOLUME_CLAIMS)
        self._revisions = context.informers.lister(CONTROLLER_REVISIONS)
        self._writer = ResourceClient(context.client, STATEFUL_SETS)
        self._pod_control = StatefulPodControl(context, Recorder(context.client, self.name))
        self._history = history.History(context.client)
        self._pace = context.pacing.pace_of(self.name)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, STATEFUL_SETS, "StatefulSet", self.queue)
        self._replicas = context.informers.add_index(
            PODS, self._index_replica, self._owners.queries_of_group
        )

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        """Claims and revisions are handled by nobody: they are watched so that the informers have
        them."""
        return {
            STATEFUL_SETS: self._stateful_set_changed,
            PODS: self._owners.changed,
            PERSISTENT_VOLUME_CLAIMS: lambda event: None,
            CONTROLLER_REVISIONS: lambda event: None,
        }

    def _stateful_set_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self._pace.forget(event.key)
        self.queue.add(event.key)

    # --- sync

    def sync(self, key: Key) -> None:
        """Act, write the status and prune the history, whatever came of the step before."""
        stateful_set = self._stateful_sets.get(key.namespace, key.name)
        selector = self._owners.selector_of(stateful_set) if stateful_set is not None else None
        if stateful_set is None or selector is None:
            return
        state = self.observe(key, stateful_set, selector)
        errors: list[Exception] = []
        status = self.act(state, decide(state), errors)
        try:
            self._write_status(state, status)
        except Status as error:
            errors.append(error)

        try:
            self._truncate_history(state)
        except Status as error:
            errors.append(error)

        raise_all(errors)

    # --- observing

    def observe(
        self, key: Key, stateful_set: StatefulSet, selector: LabelSelector
    ) -> StatefulSetState:
        """Gather the state of a StatefulSet; its pods and revisions are claimed, and the present
        template gets its revision. Raises Status, AdoptionError."""
        revisions = self._adopt_revisions(stateful_set, selector)
        pods = self._claim_pods(stateful_set, selector)
        update, collisions = self._update_revision(stateful_set, revisions)
        current_name = (stateful_set.get("status") or {}).get("currentRevision")
        current = next(
            (revision for revision in revisions if name_of(revision) == current_name),
            self._without_revision(stateful_set, current_name or "", update),
        )
        return StatefulSetState(
            key,
            stateful_set,
            history.apply_revision(stateful_set, current),
            history.apply_revision(stateful_set, update),
            name_of(current),
            name_of(update),
            collisions,
            revisions,
            pods,
            self._observed_claims(stateful_set, pods),
            stateful_set["spec"].get("minReadySeconds", 0),
            self._clock.now(),
            self._pace.room(
                key, wanted=stateful_set["spec"].get("replicas", 1), existing=len(pods)
            ),
        )

    def _without_revision(
        self, stateful_set: StatefulSet, current_name: str, update: ControllerRevision
    ) -> ControllerRevision:
        """Return the current revision of a set that lacks it: the update revision; under the name
        of the current one where an imported source names it without its template."""
        absent = self._client.settings.absent
        namespace = namespace_of(stateful_set)
        if absent is None or not absent.has("ControllerRevision", namespace, current_name):
            return update
        return {**update, "metadata": {**update["metadata"], "name": current_name}}

    def _index_replica(self, pod: Pod) -> tuple[str, Replica] | None:
        """Group the pods that StatefulSets control by the StatefulSet's uid; those that are to be
        claimed are apart."""
        controller = controller_of(pod)
        if controller is None or controller["kind"] != "StatefulSet":
            return None
        replica = read_replica(pod)
        has_parent = replica.parent == controller["name"]
        return self._owners.index_group(pod, controller["uid"], matches=has_parent), replica

    def _claim_pods(self, stateful_set: StatefulSet, selector: LabelSelector) -> list[Replica]:
        """Return the pods that match and have a name of the set's, by name. Raises Status,
        AdoptionError."""
        to_claim = self._owners.to_claim(PODS, stateful_set, self._replicas)
        replicas = list(self._replicas.group(uid_of(stateful_set)).values())
        if to_claim:
            manager = RefManager(self._client, PODS, STATEFUL_SETS, stateful_set)
            replicas += map(
                read_replica,
                manager.claim(
                    self._pods.at(to_claim),
                    selector,
                    lambda pod: parent_name_and_ordinal(pod)[0] == name_of(stateful_set),
                ),
            )
        return sorted(replicas, key=lambda replica: replica.pod["metadata"]["name"])

    def _observed_claims(
        self, stateful_set: StatefulSet, pods: Sequence[Replica]
    ) -> dict[str, PersistentVolumeClaim]:
        if not stateful_set["spec"].get("volumeClaimTemplates"):
            return {}
        namespace = namespace_of(stateful_set)
        present = {replica.ordinal for replica in pods}
        names = {
            name
            for ordinal in {*considered_ordinals(stateful_set, present), *present}
            for name in claim_names(stateful_set, ordinal)
        }
        return {
            name: claim
            for name in names
            if (claim := self._claims.get(namespace, name)) is not None
        }

    def _adopt_revisions(
        self, stateful_set: StatefulSet, selector: LabelSelector
    ) -> list[ControllerRevision]:
        """Return the set's revisions; orphans that its selector matches become its own, whatever
        their names."""
        manager = RefManager(self._client, CONTROLLER_REVISIONS, STATEFUL_SETS, stateful_set)
        matching = [
            revision
            for revision in self._revisions.claimable_by(stateful_set)
            if selector.matches(labels_of(revision))
        ]
        adopted = [
            manager.adopt(revision) if controller_of(revision) is None else revision
            for revision in matching
        ]
        return history.sort_revisions(
            revision for revision in adopted if is_controlled_by(revision, stateful_set)
        )

    def _update_revision(
        self, stateful_set: StatefulSet, revisions: Sequence[ControllerRevision]
    ) -> tuple[ControllerRevision, int]:
        """Return the revision of the present template, and the collision count to keep
        (``getStatefulSetRevisions``).

        An equal revision is used again, with the newest number; the newest one also when an older
        server wrote it in other words, and then as it is.
        """
        collisions = history.collision_count(stateful_set) or 0
        template = stateful_set["spec"]["template"]
        number = history.next_number(revisions)
        equal = [revision for revision in revisions if history.holds(revision, template)]
        if equal and equal[-1] is revisions[-1]:
            return revisions[-1], collisions
        if equal:
            return self._history.renumber(equal[-1], number), collisions
        if revisions and history.restores(revisions[-1], stateful_set):
            return revisions[-1], collisions

        def new_revision(collisions: int) -> ControllerRevision:
            hash_ = hashing.hash_controller_revision(history.revision_data(template), collisions)
            return history.new_revision(stateful_set, number, hash_, HASH_LABEL)

        return self._history.create_unique(new_revision, collisions)

    # --- acting

    def act(
        self, state: StatefulSetState, actions: StatefulSetActions, errors: list[Exception]
    ) -> StatefulSetStatus:
        """Take the steps until one fails, of which ``errors`` is told; return the status to
        write."""
        try:
            for phase in actions.phases:
                self._run_for_all(state, phase)
            if actions.update is not None:
                self._do(state, actions.update)
                return actions.status_after_update
        except (Status, ClaimError) as error:
            errors.append(error)
        return actions.status

    def _run_for_all(self, state: StatefulSetState, steps: Sequence[Step]) -> None:
        """Take the steps one after another; those of a parallel set in batches of 1, 2, 4, 8 …,
        until a batch in which one fails (``runForAll``). Raises the first error, which upstream
        alone returns."""
        position = 0
        size = 1 if is_ordered(state.stateful_set) else SLOW_START_INITIAL_BATCH_SIZE
        while position < len(steps):
            errors: list[Exception] = []
            for step in steps[position : position + size]:
                try:
                    for action in step:
                        self._do(state, action)
                except (Status, ClaimError) as error:
                    errors.append(error)
            if errors:
                raise errors[0]
            position = position + size
            size = size if is_ordered(state.stateful_set) else 2 * size

    def _do(self, state: StatefulSetState, action: PodAction) -> None:
        """Carry out an action on one pod. Raises Status, ClaimError."""
        stateful_set = state.stateful_set
        replica = action.replica
        match action.verb:
            case "create":
                at_current = replica.revision == state.current_revision
                versioned_set = state.current_set if at_current else state.update_set
                pod = new_stateful_pod(versioned_set, replica.ordinal, replica.revision)
                self._pod_control.create_stateful_pod(stateful_set, pod)
            case "delete":
                self._pod_control.delete_stateful_pod(stateful_set, replica.pod)
            case "update":
                claims_match = state.claims_match_retention_policy(replica)
                self._pod_control.update_stateful_pod(
                    state.update_set, replica, claims_match=claims_match
                )
            case "create missing claims":
                self._pod_control.create_missing_claims(stateful_set, replica.pod)
            case "update claims":
                self._pod_control.update_claims_for_retention_policy(state.update_set, replica.pod)

    def _truncate_history(self, state: StatefulSetState) -> None:
        """Delete the oldest revisions beyond the limit that neither a pod nor the status uses.
        Raises Status."""
        limit = state.stateful_set["spec"].get("revisionHistoryLimit", DEFAULT_HISTORY_LIMIT)
        live = {
            state.current_revision,
            state.update_revision,
            *(replica.revision for replica in state.pods),
        }
        if limit >= 0:
            unused = (revision for revision in state.revisions if name_of(revision) not in live)
            self._history.delete(history.surplus(unused, limit))

    def _write_status(self, state: StatefulSetState, computed: StatefulSetStatus) -> None:
        """Write the status if it changes. Raises Status."""
        stateful_set = state.stateful_set
        status = complete_rolling_update(stateful_set, computed)
        if is_inconsistent(stateful_set.get("status") or {}, status):
            self._writer.update_status(stateful_set, status)
        ready_times = (replica.ready_since for replica in state.pods)
        due = next_availability(ready_times, state.min_ready_seconds, state.now)
        if due is not None:
            self.queue.add_at(state.key, due)
