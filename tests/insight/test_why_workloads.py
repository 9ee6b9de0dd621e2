"""Causes of workloads in states that the pages do not show, and large clusters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubepy import Cluster, Why
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight.prediction import Done, Observe, Prediction, predict
from kubepy.insight.why import forward
from kubepy.insight.why.scene import value_at

from .incidents import workload

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}


def new_cluster(kind: str, nodes: int = 3, **spec: Any) -> Cluster:
    """Make a cluster with a workload that is rolled out."""
    cluster = Cluster.temporary(nodes=nodes, seed=7)
    cluster.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec},
        }
    )
    cluster.settle()
    return cluster


def change(cluster: Cluster, target: str, image: str = "", **annotations: str | None) -> None:
    """Give a workload another image, and its template other annotations of kubepy."""
    metadata = {
        "annotations": {
            f"kubepy.dev/{name.replace('_', '-')}": value for name, value in annotations.items()
        }
    }
    containers = {"containers": [{"name": "web", "image": image}]} if image else {}
    cluster.client.patch(target, {"spec": {"template": {"metadata": metadata, "spec": containers}}})


def names(answer: Why) -> list[str]:
    return [link.key.name for link in answer.chain]


def test_deployment_blames_the_pod_with_a_cause_of_its_own() -> None:
    cluster = new_cluster("Deployment", replicas=4)
    change(cluster, "deploy/web", ready_after="1h")
    cluster.settle(0)
    pod = next(
        pod
        for pod in cluster.client.list("pods")
        if pod["status"]["conditions"][1]["status"] == "False"
        or value_at(pod, "status.containerStatuses[0].ready") is False
    )
    cluster.run(
        f"annotate pod {pod['metadata']['name']} kubepy.dev/outcome=crash-loop --overwrite",
        check=True,
    )
    cluster.settle(0)
    answer = cluster.why("deploy/web")
    assert names(answer)[-1] == pod["metadata"]["name"]


def test_deployment_waiting_for_min_ready_seconds_names_the_last_pod() -> None:
    cluster = new_cluster("Deployment", replicas=2, minReadySeconds=60)
    change(cluster, "deploy/web", "web:2")
    cluster.advance(10)
    answer = cluster.why("deploy/web")
    assert (answer.state, answer.cause) == ("progressing", "min-ready-seconds")
    assert answer.next is not None


def test_daemonset_surge_on_its_way_waits_for_new_pods() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster = new_cluster("DaemonSet", updateStrategy=rolling)
    change(cluster, "ds/web", ready_after="30s")
    assert (cluster.why("ds/web").state, cluster.why("ds/web").cause) == (
        "progressing",
        "surge-waits",
    )
    change(cluster, "ds/web", ready_after=None, outcome="not-ready")
    answer = cluster.why("ds/web")
    assert (answer.state, answer.cause) == ("stuck", "not-ready")


def test_daemonset_dead_node_with_room_left_is_not_to_blame() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    cluster = new_cluster("DaemonSet", updateStrategy=rolling)
    cluster.run("annotate node node-2 kubepy.dev/down-until=2027-01-01T00:00:00Z", check=True)
    cluster.advance("2m")
    change(cluster, "ds/web", "web:2")
    assert cluster.why("ds/web").cause != "dead-nodes-use-up-unavailable"
    updated = {
        pod["spec"]["nodeName"]
        for pod in cluster.client.list("pods")
        if pod["spec"]["containers"][0]["image"] == "web:2"
    }
    assert updated == {"node-1", "node-3"}


def test_deployment_paused_without_a_change_is_done() -> None:
    cluster = new_cluster("Deployment", replicas=2)
    cluster.run("rollout pause deployment/web", check=True)
    assert cluster.why("deploy/web").state == "done"
    cluster.run("scale deployment web --replicas=4", check=True)
    assert cluster.why("deploy/web").state == "done"
    change(cluster, "deploy/web", "web:2")
    assert cluster.why("deploy/web").cause == "paused"


def test_deployment_slow_beyond_its_deadline_is_on_its_way() -> None:
    cluster = new_cluster("Deployment", replicas=1, progressDeadlineSeconds=10)
    change(cluster, "deploy/web", ready_after="5m")
    cluster.advance("1m")
    answer = cluster.why("deploy/web")
    assert (answer.state, answer.cause, answer.remedies) == (
        "progressing",
        "progress-deadline-exceeded",
        (),
    )


def test_statefulset_parallel_broken_pod_does_not_hold_up_others() -> None:
    cluster = new_cluster(
        "StatefulSet", replicas=3, podManagementPolicy="Parallel", serviceName="web"
    )
    change(cluster, "sts/web", outcome="not-ready")
    cluster.settle(0)
    change(cluster, "sts/web", outcome=None)
    cluster.settle(0)
    assert cluster.why("sts/web").cause not in {"broken-revision", "ordered-behind-broken-pod"}


def test_statefulset_broken_revision_is_followed_to_the_pod_that_must_go() -> None:
    cluster = new_cluster("StatefulSet", replicas=3, serviceName="web")
    change(cluster, "sts/web", outcome="not-ready")
    assert cluster.why("sts/web").cause == "not-ready"
    change(cluster, "sts/web", "web:3", outcome=None)
    answer = cluster.why("sts/web")
    assert (answer.state, answer.cause, names(answer)[-1]) == ("stuck", "broken-revision", "web-2")
    assert answer.remedies[0].command == ("delete", "pod", "web-2")
    assert answer.remedies[0].proven


def test_statefulset_on_delete_with_old_pods_is_stuck() -> None:
    cluster = new_cluster(
        "StatefulSet", replicas=2, serviceName="web", updateStrategy={"type": "OnDelete"}
    )
    change(cluster, "sts/web", "web:2")
    answer = cluster.why("sts/web")
    assert (answer.state, answer.cause) == ("stuck", "on-delete")
    assert answer.remedies[0].proven


def test_workloads_that_share_pods_by_their_selectors_are_done_and_told() -> None:
    cluster = new_cluster("Deployment", replicas=1)
    other = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "other"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
    }
    cluster.client.create(other)
    answer = cluster.why("deploy/other")
    assert (answer.state, answer.cause) == ("done", "selector-conflict")


def test_custom_resource_is_as_healthy_as_its_conditions_and_what_it_owns() -> None:
    cluster = new_cluster("Deployment", replicas=1)
    cluster.client.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "shops.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"kind": "Shop", "plural": "shops"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                ],
            },
        }
    )
    cluster.settle()
    shop = cluster.client.create(
        {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "one"}}
    )
    assert cluster.why("crd/shops.example.com").state == "done"
    assert cluster.why("shop/one").state == "done"
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "Shop",
        "name": "one",
        "controller": True,
        "uid": shop["metadata"]["uid"],
    }
    cluster.client.patch("deploy/web", {"metadata": {"ownerReferences": [owner]}})
    change(cluster, "deploy/web", outcome="crash-loop")
    assert cluster.why("shop/one").cause == "crash-loop"
    change(cluster, "deploy/web", outcome="not-ready")
    answer = cluster.why("shop/one")
    assert (answer.state, answer.cause, names(answer)[:2]) == ("stuck", "not-ready", ["one", "web"])
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Broken",
        "message": "the till is shut.",
    }
    cluster.run("rollout undo deployment/web --to-revision=1", check=True)
    cluster.client.patch(
        "shop/one", {"status": {"conditions": [condition]}}, type="merge", subresource="status"
    )
    answer = cluster.why("shop/one")
    assert (answer.state, answer.chain[-1].text) == ("stuck", "the till is shut")


# --- large clusters -------------------------------------------------------------------------------


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cluster with more than six pods count as large."""
    monkeypatch.setattr(forward, "MANY_PODS", 6)


@pytest.mark.usefixtures("few_are_many")
def test_many_pods_alike_stuck_and_on_their_way() -> None:
    cluster = new_cluster("Deployment", replicas=12)
    change(cluster, "deploy/web", outcome="image-pull-backoff")
    answer = cluster.why("deploy/web")
    assert (answer.state, answer.cause, answer.remedies[0].proven) == ("stuck", "image-pull", True)
    change(cluster, "deploy/web", outcome="image-pull-backoff*3, ready")
    answer = cluster.why("deploy/web")
    assert (answer.state, answer.remedies) == ("progressing", ())
    assert cluster.settle()
    assert cluster.why("deploy/web").state == "done"


@pytest.mark.usefixtures("few_are_many")
def test_many_pods_one_different_decides() -> None:
    cluster = new_cluster("Deployment", replicas=10)
    change(cluster, "deploy/web", outcome="image-pull-backoff")
    cluster.settle(0)
    for pod in cluster.client.list("pods"):
        if pod["status"].get("phase") == "Pending":
            cluster.client.patch(
                f"pod/{pod['metadata']['name']}",
                {
                    "metadata": {
                        "annotations": {"kubepy.dev/outcome": "image-pull-backoff*4, ready"}
                    }
                },
            )
    assert (
        cluster.why("deploy/web").state == "stuck"
    )  # those that come after have the template's annotation


@pytest.mark.usefixtures("few_are_many")
def test_many_pods_remedy_that_writes_too_much_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "MOST_WRITES", 5)
    cluster = new_cluster("Deployment", replicas=12)
    change(cluster, "deploy/web", outcome="not-ready")
    answer = cluster.why("deploy/web")
    assert [remedy.proven for remedy in answer.remedies[:1]] == [False]


@pytest.mark.usefixtures("few_are_many")
def test_many_pods_that_come_on_are_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "MOST_MOMENTS", 3)
    cluster = new_cluster("DaemonSet", nodes=9)
    change(cluster, "ds/web", ready_after="5s")
    assert cluster.why("ds/web").state == "progressing"


@pytest.mark.usefixtures("few_are_many")
def test_many_pods_of_a_rollout_under_way_are_judged_by_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "OF_EACH_LOOK", 2)
    monkeypatch.setattr(forward, "MOST_WRITES_OF_FEW", 30)
    cluster, runs = new_cluster("Deployment", replicas=40), []
    change(cluster, "deploy/web", ready_after="20s")
    cluster.advance("5s")

    def counted(
        origin: LocalCluster,
        act: Callable[[LocalCluster], object],
        *,
        observe: Observe,
        done: Done,
    ) -> Prediction:
        prediction = predict(origin, act, observe=observe, done=done)
        runs.append(prediction.cluster.client.revision() - origin.client.revision())
        return prediction

    monkeypatch.setattr(forward, "predict", counted)
    assert cluster.why("deploy/web").state == "progressing"
    assert len(runs) == 1
    assert runs[0] < 65  # of more than 300


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    ("outcome", "state"),
    [({"runs_for": "60s"}, "progressing"), ({"runs_for": "60s", "exit_code": "1"}, "stuck")],
)
def test_many_pods_of_a_job(
    outcome: dict[str, str], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "OF_EACH_LOOK", 2)
    cluster = Cluster.temporary(nodes=3, seed=7)
    annotations = {f"kubepy.dev/{name.replace('_', '-')}": value for name, value in outcome.items()}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"},
    }
    cluster.client.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "job"},
            "spec": {"completions": 20, "parallelism": 20, "backoffLimit": 2, "template": template},
        }
    )
    cluster.advance("5s")
    assert cluster.why("job/job").state == state


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(("quota", "state"), [(20, "progressing"), (15, "stuck")])
def test_many_pods_that_come_up_are_not_all_there_must_be(
    quota: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "OF_EACH_LOOK", 2)
    cluster = new_cluster("Deployment", replicas=1)
    cluster.run(f"create quota few --hard=pods={quota}", check=True)
    change(cluster, "deploy/web", ready_after="20s")
    cluster.settle()
    cluster.run("scale deploy/web --replicas=20", check=True)
    cluster.advance("5s")
    assert cluster.why("deploy/web").state == state


@pytest.mark.usefixtures("few_are_many")
def test_many_pods_the_one_that_is_asked_about_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "OF_EACH_LOOK", 1)
    cluster = new_cluster("Deployment", replicas=12)
    change(cluster, "deploy/web", ready_after="20s")
    cluster.advance("5s")
    waiting = [
        pod["metadata"]["name"]
        for pod in cluster.client.list("pods")
        if not value_at(pod, "status.containerStatuses[0].ready")
    ]
    assert [cluster.why(f"pod/{name}").state for name in waiting[-2:]] == ["progressing"] * 2


ON_DELETE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  updateStrategy: {type: OnDelete}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1"}]}
"""


def test_stateful_set_on_delete_pod_of_a_revision_between_is_old() -> None:
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run("apply -f -", stdin=ON_DELETE, check=True)
    cluster.settle()
    for command in ("set image statefulset/db db=db:2", "delete pod db-1"):
        cluster.run(command, check=True)
        cluster.settle()
    assert cluster.run("plan set image statefulset/db db=db:1").status == 2
    cluster.run(
        "set image statefulset/db db=db:1", check=True
    )  # the current revision is the new one again
    why = cluster.why("statefulset/db")
    assert (why.state, why.cause) == ("stuck", "on-delete")
    assert [remedy.command for remedy in why.remedies if remedy.proven] == [
        ("delete", "pod", "db-1")
    ]


@pytest.mark.parametrize(
    ("taint", "pod", "cause"),
    [
        ("dedicated=db:NoSchedule", "", "taint"),
        ("dedicated=db:PreferNoSchedule", "", "up-to-date"),
        ("node-role.kubernetes.io/control-plane:NoSchedule", "", "up-to-date"),
        ("dedicated=db:NoSchedule", "tolerations: [{operator: Exists}]", "up-to-date"),
        ("dedicated=db:NoSchedule", "nodeSelector: {kubernetes.io/hostname: node-1}", "up-to-date"),
    ],
)
def test_daemon_set_that_leaves_out_a_tainted_node_says_so(
    taint: str, pod: str, cause: str
) -> None:
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run(f"taint nodes node-2 {taint}", check=True)
    cluster.run("apply -f -", stdin=workload("DaemonSet", "agent", pod=pod), check=True)
    why = cluster.why("daemonset/agent")
    assert (why.state, why.cause) == ("done", cause)
    assert [remedy.proven for remedy in why.remedies] == ([True, True] if cause == "taint" else [])


# --- earlier revisions ----------------------------------------------------------------------------


def test_rollout_after_two_broken_revisions_goes_back_to_the_last_good_one() -> None:
    """What the simulation alone can do against it does not count as a way out."""
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run("create deployment web --image=web:1 --replicas=2", check=True)
    cluster.settle()
    not_ready = {
        "spec": {"template": {"metadata": {"annotations": {"kubepy.dev/outcome": "not-ready"}}}}
    }
    cluster.run(["patch", "deployment", "web", "-p", json.dumps(not_ready)], check=True)
    cluster.run("set image deployment web web=web:2", check=True)
    remedies = {
        " ".join(remedy.command): remedy.proven for remedy in cluster.why("deploy/web").remedies
    }
    assert remedies["rollout undo deployment/web"] is False
    assert remedies["rollout undo deployment/web --to-revision=1"] is True


# --- starts after the next one --------------------------------------------------------------------


def test_cron_job_remedy_that_lasts_only_to_the_next_start_is_not_proven() -> None:
    cluster = Cluster.temporary(nodes=3, seed=7)
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report"},
        "spec": {
            "schedule": "0 * * * *",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {
                "spec": {
                    "template": {
                        "metadata": {"annotations": {"kubepy.dev/outcome": "ready"}},
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "report", "image": "report:1"}],
                        },
                    }
                }
            },
        },
    }
    cluster.run("apply -f -", stdin=json.dumps(manifest), check=True)
    cluster.advance("3h")
    remedies = {
        remedy.command[0]: remedy.proven for remedy in cluster.why("cronjob/report").remedies
    }
    assert remedies == {"patch": True, "delete": False}
