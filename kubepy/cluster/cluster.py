"""A cluster: a state folder opened, with its scheme, clock, ids and Client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubepy.cluster.client import CRDS, Client
from kubepy.cluster.clock import Clock, Ids, parse_time
from kubepy.cluster.meta import Object
from kubepy.cluster.scheme import Resource, Scheme
from kubepy.cluster.server import Server
from kubepy.storage import FolderError, Key, NoClusterError, Problem, Store

if TYPE_CHECKING:
    from pathlib import Path  # three milliseconds that opening a cluster does not need

EVENTS_LAST = 3600.0  # seconds of cluster time that an event is kept


class Cluster:
    """Open with :meth:`open`; everything is lazy, so that opening costs next to nothing."""

    def __init__(self, folder: Path | str, lock_timeout: float) -> None:
        self.store = Store(folder, admit=self._admit, volatile={"events": EVENTS_LAST}, now=self._now,
                           lock_timeout=lock_timeout)  # for fsck and the composition root only
        settings = self.store.settings()
        self.clock = Clock(_fixed_time(settings))
        self.ids = Ids(settings.get("seed"))
        self.scheme = Scheme(self._custom_resources)
        self._server = Server(self.scheme, self.clock, self.ids, self._definition_of)
        self.client = Client(self.store, self._server)

    @classmethod
    def open(cls, folder: Path | str, *, create: bool = False, lock_timeout: float = 30.0) -> Cluster:
        """Open a state folder. ``create``: make the cluster if there is none. Raises NoClusterError, FolderError."""
        try:
            return cls(folder, lock_timeout)
        except NoClusterError:
            if not create:
                raise
        return cls.make(folder, {}, lock_timeout=lock_timeout)

    @classmethod
    def make(cls, folder: Path | str, settings: dict[str, Any], *, lock_timeout: float = 30.0) -> Cluster:
        """A new cluster with these settings (``clock``, ``seed``) and what every cluster has. Raises FolderError."""
        from kubepy.cluster.bootstrap import bootstrap

        Store.initialize(folder, settings)
        cluster = cls(folder, lock_timeout)
        bootstrap(cluster.client)
        return cluster

    def problems(self) -> list[Problem]:
        """Files that cannot be objects."""
        return self.store.problems()

    def close(self) -> None:
        self.store.close()

    def _now(self) -> float:
        return self.clock.now().timestamp()

    def _admit(self, key: Key, obj: Object, modified: float) -> Object:
        from kubepy.cluster.handwritten import complete

        return complete(self._server, key, obj, modified)

    def _definition_of(self, resource: Resource) -> Object:
        return self.client.get(CRDS, resource.key)

    def _custom_resources(self) -> Iterator[Resource]:
        if definitions := self.client.list(CRDS).items:
            from kubepy.cluster.customresources import resources_of

            for definition in definitions:
                yield from resources_of(definition)


def _fixed_time(settings: Object) -> Any:
    text = settings.get("clock")
    if text is None:
        return None
    try:
        return parse_time(text)
    except (TypeError, ValueError):
        raise FolderError(f"kubepy.yaml: clock: {text!r} is not a time such as 2026-11-20T10:13:48Z") from None
