"""Work without end is bounded: controllers that undo each other's work, and runs that may write so
much. Work that gets on is not, however much there is of it at one moment."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kubepy import Cluster
from kubepy.api.meta import Object
from kubepy.controlplane import build_manager
from kubepy.controlplane.summary import Summary
from kubepy.insight import prediction
from kubepy.insight.prediction import contests_of
from kubepy.runtime.contention import MOST_ROUNDS
from kubepy.runtime.pacing import FIRST_PODS

TAINT = "taint nodes node-1 maintenance=yes:NoExecute"
MORE = 15  # rounds, beyond the bound, until a wait is the longest


def workload(
    kind: str = "Deployment", name: str = "web", *, pod: Object | None = None, **spec: object
) -> Object:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **(pod or {})},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def job(**spec: object) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "count", "namespace": "default"},
        "spec": {"template": {"spec": pod}, **spec},
    }


def tainted(kind: str = "Deployment", **spec: object) -> Cluster:
    """Return a cluster with a workload whose pods name a node that evicts them."""
    cluster = Cluster.temporary(nodes=2)
    cluster.run(TAINT, check=True)
    cluster.client.create(workload(kind, pod={"nodeName": "node-1"}, **spec))
    return cluster


def run(cluster: Cluster, *, most_writes: float = float("inf")) -> Summary:
    """Let controllers of a new process do what is due now."""
    with cluster._open() as local:
        return build_manager(local).run_until_settled(most_writes=most_writes)


def made(cluster: Cluster) -> int:
    """Return how many pods have been made so far."""
    return sum(
        step["action"] == "created" and step["resource"] == "pods"
        for step in json.loads(cluster.run("timeline -o json").stdout)["steps"]
    )


def content(cluster: Cluster) -> dict[str, list[Object]]:
    """Return all objects but events, with their uids and resource versions."""
    with cluster._open() as local:
        return {
            resource: local.store.list(resource).objects
            for resource in local.resources()
            if resource != "events"
        }


# --- contests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "controller"),
    [
        ("Deployment", "replicaset-controller"),
        ("ReplicaSet", "replicaset-controller"),
        ("StatefulSet", "statefulset-controller"),
    ],
)
def test_eviction_and_owner_of_pods_undo_each_other_so_often_in_a_moment(
    kind: str, controller: str
) -> None:
    cluster = tainted(kind, **({"serviceName": "web"} if kind == "StatefulSet" else {}))
    [contest] = run(cluster).contests
    assert contest.maker.reconciler == controller
    assert contest.undoer.reconciler == "taint-eviction-controller"
    assert MOST_ROUNDS <= made(cluster) <= MOST_ROUNDS + 1
    assert not run(cluster).contests
    assert made(cluster) <= MOST_ROUNDS + 1


def test_contest_lasts_for_days_and_ends_with_the_taint() -> None:
    cluster = tainted(replicas=3)
    cluster.advance("4d")
    assert made(cluster) < 3 * 4 * 24 * 3600 / 1000  # what is kept of the timeline is less
    assert [contest.undoer.reconciler for contest in contests(cluster)] == [
        "taint-eviction-controller"
    ]
    cluster.run("taint nodes node-1 maintenance-", check=True)
    assert cluster.run("get deploy web --no-headers").stdout.split()[1] == "3/3"
    assert not contests(cluster)


def contests(cluster: Cluster) -> list[object]:
    with cluster._open() as local:
        return list(contests_of(local))


def test_change_that_does_not_help_costs_one_round() -> None:
    cluster = tainted()
    run(cluster)
    before = made(cluster)
    for number in range(5):
        cluster.run(f"label node node-2 a={number} --overwrite", check=True)
        run(cluster)
    assert made(cluster) == before + 5


def test_two_autoscalers_come_to_rest_at_the_longest_wait() -> None:
    cluster = Cluster.temporary(nodes=1)
    cluster.client.create(workload(replicas=4))
    for name, bounds in (("a", "--min=5 --max=7"), ("b", "--min=1 --max=3")):
        cluster.run(f"autoscale deploy web --name={name} {bounds} --cpu=50%", check=True)
    assert cluster.settle()
    [contest] = contests(cluster)
    assert contest.subject.resource == "deployments.apps"
    assert {contest.maker.key.name, contest.undoer.key.name} == {"a", "b"}
    scaled = [
        step["reason"]
        for step in json.loads(cluster.run("timeline deploy/web -o json").stdout)["steps"]
        if step["action"] == "scaled" and step["resource"] == "deployments.apps"
    ]
    assert len(scaled) <= 2 * (MOST_ROUNDS + MORE)


def test_plan_beside_quota_taint_and_cron_job_writes_little() -> None:
    cluster = tainted()
    cluster.run("create quota q --hard=pods=0 -n kube-public", check=True)
    cluster.client.create(
        workload(name="refused") | {"metadata": {"name": "refused", "namespace": "kube-public"}}
    )
    cluster.run("create cronjob tick --image=i --schedule='* * * * *'", check=True)
    planned = cluster.plan("label node node-2 a=b")
    actions = Counter(step["action"] for step in planned.steps if step["name"].startswith("web"))
    assert actions["created"] <= MOST_ROUNDS + MORE
    [contest] = planned.document["contests"]
    assert contest["maker"]["controller"] == "replicaset-controller"
    assert contest["undoer"]["controller"] in ("taint-eviction-controller", "kubelet")
    assert not planned.document["cut"]


def test_plan_and_why_name_both_controllers() -> None:
    cluster = tainted()
    shown = cluster.run("plan")
    assert shown.status == 2
    assert "note: two controllers undo each other's work on replicasets.apps/web-" in shown.stdout
    assert "replicaset-controller creates pods" in shown.stdout
    answer = cluster.why("deploy/web")
    assert (answer.state, answer.cause) == ("stuck", "contention")
    assert "taint-eviction-controller deletes them" in answer.chain[1].text
    assert answer.remedies[0].proven


@pytest.mark.parametrize("most_writes", [37, 150])
def test_run_in_parts_gives_the_same_objects(most_writes: int) -> None:
    whole, parts = (tainted(replicas=2) for _ in range(2))
    run(whole)
    for _ in range(10_000 // most_writes):
        if not run(parts, most_writes=most_writes).is_cut:
            break
    assert content(parts) == content(whole)


# --- work that gets on ----------------------------------------------------------------------------


def stands_still(cluster: Cluster) -> bool:
    """Do what is due now; return whether nothing was put off, and nobody waits for another."""
    summary = run(cluster)
    return not summary.contests and not summary.is_cut and not summary.due


def test_daemon_set_is_rolled_out_pod_by_pod_in_one_moment() -> None:
    cluster = Cluster.temporary(nodes=250)
    cluster.client.create(workload("DaemonSet"))
    assert stands_still(cluster)
    cluster.run("set image ds/web c=other", check=True)
    assert stands_still(cluster)
    assert cluster.client.get("ds/web")["status"]["updatedNumberScheduled"] == 250


@pytest.mark.parametrize("spec", [{}, {"podManagementPolicy": "Parallel"}])
def test_stateful_set_is_rolled_out_and_scaled_in_one_moment(spec: Object) -> None:
    cluster = Cluster.temporary(nodes=5)
    cluster.client.create(workload("StatefulSet", replicas=150, serviceName="web", **spec))
    assert stands_still(cluster)
    cluster.run("set image sts/web c=other", check=True)
    assert stands_still(cluster)
    status = cluster.client.get("sts/web")["status"]
    assert (status["updatedReplicas"], status["readyReplicas"]) == (150, 150)
    cluster.run("scale sts/web --replicas=1", check=True)
    assert stands_still(cluster)
    assert cluster.client.get("sts/web")["status"]["replicas"] == 1


@pytest.mark.parametrize(
    "strategy", [{"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": 0, "maxUnavailable": 1}]
)
def test_deployment_is_rolled_out_back_and_forth_in_one_moment(strategy: Object) -> None:
    cluster = Cluster.temporary(nodes=3)
    cluster.client.create(workload(replicas=60, strategy={"rollingUpdate": strategy}))
    for image in ("one", "two", "one", "two"):
        run(cluster)
        cluster.run(f"set image deploy/web c={image}", check=True)
    assert not run(cluster).contests
    assert cluster.client.get("deploy/web")["status"]["updatedReplicas"] == 60


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_job_completes_many_times_in_one_moment(mode: str) -> None:
    cluster = Cluster.temporary(nodes=3)
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec = {"parallelism": 2, "completions": 400, "completionMode": mode, "template": {"spec": pod}}
    cluster.client.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": spec,
            "metadata": {"name": "many", "namespace": "default"},
        }
    )
    assert stands_still(cluster)
    assert cluster.client.get("job/many")["status"]["succeeded"] == 400


def test_pods_that_make_room_for_others_are_no_contest() -> None:
    cluster = Cluster.temporary(nodes=4)
    size = {"requests": {"cpu": "500m"}}
    pod = {"containers": [{"name": "c", "image": "i", "resources": size}]}
    cluster.client.create(workload(name="low", replicas=30, pod=pod))
    assert not run(cluster).contests
    cluster.client.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    cluster.client.create(
        workload(name="high", replicas=25, pod={**pod, "priorityClassName": "high"})
    )
    summary = run(cluster)
    assert not summary.contests
    assert cluster.client.get("deploy/high")["status"]["readyReplicas"] == 25


# --- counts of 32 bits ----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [{}, {"podManagementPolicy": "Parallel"}])
def test_stateful_set_of_any_size_makes_pods(spec: Object) -> None:
    cluster = Cluster.temporary(nodes=1)
    cluster.client.create(workload("StatefulSet", replicas=2**31 - 1, serviceName="web", **spec))
    assert run(cluster, most_writes=300).is_cut
    assert made(cluster) > 50
    cluster.run("scale sts/web --replicas=0", check=True)
    run(cluster)
    assert not cluster.client.list("pods")


@pytest.mark.parametrize(
    "counted",
    [
        workload("ReplicaSet", replicas=2**31 - 1),
        workload("StatefulSet", replicas=2**31 - 1, serviceName="web"),
        workload("StatefulSet", replicas=2**31 - 1, podManagementPolicy="Parallel"),
        job(parallelism=2**31 - 1, completions=2**31 - 1),
        job(parallelism=1, completions=2**31 - 1),
    ],
    ids=lambda counted: f"{counted['kind']} {counted['spec'].get('parallelism', '')}",
)
def test_bounded_run_makes_the_first_pods_of_a_count_that_is_far_too_large(counted: Object) -> None:
    cluster = Cluster.temporary(nodes=6)  # an ordered StatefulSet needs room for all of them
    cluster.client.create(counted)
    summary = run(cluster, most_writes=20_000)
    assert not summary.is_cut
    assert [excess.wanted for excess in summary.excesses] == [2**31 - 1]
    assert made(cluster) == FIRST_PODS
    assert not run(cluster, most_writes=20_000).excesses, "there is nothing left to look at"


def test_run_to_the_end_goes_on_where_a_bounded_one_has_stopped() -> None:
    cluster = Cluster.temporary(nodes=1, settings={"limits": {"pods": FIRST_PODS + 30}})
    cluster.client.create(workload(replicas=2**31 - 1))
    run(cluster, most_writes=20_000)
    assert made(cluster) == FIRST_PODS
    run(cluster)
    assert made(cluster) == FIRST_PODS + 30


def test_workload_that_asks_for_fewer_pods_again_gets_all_of_them() -> None:
    cluster = Cluster.temporary(nodes=1)
    cluster.client.create(workload(replicas=2**31 - 1))
    run(cluster, most_writes=20_000)
    cluster.run(f"scale deploy/web --replicas={FIRST_PODS + 20}", check=True)
    assert not run(cluster, most_writes=20_000).excesses
    assert made(cluster) == FIRST_PODS + 20


def test_plan_says_which_workload_asks_for_far_too_many_pods() -> None:
    cluster = Cluster.temporary(nodes=1)
    planned = cluster.run("plan create deployment web --image=i --replicas=2147483647")
    assert planned.status == 2
    last = planned.stdout.splitlines()[-1]
    assert "asks for 2,147,483,647 pods and gets 500 of them" in last
    document = json.loads(
        cluster.run("plan -o json create deployment web --image=i --replicas=2147483647").stdout
    )
    assert document["cut"]


def test_plan_of_any_size_ends_at_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "WAIT_WRITES", 500)
    cluster = Cluster.temporary(nodes=1)
    planned = cluster.run("plan create deployment web --image=i --replicas=2147483647")
    assert planned.status == 2
    assert planned.stdout.splitlines()[-1].startswith(
        "Does not finish: the controllers write more than"
    )
    assert not cluster.client.list("deployments")
