"""A question about one object, and all diagnoses that may answer it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import MANAGER_LOCK
from kubepy.controlplane.groups import OF_SERVER
from kubepy.insight.why import (
    anew,
    containers,
    contention,
    deletions,
    disruption,
    generic,
    goals,
    imports,
    ingresses,
    intent,
    jobs,
    missing_nodes,
    references,
    refusals,
    scheduling,
    services,
    targets,
    volumes,
    workloads,
)
from kubepy.insight.why.budget import MOST_OF_ANSWER, Budget
from kubepy.insight.why.scene import Diagnoses, Scene, Words, merged
from kubepy.runtime.checkpoint import CHECKPOINT
from kubepy.storage import Key

# For each kind first what keeps an object from going, then what undoes its work, what refuses its
# pods, what keeps them from a node, what breaks their containers, and last what only says how far
# it is.
TABLES = (
    missing_nodes,
    deletions,
    contention,
    anew,
    jobs,
    disruption,
    targets,
    intent,
    services,
    ingresses,
    references,
    refusals,
    scheduling,
    volumes,
    containers,
    generic,
    imports,
    workloads,
)
DIAGNOSES = merged(
    [*(module.DIAGNOSES for module in TABLES), jobs.LAST_DIAGNOSES, disruption.LAST_DIAGNOSES]
)
# Of objects that are done.
NOTES = merged([*(getattr(module, "NOTES", {}) for module in TABLES), intent.LAST_NOTES])
Run = Callable[[LocalCluster, Words], int]
"""Runs a command line on a cluster; returns its exit status."""


class Question(NamedTuple):
    """An object that is asked about.

    :ivar run: tries command lines on forks; None: remedies are not tried.
    :ivar reconciles: whether commands may run the controllers.
    :ivar namespace: the one that a command line without ``-n`` works in.
    :ivar is_held: another process holds the lock of the controllers.
    :ivar budget: that of the whole answer.
    :ivar is_contested: controllers undo each other's work on the object without end, so that it is
        done only where they do not.
    """

    cluster: LocalCluster
    key: Key
    run: Run | None = None
    reconciles: bool = True
    namespace: str = "default"
    is_held: bool = False
    budget: Budget | None = None
    is_contested: bool = False

    def of_fork(self) -> Question:
        """Return the same question about a fork, with a budget: what is read there once is read for
        all forks of it."""
        is_held = self.cluster.store.holder(MANAGER_LOCK) is not None
        return self._replace(
            cluster=self.cluster.fork(),
            is_held=is_held,
            budget=Budget(MOST_OF_ANSWER),
            reconciles=is_run(self.cluster) if is_held else self.reconciles,
        )

    def scene(self, cluster: LocalCluster | None = None, diagnoses: Diagnoses = DIAGNOSES) -> Scene:
        """Return the scene of the cluster, or of a fork of it."""
        return Scene(
            cluster or self.cluster,
            diagnoses,
            reconciles=self.reconciles,
            namespace=self.namespace,
            asked_at=self.cluster.clock.now(),
        )

    def is_done(self, cluster: LocalCluster, asked: Object, *, or_goes_on: bool = False) -> bool:
        """Return whether the object is done in a fork, or is on its way there though nothing is
        due."""
        scene = Scene(cluster, DIAGNOSES)
        obj = scene.get(*self.key)
        if self.is_contested and obj is not None and contention.is_contested(scene, obj):
            return False
        return goals.is_done(scene, obj, asked) or (or_goes_on and goals.goes_on(scene, obj))


def is_run(cluster: LocalCluster) -> bool:
    """Return whether the process that holds the lock of the controllers runs all of them, not only
    the kubelets."""
    text = cluster.store.meta(CHECKPOINT)
    return not text or not set(json.loads(text)["reconcilers"][:-1]) <= OF_SERVER
