"""A cluster with a Deployment whose invariants are checked after every sync of every controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, controller_of, labels_of, name_of, uid_of
from kubepy.api.objects.deployments import (
    DESIRED_REPLICAS,
    HASH_LABEL,
    REVISION,
    revision_of,
    same_template,
    template_without_hash,
)
from kubepy.api.objects.pods import is_pod_active, is_pod_available, is_pod_ready, phase_of
from kubepy.apiserver.client import Client
from kubepy.controllers.deployment.sizes import count, max_surge, max_unavailable, replicas
from kubepy.controlplane import new_reconcilers
from kubepy.runtime.reconcile import Context, Reconciler
from tests.controllers.watched_lab import Broken, Check, WatchedLab, Witness

DEPLOYMENTS, REPLICA_SETS = "deployments.apps", "replicasets.apps"


def deployment(
    name: str = "web",
    *,
    replicas: int = 3,
    surge: int | str = "25%",
    unavailable: int | str = "25%",
    strategy: str = "RollingUpdate",
    image: str = "web:1",
    outcome: str = "ready",
    **spec: Any,
) -> Object:
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    template: Object = {
        "metadata": {"labels": {"app": name}, "annotations": {"kubepy.dev/outcome": outcome}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    full = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
        "strategy": {"type": strategy, **(rolling if strategy == "RollingUpdate" else {})},
        **spec,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": full}


class Picture(NamedTuple):
    """A snapshot of the Deployment, its ReplicaSets and their pods that have neither ended nor are
    being deleted."""

    deployment: Object
    sets: dict[str, Object]  # by uid
    pods: dict[str, list[Object]]  # by the ReplicaSet's uid
    now: Any

    @property
    def wanted(self) -> int:
        return replicas(self.deployment)

    @property
    def most(self) -> int:
        """The highest number of pods allowed."""
        return self.wanted + max_surge(self.deployment)

    @property
    def fewest(self) -> int:
        """The lowest number of available pods allowed."""
        return self.wanted - max_unavailable(self.deployment)

    def available(self, uid: str) -> int:
        seconds = self.sets[uid]["spec"].get("minReadySeconds", 0)
        return sum(is_pod_available(pod, seconds, self.now) for pod in self.pods[uid])

    def all_available(self) -> int:
        return sum(map(self.available, self.sets))

    def all_ready(self) -> int:
        return sum(is_pod_ready(pod) for pods in self.pods.values() for pod in pods)

    def reported(self, uid: str) -> int:
        """Return the number of available pods in the ReplicaSet's status."""
        return count(self.sets[uid], "availableReplicas")

    def all_pods(self) -> int:
        return sum(map(len, self.pods.values()))

    def total(self) -> int:
        """Return the sum of the ReplicaSets' spec.replicas."""
        return sum(map(replicas, self.sets.values()))

    def is_rolling(self) -> bool:
        """Report whether the Deployment does a rolling update, neither paused nor being scaled."""
        spec = self.deployment["spec"]
        sizes = {
            annotations_of(one).get(DESIRED_REPLICAS) for one in self.sets.values() if replicas(one)
        }
        return (
            spec["strategy"]["type"] == "RollingUpdate"
            and not spec.get("paused")
            and sizes <= {str(self.wanted)}
        )

    def __str__(self) -> str:
        sets = [
            (
                annotations_of(one).get("deployment.kubernetes.io/revision"),
                replicas(one),
                len(self.pods[uid]),
                self.available(uid),
            )
            for uid, one in self.sets.items()
        ]
        return (
            f"{self.wanted} wanted, at most {self.most}, available at least {self.fewest}; "
            f"(revision, size, pods, available): {sets}"
        )


def picture(client: Client, name: str = "web") -> Picture | None:
    found = [one for one in client.list(DEPLOYMENTS).items if name_of(one) == name]
    if not found:
        return None
    sets = {
        uid_of(one): one
        for one in client.list(REPLICA_SETS).items
        if (controller_of(one) or {}).get("uid") == uid_of(found[0])
    }
    pods: dict[str, list[Object]] = {uid: [] for uid in sets}
    for pod in client.list("pods").items:
        owner = (controller_of(pod) or {}).get("uid")
        if owner in pods and is_pod_active(pod):
            pods[owner].append(pod)
    return Picture(found[0], sets, pods, client.clock.now())


def expect(holds: bool, what: str, before: Picture, after: Picture) -> None:
    if not holds:
        raise Broken(f"{what}\nbefore: {before}\nafter:  {after}")


def check_step(name: str, before: Picture, after: Picture) -> None:
    """Check the invariants of one step of a controller, which hold whatever happens to the pods.
    Raises Broken."""
    if name == "deployment-controller":
        _check_sizes(before, after)
    if name == "replicaset-controller":
        _check_pods(before, after)
    _check_revisions(before, after)


def _check_sizes(before: Picture, after: Picture) -> None:
    """Check that a rolling update never exceeds the strategy's limits, nor deletes pods that are
    needed."""
    if not before.is_rolling():
        return
    expect(
        after.total() <= max(before.total(), before.most),
        "too many pods are asked for",
        before,
        after,
    )
    known = sum(map(before.reported, before.sets))
    given_up = sum(
        max(before.reported(uid) - replicas(after.sets[uid]), 0)
        for uid in before.sets
        if uid in after.sets and replicas(after.sets[uid]) < replicas(before.sets[uid])
    )
    expect(
        known - given_up >= min(known, before.fewest),
        "too few available pods are kept",
        before,
        after,
    )


def _check_pods(before: Picture, after: Picture) -> None:
    """Check that a ReplicaSet makes no more pods than its replicas, and deletes bound, running and
    ready pods last."""
    for uid, one in before.sets.items():
        if uid not in after.sets:
            continue
        expect(
            len(after.pods[uid]) <= max(len(before.pods[uid]), replicas(one)),
            f"{name_of(one)} makes too many pods",
            before,
            after,
        )
        kept = {uid_of(pod) for pod in after.pods[uid]}
        gone = [standing(pod) for pod in before.pods[uid] if uid_of(pod) not in kept]
        stay = [standing(pod) for pod in before.pods[uid] if uid_of(pod) in kept]
        # Where all are to go, the order does not matter, and a controller that ends half way leaves
        # any of them.
        expect(
            not gone or not stay or not replicas(one) or max(gone) <= min(stay),
            f"{name_of(one)} gives up better pods than it keeps",
            before,
            after,
        )


def standing(pod: Object) -> tuple[bool, bool, bool]:
    return bool(pod["spec"].get("nodeName")), phase_of(pod) == "Running", is_pod_ready(pod)


def _check_revisions(before: Picture, after: Picture) -> None:
    expect(
        revision_of(after.deployment) >= revision_of(before.deployment),
        "the revision falls",
        before,
        after,
    )
    past, revisions = revisions_of(before), revisions_of(after)
    for uid in past.keys() & revisions.keys():
        expect(revisions[uid] >= past[uid], "a ReplicaSet's revision falls", before, after)
    expect(
        len(set(revisions.values())) == len(revisions),
        "two ReplicaSets have one revision",
        before,
        after,
    )


def revisions_of(picture: Picture) -> dict[str, int]:
    """Return the revisions of the ReplicaSets, without those of which a test has made something
    else than a number."""
    return {
        uid: revision_of(one)
        for uid, one in picture.sets.items()
        if annotations_of(one).get(REVISION, "0").isdigit()
    }


def check_availability(name: str, before: Picture, after: Picture) -> None:
    """Check the bounds of a rolling update, which hold at every moment while no pod is lost by
    accident. Raises Broken.

    The bounds are those of ready pods: without minReadySeconds they are the available ones, and
    with them a ReplicaSet does not compare how long two pods have been ready when it deletes one.
    """
    check_step(name, before, after)
    expect(after.all_pods() <= after.most, "there are too many pods", before, after)
    expect(after.all_ready() >= after.fewest, "too few pods are ready", before, after)


def check_duplicates(name: str, before: Picture | None, after: Picture | None) -> None:
    """Check that no ReplicaSet has more pods than it ever should, even if some have not been seen,
    and that no two ReplicaSets have the same template. Raises Broken."""
    if before is None or after is None:
        return
    hashes = [
        labels_of(one)[HASH_LABEL] for one in after.sets.values() if HASH_LABEL in labels_of(one)
    ]
    expect(len(set(hashes)) == len(hashes), "two ReplicaSets of one template", before, after)
    if name == "replicaset-controller":
        for uid, one in before.sets.items():
            made = len(after.pods.get(uid, [])) - len(before.pods[uid])
            most = max(replicas(one), count(one, "replicas"))
            expect(
                made <= 0 or len(after.pods[uid]) <= most,
                f"{name_of(one)} makes too many pods",
                before,
                after,
            )


class DeploymentLab(WatchedLab):
    """A cluster with two nodes, whose controllers are checked after each sync."""

    def __init__(self, folder: Path, faults: Object | None = None) -> None:
        super().__init__(folder, faults)
        self.check: Check = check_step
        self.node("node-1")
        self.node("node-2")
        self.settle()

    def witnesses(self, context: Context, crash_at: int) -> list[Reconciler]:
        countdown = [crash_at]
        return [
            Witness(
                reconciler,
                self.client,
                self.check,
                self.broken,
                countdown,
                picture,
                check_duplicates,
            )
            for reconciler in new_reconcilers(context)
        ]

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
        self.edit(
            template={"metadata": metadata, "spec": {**template["spec"], "containers": containers}}
        )

    def undo(self) -> None:
        """Restore the template of the second newest revision, as ``rollout undo`` does."""
        sets = sorted(self.sets(), key=revision_of)
        if len(sets) > 1:
            self.edit(template=template_without_hash(sets[-2]["spec"]["template"]))

    def sets(self) -> list[Object]:
        return [
            one
            for one in self.client.list(REPLICA_SETS).items
            if labels_of(one).get("app") == "web"
        ]

    def newest(self) -> Object:
        template = self.deployment()["spec"]["template"]
        return next(one for one in self.sets() if same_template(one["spec"]["template"], template))

    def pods(self) -> list[Object]:
        return list(self.client.list("pods").items)

    def conditions(self) -> dict[str, tuple[str, str]]:
        return {
            one["type"]: (one["status"], one["reason"])
            for one in self.deployment()["status"]["conditions"]
        }

    def messages(self, name: str) -> list[str]:
        """Return the messages of an object's events, in order."""
        return [
            f"{one['reason']}: {one['message']}"
            for one in self.client.list("events").items
            if one["involvedObject"]["name"] == name
        ]
