"""Small questions about ``metadata``: names, owners, deletion. Pure functions over plain dicts.

Objects that come out of the Client, of storage or of an informer are shared and read-only: copy before changing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

Object = dict[str, Any]
"""An object, or a part of one, that its holder made and may change."""
AnyObject = Mapping[str, Any]
"""An object, or a part of one, that is only read: a plain dict or one of the TypedDicts of ``kubepy.api.typed``."""
ObjectT = TypeVar("ObjectT", bound=AnyObject)
"""The type of objects that a function chooses from and returns as they are."""

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


def clone(value: Any) -> Any:
    """A deep copy of plain JSON data, five times as fast as ``copy.deepcopy``."""
    kind = type(value)
    if kind is dict:
        return {key: clone(one) for key, one in value.items()}
    if kind is list:
        return [clone(one) for one in value]
    return value


def name_of(obj: AnyObject) -> str:
    return str(obj["metadata"].get("name", ""))


def namespace_of(obj: AnyObject) -> str:
    return str(obj["metadata"].get("namespace", ""))


def uid_of(obj: AnyObject) -> str:
    return str(obj["metadata"].get("uid", ""))


def labels_of(obj: AnyObject) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: AnyObject) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def is_being_deleted(obj: AnyObject) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def owner_references(obj: AnyObject) -> list[Object]:
    return obj["metadata"].get("ownerReferences") or []


def controller_of(obj: AnyObject) -> Object | None:
    """The owner reference with ``controller: true``, if there is one (``metav1.GetControllerOf``)."""
    return next((ref for ref in owner_references(obj) if ref.get("controller")), None)


def is_controlled_by(obj: AnyObject, owner: AnyObject) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller["uid"] == uid_of(owner)


def new_controller_ref(owner: AnyObject) -> Object:
    """The owner reference that a controller puts on what it makes (``metav1.NewControllerRef``)."""
    return {
        "apiVersion": owner["apiVersion"],
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
    }


def has_finalizer(obj: AnyObject, finalizer: str) -> bool:
    return finalizer in (obj["metadata"].get("finalizers") or [])


def with_finalizer(obj: AnyObject, finalizer: str) -> Object:
    """A copy that is held by one more finalizer."""
    finalizers = [*(obj["metadata"].get("finalizers") or []), finalizer]
    return {**obj, "metadata": {**obj["metadata"], "finalizers": finalizers}}


def without_finalizer(obj: AnyObject, finalizer: str) -> Object:
    """A copy that the finalizer no longer holds."""
    kept = [one for one in obj["metadata"].get("finalizers") or () if one != finalizer]
    return {**obj, "metadata": {**obj["metadata"], "finalizers": kept}}


def object_reference(obj: AnyObject, field_path: str = "") -> Object:
    """A ``core/v1 ObjectReference`` to an object or to a part of it."""
    metadata = obj["metadata"]
    found: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": name_of(obj)}
    for field in ("namespace", "resourceVersion", "uid"):
        if metadata.get(field):
            found[field] = metadata[field]
    if field_path:
        found["fieldPath"] = field_path
    return found
