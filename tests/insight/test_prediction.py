"""Predictions: a fork on which the controllers have worked."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubepy import Cluster
from kubepy.api.clock import later
from kubepy.api.errors import NotFound
from kubepy.api.meta import name_of
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import MERGE_PATCH, Patch
from kubepy.insight.prediction import MOST_REPETITIONS, Repetition, predict, work
from kubepy.storage.folder.snapshot import FolderSource


def rolled_out(clock: str | None = "2026-01-01T00:00:00Z") -> Cluster:
    cluster = Cluster.temporary(nodes=3, seed=7, clock=clock)
    cluster.run("create deployment web --image=nginx --replicas=3", check=True)
    cluster.settle()
    cluster.run(
        "annotate nodes --all kubepy.dev/ready-after=5s kubepy.dev/stops-after=3s", check=True
    )
    return cluster


def local(cluster: Cluster) -> LocalCluster:
    with cluster._open() as opened:
        return opened


def scale(cluster: LocalCluster) -> None:
    cluster.client.patch(
        "deployments.apps",
        "web",
        Patch(MERGE_PATCH, {"spec": {"replicas": 5}}),
        namespace="default",
    )


def test_prediction_of_change_settles_on_fork_only() -> None:
    cluster = rolled_out()
    before = local(cluster).client.revision()
    prediction = predict(local(cluster), scale)
    assert (prediction.settled, prediction.settled_after) == (True, 5.0)
    fork = prediction.cluster.client.get("deployments.apps", "web", namespace="default")
    assert fork["status"]["readyReplicas"] == 5
    assert cluster.client.get("deploy/web")["spec"]["replicas"] == 3
    assert (local(cluster).client.revision(), cluster.now) == (before, prediction.started)


def test_prediction_of_cluster_with_system_time_has_own_clock() -> None:
    cluster = rolled_out(clock=None)
    prediction = predict(local(cluster), scale)
    assert prediction.settled
    assert 4.0 <= prediction.settled_after <= 6.0  # times in objects are whole seconds
    assert prediction.cluster.clock.own


def test_limit_reached_is_not_settled() -> None:
    prediction = predict(local(rolled_out()), scale, limit=2.0)
    assert (prediction.settled, prediction.settled_after) == (False, 2.0)


def test_act_that_lets_time_go_on_is_left_at_the_limit() -> None:
    cluster = rolled_out()
    prediction = predict(
        local(cluster),
        lambda fork: Cluster(fork).run("wait deploy/web --for=condition=Never --timeout=100h"),
    )
    assert not prediction.settled


def test_done_ends_prediction() -> None:
    def has_four_ready(fork: LocalCluster) -> bool:
        status = fork.client.get("deployments.apps", "web", namespace="default")["status"]
        return bool(status["readyReplicas"] > 3)

    cluster = rolled_out()
    cluster.client.patch(
        "deploy/web",
        {"spec": {"template": {"metadata": {"annotations": {"kubepy.dev/ready-after": "9s"}}}}},
    )
    prediction = predict(local(cluster), scale, done=has_four_ready)
    assert not prediction.settled
    assert 0 < prediction.settled_after < predict(local(cluster), scale).settled_after
    assert has_four_ready(prediction.cluster)


def test_raised_quota_lets_tries_at_longest_back_off_succeed() -> None:
    cluster = rolled_out()
    cluster.run("create quota few --hard=pods=3", check=True)
    cluster.run("scale deploy/web --replicas=4", check=True)
    cluster.advance("3h")

    def raise_quota(fork: LocalCluster) -> None:
        fork.client.patch(
            "resourcequotas",
            "few",
            Patch(MERGE_PATCH, {"spec": {"hard": {"pods": "9"}}}),
            namespace="default",
        )

    assert predict(local(cluster), lambda fork: None).settled_after == 0
    prediction = predict(local(cluster), raise_quota)
    deployment = prediction.cluster.client.get("deployments.apps", "web", namespace="default")
    assert (prediction.settled, deployment["status"]["readyReplicas"]) == (True, 4)


def test_closed_prediction_of_fork_leaves_the_fork_its_folder(tmp_path: Path) -> None:
    with Cluster.create(
        tmp_path / "state", nodes=1, clock="2026-01-01T00:00:00Z", seed=7
    ) as cluster:
        cluster.run("create deployment web --image=nginx", check=True)
        fork = local(cluster.fork())
        predict(fork, scale).close()
        with pytest.raises(NotFound):
            predict(fork, lambda cluster: cluster.client.get("pods", "none"))
        assert [name_of(obj) for obj in fork.client.list("deployments.apps").items] == ["web"]


@pytest.mark.parametrize("ask", ["why", "plan"])
def test_folder_is_let_go_of_after_an_answer(
    ask: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources: list[FolderSource] = []
    monkeypatch.setattr(
        FolderSource,
        "revision",
        property(
            lambda source: source._revision,
            lambda source, revision: (
                sources.append(source),
                setattr(source, "_revision", revision),
            ),
        ),
        raising=False,
    )
    with Cluster.create(
        tmp_path / "state", nodes=1, clock="2026-01-01T00:00:00Z", seed=7
    ) as cluster:
        cluster.run("create deployment web --image=nginx --replicas=2", check=True)
        cluster.run(f"{ask} {'deploy/web' if ask == 'why' else ''}")
    assert sources
    assert not any(source._close.alive for source in sources)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pods_made_again_without_end_end_the_prediction(kind: str) -> None:
    cluster = Cluster.temporary(nodes=1, seed=7, clock="2026-01-01T00:00:00Z")
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"nodeName": "gone", "containers": [{"name": "web", "image": "nginx"}]},
    }
    cluster.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )
    cluster.advance("5s")
    prediction = predict(local(cluster), lambda fork: None)
    assert (prediction.settled, prediction.settled_after) == (False, 600.0)
    assert cluster.run("plan").stdout.endswith("Does not finish within 24h.\n")
    assert cluster.why(f"{kind}/web").state == "stuck"


def test_pods_that_become_ready_are_no_repetition() -> None:
    cluster = rolled_out()
    repetition = Repetition()

    def delete_often(fork: LocalCluster) -> None:
        fork = fork.observed(repetition.note)
        for _ in range(MOST_REPETITIONS):
            for pod in fork.client.list("pods").items:
                fork.client.delete("pods", name_of(pod), namespace="default")
            work(fork, later(fork.clock.now(), 20.0), None)

    assert predict(local(cluster), delete_often).settled
    assert not repetition.is_endless(local(cluster))
    repetition._sound.clear()
    assert repetition.is_endless(local(cluster))
