"""Pods that name their node: pods that it admits, and the reasons for which it rejects others."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.kubelet.admission import rejection
from tests.scheduler.objects import node, pod

Object = dict[str, Any]
PORT = {"hostPort": 80, "containerPort": 80}


def with_port(name: str) -> Object:
    made = pod(name)
    made["spec"]["containers"][0]["ports"] = [PORT]
    return made


def answer(incoming: Object, machine: Object, *others: Object) -> tuple[str, str] | None:
    found = rejection(incoming, machine, others)
    return None if found is None else (found.reason, found.message)


def out_of(resource: str, requested: int, used: int, capacity: int) -> tuple[str, str]:
    return f"OutOf{resource}", (
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}"
    )


def test_pod_that_fits_is_taken() -> None:
    assert (
        answer(pod("new", requests={"cpu": "3"}), node("a"), pod("there", requests={"cpu": "1"}))
        is None
    )


@pytest.mark.parametrize(("requests", "why"), [
    ({"cpu": "3500m"}, out_of("cpu", 3500, 1000, 4000)),
    ({"memory": "8Gi"}, out_of("memory", 8 << 30, 1 << 30, 8 << 30)),
    ({"ephemeral-storage": "1Gi"}, out_of("ephemeral-storage", 1 << 30, 0, 0)),
    ({"example.org/gpu": "2"}, out_of("example.org/gpu", 2, 0, 1)),
    ({"example.org/unknown": "2"}, None),  # possibly a resource of the cluster, not of the node
    ({"memory": "8Gi", "cpu": "4"}, out_of("cpu", 4000, 1000, 4000)),  # the first reason counts
])  # fmt: skip
def test_rejection_names_insufficient_resource(
    requests: dict[str, str], why: tuple[str, str] | None
) -> None:
    machine = node("a")
    machine["status"]["allocatable"]["example.org/gpu"] = "1"
    there = pod("there", requests={"cpu": "1", "memory": "1Gi"})
    assert answer(pod("new", requests=requests), machine, there) == why


def test_full_node_takes_no_more_pods() -> None:
    assert answer(pod("new", requests={"cpu": "9"}), node("a", pods="1"), pod("there")) == out_of(
        "pods", 1, 1, 1
    )


@pytest.mark.parametrize(
    "more",
    [
        {"nodeSelector": {"disk": "ssd"}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchFields": [
                                    {"key": "metadata.name", "operator": "In", "values": ["b"]}
                                ]
                            }
                        ]
                    }
                }
            }
        },
    ],
)
def test_pod_that_wants_another_node_is_not_taken(more: Object) -> None:
    assert answer(pod("new", **more), node("a")) == (
        "NodeAffinity",
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    )


def test_port_that_is_taken() -> None:
    assert answer(with_port("new"), node("a"), with_port("there")) == (
        "NodePorts",
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    )


@pytest.mark.parametrize(("effect", "tolerations", "is_taken"), [
    ("NoExecute", [], False),
    ("NoExecute", [{"operator": "Exists"}], True),
    ("NoSchedule", [], True),
])  # fmt: skip
def test_noexecute_taint_keeps_pod_out(
    effect: str, tolerations: list[Object], is_taken: bool
) -> None:
    machine = node("a", taints=[{"key": "k", "effect": effect}], unschedulable=True)
    found = answer(pod("new", tolerations=tolerations), machine)
    assert found == (
        None
        if is_taken
        else (
            "TaintToleration",
            "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
        )
    )


@pytest.mark.parametrize(("incoming", "reason"), [
    (pod("new", os={"name": "windows"}), "PodOSNotSupported"),
    (pod("new", os={"name": "linux"}), None),
    (pod("new", labels={"kubernetes.io/os": "windows"}), "PodOSSelectorNodeLabelDoesNotMatch"),
])  # fmt: skip
def test_pods_of_another_system_are_not_taken(incoming: Object, reason: str | None) -> None:
    found = answer(incoming, node("a"))
    assert (found and found[0]) == reason
