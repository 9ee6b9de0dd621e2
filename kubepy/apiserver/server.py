"""The API server of one cluster, less its storage, and the context that a request carries through it.

:class:`Server` knows the kinds, the time and the user. A :class:`RequestScope` is one request with the server and the
transaction that it runs in; :class:`Attributes` add the objects that admission plugins look at. Upstream:
``apiserver/pkg/endpoints/handlers`` (RequestScope), ``apiserver/pkg/admission`` (Attributes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.clock import Clock, Ids
from kubepy.api.meta import Object, is_being_deleted
from kubepy.api.scheme import Resource, Scheme
from kubepy.apiserver.request import Request
from kubepy.apiserver.settings import ClusterSettings
from kubepy.apiserver.strategies import Strategy
from kubepy.apiserver.transaction import RequestTransaction
from kubepy.storage import Key

# The requester, as a UserInfo. There are no users here, so it is the one that a new cluster has, unless he
# impersonates another one.
ADMINISTRATOR: Object = {"username": "kubernetes-admin", "groups": ["kubeadm:cluster-admins", "system:authenticated"]}


def drop(warning: str) -> None:
    """Drop a warning: a controller has nobody to show it to."""


class Server:
    """The scheme and strategies of a cluster, its clock and ids, the requester, and the receiver of warnings.

    :param new_strategy: makes the strategy of a resource; it is kept until :meth:`forget_strategies`.
    """

    def __init__(self, scheme: Scheme, clock: Clock, ids: Ids, new_strategy: Callable[[Resource], Strategy],
                 settings: ClusterSettings) -> None:
        self.settings = settings
        self.scheme = scheme
        self.clock = clock
        self.ids = ids
        self.warn: Callable[[str], None] = drop
        self.requester: Object = ADMINISTRATOR
        self._new_strategy = new_strategy
        self._strategies: dict[str, Strategy] = {}

    def resource_of(self, request: Request) -> Resource:
        """Return the resource of a request in its preferred version, and warn of what is deprecated.

        Raises the NotFound of a path that is not served.
        """
        resource = self.scheme.get(request.resource.group_resource)
        version = request.resource.version
        if resource is None or (version and version not in (resource.version, *resource.other_versions)):
            raise errors.no_such_resource()
        if version and version != resource.version and request.verb not in ("create", "update"):
            # Those two warn of the version in which their object is written, when it is decoded.
            self.warn_all(self.strategy(resource).warnings_of_version(resource.at(version).api_version))
        elif resource.deprecation:
            self.warn(resource.deprecation)
        return resource

    def strategy(self, resource: Resource) -> Strategy:
        strategy = self._strategies.get(resource.key)
        if strategy is None:
            preferred = self.scheme.get(resource.key) if resource.is_older else resource
            if preferred is None:
                raise errors.no_such_resource()
            strategy = self._strategies[resource.key] = self._new_strategy(preferred)
        return strategy

    def forget_strategies(self) -> None:
        """Make all strategies anew: a CustomResourceDefinition has changed."""
        self._strategies.clear()

    def warn_all(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.warn(warning)


class RequestScope(NamedTuple):
    """A request in its transaction. ``resource`` is what the request is about, in its preferred version."""

    server: Server
    transaction: RequestTransaction
    request: Request
    resource: Resource

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def namespace(self) -> str:
        return self.request.namespace

    @property
    def key(self) -> Key:
        return Key(self.resource.key, self.request.namespace, self.request.name)

    @property
    def strategy(self) -> Strategy:
        return self.server.strategy(self.resource)

    @property
    def requested_resource(self) -> Resource:
        """The resource in the version that the request names."""
        version = self.request.resource.version
        return self.resource.at(version) if version else self.resource

    def with_name(self, name: str) -> RequestScope:
        return self._replace(request=self.request._replace(name=name))


class Attributes(NamedTuple):
    """A creation (``old`` is None), update or deletion (``obj`` is deleted) as admission plugins look at it.

    ``obj`` belongs to the request: plugins that complete it change it.
    """

    scope: RequestScope
    obj: Object
    old: Object | None = None

    @property
    def server(self) -> Server:
        return self.scope.server

    @property
    def transaction(self) -> RequestTransaction:
        return self.scope.transaction

    @property
    def resource(self) -> Resource:
        return self.scope.resource

    @property
    def namespace(self) -> str:
        return self.scope.namespace

    @property
    def name(self) -> str:
        return self.scope.name

    @property
    def subresource(self) -> str:
        return self.scope.request.subresource

    @property
    def is_being_deleted(self) -> bool:
        return self.old is not None and is_being_deleted(self.old)

    def forbidden(self, detail: str, causes: Sequence[errors.Cause] = ()) -> errors.Forbidden:
        """Make the error ``pods "x" is forbidden: detail`` (``admission.NewForbidden``)."""
        metadata = self.obj["metadata"]
        name = metadata.get("name") or metadata.get("generateName") or "Unknown"
        return errors.forbidden(self.resource.key, name, detail, causes)
