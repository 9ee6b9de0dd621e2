"""Server-side apply: a request with the fields that its manager wants, and only those.

Upstream: ``apiserver/pkg/endpoints/handlers/patch.go`` (applyPatcher),
``apimachinery/pkg/util/managedfields/internal/{structuredmerge,lastappliedmanager,lastappliedupdater}.go``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object, annotations_of
from kubepy.api.schema.openapi import Schema
from kubepy.api.scheme import Resource
from kubepy.api.values.goformat import to_json
from kubepy.apiserver.managedfields import tracking
from kubepy.apiserver.managedfields.entries import APPLY, Conflict, Managers, conflict_status, manager_of
from kubepy.apiserver.managedfields.fieldpath import EMPTY, Fields, fields_path
from kubepy.apiserver.managedfields.scales import scale_managers, with_scale_managers
from kubepy.apiserver.managedfields.typed import TypedError, compare, field_set
from kubepy.apiserver.managedfields.updater import Applied, ConflictsError, apply
from kubepy.apiserver.managedfields.validating import problems, text_of
from kubepy.apiserver.requests.creation import create_decoded
from kubepy.apiserver.requests.decoding import PatchWords, decode_patched
from kubepy.apiserver.requests.field_schemas import field_schema
from kubepy.apiserver.requests.scaling import SCALE, scale_paths, scale_to_change, store_scale
from kubepy.apiserver.requests.server import Server, Target, drop_duplicate_owners, match_name, match_namespace
from kubepy.apiserver.requests.sessions import Session
from kubepy.apiserver.requests.updating import replace
from kubepy.quoting import printable
from kubepy.storage.yaml import YamlError, read_json

KUBECTL = "kubectl"  # the manager that inherits from apply on the client
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Request(NamedTuple):
    """An apply: the configuration, who applies, and whether conflicts are taken over."""

    config: Object
    manager: str
    subresource: str = ""
    force: bool = False
    field_validation: str = "Ignore"


def apply_object(server: Server, session: Session, target: Target, request: Request) -> Object:
    """Apply a configuration; the object as it is stored. Raises Conflict, BadRequest, NotFound, Invalid, Status 500."""
    _check(target.resource, request)
    schema = field_schema(server, target.resource)
    if found := problems(request.config, schema):
        raise _untyped(target.resource, request.config, text_of(found))
    old = session.get(target.key)
    if old is None and request.subresource:
        raise errors.not_found(target.resource.key, target.name)
    if old is None and (uid := request.config["metadata"].get("uid")):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise errors.conflict(target.resource.key, target.name, why)
    live = tracking.bare(old) if old else _empty(target.resource)
    entries = (old["metadata"].get("managedFields") or []) if old else []
    unknown = (tracking.BEFORE_APPLY, server.clock.timestamp())
    managers = tracking.complete(target.resource, schema, live, entries, unknown) if old else {}
    merged, changed = _merged(server, target.resource, schema, live, managers, request)
    new, managed = _decoded(server, target, merged, request), tracking.written(entries, managers, changed)
    if old is None:
        return create_decoded(server, session, target, new, lambda: managed)
    new["metadata"].setdefault("resourceVersion", old["metadata"]["resourceVersion"])
    return replace(server, session, target, new, old, request.subresource, managed=managed)


def apply_scale(server: Server, session: Session, target: Target, request: Request) -> Object:
    """Apply a Scale to an object; returns its Scale. Raises as ``apply_object``."""
    paths, old = scale_paths(target.resource), session.require(target.key)
    _check(SCALE, request)
    schema = field_schema(server, SCALE)
    if found := problems(request.config, schema):
        raise _untyped(SCALE, request.config, text_of(found))
    entries, replicas = old["metadata"].get("managedFields") or [], fields_path(*paths.replicas)
    managers = tracking.complete(target.resource, field_schema(server, target.resource), tracking.bare(old), entries)
    scale = scale_to_change(target.resource, paths, old)
    merged, changed = _merged(server, SCALE, schema, scale, scale_managers(managers, replicas), request)
    after = with_scale_managers(managers, changed, replicas, target.resource.api_version)
    new = _decoded(server, target._replace(resource=SCALE), merged, request)
    return store_scale(server, session, target, new, old, tracking.written(entries, managers, after))


def _check(resource: Resource, request: Request) -> None:
    if not request.manager:
        wrong = errors.required("fieldManager", "is required for apply patch")
        raise errors.invalid("PatchOptions.meta.k8s.io", "", [wrong])
    config = request.config
    if not isinstance(config, dict) or not isinstance(config.get("metadata"), dict):
        raise errors.BadRequest("error decoding YAML: the applied configuration is not an object with metadata")
    if (config.get("apiVersion"), config.get("kind")) != (resource.api_version, resource.kind):
        raise errors.BadRequest(f"invalid object type: {_kind_text(config)}")
    if config["metadata"].get("managedFields") is not None:
        raise errors.BadRequest("metadata.managedFields must be nil")


def _kind_text(obj: Object) -> str:
    """``apps/v1, Kind=Deployment``, ``/v1, Kind=Pod``."""
    version = str(obj.get("apiVersion", ""))
    return f"{version if '/' in version else f'/{version}'}, Kind={obj.get('kind', '')}"


def _untyped(resource: Resource, config: Object, why: str) -> errors.Status:
    metadata = config["metadata"]
    place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {_kind_text(config)}"
    return errors.Status(f"failed to create typed patch object ({printable(place)}): {why}")


def _empty(resource: Resource) -> Object:
    """An object without anything, as Go has it."""
    from kubepy.api.types import decode

    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "metadata": {}} if resource.custom else decode(kind).object


def _merged(server: Server, resource: Resource, schema: Schema | None, live: Object, managers: Managers,
            request: Request) -> Applied:
    """The object with the configuration, and its managers. Raises Conflict."""
    try:
        return _applied(server, resource, schema, live, request, managers, force=request.force)
    except TypedError as error:
        raise _untyped(resource, request.config, error.why) from None
    except ConflictsError as error:
        conflicts = error.conflicts
        if request.manager == KUBECTL:
            allowed = _applied_on_client(live, resource, schema)
            conflicts = [one for one in conflicts if one.path not in allowed]
        if conflicts:
            raise conflict_status(conflicts) from None
    return _applied(server, resource, schema, live, request, managers, force=True)


def _applied(server: Server, resource: Resource, schema: Schema | None, live: Object, request: Request,
             managers: Managers, *, force: bool) -> Applied:
    manager = manager_of(request.manager, APPLY, resource.api_version, request.subresource)
    ignored = tracking.ignored_by(resource, request.subresource)
    applied = apply(live, request.config, schema, managers, manager, resource.api_version, server.clock.timestamp(),
                    force=force, ignored=ignored)
    if request.manager == KUBECTL and annotations_of(applied.object).get(LAST_APPLIED):
        return applied._replace(object=_with_last_applied(applied.object, request.config))
    return applied


def _with_last_applied(obj: Object, config: Object) -> Object:
    """Who goes back to apply on the client finds what was applied last."""
    metadata = dict(config["metadata"])
    annotations = {key: one for key, one in (metadata.pop("annotations", None) or {}).items() if key != LAST_APPLIED}
    if annotations:
        metadata["annotations"] = annotations
    text = to_json({**config, "metadata": metadata}) + "\n"
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations_of(obj), LAST_APPLIED: text}}}


def _applied_on_client(live: Object, resource: Resource, schema: Schema | None) -> Fields:
    """What apply on the client set and still is so: kubectl takes it over without a conflict."""
    try:
        last = read_json(annotations_of(live).get(LAST_APPLIED, ""))
        if last["apiVersion"] != resource.api_version:
            return EMPTY
        changes = compare(last, live, schema)
        return field_set(last, schema) - changes.modified - changes.added - changes.removed
    except (YamlError, KeyError, TypeError, TypedError):
        return EMPTY  # an annotation that cannot be read allows nothing


def _decoded(server: Server, target: Target, merged: Any, request: Request) -> Object:
    words = PatchWords(lambda: to_json(merged), str)
    new = decode_patched(server, target.resource, merged, request.field_validation, words)
    match_namespace(new, target)
    match_name(new, target)
    drop_duplicate_owners(server, new)
    return new


__all__ = ["Conflict", "Request", "apply_object", "apply_scale"]
