"""The ReplicaSet controller's handlers and its sync (``pkg/controller/replicaset/replica_set.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import (
    Object,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import is_pod_active, is_pod_ready, is_pod_terminating
from kubepy.api.selectors import LabelSelector, from_label_selector
from kubepy.controllers.expectations import Expectations
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import (
    PodControl,
    failures,
    is_namespace_terminating,
    pod_from_template,
    slow_start,
)
from kubepy.controllers.ref_manager import RefManager, candidates
from kubepy.controllers.replicaset.scale_down import pods_to_delete
from kubepy.controllers.replicaset.status import new_status
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

BURST_REPLICAS = 500


class ReplicaSetController:
    name = "replicaset-controller"
    resource = "replicasets.apps"
    kind = "ReplicaSet"
    counts_terminating = True

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._pod_control = PodControl(context.client, Recorder(context.client, self.name))
        self._expectations: Expectations[Key] = Expectations(context.clock.now)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, self.resource, self.kind, self.queue, self.read_selector)

    @staticmethod
    def read_selector(source: Any) -> LabelSelector:
        return from_label_selector(source)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {self.resource: self._replica_set_changed, "pods": self._pod_changed}

    def _replica_set_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self._expectations.forget(event.key)
            if event.old is not None:
                self._owners.forget(event.old)
        self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        owner = self._owners.changed(event, self._pod_created, self._pod_deleted)
        old, new = event.old, event.new
        if owner is not None and old is not None and new is not None and is_pod_ready(new) and not is_pod_ready(old):
            seconds = owner["spec"].get("minReadySeconds") or 0
            if seconds > 0:
                self.queue.add_after(self._owners.key_of(owner), seconds + 1)

    def _pod_created(self, owner: Key, pod: Object) -> None:
        self._expectations.creation_observed(owner)

    def _pod_deleted(self, owner: Key, pod: Object) -> None:
        self._expectations.deletion_observed(owner, uid_of(pod))

    # --- sync

    def sync(self, key: Key) -> None:
        replica_set = self._informers.get(*key)
        if replica_set is None:
            self._expectations.forget(key)
            self.queue.cancel(key)
            return
        selector = self._owners.selector_of(replica_set)
        if selector is None:
            return
        pods = self._claim_active(replica_set, selector)
        failure: Status | None = None
        if self._expectations.are_satisfied(key) and not is_being_deleted(replica_set):
            failure = self._manage(key, replica_set, pods)
        self._write_status(key, replica_set, pods, self._terminating(replica_set, selector), str(failure or ""))
        if failure is not None:
            raise failure

    def _claim_active(self, replica_set: Object, selector: LabelSelector) -> list[Object]:
        active = filter(is_pod_active, candidates(self._informers, "pods", replica_set))
        claimed, errors = RefManager(self._client, "pods", self.resource, replica_set).claim(active, selector)
        if errors:
            raise errors[0]
        return claimed

    # --- pods

    def _manage(self, key: Key, replica_set: Object, pods: list[Object]) -> Status | None:
        """Create what is missing or delete what is too much; the first error, if there was one (``manageReplicas``)."""
        surplus = len(pods) - replica_set["spec"].get("replicas", 0)
        if surplus < 0:
            return self._create(key, replica_set, min(-surplus, BURST_REPLICAS))
        if surplus > 0:
            return self._delete(key, replica_set, pods, min(surplus, BURST_REPLICAS))
        return None

    def _create(self, key: Key, replica_set: Object, count: int) -> Status | None:
        pod = pod_from_template(replica_set, replica_set["spec"]["template"])
        self._expectations.expect(key, creations=count)

        def create(_: int) -> None:
            try:
                self._pod_control.create(replica_set, pod)
            except Status as error:
                if is_namespace_terminating(error):
                    return  # all further creations would fail alike: no error, and still expected
                self._expectations.creation_observed(key)
                raise

        errors, skipped = slow_start(range(count), create)
        self._expectations.lower(key, creations=skipped)
        return errors[0] if errors else None

    def _delete(self, key: Key, replica_set: Object, pods: list[Object], count: int) -> Status | None:
        doomed = pods_to_delete(pods, self._related_pods(replica_set), count, self._clock.now())
        self._expectations.expect_deletions(key, map(uid_of, doomed))

        def delete(pod: Object) -> None:
            try:
                self._pod_control.delete(replica_set, name_of(pod))
            except Status as error:
                self._expectations.deletion_observed(key, uid_of(pod))
                if not isinstance(error, NotFound):
                    raise

        errors = failures(doomed, delete)
        return errors[0] if errors else None

    def _related_pods(self, replica_set: Object) -> list[Object]:
        """The pods of all ReplicaSets that share this one's controller, its own included; none without a controller."""
        controller = controller_of(replica_set)
        keys = self._informers.dependents(controller["uid"]) if controller is not None else []
        siblings = (self._informers.get(*key) for key in keys if key.resource == self.resource)
        return [pod for one in siblings if one is not None and controller_of(one) == controller
                for pod in self._dependent_pods(one)]

    def _dependent_pods(self, replica_set: Object) -> list[Object]:
        keys = self._informers.dependents(uid_of(replica_set), "pods")
        found = (self._informers.get(*key) for key in keys)
        return [pod for pod in found if pod is not None and is_controlled_by(pod, replica_set)]

    # --- status

    def _terminating(self, replica_set: Object, selector: LabelSelector) -> int | None:
        """How many of its pods are going; None where that is not told."""
        if not self.counts_terminating:
            return None
        return sum(is_pod_terminating(pod) and selector.matches(labels_of(pod))
                   for pod in self._dependent_pods(replica_set))

    def _write_status(self, key: Key, replica_set: Object, pods: list[Object], terminating: int | None,
                      failure: str) -> None:
        status = new_status(replica_set, pods, terminating, failure, self._clock.now())
        if status != replica_set.get("status"):
            self._client.update(self.resource, {**replica_set, "status": status}, namespace=namespace_of(replica_set),
                                subresource="status")
        seconds = replica_set["spec"].get("minReadySeconds") or 0
        if seconds > 0 and status.get("readyReplicas") != status.get("availableReplicas"):
            self.queue.add_after(key, seconds)
        else:
            self.queue.cancel(key)


class ReplicationManager(ReplicaSetController):
    """ReplicationControllers are ReplicaSets whose selector is a mere map (``pkg/controller/replication``)."""

    name = "replication-controller"
    resource = "replicationcontrollers"
    kind = "ReplicationController"
    counts_terminating = False

    @staticmethod
    def read_selector(source: Any) -> LabelSelector:
        return from_label_selector({"matchLabels": source or {}})
