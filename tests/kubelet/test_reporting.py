"""What is reported about containers that a runtime has made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.kubelet.reporting import (
    container_id,
    container_user,
    image_id,
    reported_image,
    reported_mounts,
)
from tests.kubelet.modelledcluster import ModelledCluster

Object = dict[str, Any]
DIGEST = f"sha256:{'ab' * 32}"


@pytest.fixture
def modelled(tmp_path: Path) -> Iterator[ModelledCluster]:
    cluster = ModelledCluster(tmp_path / "state")
    cluster.node("a")
    yield cluster
    cluster.close()


def conditions(status: Object) -> list[tuple[str, str]]:
    return [(condition["type"], condition["status"]) for condition in status["conditions"]]


@pytest.mark.parametrize(
    ("image", "reported"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.25", "docker.io/library/nginx:1.25"),
        ("me/app:2", "docker.io/me/app:2"),
        ("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        (f"nginx:1.25@{DIGEST}", f"docker.io/library/nginx@{DIGEST}"),
    ],
)
def test_image_is_reported_with_its_full_name(image: str, reported: str) -> None:
    assert reported_image(image) == reported
    assert reported_image(reported) == reported


def test_image_id_is_a_digest_that_follows_from_the_name() -> None:
    identity = image_id("nginx")
    assert re.fullmatch("docker.io/library/nginx@sha256:[0-9a-f]{64}", identity)
    assert identity == image_id("docker.io/library/nginx:latest")
    assert identity != image_id("nginx:1.25")
    assert image_id(f"nginx@{DIGEST}") == f"docker.io/library/nginx@{DIGEST}"


def test_container_id_follows_from_pod_container_and_run() -> None:
    identity = container_id("0f1e", "c", 0)
    assert re.fullmatch("containerd://[0-9a-f]{64}", identity)
    others = {container_id("0f1f", "c", 0), container_id("0f1e", "d", 0)}
    others.add(container_id("0f1e", "c", 1))
    assert len(others) == 3
    assert identity not in others


def test_mount_that_is_read_only_says_whether_it_is_so_recursively() -> None:
    plain: Object = {"name": "v", "mountPath": "/v"}
    mounts: list[Object] = [
        {**plain, "subPath": "x"},
        {**plain, "readOnly": True},
        {**plain, "readOnly": True, "recursiveReadOnly": "Enabled"},
    ]
    container: Any = {"name": "c", "volumeMounts": mounts}
    assert reported_mounts(container) == [
        plain,
        {**plain, "readOnly": True, "recursiveReadOnly": "Disabled"},
        {**plain, "readOnly": True, "recursiveReadOnly": "Enabled"},
    ]


@pytest.mark.parametrize(
    ("of_pod", "of_container", "user"),
    [
        ({}, {}, (0, 0, [0])),
        ({"runAsUser": 1000}, {}, (1000, 0, [0])),
        (
            {"runAsUser": 1000, "runAsGroup": 3000, "supplementalGroups": [4000]},
            {},
            (1000, 3000, [3000, 4000]),
        ),
        ({"runAsUser": 1000, "fsGroup": 2000}, {"runAsUser": 2000}, (2000, 0, [0, 2000])),
        ({"fsGroup": 7, "supplementalGroups": [7, 0]}, {"runAsGroup": 7}, (0, 7, [0, 7])),
    ],
)
def test_user_of_a_container_follows_from_the_security_contexts(
    of_pod: Object, of_container: Object, user: tuple[int, int, list[int]]
) -> None:
    pod: Any = {"metadata": {"name": "p"}, "spec": {"securityContext": of_pod}}
    container: Any = {"name": "c", "securityContext": of_container}
    uid, gid, groups = user
    expected = {"linux": {"gid": gid, "supplementalGroups": groups, "uid": uid}}
    assert container_user(pod, container) == expected


@pytest.mark.parametrize("command", [{}, {"command": ["sleep", "3600"]}])
def test_running_container_reports_identity_image_and_resources(
    modelled: ModelledCluster, command: Object
) -> None:
    resources = {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}}
    container = {"name": "c", "image": "c:1", "resources": resources}
    pod = modelled.pod("web", "a", containers=[{**container, **command}])
    modelled.settle()
    status = modelled.status("web")
    [entry] = status["containerStatuses"]
    assert entry["containerID"] == container_id(pod["metadata"]["uid"], "c", 0)
    assert entry["image"] == "docker.io/library/c:1"
    assert entry["imageID"] == image_id("c:1")
    assert entry["resources"] == pod["spec"]["containers"][0]["resources"]
    assert entry["allocatedResources"] == entry["resources"]["requests"]
    assert status["qosClass"] == "Burstable"
    assert conditions(status) == [
        ("PodReadyToStartContainers", "True"),
        ("Initialized", "True"),
        ("Ready", "True"),
        ("ContainersReady", "True"),
        ("PodScheduled", "True"),
    ]


def test_container_without_resources_reports_that_it_has_none(modelled: ModelledCluster) -> None:
    modelled.pod("web", "a")
    modelled.settle()
    [entry] = modelled.status("web")["containerStatuses"]
    assert entry["resources"] == {}
    assert "allocatedResources" not in entry


def test_pod_that_has_ended_names_its_run_and_has_no_sandbox(modelled: ModelledCluster) -> None:
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    pod = modelled.pod("once", "a", containers=[container], restartPolicy="Never")
    modelled.settle()
    status = modelled.status("once")
    [entry] = status["containerStatuses"]
    identity = container_id(pod["metadata"]["uid"], "c", 0)
    assert entry["containerID"] == entry["state"]["terminated"]["containerID"] == identity
    assert conditions(status)[0] == ("PodReadyToStartContainers", "False")


def test_container_in_a_crash_loop_names_the_run_that_has_ended(modelled: ModelledCluster) -> None:
    container = {"name": "c", "image": "busybox", "command": ["false"]}
    pod = modelled.pod("crash", "a", containers=[container])
    modelled.settle()
    [entry] = modelled.status("crash")["containerStatuses"]
    assert "waiting" in entry["state"]
    identity = container_id(pod["metadata"]["uid"], "c", entry["restartCount"])
    assert entry["containerID"] == entry["lastState"]["terminated"]["containerID"] == identity


def test_container_that_has_never_run_reports_its_image_as_it_is_written(
    modelled: ModelledCluster,
) -> None:
    modelled.pod("wrong", "a", containers=[{"name": "c", "image": "Nginx:1"}])
    modelled.settle()
    status = modelled.status("wrong")
    [entry] = status["containerStatuses"]
    assert (entry["image"], entry["imageID"]) == ("Nginx:1", "")
    assert "containerID" not in entry
    assert conditions(status)[0] == ("PodReadyToStartContainers", "True")


def test_pod_whose_volume_is_missing_has_no_sandbox_until_it_is_there(
    modelled: ModelledCluster,
) -> None:
    required = {"kubepy.dev/references": "required"}
    metadata = {"name": "held", "annotations": required}
    mounts = [{"name": "v", "mountPath": "/v"}]
    volumes = [{"name": "v", "configMap": {"name": "missing"}}]
    container = {"name": "c", "image": "c:1", "volumeMounts": mounts}
    spec = {"nodeName": "a", "containers": [container], "volumes": volumes}
    modelled.client.create("pods", {"metadata": metadata, "spec": spec}, namespace="default")
    modelled.settle()
    status = modelled.status("held")
    assert conditions(status)[0] == ("PodReadyToStartContainers", "False")
    assert status["containerStatuses"][0]["volumeMounts"] == mounts
    modelled.client.create("configmaps", {"metadata": {"name": "missing"}}, namespace="default")
    modelled.settle()
    status = modelled.status("held")
    assert conditions(status)[0] == ("PodReadyToStartContainers", "True")
    assert status["containerStatuses"][0]["volumeMounts"] == mounts


def test_status_of_a_simple_cluster_has_none_of_it(tmp_path: Path) -> None:
    cluster = ModelledCluster(tmp_path / "simple", "simple")
    cluster.node("a")
    cluster.pod("web", "a")
    cluster.settle()
    status = cluster.status("web")
    [entry] = status["containerStatuses"]
    assert (entry["image"], entry["imageID"]) == ("c:1", "")
    assert not {"containerID", "resources", "volumeMounts"} & set(entry)
    assert "PodReadyToStartContainers" not in dict(conditions(status))
    cluster.close()
