"""The Deployment controller: one ReplicaSet a template, scaled up and down as the strategy allows.

A sync observes a :class:`~kubepy.controllers.deployment.state.DeploymentState`, has :mod:`decide`
choose its steps, and acts on the actions of each step, which sees the state that the steps before
have left: this module alone writes. :mod:`decide` has the steps, :mod:`rolling` and :mod:`sizes`
the sizes of ReplicaSets, :mod:`replica_sets` new ones and their annotations, :mod:`rollback` the
deprecated rollback, :mod:`status` counts and progress: pure functions. Upstream:
``pkg/controller/deployment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from kubepy.api.errors import AlreadyExists, Status
from kubepy.api.meta import (
    annotations_of,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    name_of,
    namespace_of,
)
from kubepy.api.objects.deployments import by_age, old_replica_sets, same_template
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.api.selectors import from_label_selector
from kubepy.controllers.deployment.decide import (
    Action,
    CreateReplicaSet,
    DeleteReplicaSet,
    RequeueAt,
    RollBack,
    ScaleReplicaSet,
    UpdateDeploymentStatus,
    UpdateReplicaSet,
    decide,
    note_collision,
    note_create_error,
    note_created,
)
from kubepy.controllers.deployment.replica_sets import outlived, scaled_replica_set
from kubepy.controllers.deployment.sizes import is_rolling, replicas
from kubepy.controllers.deployment.state import DeploymentState
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.controllers.ref_manager import RefManager
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import DEPLOYMENTS, PODS, REPLICA_SETS, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, ReplicaSet


class DeploymentController:
    name = "deployment-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._deployments = context.informers.lister(DEPLOYMENTS)
        self._replica_sets = context.informers.lister(REPLICA_SETS)
        self._pods = context.informers.lister(PODS)
        self._deployment_writer = ResourceClient(context.client, DEPLOYMENTS)
        self._replica_set_writer = ResourceClient(context.client, REPLICA_SETS)
        self._recorder = Recorder(context.client, self.name)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, DEPLOYMENTS, "Deployment", self.queue)
        self._deleted: dict[
            Key, list[ReplicaSet]
        ] = {}  # ReplicaSets of a Deployment that went since its last sync

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {
            DEPLOYMENTS: self._deployment_changed,
            REPLICA_SETS: self._replica_set_changed,
            PODS: self._pod_changed,
        }

    def _deployment_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self._deleted.pop(event.key, None)
        self.queue.add(event.key)

    def _replica_set_changed(self, event: WatchEvent) -> None:
        if (
            event.new is None
            and event.old is not None
            and (owner := self._owners.owner_of(event.old)) is not None
        ):
            self._deleted.setdefault(self._owners.key_of(owner), []).append(
                cast("ReplicaSet", event.old)
            )
        self._owners.changed(event)
        if event.new is not None and is_being_deleted(event.new):
            self._owners.wake(self._owners.owner_of(event.new))

    def _pod_changed(self, event: WatchEvent) -> None:
        """Wake a Deployment that is to be recreated when a pod of it is gone: its new ReplicaSet
        may come."""
        if event.new is not None or event.old is None:
            return
        reference = controller_of(event.old)
        if reference is None or reference["kind"] != "ReplicaSet":
            return
        owner = self._owners.owner_of(
            self._replica_sets.get(namespace_of(event.old), reference["name"])
        )
        if owner is not None and not is_rolling(owner):
            self._owners.wake(owner)

    # --- sync

    def sync(self, key: Key) -> None:
        deployment = self._deployments.get(key.namespace, key.name)
        if deployment is None:
            return
        if from_label_selector(deployment["spec"].get("selector")).is_empty():
            message = "This deployment is selecting all pods. A non-empty selector is required."
            self._recorder.event(deployment, "Warning", "SelectingAll", message)
            return
        state = self.observe(key, deployment)
        for step in decide(state):
            state = self.act_on_all(state, step(state))
        if state.new_replica_set is not None:
            self._deleted.pop(key, None)

    def observe(self, key: Key, deployment: Deployment) -> DeploymentState:
        """Gather the state of a Deployment; its ReplicaSets are claimed. Raises Status,
        AdoptionError."""
        manager = RefManager(self._client, REPLICA_SETS, DEPLOYMENTS, deployment)
        selector = from_label_selector(deployment["spec"].get("selector"))
        replica_sets = by_age(manager.claim(self._replica_sets.claimable_by(deployment), selector))
        has_running_old_pods = not is_rolling(deployment) and any(
            not is_pod_terminal(pod)
            for old in old_replica_sets(deployment, replica_sets)
            for pod in self._pods.controlled_by(old)
        )
        return DeploymentState(
            key,
            deployment,
            deployment,
            replica_sets,
            outlived(deployment, self._deleted.get(key, [])),
            has_running_old_pods,
            self._clock.now(),
        )

    # --- acting

    def act(self, state: DeploymentState, action: Action) -> DeploymentState:
        """Do one thing; return the state after it. Raises Status."""
        match action:
            case CreateReplicaSet():
                return self._create(state, action)
            case UpdateReplicaSet(replica_set):
                return state.with_replica_set(self._replica_set_writer.update(replica_set))
            case ScaleReplicaSet():
                return self._scale(state, action)
            case DeleteReplicaSet(replica_set):
                self._replica_set_writer.delete(replica_set)
            case UpdateDeploymentStatus(deployment):
                stored = state.stored
                annotations = annotations_of(deployment)
                if deployment["status"] == stored.get("status") and annotations == annotations_of(
                    stored
                ):
                    return state._replace(deployment=deployment)
                return state.with_stored(
                    self._deployment_writer.update_status(deployment, deployment["status"])
                )
            case RollBack(rollback):
                self._deployment_writer.update(rollback.deployment)
                self._recorder.event(
                    state.deployment, rollback.event_type, rollback.reason, rollback.message
                )
            case RequeueAt(due):
                self.queue.add_at(state.key, due)

        return state

    def _scale(self, state: DeploymentState, action: ScaleReplicaSet) -> DeploymentState:
        """Scale a ReplicaSet as it is by now. Raises Status."""
        replica_set = state.current(action.replica_set)
        before = replicas(replica_set)
        scaled = scaled_replica_set(state.deployment, replica_set, action.size)
        if action.size == before and not (
            action.force and annotations_of(scaled) != annotations_of(replica_set)
        ):
            return state
        state = state.with_replica_set(self._replica_set_writer.update(scaled))
        if action.size != before:
            self._record_scaling(state.deployment, replica_set, before, action.size)
        return state

    def _record_scaling(
        self, deployment: Deployment, replica_set: ReplicaSet, before: int, after: int
    ) -> None:
        direction = "up" if after > before else "down"
        self._recorder.event(
            deployment,
            "Normal",
            "ScalingReplicaSet",
            f"Scaled {direction} replica set {name_of(replica_set)} from {before} to {after}",
        )

    def _create(self, state: DeploymentState, action: CreateReplicaSet) -> DeploymentState:
        """Create a ReplicaSet, or take the one that has the name already if it is the same. Raises
        Status."""
        replica_set = action.replica_set
        namespace = namespace_of(state.deployment)
        try:
            created = self._replica_set_writer.create(replica_set, namespace)
        except AlreadyExists:
            created = self._replica_set_writer.get(namespace, name_of(replica_set))
            if not is_controlled_by(created, state.deployment) or not same_template(
                created["spec"]["template"], state.deployment["spec"]["template"]
            ):
                self.act_on_all(state, note_collision(state))
                raise
        except Status as error:
            if not is_namespace_terminating(error):
                message = f'Failed to create new replica set "{name_of(replica_set)}": {error}'
                self.act_on_all(state, note_create_error(state, message))
                self._recorder.event(state.deployment, "Warning", "ReplicaSetCreateError", message)
            raise
        else:
            size = replicas(replica_set)
            if size > 0:
                self._record_scaling(state.deployment, created, 0, size)

        return self.act_on_all(
            state.with_replica_set(created), note_created(state, created, action.revision)
        )

    def act_on_all(self, state: DeploymentState, actions: Iterable[Action]) -> DeploymentState:
        for action in actions:
            state = self.act(state, action)
        return state
