"""The one Client that everything above the API machinery uses.

:meth:`Client.do` takes a whole :class:`~kubepy.apiserver.request.Request`; ``get``, ``create`` and
the others make one of a resource, a name and options. A resource is a GroupVersionResource, or a
string such as ``daemonsets.apps`` for its preferred version. Objects are dicts; those that come out
are shared and read-only. Errors are :class:`kubepy.api.errors.Status`. Warnings that a server would
send go to the ``warn`` of the context of a request (the CLI prints them, controllers drop them).

A Client has a context for all of its requests; :meth:`Client.as_user`, :meth:`Client.silenced`,
:meth:`Client.observed` and :meth:`Client.with_context` return clients that differ in it and have
everything else in common. A request is its own transaction, or one of many in a
:meth:`Client.batch`.
``kubepy.apiserver.requests`` does the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

from kubepy.api.clock import Clock, Ids, format_exact_time
from kubepy.api.meta import Object
from kubepy.api.scheme import GroupVersionResource, Resource
from kubepy.apiserver.request import (
    CollectionOptions,
    CreateOptions,
    DeleteOptions,
    ListOptions,
    OnWrite,
    Patch,
    PatchOptions,
    Request,
    RequestContext,
    UpdateOptions,
    Warn,
    WriteOptions,
)
from kubepy.apiserver.server import ADMINISTRATOR, RequestScope, Server, drop
from kubepy.apiserver.settings import IMPLIED, MODELLED, ClusterSettings
from kubepy.apiserver.transaction import (
    BatchMemory,
    RequestTransaction,
    count_recorded,
    with_implied,
)
from kubepy.lazy import lazy_imports
from kubepy.storage import (
    Change,
    CompactedError,
    ConflictError,
    Key,
    Problem,
    Snapshot,
    StorageError,
    is_disk_full,
)
from kubepy.storage.frozen import thawed
from kubepy.storage.model import in_full, set_version, to_json

if TYPE_CHECKING:
    from kubepy.api.objects.usage import KnownUsage
    from kubepy.api.schema.openapi import Schema
    from kubepy.apiserver.customresources.strategy import CustomStrategy
    from kubepy.apiserver.fault_settings import FaultSettings
    from kubepy.apiserver.rule_settings import RuleFile
    from kubepy.storage.store import Reads, Store, Transaction
    from kubepy.storage.worktree import WorkTree

with lazy_imports():
    from kubepy.api import errors, watch
    from kubepy.apiserver import answers, attempts, authorization, implied, nodeleases, tokens
    from kubepy.apiserver.admission import matching
    from kubepy.apiserver.managedfields import tracking
    from kubepy.apiserver.requests import (
        creation,
        decoding,
        deletion,
        metrics,
        patching,
        pods,
        scaling,
        updating,
    )
    from kubepy.apiserver.validation import metadata as validation_metadata
    from kubepy.storage import view

# Aliases, because the method ``Client.list`` hides the builtin inside its class.
Objects = list[Object]
Changes = list[Change]
Events = list["watch.WatchEvent"]
ChosenObjects = list[Object | None]
Observed = Callable[[Key], Object | None]

T = TypeVar("T")
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
WEBHOOK_CONFIGURATIONS = tuple(
    f"{type_}webhookconfigurations.admissionregistration.k8s.io"
    for type_ in ("mutating", "validating")
)
PODS = GroupVersionResource.parse("pods")
BINDINGS, COMPONENT_STATUSES = "bindings", "componentstatuses"
LEASES = "leases.coordination.k8s.io"
REVIEW_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
MAX_CONFLICTS = 100  # of one request with others who write the same objects
SELECTED_TOGETHER = 20  # objects of a stream
_WRITE, _DELETE = WriteOptions(), DeleteOptions()


class ObjectList(NamedTuple):
    """A snapshot: objects in (namespace, name) order at one resource version.

    ``problems`` are the files among those listed that cannot be objects.
    """

    items: list[Object]
    resource_version: str
    problems: tuple[Problem, ...] = ()


class ObservedEvents(NamedTuple):
    """Changes in their order: own ones of a batch, or those of others."""

    events: Events
    is_own: bool


class Batch:
    """Many requests in one transaction (see :meth:`Client.batch`), or in several where webhooks are
    called in between.

    :ivar events: the writes since the last :meth:`drain`.
    :ivar copies: objects in another version than the stored ones, with these.
    :ivar answers: what requests know of webhooks at first: which have timed out in the batch.
    """

    def __init__(self, transaction: Transaction, outside: Events) -> None:
        self.events: Events = []
        self.copies: list[tuple[Object, Object]] = []
        self.memory: BatchMemory | None = None
        self.requests: RequestTransaction | None = None
        self.answers: answers.Answers | None = None
        self.suspend: Callable[[], AbstractContextManager[None]] = nullcontext
        self._transaction = transaction
        self._drained: list[ObservedEvents] = [ObservedEvents(outside, is_own=False)]
        self._failure: BaseException | None = None

    @property
    def transaction(self) -> Transaction:
        """The transaction that is open. Raises the error for which there is none any more."""
        if self._failure is not None:
            raise self._failure
        return self._transaction

    def go_on(self, transaction: Transaction, outside: Events) -> None:
        """Go on in another transaction, before which others have made changes."""
        self._drained += [
            ObservedEvents([*self.events], is_own=True),
            ObservedEvents(outside, is_own=False),
        ]
        self.events.clear()
        self._transaction, self.requests = transaction, None
        self.memory = BatchMemory()

    def committed(self) -> None:
        """Give the copies of objects the versions that these have now."""
        for copy, stored in self.copies:
            set_version(copy, int(stored["metadata"]["resourceVersion"]))
        self.copies.clear()

    def fail(self, error: BaseException) -> None:
        """Note that no transaction is open any more."""
        self._failure = error

    def drain(self) -> Events:
        """Return the changes since the last call, in order."""
        return [event for part in self.drain_parts() for event in part.events]

    def drain_parts(self) -> list[ObservedEvents]:
        """Return the changes since the last call, in order: edits from outside and other processes'
        writes up to the beginning of a transaction, and the batch's own writes.

        Raises the error for which no transaction is open any more.
        """
        if self._failure is not None:
            raise self._failure
        parts = [*self._drained, ObservedEvents([*self.events], is_own=True)]
        self.events.clear()
        self._drained.clear()
        return [
            ObservedEvents(
                [change for event in part.events for change in watch.split_replacement(event)],
                part.is_own,
            )
            for part in parts
            if part.events
        ]


class Session:
    """The state that clients share who work together in one thread.

    :ivar batch: the one that is open.
    :ivar since: the revision after which the next batch's events begin; None: at its own.
    :ivar event_memories: of recorders of events, by component; the manager keeps them.
    """

    def __init__(self) -> None:
        self.batch: Batch | None = None
        self.since: int | None = None
        self.event_memories: dict[str, Any] = {}
        self.tokens: tokens.Tokens | None = None


class Client:
    """The API of one cluster.

    :param ids: draws uids and generated names.
    :param copied: opens a store in memory that goes on from what is stored now.
    :param worktree: what the store has if it keeps its objects as files.
    """

    def __init__(
        self,
        store: Store,
        server: Server,
        ids: Ids,
        copied: Callable[[], AbstractContextManager[Store]],
        worktree: WorkTree | None = None,
    ) -> None:
        self._store = store
        self._copied = copied
        self._worktree = worktree
        self._server = server
        self._settings = server.settings
        self._session = Session()
        self._context = RequestContext(ADMINISTRATOR, drop, server.clock, ids)

    @property
    def clock(self) -> Clock:
        return self._server.clock

    @property
    def ids(self) -> Ids:
        return self._context.ids

    @property
    def settings(self) -> ClusterSettings:
        return self._settings

    def open_rules(self) -> RuleFile:
        """Open the rules of what containers do, which may change while the cluster is open."""
        return self._server.open_rules()

    def known_usage(self) -> KnownUsage | None:
        """Return what tells the usage of containers beside annotations; None where nothing does."""
        return self._server.usage_source(self)

    @property
    def context(self) -> RequestContext:
        """The context of requests that bring none of their own."""
        return self._context

    def with_context(self, context: RequestContext) -> Self:
        """Return a client with another context, in the same batch as this one."""
        client = object.__new__(type(self))
        client.__dict__.update(self.__dict__)
        client._context = context
        return client

    def as_user(self, user: Object) -> Self:
        """Return a client for the requests of a user, a UserInfo (``authentication.k8s.io``)."""
        return self.with_context(self._context._replace(user=user))

    def with_warn(self, warn: Warn) -> Self:
        """Return a client whose warnings go to a function."""
        return self.with_context(self._context._replace(warn=warn))

    def silenced(self) -> Self:
        """Return a client whose warnings are dropped."""
        return self.with_warn(drop)

    def observed(self, *observers: OnWrite) -> Self:
        """Return a client that tells functions, too, of each of its requests that has written."""
        context = self._context
        return self.with_context(context._replace(observers=(*context.observers, *observers)))

    def with_faults(self, faults: FaultSettings | None, ids: Ids) -> Self:
        """Return a client that has other faults in its settings, and draws from other ids."""
        client = self.with_context(self._context._replace(ids=ids))
        client._settings = self._settings._replace(faults=faults)
        return client

    def apart(self) -> Self:
        """Return a client for another thread: it shares no batch with this one."""
        client = self.with_context(self._context)
        client._session = Session()
        client._session.tokens = self._session.tokens
        return client

    @property
    def user(self) -> Object:
        """The user who makes the requests, as a UserInfo."""
        return self._context.user

    @property
    def warn(self) -> Warn:
        return self._context.warn

    @property
    def event_memories(self) -> dict[str, Any]:
        """The memories of recorders of events, by component; the manager keeps them."""
        return self._session.event_memories

    @property
    def _batch(self) -> Batch | None:
        return self._session.batch

    @property
    def authorizer(self) -> authorization.Authorizer:
        """The authorizer of the requests (:attr:`Server.authorizer`)."""
        return self._server.authorizer

    def use_authorization(self, mode: str) -> None:
        """Let an authorizer decide about requests: ``AlwaysAllow``, as at first, or ``RBAC``."""
        reader = self.apart()

        def list_objects(resource: str) -> Objects:
            return [*reader._stored(resource), *reader.list_implied(resource)]

        def changed_since(mark: authorization.Mark) -> tuple[authorization.Mark, bool]:
            since, deletions = mark[0], self._store.meta(implied.DELETIONS)
            try:
                newest, changes, _ = in_full(self._store.changes, since)
            except CompactedError:
                return (self._store.revision, deletions), True
            kinds = (
                implied.NAMESPACES,
                *authorization.KINDS,
            )  # without namespaces no role is implied
            is_other = deletions != mark[1] or any(
                change.key.resource in kinds for change in changes
            )
            return (newest, deletions), is_other

        self._server.authorizer = (
            authorization.RbacAuthorizer(changed_since, list_objects)
            if mode == authorization.RBAC
            else authorization.AlwaysAllowAuthorizer()
        )

    @property
    def tokens(self) -> tokens.Tokens:
        """Issues tokens for ServiceAccounts, and finds out whose a token is."""
        session = self._session
        if session.tokens is None:
            session.tokens = tokens.Tokens(self._server, self.silenced().get)
        return session.tokens

    # --- requests ---------------------------------------------------------------------------------

    def do(self, request: Request, body: Any = None) -> Object | ObjectList | Objects:
        """Carry out any request.

        :param body: the object of a creation or update; the Patch of a patch; a Binding or an
            Eviction.
        :return: the object, or the Status of an eviction or binding; an ObjectList for ``list``;
            the objects that ``deletecollection`` deleted.

        Raises Status, MethodNotAllowed for a verb that there is not.
        """
        match request.verb:
            case "get":
                return self._get(request)
            case "list":
                return self._list(request)
            case "create":
                return self._create(request, body)
            case "update":
                return self._update(request, body)
            case "patch":
                return self._patch(request, body)
            case "delete":
                return self._delete(request)
            case "deletecollection":
                return self._delete_collection(request)

        raise errors.method_not_allowed()

    def get(
        self,
        resource: str | GroupVersionResource,
        name: str,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> Object:
        """Return an object or its ``scale``. Raises NotFound."""
        return self._get(Request("get", _named(resource), namespace, name, subresource))

    def list(
        self,
        resource: str | GroupVersionResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        """Return the objects of a namespace, or of all (None) that the selectors choose.

        Raises BadRequest for a selector that cannot be read, or a field that the kind is not
        selected by.
        """
        options = ListOptions(label_selector, field_selector)
        return self._list(Request("list", _named(resource), namespace or "", options=options))

    def stream(
        self,
        resource: str | GroupVersionResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Iterator[Object]:
        """Return the same objects one by one, for whoever does not need them all at once; raises at
        once as ``list``.

        Objects of some kinds, which have to be seen together, are listed as ``list`` does it.
        """
        options = ListOptions(label_selector, field_selector)
        wanted, request = self._resolve(
            Request("list", _named(resource), namespace or "", options=options)
        )
        is_as_stored = (request.resource.group, request.resource.version or wanted.version) == (
            wanted.group,
            wanted.version,
        )
        if (
            self._batch
            or not is_as_stored
            or wanted.custom
            or wanted.computed_from
            or wanted.key in (*IMPLIED, COMPONENT_STATUSES)
            or self._computes_leases(wanted.key)
        ):
            return iter(self._list(request).items)

        stream = self._store.stream(wanted.key, request.namespace or None)
        self._warn_of(stream.problems, request)
        if not label_selector and not field_selector:
            return stream.objects
        self._selected(wanted, request, [])  # raises for selectors that cannot be read
        chunks = iter(lambda: list(islice(stream.objects, SELECTED_TOGETHER)), [])
        return chain.from_iterable(self._selected(wanted, request, chunk) for chunk in chunks)

    def create(
        self,
        resource: str | GroupVersionResource,
        obj: Object,
        *,
        namespace: str = "",
        options: CreateOptions = _WRITE,
    ) -> Object:
        """Create an object; returns it as stored.

        Raises AlreadyExists, Invalid, BadRequest, Forbidden (namespace terminating), NotFound (no
        such namespace).
        """
        return self._create(Request("create", _named(resource), namespace, options=options), obj)

    def update(
        self,
        resource: str | GroupVersionResource,
        obj: Object,
        *,
        namespace: str = "",
        subresource: str = "",
        options: UpdateOptions = _WRITE,
    ) -> Object:
        """Replace an object, its ``status`` or its ``scale``. With metadata.resourceVersion: only
        that version.

        Raises NotFound, Conflict, Invalid, BadRequest.
        """
        metadata = obj.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        return self._update(
            Request("update", _named(resource), namespace, name, subresource, options), obj
        )

    def patch(
        self,
        resource: str | GroupVersionResource,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        options: PatchOptions = _WRITE,
    ) -> Object:
        """Change an object, its ``status`` or its ``scale``, by a patch.

        Raises NotFound, Conflict, Invalid, BadRequest, UnsupportedMediaType.
        """
        return self._patch(
            Request("patch", _named(resource), namespace, name, subresource, options), patch
        )

    def delete(
        self,
        resource: str | GroupVersionResource,
        name: str,
        *,
        namespace: str = "",
        options: DeleteOptions = _DELETE,
    ) -> Object:
        """Delete an object: at once, or by setting deletionTimestamp where a grace period or
        finalizers hold it.

        Returns the last state, or the state with its deletionTimestamp.
        """
        return self._delete(Request("delete", _named(resource), namespace, name, options=options))

    def delete_collection(
        self,
        resource: str | GroupVersionResource,
        *,
        namespace: str = "",
        options: CollectionOptions,
    ) -> Objects:
        """Delete all objects of a namespace that the selectors choose; returns them as ``delete``
        does."""
        return self._delete_collection(
            Request("deletecollection", _named(resource), namespace, options=options)
        )

    def evict(self, name: str, *, namespace: str, options: DeleteOptions = _DELETE) -> None:
        """Delete a pod unless a PodDisruptionBudget forbids it. Raises TooManyRequests."""
        eviction = pods.eviction_of(name, namespace, options)
        self._create(Request("create", PODS, namespace, name, "eviction"), eviction)

    def bind(self, name: str, node: str, *, namespace: str) -> None:
        """Assign a pod to a node (the ``binding`` subresource); sets PodScheduled."""
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        self._create(Request("create", PODS, namespace, name, "binding"), binding)

    # --- what the requests do ---------------------------------------------------------------------

    def _get(self, request: Request) -> Object:
        resource, request = self._resolve(request)
        if request.subresource:
            decoding.check_view(resource, request.subresource, "get")
        if resource.computed_from:
            subject = self._get(request._replace(resource=_named(resource.computed_from)))
            return metrics.first_of(resource, subject, self._metrics_of(resource, [subject]))
        if resource.key == COMPONENT_STATUSES:
            return metrics.component_status(request.name)
        key = Key(resource.key, request.namespace, request.name)
        obj = self._read(request, key)
        if obj is None and key.resource in IMPLIED:
            obj = self._implied_objects().get(key, self._stored)
        if self._computes_leases(key.resource):
            obj = self._node_lease(key, obj)
        if obj is None:
            raise errors.not_found(resource.key, request.name)
        [obj] = self._shown(resource, request, [obj])
        return scaling.read_scale(resource, obj) if request.subresource == "scale" else obj

    def _read(self, request: Request, key: Key) -> Object | None:
        """Return a stored object, and warn of one that counts as it last was."""
        if self._batch or self._worktree is None:
            return self._reads.get(key)
        obj, problem = self._worktree.find(key)
        self._warn_of([problem] if problem is not None else (), request)
        return obj

    @property
    def _reads(self) -> Reads:
        """What objects are read from: the batch that is open, else the store."""
        return self._batch.transaction if self._batch else self._store

    def _list(self, request: Request) -> ObjectList:
        resource, request = self._resolve(request)
        if resource.computed_from:
            subjects = self._list(request._replace(resource=_named(resource.computed_from)))
            return subjects._replace(items=self._metrics_of(resource, subjects.items))
        namespace = request.namespace or None
        snapshot = self._snapshot(resource.key, namespace)
        revision, objects, problems = snapshot
        if resource.key == COMPONENT_STATUSES:
            objects = metrics.component_statuses()
        if resource.key in IMPLIED:
            implied_objects = self._implied_objects()
            missing = implied_objects.missing(resource.key, namespace, objects, self._stored)
            objects = with_implied(objects, missing)
        if self._computes_leases(resource.key):
            objects = self._with_node_leases(objects, namespace)
        self._warn_of(snapshot.problems, request)
        return ObjectList(self._chosen(resource, request, objects), str(revision), problems)

    def _warn_of(self, problems: Iterable[Problem], request: Request) -> None:
        for problem in problems:
            text = self._worktree.describe(problem) if self._worktree is not None else str(problem)
            request.require_context().warn(text)

    def choose(self, request: Request, objects: Objects) -> ChosenObjects:
        """Return stored objects as a list or watch shows them: in the version of the request, and
        None for each that its selectors do not choose. Raises BadRequest as :meth:`list` does, and
        NotFound."""
        resource, request = self._resolve(request)
        if resource.custom:
            objects = self._shown(resource, request, objects)
        chosen = {id(obj) for obj in self._selected(resource, request, objects)}
        shown = objects if resource.custom else self._shown(resource, request, objects)
        return [
            view if id(obj) in chosen else None for obj, view in zip(objects, shown, strict=True)
        ]

    def _chosen(self, resource: Resource, request: Request, objects: Objects) -> Objects:
        """Return the objects that the selectors of a request choose, in its version."""
        if resource.custom:
            return self._selected(resource, request, self._shown(resource, request, objects))
        return self._shown(resource, request, self._selected(resource, request, objects))

    def _selected(self, resource: Resource, request: Request, objects: Objects) -> Objects:
        selectors = request.list_options
        if not selectors.label_selector and not selectors.field_selector:
            return objects
        strategy = self._server.strategy(resource)
        return strategy.select(objects, selectors.label_selector, selectors.field_selector)

    def _snapshot(self, resource: str, namespace: str | None = None) -> Snapshot:
        return self._reads.list(resource, namespace)

    def _implied_objects(self) -> implied.ImpliedObjects:
        """Return the implied objects of the cluster."""
        return implied.ImpliedObjects(self._server.settings, self._store, self.clock)

    def _computes_leases(self, resource: str) -> bool:
        """Return whether the leases of nodes are computed when they are read."""
        return resource == LEASES and self._server.settings.kubelet.containers == MODELLED

    def _node_lease(self, key: Key, stored: Object | None) -> Object | None:
        """Return the Lease of a node as its kubelet has last renewed it, any other as it is
        stored."""
        if key.namespace != nodeleases.LEASE_NAMESPACE:
            return stored
        node = self._find(Key("nodes", "", key.name))
        if node is None:
            return stored
        return nodeleases.node_lease(stored, node, self.clock.now())

    def _with_node_leases(self, leases: Objects, namespace: str | None) -> Objects:
        """Return leases of a namespace, or (None) of all, with those that kubelets have renewed."""
        if namespace not in (None, nodeleases.LEASE_NAMESPACE):
            return leases
        of_nodes: Objects = []
        others: Objects = []
        for lease in leases:
            is_own = lease["metadata"]["namespace"] == nodeleases.LEASE_NAMESPACE
            (of_nodes if is_own else others).append(lease)
        now = self.clock.now()
        computed = nodeleases.with_node_leases(of_nodes, self._stored("nodes"), now)
        return sorted(
            [*others, *computed],
            key=lambda lease: (lease["metadata"]["namespace"], lease["metadata"]["name"]),
        )

    def _metrics_of(self, resource: Resource, subjects: Objects) -> Objects:
        """Return the metrics of pods or nodes that have any."""
        pods = self.list(PODS).items if resource.kind == "NodeMetrics" else []
        return metrics.metrics_of(
            resource,
            subjects,
            pods,
            self.clock.now(),
            self.known_usage(),
        )

    def _create(self, request: Request, obj: Any) -> Object:
        obj = thawed(obj)
        if request.subresource == "token":
            return self.tokens.create(self._resolve_subresource(request), obj)
        if request.subresource:
            return self._create_subresource(request, obj)
        request = self._of_object(request, obj)
        if request.resource.group in REVIEW_GROUPS:
            return self._answer(request, obj)
        if request.resource.group_resource == BINDINGS:  # LegacyBindingREST
            metadata = obj.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            return self._create_subresource(
                request._replace(resource=PODS, name=name, subresource="binding"), obj
            )

        return self._write(request, lambda scope: creation.create(scope, obj))

    def _answer(self, request: Request, review: Object) -> Object:
        """Answer a review. It needs no transaction: nothing is stored."""
        resource, request = self._resolve(request)
        context, server = request.require_context(), self._server
        circumstances = authorization.ReviewContext(
            context.user,
            server.authorizer,
            self.tokens.authenticate,
            context.clock.timestamp(),
            request.namespace,
        )
        return creation.answer_review(server, resource, review, request, circumstances)

    def _resolve_subresource(self, request: Request) -> Request:
        """Return a request for a subresource as it is carried out. Raises NotFound where the kind
        has none."""
        resource, request = self._resolve(request)
        if request.subresource not in resource.subresources:
            raise errors.no_such_resource()
        return request

    def _create_subresource(self, request: Request, body: Any) -> Object:
        """Bind or evict a pod. Raises NotFound, MethodNotAllowed for other subresources."""

        def create_subresource(scope: RequestScope) -> None:
            if request.subresource not in scope.resource.subresources:
                raise errors.no_such_resource()
            if request.subresource == "eviction":
                pods.evict(scope, body)
            elif request.subresource == "binding":
                pods.bind(scope, body)
            else:
                raise errors.method_not_allowed()

        if request.subresource == "eviction":
            options = request.write_options
            request = request._replace(
                options=options._replace(dry_run=pods.is_dry_run(body, options.dry_run))
            )

        self._write(request, create_subresource)
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }

    def _of_object(self, request: Request, obj: Object) -> Request:
        """Return the request in the namespace of its object, and for a custom one in its version,
        if it names none."""
        metadata = obj.get("metadata")
        if not request.namespace and isinstance(metadata, dict):
            request = request._replace(namespace=metadata.get("namespace", ""))
        if not request.resource.version and isinstance(api_version := obj.get("apiVersion"), str):
            resource = self._server.scheme.get(request.resource.group_resource)
            if (
                resource is not None
                and resource.custom
                and api_version.startswith(f"{resource.group}/")
            ):
                version = api_version.rpartition("/")[2]
                request = request._replace(resource=request.resource._replace(version=version))
        return request

    def _update(self, request: Request, obj: Object) -> Object:
        obj = thawed(obj)
        request = self._of_object(request, obj)
        if request.subresource == "scale":
            return self._write(request, lambda scope: scaling.replace_scale(scope, obj))
        return self._write(request, lambda scope: updating.update(scope, obj))

    def _patch(self, request: Request, patch: Patch) -> Object:
        return self._write(request, lambda scope: patching.patch_object(scope, patch))

    def _delete(self, request: Request) -> Object:
        try:
            return self._write(request, lambda scope: deletion.delete(scope))
        except errors.NotFound:
            absent = self._delete_absent(request)
            if absent is None:
                raise
            return absent

    def _delete_absent(self, request: Request) -> Object | None:
        """Let an owner that an imported source only names count as deleted; return what is known of
        it, None where no such owner is absent. Its dependents are collected; to orphan them, the
        owner would have to be there."""
        options = request.options
        if self._settings.absent is None or not isinstance(options, DeleteOptions):
            return None
        resource, request = self._resolve(request)
        owner = self._settings.absent.owner_named(resource.kind, request.namespace, request.name)
        if owner is None or options.propagation_policy == "Orphan":
            return None
        if not options.dry_run:
            remaining = self._settings.absent.release(owner)
            self._store.set_values(settings={"absent": remaining or None})
        metadata = {"name": owner.name, "namespace": owner.namespace, "uid": owner.uid}
        return {"apiVersion": owner.api_version, "kind": owner.kind, "metadata": metadata}

    def _delete_collection(self, request: Request) -> Objects:
        """Delete objects together; one by one where the disk has no room to note all of them, or
        somebody else has changed some meanwhile."""
        try:
            with self.joined():
                return self._delete_all(request)
        except errors.Conflict as conflict:
            if self._batch or not _is_of_commit(conflict):
                raise
        except StorageError as error:
            if self._batch or not is_disk_full(error):
                raise
        return self._delete_all(request)

    def _delete_all(self, request: Request) -> Objects:
        options = (
            request.options
            if isinstance(request.options, CollectionOptions)
            else CollectionOptions()
        )
        resource = self._server.scheme.get(request.resource.group_resource)
        if resource is not None and resource.namespaced and not request.namespace:
            raise errors.method_not_allowed()
        chosen = self._list(request._replace(verb="list", options=options.list)).items
        return [
            self._delete(request._replace(name=obj["metadata"]["name"], options=options.delete))
            for obj in chosen
        ]

    def _resolve(self, request: Request) -> tuple[Resource, Request]:
        """Return the resource of a request, and the request with its context, and without a
        namespace if the resource has none.

        A custom resource is that of the version that the request names, or else of the one that is
        stored.
        """
        return self._with_resource(self._in_context(request))

    def _with_resource(self, request: Request) -> tuple[Resource, Request]:
        resource = self._server.resource_of(request)
        if resource.custom:
            resource = resource.at(
                request.resource.version or resource.storage_version or resource.version
            )
        if request.namespace and not resource.namespaced:
            request = request._replace(namespace="")
        return resource, request

    def _in_context(self, request: Request) -> Request:
        """Return a request with its context, which is that of this client if it has none."""
        context = self._context_of(request)
        return request if context is request.context else request._replace(context=context)

    def _context_of(self, request: Request) -> RequestContext:
        batch, context = self._batch, request.context or self._context
        if batch is not None and context.answers is None and batch.answers is not None:
            return context._replace(answers=batch.answers)
        return context

    def _write(self, request: Request, carry_out: Callable[[RequestScope], T]) -> T:
        """Carry out a request in a transaction, after the webhooks that it meets have answered;
        again where one has not, or where somebody else has changed its objects meanwhile."""
        if (manager := request.write_options.field_manager) and (
            problems := validation_metadata.validate_field_manager(manager)
        ):
            raise errors.invalid(f"{request.verb.capitalize()}Options.meta.k8s.io", "", problems)

        batch = self._batch
        if batch is not None:
            return self._write_in_batch(batch, request, carry_out)
        context = request.context or self._context
        run = attempts.Attempts(self._server.webhooks, context)
        request = request._replace(context=run.context())
        conflicts = 0
        try:
            if self._may_meet_webhooks(request):
                self._ask_webhooks(request, carry_out, run)
            while True:
                try:
                    with self._scope(request) as scope:
                        result = carry_out(scope.with_context(run.begin(scope.context)))
                    break
                except answers.CallsPending as pending:
                    self._server.may_have_webhooks = True
                    run.call(pending)
                except errors.Conflict as conflict:
                    conflicts += 1
                    if not _is_of_commit(conflict) or conflicts == MAX_CONFLICTS:
                        raise
                    run.forget_warnings()
        finally:
            run.end()

        return self._result(scope.with_context(context), result)

    def _may_meet_webhooks(self, request: Request) -> bool:
        """Return whether a webhook is recorded that admits objects of the resource of a request, or
        converts them.

        One that another process has added may not be known yet: a request that meets it ends its
        transaction, and goes on as the others.
        """
        resource, _ = self._resolve(request)
        if resource.custom:
            strategy = cast("CustomStrategy", self._server.strategy(resource))
            if strategy.conversion.get("strategy") == "Webhook":
                return True
        if not self._server.may_have_webhooks:
            return False
        configurations = view.read_recorded(
            self._store,
            lambda state: [
                obj for name in WEBHOOK_CONFIGURATIONS for _, obj in state.objects(name)
            ],
        )
        self._server.may_have_webhooks = bool(configurations)
        return any(matching.names_resource(obj, resource) for obj in configurations)

    def _ask_webhooks(
        self,
        request: Request,
        carry_out: Callable[[RequestScope], T],
        run: attempts.Attempts,
    ) -> None:
        """Carry out a request on a copy of what is stored, until the webhooks that it meets have
        answered: nothing is locked. Whether the request succeeds its transaction decides."""
        resource, request = self._resolve(request)
        while True:
            try:
                with self._copied() as store, store.transaction() as transaction:
                    requests = self._requests(
                        transaction, [], dry_run=_is_dry_run(request), store=store
                    )
                    scope = RequestScope(self._server, requests, request, resource)
                    carry_out(scope.with_context(run.begin(scope.context)))
                return
            except answers.CallsPending as pending:
                run.call(pending)
            except (errors.Status, StorageError):
                return

    def _write_in_batch(
        self, batch: Batch, request: Request, carry_out: Callable[[RequestScope], T]
    ) -> T:
        """Carry out a request in the transaction of the batch. It writes nothing before webhooks
        have answered."""

        def run(context: RequestContext) -> tuple[RequestScope, T]:
            first = len(batch.events)
            resource, resolved = self._with_resource(request._replace(context=context))
            transaction = self._batched(batch, _is_dry_run(resolved))
            scope = RequestScope(self._server, transaction, resolved, resource)
            result = carry_out(scope)
            self._notice_definitions(batch.events, first)
            return scope, result

        scope, result = self._answered(batch, self._context_of(request), run)
        return self._result(scope, result)

    def _answered(
        self, batch: Batch, context: RequestContext, run: Callable[[RequestContext], T]
    ) -> T:
        """Run something in a batch, and again with the answers of the webhooks that it meets, for
        whose calls the batch is suspended.

        The first run costs what it would without webhooks.
        """
        if batch.answers is None:
            return run(context)
        try:
            return run(context)
        except answers.CallsPending:
            pass

        repeated = attempts.Attempts(self._server.webhooks, context, batch.answers.timed_out)
        try:
            while True:
                try:
                    return run(repeated.begin(repeated.context()))
                except answers.CallsPending as pending:
                    with batch.suspend():
                        repeated.call(pending)
        finally:
            repeated.end()

    def _result(self, scope: RequestScope, result: T) -> T:
        """Return the result of a request that wrote; an object in the request's version, whichever
        is stored."""
        if scope.context.observers and not scope.transaction.dry_run:
            obj = result if isinstance(result, dict) and "metadata" in result else None
            for on_write in scope.context.observers:
                on_write(scope.key, obj, scope.context.user)
        if not isinstance(result, dict) or result.get("kind") != scope.resource.kind:
            return result  # none, a Scale, an answer
        [shown] = self._shown(scope.resource, scope.request, [result])
        return cast(T, shown)

    def _shown(self, resource: Resource, request: Request, objects: Objects) -> Objects:
        """Return stored objects in the version that the request names; without one they stay in
        that of storage."""
        version = request.resource.version
        if request.resource.group != resource.group:
            wanted = self._server.scheme.by_key(request.resource.group_resource)
        elif not version or (not resource.custom and version == resource.version):
            return objects
        else:
            wanted = resource.at(version)
        read = objects
        if wanted.custom:
            strategy = self._server.strategy(wanted)
            read = [strategy.read_stored(obj) for obj in objects]

        def convert(context: RequestContext) -> Objects:
            return self._server.in_version(wanted, read, self._find, context)

        context, batch = request.require_context(), self._batch
        if batch is None:
            return convert(context)
        shown = self._answered(batch, context, convert)
        pairs = zip(shown, objects, strict=True)
        batch.copies += [(copy, stored) for copy, stored in pairs if copy is not stored]
        return shown

    def stored(self, key: Key) -> Object | None:
        """Return an object as it is stored now, in the batch that is open if there is one; None
        where it is not there. It is shared: never change it."""
        return self._find(key)

    def _find(self, key: Key) -> Object | None:
        return self._batch.transaction.get(key) if self._batch else self._store.get(key)

    @contextmanager
    def _scope(self, request: Request) -> Iterator[RequestScope]:
        """Open a transaction for a request that writes."""
        resource, request = self._resolve(request)
        with self.transaction(_is_dry_run(request)) as transaction:
            yield RequestScope(self._server, transaction, request, resource)

    def list_stored(self, resource: str, namespace: str | None = None) -> Objects:
        """Return the objects of a resource that have files: what controllers watch."""
        if resource in IMPLIED or resource == LEASES:
            return self._stored(resource, namespace)
        return self.list(resource, namespace=namespace).items

    def _stored(self, resource: str, namespace: str | None = None) -> Objects:
        return self._snapshot(resource, namespace).objects

    def find_recorded(
        self, resource: str, index: str, value: str = "", namespace: str | None = None
    ) -> Objects:
        """Return the objects of a resource that an index finds by a value
        (``kubepy.apiserver.cluster.object_indexes``), as they are recorded: no file is looked
        at."""
        found = view.read_recorded(
            self._store, lambda state: state.found(index, [value], resource, namespace)
        )
        return [obj for _, obj in found]

    def read_ahead(self, keys: Collection[Key]) -> None:
        """Have the batch that is open read stored objects together that requests will ask for one
        by one."""
        if self._batch is not None:
            self._batch.transaction.read_ahead(keys)

    def names_recorded(self, resource: str, namespace: str, prefix: str = "") -> Sequence[str]:
        """Return the names of the objects of a resource in a namespace that begin so, as they are
        recorded."""
        keys = view.read_recorded(
            self._store, lambda state: state.keys(resource, namespace, prefix)
        )
        return [key.name for key in keys]

    def count_recorded(self, resource: str) -> int:
        """Return the number of objects of a resource, as they are recorded: no file is looked
        at."""
        return count_recorded(self._store, resource)

    def list_implied(self, resource: str, namespace: str | None = None) -> Objects:
        """Return the objects of a resource that no file stands for
        (``kubepy.apiserver.implied``)."""
        if resource not in IMPLIED:
            return []
        stored = self._stored(resource, namespace)
        return self._implied_objects().missing(resource, namespace, stored, self._stored)

    def value(self, name: str) -> str | None:
        """Return a small value of the cluster that is no object, None where there is none."""
        return self._store.meta(name)

    def set_values(self, values: Mapping[str, str | None]) -> None:
        """Set small values of the cluster (None removes one), with the batch that is open."""
        self._store.set_values(values)

    def forget_deletions(self) -> None:
        """Bring implied objects back that were deleted and come back at a start only."""
        self._implied_objects().restart()

    def with_managed_fields(self, obj: Object) -> Object:
        """Return an object with its managedFields as the API shows them; storage keeps less of
        them."""
        return self._with_managers(obj, tracking.shown)

    def as_stored_whole(self, text: str) -> str:
        """Return the JSON of an object with its managedFields as an API server stores them."""
        if '"managedFields":' not in text and '"controller":true' not in text:
            return text  # an event, mostly: nothing is known of who made it
        obj = json.loads(text)
        whole = self._with_managers(obj, tracking.stored_whole)
        return to_json(whole)

    def with_short_managers(self, obj: Object) -> Object:
        """Return an object that another server has stored with as little of its managedFields as
        stands for all of them."""
        return self._with_managers(obj, tracking.shortened)

    def _with_managers(
        self, obj: Object, convert: Callable[[Resource, Schema | None, Object], Object]
    ) -> Object:
        api_version = obj.get("apiVersion", "")
        resource = self._server.scheme.for_kind(api_version, obj.get("kind", ""))
        if resource is None:
            return obj
        if resource.custom:
            resource = resource.at(api_version.rpartition("/")[2])
        elif resource.storage_key != resource.key:  # its managers are those of the stored object
            as_stored = self._server.strategy(resource).to_stored_version(obj)
            return {**obj, "metadata": self._with_managers(as_stored, convert)["metadata"]}
        schema = self._server.strategy(resource).field_schema()
        return convert(resource, schema, obj)

    # --- changes ----------------------------------------------------------------------------------

    def changes(
        self,
        since: int,
        *,
        reads: Iterable[Key] | None = None,
        max_age: float = 0.0,
        takes_over_time: bool = True,
    ) -> tuple[int, Events]:
        """Return the newest revision, and the changes after another one; ``old`` is always None.
        Raises Expired.

        The clock is brought up to date as well, unless the caller has just done so.

        :param reads: the stored objects that are to be read, where edits of other files may be left
            for later.
        :param max_age: how fresh files must be: see :mod:`kubepy.storage.worktree`.
        """
        if self._batch is None:
            if takes_over_time:
                self.take_over_time()
            if self._worktree is not None:
                self._worktree.look(max_age, keys=reads)
        changes = self._read_changes(since)
        newest = max((change.revision for change in changes), default=since)
        return newest, [_event(change, None) for change in changes]

    def revision(self) -> int:
        """Return the newest revision."""
        return self._reads.revision

    def revision_now(self) -> Callable[[], int]:
        """Return a function that gives the newest revision as it is now. In a batch that is the
        one of its last write as it is predicted; the commit may lead to an earlier one, which the
        function gives from then on."""
        reads, revision = self._reads, self.revision()
        return lambda: min(revision, reads.revision)

    def is_quiet(self) -> bool:
        """Return whether it is known, at next to no cost, that nothing has changed for a moment."""
        return self._worktree is not None and self._worktree.is_quiet()

    def _read_changes(self, since: int) -> Changes:
        """Read the changes after a revision; custom kinds are read anew after that of a
        definition."""
        try:
            _, changes, _ = in_full(self._store.changes, since)
        except CompactedError:
            raise errors.Expired(f"too old resource version: {since} ({self.revision()})") from None
        if any(change.key.resource == CRDS for change in changes):
            self.forget_custom_kinds()
        return changes

    def forget_custom_kinds(self) -> None:
        """Read CustomResourceDefinitions anew: some have changed."""
        self._server.scheme.forget_custom()
        self._server.forget_strategies()

    # --- transactions -----------------------------------------------------------------------------

    def observe_from(self, revision: int) -> None:
        """Let the next batch's ``drain`` begin after this revision, at which the caller has listed
        all it knows."""
        self._session.since = revision

    @contextmanager
    def batch(self, observed: Observed | None = None, *, max_age: float = 0.0) -> Iterator[Batch]:
        """Run all requests of this Client inside the block in one transaction; an exception undoes
        them all.

        A request that meets webhooks ends the transaction with what was written before it: nothing
        is locked while they are called. The block goes on in another one.

        :param observed: returns an object as the caller last saw it. Changes from outside get their
            ``old`` from it, and are left out if the caller has seen that very version.
        :param max_age: how fresh files must be: see :mod:`kubepy.storage.worktree`.
        """
        with ExitStack() as stack:

            def begin() -> Transaction:
                return stack.enter_context(self._storage_transaction(self._begin_fresh(max_age)))

            @contextmanager
            def suspend() -> Iterator[None]:
                ended = batch.transaction
                try:
                    stack.close()  # commits
                    since = ended.revision
                    yield
                    transaction = begin()
                    batch.go_on(transaction, self._news(transaction, since, observed))
                except BaseException as error:
                    batch.fail(error)
                    raise

            transaction = begin()
            since = self._session.since
            batch = Batch(
                transaction,
                self._news(transaction, transaction.revision if since is None else since, observed),
            )
            batch.memory, batch.answers, batch.suspend = BatchMemory(), answers.Answers(), suspend
            self._session.batch = batch
            try:
                yield batch
            finally:
                self._session.batch = None
                # It holds the batch: what was written would stay until the next garbage collection.
                batch.suspend = nullcontext
            last = batch.transaction

        batch.committed()
        self._session.since = last.revision

    def _news(self, transaction: Transaction, since: int, observed: Observed | None) -> Events:
        """Return the changes after a revision that a transaction begins with, without those that
        led to the version that the caller has seen."""
        if since >= transaction.revision:
            return []
        events = [_event(change, observed) for change in self._read_changes(since)]
        return [
            event
            for event in events
            if event.old is not event.new
            and (
                event.old is None
                or event.new is None
                or event.old["metadata"]["resourceVersion"]
                != event.new["metadata"]["resourceVersion"]
            )
        ]

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Run all requests inside the block in one transaction: the batch that is open, or one of
        their own.

        Where there are webhooks each runs on its own: nothing is to be locked while those are
        called.
        """
        if self._batch or any(
            self._store.list(resource).objects for resource in WEBHOOK_CONFIGURATIONS
        ):
            yield
            return
        with self._storage_transaction() as transaction:
            batch = self._session.batch = Batch(transaction, [])
            try:
                yield
            finally:
                self._session.batch = None
        batch.committed()

    @contextmanager
    def transaction(self, dry_run: bool = False) -> Iterator[RequestTransaction]:
        """Open the transaction of one request; the Client's own requests and the recorders of
        events use it."""
        batch = self._batch
        if batch is not None:
            events, first = batch.events, len(batch.events)
            yield self._batched(batch, dry_run)
        else:
            events, first = [], 0
            with self._storage_transaction() as transaction:
                yield self._requests(transaction, events, dry_run=dry_run)
        self._notice_definitions(events, first)

    def _batched(self, batch: Batch, dry_run: bool) -> RequestTransaction:
        """Return the transaction of a request in the batch that is open: all that are no dry runs
        share one."""
        if batch.requests is None or dry_run:
            requests = self._requests(
                batch.transaction, batch.events, batch.memory, dry_run=dry_run
            )
            if dry_run:
                return requests
            batch.requests = requests

        return batch.requests

    def _requests(
        self,
        transaction: Transaction,
        events: Events,
        memory: BatchMemory | None = None,
        *,
        dry_run: bool,
        store: Store | None = None,
    ) -> RequestTransaction:
        """Return what requests do in a transaction of storage, or of a copy of it."""
        requests = RequestTransaction(
            store or self._store,
            transaction,
            events,
            self._implied_objects(),
            memory,
            dry_run=dry_run,
        )
        requests.counts = self.ids.seed is not None
        return requests

    def _notice_definitions(self, events: Events, first: int) -> None:
        """Read custom kinds and webhooks anew after the write of a definition or configuration,
        among the events from the first one on."""
        written = {event.key.resource for event in events[first:]}
        if CRDS in written:
            self.forget_custom_kinds()
        if not written.isdisjoint(WEBHOOK_CONFIGURATIONS):
            self._server.may_have_webhooks = True

    def _begin_fresh(self, max_age: float) -> AbstractContextManager[Transaction]:
        """Begin a transaction in which edits of all files are seen from the beginning."""
        if self._worktree is None:
            return self._store.transaction()
        return self._worktree.fresh_transaction(max_age)

    @contextmanager
    def _storage_transaction(
        self, begun: AbstractContextManager[Transaction] | None = None
    ) -> Iterator[Transaction]:
        """Open a transaction of storage. A clock that is moved in the block is written with
        everything else, or stands where it stood. Raises Conflict.

        :param begun: the transaction; None: one in which edits of files are seen as their objects
            are read.
        """
        clock, is_moved = self._server.clock, False
        moved_from = clock.own
        try:
            with begun or self._store.transaction() as transaction:
                self.take_over_time()
                moved_from = clock.own
                try:
                    yield transaction
                finally:
                    is_moved = clock.own != moved_from
                if clock.own is not None and is_moved:
                    time = format_exact_time(clock.own)
                    self._store.set_values(settings={"clock": time})
        except BaseException as error:
            if is_moved:
                clock.own = moved_from
            if isinstance(error, ConflictError):  # somebody edited one of the files in the meantime
                raise errors.Conflict(f"Operation cannot be fulfilled: {error}") from error
            raise

    def take_over_time(self) -> None:
        """Notice that another process has moved the cluster's own time, or somebody who edited
        ``kubepy.yaml``."""
        self._server.take_over_time(self._store.settings())

    def move_time_to(self, moment: datetime) -> None:
        """Move the cluster's own time, in a transaction of its own unless one is open; never
        backwards."""
        # Not joined(): it opens no transaction where there are webhooks, so that the move would not
        # be written down.
        with nullcontext() if self._batch is not None else self._storage_transaction():
            if moment > self.clock.now():
                self.clock.move_to(moment)


def _is_of_commit(conflict: errors.Conflict) -> bool:
    """Return whether a conflict came of the commit: somebody else has changed an object that the
    transaction has read. The request itself may have asked for no version."""
    return isinstance(conflict.__cause__, ConflictError)


def _is_dry_run(request: Request) -> bool:
    options = request.options
    return isinstance(options, (WriteOptions, DeleteOptions)) and options.dry_run


def _named(resource: str | GroupVersionResource) -> GroupVersionResource:
    return GroupVersionResource.parse(resource) if isinstance(resource, str) else resource


def _event(change: Change, observed: Observed | None) -> watch.WatchEvent:
    """Make the event of a change. ``old`` is as the caller saw the object; after a deletion, else
    its last state."""
    old = observed(change.key) if observed else None
    if change.type == "DELETED":
        return watch.WatchEvent(change.key, old or change.object, None, former=change.former)
    return watch.WatchEvent(
        change.key, old, change.object, change.type == "MODIFIED", change.former
    )
