"""Adopting orphans that match an owner's selector, releasing what no longer does
(``controller_ref_manager.go``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import (
    AnyObject,
    ObjectT,
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
from kubepy.runtime.informers import ResourceClient, TypedResource
from kubepy.runtime.reconcile import UnfinishedSync, raise_all

if TYPE_CHECKING:
    from kubepy.api.typed import OwnerReference

ClaimDecision = Literal["keep", "adopt", "release", "ignore"]


class AdoptionError(UnfinishedSync):
    """The owner is gone, or is being deleted: nothing may be adopted for it."""


def claim_decision(owner: AnyObject, obj: AnyObject, matches: bool) -> ClaimDecision:
    """Decide about an object of the owner's namespace (``ClaimObject``)."""
    controller = controller_of(obj)
    if controller is not None:
        if controller["uid"] != uid_of(owner):
            return "ignore"
        if matches:
            return "keep"
        if is_being_deleted(owner):
            return "ignore"
        return "release"
    if is_being_deleted(owner) or not matches or is_being_deleted(obj):
        return "ignore"
    return "adopt"


class RefManager(Generic[ObjectT]):
    """Claims objects of one resource for one owner.

    :param owner_resource: the owner's resource, to read it again before the first adoption: an
        owner that was deleted, or replaced by another of the same name, must not adopt.
    :param finalizers: come and go with the ownership.
    """

    def __init__(
        self,
        client: Client,
        resource: TypedResource[ObjectT],
        owner_resource: TypedResource[Any],
        owner: AnyObject,
        finalizers: Sequence[str] = (),
    ) -> None:
        self._objects = ResourceClient(client, resource)
        self._owners = ResourceClient(client, owner_resource)
        self._owner = owner
        self._finalizers = finalizers
        self._may_adopt = False

    def claim(
        self,
        objects: Iterable[ObjectT],
        selector: LabelSelector,
        accept: Callable[[ObjectT], bool] = lambda _: True,
    ) -> list[ObjectT]:
        """Return the objects that the owner controls afterwards. Raises Status, AdoptionError after
        the last object.

        ``accept`` narrows the selector's matches (a StatefulSet's pods by name). An object that is
        gone is no error.
        """
        claimed: list[ObjectT] = []
        errors: list[Exception] = []
        for obj in objects:
            try:
                match claim_decision(
                    self._owner, obj, selector.matches(labels_of(obj)) and accept(obj)
                ):
                    case "keep":
                        claimed.append(obj)
                    case "adopt":
                        claimed.append(self.adopt(obj))
                    case "release":
                        self.release(obj)
            except NotFound:
                continue
            except (Status, AdoptionError) as error:
                errors.append(error)

        raise_all(errors)
        return claimed

    def adopt(self, obj: ObjectT) -> ObjectT:
        """Make the owner the object's controller. Raises Status, AdoptionError."""
        self._check_owner()
        references = [*owner_references(obj), new_controller_ref(self._owner)]
        finalizers = obj["metadata"].get("finalizers") or []
        missing = [finalizer for finalizer in self._finalizers if finalizer not in finalizers]
        return self._write(obj, references, [*finalizers, *missing])

    def release(self, obj: ObjectT) -> ObjectT:
        """Take the owner off the object's references. Raises Status."""
        references = [
            owner for owner in owner_references(obj) if owner["uid"] != uid_of(self._owner)
        ]
        finalizers = obj["metadata"].get("finalizers") or []
        others = [finalizer for finalizer in finalizers if finalizer not in self._finalizers]
        return self._write(obj, references, others)

    def _check_owner(self) -> None:
        """Read the owner again, once (``RecheckDeletionTimestamp``). Raises Status,
        AdoptionError."""
        if self._may_adopt:
            return
        namespace = namespace_of(self._owner)
        name = name_of(self._owner)
        uid = uid_of(self._owner)
        fresh = self._owners.get(namespace, name)
        if uid_of(fresh) != uid:
            raise AdoptionError(
                f"original {self._owner['kind']} {namespace}/{name} is gone: "
                f"got uid {uid_of(fresh)}, wanted {uid}"
            )

        if is_being_deleted(fresh):
            raise AdoptionError(
                f"{namespace}/{name} has just been deleted at "
                f"{fresh['metadata']['deletionTimestamp']}"
            )

        self._may_adopt = True

    def _write(
        self, obj: ObjectT, references: list[OwnerReference], finalizers: list[str]
    ) -> ObjectT:
        changed = with_owner_references(obj, references)
        if self._finalizers:
            changed["metadata"]["finalizers"] = finalizers
        return self._objects.update(changed)


def with_owner_references(obj: ObjectT, references: Sequence[AnyObject]) -> ObjectT:
    """Copy the object with these owner references (none at all: without the field)."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    if references:
        metadata["ownerReferences"] = references
    return cast(ObjectT, {**obj, "metadata": metadata})
