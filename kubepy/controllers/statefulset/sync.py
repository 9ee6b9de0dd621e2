"""One sync of one StatefulSet: what there is, what comes next, and doing just that.

An ordered set takes one step and waits for it; a parallel one makes and removes all pods at once, but still updates
them one at a time. Upstream: ``updateStatefulSet`` in ``stateful_set_control.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubepy.api.errors import Status
from kubepy.api.meta import Object, is_being_deleted
from kubepy.controllers.pod_control import SLOW_START_INITIAL_BATCH_SIZE
from kubepy.controllers.statefulset.members import (
    Member,
    Versions,
    is_ordered,
    is_rolling,
    min_ready_seconds,
    new_pod,
    ordinals,
    partition,
    vacancy,
)
from kubepy.controllers.statefulset.pod_control import ClaimError, StatefulPodControl
from kubepy.controllers.statefulset.status import counted_status, with_one_less_current


class Sync:
    """``run`` acts and leaves the status to write in ``status``, also when it raises."""

    def __init__(self, control: StatefulPodControl, set_: Object, versions: Versions, members: list[Member],
                 collisions: int, now: datetime) -> None:
        self.control = control
        self.set = set_
        self.versions = versions
        self.now = now
        self.seconds = min_ready_seconds(set_)
        self.ordered = is_ordered(set_)
        self.collisions = collisions
        by_ordinal = {member.ordinal: member for member in members}
        wanted = ordinals(set_)
        self.replicas = [by_ordinal.get(one) or vacancy(versions, one) for one in wanted]
        self.condemned = sorted((one for one in members if one.ordinal >= 0 and one.ordinal not in wanted),
                                key=lambda member: member.ordinal, reverse=True)
        unavailable = (one for one in [*self.replicas, *reversed(self.condemned)] if self.is_unavailable(one))
        self.first_unavailable = next(unavailable, None)
        self.status = self.count(members)

    def count(self, members: list[Member]) -> Object:
        return counted_status(self.set, self.versions, members, self.collisions, self.now)

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

    def for_all(self, members: list[Member], act: Callable[[Member], bool]) -> bool:
        """Act on them, an ordered set until one is to be waited for; whether to go on. Raises what ``act`` does."""
        if self.ordered:
            return all(act(member) for member in members)
        position, size = 0, SLOW_START_INITIAL_BATCH_SIZE
        while position < len(members):
            errors = _errors_of(act, members[position:position + size])
            if errors:
                raise errors[0]
            position, size = position + size, 2 * size
        return True

    # --- health

    def is_healthy(self, member: Member) -> bool:
        """Running, Ready, and available for long enough."""
        return member.is_running_and_ready and member.is_available(self.seconds, self.now)

    def is_unavailable(self, member: Member) -> bool:
        return member.is_leaving or not member.is_available(self.seconds, self.now)

    # --- the steps; each returns whether an ordered set may go on to the next pod

    def process_replica(self, member: Member) -> bool:
        if member.has_ended:
            if not member.is_leaving:
                self.control.delete(self.set, member.pod)
            return False
        if not member.is_created:
            if not self.control.has_stale_claim(self.set, member.pod):
                self.control.create(self.set, new_pod(self.versions, member))
            return False
        if member.phase == "Pending":
            self.control.create_missing_claims(self.set, member.pod)
        if self.ordered and (member.is_leaving or not self.is_healthy(member)):
            return False
        if not member.fits or not self.owners_match(member):
            self.control.repair(self.versions.update_set, member.pod)
        return True

    def fix_claims(self, member: Member) -> bool:
        if not self.owners_match(member):
            self.control.update_claim_owners(self.versions.update_set, member.pod)
        return True

    def owners_match(self, member: Member) -> bool:
        return self.control.owners_match(self.versions.update_set, member.pod, member.ordinal)

    def process_condemned(self, member: Member) -> bool:
        """Delete a pod beyond the range; in an ordered set only while all others are well, or it is the sick one."""
        if member.is_leaving:
            return not self.ordered
        if self.ordered and not self.is_healthy(member) and member is not self.first_unavailable:
            return False
        self.control.delete(self.set, member.pod)
        return False

    def update_one(self) -> None:
        """Delete the highest pod that is not at the update revision, unless one above it is not available yet."""
        for member in reversed(self.replicas[partition(self.set):]):
            if member.revision != self.versions.update and not member.is_leaving:
                self.control.delete(self.set, member.pod)
                self.status = with_one_less_current(self.status)
                return
            if self.is_unavailable(member):
                return


def _errors_of(act: Callable[[Member], bool], members: list[Member]) -> list[Exception]:
    errors: list[Exception] = []
    for member in members:
        try:
            act(member)
        except (Status, ClaimError) as error:
            errors.append(error)
    return errors
