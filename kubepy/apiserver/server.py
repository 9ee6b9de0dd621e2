"""The API server of one cluster, less its storage, and a request in its transaction.

:class:`Server` knows the kinds and the time. A :class:`RequestScope` is one request with the server
and the transaction that it runs in; :class:`Attributes` add the objects that admission
plugins look at. Upstream: ``apiserver/pkg/endpoints/handlers`` (RequestScope),
``apiserver/pkg/admission`` (Attributes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.clock import Clock
from kubepy.api.meta import Object, is_being_deleted
from kubepy.api.scheme import Resource, Scheme
from kubepy.apiserver.accountkeys import AccountKeys, no_folder
from kubepy.apiserver.request import Request, RequestContext
from kubepy.apiserver.settings import ClusterSettings, parse_settings
from kubepy.apiserver.transaction import RequestTransaction
from kubepy.lazy import lazy_imports
from kubepy.storage import Key

with lazy_imports():
    from kubepy.api import errors
    from kubepy.apiserver import (
        attempts,  # for requests that write
        authorization,  # for reviews, and for a server that others reach
        conversion,  # for objects in several versions
    )

if TYPE_CHECKING:
    from kubepy.api.objects.usage import KnownUsage
    from kubepy.apiserver.answers import Silent
    from kubepy.apiserver.rule_settings import RuleFile
    from kubepy.apiserver.strategy import Strategy

    UsageSource = Callable[[Any], "KnownUsage | None"]  # of a Client

# The requester, as a UserInfo. There are no users here, so it is the one that a new cluster has,
# unless he impersonates another one.
ADMINISTRATOR: Object = {
    "username": "kubernetes-admin",
    "groups": ["kubeadm:cluster-admins", "system:authenticated"],
}


def drop(warning: str) -> None:
    """Drop a warning: a controller has nobody to show it to."""


def nothing_refused() -> str:
    """Return that webhooks may be called: the reason why not is empty."""
    return ""


def nothing_open() -> RuleFile:
    """Stand in for what a cluster opens."""
    raise NotImplementedError("no cluster is open")


def nothing_known(client: object) -> None:
    """Know nothing of what containers use."""


class Server:
    """What is the same for all requests of a cluster: its scheme and strategies, settings, clock
    and authorizer.

    :param new_strategy: makes the strategy of a resource; it is kept
        until :meth:`forget_strategies`.
    :ivar account_keys: finds the key that signs the tokens of ServiceAccounts.
    :ivar open_rules: opens the rules of what containers do.
    :ivar network_refusal: returns why no webhook may be called, "" where they may.
    :ivar may_have_webhooks: False after a look at the configurations of webhooks that found none,
        until there is a sign of one.
    """

    def __init__(
        self,
        scheme: Scheme,
        clock: Clock,
        new_strategy: Callable[[Resource], Strategy],
        settings: ClusterSettings,
    ) -> None:
        self.settings = settings
        self.scheme = scheme
        self.clock = clock
        self._webhooks: attempts.WebhookCalls | None = None
        self.may_have_webhooks = True
        self.silent: Silent = {}  # webhooks that timed out in predictions
        self.network_refusal: Callable[[], str] = nothing_refused
        self.open_rules: Callable[[], RuleFile] = nothing_open
        self.usage_source: UsageSource = nothing_known
        self.account_keys = AccountKeys(no_folder, settings.seed)
        self._authorizer: authorization.Authorizer | None = None
        self._new_strategy = new_strategy
        self._strategies: dict[str, Strategy] = {}
        self._clock, self._clock_setting = clock, settings.clock

    def take_over_time(self, settings: Mapping[str, Any]) -> None:
        """Set the clock to what ``kubepy.yaml`` says, if that has changed: another process has
        moved it, or somebody edited the file. Raises FolderError for a clock that cannot be read.
        """
        setting = parse_settings({"clock": settings.get("clock")}).clock
        if setting != self._clock_setting:
            self._clock_setting = self._clock.own = setting

    def resource_of(self, request: Request) -> Resource:
        """Return the resource of a request in its preferred version, and warn of what is
        deprecated.

        Raises the NotFound of a path that is not served.
        """
        resource = self.scheme.get(request.resource.group_resource)
        version = request.resource.version
        if resource is None or (
            version
            and version
            not in (resource.version, *resource.other_versions, resource.storage_version)
        ):
            raise errors.no_such_resource()

        if resource.computed_from and request.verb not in resource.verbs:
            raise errors.method_not_allowed()
        if resource.storage_key != resource.key:
            return self.scheme.by_key(resource.storage_key)
        if version and version != resource.version and request.verb not in ("create", "update"):
            # Those two warn of the version in which their object is written, when it is decoded.
            older = self.strategy(resource).warnings_of_version(resource.at(version).api_version)
            request.require_context().warn_all(older)
        elif resource.deprecation:
            request.require_context().warn(resource.deprecation)

        return resource

    def strategy(self, resource: Resource) -> Strategy:
        """Return the strategy of a resource: a custom one has its own in each version, a built-in
        one is converted."""
        key = f"{resource.key}/{resource.version}" if resource.custom else resource.key
        strategies = self._strategies
        strategy = strategies.get(key)
        if strategy is None:
            preferred = (
                self.scheme.get(resource.key)
                if resource.is_older and not resource.custom
                else resource
            )
            if preferred is None:
                raise errors.no_such_resource()
            strategy = strategies[key] = self._new_strategy(preferred)
        return strategy

    def in_version(
        self,
        resource: Resource,
        objects: Sequence[Object],
        get: Callable[[Key], Object | None],
        context: RequestContext,
    ) -> list[Object]:
        """Return objects in the version of ``resource``; they are not changed.

        :param get: reads other objects: the Service of a conversion webhook.

        Raises Status for a conversion that fails, and CallsPending.
        """
        api_version, strategy = resource.api_version, self.strategy(resource)
        if all(obj.get("apiVersion") == api_version for obj in objects):
            return list(objects)
        if resource.custom:
            return conversion.Converter(self.webhooks, context, get).convert(
                cast("Any", strategy), objects
            )
        return [strategy.in_version(obj, api_version) for obj in objects]

    @property
    def authorizer(self) -> authorization.Authorizer:
        """Decides who may do what. Requests ask it where one user gives rights to another; a server
        that others reach asks it before each request."""
        if self._authorizer is None:
            self._authorizer = authorization.AlwaysAllowAuthorizer()
        return self._authorizer

    @authorizer.setter
    def authorizer(self, authorizer: authorization.Authorizer) -> None:
        self._authorizer = authorizer

    @property
    def enforces_roles(self) -> bool:
        """Whether the roles of the cluster decide who may do what."""
        return self._authorizer is not None and self._authorizer.mode == authorization.RBAC

    @property
    def webhooks(self) -> attempts.WebhookCalls:
        """The calls of webhooks by this server."""
        if self._webhooks is None:
            self._webhooks = attempts.WebhookCalls(
                self.settings.webhooks, self.silent, self.network_refusal
            )
        return self._webhooks

    def forget_strategies(self) -> None:
        """Make all strategies anew: a CustomResourceDefinition has changed."""
        self._strategies = {}  # a thread that makes one meanwhile leaves it in the old map


class RequestScope(NamedTuple):
    """A request in its transaction.

    ``resource`` is what the request is about: a custom one in the version of the request, a
    built-in one in its preferred version, to which objects are converted when they are decoded.

    ``is_internal``: the server makes the request itself while it carries out another one; admission
    does not see it.
    """

    server: Server
    transaction: RequestTransaction
    request: Request
    resource: Resource
    is_internal: bool = False

    @property
    def context(self) -> RequestContext:
        return self.request.require_context()

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
        group, version, _ = self.request.resource
        if group != self.resource.group:
            return self.server.scheme.by_key(self.request.resource.group_resource)._replace(
                is_older=True
            )
        return self.resource.at(version) if version else self.resource

    def key_of(self, name: str) -> Key:
        """Return the key of an object of the resource, in the namespace of the request."""
        return Key(self.resource.key, self.request.namespace, name)

    def with_context(self, context: RequestContext) -> RequestScope:
        return self._replace(request=self.request._replace(context=context))

    def with_name(self, name: str) -> RequestScope:
        return self._replace(request=self.request._replace(name=name))

    # Storage keeps custom resources in a version of its own: these methods convert from it and to
    # it.

    def get(self) -> Object | None:
        """Return the object that the request names."""
        obj = self.transaction.get(self.key)
        return None if obj is None else self._read(obj)

    def require(self) -> Object:
        """Return the object that the request names. Raises NotFound."""
        return self._read(self.transaction.require(self.key))

    def _read(self, stored: Object) -> Object:
        """Return a stored object in the version of the request."""
        if not self.resource.custom:
            return stored
        return self._in_version(self.resource, self.strategy.read_stored(stored))

    def create(self, obj: Object) -> Object:
        """Store a new object; returns it as stored. Raises AlreadyExists."""
        is_plain, key = self._is_plain(obj), self.key
        stored = self.transaction.create(key, self._to_storage(obj), is_plain=is_plain)
        if is_plain:
            self.transaction.accept(key, stored)
        return stored

    def update(self, obj: Object, old: Object) -> Object:
        """Replace ``old``, which :meth:`get` has returned; returns the object as stored. Raises
        NotFound, Conflict."""
        if self.resource.custom:
            return self.transaction.update(
                self.key, self._to_storage(obj), self.transaction.require(self.key)
            )
        is_plain, key = self._is_plain(obj), self.key
        stored = self.transaction.update(key, obj, old, is_plain=is_plain)
        if is_plain:
            self.transaction.accept(key, stored)
        return stored

    def _is_plain(self, obj: Object) -> bool:
        """Tell whether decoding has made every value of an object; fields of managers are kept as
        they were sent."""
        return self.strategy.is_plain and "managedFields" not in obj["metadata"]

    def _to_storage(self, obj: Object) -> Object:
        stored = self.resource.at(self.resource.storage_version or self.resource.version)
        if obj.get("apiVersion") == stored.api_version:
            return obj
        return self._in_version(stored, obj)

    def _in_version(self, resource: Resource, obj: Object) -> Object:
        return self.server.in_version(resource, [obj], self.transaction.get, self.context)[0]


class Attributes(NamedTuple):
    """A creation (``old`` is None), update or deletion (``obj`` is deleted) as admission plugins
    look at it.

    ``obj`` belongs to the request: plugins that complete it change it. ``body`` is the kind of
    ``obj`` where that is not the resource's: a Scale, Eviction or Binding.
    """

    scope: RequestScope
    obj: Object
    old: Object | None = None
    is_deletion: bool = False
    body: Resource | None = None

    @property
    def operation(self) -> str:
        """CREATE, UPDATE or DELETE."""
        if self.is_deletion:
            return "DELETE"
        return "CREATE" if self.old is None else "UPDATE"

    @property
    def server(self) -> Server:
        return self.scope.server

    @property
    def context(self) -> RequestContext:
        return self.scope.context

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
