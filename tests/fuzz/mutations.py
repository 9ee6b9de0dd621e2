"""Mistakes in the controllers that the scenarios must find: ``python -m tests.fuzz mutations``.

Each is a piece of a module's source with a wrong piece in its place. A process of its own runs the
scenarios with it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NamedTuple


class Replacement(NamedTuple):
    """A piece of a module's source, and the wrong one."""

    module: str
    right: str
    wrong: str


class Mutation(NamedTuple):
    """A mistake.

    :ivar scenarios: those in which it is looked for, in this order.
    """

    name: str
    scenarios: Sequence[str]
    replacements: Sequence[Replacement]


def _one(name: str, scenarios: str, module: str, right: str, wrong: str) -> Mutation:
    return Mutation(
        name, scenarios.split(), [Replacement(f"kubepy.controllers.{module}", right, wrong)]
    )


FAULTS = "kubepy.controlplane.faults"

MUTATIONS: Sequence[Mutation] = (
    Mutation(
        "ReplicaSets do not wait for the Pods that they have made",
        ["full-nodes", "deployment-update"],
        [
            Replacement(FAULTS, '    "replicaset-controller",\n', ""),
            Replacement(
                "kubepy.controllers.replicaset",
                "if self._expectations.are_satisfied(key) and not",
                "if not",
            ),
        ],
    ),
    Mutation(
        "Jobs do not wait for the Pods that they have made",
        ["job-completions", "job-indexed"],
        [Replacement(FAULTS, '    "job-controller",\n', "")],
    ),
    Mutation(
        "DaemonSets do not wait for the Pods that they have made",
        ["daemonset-nodes", "daemonset-update"],
        [
            Replacement(FAULTS, '    "daemonset-controller",\n', ""),
            Replacement(
                "kubepy.controllers.daemonset",
                "if not self._expectations.are_satisfied(state.key):",
                "if False:",
            ),
        ],
    ),
    _one(
        "maxUnavailable of a Deployment is off by one",
        "deployment-update deployment-unavailable",
        "deployment.rolling",
        "min_available = replicas(deployment) - max_unavailable(deployment)",
        "min_available = replicas(deployment) - max_unavailable(deployment) - 1",
    ),
    _one(
        "maxSurge of a Deployment is off by one",
        "deployment-unavailable deployment-update",
        "deployment.sizes",
        "room = desired + max_surge(deployment) - total(others) - present",
        "room = desired + max_surge(deployment) + 1 - total(others) - present",
    ),
    _one(
        "a Deployment scales a ReplicaSet by a stale read",
        "deployment-update deployment-unavailable deployment-undo deployment-scale",
        "deployment",
        "state = state.with_replica_set(self._replica_set_writer.update(scaled))",
        "metadata = {k: v for k, v in scaled['metadata'].items() if k != 'resourceVersion'}\n"
        "        state = state.with_replica_set(\n"
        "            self._replica_set_writer.update({**scaled, 'metadata': metadata})\n"
        "        )",
    ),
    _one(
        "Recreate does not wait for the old Pods",
        "deployment-recreate",
        "deployment.decide",
        "if not sizes.active(state.old_replica_sets) and not old_pods_running(state):",
        "if not sizes.active(state.old_replica_sets):",
    ),
    _one(
        "a Deployment takes a ReplicaSet that another one owned without looking at the uid",
        "delete-recreate",
        "ref_manager",
        "        if uid_of(fresh) != uid:",
        "        if False:",
    ),
    _one(
        "the ready Pods of a ReplicaSet go first",
        "deployment-scale full-nodes deployment-undo",
        "replicaset",
        "for rank in sorted(by_rank):",
        "for rank in sorted(by_rank, reverse=True):",
    ),
    _one(
        "a ReplicaSet counts Pods that are not its own any more",
        "adoption",
        "ownership",
        "if selector is None or not selector.matches(labels):",
        "if False:",
    ),
    _one(
        "a StatefulSet is scaled down from the lowest Pod",
        "statefulset-scale",
        "statefulset.decide",
        "return replicas, sorted(beyond, key=lambda replica: replica.ordinal, reverse=True)",
        "return replicas, sorted(beyond, key=lambda replica: replica.ordinal)",
    ),
    _one(
        "a StatefulSet does not wait for the Pod that it has updated",
        "statefulset-parallel",
        "statefulset.decide",
        "        if state.is_unavailable(replica):\n            return None\n    return None",
        "    return None",
    ),
    _one(
        "the partition of a StatefulSet is off by one",
        "statefulset-partition",
        "statefulset.decide",
        "for replica in reversed(replicas[partition(state.stateful_set) :]):",
        "for replica in reversed(replicas[max(partition(state.stateful_set) - 1, 0) :]):",
    ),
    _one(
        "a StatefulSet's Pod that comes back below the partition is new",
        "statefulset-partition",
        "statefulset.decide",
        "revision = state.current_revision if is_current else state.update_revision",
        "revision = state.update_revision",
    ),
    _one(
        "a Job forgets to write down what it counts before the finalizer goes",
        "job-completions job-indexed",
        "job",
        "observed = self._flush(state, status.new_status(state, current, outcome, tracking))",
        "observed = state.observed",
    ),
    _one(
        "a Job does not wait after a failure",
        "job-failures",
        "job.decide",
        "        delay := remaining_delay(state.backoff, state.now)\n",
        "        delay := 0.0\n",
    ),
    _one(
        "an Indexed Job forgets the indexes that are running",
        "job-indexed",
        "job.decide",
        "taken = state.completed | state.failed_indexes | indexes_of(state.active_pods)",
        "taken = state.completed | state.failed_indexes",
    ),
    _one(
        "a Pod of a Job that is gone keeps its finalizer",
        "job-delete",
        "job",
        "if pod is not None and has_tracking_finalizer(pod) and not self._has_tracker(pod):\n"
        "            self.queue.add(event.key)",
        "if False:\n            self.queue.add(event.key)",
    ),
    _one(
        "maxUnavailable of a DaemonSet is off by one",
        "daemonset-update",
        "daemonset.rolling_update",
        "remaining_unavailable = max_unavailable - nodes.num_unavailable",
        "remaining_unavailable = max_unavailable + 1 - nodes.num_unavailable",
    ),
    _one(
        "with surge the old Pod of a DaemonSet goes at once",
        "daemonset-surge",
        "daemonset.rolling_update",
        "            if new_is_available:\n",
        "            if True:\n",
    ),
    _one(
        "a DaemonSet does not hear of the labels of nodes",
        "daemonset-nodes",
        "daemonset",
        "            or labels_of(old) != labels_of(new)\n",
        "",
    ),
    _one(
        "a namespace's finalizer goes while its Pods are still ending",
        "delete-namespace",
        "namespace",
        'Error("; ".join(content.errors))\n        if content.estimate:\n',
        'Error("; ".join(content.errors))\n        if False:\n',
    ),
    _one(
        "an owner in foreground deletion does not wait for its dependents",
        "delete-cascade",
        "garbagecollector",
        "        if not blocking:\n",
        "        if True:\n",
    ),
    _one(
        "the orphan finalizer goes before the dependents are free",
        "delete-cascade delete-recreate adoption",
        "garbagecollector",
        "self._drop_owners(dependent, dependent_obj, {uid_of(obj)})",
        "pass",
    ),
    _one(
        "the garbage collector trusts its cache that an owner is gone",
        "deployment-update deployment-undo delete-recreate statefulset-scale job-completions",
        "garbagecollector",
        "self._find_owner(key, reference) or self._get_owner(key, reference)",
        "self._find_owner(key, reference)",
    ),
    _one(
        "a budget forgets the Pods that were just evicted",
        "drain",
        "disruption",
        "is_pod_ready(pod) and not is_being_deleted(pod) and name_of(pod) not in disrupted",
        "is_pod_ready(pod)",
    ),
    _one(
        "a CronJob that forbids two Jobs does not look at the one that runs",
        "cronjob",
        "cronjob",
        'if policy == "Forbid" and state.active:',
        'if policy == "Forbid" and not state.active:',
    ),
    _one(
        "the slices of a Service are made by a stale read",
        "service",
        "endpointslice",
        "self._tracker.check(key, slices)",
        "pass",
    ),
    _one(
        "a StatefulSet writes a status from before its Pods became ready",
        "statefulset-scale statefulset-update",
        "statefulset.status",
        '        "readyReplicas",\n        "updatedReplicas",\n        "availableReplicas",\n',
        "",
    ),
)


class MutatingLoader(SourceFileLoader):
    """Loads a module with wrong pieces in its source."""

    def __init__(self, name: str, path: str, replacements: Sequence[Replacement]) -> None:
        super().__init__(name, path)
        self._replacements = replacements

    def get_code(self, fullname: str) -> CodeType:
        """Compile the wrong source; what is compiled of the right one is not used."""
        source = self.get_data(self.path).decode()
        for replacement in self._replacements:
            source = mutated(source, replacement)
        return compile(source, self.path, "exec")


def mutated(source: str, replacement: Replacement) -> str:
    """Return the source with the wrong piece. Raises ValueError where the right one is not there
    just once."""
    if source.count(replacement.right) != 1:
        count = source.count(replacement.right)
        raise ValueError(f"{replacement.module} has {count} times: {replacement.right!r}")
    return source.replace(replacement.right, replacement.wrong)


class MutatingFinder(MetaPathFinder):
    """Finds the modules of a mutation."""

    def __init__(self, mutation: Mutation) -> None:
        self._by_module: dict[str, list[Replacement]] = {}
        for replacement in mutation.replacements:
            self._by_module.setdefault(replacement.module, []).append(replacement)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        replacements = self._by_module.get(fullname)
        if replacements is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = MutatingLoader(fullname, spec.origin, replacements)
        return spec


def install(mutation: Mutation) -> None:
    """Let this process import the mutation's modules with their mistakes. Raises ValueError where
    one is imported already."""
    imported = [item.module for item in mutation.replacements if item.module in sys.modules]
    if imported:
        raise ValueError(f"imported already: {', '.join(imported)}")
    finder: Any = MutatingFinder(mutation)
    sys.meta_path.insert(0, finder)
