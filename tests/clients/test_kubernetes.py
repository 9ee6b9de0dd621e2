"""The Python client of the Kubernetes project, ``kubernetes``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.conftest import CONTAINER, DEPLOYMENT, SECONDS
from tests.waiting import eventually

kubernetes = pytest.importorskip(
    "kubernetes", reason="the client is missing: pip install -e '.[clients]'"
)

from kubernetes import client, config, dynamic, stream, utils, watch  # noqa: E402
from kubernetes.client.rest import ApiException  # noqa: E402

PATCHES = {
    "application/strategic-merge-patch+json": {"data": {"a": "2"}},
    "application/merge-patch+json": {"data": {"a": "2"}},
    "application/json-patch+json": [{"op": "replace", "path": "/data/a", "value": "2"}],
    "application/apply-patch+yaml": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web"},
        "data": {"a": "2"},
    },
}


@pytest.fixture
def api_client(kubeconfig: str) -> Iterator[Any]:
    with config.new_client_from_config(kubeconfig) as made:
        yield made


@pytest.fixture
def core(api_client: Any) -> Any:
    return client.CoreV1Api(api_client)


def create_config_maps(core: Any, namespace: str, number: int) -> None:
    for index in range(number):
        core.create_namespaced_config_map(
            namespace,
            client.V1ConfigMap(
                metadata=client.V1ObjectMeta(name=f"web-{index}", labels={"odd": str(index % 2)}),
                data={"a": "1"},
            ),
        )


def test_list_in_chunks_has_every_object_once(core: Any, namespace: str) -> None:
    create_config_maps(core, namespace, 7)
    names: list[str] = []
    token, pages = None, 0
    while token != "":
        page = core.list_namespaced_config_map(
            namespace, limit=3, _continue=token, label_selector="odd"
        )
        names += [item.metadata.name for item in page.items]
        token, pages = page.metadata._continue or "", pages + 1
    assert (names, pages) == ([f"web-{index}" for index in range(7)], 3)
    assert len(core.list_namespaced_config_map(namespace, label_selector="odd=1").items) == 3
    assert (
        len(core.list_namespaced_config_map(namespace, field_selector="metadata.name=web-3").items)
        == 1
    )


@pytest.mark.parametrize("content_type", PATCHES)
def test_patch_of_every_type_changes_the_object(
    core: Any, namespace: str, content_type: str
) -> None:
    core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "web"}, "data": {"a": "1", "b": "1"}}
    )
    more = {"field_manager": "test", "force": True} if "apply" in content_type else {}
    patched = core.patch_namespaced_config_map(
        "web", namespace, PATCHES[content_type], _content_type=content_type, **more
    )
    assert patched.data == {"a": "2", "b": "1"}


def test_apply_conflicts_with_the_fields_of_another_manager(core: Any, namespace: str) -> None:
    def apply(value: str, manager: str) -> Any:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "web"},
            "data": {"a": value},
        }
        return core.patch_namespaced_config_map(
            "web",
            namespace,
            body,
            field_manager=manager,
            _content_type="application/apply-patch+yaml",
        )

    applied = apply("1", "one")
    assert [(entry.manager, entry.operation) for entry in applied.metadata.managed_fields] == [
        ("one", "Apply")
    ]
    with pytest.raises(ApiException, match='conflict with \\\\"one\\\\"') as caught:
        apply("2", "two")
    assert caught.value.status == 409


def test_update_of_an_old_version_conflicts(core: Any, namespace: str) -> None:
    old = core.create_namespaced_config_map(namespace, {"metadata": {"name": "web"}})
    old.data = {"a": "1"}
    assert core.replace_namespaced_config_map("web", namespace, old).data == {"a": "1"}
    with pytest.raises(ApiException, match="the object has been modified"):
        core.replace_namespaced_config_map("web", namespace, old)


def test_watch_has_the_changes_since_the_list(core: Any, namespace: str) -> None:
    create_config_maps(core, namespace, 1)
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.patch_namespaced_config_map("web-0", namespace, {"data": {"a": "2"}})
    core.delete_namespaced_config_map("web-0", namespace)
    events: list[tuple[str, Any]] = []
    watcher = watch.Watch()
    for event in watcher.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=version,
        timeout_seconds=int(SECONDS),
    ):
        events.append((event["type"], event["object"].data))
        if event["type"] == "DELETED":
            watcher.stop()
    assert events == [("MODIFIED", {"a": "2"}), ("DELETED", {"a": "2"})]


def test_informer_holds_what_is_there_and_hears_of_changes(core: Any, namespace: str) -> None:
    informers = pytest.importorskip("kubernetes.informer")
    create_config_maps(core, namespace, 2)
    informer = informers.SharedInformer(core.list_namespaced_config_map, namespace=namespace)
    changes: list[str] = []
    heard = threading.Event()
    informer.add_event_handler(informers.ADDED, lambda obj: changes.append(obj.metadata.name))
    informer.add_event_handler(informers.DELETED, lambda obj: heard.set())
    informer.start()
    try:
        eventually(lambda: {"web-0", "web-1"} <= set(changes))
        core.delete_namespaced_config_map("web-0", namespace)
        assert heard.wait(SECONDS)
        assert sorted(
            obj.metadata.name
            for obj in informer.cache.list()
            if obj.metadata.name.startswith("web")
        ) == ["web-1"]
    finally:
        informer.stop()


def test_deletions_take_preconditions_and_selectors(core: Any, namespace: str) -> None:
    create_config_maps(core, namespace, 4)
    with pytest.raises(ApiException, match="the UID in the precondition"):
        core.delete_namespaced_config_map(
            "web-0",
            namespace,
            body=client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="another")),
        )
    core.delete_namespaced_config_map("web-0", namespace, dry_run="All")
    core.delete_collection_namespaced_config_map(namespace, label_selector="odd=0")
    left = core.list_namespaced_config_map(namespace, label_selector="odd").items
    assert [item.metadata.name for item in left] == ["web-1", "web-3"]


def test_deployment_runs_and_scales(api_client: Any, core: Any, namespace: str) -> None:
    apps = client.AppsV1Api(api_client)
    apps.create_namespaced_deployment(namespace, DEPLOYMENT)
    eventually(lambda: apps.read_namespaced_deployment("web", namespace).status.ready_replicas == 2)
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    eventually(lambda: apps.read_namespaced_deployment_scale("web", namespace).status.replicas == 3)
    eventually(
        lambda: (
            len(core.list_namespaced_pod(namespace, field_selector="status.phase=Running").items)
            == 3
        )
    )


def test_pod_has_logs_and_can_be_entered_and_evicted(core: Any, namespace: str) -> None:
    core.create_namespaced_pod(
        namespace, {"metadata": {"name": "web"}, "spec": {"containers": [CONTAINER]}}
    )
    eventually(lambda: core.read_namespaced_pod("web", namespace).status.phase == "Running")
    assert isinstance(core.read_namespaced_pod_log("web", namespace), str)
    answer = stream.stream(
        core.connect_get_namespaced_pod_exec,
        "web",
        namespace,
        command=["cat"],
        stdin=True,
        stdout=True,
        _preload_content=False,
    )
    answer.write_stdin("hello\n")
    assert answer.readline_stdout(timeout=SECONDS) == "hello"
    answer.close()
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="web"))
    core.create_namespaced_pod_eviction("web", namespace, eviction)
    eventually(lambda: not core.list_namespaced_pod(namespace).items)


def test_service_account_token_is_accepted(api_client: Any, core: Any, namespace: str) -> None:
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
    token = core.create_namespaced_service_account_token("default", namespace, request).status.token
    review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
    user = client.AuthenticationV1Api(api_client).create_token_review(review).status.user
    assert user.username == f"system:serviceaccount:{namespace}:default"


def test_dynamic_client_handles_custom_resources(
    api_client: Any, namespace: str, crontabs: str
) -> None:
    resources = dynamic.DynamicClient(api_client).resources
    cron = resources.get(api_version=f"{crontabs}/v1", kind="CronTab")
    body = {
        "apiVersion": f"{crontabs}/v1",
        "kind": "CronTab",
        "metadata": {"name": "daily"},
        "spec": {"schedule": "@daily", "replicas": 1},
    }
    assert cron.create(body=body, namespace=namespace).spec.schedule == "@daily"
    patched = cron.patch(
        name="daily",
        namespace=namespace,
        body={"spec": {"replicas": 2}},
        content_type="application/merge-patch+json",
    )
    assert patched.spec.replicas == 2
    applied = cron.server_side_apply(
        {**body, "spec": {"schedule": "@weekly"}},
        namespace=namespace,
        field_manager="test",
        force_conflicts=True,
    )
    assert applied.spec.to_dict() == {"schedule": "@weekly", "replicas": 2}
    cron.status.patch(
        name="daily",
        namespace=namespace,
        body={"status": {"replicas": 2}},
        content_type="application/merge-patch+json",
    )
    assert cron.get(name="daily", namespace=namespace).status.replicas == 2
    [event] = list(cron.watch(namespace=namespace, timeout=1))
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "daily")
    cron.delete(name="daily", namespace=namespace)
    assert cron.get(namespace=namespace).items == []


def test_create_from_dict_creates_a_list_of_objects(
    api_client: Any, core: Any, namespace: str
) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key"},
        "stringData": {"a": "b"},
    }
    objects = {"apiVersion": "v1", "kind": "List", "items": [secret, DEPLOYMENT]}
    utils.create_from_dict(api_client, objects, namespace=namespace)
    assert core.read_namespaced_secret("key", namespace).data == {"a": "Yg=="}


def test_leader_is_elected_with_a_lease(
    api_client: Any, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaderelection = pytest.importorskip("kubernetes.leaderelection.leaderelection")
    electionconfig = pytest.importorskip("kubernetes.leaderelection.electionconfig")
    leaselock = pytest.importorskip("kubernetes.leaderelection.resourcelock.leaselock")
    monkeypatch.setattr(client.Configuration, "_default", api_client.configuration)
    leading, lost = threading.Event(), threading.Event()

    class Lock(leaselock.LeaseLock):  # type: ignore[misc, name-defined]
        def update(self, *args: Any) -> Any:
            return not leading.is_set() and super().update(*args)

    def lead() -> None:
        leading.set()

    settings = electionconfig.Config(
        Lock("lock", namespace, "me"),
        lease_duration=3,
        renew_deadline=2,
        retry_period=1,
        onstarted_leading=lead,
        onstopped_leading=lost.set,
    )
    threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True).start()
    assert leading.wait(SECONDS)
    lease = client.CoordinationV1Api(api_client).read_namespaced_lease("lock", namespace)
    assert lease.spec.holder_identity == "me"
    assert lost.wait(SECONDS)  # it could not renew its lease
