"""The Deployment controller's handlers and its sync (``pkg/controller/deployment/deployment_controller.go``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.errors import AlreadyExists, Status
from kubepy.api.meta import (
    Object,
    annotations_of,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.deployments import (
    DESIRED_REPLICAS,
    REVISION,
    by_age,
    old_replica_sets,
    same_template,
)
from kubepy.api.objects.deployments import new_replica_set as find_new
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.api.selectors import from_label_selector
from kubepy.controllers.conditions import with_condition
from kubepy.controllers.deployment import revision, rollback, rolling, sizes, status
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.controllers.ref_manager import RefManager, candidates
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

RESOURCE = "deployments.apps"
REPLICA_SETS = "replicasets.apps"
NO_LIMIT = 2**31 - 1
JUST_AFTER = 0.001  # seconds; a rollout is late after its deadline, not at it


class DeploymentController:
    name = "deployment-controller"

    def __init__(self, context: Context) -> None:
        self.client = context.client
        self.informers = context.informers
        self.clock = context.clock
        self.recorder = Recorder(context.client, self.name)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, RESOURCE, "Deployment", self.queue)
        self._gone: dict[Key, list[Object]] = {}  # the ReplicaSets of a Deployment that went since its last sync

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {RESOURCE: self._deployment_changed, REPLICA_SETS: self._replica_set_changed, "pods": self._pod_changed}

    def _deployment_changed(self, event: WatchEvent) -> None:
        if event.new is None and event.old is not None:
            self._owners.forget(event.old)
            self._gone.pop(event.key, None)
        self.queue.add(event.key)

    def _replica_set_changed(self, event: WatchEvent) -> None:
        if event.new is None and (owner := self._owners.owner_of(event.old)) is not None:
            self._gone.setdefault(self._owners.key_of(owner), []).append(event.old or {})
        self._owners.changed(event, _nothing, _nothing)
        if event.new is not None and is_being_deleted(event.new):
            self._owners.wake(self._owners.owner_of(event.new))

    def _pod_changed(self, event: WatchEvent) -> None:
        """The last pod of a Deployment that is to be recreated is gone: its new ReplicaSet may come."""
        if event.new is not None or event.old is None:
            return
        reference = controller_of(event.old)
        if reference is None or reference["kind"] != "ReplicaSet":
            return
        replica_set = self.informers.get(REPLICA_SETS, namespace_of(event.old), reference["name"])
        owner = self._owners.owner_of(replica_set)
        if owner is not None and owner["spec"]["strategy"]["type"] == "Recreate":
            self._owners.wake(owner)

    # --- sync

    def sync(self, key: Key) -> None:
        self.queue.cancel(key)  # a deadline, which this sync sets anew if it still matters
        deployment = self.informers.get(*key)
        if deployment is None:
            return
        selector = from_label_selector(deployment["spec"].get("selector"))
        if selector.is_empty():
            message = "This deployment is selecting all pods. A non-empty selector is required."
            self.recorder.event(deployment, "Warning", "SelectingAll", message)
            return
        manager = RefManager(self.client, REPLICA_SETS, RESOURCE, deployment)
        owned, errors = manager.claim(candidates(self.informers, REPLICA_SETS, deployment), selector)
        if errors:
            raise errors[0]
        rollout = Rollout(self, key, deployment, by_age(owned), revision.outlived(deployment, self._gone.get(key, [])))
        rollout.run()
        if rollout.new is not None:
            self._gone.pop(key, None)


def _nothing(key: Key, obj: Object) -> None:
    """A Deployment keeps no expectations."""


class Rollout:
    """One sync of one Deployment. ``deployment`` and ``owned`` (oldest first) are what is known by now: each write
    replaces what it changed. ``outlived``: ReplicaSets that went after the newest one had."""

    def __init__(self, controller: DeploymentController, key: Key, deployment: Object, owned: list[Object],
                 outlived: list[Object]) -> None:
        self.controller = controller
        self.key = key
        self.deployment = deployment
        self.owned = owned
        self.outlived = outlived
        self.now = controller.clock.now()
        self.stored = deployment  # as the cluster has it

    @property
    def new(self) -> Object | None:
        return find_new(self.deployment, self.owned)

    @property
    def old(self) -> list[Object]:
        return old_replica_sets(self.deployment, self.owned)

    def run(self) -> None:
        """Raises Status."""
        if is_being_deleted(self.deployment):
            self.sync_revision(create=False)
            self.write_status(self.counted())
            return
        self.note_pause()
        if self.deployment["spec"].get("paused"):
            self.scale()
        elif (number := rollback.wanted_revision(self.deployment)) is not None:
            self.roll_back(number)
        elif self.was_scaled():
            self.scale()
        elif sizes.is_rolling(self.deployment):
            self.roll()
        else:
            self.recreate()

    # --- paused and scaled Deployments

    def note_pause(self) -> None:
        """Keep pauses out of the progress deadline (``checkPausedConditions``)."""
        current = status.progressing_condition(self.deployment)
        reason = current.get("reason") if current else None
        paused = bool(self.deployment["spec"].get("paused"))
        if not status.has_progress_deadline(self.deployment) or reason == "ProgressDeadlineExceeded":
            return
        if paused and reason != "DeploymentPaused":
            self.add_condition("Unknown", "DeploymentPaused", "Deployment is paused")
        elif not paused and reason == "DeploymentPaused":
            self.add_condition("Unknown", "DeploymentResumed", "Deployment is resumed")

    def add_condition(self, verdict: str, reason: str, message: str) -> None:
        """Set the Progressing condition, and write it together with the annotations as they are known."""
        before = self.deployment.get("status") or {}
        fresh = status.condition(status.PROGRESSING, verdict, reason, message, self.now)
        conditions = with_condition(before.get("conditions"), fresh)
        self.write_status({**before, "conditions": conditions})

    def was_scaled(self) -> bool:
        """Whether ``spec.replicas`` has changed since an active ReplicaSet was scaled last (``isScalingEvent``)."""
        self.sync_revision(create=False)
        wanted = str(sizes.replicas(self.deployment))
        noted = [annotations_of(one).get(DESIRED_REPLICAS, "") for one in sizes.active(self.owned)]
        return any(one.isdigit() and one != wanted for one in noted)

    def scale(self) -> None:
        """Scale without rolling on (``sync``, ``scale``)."""
        self.sync_revision(create=False)
        self.scale_in_proportion()
        if self.deployment["spec"].get("paused") and rollback.wanted_revision(self.deployment) is None:
            self.clean_up()
        self.write_status(self.counted())

    def scale_in_proportion(self) -> None:
        only = sizes.active_or_latest(self.new, self.old)
        if only is not None:
            self.resize(only, sizes.replicas(self.deployment))
        elif sizes.is_saturated(self.deployment, self.new):
            for one in sizes.active(self.old):
                self.resize(one, 0)
        elif sizes.is_rolling(self.deployment):
            for one, size in sizes.proportional_sizes(self.deployment, sizes.active(self.owned)):
                self.resize(one, size, force=True)

    def roll_back(self, number: int) -> None:
        """Take over the template of an older revision; the next sync rolls it out."""
        self.sync_revision(create=True)
        found = rollback.roll_back(self.deployment, self.owned, number)
        self.controller.client.update(RESOURCE, found.deployment, namespace=namespace_of(self.deployment))
        self.controller.recorder.event(self.deployment, found.kind, found.reason, found.message)

    # --- rollouts

    def roll(self) -> None:
        """``rolloutRolling``: up if there is room, else down, else clean up."""
        new = self.sync_revision(create=True)
        assert new is not None
        if not self.grow(new) and not self.shrink_old(new) and self.is_complete():
            self.clean_up()
        self.write_rollout_status()

    def grow(self, new: Object) -> bool:
        present, wanted = sizes.replicas(new), sizes.replicas(self.deployment)
        if present == wanted:
            return False
        size = wanted if present > wanted else sizes.new_replica_set_size(self.deployment, self.old, present)
        return self.resize(new, size)

    def shrink_old(self, new: Object) -> bool:
        steps = rolling.old_sizes(self.deployment, new, sizes.active(self.old))
        for one, size in steps:
            self.resize(self.known(one), size)
        return bool(steps)

    def recreate(self) -> None:
        """``rolloutRecreate``: all old pods go before the first new one comes."""
        self.sync_revision(create=False)
        old = sizes.active(self.old)
        for one in old:
            self.resize(one, 0)
        if not old and not self.old_pods_run():
            new = self.sync_revision(create=True)
            assert new is not None
            self.resize(new, sizes.replicas(self.deployment))
            if self.is_complete():
                self.clean_up()
        self.write_rollout_status()

    def old_pods_run(self) -> bool:
        new = self.new
        old = [one for one in self.owned if new is None or uid_of(one) != uid_of(new)]
        return any(sizes.count(one, "replicas") > 0 for one in old) or any(
            not is_pod_terminal(pod) for one in old for pod in self.pods_of(one))

    def pods_of(self, replica_set: Object) -> list[Object]:
        informers = self.controller.informers
        found = (informers.get(*key) for key in informers.dependents(uid_of(replica_set), "pods"))
        return [pod for pod in found if pod is not None and is_controlled_by(pod, replica_set)]

    def is_complete(self) -> bool:
        return status.is_complete(self.deployment, self.deployment.get("status") or {})

    # --- ReplicaSets

    def sync_revision(self, *, create: bool) -> Object | None:
        """The ReplicaSet of the present template with the newest revision (``getNewReplicaSet``). Raises Status."""
        new = self.new
        if new is not None:
            return self.refresh(new, revision.next_revision(self.old))
        return self.create(revision.next_revision([*self.old, *self.outlived])) if create else None

    def refresh(self, new: Object, number: int) -> Object:
        """Bring annotations and minReadySeconds of the new ReplicaSet up to date, else the Deployment's revision."""
        annotations = revision.with_revision(self.deployment, annotations_of(new), number)
        seconds = self.deployment["spec"].get("minReadySeconds", 0)
        if annotations != annotations_of(new) or seconds != new["spec"].get("minReadySeconds", 0):
            spec = {**new["spec"], "minReadySeconds": seconds}
            return self.update_replica_set({**new, "metadata": {**new["metadata"], "annotations": annotations},
                                            "spec": spec})
        self.note_revision(annotations_of(new).get(REVISION, ""))
        if status.has_progress_deadline(self.deployment) and status.progressing_condition(self.deployment) is None:
            self.add_condition("True", "FoundNewReplicaSet", f'Found new replica set "{name_of(new)}"')
        elif annotations_of(self.deployment).get(REVISION) != annotations_of(self.stored).get(REVISION):
            self.write_status(self.deployment.get("status") or {})
        return new

    def note_revision(self, number: str) -> None:
        """Set the Deployment's revision annotation; the next write of its status carries it."""
        annotations = {**annotations_of(self.deployment), REVISION: number}
        metadata = {**self.deployment["metadata"], "annotations": annotations}
        self.deployment = {**self.deployment, "metadata": metadata}

    def create(self, number: int) -> Object:
        """Create the ReplicaSet of the present template. Raises Status."""
        size = sizes.new_replica_set_size(self.deployment, self.owned, 0)
        wanted = revision.new_replica_set(self.deployment, number, size)
        try:
            created = self.controller.client.create(REPLICA_SETS, wanted, namespace=namespace_of(self.deployment))
        except Status as error:
            created = self.existing(wanted, error)
        else:
            if size > 0:
                self.say_scaled("up", name_of(created), 0, size)
        self.owned = by_age([*(one for one in self.owned if uid_of(one) != uid_of(created)), created])
        self.note_revision(str(number))
        if status.has_progress_deadline(self.deployment):
            self.add_condition("True", "NewReplicaSetCreated", f'Created new replica set "{name_of(created)}"')
        else:
            self.write_status(self.deployment.get("status") or {})
        return created

    def existing(self, wanted: Object, error: Status) -> Object:
        """The ReplicaSet that has the name already, if it is this one after all; otherwise the error is noted and
        raised: a clash of hashes raises collisionCount, and the next sync finds another name."""
        client, namespace = self.controller.client, namespace_of(self.deployment)
        if isinstance(error, AlreadyExists):
            there = client.get(REPLICA_SETS, name_of(wanted), namespace=namespace)
            if is_controlled_by(there, self.deployment) and same_template(
                    there["spec"]["template"], self.deployment["spec"]["template"]):
                return there
            before = self.deployment.get("status") or {}
            self.write_status({**before, "collisionCount": before.get("collisionCount", 0) + 1})
        elif not is_namespace_terminating(error):
            message = f'Failed to create new replica set "{name_of(wanted)}": {error}'
            if status.has_progress_deadline(self.deployment):
                self.add_condition("False", "ReplicaSetCreateError", message)
            self.controller.recorder.event(self.deployment, "Warning", "ReplicaSetCreateError", message)
        raise error

    def known(self, replica_set: Object) -> Object:
        """The ReplicaSet as it is after this sync's writes."""
        return next(one for one in self.owned if uid_of(one) == uid_of(replica_set))

    def resize(self, replica_set: Object, size: int, *, force: bool = False) -> bool:
        """Scale a ReplicaSet; with ``force`` its size annotations are brought up to date in any case."""
        before = sizes.replicas(replica_set)
        annotations = annotations_of(replica_set) | revision.size_annotations(self.deployment)
        if size == before and not (force and annotations != annotations_of(replica_set)):
            return False
        self.update_replica_set({
            **replica_set, "metadata": {**replica_set["metadata"], "annotations": annotations},
            "spec": {**replica_set["spec"], "replicas": size}})
        if size != before:
            self.say_scaled("up" if size > before else "down", name_of(replica_set), before, size)
        return size != before

    def update_replica_set(self, changed: Object) -> Object:
        stored = self.controller.client.update(REPLICA_SETS, changed, namespace=namespace_of(self.deployment))
        self.owned = [stored if uid_of(one) == uid_of(stored) else one for one in self.owned]
        return stored

    def say_scaled(self, direction: str, name: str, before: int, after: int) -> None:
        self.controller.recorder.event(self.deployment, "Normal", "ScalingReplicaSet",
                                       f"Scaled {direction} replica set {name} from {before} to {after}")

    def clean_up(self) -> None:
        """Delete the oldest revisions beyond the history limit that have no pods (``cleanupDeployment``)."""
        limit = self.deployment["spec"].get("revisionHistoryLimit", NO_LIMIT)
        alive = [one for one in self.old if not is_being_deleted(one)]
        surplus = len(alive) - limit if limit != NO_LIMIT else 0
        for one in sorted(alive, key=revision.number_of)[:max(0, surplus)]:
            observed = sizes.count(one, "observedGeneration") >= one["metadata"].get("generation", 0)
            if sizes.count(one, "replicas") == 0 and sizes.replicas(one) == 0 and observed:
                self.controller.client.delete(REPLICA_SETS, name_of(one), namespace=namespace_of(one))

    # --- status

    def counted(self) -> Object:
        return status.counted_status(self.deployment, self.new, self.old, self.now)

    def write_rollout_status(self) -> None:
        self.write_status(status.rollout_status(self.deployment, self.new, self.old, self.now))
        self.look_again_at_deadline()

    def write_status(self, wanted: Object) -> None:
        """Write the status, and the annotations as they are known, if anything of it changes. Raises Status."""
        self.deployment = {**self.deployment, "status": wanted}
        known = self.stored
        if wanted == known.get("status") and annotations_of(self.deployment) == annotations_of(known):
            return
        self.stored = self.deployment = self.controller.client.update(
            RESOURCE, self.deployment, subresource="status", namespace=namespace_of(self.deployment))

    def look_again_at_deadline(self) -> None:
        """Judge a rollout that is stuck when its time is over (``requeueStuckDeployment``).

        Upstream adds a second, for times that are cut to seconds; in the last second before the deadline it asks again
        and again instead.
        """
        current = status.progressing_condition(self.deployment)
        if current is None or not status.has_progress_deadline(self.deployment):
            return
        if self.is_complete() or current.get("reason") == "ProgressDeadlineExceeded":
            return
        seconds = (status.deadline(self.deployment, current) - self.now).total_seconds()
        self.controller.queue.add_after(self.key, seconds + 1 if seconds >= 1 else max(seconds, 0) + JUST_AFTER)
