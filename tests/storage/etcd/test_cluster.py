"""Clusters in etcd: controllers beside other writers, elections, a control plane's own data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import kubepy
from kubepy.api.errors import AlreadyExists, Conflict
from kubepy.apiserver.cluster import LocalCluster
from kubepy.cli.main import main
from kubepy.controlplane import MANAGER_LOCK, build_manager, manager, manager_lock
from kubepy.controlplane.furnishing import add_first_node
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.runtime.checkpoint import Checkpoint, settled_checkpoint
from kubepy.storage import FolderError, Key, LockTimeoutError, NoClusterError
from kubepy.storage.etcd import commit
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient, Put
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.ownkeys import OwnKeys
from kubepy.storage.etcd.store import EtcdStore

Object = dict[str, Any]
CLOCK = "2026-01-01T00:00:00Z"


@pytest.fixture
def cluster(etcd_address: str) -> Iterator[LocalCluster]:
    """A cluster with one node, in time of its own."""
    cluster = make_cluster(etcd_address, {"clock": CLOCK, "seed": 1})
    add_first_node(cluster.client)
    yield cluster
    cluster.close()


def deployment(name: str = "web", replicas: int = 3) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": "nginx"}]},
            },
        },
    }


def settle(cluster: LocalCluster) -> None:
    with manager_lock(cluster) as is_lost:
        assert is_lost is not None
        build_manager(cluster).run_until_settled()


def running(cluster: LocalCluster) -> list[str]:
    return [pod["status"]["phase"] for pod in cluster.client.list("pods").items]


def test_cluster_that_is_not_there_is_no_cluster(etcd_address: str) -> None:
    with pytest.raises(NoClusterError):
        open_cluster(etcd_address)


def test_all_that_a_cluster_has_is_stored(cluster: LocalCluster) -> None:
    settle(cluster)
    for key in (
        Key("serviceaccounts", "default", "default"),
        Key("services", "default", "kubernetes"),
        Key("endpoints", "default", "kubernetes"),
        Key("clusterroles.rbac.authorization.k8s.io", "", "cluster-admin"),
    ):
        assert cluster.store.get(key) is not None, key


def test_keys_of_objects_are_apart_from_those_of_kubepy(cluster: LocalCluster) -> None:
    settle(cluster)
    store = cluster.store
    assert isinstance(store, EtcdStore)
    address = store.address
    with closing(EtcdClient(address)) as client:
        everything = client.range(f"{address.prefix}/".encode(), f"{address.prefix}0".encode())
        own, registry = OwnKeys(address.prefix).start, EtcdKeys(address.prefix).registry
        places = [(kv.key.startswith(own), kv.key.startswith(registry)) for kv in everything.kvs]
    assert set(places) == {(True, False), (False, True)}


def test_manager_that_has_settled_has_nothing_to_do_in_another_process(
    cluster: LocalCluster, etcd_address: str
) -> None:
    cluster.client.create("deployments.apps", deployment(), namespace="default")
    settle(cluster)
    assert running(cluster) == ["Running"] * 3
    with closing(open_cluster(etcd_address)) as other:
        assert settled_checkpoint(other) is not None


def test_batch_hears_of_what_others_wrote_between_its_own_writes(
    cluster: LocalCluster, etcd_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cluster.client
    client.create("deployments.apps", deployment(), namespace="default")
    written = [0]
    send = commit.EtcdCommit._write_object

    with closing(open_cluster(etcd_address)) as other:

        def write(self: commit.EtcdCommit, change: commit.KeyWrite) -> None:
            send(self, change)
            written[0] += 1
            if written[0] in (2, 5):
                body = deployment(f"other-{written[0]}", 1)
                monkeypatch.setattr(commit.EtcdCommit, "_write_object", send)
                other.client.create("deployments.apps", body, namespace="default")
                monkeypatch.setattr(commit.EtcdCommit, "_write_object", write)

        monkeypatch.setattr(commit.EtcdCommit, "_write_object", write)
        settle(cluster)
    assert running(cluster) == ["Running"] * 5


def overtake_batch(
    monkeypatch: pytest.MonkeyPatch, other: LocalCluster, committed: Callable[[], None]
) -> None:
    """Let somebody else make a Deployment while a batch that does everything is written, and call
    a function when all of it is."""
    monkeypatch.setattr(manager, "BATCH_SECONDS", 60.0)
    monkeypatch.setattr(manager, "MAX_BATCH_SECONDS", 60.0)
    run, send = commit.EtcdCommit.run, commit.EtcdCommit._write_object
    is_overtaken = [False]

    def write(self: commit.EtcdCommit, change: commit.KeyWrite) -> None:
        send(self, change)
        if change.key.resource == "pods" and not is_overtaken[0]:
            monkeypatch.setattr(commit.EtcdCommit, "_write_object", send)
            other.client.create("deployments.apps", deployment("other", 1), namespace="default")
            is_overtaken[0] = True

    def commit_all(self: commit.EtcdCommit) -> None:
        run(self)
        if is_overtaken[0]:
            monkeypatch.setattr(commit.EtcdCommit, "run", run)
            committed()

    monkeypatch.setattr(commit.EtcdCommit, "run", commit_all)
    monkeypatch.setattr(commit.EtcdCommit, "_write_object", write)


def test_cluster_with_a_write_that_overtook_a_batch_is_not_settled(
    cluster: LocalCluster, etcd_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.client.create("deployments.apps", deployment(), namespace="default")
    checkpoints: list[Checkpoint | None] = []
    with closing(open_cluster(etcd_address)) as other:

        def look() -> None:
            for number in range(20):  # revisions that tell nothing of objects
                other.store.set_values({"number": str(number)})
                checkpoints.append(settled_checkpoint(other))

        overtake_batch(monkeypatch, other, look)
        settle(cluster)
        assert checkpoints == [None] * 20
        assert settled_checkpoint(other) is not None


def test_write_that_overtook_the_last_batch_of_a_manager_is_acted_on_by_the_next(
    cluster: LocalCluster, etcd_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.client.create("deployments.apps", deployment(), namespace="default")
    with closing(open_cluster(etcd_address)) as other:

        def die() -> None:
            for number in range(20):
                other.store.set_values({"number": str(number)})
            raise KeyboardInterrupt

        overtake_batch(monkeypatch, other, die)
        with pytest.raises(KeyboardInterrupt):
            settle(cluster)
        settle(other)
    assert running(cluster) == ["Running"] * 4


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 8, 13, 21, 30])
def test_batch_that_is_cut_before_any_object_converges(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    cluster.client.create("deployments.apps", deployment(), namespace="default")
    send = commit.EtcdCommit._write_object
    written = [0]

    def write(self: commit.EtcdCommit, change: commit.KeyWrite) -> None:
        if written[0] == number:
            written[0] += 1
            raise KeyboardInterrupt
        written[0] += 1
        send(self, change)

    monkeypatch.setattr(commit.EtcdCommit, "_write_object", write)
    with suppress(KeyboardInterrupt):
        settle(cluster)
    settle(cluster)
    assert running(cluster) == ["Running"] * 3
    assert len(cluster.client.list("replicasets.apps").items) == 1


def test_one_of_two_clients_that_create_the_same_gets_the_object(
    cluster: LocalCluster, etcd_address: str
) -> None:
    with closing(open_cluster(etcd_address)) as other:
        body = {"metadata": {"name": "a"}}
        cluster.client.create("configmaps", dict(body), namespace="default")
        with pytest.raises(AlreadyExists):
            other.client.create("configmaps", dict(body), namespace="default")


def test_update_of_an_older_version_is_a_conflict(cluster: LocalCluster, etcd_address: str) -> None:
    first = cluster.client.create(
        "configmaps", {"metadata": {"name": "a"}, "data": {"n": "1"}}, namespace="default"
    )
    with closing(open_cluster(etcd_address)) as other:
        other.client.update("configmaps", {**first, "data": {"n": "2"}}, namespace="default")
    with pytest.raises(Conflict):
        cluster.client.update("configmaps", {**first, "data": {"n": "3"}}, namespace="default")


def test_command_leaves_the_controllers_to_their_holder(
    cluster: LocalCluster, etcd_address: str
) -> None:
    with (
        closing(open_cluster(etcd_address)) as other,
        other.store.hold(MANAGER_LOCK),
        manager_lock(cluster) as is_lost,
    ):
        assert is_lost is None
    settle(cluster)


def test_manager_that_lost_its_election_writes_nothing_more(
    cluster: LocalCluster, etcd_address: str
) -> None:
    cluster.client.create("deployments.apps", deployment(), namespace="default")
    with manager_lock(cluster) as is_lost:
        assert is_lost is not None
        controllers = build_manager(cluster)
        address = parse_address(etcd_address, {})
        with closing(EtcdClient(address)) as client:
            kv, _ = client.get(OwnKeys(address.prefix).lock(MANAGER_LOCK))
            assert kv is not None
            client.revoke_lease(kv.lease)
        revision = cluster.store.revision
        with pytest.raises(LockTimeoutError):
            controllers.run_until_settled()
        assert cluster.store.revision == revision
        assert is_lost()
    settle(cluster)
    assert running(cluster) == ["Running"] * 3


def test_events_of_a_cluster_with_a_clock_are_over_by_its_time(cluster: LocalCluster) -> None:
    cluster.client.create("deployments.apps", deployment(), namespace="default")
    settle(cluster)
    assert cluster.client.list("events").items
    with manager_lock(cluster):
        build_manager(cluster).advance(cluster.clock.now().replace(hour=2))
    assert not [
        event for event in cluster.client.list("events").items if "web" in event["metadata"]["name"]
    ]


def test_cluster_of_a_control_plane_is_left_to_its_controllers(etcd_address: str) -> None:
    address = parse_address(etcd_address, {})
    namespace = {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": "default", "uid": "6f1b7a5e-0000-4000-8000-000000000001"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    value = f"{json.dumps(namespace)}\n".encode()
    key = EtcdKeys(address.prefix).of(Key("namespaces", "", "default"))
    with closing(EtcdClient(address)) as client:
        client.txn([], [Put(key, value)])
        with closing(open_cluster(etcd_address)) as cluster:
            assert cluster.settings.reconcile == "never"
            assert cluster.settings.bootstrap == "full"
            found = cluster.client.get("namespaces", "default")
            assert found["metadata"]["uid"] == namespace["metadata"]["uid"]  # type: ignore[index]
        assert client.range(OwnKeys(address.prefix).start, OwnKeys(address.prefix).end).kvs == []


# --- the command line


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def command(
    etcd_address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """A function that runs a command line on an etcd that is empty at first."""
    monkeypatch.setenv("KUBEPY_STATE", etcd_address)
    return lambda *words: run(capsys, *words)


def test_first_command_that_writes_makes_a_cluster(
    command: Callable[..., tuple[int, str, str]], etcd_address: str
) -> None:
    status, _, error = command("get", "pods")
    assert (status, error.partition(":")[0]) == (1, "error")
    assert f'no cluster in "{etcd_address}"' in error
    status, out, error = command("create", "deployment", "web", "--image=nginx")
    assert (status, out) == (0, "deployment.apps/web created\n")
    assert f"made a cluster in {etcd_address} with one node" in error
    status, out, _ = command("get", "deployments", "-o", "name")
    assert (status, out) == (0, "deployment.apps/web\n")
    assert command("rollout", "status", "deployment/web")[0] == 0


def test_managers_of_clients_are_stored_as_a_kube_apiserver_stores_them(
    command: Callable[..., tuple[int, str, str]], etcd_address: str
) -> None:
    command("init", "--nodes=0")
    command("create", "service", "clusterip", "web", "--tcp=80")
    with closing(open_cluster(etcd_address)) as cluster:
        service = cluster.store.get(Key("services", "default", "web"))
    assert service is not None
    [entry] = service["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl-create", "Update")
    assert entry["fieldsType"] == "FieldsV1"
    fields = entry["fieldsV1"]
    assert fields["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    assert "f:ports" in fields["f:spec"]
    assert "f:clusterIP" not in fields["f:spec"]  # the server's


def test_contexts_are_kept_beside_the_cluster(
    command: Callable[..., tuple[int, str, str]], etcd_address: str
) -> None:
    command("init")
    assert command("config", "set-context", "--current", "--namespace=lab")[0] == 0
    assert "namespace: lab" in command("config", "view")[1]
    assert f"server: {etcd_address}" in command("config", "view")[1]


@pytest.mark.parametrize("words", [["fsck"], ["git", "setup"], ["trust"]])
def test_command_about_files_says_that_there_are_none(
    command: Callable[..., tuple[int, str, str]], etcd_address: str, words: list[str]
) -> None:
    command("init", "--nodes=0")
    status, _, error = command(*words)
    assert status == 1
    assert error == f"error: {etcd_address}: this cluster is in etcd: it has no folder\n"


def test_etcd_that_cannot_be_reached_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEPY_STATE", "etcd://127.0.0.1:1/a?timeout=300ms")
    status, out, error = run(capsys, "get", "pods")
    assert (status, out, error.count("\n")) == (1, "", 1)
    assert "127.0.0.1:1" in error


def test_plan_and_timeline_work_on_a_fork(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    command("init", f"--clock={CLOCK}", "--seed=1")
    command("create", "deployment", "web", "--image=nginx")
    command("rollout", "status", "deployment/web")
    status, out, _ = command("plan", "set", "image", "deployment/web", "nginx=nginx:2")
    assert status == 0
    assert "web" in out
    assert "nginx:2" not in command("get", "deployment", "web", "-o", "yaml")[1]
    assert "web" in command("timeline", "deployment/web")[1]
    assert "web" in command("why", "deployment/web")[1]


def test_python_programs_open_clusters_in_etcd(etcd_address: str) -> None:
    with kubepy.Cluster.create(etcd_address, nodes=2, clock=CLOCK, seed=1) as first:
        assert first.run("create deployment web --image=nginx --replicas=2")
        first.settle()
        with kubepy.Cluster.open(etcd_address) as second:
            assert second.client.get("deployments", "web")["status"]["readyReplicas"] == 2
            second.client.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
            )
            fork = second.fork()
            fork.client.delete("configmaps", "a")
            assert repr(second).startswith(f"<kubepy.Cluster '{etcd_address}', at ")
        assert first.client.get("configmaps", "a")
        assert first.folder == ""
    with pytest.raises(FolderError, match="already"):
        kubepy.Cluster.create(etcd_address)


def test_values_that_cannot_be_read_are_named_by_every_command(
    etcd_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        status = main(["--state", etcd_address, *words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    run("create", "deployment", "web", "--image=nginx")
    run("create", "secret", "generic", "good", "--from-literal=a=b")
    parsed = parse_address(etcd_address)
    secret = EtcdKeys(parsed.prefix).of(Key("secrets", "default", "hidden"))
    client = EtcdClient(parsed)
    client.txn([], [Put(secret, b"k8s:enc:aescbc:v1:key1:xxxx")])
    left_out = f"Warning: the value of {secret.decode()} cannot be read: it is encrypted"
    folder = str(tmp_path / "copy")
    for words in (
        ("get", "secrets"),
        ("get", "pods,secrets", "-o", "json"),
        ("delete", "secrets", "--all"),
        ("fork", folder),
    ):
        status, _, complaints = run(*words)
        assert status == 0
        assert left_out in complaints, words
    assert main(["--state", folder, "fsck"]) == 0
    capsys.readouterr()
    status, _, complaints = run("get", "secret", "hidden")
    assert (status, left_out.removeprefix("Warning: ") in complaints) == (1, True)

    [pod] = run("get", "pods", "-o", "name")[1].split()
    path = EtcdKeys(parsed.prefix).of(Key("pods", "default", pod.removeprefix("pod/")))
    client.txn([], [Put(path, b"garbage")])
    client.close()
    assert run("controller", "--once")[0] == 0
    status, listed, complaints = run("get", "pods", "-o", "name")
    assert (status, len(listed.split()), path.decode() in complaints) == (0, 1, True)
    assert listed.strip() != pod  # the ReplicaSet has made another one


def test_url_of_something_else_is_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--state", "http://127.0.0.1:2379", "create", "configmap", "a"]) == 1
    assert "the state is a folder, or in etcd" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
