"""Cluster events made from changes of objects, and the waiting pods they may help."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.runtime.reconcile import Key, WatchEvent
from kubepy.scheduler.cluster_events import (
    namespace_event,
    node_event,
    pod_event,
    unscheduled_pod_event,
    volume_event,
)
from kubepy.scheduler.framework import (
    NAMESPACE,
    NODE_ADD,
    NODE_ALLOCATABLE,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    POD_ADD,
    POD_DELETE,
    POD_LABEL,
    POD_SCALE_DOWN,
    POD_TERMINATING,
    SELF_UPDATE,
    VOLUME,
    ClusterEvent,
)
from kubepy.scheduler.plugins import FILTER_PLUGINS

from .objects import info, node, pod

Object = dict[str, Any]
BY_NAME = {plugin.name: plugin for plugin in FILTER_PLUGINS}


def change(
    old: Object | None, new: Object | None, resource: str = "pods", *, is_update: bool = False
) -> WatchEvent:
    name = (new or old or {"metadata": {}})["metadata"].get("name", "")
    return WatchEvent(Key(resource, "", name), old, new, is_update)


def ended(made: Object, phase: str = "Succeeded") -> Object:
    return {**made, "status": {**made["status"], "phase": phase}}


def leaving(made: Object) -> Object:
    return {**made, "metadata": {**made["metadata"], "deletionTimestamp": "2026-11-20T10:00:00Z"}}


TAINT = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(("old", "new", "actions"), [
    (None, node("a"), {NODE_ADD}),
    (node("a"), None, {NODE_DELETE}),
    (node("a"), node("a", labels={"x": "y"}), {NODE_LABEL}),
    (node("a"), node("a", **TAINT), {NODE_TAINT}),
    (node("a", unschedulable=True), node("a"), {NODE_TAINT}),
    (node("a"), node("a", unschedulable=True), set()),
    (node("a"), node("a", cpu="5"), {NODE_ALLOCATABLE}),
    (node("a"), node("a", cpu="5", labels={"x": "y"}), {NODE_ALLOCATABLE, NODE_LABEL}),
    (node("a"), {**node("a"), "status": {**node("a")["status"], "phase": "x"}}, set()),
])  # fmt: skip
def test_changes_of_nodes(old: Object | None, new: Object | None, actions: set[str]) -> None:
    found = node_event(change(old, new, "nodes"))
    assert (found.actions, found.node) == (actions, "a")


THERE = pod("p", on="a", requests={"cpu": "2"})


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (None, THERE, {POD_ADD}),
        (None, pod("p"), set()),
        (pod("p"), THERE, {POD_ADD}),
        (THERE, None, {POD_DELETE}),
        (pod("p"), None, set()),
        (THERE, ended(THERE), {POD_DELETE}),
        (THERE, ended(THERE, "Failed"), {POD_DELETE}),
        (ended(THERE), None, set()),
        (THERE, leaving(THERE), {POD_TERMINATING}),
        (THERE, pod("p", on="a", requests={"cpu": "2"}, labels={"x": "y"}), {POD_LABEL}),
        (THERE, pod("p", on="a", requests={"cpu": "1"}), {POD_SCALE_DOWN}),
        (THERE, pod("p", on="a", requests={"cpu": "3"}), set()),
        (THERE, {**THERE, "status": {"phase": "Running"}}, set()),
        (
            pod("p", nominated="a"),
            pod("p"),
            {POD_DELETE},
        ),  # it frees the node that it was nominated for
    ],
)
def test_changes_of_pods_that_have_node(
    old: Object | None, new: Object | None, actions: set[str]
) -> None:
    assert pod_event(change(old, new)).actions == actions


def test_pod_event_of_unknown_old_state_has_all_actions() -> None:
    found = pod_event(change(None, THERE, is_update=True))
    assert (found.actions, found.unknown) == (
        {POD_ADD, POD_LABEL, POD_DELETE, POD_SCALE_DOWN},
        True,
    )
    assert pod_event(change(None, leaving(THERE), is_update=True)).unknown is False, (
        "its end will be seen"
    )


@pytest.mark.parametrize(("new", "actions"), [
    (pod("p", labels={"x": "y"}), {SELF_UPDATE}),
    (pod("p", tolerations=[{"operator": "Exists"}]), {SELF_UPDATE}),
    ({**pod("p"), "status": {"phase": "Pending"}}, set()),
])  # fmt: skip
def test_changes_of_pod_that_waits(new: Object, actions: set[str]) -> None:
    assert unscheduled_pod_event(pod("p"), new).actions == actions


def test_changes_of_volumes_and_namespaces() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
    assert volume_event(change(None, claim)).actions == {VOLUME}
    assert volume_event(change(claim, None)).actions == set()
    space, labelled = {"metadata": {"name": "n"}}, {"metadata": {"name": "n", "labels": {"a": "b"}}}
    assert namespace_event(change(space, labelled)).actions == {NAMESPACE}
    assert namespace_event(change(space, dict(space))).actions == set()
    assert namespace_event(change(None, labelled)).actions == set()
    assert namespace_event(change(None, labelled, is_update=True)).actions == {NAMESPACE}


# --- the pods that an event may help


def helps(plugin: str, incoming: Object, event: ClusterEvent) -> bool:
    """Report whether a pod that this plugin has rejected is tried again."""
    found = BY_NAME[plugin]
    return bool(found.events_to_register & event.actions) and found.queueing_hint(
        info(incoming), event
    )


def at_node(old: Object | None, new: Object | None) -> ClusterEvent:
    return node_event(change(old, new, "nodes"))


def at_pod(old: Object | None, new: Object | None) -> ClusterEvent:
    return pod_event(change(old, new))


BIG = pod("new", requests={"cpu": "4"})


@pytest.mark.parametrize(("event", "expected"), [
    (at_node(None, node("a")), True),
    (at_node(None, node("a", cpu="1")), False),
    (at_node(None, node("a", pods="0")), False),
    (at_node(node("a", cpu="3"), node("a", cpu="4")), True),
    (at_node(node("a", cpu="5"), node("a", cpu="4")), False),
    (at_node(node("a", pods="1"), node("a", pods="2")), True),
    (at_node(node("a"), node("a", memory="16Gi")), False),
    (at_node(node("a"), node("a", labels={"x": "y"})), False),
    (at_pod(THERE, None), True),
    (at_pod(THERE, ended(THERE)), True),
    (at_pod(THERE, pod("p", on="a", requests={"cpu": "1"})), True),
    (at_pod(None, THERE), False),
])  # fmt: skip
def test_queueing_hints_of_node_resources_fit(event: ClusterEvent, expected: bool) -> None:
    assert helps("NodeResourcesFit", BIG, event) is expected


@pytest.mark.parametrize(
    ("plugin", "incoming", "event", "expected"),
    [
        ("NodeUnschedulable", BIG, at_node(None, node("a")), True),
        ("NodeUnschedulable", BIG, at_node(None, node("a", unschedulable=True)), False),
        ("NodeUnschedulable", BIG, at_node(node("a", unschedulable=True), node("a")), True),
        ("NodeUnschedulable", BIG, at_node(node("a", **TAINT), node("a")), False),
        ("TaintToleration", BIG, at_node(node("a", **TAINT), node("a")), True),
        ("TaintToleration", BIG, at_node(None, node("a", **TAINT)), False),
        ("TaintToleration", BIG, at_node(node("a"), node("a", **TAINT)), False),
        (
            "TaintToleration",
            pod("new", tolerations=[{"operator": "Exists"}]),
            at_node(None, node("a", **TAINT)),
            True,
        ),
        (
            "NodeAffinity",
            pod("new", nodeSelector={"x": "y"}),
            at_node(node("a"), node("a", labels={"x": "y"})),
            True,
        ),
        ("NodeAffinity", pod("new", nodeSelector={"x": "y"}), at_node(None, node("a")), False),
        (
            "NodeAffinity",
            pod("new", nodeSelector={"x": "y"}),
            at_node(node("a", labels={"x": "y"}), node("a")),
            False,
        ),
    ],
)
def test_queueing_hints_of_node_filters(
    plugin: str, incoming: Object, event: ClusterEvent, expected: bool
) -> None:
    assert helps(plugin, incoming, event) is expected


def with_port(name: str, number: int, on: str = "") -> Object:
    made = pod(name, on=on)
    made["spec"]["containers"][0]["ports"] = [{"hostPort": number, "containerPort": number}]
    return made


@pytest.mark.parametrize(("freed", "expected"), [(80, True), (81, False)])
def test_queueing_hints_of_node_ports(freed: int, expected: bool) -> None:
    assert (
        helps("NodePorts", with_port("new", 80), at_pod(with_port("p", freed, "a"), None))
        is expected
    )


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
          "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip


def web(on: str = "", app: str = "web", namespace: str = "default") -> Object:
    return pod(f"there-{app}", on=on, labels={"app": app}, namespace=namespace)


@pytest.mark.parametrize(("event", "expected"), [
    (at_pod(web("a"), None), True),
    (at_pod(None, web("a")), True),
    (at_pod(web("a"), leaving(web("a"))), True),
    (at_pod(web("a", app="other"), None), False),
    (at_pod(web("a", namespace="shop"), None), False),
    (at_pod(web("a"), {**web("a"), "metadata": {**web("a")["metadata"], "labels": {}}}), True),
    (at_node(None, node("a", labels={"zone": "z"})), True),
    (at_node(None, node("a")), False),
    (at_node(node("a", labels={"zone": "z"}), None), True),
    (at_node(node("a", labels={"zone": "z"}), node("a", labels={"zone": "y"})), True),
    (at_node(node("a", labels={"zone": "z"}), node("a", labels={"zone": "z", "x": "y"})), False),
    (at_node(node("a", labels={"zone": "z"}), node("a", labels={"zone": "z"}, **TAINT)), True),
])  # fmt: skip
def test_queueing_hints_of_pod_topology_spread(event: ClusterEvent, expected: bool) -> None:
    incoming = pod("new", labels={"app": "web"}, topologySpreadConstraints=[SPREAD])
    assert helps("PodTopologySpread", incoming, event) is expected


def term(kind: str) -> Object:
    one = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}}


NEAR, FAR = (
    pod("new", **term("podAffinity")),
    pod("new", labels={"app": "web"}, **term("podAntiAffinity")),
)


@pytest.mark.parametrize(
    ("incoming", "event", "expected"),
    [
        (NEAR, at_pod(None, web("a")), True),
        (NEAR, at_pod(None, web("a", app="other")), False),
        (NEAR, at_pod(None, web("a", namespace="shop")), False),
        (NEAR, at_pod(web("a"), None), False),
        (NEAR, at_node(None, node("a", labels={"host": "a"})), True),
        (NEAR, at_node(None, node("a")), False),
        (NEAR, at_node(node("a"), node("a", labels={"host": "a"})), True),
        (FAR, at_pod(web("a"), None), True),
        (FAR, at_pod(None, web("a")), False),
        (FAR, at_pod(web("a", app="other"), None), False),
        (
            FAR,
            at_pod(pod("p", on="a", **term("podAntiAffinity")), None),
            True,
        ),  # it had rejected the waiting pod
        (FAR, at_node(node("a", labels={"host": "a"}), node("a")), True),
        (FAR, at_node(None, node("a")), True),
    ],
)
def test_queueing_hints_of_inter_pod_affinity(
    incoming: Object, event: ClusterEvent, expected: bool
) -> None:
    assert helps("InterPodAffinity", incoming, event) is expected
