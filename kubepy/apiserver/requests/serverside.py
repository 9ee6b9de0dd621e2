"""Server-side apply: a manager sends the fields that it wants an object to have, and only those.

Upstream: ``apiserver/pkg/endpoints/handlers/patch.go`` (applyPatcher),
``apimachinery/pkg/util/managedfields/internal/{structuredmerge,lastappliedmanager,lastappliedupdater}.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api import errors
from kubepy.api.meta import Object, annotations_of
from kubepy.api.schema.openapi import Schema
from kubepy.api.scheme import Resource
from kubepy.api.types import decode as decode_object
from kubepy.api.values.goformat import to_json
from kubepy.apiserver.managedfields import tracking
from kubepy.apiserver.managedfields.entries import APPLY, Managers, conflict_status, manager_of
from kubepy.apiserver.managedfields.fieldpath import EMPTY, Fields, fields_path
from kubepy.apiserver.managedfields.scales import scale_managers, with_scale_managers
from kubepy.apiserver.managedfields.typed import TypedError, compare, field_set
from kubepy.apiserver.managedfields.updater import Applied, ConflictsError, Write, apply
from kubepy.apiserver.managedfields.validating import problems, text_of
from kubepy.apiserver.requests.creation import create_decoded
from kubepy.apiserver.requests.decoding import (
    PatchErrorStyle,
    decode_patched,
    drop_duplicate_owners,
)
from kubepy.apiserver.requests.scaling import SCALE, scale_paths, scale_to_change, store_scale
from kubepy.apiserver.requests.updating import replace
from kubepy.apiserver.server import RequestScope
from kubepy.quoting import printable
from kubepy.storage.yaml import YamlError, read_json

KUBECTL = "kubectl"  # the manager that inherits from apply on the client
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def apply_object(scope: RequestScope, config: Any) -> Object:
    """Apply a configuration and return the object as stored.

    Raises Conflict, BadRequest, NotFound, Invalid, and Status (500) for fields that the schema does
    not have.
    """
    resource = scope.resource
    _check(scope, resource, config)
    schema = scope.strategy.field_schema()
    if field_problems := problems(config, schema):
        raise _untyped(config, text_of(field_problems))
    old = scope.get()
    if old is None and scope.request.subresource:
        raise errors.not_found(resource.key, scope.name)
    if old is None and (uid := config["metadata"].get("uid")):
        raise errors.conflict(
            resource.key,
            scope.name,
            f"uid mismatch: the provided object specified uid {uid}, "
            "and no existing object was found",
        )

    live: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}}
    if old is not None:
        live = tracking.bare(old)
    elif not resource.custom:
        live = decode_object({"apiVersion": resource.api_version, "kind": resource.kind}).object

    entries = (old["metadata"].get("managedFields") or []) if old else []
    unknown = (tracking.BEFORE_APPLY, scope.context.clock.timestamp())
    managers = tracking.complete(resource, schema, live, entries, unknown) if old else {}
    merged, changed = _merge(scope, resource, live, managers, config)
    new = _decode(scope, resource, merged)
    managed_fields = tracking.written(entries, managers, changed)
    if old is None:
        return create_decoded(scope, new, lambda: managed_fields)
    new["metadata"].setdefault("resourceVersion", old["metadata"]["resourceVersion"])
    return replace(scope, new, old, managed_fields)


def apply_scale(scope: RequestScope, config: Any) -> Object:
    """Apply a Scale to an object and return its Scale. Raises as ``apply_object``."""
    resource, paths, old = scope.resource, scale_paths(scope.resource), scope.require()
    _check(scope, SCALE, config)
    if field_problems := problems(config, scope.server.strategy(SCALE).field_schema()):
        raise _untyped(config, text_of(field_problems))
    entries, replicas = old["metadata"].get("managedFields") or [], fields_path(*paths.replicas)
    managers = tracking.complete(
        resource, scope.strategy.field_schema(), tracking.bare(old), entries
    )
    scale = scale_to_change(resource, paths, old)
    merged, changed = _merge(scope, SCALE, scale, scale_managers(managers, replicas), config)
    after = with_scale_managers(managers, changed, replicas, resource.api_version)
    return store_scale(
        scope, _decode(scope, SCALE, merged), old, tracking.written(entries, managers, after)
    )


def _check(scope: RequestScope, resource: Resource, config: Any) -> None:
    """Check that there is a manager, and a configuration of the kind that is expected. Raises
    Invalid, BadRequest."""
    if not scope.request.write_options.field_manager:
        problem = errors.required("fieldManager", "is required for apply patch")
        raise errors.invalid("PatchOptions.meta.k8s.io", "", [problem])
    if isinstance(config, dict) and config.get("metadata") is None:
        config["metadata"] = {}
    if not isinstance(config, dict) or not isinstance(config["metadata"], dict):
        raise errors.BadRequest(
            "error decoding YAML: the applied configuration is not an object with metadata"
        )
    if (config.get("apiVersion"), config.get("kind")) != (resource.api_version, resource.kind):
        raise errors.BadRequest(f"invalid object type: {_kind_text(config)}")
    if config["metadata"].get("managedFields") is not None:
        raise errors.BadRequest("metadata.managedFields must be nil")


def _kind_text(obj: Object) -> str:
    """Write the kind as Go's GroupVersionKind: ``apps/v1, Kind=Deployment``, ``/v1, Kind=Pod``."""
    version, kind = (
        text if isinstance(text := obj.get(name), str) else "" for name in ("apiVersion", "kind")
    )
    return f"{version if '/' in version else f'/{version}'.rstrip('/') or '/'}, Kind={kind}"


def _untyped(config: Object, detail: str) -> errors.Status:
    metadata = config["metadata"]
    namespace, name = (
        text if isinstance(text := metadata.get(field), str) else ""
        for field in ("namespace", "name")
    )
    place = f"{namespace}/{name}; {_kind_text(config)}"
    return errors.Status(f"failed to create typed patch object ({printable(place)}): {detail}")


def _merge(
    scope: RequestScope, resource: Resource, live: Object, managers: Managers, config: Object
) -> Applied:
    """Merge the configuration into the live object, or its Scale. Raises Conflict, and Status
    (500)."""
    schema, options = scope.server.strategy(resource).field_schema(), scope.request.write_options
    subresource = scope.request.subresource
    write = Write(
        manager_of(options.field_manager, APPLY, resource.api_version, subresource),
        resource.api_version,
        scope.context.clock.timestamp(),
        tracking.ignored_by(resource, subresource),
    )
    try:
        applied = apply(live, config, schema, managers, write, force=options.force)
    except TypedError as error:
        raise _untyped(config, error.detail) from None
    except ConflictsError as error:
        inherited = (
            _applied_on_client(live, resource, schema)
            if options.field_manager == KUBECTL
            else EMPTY
        )
        if conflicts := [
            conflict for conflict in error.conflicts if conflict.path not in inherited
        ]:
            raise conflict_status(conflicts) from None
        applied = apply(live, config, schema, managers, write, force=True)

    if options.field_manager == KUBECTL and annotations_of(applied.object).get(LAST_APPLIED):
        return applied._replace(object=_with_last_applied(applied.object, config))
    return applied


def _with_last_applied(obj: Object, config: Object) -> Object:
    """Update the annotation that apply on the client would go by, for users who go back to it."""
    metadata = dict(config["metadata"])
    annotations = {
        name: value
        for name, value in (metadata.pop("annotations", None) or {}).items()
        if name != LAST_APPLIED
    }
    if annotations:
        metadata["annotations"] = annotations
    text = to_json({**config, "metadata": metadata}) + "\n"
    return {
        **obj,
        "metadata": {**obj["metadata"], "annotations": {**annotations_of(obj), LAST_APPLIED: text}},
    }


def _applied_on_client(live: Object, resource: Resource, schema: Schema | None) -> Fields:
    """Return the fields that client-side apply set and no other client has changed; kubectl may
    take them over."""
    try:
        last = read_json(annotations_of(live).get(LAST_APPLIED, ""))
        if last["apiVersion"] != resource.api_version:
            return EMPTY
        changes = compare(last, live, schema)
        return field_set(last, schema) - changes.modified - changes.added - changes.removed
    except (YamlError, KeyError, TypeError, TypedError):
        return EMPTY  # an annotation that cannot be read allows nothing


def _decode(scope: RequestScope, resource: Resource, merged: Any) -> Object:
    new = decode_patched(scope, resource, merged, PatchErrorStyle(lambda: to_json(merged), str))
    drop_duplicate_owners(scope.context, new)
    return new
