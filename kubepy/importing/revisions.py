"""The revisions that StatefulSets are being updated from, where a source leaves them out.

A pod of such a revision shows its template, but for what was added to the pod after it was made
of the template. What is added is known; that nothing else was is checked with a pod of the present
template, which must show just that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from kubepy.api.meta import (
    Object,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    spec_of,
    status_of,
)
from kubepy.controllers.statefulset import HASH_LABEL
from kubepy.controllers.statefulset.pods import POD_INDEX_LABEL, POD_NAME_LABEL, REVISION_LABEL
from kubepy.runtime.history import new_revision
from kubepy.storage import Key

STATEFUL_SETS, REVISIONS = "statefulsets.apps", "controllerrevisions.apps"
# What the StatefulSet controller adds to the labels of a pod.
_ADDED_LABELS = frozenset((REVISION_LABEL, POD_NAME_LABEL, POD_INDEX_LABEL))
# What the controller, defaults of pods, admission and the scheduler add to the spec of a pod.
_ADDED_FIELDS = frozenset(
    (
        "enableServiceLinks",
        "hostname",
        "nodeName",
        "preemptionPolicy",
        "priority",
        "serviceAccount",
        "serviceAccountName",
        "subdomain",
        "tolerations",
    )
)
_TOKEN_VOLUME = "kube-api-access-"


def former_revision(stateful_set: Object, pods: Iterable[Object]) -> Object | None:
    """Return the revision that a StatefulSet is being updated from; None where its template cannot
    be told, or there is no such update."""
    current, update = _names_of(stateful_set)
    if not current or current == update:
        return None
    own = [pod for pod in pods if is_controlled_by(pod, stateful_set)]
    present = spec_of(stateful_set)["template"]
    updated = next((pod for pod in own if labels_of(pod).get(REVISION_LABEL) == update), None)
    former = next((pod for pod in own if labels_of(pod).get(REVISION_LABEL) == current), None)
    if updated is None or former is None:
        return None
    if _template_of(updated, stateful_set) != present:
        return None
    template = _template_of(former, stateful_set)
    spec = {**spec_of(stateful_set), "template": template}
    hash_ = current.removeprefix(f"{name_of(stateful_set)}-")
    revision = new_revision(
        {**stateful_set, "spec": spec},
        1,
        hash_,
        HASH_LABEL,
    )
    return cast("Object", revision)


def absent_revisions(objects: Mapping[Key, Object]) -> Iterator[Key]:
    """Yield the keys of the revisions that StatefulSets are being updated from and whose templates
    nothing tells, where a source holds no ControllerRevisions."""
    if any(key.resource == REVISIONS for key in objects):
        return
    pods = [obj for key, obj in objects.items() if key.resource == "pods"]
    for key, stateful_set in objects.items():
        if key.resource != STATEFUL_SETS:
            continue
        current, update = _names_of(stateful_set)
        if not current or current == update:
            continue
        in_namespace = [pod for pod in pods if namespace_of(pod) == key.namespace]
        if former_revision(stateful_set, in_namespace) is None:
            yield Key(REVISIONS, key.namespace, current)


def _names_of(stateful_set: Object) -> tuple[str, str]:
    """Return the names of the current and of the update revision."""
    status = status_of(stateful_set)
    return status.get("currentRevision") or "", status.get("updateRevision") or ""


def _template_of(pod: Object, stateful_set: Object) -> Object:
    """Return the template that a pod was made of, as far as the pod shows it. Of the fields that
    are also added to pods, those stay that the present template has."""
    present = spec_of(stateful_set)["template"]
    claims = {
        template["metadata"]["name"]
        for template in nested_list(stateful_set, "spec", "volumeClaimTemplates")
    }
    spec: dict[str, Any] = {}
    for field, value in spec_of(pod).items():
        if field not in _ADDED_FIELDS or field in present["spec"]:
            spec[field] = value
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_without_token(container) for container in spec[field]]
    volumes = [
        volume
        for volume in spec.pop("volumes", None) or ()
        if volume["name"] not in claims and not volume["name"].startswith(_TOKEN_VOLUME)
    ]
    if volumes:
        spec["volumes"] = volumes
    labels = {name: value for name, value in labels_of(pod).items() if name not in _ADDED_LABELS}
    metadata = {**(present.get("metadata") or {}), "labels": labels}
    annotations = nested_map(pod, "metadata", "annotations")
    if annotations:
        metadata["annotations"] = dict(annotations)
    else:
        metadata.pop("annotations", None)
    return {"metadata": metadata, "spec": spec}


def _without_token(container: Object) -> Object:
    """Return a container without the mount of the token of its ServiceAccount."""
    mounts = [
        mount
        for mount in container.get("volumeMounts") or ()
        if not mount["name"].startswith(_TOKEN_VOLUME)
    ]
    rest = {name: value for name, value in container.items() if name != "volumeMounts"}
    return {**rest, "volumeMounts": mounts} if mounts else rest
