"""Autoscalers that do not get the pods they want, or that undo each other's sizes."""

from __future__ import annotations

from kubepy import Cluster
from kubepy.insight.why import DONE, PROGRESSING, STUCK

from .incidents import autoscaler, deployment

BUSY = {"annotations": "kubepy.dev/cpu: 90m", "container": "resources: {requests: {cpu: 100m}}"}


def made(*manifests: str, quota: int = 0) -> Cluster:
    cluster = Cluster.temporary(nodes=3, seed=7)
    if quota:
        cluster.run(f"create quota team --hard=pods={quota}", check=True)
    for text in manifests:
        cluster.run("apply -f -", stdin=text, check=True)
    return cluster


def test_autoscaler_whose_pods_do_not_all_run_is_stuck_for_their_reason() -> None:
    cluster = made(deployment(replicas=3, **BUSY), autoscaler(low=20, high=20), quota=6)
    cluster.advance("5m")
    assert cluster.client.get("deploy/web")["status"]["availableReplicas"] == 6
    why = cluster.why("hpa/web")
    assert (why.state, why.cause) == (STUCK, "quota-exceeded")
    assert why.chain[0].text == "it wants 20 pods, and 6 of its target's are available"
    assert why.sequence is not None
    manifest = autoscaler(low=19, high=19)
    assert cluster.run("plan apply -f -", stdin=manifest).status == 2


def test_autoscaler_is_done_when_its_target_is() -> None:
    cluster = made(deployment(replicas=3, **BUSY), autoscaler(low=2, high=4))
    assert cluster.why("hpa/web").state == PROGRESSING  # its controller has not seen it yet
    cluster.advance("5m")
    why = cluster.why("hpa/web")
    assert (why.state, why.cause) == (DONE, "autoscaler-limited")


def test_autoscaler_of_pods_that_never_run_names_what_keeps_them_not_their_metrics() -> None:
    cluster = made(deployment(replicas=2, **BUSY, pod="nodeSelector: {disk: ssd}"), autoscaler())
    cluster.advance("2m")
    why = cluster.why("hpa/web")
    assert (why.state, why.cause) == (STUCK, "node-selector")


def test_autoscalers_that_undo_each_others_size_are_named_by_their_workload() -> None:
    cluster = made(deployment(**BUSY), autoscaler("a", 2, 3), autoscaler("b", 5, 8))
    cluster.advance("2m")
    why = cluster.why("deploy/web")
    assert (why.state, why.cause) == (STUCK, "contention")
    assert [remedy.command for remedy in why.remedies if remedy.proven] == [
        ("delete", "horizontalpodautoscaler/b"),
        ("delete", "horizontalpodautoscaler/a"),
    ]
    of_one = cluster.why("hpa/a")
    assert (of_one.state, of_one.cause, of_one.chain[-1].key.name) == (
        STUCK,
        "autoscaler-rival",
        "b",
    )
