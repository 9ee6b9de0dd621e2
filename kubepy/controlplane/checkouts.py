"""States that git has checked out, of a cluster whose controllers had come to rest: they count as
observed.

An edit of a workload's file gets a new generation, which no status has observed: the pods are yet
to follow. Where git has brought back a whole state, the pods came along, and the status in the file
is true. The two look alike in the file; but the controllers can tell. They are run on a fork that
believes the files, and what they leave alone is believed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kubepy.api.clock import format_exact_time
from kubepy.api.meta import Object, uid_of
from kubepy.controlplane import build_manager, manager_lock
from kubepy.storage import FolderError, Key, LockTimeoutError

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import Claim, LocalCluster

# The controllers of kinds with ``status.observedGeneration``. The others would only do what falls
# due by now.
OBSERVERS = (
    "daemonset-controller",
    "replicaset-controller",
    "replication-controller",
    "deployment-controller",
    "statefulset-controller",
    "disruption-controller",
)


def believe_checkouts(cluster: LocalCluster) -> bool:
    """Let edited objects that the controllers would leave as they are have the generation of their
    files.

    Returns whether that changed any. Where another process writes, or none can, they count as not
    observed.
    """
    if not cluster.claims:
        return False
    fork = cluster.fork(
        {"clock": format_exact_time(cluster.clock.now()), "faults": None}, is_prediction=True
    )
    claims = dict(cluster.claims)
    cluster.claims.clear()  # the fork has looked at all files
    try:
        believed = claims.keys() - _changed_by_controllers(
            fork, {key: claim.as_filed for key, claim in claims.items()}
        )
    finally:
        fork.release()

    if not believed:
        return False
    patience = cluster.store.lock_timeout
    cluster.store.lock_timeout = 0.0
    try:
        _put_as_filed(cluster, {key: claims[key] for key in sorted(believed)})
    except (LockTimeoutError, FolderError):
        return False
    finally:
        cluster.store.lock_timeout = patience

    return True


def _put_as_filed(cluster: LocalCluster, claims: dict[Key, Claim]) -> None:
    """Give objects the generation of their files, unless they have changed again. Raises
    LockTimeoutError, FolderError."""
    with cluster.store.transaction() as transaction:
        for key, claim in claims.items():
            present = transaction.get(key)
            if present is not None and _without_revision(present) == _without_revision(
                claim.admitted
            ):
                transaction.update(key, claim.as_filed)


def _without_revision(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": None}}


def _changed_by_controllers(fork: LocalCluster, claims: dict[Key, Object]) -> set[Key]:
    """Put objects into a fork, let the controllers work, and return those that they change, or
    whose own objects."""
    with fork.store.transaction() as transaction:
        for key, obj in claims.items():
            transaction.update(key, obj)
    written: dict[Key, Object | None] = {}

    def note(key: Key, obj: Object | None, user: Object) -> None:
        written[key] = obj

    observed = fork.observed(note)
    with manager_lock(observed):
        build_manager(observed, OBSERVERS).run_until_settled()
    changed = written.keys() & claims.keys()
    return changed | _owners_of(
        (*filter(None, written.values()), *(claims[key] for key in changed)), claims
    )


def _owners_of(objects: Collection[Object], claims: dict[Key, Object]) -> set[Key]:
    """Return which of some objects own others, or what owns those."""
    owners = {
        owner["uid"] for obj in objects for owner in obj["metadata"].get("ownerReferences") or ()
    }
    found = {key for key, obj in claims.items() if uid_of(obj) in owners}
    above = [claims[key] for key in found if claims[key]["metadata"].get("ownerReferences")]
    return found | (_owners_of(above, claims) if above else set())
