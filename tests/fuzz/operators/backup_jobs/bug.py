"""Start one Job for each ConfigMap that asks for a backup.

Bug: the Job has a generated name, and is recorded after it was made. An operator that ends in
between makes another one.
"""

from kubepy import NotFound

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
        job = client.create(backup_job(request))
        record = {"metadata": {"annotations": {JOB: job["metadata"]["name"]}}}
        client.patch(f"configmaps/{key.name}", record, namespace=key.namespace)


def backup_job(request):
    name = request["metadata"]["name"]
    container = {"name": "backup", "image": "busybox", "command": ["sleep", "20"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{name}-", "labels": {"backup-of": name}},
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
