"""Run so many Jobs, and never more than so many at a time. What exists already, though the cache
does not have it, counts as running.
"""

from contextlib import suppress

from kubepy import AlreadyExists


def operator(cluster):
    cluster.client.apply(definition())

    @cluster.controller("runner", watches=["runnersets.example.org", "jobs"])
    def reconcile(client, key):
        for runner_set in client.list("runnersets.example.org", namespace=key.namespace):
            run(client, runner_set)


def run(client, runner_set):
    name, spec = runner_set["metadata"]["name"], runner_set["spec"]
    namespace = runner_set["metadata"]["namespace"]
    jobs = client.list("jobs", namespace=namespace, labels={"runner-set": name})
    by_name = {job["metadata"]["name"]: job for job in jobs}
    active = 0
    for index in range(spec["runs"]):
        job_name = f"{name}-{index}"
        if is_done(by_name.get(job_name)):
            continue
        if active == spec["parallel"]:
            break
        if job_name not in by_name:
            with suppress(AlreadyExists):
                client.create(job_for(runner_set, job_name))
        active += 1


def is_done(job):
    return job is not None and job.get("status", {}).get("succeeded", 0) > 0


def job_for(runner_set, job_name):
    container = {"name": "run", "image": "busybox", "command": ["sleep", "15"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name, "labels": {"runner-set": runner_set["metadata"]["name"]}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "runnersets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "runnersets", "singular": "runnerset", "kind": "RunnerSet"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    cluster.client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "RunnerSet",
            "metadata": {"name": "nightly"},
            "spec": {"runs": 5, "parallel": 2},
        }
    )
