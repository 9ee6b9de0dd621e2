"""Creating an object (``apiserver/pkg/endpoints/handlers/create.go``, ``registry/rest/create.go``)."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.api import errors
from kubepy.api.meta import Object, clone
from kubepy.apiserver import admission
from kubepy.apiserver.managedfields.stamps import added, stamp
from kubepy.apiserver.requests.decoding import decode_request
from kubepy.apiserver.requests.server import Server, Target, drop_duplicate_owners, match_namespace
from kubepy.apiserver.requests.sessions import Session
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.apiserver.validation.metadata import (
    validate_kube_finalizers,
    validate_object_meta,
    validate_path_segments,
)

MAX_GENERATED_PREFIX = 63 - 5
NAME_ATTEMPTS = 8
# What a client cannot bring along.
_SYSTEM_FIELDS = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
                  "resourceVersion", "managedFields")


def create(server: Server, session: Session, target: Target, obj: Object, field_validation: str = "Ignore",
           manager: str = "") -> Object:
    """A new object as it is stored. ``obj`` is not changed.

    ``manager`` is the client that creates it, "" for a controller.
    Raises BadRequest, NotFound (its namespace), Forbidden, Invalid, AlreadyExists.
    """
    new = decode_request(server, target.resource, obj, field_validation)
    match_namespace(new, target)
    drop_duplicate_owners(server, new)
    if (strategy := server.strategy(target.resource)).is_answered:
        return _answered(server, strategy, new)
    asked = clone(new) if manager else new

    def managed() -> list[Object]:
        if not manager:
            return []
        return [stamp(manager, target.resource.api_version, server.clock.timestamp(), added(asked, new))]

    return create_decoded(server, session, target, new, managed)


def _answered(server: Server, strategy: Strategy, question: Object) -> Object:
    if wrong := strategy.validate(question):
        raise errors.invalid(strategy.resource.qualified_kind, question["metadata"].get("name", ""), wrong)
    return strategy.answer(question, server.requester, server.clock.timestamp())


def create_decoded(server: Server, session: Session, target: Target, new: Object,
                   managed: Callable[[], list[Object]]) -> Object:
    """The same for an object that is decoded, and belongs to this call.

    ``managed`` tells its managedFields when it is as it will be stored.
    """
    for field in _SYSTEM_FIELDS:
        new["metadata"].pop(field, None)
    admission.admit_creation(server, session, target, new)
    if not new["metadata"].get("name") and new["metadata"].get("generateName"):
        new["metadata"]["name"] = _generate_name(server, session, target, new["metadata"]["generateName"])
    return store_new(server, session, target, new, managed)


def _generate_name(server: Server, session: Session, target: Target, prefix: str) -> str:
    """A name that is free; after so many attempts the last one is taken as it is, and refused."""
    for _ in range(NAME_ATTEMPTS):
        name = prefix[:MAX_GENERATED_PREFIX] + server.ids.suffix()
        if session.get(target._replace(name=name).key) is None:
            break
    return name


def store_new(server: Server, session: Session, target: Target, obj: Object,
              managed: Callable[[], list[Object]] = list) -> Object:
    """The registry's part: system fields, what the strategy sets, validation, storage."""
    strategy = server.strategy(target.resource)
    metadata = obj["metadata"]
    metadata["creationTimestamp"] = server.clock.timestamp()
    metadata["uid"] = server.ids.uid()
    strategy.begin_create(obj, session.list)
    strategy.take_requester(obj, server.requester)
    strategy.prepare_for_create(obj)
    if strategy.has_generation:
        metadata["generation"] = 1
    if entries := managed():
        metadata["managedFields"] = entries
    validate_new(strategy, obj)
    server.warn_all(strategy.warnings_on_create(obj))
    target = target._replace(name=metadata["name"])
    admission.validate_creation(server, session, target, obj)
    charges = admission.charge_quotas(admission.Request(server, session, target, obj))
    stored = session.create(target.key, obj)
    session.charge(charges)
    return stored


def validate_new(strategy: Strategy, obj: Object) -> None:
    """Check the kind's own rules, and only when they hold those that hold for all. Raises Invalid."""
    resource, metadata = strategy.resource, obj["metadata"]
    wrong = validate_object_meta(metadata, namespaced=resource.namespaced, name_rule=strategy.validate_name)
    if resource.is_core_api:
        wrong += validate_kube_finalizers(metadata)
    wrong += strategy.validate(obj)
    wrong = wrong or validate_path_segments(metadata)
    if wrong:
        raise errors.invalid(resource.qualified_kind, metadata.get("name", ""), wrong)
