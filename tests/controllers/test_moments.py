"""Everything that falls due happens at its own moment: not a millisecond before it, and not later.

In each case a process puts something off, another one works until just before the moment, a third
one until it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, name_of
from kubepy.api.objects.outcomes import OUTCOME
from kubepy.api.objects.pods import get_condition
from kubepy.apiserver.client import Client
from kubepy.controlplane import build_manager
from kubepy.controlplane.summary import Summary
from tests.controllers.conftest import NOW, Lab
from tests.controllers.statefulset_objects import stateful_set
from tests.controllers.test_due import SELECTOR, cron_job, job, template, workload

DS, DEPLOYMENTS, JOBS = "daemonsets.apps", "deployments.apps", "jobs.batch"
START = parse_time(NOW)
HOUR = 3600.0


class Moment(NamedTuple):
    """A thing that happens a number of seconds after the objects were made (and ``begin`` was
    called)."""

    name: str
    after: float
    objects: Sequence[tuple[str, Object]]
    has_happened: Callable[[Client], object]
    begin: Callable[[Lab], object] = lambda lab: None


def advance(lab: Lab, moment: datetime) -> Summary:
    """Work until a moment, as another process."""
    return build_manager(lab.cluster).advance(moment)


# --- objects --------------------------------------------------------------------------------------


def pod(name: str = "web", outcome: str = "ready", **spec: Any) -> Object:
    made = template(outcome, **spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **made["metadata"]},
        "spec": made["spec"],
    }


def of_template(kind: str, outcome: str = "ready", **spec: Any) -> Object:
    return workload(kind, selector=SELECTOR, template=template(outcome), **spec)


def indexed_job() -> Object:
    return job(
        "failed", completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=2
    )


def budget() -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": SELECTOR},
    }


# --- questions ------------------------------------------------------------------------------------


def status(client: Client, resource: str, field: str) -> Any:
    return (client.get(resource, "web", namespace="default").get("status") or {}).get(field)


def has_status(resource: str, field: str, value: object) -> Callable[[Client], bool]:
    return lambda client: bool(status(client, resource, field) == value)


def condition(
    client: Client, resource: str, kind: str, namespace: str = "default", name: str = "web"
) -> str:
    obj = client.get(resource, name, namespace=namespace)
    return str((get_condition(obj, kind) or {}).get("reason", ""))


def pods(client: Client) -> list[Object]:
    return client.list("pods", namespace="default").items


def names(client: Client, resource: str) -> list[str]:
    return [name_of(obj) for obj in client.list(resource).items]


def events(client: Client, reason: str) -> int:
    return sum(
        event.get("count", 1)
        for event in client.list("events", namespace="default").items
        if event["reason"] == reason
    )


# --- beginnings -----------------------------------------------------------------------------------


def taint(lab: Lab) -> None:
    lab.change(
        "nodes",
        "node-1",
        lambda node: node["spec"].update(taints=[{"key": "k", "effect": "NoExecute"}]),
    )


def break_node(lab: Lab) -> None:
    """Let one of two nodes report that it is not ready: if no node were, pods would stay."""
    lab.node("node-2")
    lab.settle()

    def change(node: Object) -> None:
        for one in node["status"]["conditions"]:
            one.update({"status": "False"} if one["type"] == "Ready" else {})

    lab.change(
        "nodes",
        "node-1",
        lambda node: node["metadata"]["annotations"].update({OUTCOME: "not-ready"}),
    )
    lab.change("nodes", "node-1", change, subresource="status")


def disrupt(lab: Lab) -> None:
    lab.change(
        "poddisruptionbudgets.policy",
        "web",
        lambda budget: budget["status"].update(
            disruptedPods={"web": lab.cluster.clock.timestamp()}
        ),
        "default",
        "status",
    )


def target(lab: Lab) -> None:
    added = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "Test",
        "lastTransitionTime": lab.cluster.clock.timestamp(),
    }
    lab.change(
        "pods", "web", lambda pod: pod["status"]["conditions"].append(added), "default", "status"
    )


def roll_out(lab: Lab) -> None:
    lab.change(
        DS,
        "web",
        lambda obj: obj["spec"]["template"]["metadata"]["annotations"].update(new="yes"),
        "default",
    )


def delete_namespace(lab: Lab) -> None:
    lab.create(
        "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    )
    lab.settle()
    lab.client.delete("namespaces", "shop")


SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
TOLERATION = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 45}
MOMENTS = (
    Moment(
        "a Deployment's pods become available",
        30,
        [(DEPLOYMENTS, of_template("Deployment", replicas=2, minReadySeconds=30))],
        has_status(DEPLOYMENTS, "availableReplicas", 2),
    ),
    Moment(
        "a ReplicaSet's pods become available",
        30,
        [("replicasets.apps", of_template("ReplicaSet", replicas=2, minReadySeconds=30))],
        has_status("replicasets.apps", "availableReplicas", 2),
    ),
    Moment(
        "a DaemonSet's pods become available",
        30,
        [(DS, of_template("DaemonSet", minReadySeconds=30))],
        has_status(DS, "numberAvailable", 1),
    ),
    Moment(
        "a DaemonSet's surge pod takes over",
        60,
        [(DS, of_template("DaemonSet", minReadySeconds=30, updateStrategy=SURGE))],
        lambda client: len(pods(client)) == 1 and status(client, DS, "updatedNumberScheduled") == 1,
        lambda lab: (advance(lab, START + timedelta(seconds=30)), roll_out(lab)),
    ),
    Moment(
        "a StatefulSet's second pod may come",
        30,
        [("statefulsets.apps", stateful_set("web", replicas=2, minReadySeconds=30))],
        lambda client: len(pods(client)) == 2,
    ),
    Moment(
        "a rollout is stuck",
        601,
        [(DEPLOYMENTS, of_template("Deployment", "not-ready", replicas=1))],
        lambda client: condition(client, DEPLOYMENTS, "Progressing") == "ProgressDeadlineExceeded",
    ),
    Moment(
        "a Job's second pod comes",
        10,
        [(JOBS, job("failed"))],
        lambda client: len(pods(client)) == 2,
    ),
    Moment(
        "a Job's third pod comes",
        30,
        [(JOBS, job("failed"))],
        lambda client: len(pods(client)) == 3,
    ),
    Moment(
        "an index's second pod comes",
        10,
        [(JOBS, indexed_job())],
        lambda client: len(pods(client)) == 4,
    ),
    Moment(
        "an index's third pod comes",
        30,
        [(JOBS, indexed_job())],
        lambda client: len(pods(client)) == 6,
    ),
    Moment(
        "a Job has its deadline",
        90,
        [(JOBS, job("ready", activeDeadlineSeconds=90))],
        lambda client: condition(client, JOBS, "Failed") == "DeadlineExceeded",
    ),
    Moment(
        "a Job is deleted after its end",
        100,
        [(JOBS, job("succeeded", ttlSecondsAfterFinished=100))],
        lambda client: not client.list(JOBS).items,
    ),
    Moment(
        "a CronJob starts",
        300,
        [("cronjobs.batch", cron_job(schedule="*/5 * * * *"))],
        lambda client: client.list(JOBS).items,
    ),
    Moment(
        "a CronJob starts by the clock of its zone",
        1800,
        [("cronjobs.batch", cron_job(schedule="0 16 * * *", timeZone="Asia/Kolkata"))],
        lambda client: client.list(JOBS).items,
    ),
    Moment(
        "a CronJob replaces the Job before",
        600,
        [
            (
                "cronjobs.batch",
                cron_job(
                    schedule="*/5 * * * *",
                    concurrencyPolicy="Replace",
                    successfulJobsHistoryLimit=0,
                    jobTemplate={"spec": job("not-ready")["spec"]},
                ),
            )
        ],
        lambda client: names(client, JOBS) == [f"web-{int(START.timestamp()) // 60 + 10}"],
    ),
    Moment(
        "a pod has its deadline",
        60,
        [("pods", pod(activeDeadlineSeconds=60))],
        has_status("pods", "phase", "Failed"),
    ),
    Moment(
        "a pod has tolerated a taint for long enough",
        45,
        [("pods", pod(tolerations=[TOLERATION]))],
        lambda client: not pods(client),
        taint,
    ),
    Moment(
        "a pod has tolerated a node that is not ready",
        300,
        [("pods", pod())],
        lambda client: not pods(client),
        break_node,
    ),
    Moment(
        "pods of a deleted node go",
        40,
        [("pods", pod())],
        lambda client: not pods(client),
        lambda lab: lab.client.delete("nodes", "node-1"),
    ),
    Moment(
        "a node that never reported is unknown",
        60,
        [
            (
                "nodes",
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": "silent", "annotations": {OUTCOME: "not-ready"}},
                },
            )
        ],
        lambda client: (
            condition(client, "nodes", "Ready", "", "silent") == "NodeStatusNeverUpdated"
        ),
    ),
    Moment(
        "a pod that was evicted and stays counts again",
        120,
        [("pods", pod()), ("poddisruptionbudgets.policy", budget())],
        lambda client: not status(client, "poddisruptionbudgets.policy", "disruptedPods"),
        disrupt,
    ),
    Moment(
        "a disruption that did not come is no target any more",
        120,
        [("pods", pod())],
        lambda client: (
            (
                get_condition(client.get("pods", "web", namespace="default"), "DisruptionTarget")
                or {}
            )["status"]
            == "False"
        ),
        target,
    ),
    Moment(
        "a DaemonSet replaces a failed pod",
        1,
        [(DS, of_template("DaemonSet", "failed"))],
        lambda client: events(client, "FailedDaemonPod") == 2,
    ),
    Moment(
        "a DaemonSet replaces a failed pod again",
        3,
        [(DS, of_template("DaemonSet", "failed"))],
        lambda client: events(client, "FailedDaemonPod") == 3,
    ),
    Moment(
        "a terminating namespace goes",
        5,
        [],
        lambda client: "shop" not in names(client, "namespaces"),
        delete_namespace,
    ),
)


def put_off(lab: Lab, moment: Moment) -> None:
    lab.node("node-1")
    for resource, obj in moment.objects:
        lab.create(resource, obj, "" if obj["kind"] == "Node" else "default")
    advance(lab, lab.now)
    moment.begin(lab)


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.name)
def test_timed_thing_happens_at_its_moment(lab: Lab, moment: Moment) -> None:
    put_off(lab, moment)
    due = START + timedelta(seconds=moment.after)

    summary = advance(lab, due - timedelta(milliseconds=1))
    assert not moment.has_happened(lab.client)
    assert min(work.time for work in summary.due) == due

    advance(lab, due)
    assert moment.has_happened(lab.client)
    assert lab.now == due


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.name)
def test_timed_thing_happens_once_where_time_stands_between_two_seconds(
    lab: Lab, moment: Moment
) -> None:
    lab.pass_time(0.7)
    put_off(lab, moment)
    manager = build_manager(lab.cluster)
    moments: list[datetime] = []
    manager.advance(
        START + timedelta(seconds=moment.after + 1), done=lambda: moments.append(lab.now) or False
    )
    assert moment.has_happened(lab.client)
    assert len(moments) == len(set(moments)) < 20
    assert all(time.microsecond in (0, 700000) for time in moments)


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.name)
def test_timed_thing_happens_however_many_processes_there_were_before(
    lab: Lab, moment: Moment
) -> None:
    put_off(lab, moment)
    due = START + timedelta(seconds=moment.after)
    for part in range(1, 8):
        advance(lab, START + (due - START) * part / 7)
        assert bool(moment.has_happened(lab.client)) == (lab.now == due)


def test_event_is_there_for_an_hour(lab: Lab) -> None:
    put_off(lab, MOMENTS[0])
    count = len(lab.client.list("events").items)
    advance(lab, START + timedelta(hours=1, milliseconds=-1))
    assert len(lab.client.list("events").items) == count > 0
    advance(lab, START + timedelta(hours=1))
    assert lab.client.list("events").items == []


def test_deployment_that_lost_pod_after_its_rollout_is_not_looked_at_again_and_again(
    lab: Lab,
) -> None:
    lab.node("node-1")
    lab.create(DEPLOYMENTS, of_template("Deployment", replicas=1), "default")
    advance(lab, START + timedelta(hours=1))
    lab.change("nodes", "node-1", lambda node: node["spec"].update(unschedulable=True))
    lab.client.delete("pods", name_of(pods(lab.client)[0]), namespace="default")
    assert [work for work in lab.settle().due if work.reconciler == "deployment-controller"] == []
    assert status(lab.client, DEPLOYMENTS, "unavailableReplicas") == 1


@pytest.mark.parametrize(
    ("objects", "resource"),
    [
        ([("cronjobs.batch", cron_job(schedule="* * * * *"))], "cronjobs.batch"),
        (
            [
                (
                    "horizontalpodautoscalers.autoscaling",
                    {
                        "apiVersion": "autoscaling/v2",
                        "kind": "HorizontalPodAutoscaler",
                        "metadata": {"name": "web"},
                        "spec": {
                            "maxReplicas": 3,
                            "scaleTargetRef": {
                                "apiVersion": "apps/v1",
                                "kind": "Deployment",
                                "name": "x",
                            },
                        },
                    },
                )
            ],
            "horizontalpodautoscalers.autoscaling",
        ),
    ],
    ids=["a CronJob", "an autoscaler"],
)
def test_time_that_is_quiet_for_longer_than_a_period_is_waited_for(
    lab: Lab, objects: Any, resource: str
) -> None:
    for kind, obj in objects:
        lab.create(kind, obj, "default")
    summary = build_manager(lab.cluster).run_until_settled(quiet_for=HOUR)
    assert [work.key.resource for work in summary.due] == [resource]
    assert lab.now < START + timedelta(minutes=1)


def test_failed_daemon_pod_at_longest_back_off_is_not_waited_for(lab: Lab) -> None:
    lab.node("node-1")
    lab.create(DS, of_template("DaemonSet", "failed"), "default")
    build_manager(lab.cluster).advance(settled=True)
    assert lab.now == START + timedelta(seconds=2**10 - 1)
    assert events(lab.client, "FailedDaemonPod") > 0
