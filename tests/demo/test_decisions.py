"""The decisions that a plan holds, with the numbers behind each."""

from __future__ import annotations

from kubepy import Cluster
from kubepy.demo.decisions import PodDecision, decisions_of


def cluster_with(*commands: str) -> Cluster:
    cluster = Cluster.temporary(nodes=3)
    cluster.run("annotate nodes --all kubepy.dev/ready-after=5s", check=True)
    for command in commands:
        cluster.run(command, check=True)
    cluster.settle()
    return cluster


def without_names(decisions: list[PodDecision]) -> list[tuple[str, str, str]]:
    return [(decision.after, decision.action, decision.reason) for decision in decisions]


def test_surge_and_unavailable_pods_of_a_deployment() -> None:
    cluster = cluster_with("create deployment web --image=web:1 --replicas=2")
    plan = cluster.plan("set image deploy/web web=web:2")
    more = "2 pods are there; 2 are desired, and 1 more allowed (maxSurge)"
    enough = "3 pods are available; 2 must be (maxUnavailable)"
    assert without_names(decisions_of(plan.document)) == [
        ("0s", "creates", more),
        ("5s", "ends", enough),
        ("5s", "creates", more),
        ("10s", "ends", enough),
    ]
    first = decisions_of(plan.document)[0]
    assert first.lines() == [f"now        creates {first.pod} on {first.node}", f"{'':13}{more}"]


def test_pods_that_are_missing_are_made() -> None:
    cluster = cluster_with("create deployment web --image=web:1 --replicas=1")
    plan = cluster.plan("scale deploy/web --replicas=3")
    reasons = [decision.reason for decision in decisions_of(plan.document)]
    assert reasons == ["1 of 3 pods are there", "2 of 3 pods are there"]
    assert {decision.node for decision in decisions_of(plan.document)} == {"node-2", "node-3"}
