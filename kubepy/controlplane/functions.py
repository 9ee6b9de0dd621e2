"""Controllers that are Python functions (``Cluster.controller``): they run beside the real ones.

A function reads what its informers have seen, and writes through the Client as its own user. Its
queue is one like all others: it is kept in the checkpoint of the manager.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.values import goformat
from kubepy.apiserver.request import ListOptions, Request
from kubepy.controlplane.users import service_account
from kubepy.lazy import load
from kubepy.runtime.checkpoint import UNWATCHED
from kubepy.runtime.objectrequests import (
    DEFAULT_NAMESPACE,
    ObjectRequests,
    OpenedCluster,
)
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, Reconciler, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.scheme import Resource
    from kubepy.apiserver.client import Client
    from kubepy.controlplane.manager import Manager

LOGGER = "kubepy.controllers"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class ControllerFunction(NamedTuple):
    """A controller that is a Python function.

    :ivar watches: the resources whose changes make keys, as the author names them.
    :ivar reconcile: gets a client and a key; returns when the key is to come again: a duration such
        as ``"2s"``, a timedelta, a number of seconds, or None.
    """

    name: str
    watches: tuple[str, ...]
    reconcile: Callable[[Any, Key], Any]


class FunctionControllers:
    """The controllers that a program has added to a cluster.

    :ivar functions: by their names.
    :ivar manager: where it is set, the one manager that all who let the controllers work share.
    """

    def __init__(self, functions: Mapping[str, ControllerFunction] | None = None) -> None:
        self.functions: dict[str, ControllerFunction] = dict(functions or {})
        self.manager: Manager | None = None

    def add(self, function: ControllerFunction) -> None:
        """Add a controller. Raises ValueError for a name that is taken, or cannot be one."""
        check_function(function, self.functions)
        self.functions[function.name] = function

    def for_fork(self) -> FunctionControllers:
        """Return the same controllers for a fork of the cluster."""
        return FunctionControllers(self.functions)

    def names(self) -> list[str]:
        """Return the names of the controllers."""
        return sorted(self.functions)

    def built_in(
        self, name: str, new_reconciler: Callable[[Context], Reconciler], context: Context
    ) -> Reconciler:
        """Build a real controller that is to run beside them."""
        return new_reconciler(context)

    def reconcilers(self, context: Context) -> list[Reconciler]:
        """Build them all."""
        return [FunctionReconciler(self.functions[name], context) for name in self.names()]


def check_function(function: ControllerFunction, others: Container[str]) -> None:
    """Raise ValueError for a controller whose name is taken by others or cannot be one, that
    watches nothing, or whose function is a coroutine."""
    if not _NAME.fullmatch(function.name):
        raise ValueError(
            f"{function.name!r} is no name of a controller: it must be lower case letters, "
            "digits, - and ."
        )
    if load("inspect").iscoroutinefunction(function.reconcile):
        raise ValueError(f"controller {function.name!r}: its function must not be async")
    if function.name in others:
        raise ValueError(f"there is a controller {function.name!r} already")
    if not function.watches:
        raise ValueError(f"controller {function.name!r}: watches nothing")


class FunctionReconciler:
    """The reconciler of a function.

    :param logs: exceptions of the function are logged.

    A key that comes again after the same time, without a write in between, counts as one that
    repeats for ever: nobody waits for it who waits until nothing is left to do.
    """

    def __init__(
        self, function: ControllerFunction, context: Context, *, logs: bool = True
    ) -> None:
        self.name = function.name
        self._logs = logs
        self.queue = context.new_queue()
        self._function = function
        self._scheme = context.scheme
        user = service_account(function.name, DEFAULT_NAMESPACE)
        requests = context.client.context._replace(user=user)
        own = context._replace(client=context.client.with_context(requests))
        self.client = CachedClient(own, function.name)
        self._words: dict[str, str] = {}  # by resource: as the author names it; "": not watched
        self._idle: dict[Key, float] = {}  # the last delays, of keys whose syncs wrote nothing

    def handlers(self) -> Mapping[str, Handler]:
        """Watch every resource: what the function reads without watching it has informers too."""
        return {EVERY_RESOURCE: self._receive}

    def is_relevant(self, resource: str) -> bool:
        """Return whether the function watches a resource, or has read it."""
        if resource in self.client.has_read:
            return True
        return bool(self._word(resource))

    def _receive(self, event: WatchEvent) -> None:
        if self._word(event.key.resource):
            self.queue.add(event.key)

    def _word(self, resource: str) -> str:
        known = self._words.get(resource)
        if known is not None:
            return known
        watches = self._function.watches
        words = (word for word in watches if self._names(word, resource))
        word = next(words, "")
        self._words[resource] = word
        return word

    def _names(self, word: str, resource: str) -> bool:
        if word == resource:
            return True
        known = self._scheme.find(word)
        return known is not None and known.storage_key == resource

    def sync(self, key: Key) -> None:
        """Call the function. Raises what it raises, TypeError and ValueError for what it
        returns."""
        self.client.has_written = False
        named = Key(self._word(key.resource) or key.resource, key.namespace, key.name)
        try:
            result = self._call(named)
        except Exception as error:
            if self._logs:
                self._log(key, error)
            raise
        delay = self._delay(result)
        if delay is None:
            self._idle.pop(key, None)
            return
        is_idle = not self.client.has_written
        is_repeating = is_idle and self._idle.get(key) == delay
        if is_idle:
            self._idle[key] = delay
        else:
            self._idle.pop(key, None)
        self.queue.add_after(key, delay, repeating=is_repeating)

    def _call(self, key: Key) -> Any:
        """Call the function. Raises RuntimeError where it would end this program."""
        try:
            return self._function.reconcile(self.client, key)
        except SystemExit as error:
            message = f"controller {self.name!r} called exit: {error.code}"
            raise RuntimeError(message) from error

    def _log(self, key: Key, error: Exception) -> None:
        """Log an exception: an error of the API, which often mends itself, without its place."""
        logger = logging.getLogger(LOGGER)
        message = "controller %s failed at %s %s/%s: %s"
        arguments = (self.name, *key, error)
        if isinstance(error, errors.Status):
            logger.info(message, *arguments)
        else:
            logger.error(message, *arguments, exc_info=error)

    def _delay(self, result: Any) -> float | None:
        if result is None:
            return None
        if isinstance(result, bool) or not isinstance(result, str | int | float | timedelta):
            raise TypeError(
                f"controller {self.name!r} returned {result!r}: must be a duration such as '2s', "
                "or None"
            )
        seconds = goformat.seconds_of(result)
        if not seconds:
            raise ValueError(f"controller {self.name!r} returned {result!r}: must be more than 0")
        return seconds


class CachedClient(ObjectRequests):
    """The client of a function: as ``cluster.client``, but reads are what informers have seen.

    Events, which nothing watches, and subresources are read from the cluster.

    :ivar has_read: the resources that were read.
    :ivar has_written: whether a request to write was made since somebody has set this to False.
    """

    def __init__(self, context: Context, field_manager: str) -> None:
        self._field_manager = field_manager
        self.has_read: set[str] = set()
        self.has_written = False
        self._context = context

    @contextmanager
    def _open(self) -> Iterator[OpenedCluster]:
        yield self._context

    @contextmanager
    def _manifest(
        self, obj: Mapping[str, Any], namespace: str
    ) -> Iterator[tuple[Client, Resource, Object]]:
        self.has_written = True
        with super()._manifest(obj, namespace) as opened:
            yield opened

    @contextmanager
    def _change(self, kind: str, name: str) -> Iterator[tuple[Client, Resource, str]]:
        self.has_written = True
        with super()._change(kind, name) as opened:
            yield opened

    def _read(
        self, client: Client, resource: Resource, name: str, namespace: str, subresource: str
    ) -> Object:
        """Return an object as informers have seen it. Raises NotFound."""
        if subresource or resource.storage_key in UNWATCHED:
            return super()._read(client, resource, name, namespace, subresource)
        self.has_read.add(resource.storage_key)
        if not resource.namespaced:
            namespace = ""
        seen = self._context.informers.get(resource.storage_key, namespace, name)
        if seen is None:
            raise errors.not_found(resource.gvr.group_resource, name)
        [shown] = _shown(client, resource, namespace, [seen], ListOptions())
        return shown

    def _read_all(
        self, client: Client, resource: Resource, namespace: str | None, options: ListOptions
    ) -> Sequence[Object]:
        """Return the objects of a kind as informers have seen them."""
        if resource.storage_key in UNWATCHED:
            return super()._read_all(client, resource, namespace, options)
        self.has_read.add(resource.storage_key)
        seen = self._context.informers.list(resource.storage_key, namespace)
        return _shown(client, resource, namespace or "", seen, options)


def _shown(
    client: Client,
    resource: Resource,
    namespace: str,
    objects: Sequence[Object],
    options: ListOptions,
) -> Sequence[Object]:
    """Return stored objects in the version of a resource, those that selectors choose."""
    context = client.context
    request = Request("list", resource.gvr, namespace, options=options, context=context)
    chosen = client.choose(request, [*objects])
    return [obj for obj in chosen if obj is not None]
