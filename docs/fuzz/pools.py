"""Keep as many pods for each ConfigMap with the label ``pool`` as its data says."""


def operator(cluster):
    @cluster.controller("pools", watches=["configmaps", "pods"])
    def reconcile(client, key):
        for pool in client.list("configmaps", labels="pool"):
            name = pool["metadata"]["name"]
            pods = client.list("pods", labels={"pool": name})
            for _ in range(len(pods), int(pool["data"]["size"])):
                client.create(pod_of(name))


def pod_of(pool):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": f"{pool}-", "labels": {"pool": pool}},
        "spec": {"containers": [{"name": "worker", "image": "worker:1"}]},
    }


def workload(cluster):
    cluster.client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "small", "labels": {"pool": "yes"}},
            "data": {"size": "2"},
        }
    )
