"""The ``scale`` subresource: an object's replica count as an ``autoscaling/v1 Scale``.

Upstream: ``pkg/registry/apps/deployment/storage`` (``ScaleREST``), for custom resources ``apiextensions-apiserver``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.cluster import errors
from kubepy.cluster.objects.meta import Object, clone
from kubepy.cluster.requests.server import Server, Target
from kubepy.cluster.requests.sessions import Session
from kubepy.cluster.requests.updating import replace
from kubepy.cluster.scheme import Resource
from kubepy.cluster.selectors.labels import SelectorError, from_label_selector, from_set

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScalePaths(NamedTuple):
    """Where a kind keeps what a Scale shows. ``selector`` is "" if it has none, or holds a string, map or selector."""

    replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


def scale_paths(resource: Resource) -> ScalePaths:
    """Raises the NotFound of a path that is not served: most kinds have no scale."""
    if "scale" not in resource.subresources:
        raise errors.no_such_resource()
    return ScalePaths(*resource.scale_paths) if resource.scale_paths else ScalePaths()


def scale_of(paths: ScalePaths, obj: Object) -> Object:
    """The Scale of an object. Counts of zero are left out, as Go leaves them out of ``spec``."""
    metadata = obj["metadata"]
    replicas = _at(obj, paths.replicas) or 0
    status = {"replicas": _at(obj, paths.status_replicas) or 0}
    if selector := _selector(_at(obj, paths.selector)):
        status["selector"] = selector
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def update_scale(server: Server, session: Session, target: Target, scale: Object, manager: str = "") -> Object:
    """Set the replicas of an object; returns its new Scale. Raises NotFound, Conflict, Invalid."""
    paths = scale_paths(target.resource)
    old = session.require(target.key)
    replicas = scale.get("spec", {}).get("replicas", 0)
    if replicas < 0:
        wrong = errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid("Scale.autoscaling", target.name, [wrong])
    _check_uid(target, scale, old)
    new = clone(old)
    if version := scale["metadata"].get("resourceVersion"):
        new["metadata"]["resourceVersion"] = version
    else:
        del new["metadata"]["resourceVersion"]
    _set(new, paths.replicas, replicas)
    return scale_of(paths, replace(server, session, target, new, old, manager=manager, tracked_as="scale"))


def _check_uid(target: Target, scale: Object, old: Object) -> None:
    uid, found = scale["metadata"].get("uid"), old["metadata"].get("uid")
    if uid and uid != found:
        resource = target.resource
        where = f"{resource.plural}/scale.{resource.group}" if resource.group else f"{resource.plural}/scale"
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        raise errors.conflict(where, target.name, why)


def _selector(found: Any) -> str:
    """A selector as a string, whatever the kind keeps: a string, labels, or a LabelSelector."""
    if not isinstance(found, dict):
        return found or ""
    try:
        is_label_selector = found.keys() <= {"matchLabels", "matchExpressions"}
        return str(from_label_selector(found) if is_label_selector else from_set(found))
    except SelectorError as error:
        raise errors.bad_request(str(error)) from None


def _at(obj: Object, path: tuple[str, ...]) -> Any:
    found: Any = obj
    for part in path:
        if not isinstance(found, dict):
            return None
        found = found.get(part)
    return found


def _set(obj: Object, path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        obj = obj.setdefault(part, {})
    obj[path[-1]] = value
