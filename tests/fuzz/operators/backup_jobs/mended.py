"""Start one Job for each ConfigMap that asks for a backup. The Job's name is a function of the
request, so that a second attempt finds the first one's Job.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

JOB = "example.org/job"  # annotation of a request: its Job


def operator(cluster):
    @cluster.controller("backup", watches=["configmaps"])
    def reconcile(client, key):
        try:
            request = client.get("configmaps", key.name, namespace=key.namespace)
        except NotFound:
            return
        metadata = request["metadata"]
        if "backup" not in metadata.get("labels", {}) or JOB in metadata.get("annotations", {}):
            return
        job = backup_job(request)
        with suppress(AlreadyExists):  # of an earlier attempt, which was not recorded
            job = client.create(job)
        record = {"metadata": {"annotations": {JOB: job["metadata"]["name"]}}}
        client.patch(f"configmaps/{key.name}", record, namespace=key.namespace)


def backup_job(request):
    name, uid = request["metadata"]["name"], request["metadata"]["uid"]
    container = {"name": "backup", "image": "busybox", "command": ["sleep", "20"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-{uid[-12:]}", "labels": {"backup-of": name}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def workload(cluster):
    for name in ("monday", "tuesday"):
        cluster.client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"backup": "requested"}},
            }
        )
        cluster.advance("40s")
