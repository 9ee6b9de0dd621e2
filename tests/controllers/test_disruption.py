"""PodDisruptionBudgets: their status, and the record of evictions."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import Object
from tests.controllers.conftest import NOW, Lab

BUDGETS = "poddisruptionbudgets.policy"
RESOURCES = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
}


def workload(
    lab: Lab, replicas: int = 4, kind: str = "Deployment", name: str = "web", app: str = "web"
) -> None:
    template = {"metadata": {"labels": {"app": app, "of": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]}}  # fmt: skip
    spec = {"selector": {"matchLabels": {"app": app, "of": name}}, "template": template}
    if kind != "DaemonSet":
        spec["replicas"] = replicas
    if kind == "StatefulSet":
        spec |= {"podManagementPolicy": "Parallel", "serviceName": name}
    lab.create(
        RESOURCES[kind],
        {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec},
        "default",
    )


def bare_pod(lab: Lab, name: str, **labels: str) -> Object:
    meta = {"name": name, "labels": labels or {"app": "web"}}
    spec = {"containers": [{"name": "c", "image": "i:1"}]}
    return lab.create(
        "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "default"
    )


def budget(lab: Lab, name: str = "b", **spec: Any) -> None:
    spec.setdefault("selector", {"matchLabels": {"app": "web"}})
    lab.create(
        BUDGETS,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": spec,
        },
        "default",
    )


def status(lab: Lab, name: str = "b") -> Object:
    found: Object = lab.client.get(BUDGETS, name, namespace="default")["status"]
    return found


def numbers(lab: Lab) -> tuple[int, int, int, int]:
    """Return currentHealthy, desiredHealthy, expectedPods and disruptionsAllowed."""
    found = status(lab)
    return (
        found["currentHealthy"],
        found["desiredHealthy"],
        found["expectedPods"],
        found["disruptionsAllowed"],
    )


def pods(lab: Lab) -> list[str]:
    return lab.names("pods")


def set_outcome(lab: Lab, pod: str, outcome: str) -> None:
    lab.change(
        "pods",
        pod,
        lambda obj: obj["metadata"].update(annotations={"kubepy.dev/outcome": outcome}),
        "default",
    )
    lab.settle()


def evict(lab: Lab, pod: str) -> str:
    """Evict a pod; return the error's message, "" if it is evicted."""
    try:
        lab.client.evict(pod, namespace="default")
    except Status as refusal:
        return refusal.causes[0].message if refusal.causes else str(refusal)
    return ""


def events(lab: Lab, reason: str) -> list[tuple[str, str]]:
    return [
        (one["type"], one["message"])
        for one in lab.client.list("events").items
        if one["reason"] == reason
    ]


# --- allowed disruptions


@pytest.mark.parametrize(("spec", "replicas", "expected"), [
    ({"minAvailable": 3}, 4, (4, 3, 4, 1)),
    ({"minAvailable": 4}, 4, (4, 4, 4, 0)),
    ({"minAvailable": 9}, 4, (4, 9, 4, 0)),
    ({"minAvailable": 0}, 4, (4, 0, 4, 4)),
    ({"minAvailable": "50%"}, 4, (4, 2, 4, 2)),
    ({"minAvailable": "50%"}, 5, (5, 3, 5, 2)),  # rounds up
    ({"minAvailable": "100%"}, 4, (4, 4, 4, 0)),
    ({"maxUnavailable": 1}, 4, (4, 3, 4, 1)),
    ({"maxUnavailable": 0}, 4, (4, 4, 4, 0)),
    ({"maxUnavailable": 9}, 4, (4, 0, 4, 4)),
    ({"maxUnavailable": "30%"}, 4, (4, 2, 4, 2)),  # rounds up, too
    ({"maxUnavailable": "0%"}, 4, (4, 4, 4, 0)),
    ({"maxUnavailable": "100%"}, 4, (4, 0, 4, 4)),
    ({}, 4, (4, 0, 0, 0)),
])  # fmt: skip
def test_disruptions_allowed_by_budget(
    lab: Lab, spec: Object, replicas: int, expected: tuple[int, int, int, int]
) -> None:
    lab.node("node-1")
    workload(lab, replicas)
    budget(lab, **spec)
    lab.settle()
    assert numbers(lab) == expected


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_expected_pods_are_owners_replicas(lab: Lab, kind: str) -> None:
    lab.node("node-1")
    workload(lab, 4, kind)
    budget(lab, maxUnavailable=1)
    lab.settle()
    set_outcome(lab, pods(lab)[0], "not-ready")
    assert numbers(lab) == (3, 3, 4, 0)
    set_outcome(lab, pods(lab)[1], "not-ready")
    assert numbers(lab) == (2, 3, 4, 0)
    set_outcome(lab, pods(lab)[0], "ready")
    set_outcome(lab, pods(lab)[1], "ready")
    assert numbers(lab) == (4, 3, 4, 1)


def test_scaling_owner_changes_count(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 4)
    budget(lab, maxUnavailable="25%")
    lab.settle()
    lab.change("deployments.apps", "web", lambda obj: obj["spec"].update(replicas=8), "default")
    lab.settle()
    assert numbers(lab) == (8, 6, 8, 2)
    lab.change("deployments.apps", "web", lambda obj: obj["spec"].update(replicas=0), "default")
    lab.settle()
    assert numbers(lab) == (0, 0, 0, 0), "without pods nothing may go"


def test_pods_of_several_owners_are_counted_together(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 3)
    workload(lab, 2, "StatefulSet", "db")
    budget(lab, maxUnavailable="40%")
    lab.settle()
    assert numbers(lab) == (5, 3, 5, 2)


def test_deployment_that_rolls_counts_once(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 4)
    budget(lab, maxUnavailable=1)
    lab.settle()

    def break_it(obj: Object) -> None:
        obj["spec"]["template"]["metadata"]["annotations"] = {"kubepy.dev/outcome": "crash-loop"}

    lab.change("deployments.apps", "web", break_it, "default")
    lab.settle()
    assert len(pods(lab)) == 5
    assert numbers(lab) == (3, 3, 4, 0)


def test_pods_that_are_going_or_not_ready_are_not_healthy(lab: Lab) -> None:
    lab.node("node-1")
    for name in ("a", "b", "c"):
        bare_pod(lab, name)
    budget(lab, minAvailable=1)
    lab.settle()
    lab.change(
        "pods",
        "a",
        lambda obj: obj["metadata"].update(annotations={"kubepy.dev/termination": "stuck"}),
        "default",
    )
    lab.client.delete("pods", "a", namespace="default")
    set_outcome(lab, "b", "crash-loop")
    assert numbers(lab) == (1, 1, 3, 0)


def test_whole_status(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 2)
    budget(lab, minAvailable=1)
    lab.settle()
    assert status(lab) == {
        "conditions": [
            {
                "lastTransitionTime": NOW,
                "message": "",
                "observedGeneration": 1,
                "reason": "SufficientPods",
                "status": "True",
                "type": "DisruptionAllowed",
            }
        ],
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "disruptionsAllowed": 1,
        "expectedPods": 2,
        "observedGeneration": 1,
    }
    lab.pass_time(5)
    lab.change(BUDGETS, "b", lambda obj: obj["spec"].update(minAvailable=2), "default")
    lab.settle()
    assert status(lab) == {
        "conditions": [
            {
                "lastTransitionTime": "2026-11-20T10:00:05Z",
                "message": "",
                "observedGeneration": 2,
                "reason": "InsufficientPods",
                "status": "False",
                "type": "DisruptionAllowed",
            }
        ],
        "currentHealthy": 2,
        "desiredHealthy": 2,
        "disruptionsAllowed": 0,
        "expectedPods": 2,
        "observedGeneration": 2,
    }


def test_budget_without_pods_says_so(lab: Lab) -> None:
    budget(lab, maxUnavailable=1)
    lab.settle()
    assert numbers(lab) == (0, 0, 0, 0)
    assert status(lab)["conditions"][0]["reason"] == "InsufficientPods"
    assert events(lab, "NoPods") == [("Normal", "No matching pods found")]


def test_status_that_is_right_is_not_written(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 2)
    budget(lab, minAvailable=1)
    lab.settle()
    before = lab.client.get(BUDGETS, "b", namespace="default")
    lab.change(
        "pods",
        pods(lab)[0],
        lambda obj: obj["metadata"].update(annotations={"note": "x"}),
        "default",
    )
    lab.settle()
    assert lab.client.get(BUDGETS, "b", namespace="default") == before


# --- pods that cannot be counted


def test_pods_without_owner_count_where_number_is_wanted(lab: Lab) -> None:
    lab.node("node-1")
    bare_pod(lab, "a")
    bare_pod(lab, "b")
    budget(lab, minAvailable=1)
    lab.settle()
    assert numbers(lab) == (2, 1, 2, 1)
    assert events(lab, "UnmanagedPods") == []


def test_pods_without_owner_do_not_count_where_share_is_wanted(lab: Lab) -> None:
    lab.node("node-1")
    bare_pod(lab, "a")
    budget(lab, minAvailable="50%")
    lab.settle()
    assert numbers(lab) == (1, 0, 0, 0)
    assert events(lab, "UnmanagedPods") == [
        (
            "Warning",
            (
                "Pods selected by this PodDisruptionBudget (selector: "
                "&LabelSelector{MatchLabels:map[string]string{app: "
                "web,},MatchExpressions:[]LabelSelectorRequirement{},}) were "
                "found to be unmanaged. As a result, the status of the PDB cannot be calculated "
                "correctly, which may result in "
                'undefined behavior. To account for these pods please set ".spec.minAvailable" '
                "field of the PDB to an integer "
                "value."
            ),
        )
    ]


def test_pods_of_owner_without_scale_stop_all_evictions(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, kind="DaemonSet")
    budget(lab, maxUnavailable=1)
    lab.settle()
    why = "daemonsets.apps does not implement the scale subresource"
    assert status(lab) == {
        "conditions": [
            {
                "lastTransitionTime": NOW,
                "message": why,
                "reason": "SyncFailed",
                "status": "False",
                "type": "DisruptionAllowed",
            }
        ],
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    }
    assert events(lab, "CalculateExpectedPodCountFailed") == [
        ("Warning", f"Failed to calculate the number of expected pods: {why}")]  # fmt: skip
    assert (
        evict(lab, pods(lab)[0])
        == "The disruption budget b is still being processed by the server."
    )


def test_pods_of_daemon_set_count_where_number_is_wanted(lab: Lab) -> None:
    lab.node("node-1")
    lab.node("node-2")
    workload(lab, kind="DaemonSet")
    budget(lab, minAvailable=1)
    lab.settle()
    assert numbers(lab) == (2, 1, 2, 1)


def test_pods_whose_owner_is_gone_cannot_be_counted(lab: Lab) -> None:
    lab.node("node-1")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "gone",
        "uid": "0",
        "controller": True,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "web"},
           "ownerReferences": [owner], "finalizers": ["example.org/keep"]},
           "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    lab.create("pods", pod, "default")
    budget(lab, maxUnavailable=1)
    lab.settle()
    assert status(lab)["conditions"][0]["message"] == 'found no controllers for pod "a"'


def test_budget_recovers_from_what_kept_it_from_counting(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, kind="DaemonSet")
    budget(lab, maxUnavailable=1)
    lab.settle()
    lab.client.delete("daemonsets.apps", "web", namespace="default")
    lab.settle()
    workload(lab, 2)
    lab.settle()
    assert numbers(lab) == (2, 1, 2, 1)
    assert [
        (one["status"], one["reason"], one["message"]) for one in status(lab)["conditions"]
    ] == [("True", "SufficientPods", "")]


# --- evictions


def test_evictions_go_on_until_budget_is_used_up(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 4)
    budget(lab, maxUnavailable=2)
    lab.settle()
    refused = "The disruption budget b does not allow evicting pods currently"
    assert [evict(lab, pod) for pod in pods(lab)] == ["", "", refused, refused]
    lab.settle()
    assert numbers(lab) == (4, 2, 4, 2)
    assert "disruptedPods" not in status(lab)


def test_evicted_pod_that_stays_counts_as_gone_for_two_minutes(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 2)
    budget(lab, minAvailable=1)
    lab.settle()
    pod = pods(lab)[0]
    evicted = {"disruptedPods": {pod: NOW}, "disruptionsAllowed": 0}
    lab.change(BUDGETS, "b", lambda obj: obj["status"].update(evicted), "default", "status")
    lab.settle()
    assert (numbers(lab), status(lab)["disruptedPods"]) == ((1, 1, 2, 0), {pod: NOW})
    lab.pass_time(119)
    lab.settle()
    assert numbers(lab) == (1, 1, 2, 0)
    lab.pass_time(120)
    lab.settle()
    assert (numbers(lab), "disruptedPods" in status(lab)) == ((2, 1, 2, 1), False)
    assert events(lab, "NotDeleted") == [
        ("Warning", "Pod was expected by PDB default/default to be deleted but it wasn't")
    ]


def test_budget_that_was_used_up_is_free_again_when_successor_is_ready(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 2)
    budget(lab, minAvailable=1)
    lab.settle()
    first, second = pods(lab)
    assert evict(lab, first) == ""
    assert evict(lab, second) == "The disruption budget b does not allow evicting pods currently"
    lab.settle()
    assert evict(lab, second) == ""


def test_pod_that_two_budgets_cover_is_said_to(lab: Lab) -> None:
    lab.node("node-1")
    budget(lab, "b", minAvailable=1)
    budget(lab, "c", minAvailable=1)
    lab.settle()
    bare_pod(lab, "a")
    lab.settle()
    message = 'Pod "default"/"a" matches multiple PodDisruptionBudgets.  Chose "b" arbitrarily.'
    assert set(events(lab, "MultiplePodDisruptionBudgets")) == {("Warning", message)}
    assert evict(lab, "a") == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support."
    )


def allowed(lab: Lab) -> dict[str, int]:
    return {
        one["metadata"]["name"]: one["status"]["disruptionsAllowed"]
        for one in lab.client.list(BUDGETS).items
    }


@pytest.mark.parametrize("looks_between", [False, True])
def test_second_budget_over_same_pods_never_hears_that_they_became_ready(
    lab: Lab, looks_between: bool
) -> None:
    lab.node("node-1")
    budget(lab, "b", maxUnavailable=1)
    budget(lab, "c", maxUnavailable=1)
    if looks_between:
        lab.settle()
    workload(lab, 2)
    lab.settle()
    assert allowed(lab) == {"b": 1, "c": 0}
    lab.change(BUDGETS, "c", lambda obj: obj["metadata"].update(labels={"a": "b"}), "default")
    lab.settle()
    assert allowed(lab) == {"b": 1, "c": 1}  # any change of the budget itself leads to a sync


def test_second_budget_over_pod_that_waits_for_node_stays_at_no_disruptions(lab: Lab) -> None:
    lab.node("node-1")
    budget(lab, "b", minAvailable=0)
    budget(lab, "c", minAvailable=0)
    bare_pod(lab, "a")
    lab.settle()
    assert allowed(lab) == {"b": 1, "c": 0}
    assert evict(lab, "a") == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support."
    )


def test_budgets_made_when_pods_are_ready_both_count_them(lab: Lab) -> None:
    lab.node("node-1")
    workload(lab, 2)
    lab.settle()
    budget(lab, "b", maxUnavailable=1)
    budget(lab, "c", maxUnavailable=1)
    lab.settle()
    assert allowed(lab) == {"b": 1, "c": 1}
    lab.client.delete(BUDGETS, "b", namespace="default")
    lab.settle()
    assert [evict(lab, pod) for pod in pods(lab)] == [
        "",
        "The disruption budget c does not allow evicting pods currently",
    ]
    lab.settle()
    assert allowed(lab) == {"c": 1}


@pytest.mark.parametrize(
    ("reason", "is_stale"), [("PreemptionByScheduler", True), ("TerminationByKubelet", False)]
)
def test_pod_that_was_to_be_disrupted_and_never_was_is_as_before_after_two_minutes(
    lab: Lab, reason: str, is_stale: bool
) -> None:
    lab.node("node-1")
    bare_pod(lab, "a")
    lab.settle()
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason,
                 "lastTransitionTime": NOW}  # fmt: skip
    lab.change(
        "pods", "a", lambda obj: obj["status"]["conditions"].append(condition), "default", "status"
    )
    lab.settle()
    lab.pass_time(120)
    lab.settle()
    found = lab.client.get("pods", "a", namespace="default")["status"]["conditions"][-1]
    stale = {
        "type": "DisruptionTarget",
        "status": "False",
        "observedGeneration": 1,
        "lastProbeTime": None,
        "lastTransitionTime": "2026-11-20T10:02:00Z",
    }
    assert found == (stale if is_stale else {**condition, "lastProbeTime": None})


def test_disruption_condition_without_time_is_stale(lab: Lab) -> None:
    lab.node("node-1")
    bare_pod(lab, "a")
    lab.settle()
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    lab.change(
        "pods", "a", lambda obj: obj["status"]["conditions"].append(condition), "default", "status"
    )
    assert lab.settle().failures == []
    found = lab.client.get("pods", "a", namespace="default")["status"]["conditions"][-1]
    assert (found["type"], found["status"], found["lastTransitionTime"]) == (
        "DisruptionTarget",
        "False",
        NOW,
    )


def test_deleted_disrupted_pod_has_no_due_key(lab: Lab) -> None:
    lab.node("node-1")
    bare_pod(lab, "a")
    lab.settle()
    assert evict(lab, "a") == ""
    assert lab.settle().due == []
