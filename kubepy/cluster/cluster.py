"""A cluster: a state folder opened, with its scheme, clock, ids and Client. (Contract.)"""

from __future__ import annotations

from pathlib import Path

from kubepy.cluster.client import Client
from kubepy.cluster.clock import Clock, Ids
from kubepy.cluster.scheme import Scheme
from kubepy.storage import Problem, Store


class Cluster:
    """Open with :meth:`open`; everything is lazy, so that opening costs next to nothing."""

    store: Store  # for fsck and the composition root only
    scheme: Scheme
    clock: Clock
    ids: Ids
    client: Client

    @classmethod
    def open(cls, folder: Path, *, create: bool = False, lock_timeout: float = 30.0) -> Cluster:
        """Open a state folder. ``create``: make the cluster if there is none. Raises NoClusterError, FolderError."""
        raise NotImplementedError

    def problems(self) -> list[Problem]:
        """Files that cannot be objects."""
        raise NotImplementedError
