"""The controller of ReplicaSets and ReplicationControllers (``pkg/controller/replicaset``).

A sync observes a :class:`ReplicaSetState`, :func:`decide` makes :class:`ReplicaSetActions` of it,
and the controller acts. :func:`pods_to_delete` ranks the pods that go first when there are too
many; :func:`new_status` counts.
"""

from __future__ import annotations

import math
import re
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from kubepy.api.clock import format_time, later
from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import (
    annotations_of,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    uid_of,
)
from kubepy.api.objects.pods import (
    is_pod_active,
    is_pod_ready,
    is_pod_terminating,
    next_availability,
    node_name,
    pod_ready_time,
)
from kubepy.api.selectors import LabelSelector, from_label_selector
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.conditions import (
    conditions_of,
    find_condition,
    with_condition,
    without_condition,
)
from kubepy.controllers.expectations import Expectations
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import PodControl, failures, pod_from_template
from kubepy.controllers.pod_order import creation_time, max_container_restarts, progress
from kubepy.controllers.ref_manager import RefManager
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import (
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    ResourceClient,
    TypedResource,
)
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import Pod, ReplicaSet, ReplicaSetCondition, ReplicaSetStatus

BURST_REPLICAS = 500
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
REPLICA_FAILURE = "ReplicaFailure"
_COST = re.compile(r"0|-[0-9]+|[1-9][0-9]*")


class ReplicaSetPod(NamedTuple):
    """A pod of a ReplicaSet and what the controller reads of it: an index of the informers holds it
    ready."""

    pod: Pod
    is_active: bool
    is_terminating: bool
    is_ready: bool
    ready_since: datetime | None

    def is_available(self, min_ready_seconds: int, now: datetime) -> bool:
        if not self.is_ready or not min_ready_seconds:
            return self.is_ready
        if self.ready_since is None:
            return False
        return later(self.ready_since, min_ready_seconds) <= now


def read_pod(pod: Pod) -> ReplicaSetPod:
    return ReplicaSetPod(
        pod, is_pod_active(pod), is_pod_terminating(pod), is_pod_ready(pod), pod_ready_time(pod)
    )


class ReplicaSetState(NamedTuple):
    """The state that one sync decides by, as it was when the sync began."""

    key: Key
    replica_set: ReplicaSet
    pods: list[ReplicaSetPod]  # its active pods; in key order where there are too many
    related_pods: list[
        Pod
    ]  # those of all ReplicaSets of the same owner; gathered where pods are to be deleted
    terminating: int | None  # how many pods are being deleted; None where the status does not say
    now: datetime

    @property
    def min_ready_seconds(self) -> int:
        return self.replica_set["spec"].get("minReadySeconds") or 0


class ReplicaSetActions(NamedTuple):
    """The number of pods to create, or the pods to delete."""

    create: int = 0
    delete: Sequence[Pod] = ()


def decide(state: ReplicaSetState, room: int = BURST_REPLICAS) -> ReplicaSetActions:
    """Create the pods that are missing or delete those that are too many, at most a burst
    (``manageReplicas``).

    :param room: how many pods may be created at most.
    """
    surplus = len(state.pods) - state.replica_set["spec"].get("replicas", 0)
    if surplus <= 0:
        return ReplicaSetActions(create=min(-surplus, BURST_REPLICAS, room))
    count = min(surplus, BURST_REPLICAS)
    pods = [member.pod for member in state.pods]
    return ReplicaSetActions(delete=pods_to_delete(pods, state.related_pods, count, state.now))


class ReplicaSetController:
    name = "replicaset-controller"
    resource: ClassVar[TypedResource[ReplicaSet]] = REPLICA_SETS
    kind = "ReplicaSet"
    counts_terminating = True

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._replica_sets = context.informers.lister(self.resource)
        self._pods = context.informers.lister(PODS)
        self._writer = ResourceClient(context.client, self.resource)
        self._pod_control = PodControl(context.client, Recorder(context.client, self.name))
        self._expectations: Expectations[Key] = Expectations(context.clock.now)
        self._pace = context.pacing.pace_of(self.name)
        self.queue = context.new_queue()
        self._owners = Ownership(
            context.informers, self.resource, self.kind, self.queue, self.read_selector
        )
        self._members = context.informers.add_index(
            PODS, self._index_pod, self._owners.queries_of_group
        )

    @staticmethod
    def read_selector(source: Any) -> LabelSelector:
        return from_label_selector(source)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {self.resource: self._replica_set_changed, PODS: self._pod_changed}

    def _replica_set_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self._expectations.forget(event.key)
            self._pace.forget(event.key)
        self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        self._owners.changed(
            event,
            lambda key, _: self._expectations.creation_observed(key),
            lambda key, pod: self._expectations.deletion_observed(key, uid_of(pod)),
        )

    # --- sync

    def sync(self, key: Key) -> None:
        replica_set = self._replica_sets.get(key.namespace, key.name)
        if replica_set is None:
            self._expectations.forget(key)
            return
        selector = self._owners.selector_of(replica_set)
        if selector is None:
            return
        state = self.observe(key, replica_set, selector)
        error: Status | None = None
        if self._expectations.are_satisfied(key) and not is_being_deleted(replica_set):
            wanted = replica_set["spec"].get("replicas", 0)
            room = self._pace.room(key, wanted=wanted, existing=len(state.pods))
            error = self.act(state, decide(state, room))
        self._write_status(state, str(error or ""))
        if error is not None:
            raise error

    def observe(
        self, key: Key, replica_set: ReplicaSet, selector: LabelSelector
    ) -> ReplicaSetState:
        """Gather the state of a ReplicaSet; its pods are claimed. Raises Status, AdoptionError."""
        to_claim = self._owners.to_claim(PODS, replica_set, self._members)
        members = self._members.group(uid_of(replica_set)).values()
        if self.counts_terminating:
            terminating = sum(member.is_terminating for member in members)
        else:
            terminating = None

        pods = [member for member in members if member.is_active]
        if to_claim:
            manager = RefManager(self._client, PODS, self.resource, replica_set)
            pods += map(
                read_pod, manager.claim(filter(is_pod_active, self._pods.at(to_claim)), selector)
            )

        related_pods: list[Pod] = []
        if len(pods) > replica_set["spec"].get("replicas", 0):
            pods.sort(key=lambda member: name_of(member.pod))
            related_pods = self._related_pods(replica_set)
        return ReplicaSetState(key, replica_set, pods, related_pods, terminating, self._clock.now())

    def _index_pod(self, pod: Pod) -> tuple[str, ReplicaSetPod] | None:
        """Group the pods that ReplicaSets control by the ReplicaSet's uid; those that are to be
        claimed are apart."""
        controller = controller_of(pod)
        if controller is None or controller["kind"] != self.kind:
            return None
        return self._owners.index_group(pod, controller["uid"]), read_pod(pod)

    def _related_pods(self, replica_set: ReplicaSet) -> list[Pod]:
        """Return the pods of all ReplicaSets that share this one's controller, its own included;
        none without one."""
        controller = controller_of(replica_set)
        if controller is None:
            return []
        siblings = self._replica_sets.controlled_by({"metadata": {"uid": controller["uid"]}})
        return [
            pod
            for sibling in siblings
            if controller_of(sibling) == controller
            for pod in self._pods.controlled_by(sibling)
        ]

    def act(self, state: ReplicaSetState, actions: ReplicaSetActions) -> Status | None:
        """Create or delete pods; return the first error, which upstream alone returns."""
        key = state.key
        replica_set = state.replica_set
        errors: list[Status] = []
        if actions.create:
            pod = pod_from_template(replica_set, replica_set["spec"]["template"])
            self._expectations.expect(key, creations=actions.create)
            errors = self._pod_control.create_expected(
                replica_set, [pod] * actions.create, self._expectations, key
            )
        elif actions.delete:

            def delete(pod: Pod) -> None:
                try:
                    self._pod_control.delete(replica_set, name_of(pod))
                except Status as error:
                    self._expectations.deletion_observed(key, uid_of(pod))
                    if not isinstance(error, NotFound):
                        raise

            self._expectations.expect_deletions(key, map(uid_of, actions.delete))
            errors = failures(actions.delete, delete)

        if errors:
            return errors[0]
        return None

    def _write_status(self, state: ReplicaSetState, failure: str) -> None:
        """Write the status if it changes. Raises Status."""
        status = new_status(state, failure)
        if status != state.replica_set.get("status"):
            self._writer.update_status(state.replica_set, status)
        ready_times = (member.ready_since for member in state.pods)
        due = next_availability(ready_times, state.min_ready_seconds, state.now)
        if due is not None:
            self.queue.add_at(state.key, due)


class ReplicationManager(ReplicaSetController):
    """ReplicationControllers are ReplicaSets whose selector is a mere map
    (``pkg/controller/replication``)."""

    name = "replication-controller"
    resource = REPLICATION_CONTROLLERS
    kind = "ReplicationController"
    counts_terminating = False

    @staticmethod
    def read_selector(source: Any) -> LabelSelector:
        return from_label_selector({"matchLabels": source or {}})


# --- status ---------------------------------------------------------------------------------------


def new_status(state: ReplicaSetState, failure: str) -> ReplicaSetStatus:
    """Return the status; ``failure`` is the error of creating or deleting pods, "" for none
    (``calculateStatus``).

    As the API writes it: replicas always, and ``terminating`` unless it is None; other counts when
    they are not 0.
    """
    replica_set = state.replica_set
    members = state.pods
    template_labels = (replica_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
    status: ReplicaSetStatus = {
        "replicas": len(members),
        "observedGeneration": replica_set["metadata"].get("generation", 0),
    }
    if state.terminating is not None:
        status["terminatingReplicas"] = state.terminating
    labeled = sum(template_labels.items() <= labels_of(member.pod).items() for member in members)
    if labeled:
        status["fullyLabeledReplicas"] = labeled
    ready = sum(member.is_ready for member in members)
    if ready:
        status["readyReplicas"] = ready
    available = sum(member.is_available(state.min_ready_seconds, state.now) for member in members)
    if available:
        status["availableReplicas"] = available
    conditions = conditions_of(replica_set)
    if not failure:
        conditions = without_condition(conditions, REPLICA_FAILURE)
    elif find_condition(conditions, REPLICA_FAILURE) is None:
        is_missing = len(members) < replica_set["spec"].get("replicas", 0)
        conditions = with_condition(
            conditions,
            {
                "type": REPLICA_FAILURE,
                "status": "True",
                "reason": "FailedCreate" if is_missing else "FailedDelete",
                "message": failure,
                "lastTransitionTime": format_time(state.now),
            },
        )

    if conditions:
        status["conditions"] = cast("list[ReplicaSetCondition]", conditions)
    return status


# --- scaling down ---------------------------------------------------------------------------------


class PodAge(NamedTuple):
    """The traits of a pod that tell which of two goes first where their ranks are the same
    (``ActivePodsWithRanks``).

    ``draw`` decides between pods of about the same age.
    """

    ready_since: datetime | None
    restarts: tuple[int, int]
    created: datetime | None
    draw: str


Rank = tuple[bool, int, bool, int, int]


def pods_to_delete(pods: list[Pod], related: Iterable[Pod], count: int, now: datetime) -> list[Pod]:
    """Return the ``count`` pods to delete of ``pods``; ``related`` are the pods of all ReplicaSets
    of the same owner.

    Ranks come first: progress, deletion cost, and active pods of the same owner on its node
    (negative), so that the lower goes.
    """
    if count >= len(pods):
        return pods
    pods_on_node = Counter(
        node_name(pod) for pod in related if is_pod_active(pod) and node_name(pod)
    )
    by_rank: dict[Rank, list[Pod]] = {}
    for pod in sorted(pods, key=uid_of, reverse=True):  # the youngest first
        rank = (
            *progress(pod),
            deletion_cost(pod),
            -pods_on_node[node_name(pod)],
        )
        by_rank.setdefault(rank, []).append(pod)

    chosen: list[Pod] = []
    for rank in sorted(by_rank):
        if len(chosen) < count:
            chosen += _by_age(by_rank[rank], now)
    return chosen[:count]


def _by_age(pods: list[Pod], now: datetime) -> list[Pod]:
    """Return pods of one rank in the order in which they go, those of the very same age as they
    come."""
    ages = {
        uid_of(pod): PodAge(
            pod_ready_time(pod), max_container_restarts(pod), creation_time(pod), uid_of(pod)[-8:]
        )  # upstream compares UIDs, which are random; ours begin with their time and place
        for pod in pods
    }
    if len({age[:-1] for age in ages.values()}) == 1:
        return pods

    def compare(pod: Pod, other: Pod) -> int:
        return _compare(ages[uid_of(pod)], ages[uid_of(other)], now)

    in_order: list[
        Pod
    ] = []  # by insertion: what sort() makes of an order with circles depends on Python's version
    for pod in pods:
        insort(in_order, pod, key=cmp_to_key(compare))
    return in_order


def _compare(pod: PodAge, other: PodAge, now: datetime) -> int:
    """Return a negative number if ``pod`` goes first. Pods of the very same age are left in their
    order."""
    if pod.ready_since != other.ready_since:
        return _compare_times(pod.ready_since, other.ready_since, now) or (
            -1 if pod.draw < other.draw else 1
        )
    if pod.restarts != other.restarts:
        if pod.restarts > other.restarts:
            return -1
        return 1
    if pod.created != other.created:
        return _compare_times(pod.created, other.created, now) or (
            -1 if pod.draw < other.draw else 1
        )
    return 0


def _compare_times(time: datetime | None, other: datetime | None, now: datetime) -> int:
    """Compare two times that differ, the younger first: none at all is the youngest; ages of one
    magnitude give 0."""
    if time is None or other is None:
        if time is None:
            return -1
        return 1
    return _magnitude(time, now) - _magnitude(other, now)


def _magnitude(moment: datetime, now: datetime) -> int:
    """Return the age on a scale on which each step is twice as long as the one before
    (``logarithmicRankDiff``)."""
    nanoseconds = round((now - moment).total_seconds() * 1e9)
    if nanoseconds > 0:
        return int(math.log2(nanoseconds))
    return -1


def deletion_cost(pod: Pod) -> int:
    """Return the annotation's value; 0 without one, and for one that is no int32."""
    text = annotations_of(pod).get(DELETION_COST, "0")
    if _COST.fullmatch(text):
        return int_or_none(text, 32) or 0
    return 0
