"""What controllers write into objects that clients have made, other than status: they leave no entries.

Upstream: who calls ``Update`` and ``UpdateStatus`` in ``pkg/controller``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object, controller_of
from kubepy.apiserver.managedfields.fieldpath import EMPTY, Fields, Path, fields_path

_ANNOTATIONS = fields_path("metadata", "annotations")
_OWNERS = fields_path("metadata", "ownerReferences")
# Resources whose controllers annotate them as they write their status.
_ANNOTATED_WITH_STATUS = ("deployments.apps",)
_THEIR_ANNOTATIONS = ("f:deployment.kubernetes.io/", "f:pv.kubernetes.io/", "f:volume.kubernetes.io/")
_THEIR_FIELDS: dict[str, tuple[Path, ...]] = {
    "persistentvolumeclaims": (fields_path("spec", "volumeName"),),
    "persistentvolumes": (fields_path("spec", "claimRef"),),
}
_THEIR_TAINTS = "node.kubernetes.io/"


class Written(NamedTuple):
    """The fields that came with the status, and others."""

    with_status: Fields
    otherwise: Fields


def written_by_controllers(resource: str, obj: Object, fields: Fields) -> Written:
    """Those of the fields that only controllers can have set."""
    annotations, others = _their_annotations(fields), _below(fields, _their_places(resource, obj))
    if resource in _ANNOTATED_WITH_STATUS:
        return Written(annotations, others)
    return Written(EMPTY, annotations | others)


def _their_annotations(fields: Fields) -> Fields:
    """Their annotations, and the map if there are no others."""
    annotations = {path for path in fields if path[:2] == _ANNOTATIONS}
    theirs = {path for path in annotations if path[2:3] and path[2].startswith(_THEIR_ANNOTATIONS)}
    return frozenset(annotations if theirs and annotations <= theirs | {_ANNOTATIONS} else theirs)


def _their_places(resource: str, obj: Object) -> list[Path]:
    places = list(_THEIR_FIELDS.get(resource, ()))
    if controller_of(obj):
        places.append(_OWNERS)
    taints = obj["spec"].get("taints") or () if resource == "nodes" else ()
    if any(taint.get("key", "").startswith(_THEIR_TAINTS) for taint in taints):
        places.append(fields_path("spec", "taints"))
    return places


def _below(fields: Fields, places: list[Path]) -> Fields:
    return frozenset(path for path in fields if any(path[:len(one)] == one for one in places))
