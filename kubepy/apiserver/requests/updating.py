"""Replacing an object or its status (``handlers/update.go``, ``registry/rest/update.go``,
``registry/store.go``)."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.request import CreateOptions
from kubepy.apiserver.requests import admission
from kubepy.apiserver.requests.creation import create
from kubepy.apiserver.requests.decoding import (
    check_subresource,
    decode_request,
    drop_duplicate_owners,
    match_name,
    match_namespace,
)
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.transaction import PODS
from kubepy.apiserver.validation.metadata import (
    validate_common,
    validate_kube_finalizers,
    validate_object_meta_update,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.managedfields import tracking
    from kubepy.apiserver.requests import (
        escalation,  # for servers that enforce roles
        podbatches,
    )

# The folders of kinds in etcd that differ from their plurals; only the words of one error need
# them.
_ETCD_FOLDERS = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
_OWN_ETCD_FOLDERS = (
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
)  # groups served by other storages
_WITHOUT_SPEC = ("finalize", "status")  # subresources that leave generation as it is


def update(scope: RequestScope, obj: Object) -> Object:
    """Replace the object that the request names, and return it as stored; ``obj`` is not changed.

    With metadata.resourceVersion only that version is replaced, with metadata.uid only that object.
    Raises BadRequest, NotFound, Conflict, Invalid.
    """
    check_subresource(scope)
    if (
        scope.request.subresource == "status"
        and (stored := _status_in_batch(scope, obj)) is not None
    ):
        return stored

    new = decode_request(scope, scope.resource, obj)
    match_namespace(new, scope)
    match_name(new, scope)
    drop_duplicate_owners(scope.context, new)
    uid = new["metadata"].get("uid")
    old = scope.get()
    if old is None:
        if scope.request.subresource or not scope.strategy.allow_create_on_update:
            raise errors.not_found(scope.resource.key, scope.name)
        if uid:
            raise _uid_conflict(scope, uid, "")
        options = CreateOptions(field_manager=scope.request.write_options.field_manager)
        return create(
            scope._replace(request=scope.request._replace(verb="create", options=options)), new
        )

    if uid and uid != old["metadata"].get("uid"):
        raise _uid_conflict(scope, uid, old["metadata"].get("uid", ""))
    return replace(scope, new, old)


def _status_in_batch(scope: RequestScope, obj: Object) -> Object | None:
    memory = podbatches.memory_of(scope) if scope.resource.key == PODS else None
    return podbatches.update_status(scope, memory, obj) if memory is not None else None


def _uid_conflict(scope: RequestScope, uid: str, stored_uid: str) -> errors.Conflict:
    """Make the error of the uid as a precondition, which upstream's storage checks."""
    resource = scope.resource
    folder = _ETCD_FOLDERS.get(resource.plural, resource.plural)
    if resource.custom or resource.group in _OWN_ETCD_FOLDERS:
        folder = f"{resource.group}/{resource.plural}"
    path = "/".join(part for part in ("/registry", folder, scope.namespace, scope.name) if part)
    return errors.conflict(
        resource.key,
        scope.name,
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {stored_uid}",
    )


def replace(
    scope: RequestScope, new: Object, old: Object, managed_fields: list[Object] | None = None
) -> Object:
    """Replace ``old``, as the transaction reads it, by ``new``, which is decoded and belongs to
    this call.

    :param managed_fields: the new managedFields. Without them they follow from what the request's
        field manager changes, and stay as they are if there is none.
    """
    server, strategy, subresource = scope.server, scope.strategy, scope.request.subresource
    if managed_fields is None and scope.request.write_options.field_manager:
        requested = None if subresource else new["metadata"].get("managedFields")
        entries = tracking.requested_entries(requested, old["metadata"].get("managedFields"))
        writer = tracking.Writer(
            scope.request.write_options.field_manager, subresource, scope.context.clock.timestamp()
        )
        managed_fields = tracking.tracked_update(
            scope.resource, strategy.field_schema, old, new, entries, writer
        )

    _check_version(scope, new, old)
    attributes = Attributes(scope, new, old)
    admission.admit(attributes)
    if server.enforces_roles:
        escalation.confirm_no_escalation(attributes)
    if not subresource:
        strategy.begin_update(new, old, scope.transaction.list)
    _prepare(strategy, new, old, subresource)
    metadata = new["metadata"]
    if problems := validation_errors(strategy, new, old, subresource):
        raise errors.invalid(strategy.resource.qualified_kind, metadata.get("name", ""), problems)
    scope.context.warn_all(strategy.warnings_on_update(new, old))
    admission.validate(attributes)
    charges = admission.charge_quotas(attributes)
    restore(metadata, old["metadata"], "managedFields")
    if managed_fields:
        metadata["managedFields"] = managed_fields
        tracking.keep_times(scope.resource, strategy.field_schema, new, old)
    elif managed_fields is not None:
        metadata.pop("managedFields", None)

    if is_finalized(strategy, new, old):
        scope.transaction.delete(scope.key)
        return new
    stored = scope.update(new, old)
    scope.transaction.charge(charges)
    return stored


def _check_version(scope: RequestScope, new: Object, old: Object) -> None:
    """Check metadata.resourceVersion as a precondition. Raises Conflict, Invalid where the kind
    requires it."""
    version = new["metadata"].get("resourceVersion")
    version = None if version == "0" else version  # 0 is no version: the number that "" is read as
    if version and version != old["metadata"].get("resourceVersion"):
        raise errors.conflict(scope.resource.key, scope.name, errors.MODIFIED)
    if not version and not scope.strategy.allow_unconditional_update:
        problem = errors.invalid_value(
            "metadata.resourceVersion", 0, "must be specified for an update"
        )
        raise errors.invalid(scope.resource.key, scope.name, [problem])
    restore(new["metadata"], old["metadata"], "resourceVersion")


def _prepare(strategy: Strategy, new: Object, old: Object, subresource: str) -> None:
    """Restore what an update cannot change (``BeforeUpdate``)."""
    metadata, old_metadata = new["metadata"], old["metadata"]
    restore(metadata, old_metadata, "generation")
    if subresource:
        strategy.prepare_for_subresource_update(new, old, subresource)
        metadata = new["metadata"]
    else:
        strategy.prepare_for_update(new, old)

    if (
        subresource not in _WITHOUT_SPEC
        and strategy.has_generation
        and strategy.spec_changed(new, old)
    ):
        metadata["generation"] = old_metadata.get("generation", 0) + 1

    if not metadata.get("uid"):
        restore(metadata, old_metadata, "uid")
    restore(metadata, old_metadata, "creationTimestamp")
    if old_metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = old_metadata["deletionTimestamp"]
    if "deletionGracePeriodSeconds" not in metadata:
        restore(metadata, old_metadata, "deletionGracePeriodSeconds")
    metadata.pop("selfLink", None)  # storage keeps none
    metadata.pop("managedFields", None)  # set last, in replace


def validation_errors(
    strategy: Strategy, new: Object, old: Object, subresource: str = ""
) -> list[FieldError]:
    """Return all that is wrong with an update (``ValidateUpdate``)."""
    resource, metadata = strategy.resource, new["metadata"]
    problems: list[FieldError] = validate_common(metadata, namespaced=resource.namespaced)
    problems += validate_object_meta_update(metadata, old["metadata"])
    problems += validate_kube_finalizers(resource, metadata)
    if subresource:
        problems += strategy.validate_subresource_update(new, old, subresource)
    else:
        problems += strategy.validate_update(new, old)
    return problems


def is_finalized(strategy: Strategy, new: Object, old: Object) -> bool:
    """Tell whether an update removes the last hold on an object being deleted
    (``ShouldDeleteDuringUpdate``)."""
    if new["metadata"].get("finalizers") or not old["metadata"].get("deletionTimestamp"):
        return False
    if old["metadata"].get("deletionGracePeriodSeconds"):
        return False
    return strategy.resource.key != "namespaces" or not new.get("spec", {}).get("finalizers")
