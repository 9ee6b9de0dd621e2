"""The ``scale`` subresource: an object's replica count as an ``autoscaling/v1 Scale``.

Upstream: ``pkg/registry/apps/deployment/storage`` (``ScaleREST``), for custom resources
``apiextensions-apiserver``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object, clone
from kubepy.api.scheme import Resource
from kubepy.api.selectors import SelectorError, from_label_selector, from_set
from kubepy.api.values.goformat import quote
from kubepy.apiserver.customresources.validation import dotted, value_at
from kubepy.apiserver.requests.admission import admit_body
from kubepy.apiserver.requests.decoding import decode_request, match_name, match_namespace
from kubepy.apiserver.requests.updating import replace
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.managedfields import scales

SCALE = Resource("scales", "Scale", "autoscaling")
NOT_SET = -2147483648  # the replicas in the Scale of a custom resource that has none
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScalePaths(NamedTuple):
    """The paths of what a Scale shows. At ``selector`` there is a string, a map, a LabelSelector or
    nothing."""

    replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


def scale_paths(resource: Resource) -> ScalePaths:
    """Return the paths of a Scale's fields in the object. Raises NotFound if the kind has no
    Scale."""
    if "scale" not in resource.subresources:
        raise errors.no_such_resource()
    return ScalePaths(*resource.scale_paths) if resource.scale_paths else ScalePaths()


def read_scale(resource: Resource, obj: Object) -> Object:
    """Return the Scale of an object. Raises InternalError for a custom resource without
    replicas."""
    paths = scale_paths(resource)
    if resource.custom and value_at(obj, paths.replicas) is None:
        raise errors.internal_error(
            f"the spec replicas field {quote(dotted(paths.replicas))} does not exist"
        )
    return scale_of(paths, obj)


def scale_of(paths: ScalePaths, obj: Object) -> Object:
    """Return the Scale of an object. Zero replicas are left out, as Go leaves them out of
    ``spec``."""
    metadata = obj["metadata"]
    replicas = value_at(obj, paths.replicas) or 0
    status = {"replicas": value_at(obj, paths.status_replicas) or 0}
    if selector := _selector_text(value_at(obj, paths.selector)):
        status["selector"] = selector
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector_text(selector: Any) -> str:
    if not isinstance(selector, dict):
        return selector or ""
    try:
        is_label_selector = selector.keys() <= {"matchLabels", "matchExpressions"}
        return str(from_label_selector(selector) if is_label_selector else from_set(selector))
    except SelectorError as error:
        raise errors.BadRequest(str(error)) from None


def replace_scale(scope: RequestScope, scale: Object) -> Object:
    """Give an object the replicas of a Scale that a client has sent. Raises as ``update_scale``."""
    scale_paths(scope.resource)
    new = decode_request(scope, SCALE, scale)
    match_namespace(new, scope)
    match_name(new, scope)
    return update_scale(scope, lambda before: new)


def update_scale(scope: RequestScope, change: Callable[[Object], Object]) -> Object:
    """Set the replicas of an object to those of its changed Scale, and return the new Scale.

    :param change: makes the decoded new Scale of the one that is there.

    Raises NotFound, BadRequest, Conflict, Invalid.
    """
    paths, old = scale_paths(scope.resource), scope.require()
    before = scale_to_change(scope.resource, paths, old)
    after = change(before)
    managed_fields = None
    if manager := scope.request.write_options.field_manager:
        update = scales.ScaleUpdate(paths.replicas, before, after)
        managed_fields = scales.tracked_scale(
            scope.resource,
            scope.strategy.field_schema(),
            old,
            update,
            manager,
            scope.context.clock.timestamp(),
        )

    return store_scale(scope, after, old, managed_fields)


def store_scale(
    scope: RequestScope, scale: Object, old: Object, managed_fields: list[Object] | None
) -> Object:
    """Give an object the replicas of a Scale, and these managedFields. Raises BadRequest, Conflict,
    Invalid."""
    resource, paths, new = scope.resource, scale_paths(scope.resource), clone(old)
    admit_body(Attributes(scope, scale, scale_of(paths, old), body=SCALE))
    replicas, metadata = scale["spec"].get("replicas", 0), scale["metadata"]
    if resource.custom and replicas == NOT_SET:
        raise errors.BadRequest(
            f"the spec replicas field {quote(dotted(paths.replicas))} cannot be empty"
        )

    if not resource.custom:  # a custom resource is validated by its own strategy
        if replicas < 0:
            problem = errors.invalid_value(
                "spec.replicas", replicas, "must be greater than or equal to 0"
            )
            raise errors.invalid("Scale.autoscaling", scope.name, [problem])
        uid, stored_uid = metadata.get("uid"), old["metadata"].get("uid")
        if uid and uid != stored_uid:
            kind = (
                f"{resource.plural}/scale.{resource.group}"
                if resource.group
                else f"{resource.plural}/scale"
            )
            raise errors.conflict(
                kind,
                scope.name,
                f"Precondition failed: UID in precondition: {uid}, UID in object "
                f"meta: {stored_uid}",
            )

    if version := metadata.get("resourceVersion"):  # a precondition; without it any version will do
        new["metadata"]["resourceVersion"] = version
    elif not resource.custom:
        del new["metadata"]["resourceVersion"]

    place = new
    for field in paths.replicas[:-1]:
        place = place.setdefault(field, {})
    place[paths.replicas[-1]] = replicas
    of_object = scope._replace(
        request=scope.request._replace(subresource="", options=None), is_internal=True
    )
    return scale_of(paths, replace(of_object, new, old, managed_fields))


def scale_to_change(resource: Resource, paths: ScalePaths, obj: Object) -> Object:
    """Return the Scale; that of a custom resource without replicas has the number ``NOT_SET``."""
    scale = scale_of(paths, obj)
    if resource.custom and value_at(obj, paths.replicas) is None:
        scale["spec"]["replicas"] = NOT_SET
    return scale
