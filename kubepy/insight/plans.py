"""Plans: what a change would do, and whether it finishes.

A :class:`Plan` judges a :class:`~kubepy.insight.prediction.Prediction`: which workloads the change concerns, when each
has finished, and what blocks one that does not. Only those count that a command touches; without a command, all that are
under way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.api.errors import Status
from kubepy.api.meta import Object, controller_of, is_being_deleted, name_of, namespace_of, uid_of
from kubepy.api.values.goformat import format_duration
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight import Course, Numbers, Step, Timeline
from kubepy.insight.prediction import Prediction
from kubepy.storage import Key

# What counts as a workload where no other workload controls it.
WORKLOADS = ("cronjobs.batch", "daemonsets.apps", "deployments.apps", "jobs.batch", "pods", "replicasets.apps",
             "replicationcontrollers", "statefulsets.apps")
NAMESPACES = "namespaces"


class Touched:
    """The objects that a command itself writes; what controllers do afterwards is not among them.

    :ivar objects: by key, the object as the last request has left it, None where that had no answer of its own.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, Object | None] = {}

    def watch(self, cluster: LocalCluster) -> None:
        """Note all that is written from now on by the requester that the cluster has now: controllers are others."""
        client, requester = cluster.client, cluster.client.requester

        def note(key: Key, obj: Object | None) -> None:
            if client.requester is requester:
                name = name_of(obj) if obj is not None else key.name
                self.objects[key._replace(name=name)] = obj

        client.on_write = note


class PlannedWorkload(NamedTuple):
    """A workload of a plan.

    :ivar finished_after: seconds from the beginning until it has finished for good; None: it does not.
    :ivar blocked_by: the object that is to blame.
    :ivar why: the document of ``why`` about it; None where it finishes.
    """

    course: Course
    finished_after: float | None
    blocked_by: Key | None = None
    why: Object | None = None


class Plan(NamedTuple):
    """What a command would do.

    :ivar command: its words; none: just what is under way.
    :ivar finishes: all workloads finish, and the command comes to an end.
    :ivar others: workloads that do not finish and were no different before; the command does not touch them.
    """

    command: tuple[str, ...]
    prediction: Prediction
    workloads: tuple[PlannedWorkload, ...]
    finishes: bool
    others: tuple[Key, ...] = ()


class Objects:
    """The objects of a prediction: as they are at its end, and before."""

    def __init__(self, before: LocalCluster, after: LocalCluster) -> None:
        self._clusters = after, before

    def get(self, key: Key) -> Object | None:
        """Return an object as it is at the end; one that is gone then as it was before."""
        return next((obj for cluster in self._clusters if (obj := find(cluster, key)) is not None), None)

    def top(self, key: Key, owner: str = "") -> Key:
        """Return the workload that an object belongs to: that which no other object controls, maybe itself.

        :param owner: its controller, where it may be missing at both times.
        """
        while True:
            obj = self.get(key)
            if obj is not None and (controller := controller_of(obj)):
                resource = self._clusters[0].scheme.for_kind(controller["apiVersion"], controller["kind"])
                owner = f"{resource.key}/{controller['name']}" if resource else ""
            if not owner:
                return key
            resource_key, _, name = owner.partition("/")
            key, owner = Key(resource_key, key.namespace, name), ""


def find(cluster: LocalCluster, key: Key) -> Object | None:
    """Return an object; None where it, or its kind, is missing."""
    try:
        return cluster.client.get(key.resource, key.name, namespace=key.namespace)
    except Status:
        return None
