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


def test_security_context_says_whose_processes_and_files_are(pods: PodsCluster) -> None:
    context = {
        "runAsUser": 1000,
        "runAsGroup": 3000,
        "fsGroup": 2000,
        "supplementalGroups": [4000],
    }
    mounts = [{"name": "data", "mountPath": "/data/demo"}]
    volumes = [{"name": "data", "emptyDir": {}}]
    pods.create(
        "p", shell("sleep 1h", volumeMounts=mounts), securityContext=context, volumes=volumes
    )
    assert pods.run("exec", "p", "--", "id") == "uid=1000 gid=3000 groups=2000,3000,4000\n"
    assert "drwxrwsrwx 2 root 2000 4096 Jan  1 00:00 demo" in pods.run(
        "exec", "p", "--", "ls", "-l", "/data"
    )
    script = "cd /data/demo; echo hello > f; mkdir d; touch /tmp/g; stat -c '%u %g %a' f d /tmp/g"
    assert (
        pods.run("exec", "p", "--", "sh", "-c", script)
        == "1000 2000 644\n1000 2000 2755\n1000 3000 644\n"
    )
    user = {"uid": 1000, "gid": 3000, "supplementalGroups": [2000, 3000, 4000]}
    assert pods.status("p")["user"] == {"linux": user}


def test_chown_gives_files_to_others(pods: PodsCluster) -> None:
    pods.create("p", shell("sleep 1h"))
    script = "cd /tmp; mkdir d; touch d/f g; chown -R 7:8 d; chgrp 9 g; stat -c '%u %g' d d/f g"
    assert pods.run("exec", "p", "--", "sh", "-c", script) == "7 8\n7 8\n0 9\n"
