"""The usage of containers that are modelled: by rules, by the table, by a share of requests."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy import Cluster

from .modelled.clusters import PodsCluster

RULES = [{"match": {"image": "worker*"}, "cpu": "180m", "memory": "120Mi"}]
REQUESTS = {"requests": {"cpu": "200m", "memory": "100Mi"}}


@pytest.fixture
def pods() -> PodsCluster:
    return PodsCluster(RULES)


def container(image: str, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": image, **fields}


def used(pods: PodsCluster, name: str) -> list[str]:
    """Return what ``top`` shows of a pod."""
    return pods.run("top", "pod", name, "--no-headers").split()[1:]


def test_rule_says_what_a_container_uses(pods: PodsCluster) -> None:
    pods.create("p", container("worker:1", resources=REQUESTS))
    assert used(pods, "p") == ["180m", "120Mi"]


def test_limit_bounds_what_a_container_uses(pods: PodsCluster) -> None:
    pods.create("p", container("worker:1", resources={"limits": {"cpu": "100m"}}))
    assert used(pods, "p") == ["100m", "120Mi"]


def test_table_of_images_says_what_a_container_uses(pods: PodsCluster) -> None:
    args = ["--vm", "1", "--vm-bytes", "150M"]
    pods.create("p", container("polinux/stress", command=["stress"], args=args))
    assert used(pods, "p")[1] == "150Mi"


def test_container_of_which_nothing_is_known_uses_a_share_of_its_requests(
    pods: PodsCluster,
) -> None:
    pods.create("p", container("example/web", resources=REQUESTS))
    assert used(pods, "p") == ["20m", "50Mi"]


def test_annotation_comes_before_rule_and_share(pods: PodsCluster) -> None:
    pods.create("p", container("worker:1", resources=REQUESTS))
    pods.run("annotate", "pod", "p", "kubepy.dev/cpu=33m")
    assert used(pods, "p") == ["33m", "120Mi"]
    pods.run("annotate", "pod", "p", "kubepy.dev/memory.c=7Mi@1h")  # nothing before that
    assert used(pods, "p") == ["33m", "0Mi"]


def test_container_without_requests_has_no_figures(pods: PodsCluster) -> None:
    pods.create("p", container("example/web"))
    assert "not found" in pods.run("top", "pod", "p")


def test_node_uses_what_its_pods_use(pods: PodsCluster) -> None:
    pods.create("p", container("worker:1"))
    pods.create("q", container("worker:1"))
    assert pods.run("top", "node", "--no-headers").split()[1] == "360m"


def test_simple_containers_have_no_figures_without_annotations() -> None:
    cluster = Cluster.temporary(settings={"kubelet": {"containers": "simple", "rules": RULES}})
    cluster.run(["run", "p", "--image=worker:1"])
    cluster.advance(0)
    result = cluster.run(["top", "pods"])
    assert "180m" not in result.stdout
    assert result.stderr


def test_autoscaler_scales_by_a_rule(pods: PodsCluster) -> None:
    pods.run("create", "deployment", "web", "--image=worker:1")
    pods.run("set", "resources", "deployment", "web", "--requests=cpu=100m")
    pods.run("autoscale", "deployment", "web", "--cpu=90%", "--max=5")
    pods.advance(120)
    assert pods.run("get", "hpa", "--no-headers").split()[2:4] == ["cpu:", "180%/90%"]
    assert pods.run("get", "deployment", "web", "--no-headers").split()[3] == "5"


def test_copy_of_a_cluster_knows_the_usage(pods: PodsCluster) -> None:
    pods.create("p", container("worker:1"))
    with pods.cluster.fork() as fork:
        assert "180m" in fork.run(["top", "pod", "p"]).stdout
