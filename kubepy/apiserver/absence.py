"""The setting ``absent``: objects that the source of an import names and does not hold.

They count as there until somebody makes an object of that name, or deletes them: owners for the
garbage collector and for controllers, ConfigMaps, Secrets and claims for kubelets, claims and the
revision that is being updated from for the StatefulSet controller. The entry of a namespace that is
being deleted says that it holds objects of kinds that the source leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kubepy.api.meta import AnyObject, Object
from kubepy.apiserver.strict_fields import field_error, map_of, parse_text


class AbsentObject(NamedTuple):
    """An object that is named and not held.

    :ivar uid: as owner references name it; "" where only its name is known.
    :ivar remaining: of a namespace that is held and being deleted, the resources of which it still
        has objects that the source does not hold: ``widgets.example.org``; "" for all others.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    remaining: str = ""

    def as_setting(self) -> Object:
        """Return the entry in ``kubepy.yaml``."""
        entry = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "remaining": self.remaining,
        }
        return {name: value for name, value in entry.items() if value}


class AbsentObjects:
    """The absent objects of a cluster, by what they are looked up by.

    All clients of an open cluster share them, so that one that was deleted is gone for all.
    """

    def __init__(self, objects: Iterable[AbsentObject] = ()) -> None:
        self.objects = tuple(objects)
        self._remaining = {obj.uid: obj.remaining for obj in self.objects if obj.remaining}
        self._owners = {obj.uid: obj for obj in self.objects if obj.uid and not obj.remaining}
        self._named = {(obj.kind, obj.namespace, obj.name) for obj in self.objects if not obj.uid}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsentObjects) and self.objects == other.objects

    def __hash__(self) -> int:
        return hash(self.objects)

    def __bool__(self) -> bool:
        return bool(self.objects)

    def owner_named(self, kind: str, namespace: str, name: str) -> AbsentObject | None:
        """Return an absent owner by its name; None: there is none."""
        for owner in self._owners.values():
            if (owner.kind, owner.namespace, owner.name) == (kind, namespace, name):
                return owner
        return None

    def release(self, owner: AbsentObject) -> list[Object]:
        """Let an owner count as deleted from now on; return the value that the setting has then."""
        self.objects = tuple(obj for obj in self.objects if obj != owner)
        self._owners.pop(owner.uid, None)
        return [obj.as_setting() for obj in self.objects]

    def owner(self, reference: Mapping[str, Any]) -> AbsentObject | None:
        """Return the absent object that an owner reference names; None: it names another."""
        if not self._owners:
            return None
        owner = self._owners.get(reference["uid"])
        if owner is None:
            return None
        named = (reference["apiVersion"], reference["kind"], reference["name"])
        if named != (owner.api_version, owner.kind, owner.name):
            return None
        return owner

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a ConfigMap, Secret or claim of that name is absent."""
        return (kind, namespace, name) in self._named

    def remaining_in(self, namespace: AnyObject) -> str:
        """Return the resources of which a namespace that is being deleted has objects that the
        source does not hold; "" where there are none."""
        return self._remaining.get(namespace["metadata"].get("uid") or "", "")


def parse_absent(value: Any) -> AbsentObjects:
    """Check the setting. Raises FolderError, which names the field."""
    path = "kubepy.yaml: absent"
    if not isinstance(value, list):
        raise field_error(path, "must be a list of objects that are named and not held")
    parse = map_of(
        AbsentObject,
        {
            "apiVersion": parse_text,
            "kind": parse_text,
            "namespace": parse_text,
            "name": parse_text,
            "uid": parse_text,
            "remaining": parse_text,
        },
        "apiVersion",
        "kind",
        "name",
    )
    return AbsentObjects(parse(f"{path}[{index}]", entry) for index, entry in enumerate(value))
