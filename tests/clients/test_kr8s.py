"""kr8s: an untyped client with kubectl's verbs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.clients.conftest import CONTAINER, DEPLOYMENT
from tests.waiting import eventually

kr8s = pytest.importorskip("kr8s", reason="the client is missing: pip install -e '.[clients]'")

from kr8s.objects import ConfigMap, Deployment, Pod, new_class  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")


@pytest.fixture
def api(kubeconfig: str, namespace: str) -> Any:
    return kr8s.api(kubeconfig=kubeconfig, namespace=namespace)


def config_map(api: Any, name: str, **labels: str) -> Any:
    made = ConfigMap(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": api.namespace, "labels": labels},
            "data": {"a": "1"},
        },
        api=api,
    )
    made.create()
    return made


def names(objects: Any) -> list[str]:
    return sorted(obj.name for obj in objects if obj.name != "kube-root-ca.crt")


def test_objects_are_listed_by_name_label_and_field(api: Any) -> None:
    for index in range(5):
        config_map(api, f"web-{index}", odd=str(index % 2))
    assert names(api.get("configmaps")) == [f"web-{index}" for index in range(5)]
    assert names(api.get("cm", label_selector={"odd": "1"})) == ["web-1", "web-3"]
    assert names(api.get("configmaps", field_selector={"metadata.name": "web-3"})) == ["web-3"]
    assert names(api.get("configmaps", "web-2")) == ["web-2"]
    assert "web-2" in names(api.get("configmaps", namespace=kr8s.ALL))
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("nothing", namespace=api.namespace, api=api)


def test_patches_labels_and_annotations_change_the_object(api: Any) -> None:
    web = config_map(api, "web")
    web.patch({"data": {"a": "2"}})
    web.patch([{"op": "add", "path": "/data/b", "value": "3"}], type="json")
    web.label(team="blue")
    web.annotate({"example.org/note": "x"})
    web.refresh()
    assert (web.raw["data"], dict(web.labels), dict(web.annotations)) == (
        {"a": "2", "b": "3"},
        {"team": "blue"},
        {"example.org/note": "x"},
    )
    web.delete()
    assert not web.exists()


def test_server_side_apply_through_the_raw_api(kubeconfig: str, namespace: str) -> None:
    async def apply(value: str, manager: str, force: bool) -> Any:
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
        body = (
            f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"web"}},'
            f'"data":{{"a":"{value}"}}}}'
        )
        async with api.call_api(
            "PATCH",
            version="v1",
            url="configmaps/web",
            namespace=namespace,
            content=body,
            params={"fieldManager": manager, "force": str(force).lower()},
            headers={"Content-Type": "application/apply-patch+yaml"},
        ) as response:
            return response.json()

    assert asyncio.run(apply("1", "one", False))["metadata"]["managedFields"][0]["manager"] == "one"
    with pytest.raises(kr8s.ServerError, match="conflict"):
        asyncio.run(apply("2", "two", False))
    assert asyncio.run(apply("2", "two", True))["data"] == {"a": "2"}


def test_watch_tells_of_changes(api: Any) -> None:
    first = config_map(api, "first", app="web")
    events: list[tuple[str, str]] = []
    for event, obj in api.watch("configmaps", label_selector={"app": "web"}):
        events.append((event, obj.name))
        if event == "ADDED":
            first.delete()
        if event == "DELETED":
            break
    assert events == [("ADDED", "first"), ("DELETED", "first")]


def test_deployment_becomes_ready_and_scales(api: Any) -> None:
    web = Deployment(
        {**DEPLOYMENT, "metadata": {"name": "web", "namespace": api.namespace}}, api=api
    )
    web.create()
    web.wait("condition=Available", timeout=20)
    web.scale(3)
    eventually(lambda: len(names(api.get("pods", label_selector="app=web"))) == 3)
    eventually(web.ready)


def test_pod_runs_has_logs_and_can_be_entered(api: Any) -> None:
    pod = Pod(
        {
            "metadata": {"name": "web", "namespace": api.namespace},
            "spec": {"containers": [CONTAINER]},
        },
        api=api,
    )
    pod.create()
    pod.wait("condition=Ready", timeout=20)
    assert list(pod.logs()) == []
    answer = pod.exec(["sh", "-c", "echo out; echo err >&2; exit 3"], check=False)
    assert (answer.stdout, answer.stderr, answer.returncode) == (b"out\n", b"err\n", 3)
    pod.delete()
    eventually(lambda: not pod.exists())


def test_custom_resources_are_found_by_discovery(api: Any, crontabs: str) -> None:
    cron_tab = new_class(kind="CronTab", version=f"{crontabs}/v1", namespaced=True)
    daily = cron_tab(
        {
            "metadata": {"name": "daily", "namespace": api.namespace},
            "spec": {"schedule": "@daily", "replicas": 1},
        },
        api=api,
    )
    daily.create()
    daily.patch({"spec": {"replicas": 2}})
    daily.patch({"status": {"replicas": 2}}, subresource="status")
    [found] = api.get("crontabs.example.org")
    assert (found.spec.replicas, found.status.replicas) == (2, 2)
    daily.delete()
    assert list(api.get("crontabs.example.org")) == []


def test_server_says_who_asks_and_what_there_is(api: Any) -> None:
    assert api.whoami() == "kubernetes-admin"
    assert {"pods", "deployments"} <= {resource["name"] for resource in api.api_resources()}
