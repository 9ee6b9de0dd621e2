"""Delayed syncs of a controller are dropped when their object is deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubepy.api.meta import Object
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.conftest import Lab
from tests.controllers.statefulset_objects import stateful_set

SELECTOR = {"matchLabels": {"app": "web"}}
LATER = {"minReadySeconds": 100}


def template(outcome: str = "ready", **spec: Any) -> Object:
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": {"kubepy.dev/outcome": outcome}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}], **spec},
    }


def workload(kind: str, api: str = "apps/v1", **spec: Any) -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


def job(outcome: str, **spec: Any) -> Object:
    return workload("Job", "batch/v1", template=template(outcome, restartPolicy="Never"), **spec)


def cron_job(**spec: Any) -> Object:
    yearly = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job("ready")["spec"]}}
    return workload("CronJob", "batch/v1", **yearly | spec)


@pytest.mark.parametrize(
    ("resource", "obj"),
    [
        (
            "deployments.apps",
            workload("Deployment", selector=SELECTOR, template=template(), **LATER),
        ),
        (
            "replicasets.apps",
            workload("ReplicaSet", selector=SELECTOR, template=template(), replicas=1, **LATER),
        ),
        ("daemonsets.apps", workload("DaemonSet", selector=SELECTOR, template=template(), **LATER)),
        ("statefulsets.apps", stateful_set("web", **LATER)),
        ("jobs.batch", job("ready", activeDeadlineSeconds=500)),
        ("jobs.batch", job("succeeded", ttlSecondsAfterFinished=500)),
        ("cronjobs.batch", cron_job()),
        (
            "pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "web"},
                "spec": template(activeDeadlineSeconds=500)["spec"],
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_deleted_object_has_no_due_key(lab: Lab, resource: str, obj: Object) -> None:
    lab.node("node-1")
    lab.create(resource, obj, "default")
    assert lab.settle().due != []

    lab.client.delete(
        resource,
        obj["metadata"]["name"],
        namespace="default",
        options=DeleteOptions(propagation_policy="Background"),
    )
    assert lab.settle().due == []


@pytest.mark.parametrize(
    ("resource", "obj", "change"),
    [
        (
            "jobs.batch",
            job("succeeded", ttlSecondsAfterFinished=500),
            lambda job: job["spec"].pop("ttlSecondsAfterFinished"),
        ),
        ("cronjobs.batch", cron_job(), lambda cron_job: cron_job["spec"].update(suspend=True)),
        (
            "replicasets.apps",
            workload("ReplicaSet", selector=SELECTOR, template=template(), replicas=1, **LATER),
            lambda replica_set: replica_set["spec"].update(minReadySeconds=0),
        ),
        (
            "statefulsets.apps",
            stateful_set("web", **LATER),
            lambda set_: set_["spec"].update(minReadySeconds=0),
        ),
    ],
    ids=[
        "a job that may stay",
        "a suspended cron job",
        "a replica set in no hurry",
        "a stateful set in no hurry",
    ],
)
def test_cancelled_deadline_has_no_due_key(
    lab: Lab, resource: str, obj: Object, change: Callable[[Object], Any]
) -> None:
    lab.node("node-1")
    lab.create(resource, obj, "default")
    assert lab.settle().due != []

    lab.change(resource, "web", change, "default")
    assert lab.settle().due == []
