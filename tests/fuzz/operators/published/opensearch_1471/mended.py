"""Restart the cluster managers of two pools with a new revision. The guard of the quorum asks the
API (opensearch-project/opensearch-k8s-operator issue 1471).
"""

QUORUM = 2  # of three cluster managers


def operator(cluster):
    @cluster.controller("rolling-restart", watches=["statefulsets", "pods"])
    def reconcile(client, key):
        delays = [restart(client, cluster, pool) for pool in client.list("statefulsets")]
        return next(filter(None, delays), None)


def restart(client, cluster, pool):
    revision = pool.get("status", {}).get("updateRevision")
    selector = {"manager": "true", "pool": pool["metadata"]["name"]}
    for pod in client.list("pods", labels=selector):
        labels = pod["metadata"]["labels"]
        if revision and labels["controller-revision-hash"] != revision:
            managers = cluster.client.list("pods", labels={"manager": "true"})
            if sum(map(is_ready, managers)) > QUORUM:
                client.delete("pods", pod["metadata"]["name"])
            return "5s"
    return None


def is_ready(pod):
    conditions = pod.get("status", {}).get("conditions", [])
    is_up = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return is_up and "deletionTimestamp" not in pod["metadata"]


def stateful_set(name, replicas):
    labels = {"manager": "true", "pool": name}
    container = {
        "name": "opensearch",
        "image": "opensearch:2",
        "readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 5},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def workload(cluster):
    client = cluster.client
    client.create(stateful_set("pool-a", 2))
    client.create(stateful_set("pool-b", 1))
    cluster.advance("30s")
    annotations = {"template": {"metadata": {"annotations": {"config": "2"}}}}
    for name in ("pool-a", "pool-b"):
        client.patch(f"statefulsets/{name}", {"spec": annotations})
