"""The pods of the sets as they were last read, so that a sync reads only those that have changed since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object, name_of, uid_of
from kubepy.controllers.statefulset.members import Member, read_member

Claim = Callable[[list[Object]], list[Object]]


class Roster:
    """A pod that was the set's own stays so, and reads the same, as long as neither it nor what it is judged by
    changes: the informers hold the same object until then."""

    def __init__(self) -> None:
        self._sets: dict[str, tuple[Any, dict[str, Member]]] = {}  # uid of a set → what judges, and its pods by uid

    def members(self, set_: Object, pods: list[Object], claim: Claim) -> list[Member]:
        """The members among these pods, by name; ``claim`` picks those of the set, and raises what it does."""
        judge = set_["spec"].get("selector"), set_["spec"].get("volumeClaimTemplates")
        before, known = self._sets.get(uid_of(set_), (None, {}))
        if before != judge:
            known = {}
        seen = {uid_of(pod): pod for pod in pods}
        found = {uid: member for uid, member in known.items() if seen.get(uid) is member.pod}
        if changed := [pod for uid, pod in seen.items() if uid not in found]:
            found |= {uid_of(pod): read_member(set_, pod) for pod in claim(changed)}
        self._sets[uid_of(set_)] = judge, found
        return sorted(found.values(), key=lambda member: name_of(member.pod))

    def forget(self, set_: Object) -> None:
        self._sets.pop(uid_of(set_), None)
