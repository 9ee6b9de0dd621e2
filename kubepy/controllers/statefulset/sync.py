"""One sync of one StatefulSet: what there is, what comes next, and doing just that.

An ordered set takes one step and waits for it; a parallel one makes and removes all pods at once, but still updates
them one at a time. Upstream: ``updateStatefulSet`` in ``stateful_set_control.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubepy.cluster.errors import Status
from kubepy.cluster.objects.meta import Object, is_being_deleted
from kubepy.cluster.objects.pods import is_pod_terminal, phase_of
from kubepy.controllers.pod_control import SLOW_START_INITIAL_BATCH_SIZE
from kubepy.controllers.statefulset.members import (
    Versions,
    identity_matches,
    is_created,
    is_healthy,
    is_ordered,
    is_rolling,
    is_unavailable,
    new_member,
    ordinal_of,
    ordinals,
    partition,
    revision_name_of,
    storage_matches,
)
from kubepy.controllers.statefulset.pod_control import ClaimError, StatefulPodControl
from kubepy.controllers.statefulset.status import counted_status, with_one_less_current


class Sync:
    """``run`` acts and leaves the status to write in ``status``, also when it raises."""

    def __init__(self, control: StatefulPodControl, set_: Object, versions: Versions, pods: list[Object],
                 collisions: int, now: datetime) -> None:
        self.control = control
        self.set = set_
        self.versions = versions
        self.now = now
        self.ordered = is_ordered(set_)
        self.collisions = collisions
        by_ordinal = {ordinal_of(pod): pod for pod in pods}
        wanted = ordinals(set_)
        self.replicas = [by_ordinal.get(one) or new_member(versions, one) for one in wanted]
        self.condemned = sorted((pod for pod in pods if ordinal_of(pod) >= 0 and ordinal_of(pod) not in wanted),
                                key=ordinal_of, reverse=True)
        unavailable = [pod for pod in [*self.replicas, *reversed(self.condemned)] if is_unavailable(pod, set_, now)]
        self.first_unavailable = unavailable[0] if unavailable else None
        self.status = self.count(pods)

    def count(self, pods: list[Object]) -> Object:
        return counted_status(self.set, self.versions, pods, self.collisions, self.now)

    def run(self) -> None:
        """Raises Status, ClaimError."""
        if is_being_deleted(self.set):
            return
        try:
            go_on = (self.for_all(self.replicas, self.process_replica)
                     and self.for_all(self.condemned, self.fix_claims)
                     and self.for_all(self.condemned, self.process_condemned))
        finally:
            self.status = self.count([*self.replicas, *self.condemned])
        if go_on and is_rolling(self.set):
            self.update_one()

    def for_all(self, pods: list[Object], act: Callable[[Object], bool]) -> bool:
        """Act on the pods, an ordered set until one is to be waited for; whether to go on. Raises what ``act`` does."""
        if self.ordered:
            return all(act(pod) for pod in pods)
        position, size = 0, SLOW_START_INITIAL_BATCH_SIZE
        while position < len(pods):
            errors = _errors_of(act, pods[position:position + size])
            if errors:
                raise errors[0]
            position, size = position + size, 2 * size
        return True

    # --- the steps; each returns whether an ordered set may go on to the next pod

    def process_replica(self, pod: Object) -> bool:
        if is_pod_terminal(pod):
            if not is_being_deleted(pod):
                self.control.delete(self.set, pod)
            return False
        if not is_created(pod):
            if not self.control.has_stale_claim(self.set, pod):
                self.control.create(self.set, pod)
            return False
        if phase_of(pod) == "Pending":
            self.control.create_claims(self.set, pod)
            self.control.update_claim_owners(self.set, pod)
        if self.ordered and (is_being_deleted(pod) or not is_healthy(pod, self.set, self.now)):
            return False
        if not self.is_in_shape(pod):
            self.control.repair(self.versions.update_set, pod)
        return True

    def is_in_shape(self, pod: Object) -> bool:
        return (identity_matches(self.set, pod) and storage_matches(self.set, pod)
                and self.control.owners_match(self.versions.update_set, pod))

    def fix_claims(self, pod: Object) -> bool:
        if not self.control.owners_match(self.versions.update_set, pod):
            self.control.update_claim_owners(self.versions.update_set, pod)
        return True

    def process_condemned(self, pod: Object) -> bool:
        """Delete a pod beyond the range; in an ordered set only while all others are well, or it is the sick one."""
        if is_being_deleted(pod):
            return not self.ordered
        if self.ordered and not is_healthy(pod, self.set, self.now) and pod is not self.first_unavailable:
            return False
        self.control.delete(self.set, pod)
        return False

    def update_one(self) -> None:
        """Delete the highest pod that is not at the update revision, unless one above it is not available yet."""
        for pod in reversed(self.replicas[partition(self.set):]):
            if revision_name_of(pod) != self.versions.update and not is_being_deleted(pod):
                self.control.delete(self.set, pod)
                self.status = with_one_less_current(self.status)
                return
            if is_unavailable(pod, self.set, self.now):
                return


def _errors_of(act: Callable[[Object], bool], pods: list[Object]) -> list[Exception]:
    errors: list[Exception] = []
    for pod in pods:
        try:
            act(pod)
        except (Status, ClaimError) as error:
            errors.append(error)
    return errors
