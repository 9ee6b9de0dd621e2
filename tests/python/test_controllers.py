"""Controllers that are Python functions: ``Cluster.controller``."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api.errors import Conflict, NotFound

POOL = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "small", "labels": {"pool": "yes"}},
    "data": {"size": "2"},
}


def pod_of(pool: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": f"{pool}-", "labels": {"pool": pool}},
        "spec": {"containers": [{"name": "worker", "image": "worker:1"}]},
    }


def add_pools(cluster: Cluster) -> list[Any]:
    """Add a controller that makes pods; return the list of the keys that it gets."""
    keys: list[Any] = []

    @cluster.controller("pools", watches=["cm", "pods"])
    def reconcile(client: Any, key: Any) -> None:
        keys.append(key)
        for pool in client.list("configmaps", labels="pool"):
            name = pool["metadata"]["name"]
            pods = client.list("pods", labels={"pool": name})
            for _ in range(len(pods), int(pool["data"]["size"])):
                client.create(pod_of(name))

    return keys


def names(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in cluster.client.list("pods")]


def test_function_works_beside_the_real_controllers() -> None:
    cluster = Cluster.temporary(nodes=2)
    keys = add_pools(cluster)
    cluster.client.create(POOL)
    assert cluster.settle()
    pods = cluster.client.list("pods")
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
    assert ("cm", "default", "small") in keys  # named as the author names it
    assert {key.resource for key in keys} == {"cm", "pods"}


def test_writes_are_those_of_its_own_user() -> None:
    cluster = Cluster.temporary()
    add_pools(cluster)
    cluster.client.create(POOL)
    cluster.settle()
    managers = cluster.run("get pods -o yaml --show-managed-fields", check=True).stdout
    assert "manager: pools" in managers


def test_objects_that_were_there_before_are_given_to_it() -> None:
    cluster = Cluster.temporary()
    cluster.client.create(POOL)
    cluster.settle()
    add_pools(cluster)
    cluster.settle()
    assert len(names(cluster)) == 2


def test_controller_runs_in_forks_and_plans() -> None:
    cluster = Cluster.temporary()
    add_pools(cluster)
    cluster.client.create(POOL)
    cluster.settle()
    plan = cluster.plan(["patch", "cm", "small", "-p", '{"data":{"size":"3"}}'])
    assert next(step["action"] for step in plan.steps if step["resource"] == "pods") == "created"
    assert len(names(cluster)) == 2
    fork = cluster.fork()
    fork.client.patch("cm/small", {"data": {"size": "4"}})
    fork.settle()
    assert len(names(fork)) == 4
    assert len(names(cluster)) == 2


def test_reads_are_what_informers_have_seen() -> None:
    """Its own writes included: a key is synced only when they have arrived, where nothing is
    late."""
    cluster = Cluster.temporary()
    seen: list[int] = []

    @cluster.controller("reader", watches=["configmaps"])
    def reconcile(client: Any, key: Any) -> None:
        client.create(pod_of("x"))
        seen.append(len(client.list("pods")))

    cluster.client.create(POOL)
    cluster.settle()
    assert seen[:2] == [0, 1] or seen == [0]
    assert len(names(cluster)) == len(seen)


def test_client_reads_like_the_cluster_client() -> None:
    cluster = Cluster.temporary()
    read: dict[str, Any] = {}

    @cluster.controller("reader", watches=["deployments"])
    def reconcile(client: Any, key: Any) -> None:
        read["one"] = client.get("deploy/web")
        read["all"] = client.list("deploy", namespace=None)
        read["chosen"] = client.list("deploy", fields="metadata.name=web")
        read["none"] = client.list("deploy", labels="app=other")
        read["scale"] = client.get("deploy/web", subresource="scale")
        with pytest.raises(NotFound):
            client.get("pod", "nobody")

    cluster.run("create deployment web --image=web:1", check=True)
    cluster.settle()
    own = cluster.client.get("deploy/web")
    assert read["one"]["metadata"]["uid"] == own["metadata"]["uid"]
    assert "managedFields" not in read["one"]["metadata"]
    assert [obj["metadata"]["name"] for obj in read["all"] + read["chosen"]] == ["web", "web"]
    assert read["none"] == []
    assert read["scale"]["kind"] == "Scale"


@pytest.mark.parametrize("delay", ["30s", 30, timedelta(seconds=30)])
def test_returned_time_lets_the_key_come_again(delay: Any) -> None:
    cluster = Cluster.temporary()
    moments: list[Any] = []

    @cluster.controller("clock", watches=["configmaps"])
    def reconcile(client: Any, key: Any) -> Any:
        moments.append(cluster.now)
        return delay

    cluster.client.create(POOL)
    cluster.advance("2m")
    assert [moment - moments[0] for moment in moments] == [
        timedelta(seconds=30 * number) for number in range(5)
    ]
    assert cluster.settle("1h")  # it repeats for ever, and nobody waits for it


def test_controller_of_a_custom_resource_that_is_defined_later() -> None:
    cluster = Cluster.temporary()
    keys: list[Any] = []

    @cluster.controller("widgets", watches=["widgets.example.org"])
    def reconcile(client: Any, key: Any) -> None:
        keys.append(tuple(key))

    cluster.settle()
    cluster.client.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.org"},
            "spec": {
                "group": "example.org",
                "names": {"plural": "widgets", "kind": "Widget"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
    )
    cluster.settle()
    cluster.client.create(
        {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "one"}}
    )
    cluster.settle()
    assert keys == [("widgets.example.org", "default", "one")]


def test_exceptions_let_the_key_come_again_and_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster.temporary()
    attempts: list[Any] = []

    @cluster.controller("clumsy", watches=["configmaps"])
    def reconcile(client: Any, key: Any) -> None:
        attempts.append(key)
        if len(attempts) == 1:
            raise KeyError("size")
        if len(attempts) == 2:
            client.update({**POOL, "metadata": {"name": "small", "resourceVersion": "1"}})

    cluster.client.create(POOL)
    with caplog.at_level(logging.INFO, logger="kubepy.controllers"):
        cluster.settle()
    assert len(attempts) == 3
    levels = [(record.levelname, bool(record.exc_info)) for record in caplog.records]
    assert levels == [("ERROR", True), ("INFO", False)]
    assert "controller clumsy failed at configmaps default/small" in caplog.messages[0]


def test_stale_write_meets_a_conflict() -> None:
    cluster = Cluster.temporary()
    old = cluster.client.create(POOL)
    cluster.client.patch("cm/small", {"data": {"size": "1"}})
    with pytest.raises(Conflict):
        cluster.client.update(old)


@pytest.mark.parametrize(
    ("name", "watches", "message"),
    [
        ("Worker", ["pods"], "is no name of a controller"),
        ("worker", [], "watches nothing"),
    ],
)
def test_wrong_controllers_are_refused(name: str, watches: list[str], message: str) -> None:
    cluster = Cluster.temporary()
    with pytest.raises(ValueError, match=message):
        cluster.controller(name, watches=watches)(lambda client, key: None)


def test_name_is_taken_once() -> None:
    cluster = Cluster.temporary()
    add_pools(cluster)
    with pytest.raises(ValueError, match="there is a controller 'pools' already"):
        add_pools(cluster)


def test_wrong_results_are_errors(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster.temporary()

    @cluster.controller("wrong", watches=["configmaps"])
    def reconcile(client: Any, key: Any) -> Any:
        return object()

    cluster.client.create(POOL)
    cluster.settle("1s")
    assert not cluster.run("get pods").stdout


def test_folder_keeps_the_queue(tmp_path: Any) -> None:
    """A delay lasts though each settle has a manager of its own."""
    with Cluster.create(tmp_path / "state", clock="2026-01-01T00:00:00Z", seed=1) as cluster:
        moments: list[Any] = []

        @cluster.controller("clock", watches=["configmaps"])
        def reconcile(client: Any, key: Any) -> str:
            moments.append(cluster.now)
            return "10m"

        cluster.client.create(POOL)
        cluster.settle(0)
        cluster.advance("4m")
        cluster.advance("4m")
        assert len(moments) == 1
        cluster.advance("4m")
        assert len(moments) == 2
