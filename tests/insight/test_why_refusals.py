"""Requests that the API refuses: creations of controllers, bindings, reports of kubelets."""

from __future__ import annotations

import pytest

from kubepy import Cluster
from kubepy.insight.why import STUCK

from .incidents import policy, webhook

UPDATED = "apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [{}]"
NODE = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-9"}}'


@pytest.mark.parametrize(
    ("guard", "cause"),
    [
        (webhook(UPDATED.format("nodes/status")), "webhook-unreachable"),
        (
            policy("object.metadata.name == 'node-1'", UPDATED.format("nodes/status")),
            "admission-policy",
        ),
    ],
)
def test_node_whose_report_is_refused_names_what_refuses_it(guard: str, cause: str) -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.run("apply -f -", stdin=guard, check=True)
    cluster.run("create -f -", stdin=NODE, check=True)
    cluster.advance("1m")
    why = cluster.why("node/node-9")
    assert (why.state, why.cause) == (STUCK, cause)
    assert why.chain[0].field == 'status.conditions[?(@.type=="Ready")].status'
    assert why.chain[0].text.startswith("the API refuses the report of its kubelet: ")
    assert why.sequence is not None


@pytest.mark.parametrize(
    "rule",
    [UPDATED.format("pods/status"), UPDATED.format("pods/binding").replace("UPDATE", "CREATE")],
)
def test_pod_whose_status_or_binding_is_refused_names_the_webhook(rule: str) -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.run("apply -f -", stdin=webhook(rule), check=True)
    cluster.run("create deployment web --image=web:1", check=True)
    cluster.advance("1m")
    why = cluster.why("deployment/web")
    assert (why.state, why.cause) == (STUCK, "webhook-unreachable")
    assert why.chain[-1].text == "there is no such Service"


def test_node_that_is_down_is_not_asked_whether_its_report_is_refused() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.run("apply -f -", stdin=webhook(UPDATED.format("nodes/status")), check=True)
    cluster.run("annotate node node-1 kubepy.dev/down-until=2030-01-01T00:00:00Z", check=True)
    cluster.advance("2m")
    assert cluster.why("node/node-1").cause == "node-not-ready"


# --- the limit of pods ----------------------------------------------------------------------------


def test_limit_of_pods_in_the_settings_is_named() -> None:
    cluster = Cluster.temporary(nodes=1, settings={"limits": {"pods": 3}})
    cluster.run("create deployment web --image=i --replicas=5", check=True)
    cluster.settle(0)
    answer = cluster.why("deployment/web")
    assert answer.cause == "pod-limit"
    assert "exceeded limit: limits.pods of kubepy.yaml" in answer.chain[-1].text
    assert [remedy.command for remedy in answer.remedies if remedy.proven] == [
        ("scale", "deployment/web", "--replicas=3")
    ]
