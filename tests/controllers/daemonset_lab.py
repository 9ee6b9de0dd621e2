"""A cluster with a DaemonSet whose invariants are checked after every sync of its controller."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.api.meta import Object, controller_of, is_being_deleted, labels_of, name_of, uid_of
from kubepy.api.objects.nodes import TAINT_UNREACHABLE
from kubepy.api.objects.pods import is_pod_available, is_pod_ready, is_pod_terminal
from kubepy.api.values.gonumbers import scaled_value
from kubepy.apiserver.client import Client
from kubepy.controllers.daemonset.pods import target_node_name
from kubepy.controlplane import new_reconcilers
from kubepy.runtime.reconcile import Context, Reconciler
from tests.controllers.watched_lab import Broken, WatchedLab, Witness

SETS, REVISIONS = "daemonsets.apps", "controllerrevisions.apps"
HASH = "controller-revision-hash"
CONTROLLER = "daemonset-controller"


def daemon_set(surge: int | str = 0, unavailable: int | str = 1, **spec: Any) -> Object:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    template = {"metadata": {"labels": {"app": "agent"}, "annotations": {}},
                "spec": {"containers": [{"name": "c", "image": "agent:1"}]}}  # fmt: skip
    full = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": template,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        **spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": full,
    }


class Picture(NamedTuple):
    """A snapshot of the DaemonSet, the nodes, its pods on each node and its revisions."""

    daemon_set: Object
    nodes: dict[str, Object]
    pods: dict[str, list[Object]]  # by their node, bound or meant; neither ended nor being deleted
    going: dict[str, list[Object]]
    revisions: list[Object]
    now: datetime

    @property
    def min_ready_seconds(self) -> int:
        seconds: int = self.daemon_set["spec"].get("minReadySeconds", 0)
        return seconds

    @property
    def image(self) -> str:
        image: str = self.daemon_set["spec"]["template"]["spec"]["containers"][0]["image"]
        return image

    @property
    def wanting(self) -> set[str]:
        """The nodes that should have a pod."""
        return {
            name
            for name, node in self.nodes.items()
            if not effects(node) and self.is_selected(node)
        }

    def is_selected(self, node: Object) -> bool:
        selector = self.daemon_set["spec"]["template"]["spec"].get("nodeSelector") or {}
        return selector.items() <= labels_of(node).items()

    def may_stay(self, name: str) -> bool:
        """Report whether a pod on the node may stay there."""
        node = self.nodes.get(name)
        return node is not None and self.is_selected(node) and "NoExecute" not in effects(node)

    @property
    def hash(self) -> str:
        """The hash label of pods of the current template, "" before its revision exists."""
        template = self.daemon_set["spec"]["template"]
        found = [
            labels_of(one)[HASH]
            for one in self.revisions
            if one["data"]["spec"]["template"] == {**template, "$patch": "replace"}
        ]
        return found[0] if found else ""

    def is_new(self, pod: Object) -> bool:
        """Report whether the pod has the current template, by its hash or by the older generation
        label."""
        generation = self.daemon_set["metadata"]["annotations"][
            "deprecated.daemonset.template.generation"
        ]
        labels = labels_of(pod)
        return labels[HASH] == self.hash or labels["pod-template-generation"] == generation

    def is_available(self, pod: Object) -> bool:
        return is_pod_available(pod, self.min_ready_seconds, self.now)

    def served(self) -> set[str]:
        """Return the nodes with an available pod that is not being deleted."""
        return {node for node, pods in self.pods.items() if any(map(self.is_available, pods))}

    def limit(self, name: str) -> int:
        """Return maxSurge or maxUnavailable as a number of the nodes that should have a pod."""
        strategy = self.daemon_set["spec"]["updateStrategy"]
        value = (strategy.get("rollingUpdate") or {}).get(
            name, 1 if name == "maxUnavailable" else 0
        )
        return scaled_value(value, len(self.wanting), round_up=True)

    @property
    def surges(self) -> bool:
        strategy = self.daemon_set["spec"]["updateStrategy"]
        return strategy["type"] == "RollingUpdate" and self.limit("maxSurge") > 0

    def doubled(self) -> set[str]:
        """Return the nodes with an available old pod and a new pod that is not available yet."""
        return {
            node
            for node, pods in self.pods.items()
            if any(map(self.is_new, pods))
            and any(not self.is_new(pod) and self.is_available(pod) for pod in pods)
            and not any(self.is_new(pod) and self.is_available(pod) for pod in pods)
        }

    def __str__(self) -> str:
        def shown(pod: Object) -> str:
            return (
                f"{pod['spec']['containers'][0]['image']}{'+' if self.is_available(pod) else '-'}"
            )

        nodes = {
            name: [
                *map(shown, self.pods.get(name, [])),
                *(["leaving"] if self.going.get(name) else []),
            ]
            for name in sorted(self.nodes | self.pods)
        }
        return (
            f"{self.image} {self.daemon_set['spec']['updateStrategy']} on "
            f"{sorted(self.wanting)}: {nodes}"
        )


def effects(node: Object) -> set[str]:
    """Return the effects of the node's taints that daemon pods do not tolerate: of a node that is
    down NoSchedule."""
    return {
        one["effect"]
        for one in node["spec"].get("taints") or ()
        if one["key"] == "keep-off"
        or (one["key"], one["effect"]) == (TAINT_UNREACHABLE, "NoSchedule")
    }


def picture(client: Client) -> Picture | None:
    found = [one for one in client.list(SETS).items if not is_being_deleted(one)]
    if not found:
        return None
    own = [
        pod
        for pod in client.list("pods").items
        if (controller_of(pod) or {}).get("uid") == uid_of(found[0])
    ]
    pods: dict[str, list[Object]] = {}
    going: dict[str, list[Object]] = {}
    for pod in own:
        if not is_pod_terminal(pod):
            (going if is_being_deleted(pod) else pods).setdefault(target_node_name(pod), []).append(
                pod
            )
    nodes = {name_of(node): node for node in client.list("nodes").items}
    return Picture(found[0], nodes, pods, going, client.list(REVISIONS).items, client.clock.now())


def expect(holds: bool, what: str, before: Picture, after: Picture) -> None:
    if not holds:
        raise Broken(f"{what}\nbefore: {before}\nafter:  {after}")


def check_step(name: str, before: Picture, after: Picture) -> None:
    """Check the invariants of one step of the controller, which hold whatever happens to pods and
    nodes. Raises Broken."""
    if name != CONTROLLER:
        return
    _check_created(before, after)
    _check_deleted(before, after)
    _check_outage(before, after)
    _check_surge(before, after)
    _check_revisions(before, after)


def _uids(pods: list[Object]) -> set[str]:
    return {uid_of(pod) for pod in pods}


def _check_created(before: Picture, after: Picture) -> None:
    """Check that new pods have the current template, are on nodes that should have one, and are one
    per node."""
    for node, pods in after.pods.items():
        there = before.pods.get(node, [])
        made = [pod for pod in pods if uid_of(pod) not in _uids(there)]
        if not made:
            continue
        expect(node in before.wanting, f"a pod for {node}, which wants none", before, after)
        expect(len(made) == 1 and after.is_new(made[0]), f"wrong pods for {node}", before, after)
        beside = [pod for pod in there if uid_of(pod) in _uids(pods)]
        if before.surges:
            expect(not any(map(after.is_new, beside)), f"a second new pod on {node}", before, after)
        else:
            expect(
                not there and not before.going.get(node), f"a second pod on {node}", before, after
            )


def _check_deleted(before: Picture, after: Picture) -> None:
    """Check that a node's only pod stays if it has the current template and may stay; with
    OnDelete, that any only pod stays."""
    on_delete = before.daemon_set["spec"]["updateStrategy"]["type"] == "OnDelete"
    for node, pods in before.pods.items():
        gone = [pod for pod in pods if uid_of(pod) not in _uids(after.pods.get(node, []))]
        if len(pods) == 1 and gone and before.may_stay(node):
            expect(
                not on_delete and not before.is_new(gone[0]),
                f"the pod of {node} is taken away",
                before,
                after,
            )


def _check_outage(before: Picture, after: Picture) -> None:
    """Check that no more nodes lose their last available pod than the strategy allows."""
    lost = {node for node in before.served() - after.served() if before.may_stay(node)}
    if before.surges:
        allowed = (
            0
            if not before.daemon_set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
            else len(lost)
        )
        wanted = {node for node in lost if node in before.wanting}
        expect(
            len(wanted) <= allowed, "nodes are left without a pod while it surges", before, after
        )
        return
    concerned = before.wanting | before.pods.keys()
    most = max(before.limit("maxUnavailable"), 1 if before.limit("maxSurge") == 0 else 0)
    budget = max(most - len(concerned - before.served()), 0)
    expect(
        len(lost) <= budget, f"{len(lost)} nodes lose their pod where {budget} may", before, after
    )


def _check_surge(before: Picture, after: Picture) -> None:
    fresh = after.doubled() - before.doubled()
    expect(
        len(after.doubled()) <= max(len(before.doubled()), before.limit("maxSurge")) or not fresh,
        "too many nodes have two pods",
        before,
        after,
    )


def _check_revisions(before: Picture, after: Picture) -> None:
    numbers = {uid_of(one): one["revision"] for one in before.revisions}
    for one in after.revisions:
        expect(
            one["revision"] >= numbers.get(uid_of(one), 0),
            "a revision's number falls",
            before,
            after,
        )
    found = [one["revision"] for one in after.revisions]
    expect(len(set(found)) == len(found), "two revisions have one number", before, after)


def check_duplicates(name: str, before: Picture | None, after: Picture | None) -> None:
    """Check that no node gets a second pod of a template, even if the first one has not been seen.
    Raises Broken."""
    if name != CONTROLLER or before is None or after is None:
        return
    for node, pods in after.pods.items():
        made = [pod for pod in pods if uid_of(pod) not in _uids(before.pods.get(node, []))]
        hashes = [labels_of(pod)[HASH] for pod in pods]
        expect(
            not made or len(set(hashes)) == len(hashes),
            f"a second pod of a template on {node}",
            before,
            after,
        )


class DaemonLab(WatchedLab):
    """A cluster with three nodes, whose DaemonSet controller is checked after each sync."""

    def __init__(self, folder: Path, faults: Object | None = None) -> None:
        super().__init__(folder, faults)
        self.looks = 0
        for number in (1, 2, 3):
            self.add_node(number)
        self.settle()

    def add_node(self, number: int) -> None:
        meta = {"name": f"node-{number}", "labels": {"parity": "odd" if number % 2 else "even"}}
        self.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})

    def witnesses(self, context: Context, crash_at: int) -> list[Reconciler]:
        countdown = [crash_at]
        return [
            Witness(
                reconciler,
                self.client,
                check_step,
                self.broken,
                countdown,
                picture,
                check_duplicates,
            )
            for reconciler in new_reconcilers(context)
        ]

    def look(self) -> Picture:
        seen = picture(self.client)
        assert seen is not None
        return seen

    def pods(self) -> list[Object]:
        return self.client.list("pods").items

    def edit(self, **spec: Any) -> None:
        self.change(SETS, "agent", lambda obj: obj["spec"].update(spec), "default")

    def retemplate(
        self, image: str, outcome: str = "ready", selector: dict[str, str] | None = None
    ) -> None:
        template = self.look().daemon_set["spec"]["template"]
        metadata = {**template["metadata"], "annotations": {"kubepy.dev/outcome": outcome}}
        spec = {
            **template["spec"],
            "containers": [{**template["spec"]["containers"][0], "image": image}],
            "nodeSelector": selector,
        }
        self.edit(template={"metadata": metadata, "spec": spec})


def counts(seen: Picture, client: Client) -> dict[str, int]:
    """Return the status expected at rest. Of each node one pod counts: a bound pod before an
    unbound one, then the oldest; pods being deleted are included."""
    found = dict.fromkeys(
        ("desired", "current", "ready", "available", "updated", "misscheduled"), 0
    )
    for node in seen.nodes:
        pods = [*seen.pods.get(node, []), *seen.going.get(node, []), *_ended(seen, client, node)]
        if node not in seen.wanting:
            found["misscheduled"] += bool(pods)
            continue
        found["desired"] += 1
        if pods:
            first = min(
                pods,
                key=lambda pod: (
                    not pod["spec"].get("nodeName"),
                    pod["metadata"]["creationTimestamp"],
                    uid_of(pod),
                ),
            )
            found["current"] += 1
            found["ready"] += is_pod_ready(first)
            found["available"] += seen.is_available(first)
            found["updated"] += seen.is_new(first)
    return found


def _ended(seen: Picture, client: Client, node: str) -> list[Object]:
    uid = uid_of(seen.daemon_set)
    ended = [
        pod
        for pod in client.list("pods").items
        if is_pod_terminal(pod) and not is_being_deleted(pod)
    ]
    return [
        pod
        for pod in ended
        if target_node_name(pod) == node and (controller_of(pod) or {}).get("uid") == uid
    ]
