"""ControllerRevisions, the history of a DaemonSet or a StatefulSet (``pkg/controller/history``, ``daemon/update.go``).

A revision holds the pod template as a strategic merge patch that brings it back. Equal data is one revision: going back
gives the old one the newest number. An older server may have written the same template in other words
(``creationTimestamp: null``, a default left out); only a StatefulSet's newest revision is compared by what it restores.
Decisions are pure functions; :class:`History` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any

from kubepy.api.errors import AlreadyExists, Status
from kubepy.api.meta import Object, labels_of, name_of, namespace_of, new_controller_ref
from kubepy.apiserver.client import Client

RESOURCE = "controllerrevisions.apps"
MAX_NAME_PREFIX = 223  # of a name of at most 253 characters


# --- decisions ----------------------------------------------------------------------------------------------------


def revision_data(template: Object) -> Object:
    """What a revision keeps of its owner: a patch that replaces the whole template (``getPatch``)."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def apply_revision(owner: Object, revision: Object) -> Object:
    """The owner as it was at a revision: its data applied as a patch, in the fields of the owner's type, without
    defaults (``ApplyRevision``). Raises Status, DecodeError.
    """
    if holds(revision, owner["spec"]["template"]):
        return owner
    from kubepy.api.patches.documents import strategic_merge_patch
    from kubepy.api.schema.openapi import schema_for
    from kubepy.api.types import decode

    schema = schema_for(owner["apiVersion"], owner["kind"])
    return decode(strategic_merge_patch(owner, revision.get("data"), schema)).object


def restores(revision: Object, owner: Object) -> bool:
    """Tell whether a revision, applied to its StatefulSet or DaemonSet and defaulted, gives the template that the owner
    has (``setMatchesLatestExistingRevision``)."""
    from kubepy.api.types import DecodeError
    from kubepy.apiserver.defaults.workloads import default_daemon_set, default_stateful_set

    try:
        restored = apply_revision(owner, revision)
    except (Status, DecodeError):
        return False  # no template at all; the present one gets a revision of its own
    default = default_daemon_set if owner["kind"] == "DaemonSet" else default_stateful_set
    default(restored)
    return bool(restored["spec"]["template"] == owner["spec"]["template"])


def number_of(revision: Object) -> int:
    return int(revision.get("revision") or 0)


def holds(revision: Object, template: Object) -> bool:
    """Whether a revision keeps just this template, as it is written now (``Match``, ``EqualRevision``)."""
    return bool(revision.get("data") == revision_data(template))


def sort_revisions(revisions: Iterable[Object]) -> list[Object]:
    """Oldest number first; ties by creation time, then by name (``byRevision``)."""
    return sorted(revisions, key=_age)


def _age(revision: Object) -> tuple[int, str, str]:
    return number_of(revision), revision["metadata"].get("creationTimestamp", ""), name_of(revision)


def next_number(revisions: Iterable[Object]) -> int:
    """One more than the highest number there is (``nextRevision``)."""
    return max(map(number_of, revisions), default=0) + 1


def revision_name(owner: str, hash_: str) -> str:
    """``<owner>-<hash>``, the owner's name cut where the whole would be too long (``ControllerRevisionName``)."""
    return f"{owner[:MAX_NAME_PREFIX]}-{hash_}"


def new_revision(owner: Object, number: int, hash_: str, hash_label: str, labels: dict[str, str]) -> Object:
    """A revision of the owner's present template, with the template's labels and the owner's annotations."""
    metadata: Object = {
        "name": revision_name(name_of(owner), hash_),
        "namespace": namespace_of(owner),
        "labels": {**labels, hash_label: hash_},
        "ownerReferences": [new_controller_ref(owner)],
    }
    if annotations := owner["metadata"].get("annotations"):
        metadata["annotations"] = annotations
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": revision_data(owner["spec"]["template"]),
        "revision": number,
    }


def surplus(old: Iterable[Object], limit: int, is_live: Callable[[Object], bool] = lambda _: False) -> list[Object]:
    """The old revisions to delete so that ``limit`` of them stay, oldest first; never a live one (``cleanupHistory``,
    ``truncateHistory``).

    For a DaemonSet ``old`` is all but the current one, so that live ones count against the limit; a StatefulSet leaves
    those out.
    """
    revisions = sort_revisions(old)
    too_many = max(len(revisions) - limit, 0)
    return [one for one in revisions if not is_live(one)][:too_many]


def live_labels(pods: Iterable[Object], label: str) -> set[str]:
    """The revisions that pods carry in a label."""
    return {value for pod in pods if (value := labels_of(pod).get(label))}


def collision_count(owner: Object) -> int | None:
    count = (owner.get("status") or {}).get("collisionCount")
    return None if count is None else int(count)


# --- writes -------------------------------------------------------------------------------------------------------


class History:
    """Writes ControllerRevisions."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, revision: Object) -> Object | None:
        """Store a new revision, or return the equal one of that name; None when another content has the name."""
        namespace = namespace_of(revision)
        with suppress(AlreadyExists):
            return self._client.create(RESOURCE, revision, namespace=namespace)
        existing = self._client.get(RESOURCE, name_of(revision), namespace=namespace)
        return existing if existing.get("data") == revision["data"] else None

    def create_unique(self, owner: Object, make: Callable[[int], Object], collisions: int) -> tuple[Object, int]:
        """Create what ``make(collision count)`` gives, raising the count until its name is free; the label with the
        hash stays that of the first attempt.

        Returns the revision and the count to keep in the owner's status (``CreateControllerRevision``).
        """
        first = make(collisions)
        created = self.create(first)
        while created is None:
            collisions += 1
            metadata = {**first["metadata"], "name": name_of(make(collisions))}
            created = self.create({**first, "metadata": metadata})
        return created, collisions

    def renumber(self, revision: Object, number: int) -> Object:
        """Give a revision another number."""
        if number_of(revision) == number:
            return revision
        return self._update({**revision, "revision": number})

    def label(self, revision: Object, label: str, value: str) -> Object:
        metadata: dict[str, Any] = {**revision["metadata"], "labels": {**labels_of(revision), label: value}}
        return self._update({**revision, "metadata": metadata})

    def delete(self, revisions: Collection[Object]) -> None:
        for revision in revisions:
            self._client.delete(RESOURCE, name_of(revision), namespace=namespace_of(revision))

    def _update(self, revision: Object) -> Object:
        return self._client.update(RESOURCE, revision, namespace=namespace_of(revision))
