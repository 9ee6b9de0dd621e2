"""Start a run at each tick of a schedule, with the tick's number in its name
(sympozium-ai/sympozium issue 223).
"""

from contextlib import suppress
from datetime import timedelta

from kubepy import AlreadyExists

KIND = "schedules.example.org"


def operator(cluster):
    @cluster.controller("schedule", watches=[KIND, "jobs"])
    def reconcile(client, key):
        for schedule in client.list(KIND, namespace=key.namespace):
            return fire(client, schedule, cluster.now)
        return None


def fire(client, schedule, now):
    every = schedule["spec"]["everySeconds"]
    tick = int(now.timestamp()) // every
    status = schedule.setdefault("status", {})
    if status.get("lastTick") != tick:
        run_name = f"{schedule['metadata']['name']}-{tick}"
        with suppress(AlreadyExists):
            client.create(run(run_name, tick))
        status["lastTick"] = tick
        client.update(schedule, subresource="status")
    return timedelta(seconds=every - now.timestamp() % every)


def run(name, tick):
    container = {"name": "agent", "image": "busybox", "command": ["sleep", "10"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"tick": str(tick)}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "schedules.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "schedules", "singular": "schedule", "kind": "Schedule"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    client = cluster.client
    client.create(definition())
    client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "Schedule",
            "metadata": {"name": "sweep"},
            "spec": {"everySeconds": 120},
        }
    )
