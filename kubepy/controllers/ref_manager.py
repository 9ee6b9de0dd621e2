"""Who owns what: adopting orphans that match, releasing what no longer does (``controller_ref_manager.go``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Literal

from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import (
    Object,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    new_controller_ref,
    owner_references,
    uid_of,
)
from kubepy.api.selectors import LabelSelector
from kubepy.apiserver.client import Client
from kubepy.runtime.reconcile import Informers

Decision = Literal["keep", "adopt", "release", "ignore"]


class AdoptionError(Exception):
    """The owner is gone, or is being deleted: nothing may be adopted for it."""


def candidates(informers: Informers, resource: str, owner: Object) -> list[Object]:
    """What the owner controls, and the orphans of its namespace, in key order (``FilterPodsByOwner``)."""
    namespace = namespace_of(owner)
    keys = [key for key in informers.dependents(uid_of(owner), resource) if key.namespace == namespace]
    if orphans := informers.orphans(resource, namespace):
        keys = sorted({*keys, *orphans})
    return [obj for key in keys if (obj := informers.get(*key)) is not None]


def decide(owner: Object, obj: Object, matches: bool) -> Decision:
    """What to do with an object of the owner's namespace (``ClaimObject``)."""
    controller = controller_of(obj)
    if controller is not None:
        if controller["uid"] != uid_of(owner):
            return "ignore"
        if matches:
            return "keep"
        return "ignore" if is_being_deleted(owner) else "release"
    if is_being_deleted(owner) or not matches or is_being_deleted(obj):
        return "ignore"
    return "adopt"


class RefManager:
    """Claims objects of one resource for one owner.

    ``owner_resource``: the owner's resource key, to read it again before the first adoption: an owner that was
    deleted, or replaced by another of the same name, must not adopt. ``finalizers`` come and go with the ownership.
    """

    def __init__(self, client: Client, resource: str, owner_resource: str, owner: Object,
                 finalizers: Sequence[str] = ()) -> None:
        self._client = client
        self._resource = resource
        self._owner_resource = owner_resource
        self._owner = owner
        self._finalizers = finalizers
        self._may_adopt = False

    def claim(self, objects: Iterable[Object], selector: LabelSelector,
              accept: Callable[[Object], bool] = lambda _: True) -> tuple[list[Object], list[Exception]]:
        """The objects that the owner controls afterwards, and what went wrong with others.

        ``accept`` narrows what matches beyond the selector (a StatefulSet's pods by name).
        """
        claimed: list[Object] = []
        errors: list[Exception] = []
        for obj in objects:
            decision = decide(self._owner, obj, selector.matches(labels_of(obj)) and accept(obj))
            try:
                kept = self._carry_out(decision, obj)
            except (Status, AdoptionError) as error:
                errors.append(error)
                continue
            if kept is not None:
                claimed.append(kept)
        return claimed, errors

    def _carry_out(self, decision: Decision, obj: Object) -> Object | None:
        """Do as decided; the object if the owner controls it now. One that is gone by now is no error."""
        with suppress(NotFound):
            match decision:
                case "keep":
                    return obj
                case "adopt":
                    return self.adopt(obj)
                case "release":
                    self.release(obj)
        return None

    def adopt(self, obj: Object) -> Object:
        """Make the owner the object's controller. Raises Status, AdoptionError."""
        self._check_owner()
        references = [*owner_references(obj), new_controller_ref(self._owner)]
        present = obj["metadata"].get("finalizers") or []
        return self._write(obj, references, [*present, *(one for one in self._finalizers if one not in present)])

    def release(self, obj: Object) -> Object:
        """Take the owner off the object's references. Raises Status."""
        references = [one for one in owner_references(obj) if one["uid"] != uid_of(self._owner)]
        present = obj["metadata"].get("finalizers") or []
        return self._write(obj, references, [one for one in present if one not in self._finalizers])

    def _check_owner(self) -> None:
        """``RecheckDeletionTimestamp``, once."""
        if self._may_adopt:
            return
        name, uid = name_of(self._owner), uid_of(self._owner)
        fresh = self._client.get(self._owner_resource, name, namespace=namespace_of(self._owner))
        if uid_of(fresh) != uid:
            raise AdoptionError(f"original {self._owner['kind']} {namespace_of(self._owner)}/{name} is gone: "
                                f"got uid {uid_of(fresh)}, wanted {uid}")
        if is_being_deleted(fresh):
            raise AdoptionError(f"{namespace_of(self._owner)}/{name} has just been deleted at "
                                f"{fresh['metadata']['deletionTimestamp']}")
        self._may_adopt = True

    def _write(self, obj: Object, references: list[Object], finalizers: list[str]) -> Object:
        changed = with_owner_references(obj, references)
        if self._finalizers:
            changed["metadata"]["finalizers"] = finalizers
        return self._client.update(self._resource, changed, namespace=namespace_of(obj))


def with_owner_references(obj: Object, references: list[Object]) -> Object:
    """A copy of the object with these owner references (none at all: without the field)."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    if references:
        metadata["ownerReferences"] = references
    return {**obj, "metadata": metadata}
