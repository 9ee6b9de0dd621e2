"""Steps of the Kubernetes documentation whose outcome needs more than one part of the model."""

from __future__ import annotations

import pytest

from tests.kubelet.modelled.clusters import PodsCluster, shell


@pytest.fixture
def pods() -> PodsCluster:
    return PodsCluster()


def test_log_of_a_sidecar_shows_what_another_container_has_written_since(pods: PodsCluster) -> None:
    mounts = [{"name": "data", "mountPath": "/opt"}]
    app = shell("while true; do echo logging >> /opt/logs.txt; sleep 1; done", volumeMounts=mounts)
    sidecar = {
        **shell("tail -F /opt/logs.txt", volumeMounts=mounts),
        "name": "shipper",
        "restartPolicy": "Always",
    }
    volumes = [{"name": "data", "emptyDir": {}}]
    pods.create("p", app, initContainers=[sidecar], volumes=volumes)
    pods.advance(4.5)
    assert pods.logs("p", "-c", "shipper").count("logging\n") == 5


def test_deleted_pod_that_never_ran_fails_where_a_finalizer_holds_it(pods: PodsCluster) -> None:
    pods.create("p", {"name": "c", "image": "non-existing-repo/non-existing-image:example"})
    pods.advance(12)
    patch = '{"metadata":{"finalizers":["example.com/hold"]}}'
    pods.run("patch", "pod", "p", "-p", patch)
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(1)
    assert pods.pod("p")["status"]["phase"] == "Failed"
    ended = pods.state("p")["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("ContainerStatusUnknown", 137)
