"""The resize of running pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.request import STRATEGIC_MERGE_PATCH, DeleteOptions, Patch
from tests.kubelet.modelled.clusters import PodsCluster, shell
from tests.kubelet.modelledcluster import ModelledCluster

Object = dict[str, Any]


@pytest.fixture
def modelled(tmp_path: Path) -> Iterator[ModelledCluster]:
    cluster = ModelledCluster(tmp_path / "state")
    cluster.node("a")
    yield cluster
    cluster.close()


def container(cpu: str, **fields: Any) -> Object:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    return {"name": "c", "image": "c:1", "resources": resources, **fields}


def resize(modelled: ModelledCluster, name: str, **requests: str) -> None:
    change = {"name": "c", "resources": {"requests": requests}}
    patch = Patch(STRATEGIC_MERGE_PATCH, {"spec": {"containers": [change]}})
    modelled.client.patch("pods", name, patch, namespace="default", subresource="resize")
    modelled.settle()


def pending(status: Object) -> Object | None:
    conditions = {condition["type"]: condition for condition in status["conditions"]}
    return conditions.get("PodResizePending")


def given(status: Object) -> Object:
    [entry] = status["containerStatuses"]
    assert entry["allocatedResources"] == entry["resources"]["requests"]
    requests: Object = entry["resources"]["requests"]
    return requests


PLAIN: Object = {}
SLEEPING: Object = {"command": ["sleep", "99999"]}


@pytest.mark.parametrize("command", [PLAIN, SLEEPING])
def test_resize_with_room_is_carried_out_and_told(
    modelled: ModelledCluster, command: Object
) -> None:
    modelled.pod("web", "a", containers=[container("1", **command)])
    modelled.settle()
    resize(modelled, "web", cpu="2")
    status = modelled.status("web")
    assert given(status) == {"cpu": "2", "memory": "64Mi"}
    assert pending(status) is None
    assert status["containerStatuses"][0]["restartCount"] == 0
    summary = (
        '{"containers":[{"name":"c","resources":{"requests":{"cpu":"2","memory":"64Mi"}}}],'
        '"generation":2}'
    )
    assert [event for event in modelled.events("web") if event[1].startswith("Resize")] == [
        ("Normal", "ResizeStarted", f"Pod resize started: {summary}"),
        ("Normal", "ResizeCompleted", f"Pod resize completed: {summary}"),
    ]


@pytest.mark.parametrize("command", [PLAIN, SLEEPING])
def test_resize_beyond_the_node_is_infeasible_and_changes_nothing(
    modelled: ModelledCluster, command: Object
) -> None:
    modelled.pod("web", "a", containers=[container("1", **command)])
    modelled.settle()
    resize(modelled, "web", cpu="1000")
    status = modelled.status("web")
    condition = pending(status)
    message = "Node didn't have enough capacity: cpu, requested: 1000000, capacity: 4000"
    assert condition is not None
    assert status["conditions"][0] == condition
    assert (condition["status"], condition["reason"]) == ("True", "Infeasible")
    assert condition["message"] == message
    assert condition["observedGeneration"] == 2
    assert given(status)["cpu"] == "1"
    [event] = [event for event in modelled.events("web") if event[1] == "ResizeInfeasible"]
    assert event[0] == "Warning"
    prefix, _, summary = event[2].partition(": ")
    assert prefix == "Pod resize Infeasible"
    assert json.loads(summary)["error"] == message
    resize(modelled, "web", cpu="3")
    status = modelled.status("web")
    assert pending(status) is None
    assert given(status)["cpu"] == "3"


@pytest.mark.parametrize("command", [PLAIN, SLEEPING])
def test_resize_that_waits_for_room_is_deferred_until_another_pod_leaves(
    modelled: ModelledCluster, command: Object
) -> None:
    modelled.pod("web", "a", containers=[container("1", **command)])
    modelled.pod("other", "a", containers=[container("2")])
    modelled.settle()
    resize(modelled, "web", cpu="3")
    status = modelled.status("web")
    condition = pending(status)
    message = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert condition is not None
    assert (condition["reason"], condition["message"]) == ("Deferred", message)
    assert given(status)["cpu"] == "1"
    told = [event for event in modelled.events("web") if event[1] == "ResizeDeferred"]
    assert [event[2].partition(": ")[0] for event in told] == ["Pod resize OutOfcpu"]
    modelled.restart()
    now = DeleteOptions(grace_period_seconds=0)
    modelled.client.delete("pods", "other", namespace="default", options=now)
    modelled.settle()
    status = modelled.status("web")
    assert pending(status) is None
    assert given(status)["cpu"] == "3"


def test_deferred_resize_is_carried_out_when_another_pod_shrinks(
    modelled: ModelledCluster,
) -> None:
    modelled.pod("web", "a", containers=[container("1")])
    modelled.pod("other", "a", containers=[container("2")])
    modelled.settle()
    resize(modelled, "web", cpu="3")
    assert pending(modelled.status("web")) is not None
    resize(modelled, "other", cpu="1")
    assert pending(modelled.status("web")) is None
    assert given(modelled.status("web"))["cpu"] == "3"


def test_pending_resize_that_is_taken_back_is_no_longer_reported(
    modelled: ModelledCluster,
) -> None:
    modelled.pod("web", "a", containers=[container("1")])
    modelled.settle()
    resize(modelled, "web", cpu="1000")
    resize(modelled, "web", cpu="1")
    assert pending(modelled.status("web")) is None
    assert given(modelled.status("web"))["cpu"] == "1"


def test_container_restarts_where_its_resize_policy_says_so(modelled: ModelledCluster) -> None:
    policy = [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
    ]
    modelled.pod("web", "a", containers=[container("1", resizePolicy=policy)])
    modelled.settle()
    first = modelled.status("web")["containerStatuses"][0]["containerID"]
    resize(modelled, "web", cpu="2")
    assert modelled.status("web")["containerStatuses"][0]["restartCount"] == 0
    resize(modelled, "web", memory="128Mi")
    [entry] = modelled.status("web")["containerStatuses"]
    assert entry["restartCount"] == 1
    assert entry["lastState"]["terminated"]["containerID"] == first
    assert entry["containerID"] != first
    assert entry["ready"]
    events = modelled.events("web")
    assert ("Normal", "Killing", "Container c resize requires restart") in events
    assert sorted(reason for _, reason, _ in events) == [
        "Killing",
        "ResizeCompleted",
        "ResizeCompleted",
        "ResizeStarted",
        "ResizeStarted",
    ]


def test_infeasible_resize_takes_no_room_from_pods_to_be_scheduled(
    modelled: ModelledCluster,
) -> None:
    modelled.pod("web", "a", containers=[container("1")])
    modelled.settle()
    resize(modelled, "web", cpu="1000")
    modelled.pod("next", containers=[container("2")])
    modelled.settle()
    assert modelled.status("next")["phase"] == "Running"


def test_node_of_a_simple_cluster_always_has_room(tmp_path: Path) -> None:
    cluster = ModelledCluster(tmp_path / "simple", "simple")
    cluster.node("a")
    cluster.pod("web", "a", containers=[container("1")])
    cluster.settle()
    resize(cluster, "web", cpu="1000")
    status = cluster.status("web")
    assert pending(status) is None
    assert given(status)["cpu"] == "1k"
    assert cluster.events("web") == []
    cluster.close()


def test_why_names_the_resize_that_a_node_has_no_room_for() -> None:
    pods = PodsCluster()
    resources = {"requests": {"cpu": "1"}}
    pods.create("p", {"name": "c", "image": "nginx", "resources": resources})
    assert "up-to-date" in pods.run("why", "pod/p")
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]}
    patch = json.dumps({"spec": spec})
    pods.run("patch", "pod", "p", "--subresource=resize", "-p", patch)
    pods.advance(0)
    answer = pods.run("why", "pod/p")
    assert "resize-pending" in answer
    assert "enough capacity: cpu, requested: 8000, capacity: 4000" in answer


def test_resize_is_in_progress_while_a_container_stops_for_it() -> None:
    pods = PodsCluster()
    ignoring = "trap '' TERM; while :; do sleep 1; done"
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    resources = {"requests": {"cpu": "100m"}}
    container = shell(ignoring, resources=resources, resizePolicy=policy)
    pods.create("p", container, terminationGracePeriodSeconds=20)
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}
    pods.advance(5)
    patch = json.dumps({"spec": spec})
    pods.run("patch", "pod", "p", "--subresource=resize", "-p", patch)
    pods.advance(10)
    status = pods.status("p")
    assert status["resources"] == {"requests": {"cpu": "100m"}}
    assert status["allocatedResources"] == {"cpu": "200m"}
    [condition] = [
        each
        for each in pods.pod("p")["status"]["conditions"]
        if each["type"] == "PodResizeInProgress"
    ]
    assert (condition["status"], condition["observedGeneration"]) == ("True", 2)
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:05Z"
    assert "ResizeStarted" in pods.reasons("p")
    assert "ResizeCompleted" not in pods.reasons("p")

    pods.advance(10)
    status = pods.status("p")
    assert status["resources"] == {"requests": {"cpu": "200m"}}
    assert status["restartCount"] == 1
    assert "PodResizeInProgress" not in json.dumps(pods.pod("p")["status"])
    assert pods.reasons("p")[-1] == "ResizeCompleted"
    pods.advance(300)
    assert pods.status("p")["restartCount"] == 1
