"""ControllerRevisions, the history of a DaemonSet or a StatefulSet (``pkg/controller/history``,
``daemon/update.go``).

A revision holds the pod template as a strategic merge patch that brings it back. Equal data is one
revision: going back gives the old one the newest number. An older server may have written the same
template in other words (``creationTimestamp: null``, a default left out); only a StatefulSet's
newest revision is compared by what it restores. Decisions are pure functions; :class:`History`
writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast

from kubepy.api.errors import AlreadyExists, Status
from kubepy.api.meta import AnyObject, Object, labels_of, name_of, namespace_of, new_controller_ref
from kubepy.apiserver.client import Client
from kubepy.lazy import lazy_imports
from kubepy.runtime.informers import CONTROLLER_REVISIONS, ResourceClient

with lazy_imports():
    from kubepy.api import types
    from kubepy.api.patches import documents
    from kubepy.api.schema import openapi
    from kubepy.apiserver.kinds.apps import defaults

if TYPE_CHECKING:
    from kubepy.api.typed import ControllerRevision

RevisionT = TypeVar("RevisionT", bound=AnyObject)

MAX_NAME_PREFIX = 223  # of a name of at most 253 characters


# --- decisions ------------------------------------------------------------------------------------


def revision_data(template: AnyObject) -> Object:
    """Return the data of a revision: a patch that replaces its owner's whole template
    (``getPatch``)."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def apply_revision(owner: RevisionT, revision: AnyObject) -> RevisionT:
    """Return the owner as it was at a revision: its data applied as a patch, in the fields of the
    owner's type, without defaults (``ApplyRevision``). Raises Status, DecodeError.
    """
    if holds(revision, owner["spec"]["template"]):
        return owner
    schema = openapi.schema_for(owner["apiVersion"], owner["kind"])
    patched = documents.strategic_merge_patch(cast(Object, owner), revision.get("data"), schema)
    return cast(RevisionT, types.decode(patched).object)


def restores(revision: AnyObject, owner: AnyObject) -> bool:
    """Return whether a revision, applied to its StatefulSet or DaemonSet and defaulted, gives the
    template that the owner has (``setMatchesLatestExistingRevision``)."""
    try:
        restored = cast(Object, apply_revision(owner, revision))
    except (Status, types.DecodeError):
        return False  # no template at all; the present one gets a revision of its own
    if owner["kind"] == "DaemonSet":
        defaults.default_daemon_set(restored)
    else:
        defaults.default_stateful_set(restored)
    return bool(restored["spec"]["template"] == owner["spec"]["template"])


def number_of(revision: AnyObject) -> int:
    return int(revision.get("revision") or 0)


def holds(revision: AnyObject, template: AnyObject) -> bool:
    """Return whether a revision keeps just this template, as it is written now (``Match``,
    ``EqualRevision``)."""
    return bool(revision.get("data") == revision_data(template))


def sort_revisions(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Sort by number, the oldest first; ties by creation time, then by name (``byRevision``)."""
    return sorted(
        revisions,
        key=lambda revision: (
            number_of(revision),
            revision["metadata"].get("creationTimestamp", ""),
            name_of(revision),
        ),
    )


def next_number(revisions: Iterable[ControllerRevision]) -> int:
    """Return one more than the highest number there is (``nextRevision``)."""
    return max(map(number_of, revisions), default=0) + 1


def new_revision(owner: AnyObject, number: int, hash_: str, hash_label: str) -> ControllerRevision:
    """Return a revision of the owner's present template, with the template's labels and the owner's
    annotations.

    The name is ``<owner>-<hash>``, the owner's name cut where it would be too long
    (``ControllerRevisionName``).
    """
    template = owner["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    metadata: Object = {
        "name": f"{name_of(owner)[:MAX_NAME_PREFIX]}-{hash_}",
        "namespace": namespace_of(owner),
        "labels": {**labels, hash_label: hash_},
        "ownerReferences": [new_controller_ref(owner)],
    }
    annotations = owner["metadata"].get("annotations")
    if annotations:
        metadata["annotations"] = annotations
    return cast(
        "ControllerRevision",
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "data": revision_data(template),
            "revision": number,
        },
    )


def surplus(
    old: Iterable[ControllerRevision],
    limit: int,
    is_live: Callable[[ControllerRevision], bool] = lambda _: False,
) -> list[ControllerRevision]:
    """Return the old revisions to delete so that ``limit`` of them stay, oldest first; never a live
    one (``cleanupHistory``, ``truncateHistory``).

    For a DaemonSet ``old`` is all but the current one, so that live ones count against the limit; a
    StatefulSet leaves those out.
    """
    revisions = sort_revisions(old)
    too_many = max(len(revisions) - limit, 0)
    return [revision for revision in revisions if not is_live(revision)][:too_many]


def collision_count(owner: AnyObject) -> int | None:
    count = (owner.get("status") or {}).get("collisionCount")
    if count is None:
        return None
    return int(count)


# --- writes ---------------------------------------------------------------------------------------


class History:
    """Writes ControllerRevisions."""

    def __init__(self, client: Client) -> None:
        self._revisions = ResourceClient(client, CONTROLLER_REVISIONS)

    def create(self, revision: ControllerRevision) -> ControllerRevision | None:
        """Store a new revision, or return the equal one of that name; None when another content has
        the name."""
        namespace = namespace_of(revision)
        with suppress(AlreadyExists):
            return self._revisions.create(revision, namespace)
        existing = self._revisions.get(namespace, name_of(revision))
        if existing.get("data") == revision["data"]:
            return existing
        return None

    def create_unique(
        self, new: Callable[[int], ControllerRevision], collisions: int
    ) -> tuple[ControllerRevision, int]:
        """Create the revision ``new(collision count)``, raising the count until its name is free;
        the label with the hash stays that of the first attempt.

        Returns the revision and the count to keep in the owner's status
        (``CreateControllerRevision``).
        """
        first = new(collisions)
        created = self.create(first)
        while created is None:
            collisions += 1
            metadata = {**first["metadata"], "name": name_of(new(collisions))}
            created = self.create(cast("ControllerRevision", {**first, "metadata": metadata}))
        return created, collisions

    def renumber(self, revision: ControllerRevision, number: int) -> ControllerRevision:
        if number_of(revision) == number:
            return revision
        return self._revisions.update({**revision, "revision": number})

    def label(self, revision: ControllerRevision, label: str, value: str) -> ControllerRevision:
        labels = {**labels_of(revision), label: value}
        return self._revisions.update(
            {**revision, "metadata": {**revision["metadata"], "labels": labels}}
        )

    def delete(self, revisions: Collection[ControllerRevision]) -> None:
        for revision in revisions:
            self._revisions.delete(revision)
