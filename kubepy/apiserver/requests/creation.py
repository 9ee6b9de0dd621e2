"""Creating an object (``apiserver/pkg/endpoints/handlers/create.go``,
``registry/rest/create.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubepy.api import errors
from kubepy.api.meta import Object, clone
from kubepy.api.scheme import Resource
from kubepy.apiserver.managedfields.stamps import added, stamp
from kubepy.apiserver.request import Request
from kubepy.apiserver.requests import admission
from kubepy.apiserver.requests.decoding import (
    decode,
    decode_request,
    drop_duplicate_owners,
    ensure_namespace,
    match_namespace,
)
from kubepy.apiserver.server import Attributes, RequestScope, Server
from kubepy.apiserver.strategy import Strategy
from kubepy.apiserver.transaction import PODS
from kubepy.apiserver.validation.metadata import (
    validate_kube_finalizers,
    validate_object_meta,
    validate_path_segments,
)
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from kubepy.apiserver.authorization import ReviewContext

with lazy_imports():
    from kubepy.apiserver.managedfields import tracking
    from kubepy.apiserver.requests import (
        escalation,  # for servers that enforce roles
        podbatches,
    )

MAX_GENERATED_PREFIX = 63 - 5
NAME_ATTEMPTS = 8
# Metadata that only the server sets.
_SYSTEM_FIELDS = (
    "creationTimestamp",
    "uid",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "resourceVersion",
    "managedFields",
)


def create(scope: RequestScope, obj: Object) -> Object:
    """Create an object and return it as stored; ``obj`` is not changed.

    Raises BadRequest, NotFound (of its namespace), Forbidden, Invalid, AlreadyExists.
    """
    memory = podbatches.memory_of(scope) if scope.resource.key == PODS else None
    mark = podbatches.mark_of(scope, obj) if memory is not None else None
    if memory is None or mark is None:
        return _create(scope, obj)
    if (stored := podbatches.create_alike(scope, memory, mark, obj, _generate_name)) is None:
        stored = _create(scope, obj)
        podbatches.remember(scope, memory, mark, obj, stored)
    return stored


def _create(scope: RequestScope, obj: Object) -> Object:
    """Create an object whatever it is."""
    manager = scope.request.write_options.field_manager
    new = decode_request(scope, scope.resource, obj)
    match_namespace(new, scope)
    drop_duplicate_owners(scope.context, new)
    if not manager:
        return create_decoded(scope, new, list)
    requested = clone(new)

    def managed_fields() -> list[Object]:
        return [
            stamp(
                manager,
                scope.resource.api_version,
                scope.context.clock.timestamp(),
                added(requested, new),
            )
        ]

    return create_decoded(scope, new, managed_fields)


def answer_review(
    server: Server, resource: Resource, review: Object, request: Request, context: ReviewContext
) -> Object:
    """Answer a review: an object whose creation is a question, and which is not stored. Raises
    BadRequest, Invalid."""
    options = request.write_options
    obj = decode(server, resource, review, options, request.require_context().warn)
    metadata, strategy = obj["metadata"], server.strategy(resource)
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)
    ensure_namespace(metadata, context.namespace)
    if options.field_manager:
        metadata |= tracked_creation(strategy, obj, options.field_manager, context.now)
    if problems := strategy.validate(obj):
        # Upstream's objects have lost their kind here.
        raise errors.invalid(f".{resource.group}", "", problems)
    return strategy.answer(obj, context)


def tracked_creation(strategy: Strategy, obj: Object, manager: str, time: str) -> Object:
    """Return the ``managedFields``, if there are any, of an object that is sent back without being
    stored."""
    resource, metadata = strategy.resource, obj["metadata"]
    entries = [stamp(manager, resource.api_version, time)]
    sent = {field: value for field, value in obj.items() if field != "status"}
    tracked = tracking.shown(
        resource,
        strategy.field_schema(),
        {**sent, "metadata": {**metadata, "managedFields": entries}},
    )
    return {
        field: value for field, value in tracked["metadata"].items() if field == "managedFields"
    }


def create_decoded(
    scope: RequestScope, new: Object, managed_fields: Callable[[], list[Object]]
) -> Object:
    """Create an object that is decoded and belongs to this call.

    :param managed_fields: makes its managedFields; it is called when the object is as it will be
        stored.
    """
    for field in _SYSTEM_FIELDS:
        new["metadata"].pop(field, None)
    attributes = Attributes(scope, new)
    admission.admit(attributes)
    if scope.server.enforces_roles:
        escalation.authorize_creation(scope)
        escalation.confirm_no_escalation(attributes)
    metadata = new["metadata"]
    generate_name = metadata.get("generateName") or ""
    names_given = 0
    if not metadata.get("name") and generate_name:
        metadata["name"], names_given = _generate_name(scope, generate_name)
    strategy, ids = scope.strategy, scope.context.ids
    scope = scope.with_name(metadata.get("name") or "")
    metadata["creationTimestamp"] = scope.context.clock.timestamp()
    metadata["uid"] = (
        scope.transaction.generated_uid(ids, scope.key, generate_name, names_given)
        if names_given
        else scope.transaction.new_uid(ids, scope.key)
    )
    strategy.begin_create(new, scope.transaction.list)
    strategy.take_requester(new, scope.context.user)
    strategy.prepare_for_create(new)
    if strategy.has_generation and strategy.first_generation:
        metadata["generation"] = strategy.first_generation
    if entries := managed_fields():
        metadata["managedFields"] = entries
    validate_new(strategy, new)
    scope.context.warn_all(strategy.warnings_on_create(new))
    attributes = Attributes(scope, new)
    admission.validate(attributes)
    admission.check_limits(scope, metadata["name"])
    charges = admission.charge_quotas(attributes)
    scope.transaction.count_object(scope.key, generate_name if names_given else "", names_given)
    stored = scope.create(new)
    scope.transaction.charge(charges)
    return stored


def _generate_name(scope: RequestScope, prefix: str) -> tuple[str, int]:
    """Return a name that is free, and how many names the prefix has been given with it: at least 1.

    After NAME_ATTEMPTS the last one is used as it is, and refused.
    """
    subject, ids = scope.key_of(prefix), scope.context.ids
    number = scope.transaction.names_given(subject)
    for attempt in range(NAME_ATTEMPTS):
        name = prefix[:MAX_GENERATED_PREFIX] + ids.suffix(*subject, number=number, attempt=attempt)
        if scope.transaction.get(scope.key_of(name)) is None:
            break
    return name, number + attempt + 1


def validate_new(strategy: Strategy, obj: Object) -> None:
    """Validate a new object; path segments are checked only if nothing else is wrong. Raises
    Invalid."""
    resource, metadata = strategy.resource, obj["metadata"]
    problems = validate_object_meta(
        metadata, namespaced=resource.namespaced, name_rule=strategy.validate_name
    )
    problems += validate_kube_finalizers(resource, metadata)
    problems += strategy.validate(obj)
    problems = problems or validate_path_segments(metadata)
    if problems:
        raise errors.invalid(resource.qualified_kind, metadata.get("name", ""), problems)
