"""Evictions: pods that need no budget, evictions that a budget allows or forbids, and the text of
each answer."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import PODS, Client
from kubepy.apiserver.request import CreateOptions, DeleteOptions, Request
from tests.apiserver.conftest import NOW

Object = dict[str, Any]
BUDGETS = "poddisruptionbudgets.policy"
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
DISALLOWED = {
    "type": "DisruptionAllowed",
    "status": "False",
    "reason": "InsufficientPods",
    "message": "",
    "lastTransitionTime": NOW,
}


def pod(
    client: Client, *, phase: str = "Running", ready: bool = True, labels: Object | None = None
) -> None:
    """Create pod ``p`` on a node, in the given state."""
    meta = {"name": "p", "labels": {"app": "x"} if labels is None else labels}
    made = client.create("pods", {"metadata": meta, "spec": {"nodeName": "n", "containers": [
        {"name": "c", "image": "i"}]}}, namespace="default")  # fmt: skip
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]}
    client.update("pods", {**made, "status": status}, namespace="default", subresource="status")


def budget(
    client: Client,
    allowed: int,
    name: str = "b",
    policy: str | None = None,
    selector: Any = ...,
    **status: Any,
) -> None:
    """Create a budget over ``app=x`` whose controller has written this status."""
    spec = {
        "minAvailable": 2,
        "selector": {"matchLabels": {"app": "x"}} if selector is ... else selector,
    }
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    made = client.create(BUDGETS, {"metadata": {"name": name}, "spec": spec}, namespace="default")
    full = {
        "observedGeneration": made["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": 2,
        "desiredHealthy": 2,
        "expectedPods": 3,
        **status,
    }
    client.update(BUDGETS, {**made, "status": full}, namespace="default", subresource="status")


def evict(client: Client, **options: Any) -> None:
    client.evict("p", namespace="default", options=DeleteOptions(**options))


def refusal(client: Client) -> Status:
    """Return the error of a refused eviction, after which nothing has changed."""
    before = client.get("pods", "p", namespace="default"), client.list(BUDGETS).items
    with pytest.raises(Status) as caught:
        evict(client)
    assert (client.get("pods", "p", namespace="default"), client.list(BUDGETS).items) == before
    return caught.value


def is_evicted(client: Client) -> bool:
    """Report whether the pod is being deleted or already deleted."""
    return all("deletionTimestamp" in one["metadata"] for one in client.list("pods").items)


def budget_status(client: Client) -> Object:
    status: Object = client.get(BUDGETS, "b", namespace="default")["status"]
    return status


def test_eviction_marks_pod_and_counts_against_its_budget(client: Client) -> None:
    pod(client)
    budget(client, 2, currentHealthy=4)
    evict(client)
    found = client.get("pods", "p", namespace="default")
    assert (
        found["metadata"]["deletionTimestamp"],
        found["metadata"]["deletionGracePeriodSeconds"],
    ) == ("2026-11-20T10:00:30Z", 30)
    assert found["status"]["conditions"][1:] == [
        {
            "lastProbeTime": None,
            "lastTransitionTime": NOW,
            "message": "Eviction API: evicting",
            "reason": "EvictionByEvictionAPI",
            "status": "True",
            "type": "DisruptionTarget",
        }
    ]
    status = budget_status(client)
    assert (status["disruptionsAllowed"], status["disruptedPods"], status.get("conditions")) == (
        1,
        {"p": NOW},
        None,
    )


def test_last_disruption_allowed_turns_condition(client: Client) -> None:
    pod(client)
    budget(client, 1)
    evict(client)
    status = budget_status(client)
    assert (status["disruptionsAllowed"], status["conditions"]) == (
        0,
        [{**DISALLOWED, "observedGeneration": 1}],
    )


def test_eviction_without_budget_is_deletion(client: Client) -> None:
    pod(client)
    evict(client, grace_period_seconds=5)
    assert (
        client.get("pods", "p", namespace="default")["metadata"]["deletionGracePeriodSeconds"] == 5
    )


@pytest.mark.parametrize(("labels", "selector", "is_covered"), [
    ({"app": "x"}, {"matchLabels": {"app": "y"}}, False),
    ({"app": "x"}, {}, True),  # an empty selector covers the namespace
    ({"app": "x"}, None, False),
    ({}, {}, True),
])  # fmt: skip
def test_budget_covers_selected_pods(
    client: Client, labels: Object, selector: Object | None, is_covered: bool
) -> None:
    pod(client, labels=labels)
    budget(client, 0, selector=selector)
    if is_covered:
        assert refusal(client).reason == "TooManyRequests"
    else:
        evict(client)
        assert is_evicted(client)


def test_budget_of_another_namespace_says_nothing(client: Client) -> None:
    pod(client)
    client.create("namespaces", {"metadata": {"name": "other"}})
    spec = {"minAvailable": 1, "selector": {}}
    client.create(BUDGETS, {"metadata": {"name": "b"}, "spec": spec}, namespace="other")
    evict(client)
    assert is_evicted(client)


# --- refusals


def test_budget_that_allows_nothing_says_what_it_needs(client: Client) -> None:
    pod(client)
    budget(client, 0, currentHealthy=1)
    found = refusal(client)
    assert (found.code, found.reason, str(found), found.retry_after_seconds) == (
        429,
        "TooManyRequests",
        REFUSED,
        0,
    )
    assert [(one.reason, one.message) for one in found.causes] == [
        ("DisruptionBudget", "The disruption budget b needs 2 healthy pods and has 1 currently")
    ]


def test_budget_that_its_controller_has_not_seen_asks_to_come_again(client: Client) -> None:
    pod(client)
    budget(client, 1, observedGeneration=0)
    found = refusal(client)
    assert (found.code, str(found), found.retry_after_seconds) == (429, REFUSED, 10)
    assert [one.message for one in found.causes] == [
        "The disruption budget b is still being processed by the server."
    ]


def test_budget_that_cannot_be_judged_says_why(client: Client) -> None:
    pod(client)
    budget(client, 0, conditions=[{**DISALLOWED, "reason": "SyncFailed", "message": "no luck"}])
    assert refusal(client).causes[0].message == (
        "The disruption budget b does not allow evicting pods currently because it failed sync: "
        "no luck"
    )


@pytest.mark.parametrize(("conditions", "more"), [
    ([], ""),
    ([{**DISALLOWED, "reason": "Busy", "message": "later"}], " (Busy): later"),
    ([{**DISALLOWED, "status": "True", "message": "later"}], ""),
])  # fmt: skip
def test_budget_with_enough_pods_that_allows_nothing_says_so(
    client: Client, conditions: list[Object], more: str
) -> None:
    pod(client)
    budget(client, 0, currentHealthy=3, conditions=conditions)
    assert refusal(client).causes[0].message == (
        f"The disruption budget b does not allow evicting pods currently{more}")  # fmt: skip


def test_eviction_under_two_budgets_is_an_error(client: Client) -> None:
    pod(client)
    budget(client, 1)
    budget(client, 1, name="c")
    found = refusal(client)
    assert (found.code, found.reason, str(found)) == (
        500,
        "",
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support.",
    )


def test_budget_that_waits_for_too_many_pods_is_forbidding(client: Client) -> None:
    pod(client)
    budget(client, 1, disruptedPods={f"pod-{number}": NOW for number in range(2001)})
    found = refusal(client)
    assert (found.code, str(found)) == (
        403,
        'poddisruptionbudget.policy "b" is forbidden: '
        "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
    )


# --- pods that need no budget


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pod_that_is_not_running_needs_no_budget(client: Client, phase: str) -> None:
    pod(client, phase=phase)
    budget(client, 0)
    before = budget_status(client)
    evict(client)
    assert is_evicted(client)
    assert budget_status(client) == before


def test_pod_that_is_going_needs_no_budget(client: Client) -> None:
    pod(client)
    client.delete("pods", "p", namespace="default")
    budget(client, 0)
    evict(client, grace_period_seconds=3)
    assert (
        client.get("pods", "p", namespace="default")["metadata"]["deletionGracePeriodSeconds"] == 3
    )


@pytest.mark.parametrize(("policy", "healthy", "desired", "may_go"), [
    (None, 2, 2, True),
    (None, 1, 2, False),
    (None, 0, 0, False),
    ("IfHealthyBudget", 3, 2, True),
    ("IfHealthyBudget", 1, 2, False),
    ("AlwaysAllow", 0, 2, True),
])  # fmt: skip
def test_eviction_of_unready_pod_is_free_when_allowed(
    client: Client, policy: str | None, healthy: int, desired: int, may_go: bool
) -> None:
    pod(client, ready=False)
    budget(client, 0, policy=policy, currentHealthy=healthy, desiredHealthy=desired)
    if not may_go:
        assert refusal(client).reason == "TooManyRequests"
        return
    before = budget_status(client)
    evict(client)
    assert is_evicted(client)
    assert budget_status(client) == before


def test_unready_pod_that_may_not_go_for_nothing_takes_one_from_budget(client: Client) -> None:
    pod(client, ready=False)
    budget(client, 1, currentHealthy=1)
    evict(client)
    assert budget_status(client)["disruptionsAllowed"] == 0


# --- the rest


def test_dry_run_answers_and_changes_nothing(client: Client) -> None:
    pod(client)
    budget(client, 1)
    before = client.get("pods", "p", namespace="default"), budget_status(client)
    evict(client, dry_run=True)
    assert (client.get("pods", "p", namespace="default"), budget_status(client)) == before


def test_pod_that_is_not_there_cannot_be_evicted(client: Client) -> None:
    with pytest.raises(Status, match='pods "p" not found'):
        evict(client)


def test_eviction_of_another_pod_of_that_name_is_conflict(client: Client) -> None:
    pod(client)
    budget(client, 1)
    before = client.get("pods", "p", namespace="default"), budget_status(client)
    with pytest.raises(Status) as caught:
        evict(client, uid="another")
    assert caught.value.reason == "Conflict"
    assert (client.get("pods", "p", namespace="default"), budget_status(client)) == before


def post(client: Client, body: Object, **options: Any) -> None:
    request = Request("create", PODS, "default", "p", "eviction", CreateOptions(**options))
    client.do(request, {"metadata": {"name": "p"}, **body})


@pytest.mark.parametrize("version", ["policy/v1", "policy/v1beta1"])
def test_eviction_with_delete_options_deletes_with_them(client: Client, version: str) -> None:
    pod(client)
    post(
        client,
        {"apiVersion": version, "kind": "Eviction", "deleteOptions": {"gracePeriodSeconds": 7}},
    )
    [left] = client.list("pods").items
    assert left["metadata"]["deletionGracePeriodSeconds"] == 7


@pytest.mark.parametrize(
    ("body", "options"), [({"deleteOptions": {"dryRun": ["All"]}}, {}), ({}, {"dry_run": True})]
)
def test_dry_run_of_request_or_body_evicts_nothing(
    client: Client, body: Object, options: Any
) -> None:
    pod(client)
    budget(client, 1)
    post(client, body, **options)
    assert not is_evicted(client)
    assert budget_status(client)["disruptionsAllowed"] == 1


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"metadata": {"name": "q"}}, 400, "name in URL does not match name in Eviction object"),
        ({"deleteOptions": {"preconditions": {"uid": "x"}}}, 409, None),
        ({"deleteOptions": {"preconditions": {"resourceVersion": "1"}}}, 409, None),
        ({"deleteOptions": {"gracePeriodSeconds": "1"}}, 400, None),
        (
            {"deleteOptions": {"ignoreStoreReadErrorWithClusterBreakingPotential": True}},
            422,
            'Eviction.policy "p" is invalid: deleteOptions.'
            "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: "
            "true: can not be set for pod eviction, try after removing the option",
        ),
    ],
)
def test_eviction_that_is_wrong_is_refused(
    client: Client, body: Object, code: int, message: str | None
) -> None:
    pod(client)
    with pytest.raises(Status) as caught:
        post(client, body)
    assert caught.value.code == code
    assert message in (None, caught.value.message)
    assert not is_evicted(client)
