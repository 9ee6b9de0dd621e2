"""A cluster: a state folder opened, with its scheme, clock, ids and Client, and the objects that a new one has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kubepy.api.clock import Clock, Ids
from kubepy.api.errors import AlreadyExists
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource, Scheme
from kubepy.apiserver.client import CRDS, Client
from kubepy.apiserver.kinds import new_strategy
from kubepy.apiserver.server import Server
from kubepy.apiserver.settings import parse_settings
from kubepy.apiserver.strategies import Strategy
from kubepy.lazy import lazy_imports
from kubepy.storage import FolderError, Key, NoClusterError, Problem
from kubepy.storage.folder.paths import encode, path_of
from kubepy.storage.folder.store import FolderStore

if TYPE_CHECKING:
    from pathlib import Path  # three milliseconds that opening a cluster does not need

    from kubepy.klog import Logger

with lazy_imports():
    from kubepy.api.schema import customresources
    from kubepy.api.values import goformat
    from kubepy.apiserver.requests import handwritten

UNFINISHED = "unfinished"  # in the store's meta values: the cluster is being made
EVENTS_LAST = 3600.0  # seconds of cluster time that an event is kept
# Every cluster has these (``pkg/controlplane/controller/systemnamespaces``, ``registry/scheduling``).
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
PRIORITY_CLASSES = (
    ("system-cluster-critical", 2000000000, "Used for system critical pods that must run in the cluster, but can be "
                                            "moved to another node if necessary."),
    ("system-node-critical", 2000001000, "Used for system critical pods that must not be moved from their current "
                                         "node."),
)


class Cluster:
    """A state folder that is open. Made by :meth:`open`; everything is lazy, so that opening costs next to nothing."""

    def __init__(self, folder: Path | str, lock_timeout: float) -> None:
        # Outside this package only for fsck and the composition root.
        self.store = FolderStore(folder, admit=self._admit, removal=self._removed, volatile={"events": EVENTS_LAST},
                                 now=self._now, lock_timeout=lock_timeout)
        self.settings = parse_settings(self.store.settings())
        self.clock = Clock(self.settings.clock)
        self.ids = Ids(self.settings.seed)
        self.scheme = Scheme(self._custom_resources)
        self._server = Server(self.scheme, self.clock, self.ids, self._new_strategy, self.settings.webhooks)
        self.client = self._own_client = Client(self.store, self._server)
        self.controller_client = self.client
        self.logger: Logger | None = None  # of the work of the controllers (-v)

    @classmethod
    def open(cls, folder: Path | str, *, create: bool = False, lock_timeout: float = 30.0) -> Cluster:
        """Open a state folder. ``create``: make the cluster if there is none, or only settings written by hand.

        Raises NoClusterError, FolderError.
        """
        try:
            cluster = cls(folder, lock_timeout)
        except NoClusterError:
            if not create:
                raise
            return cls.make(folder, {}, lock_timeout=lock_timeout)
        if create and cluster.is_bare():
            cluster.bootstrap()
        return cluster

    @classmethod
    def make(cls, folder: Path | str, settings: dict[str, Any], *, lock_timeout: float = 30.0) -> Cluster:
        """Make a cluster with these settings (``clock``, ``seed``) and its first objects. Raises FolderError."""
        FolderStore.initialize(folder, settings)
        cluster = cls(folder, lock_timeout)
        cluster.bootstrap()
        return cluster

    @classmethod
    def begin(cls, folder: Path | str) -> None:
        """Make a cluster, or go on with one that is not yet :meth:`finished <finish>`. Raises FolderError."""
        if not os.path.exists(os.path.join(folder, "kubepy.yaml")):
            FolderStore.initialize(folder, {})
        store = FolderStore(folder)
        store.set_meta(UNFINISHED, "yes")
        store.close()

    def is_unfinished(self) -> bool:
        """Tell whether the process that began to make this cluster died before it was done."""
        return self.is_bare() or self.store.meta(UNFINISHED) is not None

    def finish(self) -> None:
        self.store.set_meta(UNFINISHED, None)

    def is_bare(self) -> bool:
        """Tell whether the folder has nothing but settings so far."""
        try:
            return self.store.get(Key("namespaces", "", "default")) is None and not self.store.resources()
        except FolderError:  # something is there, though it can't be read
            return False

    def bootstrap(self) -> None:
        """Create the objects that every cluster has, in one transaction, except those that exist."""
        objects: list[tuple[str, Object]] = [("namespaces", {"metadata": {"name": name}}) for name in NAMESPACES]
        objects += [("priorityclasses.scheduling.k8s.io",
                     {"description": description, "metadata": {"name": name}, "value": value})
                    for name, value, description in PRIORITY_CLASSES]
        with self.client.joined():
            for resource, obj in objects:
                with suppress(AlreadyExists):
                    self.client.create(resource, obj)

    def problems(self) -> list[Problem]:
        """Return the files that cannot be objects."""
        return self.store.problems()

    def folders_without_namespace(self) -> list[Problem]:
        """Return the folders of objects whose namespace is missing, as a clone or a merge can leave them."""
        quote = goformat.quote
        listed = self.store.list("namespaces")
        unreadable = {problem.path for problem in listed.problems}
        known = {namespace["metadata"]["name"] for namespace in listed.objects}
        missing = [name for name in self.store.namespaces()
                   if name not in known and path_of(Key("namespaces", "", name)) not in unreadable]
        return [Problem(f"namespaces/{encode(name)}", 0, f"holds objects, but there is no namespace {quote(name)}: run "
                        f"'kubepy create namespace {name}', bring its file back, or remove this folder")
                for name in missing]

    def close(self) -> None:
        self.store.close()

    def _now(self) -> float:
        return self.clock.now().timestamp()

    def _admit(self, key: Key, obj: Object, modified: float, old: Object | None) -> Object:
        return handwritten.complete(self._server, key, obj, modified, old)

    def _removed(self, key: Key, obj: Object, now: float) -> Object | None:
        return handwritten.removed(key, obj, now)

    def _new_strategy(self, resource: Resource) -> Strategy:
        return new_strategy(resource, lambda resource: self._own_client.get(CRDS, resource.key))

    def _custom_resources(self) -> Iterator[Resource]:
        for definition in self._own_client.list(CRDS).items:
            yield from customresources.resources_of(definition)
