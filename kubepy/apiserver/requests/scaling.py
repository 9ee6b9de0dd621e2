"""The ``scale`` subresource: an object's replica count as an ``autoscaling/v1 Scale``.

Upstream: ``pkg/registry/apps/deployment/storage`` (``ScaleREST``), for custom resources ``apiextensions-apiserver``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object, clone
from kubepy.api.scheme import Resource
from kubepy.api.selectors import SelectorError, from_label_selector, from_set
from kubepy.api.values.goformat import quote
from kubepy.apiserver.requests.decoding import decode_request
from kubepy.apiserver.requests.server import Server, Target, match_name, match_namespace
from kubepy.apiserver.requests.sessions import Session
from kubepy.apiserver.requests.updating import replace
from kubepy.apiserver.validation.custom import dotted, value_at

SCALE = Resource("scales", "Scale", "autoscaling")
NOT_SET = -2147483648
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


def read_scale(resource: Resource, obj: Object) -> Object:
    """The Scale of an object. Raises InternalError for a custom resource without replicas."""
    paths = scale_paths(resource)
    if resource.custom and value_at(obj, paths.replicas) is None:
        raise errors.internal_error(f"the spec replicas field {quote(dotted(paths.replicas))} does not exist")
    return scale_of(paths, obj)


def scale_of(paths: ScalePaths, obj: Object) -> Object:
    """The Scale of an object. Counts of zero are left out, as Go leaves them out of ``spec``."""
    metadata = obj["metadata"]
    replicas = value_at(obj, paths.replicas) or 0
    status = {"replicas": value_at(obj, paths.status_replicas) or 0}
    if selector := _selector(value_at(obj, paths.selector)):
        status["selector"] = selector
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def replace_scale(server: Server, session: Session, target: Target, scale: Object, field_validation: str = "Ignore",
                  manager: str = "") -> Object:
    """``update_scale`` with a Scale that a client has sent."""
    scale_paths(target.resource)
    new = decode_request(server, SCALE, scale, field_validation)
    match_namespace(new, target)
    match_name(new, target)
    return update_scale(server, session, target, lambda before: new, manager)


def update_scale(server: Server, session: Session, target: Target, change: Callable[[Object], Object],
                 manager: str = "") -> Object:
    """Set the replicas of an object to those of its changed Scale; returns the new Scale.

    ``change`` makes the Scale that is wanted of the one that is there; it is decoded. Raises NotFound, BadRequest,
    Conflict, Invalid.
    """
    paths, old = scale_paths(target.resource), session.require(target.key)
    before = scale_to_change(target.resource, paths, old)
    after = change(before)
    managed = _tracked(server, target, paths, old, before, after, manager) if manager else None
    return store_scale(server, session, target, after, old, managed)


def store_scale(server: Server, session: Session, target: Target, scale: Object, old: Object,
                managed: list[Object] | None) -> Object:
    """Give an object the replicas of a Scale, and these managedFields. Raises BadRequest, Conflict, Invalid."""
    paths, new = scale_paths(target.resource), clone(old)
    _validate(target, paths, scale, old)
    _take_version(target.resource, new, scale)
    _set(new, paths.replicas, scale["spec"].get("replicas", 0))
    return scale_of(paths, replace(server, session, target, new, old, managed=managed))


def scale_to_change(resource: Resource, paths: ScalePaths, obj: Object) -> Object:
    """The Scale; of a custom resource without replicas it has a number that nobody asks for."""
    scale = scale_of(paths, obj)
    if resource.custom and value_at(obj, paths.replicas) is None:
        scale["spec"]["replicas"] = NOT_SET
    return scale


def _validate(target: Target, paths: ScalePaths, scale: Object, old: Object) -> None:
    """Raises Invalid, BadRequest, Conflict. A custom resource is validated by its own strategy."""
    replicas = scale["spec"].get("replicas", 0)
    if target.resource.custom and replicas == NOT_SET:
        raise errors.BadRequest(f"the spec replicas field {quote(dotted(paths.replicas))} cannot be empty")
    if not target.resource.custom:
        if replicas < 0:
            wrong = errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise errors.invalid("Scale.autoscaling", target.name, [wrong])
        _check_uid(target, scale, old)


def _take_version(resource: Resource, new: Object, scale: Object) -> None:
    """The version that the Scale names is a precondition; without one any will do."""
    if version := scale["metadata"].get("resourceVersion"):
        new["metadata"]["resourceVersion"] = version
    elif not resource.custom:
        del new["metadata"]["resourceVersion"]


def _tracked(server: Server, target: Target, paths: ScalePaths, old: Object, before: Object, after: Object,
             manager: str) -> list[Object]:
    from kubepy.apiserver.managedfields.fieldpath import fields_path
    from kubepy.apiserver.managedfields.scales import tracked_scale
    from kubepy.apiserver.managedfields.tracking import Writer
    from kubepy.apiserver.requests.field_schemas import field_schema

    writer = Writer(manager, "scale", server.clock.timestamp())
    schema = field_schema(server, target.resource)
    return tracked_scale(target.resource, schema, fields_path(*paths.replicas), old, before, after, writer)


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
        raise errors.BadRequest(str(error)) from None


def _set(obj: Object, path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        obj = obj.setdefault(part, {})
    obj[path[-1]] = value
