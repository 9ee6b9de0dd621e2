"""A Deployment in a cluster of its own, and a witness who looks at it after every step of every controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.cli.driver import CHECKPOINT, reconcilers
from kubepy.cluster.client import Client
from kubepy.cluster.meta import Object, annotations_of, controller_of, labels_of, name_of, uid_of
from kubepy.cluster.objects.deployments import DESIRED_REPLICAS, revision_of, same_template, template_without_hash
from kubepy.cluster.objects.pods import is_pod_active, is_pod_available, is_pod_ready, phase_of
from kubepy.cluster.reconcile import Context, Handler, Informers, Key, Reconciler
from kubepy.cluster.workqueue import WorkQueue
from kubepy.controllers.checkpoint import CheckpointStore
from kubepy.controllers.deployment.sizes import count, max_surge, max_unavailable, replicas
from kubepy.controllers.manager import Manager
from tests.controllers.conftest import Lab

DEPLOYMENTS, REPLICA_SETS = "deployments.apps", "replicasets.apps"


def deployment(name: str = "web", *, replicas: int = 3, surge: int | str = "25%", unavailable: int | str = "25%",
               strategy: str = "RollingUpdate", image: str = "web:1", outcome: str = "ready", **spec: Any) -> Object:
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    template: Object = {
        "metadata": {"labels": {"app": name}, "annotations": {"kubepy.dev/outcome": outcome}},
        "spec": {"containers": [{"name": "c", "image": image}]}}
    full = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template,
            "strategy": {"type": strategy, **(rolling if strategy == "RollingUpdate" else {})}, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": full}


class Picture(NamedTuple):
    """The Deployment, its ReplicaSets and their pods that have neither ended nor are going, at one moment."""

    deployment: Object
    sets: dict[str, Object]  # by uid
    pods: dict[str, list[Object]]  # by the ReplicaSet's uid
    now: Any

    @property
    def wanted(self) -> int:
        return replicas(self.deployment)

    @property
    def most(self) -> int:
        """How many pods there may be."""
        return self.wanted + max_surge(self.deployment)

    @property
    def fewest(self) -> int:
        """How many must be available."""
        return self.wanted - max_unavailable(self.deployment)

    def available(self, uid: str) -> int:
        seconds = self.sets[uid]["spec"].get("minReadySeconds", 0)
        return sum(is_pod_available(pod, seconds, self.now) for pod in self.pods[uid])

    def all_available(self) -> int:
        return sum(map(self.available, self.sets))

    def all_ready(self) -> int:
        return sum(is_pod_ready(pod) for pods in self.pods.values() for pod in pods)

    def reported(self, uid: str) -> int:
        """How many available pods the ReplicaSet tells of."""
        return count(self.sets[uid], "availableReplicas")

    def all_pods(self) -> int:
        return sum(map(len, self.pods.values()))

    def total(self) -> int:
        """How many pods the ReplicaSets are to have together."""
        return sum(map(replicas, self.sets.values()))

    def is_rolling(self) -> bool:
        """Whether the Deployment is just rolling: neither paused, nor being scaled, nor replaced all at once."""
        spec = self.deployment["spec"]
        sizes = {annotations_of(one).get(DESIRED_REPLICAS) for one in self.sets.values() if replicas(one)}
        return spec["strategy"]["type"] == "RollingUpdate" and not spec.get("paused") and sizes <= {str(self.wanted)}

    def __str__(self) -> str:
        sets = [(annotations_of(one).get("deployment.kubernetes.io/revision"), replicas(one), len(self.pods[uid]),
                 self.available(uid)) for uid, one in self.sets.items()]
        return (f"{self.wanted} wanted, at most {self.most}, available at least {self.fewest}; "
                f"(revision, size, pods, available): {sets}")


def picture(client: Client, name: str = "web") -> Picture | None:
    found = [one for one in client.list(DEPLOYMENTS).items if name_of(one) == name]
    if not found:
        return None
    sets = {uid_of(one): one for one in client.list(REPLICA_SETS).items
            if (controller_of(one) or {}).get("uid") == uid_of(found[0])}
    pods: dict[str, list[Object]] = {uid: [] for uid in sets}
    for pod in client.list("pods").items:
        owner = (controller_of(pod) or {}).get("uid")
        if owner in pods and is_pod_active(pod):
            pods[owner].append(pod)
    return Picture(found[0], sets, pods, client.clock.now())


class Broken(AssertionError):
    """An invariant that does not hold."""


class Crash(BaseException):
    """The manager's process dies."""


# What is checked of a step: the reconciler's name, and the pictures before and after.
Check = Callable[[str, Any, Any], None]


def expect(holds: bool, what: str, before: Picture, after: Picture) -> None:
    if not holds:
        raise Broken(f"{what}\nbefore: {before}\nafter:  {after}")


def check_step(name: str, before: Picture, after: Picture) -> None:
    """What each controller promises of each step by itself, whatever has happened to the pods. Raises Broken."""
    if name == "deployment-controller":
        _check_sizes(before, after)
    if name == "replicaset-controller":
        _check_pods(before, after)
    _check_revisions(before, after)


def _check_sizes(before: Picture, after: Picture) -> None:
    """Rolling on never goes beyond what the strategy allows, nor gives up pods that are needed."""
    if not before.is_rolling():
        return
    expect(after.total() <= max(before.total(), before.most), "too many pods are asked for", before, after)
    known = sum(map(before.reported, before.sets))
    given_up = sum(max(before.reported(uid) - replicas(after.sets[uid]), 0) for uid in before.sets
                   if uid in after.sets and replicas(after.sets[uid]) < replicas(before.sets[uid]))
    expect(known - given_up >= min(known, before.fewest), "too few available pods are kept", before, after)


def _check_pods(before: Picture, after: Picture) -> None:
    """A ReplicaSet makes no more pods than it is to have, and those that are bound, run and are ready go last."""
    for uid, one in before.sets.items():
        if uid not in after.sets:
            continue
        expect(len(after.pods[uid]) <= max(len(before.pods[uid]), replicas(one)),
               f"{name_of(one)} makes too many pods", before, after)
        kept = {uid_of(pod) for pod in after.pods[uid]}
        gone = [standing(pod) for pod in before.pods[uid] if uid_of(pod) not in kept]
        stay = [standing(pod) for pod in before.pods[uid] if uid_of(pod) in kept]
        expect(not gone or not stay or max(gone) <= min(stay), f"{name_of(one)} gives up better pods than it keeps",
               before, after)


def standing(pod: Object) -> tuple[bool, bool, bool]:
    return bool(pod["spec"].get("nodeName")), phase_of(pod) == "Running", is_pod_ready(pod)


def _check_revisions(before: Picture, after: Picture) -> None:
    expect(revision_of(after.deployment) >= revision_of(before.deployment), "the revision falls", before, after)
    for uid in before.sets.keys() & after.sets.keys():
        expect(revision_of(after.sets[uid]) >= revision_of(before.sets[uid]), "a ReplicaSet's revision falls",
               before, after)
    revisions = [revision_of(one) for one in after.sets.values()]
    expect(len(set(revisions)) == len(revisions), "two ReplicaSets have one revision", before, after)


def check_availability(name: str, before: Picture, after: Picture) -> None:
    """The headline of a rolling update: what holds at every moment while no pod is lost by accident. Raises Broken.

    Without minReadySeconds a ready pod is an available one. With them a ReplicaSet does not ask, of two pods that are
    ready, which has been so for long enough.
    """
    check_step(name, before, after)
    expect(after.all_pods() <= after.most, "there are too many pods", before, after)
    expect(after.all_ready() >= after.fewest, "too few pods are ready", before, after)


class Witness:
    """One reconciler, with every sync looked at; all of them together die at the step that ``countdown`` reaches."""

    def __init__(self, inner: Reconciler, client: Client, check: Check, broken: list[Broken],
                 countdown: list[int], look: Callable[[Client], Any] = picture) -> None:
        self.name = inner.name
        self._inner, self._client, self._check, self._look = inner, client, check, look
        self._broken, self._countdown = broken, countdown

    def __getattr__(self, name: str) -> Any:  # remember and recall, where the reconciler has them
        return getattr(self._inner, name)

    @property
    def queue(self) -> WorkQueue[Key]:
        return self._inner.queue

    def handlers(self) -> Mapping[str, Handler]:
        return self._inner.handlers()

    def sync(self, key: Key) -> None:
        before = self._look(self._client)
        try:
            self._inner.sync(key)
        finally:
            after = self._look(self._client)
            if before is not None and after is not None:
                try:
                    self._check(self.name, before, after)
                except Broken as error:  # kept: the manager takes what a sync raises for the reconciler's own trouble
                    self._broken.append(error)
        self._countdown[0] -= 1
        if self._countdown[0] == 0:
            raise Crash


class DeploymentLab(Lab):
    """A cluster with two nodes, whose controllers are watched."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.broken: list[Broken] = []
        self.check: Check = check_step
        self.node("node-1")
        self.node("node-2")
        self.settle()

    def run(self, crash_at: int = 0) -> None:
        """Settle; with ``crash_at`` the manager dies at its so many-th step: what is not committed is lost."""
        cluster, informers, store = self.cluster, Informers(), self.cluster.store
        context = Context(cluster.client, informers, cluster.clock, cluster.scheme)
        countdown = [crash_at]
        made = [Witness(one, cluster.client, self.check, self.broken, countdown) for one in reconcilers(context)]
        checkpoints = CheckpointStore(lambda: store.meta(CHECKPOINT), lambda text: store.set_meta(CHECKPOINT, text))
        manager = Manager(cluster.client, informers, cluster.clock, made, resources=store.resources,
                          checkpoints=checkpoints)
        with suppress(Crash):
            manager.run_until_settled()
        if self.broken:
            raise self.broken[0]

    def wait(self, seconds: float) -> None:
        self.cluster.clock.fixed = self.now + timedelta(seconds=seconds)

    def make(self, obj: Object) -> Object:
        return self.create(DEPLOYMENTS, obj, "default")

    def deployment(self, name: str = "web") -> Object:
        return self.client.get(DEPLOYMENTS, name, namespace="default")

    def edit(self, **spec: Any) -> None:
        self.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(spec), "default")

    def update(self, image: str, outcome: str = "ready") -> None:
        template = self.deployment()["spec"]["template"]
        metadata = {**template["metadata"], "annotations": {"kubepy.dev/outcome": outcome}}
        containers = [{**template["spec"]["containers"][0], "image": image}]
        self.edit(template={"metadata": metadata, "spec": {**template["spec"], "containers": containers}})

    def undo(self) -> None:
        """Back to the template of the second newest revision, as ``rollout undo`` goes."""
        sets = sorted(self.sets(), key=revision_of)
        if len(sets) > 1:
            self.edit(template=template_without_hash(sets[-2]["spec"]["template"]))

    def sets(self) -> list[Object]:
        return [one for one in self.client.list(REPLICA_SETS).items if labels_of(one).get("app") == "web"]

    def newest(self) -> Object:
        template = self.deployment()["spec"]["template"]
        return next(one for one in self.sets() if same_template(one["spec"]["template"], template))

    def pods(self) -> list[Object]:
        return list(self.client.list("pods").items)

    def conditions(self) -> dict[str, tuple[str, str]]:
        return {one["type"]: (one["status"], one["reason"]) for one in self.deployment()["status"]["conditions"]}

    def messages(self, name: str) -> list[str]:
        """What was said about an object, in the order in which it was said."""
        return [f"{one['reason']}: {one['message']}" for one in self.client.list("events").items
                if one["involvedObject"]["name"] == name]
