"""lightkube: a typed client on httpx."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.conftest import CONTAINER, CRD, DEPLOYMENT
from tests.waiting import eventually

lightkube = pytest.importorskip(
    "lightkube", reason="the client is missing: pip install -e '.[clients]'"
)

from lightkube import generic_resource  # noqa: E402
from lightkube.config.kubeconfig import KubeConfig  # noqa: E402
from lightkube.core.exceptions import ApiError  # noqa: E402
from lightkube.models.meta_v1 import ObjectMeta  # noqa: E402
from lightkube.resources.apps_v1 import Deployment  # noqa: E402
from lightkube.resources.coordination_v1 import Lease  # noqa: E402
from lightkube.resources.core_v1 import ConfigMap, Pod  # noqa: E402
from lightkube.types import CascadeType, PatchType  # noqa: E402

PATCHES = {
    PatchType.STRATEGIC: {"data": {"a": "2"}},
    PatchType.MERGE: {"data": {"a": "2"}},
    PatchType.JSON: [{"op": "replace", "path": "/data/a", "value": "2"}],
    PatchType.APPLY: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web"},
        "data": {"a": "2"},
    },
}


@pytest.fixture
def client(kubeconfig: str, namespace: str) -> Iterator[Any]:
    made = lightkube.Client(
        config=KubeConfig.from_file(kubeconfig), namespace=namespace, field_manager="test"
    )
    yield made
    made.close()


def config_map(name: str, **labels: str) -> Any:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels), data={"a": "1"})


def names(objects: Any) -> list[str]:
    return [obj.metadata.name for obj in objects if obj.metadata.name != "kube-root-ca.crt"]


def test_list_in_chunks_has_every_object_once(client: Any) -> None:
    for index in range(7):
        client.create(config_map(f"web-{index}", odd=str(index % 2)))
    assert names(client.list(ConfigMap, chunk_size=3)) == [f"web-{index}" for index in range(7)]
    assert names(client.list(ConfigMap, labels={"odd": "1"})) == ["web-1", "web-3", "web-5"]
    assert names(client.list(ConfigMap, fields={"metadata.name": "web-3"})) == ["web-3"]
    assert "web-3" in names(client.list(ConfigMap, namespace="*"))


@pytest.mark.parametrize("patch_type", PATCHES)
def test_patch_of_every_type_changes_the_object(client: Any, patch_type: Any) -> None:
    client.create(config_map("web"))
    force = patch_type == PatchType.APPLY
    patched = client.patch(
        ConfigMap, "web", PATCHES[patch_type], patch_type=patch_type, force=force
    )
    assert patched.data == {"a": "2"}


def test_apply_conflicts_with_the_fields_of_another_manager(client: Any) -> None:
    applied = config_map("web")
    applied.apiVersion, applied.kind = "v1", "ConfigMap"
    client.apply(applied, field_manager="one")
    applied.data = {"a": "2"}
    with pytest.raises(ApiError, match='conflict with "one"') as caught:
        client.apply(applied, field_manager="two")
    assert caught.value.status.code == 409
    assert client.apply(applied, field_manager="two", force=True).data == {"a": "2"}


def test_replace_of_an_old_version_conflicts(client: Any) -> None:
    old = client.create(config_map("web"))
    client.replace(old)
    old.data = {"a": "2"}
    assert client.replace(old).data == {"a": "2"}
    with pytest.raises(ApiError, match="the object has been modified"):
        client.replace(old)


def test_watch_has_the_changes_since_a_version(client: Any) -> None:
    version = client.create(config_map("web")).metadata.resourceVersion
    client.patch(ConfigMap, "web", {"data": {"a": "2"}})
    client.delete(ConfigMap, "web")
    events = []
    for event, obj in client.watch(
        ConfigMap, fields={"metadata.name": "web"}, resource_version=version
    ):
        events.append((event, obj.data))
        if event == "DELETED":
            break
    assert events == [("MODIFIED", {"a": "2"}), ("DELETED", {"a": "2"})]


def test_watch_without_a_version_begins_with_what_is_there(client: Any) -> None:
    client.create(config_map("web"))
    stream = client.watch(ConfigMap, fields={"metadata.name": "web"}, server_timeout=1)
    event, obj = next(iter(stream))
    assert (event, obj.metadata.name) == ("ADDED", "web")


def test_deployment_runs_scales_and_goes_with_its_pods(client: Any) -> None:
    client.create(Deployment.from_dict(DEPLOYMENT))
    client.wait(Deployment, "web", for_conditions=["Available"])
    scale = client.get(Deployment.Scale, "web")
    scale.spec.replicas = 3
    scale.metadata.resourceVersion = None
    client.replace(scale, "web")
    eventually(lambda: client.get(Deployment, "web").status.readyReplicas == 3)
    client.delete(Deployment, "web", cascade=CascadeType.FOREGROUND)
    eventually(lambda: not list(client.list(Pod)) and not list(client.list(Deployment)))


def test_pod_has_logs_and_can_be_entered(client: Any) -> None:
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [CONTAINER]}}
    client.create(Pod.from_dict(pod))
    client.wait(Pod, "web", for_conditions=["Ready"])
    assert list(client.log("web")) == []
    command = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    answer = client.exec("web", command=command, stdout=True, stderr=True)
    assert (answer.stdout, answer.stderr, answer.exit_code) == ("out\n", "err\n", 3)


def test_generic_resource_handles_custom_resources(client: Any, crontabs: str) -> None:
    generic_resource.load_in_cluster_generic_resources(client)
    cron_tab = generic_resource.get_generic_resource(f"{crontabs}/v1", CRD["spec"]["names"]["kind"])
    client.create(
        cron_tab(metadata=ObjectMeta(name="daily"), spec={"schedule": "@daily", "replicas": 1})
    )
    assert client.patch(
        cron_tab, "daily", {"spec": {"replicas": 2}}, patch_type=PatchType.MERGE
    ).spec == {"schedule": "@daily", "replicas": 2}
    status = cron_tab.Status(
        metadata=client.get(cron_tab, "daily").metadata, status={"replicas": 2}
    )
    assert client.replace(status, "daily").status == {"replicas": 2}
    assert client.get(cron_tab.Scale, "daily").status.replicas == 2
    with pytest.raises(ApiError, match="must be of type integer"):
        client.patch(cron_tab, "daily", {"spec": {"replicas": "many"}}, patch_type=PatchType.MERGE)
    client.delete(cron_tab, "daily")
    assert list(client.list(cron_tab)) == []


def test_one_of_several_writers_gets_the_lease(client: Any) -> None:
    lease = client.create(
        Lease.from_dict({"metadata": {"name": "lock"}, "spec": {"leaseDurationSeconds": 1}})
    )
    results: list[str] = []

    def take(name: str) -> None:
        own = Lease.from_dict(lease.to_dict())
        own.spec.holderIdentity = name
        try:
            results.append(client.replace(own).spec.holderIdentity)
        except ApiError as error:
            results.append(str(error.status.code))

    threads = [threading.Thread(target=take, args=(f"worker-{index}",)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results)[:3] == ["409"] * 3
    assert client.get(Lease, "lock").spec.holderIdentity == sorted(results)[3]
