"""A cluster as plain data, from which the same cluster is opened in other processes, and on other
machines."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.controlplane.open import copy_cluster, open_cluster
from kubepy.storage import homes

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster


class ClusterImage(NamedTuple):
    """A cluster as it was at one moment.

    :ivar archive: of its folder.
    :ivar moment: its time, RFC 3339: what is opened from it goes on then, whenever that is.
    :ivar digest: tells it from others; copies of the same cluster have the same.
    """

    archive: bytes
    moment: str
    digest: str


def image_of(cluster: LocalCluster) -> ClusterImage:
    """Return a cluster as it is now: what is committed in it, edits of files included."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "state")
        copy_cluster(cluster, place)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
            archive.add(place, "state")
        moment = format_exact_time(cluster.clock.now())
        digest = _contents_digest(place, cluster.client.revision())
    return ClusterImage(buffer.getvalue(), moment, digest)


def _contents_digest(place: str, revision: int) -> str:
    """Return a digest of the files of a folder, without those that only say how it was written."""
    digest = hashlib.blake2b(str(revision).encode(), digest_size=16)
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name != ".kubepy")
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                contents = file.read()
            digest.update(repr((os.path.relpath(path, place), contents)).encode())
    return digest.hexdigest()


def open_image(image: ClusterImage) -> LocalCluster:
    """Return a fork of the cluster of an image, in memory, with a time of its own."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(image.archive)) as archive:
            archive.extractall(folder, filter="data")
        place = os.path.join(folder, "state")
        homes.trust_in_this_process(place)  # an image comes from the program itself
        opened = open_cluster(place)
        opened = opened.with_faults(opened.settings.faults)
        fork = opened.fork({"clock": image.moment}, is_prediction=True, in_full=True)
        opened.close()
    return fork.with_faults(fork.settings.faults)
