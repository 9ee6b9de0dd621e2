"""What every step of a request needs: the kinds and their strategies, the time, ids, and where warnings go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.clock import Clock, Ids
from kubepy.api.meta import Object, owner_references
from kubepy.api.scheme import Resource, Scheme
from kubepy.apiserver.strategies import strategy_for
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.quoting import printable
from kubepy.storage import Key

DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ")


class Target(NamedTuple):
    """Which object a request is about. ``name`` is "" while it is still to be generated."""

    resource: Resource
    namespace: str
    name: str = ""

    @property
    def key(self) -> Key:
        return Key(self.resource.key, self.namespace, self.name)


class Server:
    """The API server of one open cluster, less its storage: see ``creation``, ``updating``, ``deletion``."""

    def __init__(self, scheme: Scheme, clock: Clock, ids: Ids, definition_of: Callable[[Resource], Object]) -> None:
        self.scheme = scheme
        self._definition_of = definition_of
        self.clock = clock
        self.ids = ids
        self.warn: Callable[[str], None] = _drop
        self.requester: Object = ADMINISTRATOR
        self._strategies: dict[str, Strategy] = {}

    def resource(self, key: str) -> Resource:
        """Raises the NotFound of a path that is not served."""
        if (resource := self.scheme.get(key)) is None:
            raise errors.no_such_resource()
        return resource

    def target(self, resource_key: str, namespace: str, name: str = "", version: str = "") -> Target:
        """``version``: in which the request is made, if not in the one that is preferred."""
        resource = self.resource(resource_key)
        if version:
            self.warn_all(self.strategy(resource).warnings_of_version(resource.at(version).api_version))
        elif resource.deprecation:
            self.warn(resource.deprecation)
        return Target(resource, namespace if resource.namespaced else "", name)

    def strategy(self, resource: Resource) -> Strategy:
        found = self._strategies.get(resource.key)
        if found is None:
            stored = self.resource(resource.key) if resource.is_older else resource
            found = self._strategies[resource.key] = strategy_for(stored, self._definition_of)
        return found

    def forget_strategies(self) -> None:
        """A CustomResourceDefinition changed: what it says is read again."""
        self._strategies.clear()

    def warn_all(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.warn(warning)


# Who asks, as a UserInfo: there are no users here, and so it is the one that a new cluster has, unless he
# impersonates another one.
ADMINISTRATOR: Object = {"username": "kubernetes-admin", "groups": ["kubeadm:cluster-admins", "system:authenticated"]}


def _drop(warning: str) -> None:
    """Controllers have nobody to warn."""


# Subresources that an update or patch can be about.
_CHANGEABLE = ("approval", "ephemeralcontainers", "finalize", "resize", "scale", "status")


def expect_subresource(resource: Resource, subresource: str) -> None:
    """Raises NotFound for what the kind does not have, MethodNotAllowed for what is only created or not supported."""
    if not subresource:
        return
    if subresource not in resource.subresources:
        raise errors.no_such_resource()
    if subresource not in _CHANGEABLE:
        why = f"kubepy does not support changes of {resource.plural}/{subresource}"
        raise errors.MethodNotAllowed(why)


def match_namespace(obj: Object, target: Target) -> None:
    """The namespace of the request and that of the object are one (``EnsureObjectNamespaceMatchesRequestNamespace``).

    Raises BadRequest.
    """
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    if namespace == target.namespace:
        return
    if namespace and target.namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.BadRequest(why)
    if target.namespace:
        metadata["namespace"] = target.namespace
    else:
        del metadata["namespace"]


def match_name(obj: Object, target: Target) -> None:
    """Raises BadRequest if the object of an update is not the one that the request names (``checkName``)."""
    name = obj["metadata"].get("name", "")
    if name == target.name:
        return
    if not name:
        why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise errors.BadRequest(why)
    raise errors.BadRequest(f"the name of the object ({printable(name)}) does not match the name on the URL "
                            f"({printable(target.name)})")


def drop_duplicate_owners(server: Server, obj: Object) -> None:
    """An owner reference that is there twice counts once, with a warning (``dedupOwnerReferences``)."""
    references = owner_references(obj)
    kept: list[Object] = []
    duplicates = []
    for reference in references:
        if reference in kept:
            duplicates.append(reference.get("uid", ""))
        else:
            kept.append(reference)
    if duplicates:
        obj["metadata"]["ownerReferences"] = kept
        server.warn(f"{DUPLICATE_OWNERS}{', '.join(duplicates)}")
