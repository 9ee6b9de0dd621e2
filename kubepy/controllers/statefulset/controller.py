"""The StatefulSet controller's handlers and its sync (``stateful_set.go``, ``stateful_set_control.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubepy.api.meta import Object, controller_of, is_controlled_by, labels_of, name_of, namespace_of
from kubepy.api.selectors import LabelSelector
from kubepy.api.types.hashing import hash_controller_revision
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.ref_manager import RefManager, candidates
from kubepy.controllers.statefulset.members import Member, Versions, is_member_of, min_ready_seconds
from kubepy.controllers.statefulset.pod_control import CLAIMS, StatefulPodControl
from kubepy.controllers.statefulset.roster import Roster
from kubepy.controllers.statefulset.status import completed, is_different
from kubepy.controllers.statefulset.sync import Sync
from kubepy.runtime import history
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

RESOURCE = "statefulsets.apps"
HASH_LABEL = "controller.kubernetes.io/hash"


class Revisions(NamedTuple):
    """All revisions by number, the current one and that of the present template, and the collision count to keep."""

    all: list[Object]
    current: Object
    update: Object
    collisions: int


class StatefulSetController:
    name = "statefulset-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._control = StatefulPodControl(context, Recorder(context.client, self.name))
        self._roster = Roster()
        self._history = history.History(context.client)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, RESOURCE, "StatefulSet", self.queue)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {RESOURCE: self._set_changed, "pods": self._pod_changed, CLAIMS: _only_looked_at,
                history.RESOURCE: _only_looked_at}

    def _set_changed(self, event: WatchEvent) -> None:
        if event.new is None and event.old is not None:
            self._owners.forget(event.old)
            self._roster.forget(event.old)
            self.queue.cancel(event.key)
        self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        self._owners.changed(event, _nothing, _nothing)

    # --- sync

    def sync(self, key: Key) -> None:
        set_ = self._informers.get(*key)
        selector = self._owners.selector_of(set_) if set_ is not None else None
        if set_ is None or selector is None:
            return
        known = self._adopted_revisions(set_, selector)
        members = self._members(set_, selector)
        revisions = self._revisions(set_, known)
        versions = Versions(history.apply_revision(set_, revisions.current),
                            history.apply_revision(set_, revisions.update),
                            name_of(revisions.current), name_of(revisions.update))
        step = Sync(self._control, set_, versions, members, revisions.collisions, self._clock.now())
        try:
            try:
                step.run()
            finally:
                self._write_status(key, set_, step.status)
        finally:
            self._truncate_history(set_, members, revisions)

    def _members(self, set_: Object, selector: LabelSelector) -> list[Member]:
        """The pods that match and have a member's name. Raises Status, AdoptionError."""
        manager = RefManager(self._client, "pods", RESOURCE, set_)

        def claim(pods: list[Object]) -> list[Object]:
            claimed, errors = manager.claim(pods, selector, lambda pod: is_member_of(set_, pod))
            if errors:
                raise errors[0]
            return claimed

        return self._roster.members(set_, candidates(self._informers, "pods", set_), claim)

    # --- history

    def _adopted_revisions(self, set_: Object, selector: LabelSelector) -> list[Object]:
        """The set's revisions; orphans that its selector matches become its own, whatever their names."""
        found = [one for one in candidates(self._informers, history.RESOURCE, set_) if selector.matches(labels_of(one))]
        manager = RefManager(self._client, history.RESOURCE, RESOURCE, set_)
        adopted = [manager.adopt(one) if controller_of(one) is None else one for one in found]
        return history.sort_revisions(one for one in adopted if is_controlled_by(one, set_))

    def _revisions(self, set_: Object, known: list[Object]) -> Revisions:
        """``getStatefulSetRevisions``: an equal revision is used again, with the newest number; the newest one also
        when an older server wrote it in other words, and then as it is."""
        collisions = history.collision_count(set_) or 0
        template = set_["spec"]["template"]
        equal = [one for one in known if history.holds(one, template)]
        if equal and history.holds(known[-1], template):
            update = known[-1]
        elif equal:
            update = self._history.renumber(equal[-1], history.next_number(known))
        elif known and history.restores(known[-1], set_):
            update = known[-1]
        else:
            update, collisions = self._history.create_unique(
                set_, lambda count: _new_revision(set_, history.next_number(known), count), collisions)
        named = (set_.get("status") or {}).get("currentRevision")
        current = next((one for one in known if name_of(one) == named), update)
        return Revisions(known, current, update, collisions)

    def _truncate_history(self, set_: Object, members: list[Member], revisions: Revisions) -> None:
        """Delete the oldest revisions beyond the limit that neither a pod nor the status uses."""
        limit = set_["spec"].get("revisionHistoryLimit", 10)
        live = {name_of(revisions.current), name_of(revisions.update), *(member.revision for member in members)}
        if limit >= 0:
            unused = (one for one in revisions.all if name_of(one) not in live)
            self._history.delete(history.surplus(unused, limit))

    # --- status

    def _write_status(self, key: Key, set_: Object, counted: Object) -> None:
        status = completed(set_, counted)
        if is_different(set_.get("status") or {}, status):
            self._client.update(RESOURCE, {**set_, "status": status}, namespace=namespace_of(set_),
                                subresource="status")
        seconds = min_ready_seconds(set_)
        if seconds > 0 and status.get("readyReplicas", 0) != status["availableReplicas"]:
            self.queue.add_after(key, seconds)
        else:
            self.queue.cancel(key)


def _nothing(key: Key, obj: Object) -> None:
    """A StatefulSet keeps no expectations: it goes by the names of its pods."""


def _only_looked_at(event: WatchEvent) -> None:
    """The informers keep what somebody watches."""


def _new_revision(set_: Object, number: int, collisions: int) -> Object:
    template = set_["spec"]["template"]
    hash_ = hash_controller_revision(history.revision_data(template), collisions)
    labels = (template.get("metadata") or {}).get("labels") or {}
    return history.new_revision(set_, number, hash_, HASH_LABEL, labels)

