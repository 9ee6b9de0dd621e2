"""Replacing an object or its status (``handlers/update.go``, ``registry/rest/update.go``, ``registry/store.go``)."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver import admission
from kubepy.apiserver.requests.creation import create
from kubepy.apiserver.requests.decoding import decode_request
from kubepy.apiserver.requests.server import (
    Server,
    Target,
    drop_duplicate_owners,
    expect_subresource,
    match_name,
    match_namespace,
)
from kubepy.apiserver.requests.sessions import Session
from kubepy.apiserver.strategies.strategy import Strategy, restore
from kubepy.apiserver.validation.metadata import (
    validate_common,
    validate_kube_finalizers,
    validate_object_meta_update,
)

# Where a kind's objects lie in etcd when that is not its plural: only the words of one error need it.
_ETCD_FOLDERS = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
_OWN_ETCD_FOLDERS = ("apiextensions.k8s.io", "apiregistration.k8s.io")  # groups served by other storages
_WITHOUT_SPEC = ("finalize", "status")  # subresources that leave generation as it is


def update(server: Server, session: Session, target: Target, obj: Object, subresource: str = "",
           field_validation: str = "Ignore", manager: str = "") -> Object:
    """Put ``obj`` in the place of the object that the target names; returns it as stored. ``obj`` is not changed.

    ``manager`` is the client that does it, "" for a controller.
    With metadata.resourceVersion only in the place of that version, with metadata.uid only of that object.
    Raises BadRequest, NotFound, Conflict, Invalid.
    """
    expect_subresource(target.resource, subresource)
    new = decode_request(server, target.resource, obj, field_validation)
    match_namespace(new, target)
    match_name(new, target)
    drop_duplicate_owners(server, new)
    old = session.get(target.key)
    if old is None:
        return _create_instead(server, session, target, new, subresource, manager)
    _check_uid(target, new, old)
    return replace(server, session, target, new, old, subresource, manager)


def _create_instead(server: Server, session: Session, target: Target, new: Object, subresource: str,
                    manager: str) -> Object:
    if subresource or not server.strategy(target.resource).allow_create_on_update:
        raise errors.not_found(target.resource.key, target.name)
    if uid := new["metadata"].get("uid"):
        raise _storage_conflict(target, f"Precondition failed: UID in precondition: {uid}, UID in object meta: ")
    return create(server, session, target, new, manager=manager)


def _check_uid(target: Target, new: Object, old: Object) -> None:
    """The uid of an update is a precondition that storage checks."""
    uid = new["metadata"].get("uid")
    if uid and uid != old["metadata"].get("uid"):
        raise _storage_conflict(target, f"Precondition failed: UID in precondition: {uid}, "
                                        f"UID in object meta: {old['metadata'].get('uid', '')}")


def _storage_conflict(target: Target, why: str) -> errors.Status:
    resource = target.resource
    folder = _ETCD_FOLDERS.get(resource.plural, resource.plural)
    if resource.custom or resource.group in _OWN_ETCD_FOLDERS:
        folder = f"{resource.group}/{resource.plural}"
    path = "/".join(part for part in ("/registry", folder, target.namespace, target.name) if part)
    message = f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return errors.conflict(resource.key, target.name, message)


def replace(server: Server, session: Session, target: Target, new: Object, old: Object, subresource: str = "",
            manager: str = "", managed: list[Object] | None = None) -> Object:
    """The registry's part: ``new`` is decoded and belongs to this call; ``old`` is what the session reads.

    ``managed`` are the new managedFields; without them they follow from what the ``manager`` asks for, and stay as they
    are if there is none.
    """
    strategy = server.strategy(target.resource)
    if managed is None and manager:
        managed = _tracked(server, target, new, old, subresource, manager)
    _check_version(target, strategy, new, old)
    request = admission.Request(server, session, target, new, old, subresource)
    admission.admit_update(request)
    if not subresource:
        strategy.begin_update(new, old, session.list)
    _prepare(strategy, new, old, subresource)
    _validate(strategy, new, old, subresource)
    server.warn_all(strategy.warnings_on_update(new, old))
    admission.validate_update(request)
    charges = admission.charge_quotas(request)
    _set_managers(new, old, managed)
    if is_finalized(strategy, new, old):
        session.delete(target.key)
        return new
    stored = session.update(target.key, new, old)
    session.charge(charges)
    return stored


def _tracked(server: Server, target: Target, new: Object, old: Object, subresource: str,
             manager: str) -> list[Object]:
    from kubepy.apiserver.managedfields.tracking import Writer, requested_entries, tracked_update
    from kubepy.apiserver.requests.field_schemas import field_schema

    requested = new["metadata"].get("managedFields")
    entries = requested_entries(None if subresource else requested, old["metadata"].get("managedFields"))
    writer = Writer(manager, subresource, server.clock.timestamp())
    return tracked_update(target.resource, lambda: field_schema(server, target.resource), old, new, entries, writer)


def _set_managers(new: Object, old: Object, managed: list[Object] | None) -> None:
    metadata = new["metadata"]
    restore(metadata, old["metadata"], "managedFields")
    if managed:
        metadata["managedFields"] = managed
    elif managed is not None:
        metadata.pop("managedFields", None)


def _check_version(target: Target, strategy: Strategy, new: Object, old: Object) -> None:
    version = new["metadata"].get("resourceVersion")
    version = None if version == "0" else version  # 0 is no version: the number that "" is read as
    if version and version != old["metadata"].get("resourceVersion"):
        raise errors.conflict(target.resource.key, target.name, errors.MODIFIED)
    if not version and not strategy.allow_unconditional_update:
        wrong = errors.invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise errors.invalid(target.resource.key, target.name, [wrong])
    restore(new["metadata"], old["metadata"], "resourceVersion")


def _prepare(strategy: Strategy, new: Object, old: Object, subresource: str) -> None:
    """``BeforeUpdate``: what an update cannot change is as it was."""
    metadata, before = new["metadata"], old["metadata"]
    restore(metadata, before, "generation")
    if subresource:
        strategy.prepare_for_subresource_update(new, old, subresource)
        metadata = new["metadata"]
    else:
        strategy.prepare_for_update(new, old)
    if subresource not in _WITHOUT_SPEC and strategy.has_generation and strategy.spec_changed(new, old):
        metadata["generation"] = before.get("generation", 0) + 1
    if not metadata.get("uid"):
        restore(metadata, before, "uid")
    restore(metadata, before, "creationTimestamp")
    if before.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = before["deletionTimestamp"]
    if "deletionGracePeriodSeconds" not in metadata:
        restore(metadata, before, "deletionGracePeriodSeconds")
    metadata.pop("selfLink", None)  # storage keeps none
    metadata.pop("managedFields", None)  # who manages what is settled last


def _validate(strategy: Strategy, new: Object, old: Object, subresource: str) -> None:
    if wrong := validation_errors(strategy, new, old, subresource):
        raise errors.invalid(strategy.resource.qualified_kind, new["metadata"].get("name", ""), wrong)


def validation_errors(strategy: Strategy, new: Object, old: Object, subresource: str = "") -> list[FieldError]:
    """Everything that is wrong with an update (``ValidateUpdate``)."""
    resource, metadata = strategy.resource, new["metadata"]
    wrong: list[FieldError] = validate_common(metadata, namespaced=resource.namespaced)
    wrong += validate_object_meta_update(metadata, old["metadata"])
    if resource.is_core_api:
        wrong += validate_kube_finalizers(metadata)
    if subresource:
        wrong += strategy.validate_subresource_update(new, old, subresource)
    else:
        wrong += strategy.validate_update(new, old)
    return wrong


def is_finalized(strategy: Strategy, new: Object, old: Object) -> bool:
    """Whether an update leaves nothing that holds an object being deleted (``ShouldDeleteDuringUpdate``)."""
    if new["metadata"].get("finalizers") or not old["metadata"].get("deletionTimestamp"):
        return False
    if old["metadata"].get("deletionGracePeriodSeconds"):
        return False
    return strategy.resource.key != "namespaces" or not new.get("spec", {}).get("finalizers")
