"""kubepy and a real kube-apiserver v1.36 on the same etcd: `make test-interop`.

Both read each other's objects whole, as JSON and as protobuf, and each acts on what the other
writes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kubepy
from kubepy.api import errors, storedforms
from kubepy.api.scheme import BUILT_IN, Resource
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient, Put
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.values import Values
from kubepy.storage.model import Key, to_json
from tests.etcd import EtcdServer, fresh_prefix
from tests.kubeapiserver import (
    APPLY,
    MERGE,
    PROTOBUF,
    KubeApiServer,
    require_kube_apiserver,
)

from .comparing import Objects, assert_same, without_managers
from .full_objects import full_object
from .manifests import Manifest, bundled_manifests, recorded_manifests

Object = dict[str, Any]
FORMS = pytest.mark.parametrize("form", ["json", "protobuf"], indirect=True)
STORED = [resource for resource in BUILT_IN if resource.is_stored]
STORED = [resource for resource in STORED if resource.key != "componentstatuses"]
# The kinds that the cases have in files, or make by commands and controllers.
OF_CASES = {
    "configmaps",
    "controllerrevisions.apps",
    "cronjobs.batch",
    "customresourcedefinitions.apiextensions.k8s.io",
    "daemonsets.apps",
    "deployments.apps",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "events",
    "jobs.batch",
    "leases.coordination.k8s.io",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets.policy",
    "pods",
    "priorityclasses.scheduling.k8s.io",
    "replicasets.apps",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
    "services",
    "statefulsets.apps",
    "storageclasses.storage.k8s.io",
}
PATIENCE = 30.0


@pytest.fixture(scope="module", autouse=True)
def kube_apiserver_here() -> None:
    require_kube_apiserver()


def path_of(resource: Resource, namespace: str = "", name: str = "") -> str:
    """Return the path of a resource, all its objects or one."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    if namespace:
        root = f"{root}/namespaces/{namespace}"
    return f"{root}/{resource.plural}/{name}".rstrip("/")


def printed(cluster: kubepy.Cluster, path: str) -> Any:
    """Return what kubepy answers to a GET; the controllers do not work for it."""
    result = cluster.run(["get", "--raw", path, "--reconcile=never"], check=True)
    return json.loads(result.stdout)


def named(items: list[Object]) -> Objects:
    """Return the objects of a list by namespace and name."""
    return {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in items
    }


def both_lists(
    server: KubeApiServer, cluster: kubepy.Cluster, path: str
) -> tuple[Objects, Objects]:
    """Return the objects that the server and kubepy print. The server writes all the time: both
    are of a moment at which nothing was written to that list."""
    end = time.monotonic() + PATIENCE
    while True:
        before = named(server.get(path)["items"])
        here = named(printed(cluster, path)["items"])
        if named(server.get(path)["items"]) == before:
            return before, here
        assert time.monotonic() < end, f"{path} changes all the time"


def create_all(create: Callable[[Manifest], bool], manifests: Iterator[Manifest]) -> int:
    """Create what is not refused; return how many objects that are."""
    return sum(create(manifest) for manifest in manifests)


# --- what kubepy has made -------------------------------------------------------------------------


class Shared:
    """A cluster that both look at."""

    def __init__(self, cluster: kubepy.Cluster, server: KubeApiServer) -> None:
        self.cluster = cluster
        self.server = server


@pytest.fixture(scope="module")
def form(request: pytest.FixtureRequest) -> str:
    """The form in which values are written."""
    return str(request.param)


def create_here(cluster: kubepy.Cluster) -> Callable[[Manifest], bool]:
    def create(manifest: Manifest) -> bool:
        try:
            cluster.client.create(manifest.object, namespace=manifest.namespace)
        except (errors.Status, ValueError):
            return False
        return True

    return create


@pytest.fixture(scope="module")
def made_here(
    form: str, etcd_server: EtcdServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    """A cluster that kubepy has made of the manifests of all cases and bundles."""
    prefix = fresh_prefix()
    options = "?values=protobuf" if form == "protobuf" else ""
    with kubepy.Cluster.create(f"{etcd_server.address(prefix)}{options}", nodes=1) as cluster:
        create = create_here(cluster)
        assert create_all(create, recorded_manifests()) > 200
        cluster.settle("3s")
        assert create_all(create, bundled_manifests()) > 300
        cluster.settle("0s")
        folder = tmp_path_factory.mktemp("kube-apiserver")
        with KubeApiServer(folder, etcd_server, prefix) as server:
            yield Shared(cluster, server)


@FORMS
@pytest.mark.parametrize("resource", STORED, ids=lambda resource: resource.key)
def test_kube_apiserver_prints_what_kubepy_has_made(made_here: Shared, resource: Resource) -> None:
    there, here = both_lists(made_here.server, made_here.cluster, path_of(resource))
    assert_same(there, here)
    if resource.key in OF_CASES:
        assert there


@FORMS
def test_kube_apiserver_prints_custom_resources_that_kubepy_has_made(made_here: Shared) -> None:
    definitions = made_here.server.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    number = 0
    for definition in definitions["items"]:
        spec = definition["spec"]
        for version in spec["versions"]:
            if version["served"]:
                path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
                there, here = both_lists(made_here.server, made_here.cluster, path)
                assert_same(there, here)
                number += len(there)
    assert number > 20


# --- what a control plane has made ----------------------------------------------------------------


def create_there(server: KubeApiServer) -> Callable[[Manifest], bool]:
    def create(manifest: Manifest) -> bool:
        obj, namespace = manifest
        resource = RESOURCES.get((obj.get("apiVersion"), obj["kind"]))
        if resource is None:
            return False
        path = path_of(resource, namespace if resource.namespaced else "")
        if resource.namespaced:
            obj = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
        answer = server.request("POST", path, obj)
        return answer.status < 300

    return create


RESOURCES = {(resource.api_version, resource.kind): resource for resource in STORED}


@pytest.fixture(scope="module")
def made_there(
    form: str, etcd_server: EtcdServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    """A cluster that a kube-apiserver has made of the same manifests."""
    prefix = fresh_prefix()
    folder = tmp_path_factory.mktemp("kube-apiserver")
    kind = PROTOBUF if form == "protobuf" else "application/json"
    flags = [f"--storage-media-type={kind}", "--disable-admission-plugins=ServiceAccount"]
    with KubeApiServer(folder, etcd_server, prefix, flags) as server:
        create = create_there(server)
        assert create_all(create, recorded_manifests()) > 200
        assert create_all(create, bundled_manifests()) > 300
        with kubepy.Cluster.open(etcd_server.address(prefix)) as cluster:
            yield Shared(cluster, server)


@FORMS
@pytest.mark.parametrize("resource", STORED, ids=lambda resource: resource.key)
def test_kubepy_prints_what_kube_apiserver_has_made(made_there: Shared, resource: Resource) -> None:
    there, here = both_lists(made_there.server, made_there.cluster, path_of(resource))
    assert_same(there, here)


# --- every field ----------------------------------------------------------------------------------

# A server that finds these incomplete ends, or changes them as it starts.
WORKED_WITH = {
    "apiservices.apiregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
}
FULL = [resource for resource in STORED if resource.key not in WORKED_WITH]
NAME = ("", "full")


class FullObjects:
    """A cluster into which objects with every field are put, past all validation."""

    def __init__(self, shared: Shared, client: EtcdClient, prefix: str) -> None:
        self.server = shared.server
        self.cluster = shared.cluster
        self._client = client
        self._keys = EtcdKeys(prefix)
        self._values = Values(self._keys, storedforms)

    def put(self, resource: Resource, value: bytes) -> str:
        """Store a value; return the resourceVersion of its object."""
        key = self._keys.of(self.key_of(resource))
        return str(self._client.txn([], [Put(key, value)]).revision)

    def encode(self, resource: Resource) -> bytes:
        """Return an object with every field, and with managers, which a server checks."""
        obj = full_object(resource)
        [entry] = obj["metadata"]["managedFields"]
        fields = {"f:metadata": {"f:labels": {"f:a": {}}}}
        entry |= {"operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
        entry["apiVersion"] = resource.api_version
        return self._values.encode(self.key_of(resource), to_json(obj))

    @staticmethod
    def key_of(resource: Resource) -> Key:
        return Key(resource.key, "text" if resource.namespaced else "", "full")


@pytest.fixture(scope="module")
def full_objects(
    etcd_server: EtcdServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FullObjects]:
    prefix = fresh_prefix()
    folder = tmp_path_factory.mktemp("kube-apiserver")
    address = etcd_server.address(prefix)
    with (
        KubeApiServer(folder, etcd_server, prefix) as server,
        kubepy.Cluster.open(address) as cluster,
        closing(EtcdClient(parse_address(address, {}))) as client,
    ):
        yield FullObjects(Shared(cluster, server), client, prefix)


@pytest.mark.parametrize("resource", FULL, ids=lambda resource: resource.key)
def test_every_field_is_the_same_in_both(full_objects: FullObjects, resource: Resource) -> None:
    """… as JSON and as the protobuf that the server makes of it. What is stored first lacks some
    fields of fields, which have defaults."""
    path = path_of(resource, "text" if resource.namespaced else "", "full")
    server, cluster = full_objects.server, full_objects.cluster
    full_objects.put(resource, full_objects.encode(resource))
    as_json = server.request("GET", path)
    as_protobuf = server.request("GET", path, accept=PROTOBUF)
    assert as_protobuf.body.startswith(b"k8s\0")
    for answer in (as_json, as_protobuf):
        version = full_objects.put(resource, answer.body)
        there = server.get(path)
        assert there["metadata"]["resourceVersion"] == version
        assert_same({NAME: there}, {NAME: printed(cluster, path)})


# --- writes of one, acted on by the other ---------------------------------------------------------


class Watched(Shared):
    """A cluster in which kubepy's controllers work beside a kube-apiserver."""

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, what
            time.sleep(0.05)

    def pods(self, app: str) -> list[Object]:
        items = self.server.get(f"/api/v1/namespaces/default/pods?labelSelector=app={app}")["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def running(self, app: str) -> list[str]:
        """Return the images of the running pods."""
        return [
            pod["spec"]["containers"][0]["image"]
            for pod in self.pods(app)
            if pod["status"]["phase"] == "Running"
        ]


@pytest.fixture(scope="module")
def watched(etcd_server: EtcdServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    prefix = fresh_prefix()
    address = etcd_server.address(prefix)
    folder = tmp_path_factory.mktemp("kube-apiserver")
    kubepy.Cluster.create(address, nodes=3).close()
    with (
        KubeApiServer(folder, etcd_server, prefix) as server,
        kubepy.Cluster.open(address) as cluster,
        controllers(address, folder),
    ):
        yield Watched(cluster, server)


class controllers:
    """`controller --watch` as a process."""

    def __init__(self, address: str, folder: Path) -> None:
        self._log = folder / "controllers"
        command = [sys.executable, "-m", "kubepy", "--state", address, "controller", "--watch"]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def __enter__(self) -> None:
        assert self._process.poll() is None

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        status = self._process.wait(30)
        assert status in (0, 143, -15), self._log.read_text()


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(name: str, replicas: int = 3) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    }


def test_controllers_act_on_what_kube_apiserver_writes(watched: Watched) -> None:
    server = watched.server
    server.send("POST", DEPLOYMENTS, deployment("web"))
    watched.wait_for("three pods", lambda: watched.running("web") == ["nginx:1"] * 3)

    scale = {"spec": {"replicas": 5}}
    server.send("PATCH", f"{DEPLOYMENTS}/web/scale", scale, content_type=MERGE)
    watched.wait_for("five pods", lambda: watched.running("web") == ["nginx:1"] * 5)

    container = {"name": "main", "image": "nginx:2"}
    image = {"spec": {"template": {"spec": {"containers": [container]}}}}
    strategic = "application/strategic-merge-patch+json"
    server.send("PATCH", f"{DEPLOYMENTS}/web", image, content_type=strategic)
    watched.wait_for("new pods", lambda: watched.running("web") == ["nginx:2"] * 5)

    def is_done() -> bool:
        web = server.get(f"{DEPLOYMENTS}/web")
        status = web["status"]
        is_observed = status["observedGeneration"] == web["metadata"]["generation"]
        return is_observed and status.get("updatedReplicas") == status.get("readyReplicas") == 5

    watched.wait_for("the status of the rollout", is_done)

    server.send("DELETE", f"{DEPLOYMENTS}/web")
    watched.wait_for("no pods", lambda: watched.pods("web") == [])
    replica_sets = "/apis/apps/v1/namespaces/default/replicasets?labelSelector=app=web"
    watched.wait_for("no ReplicaSets", lambda: server.get(replica_sets)["items"] == [])


def test_controllers_act_on_what_is_applied_on_the_server(watched: Watched) -> None:
    server = watched.server
    path = f"{DEPLOYMENTS}/applied?fieldManager=tests"
    for replicas in (2, 4):
        server.send("PATCH", path, deployment("applied", replicas), content_type=APPLY)
        images = ["nginx:1"] * replicas
        watched.wait_for(
            f"{replicas} pods", lambda images=images: watched.running("applied") == images
        )


def test_kube_apiserver_applies_to_what_kubepy_has_made(watched: Watched) -> None:
    """An object of kubepy's has managers that a kube-apiserver understands."""
    cluster, server = watched.cluster, watched.server
    manifest = json.dumps(deployment("ours", 1))
    cluster.run(["apply", "-f", "-", "--reconcile=never"], stdin=manifest, check=True)
    path = f"{DEPLOYMENTS}/ours?fieldManager=tests"
    answer = server.request("PATCH", path, deployment("ours", 2), content_type=APPLY)
    assert answer.status == 409, answer.body
    assert '"kubectl-client-side-apply"' in answer.object["message"]
    server.send("PATCH", f"{path}&force=true", deployment("ours", 2), content_type=APPLY)
    watched.wait_for("two pods", lambda: watched.running("ours") == ["nginx:1"] * 2)


def test_watch_of_kube_apiserver_shows_what_kubepy_writes(watched: Watched) -> None:
    cluster = watched.cluster
    path = "/api/v1/namespaces/default/configmaps"
    since = watched.server.get(path)["metadata"]["resourceVersion"]
    with watched.server.watch(f"{path}?watch=1&resourceVersion={since}") as events:
        cluster.run("create configmap shared --from-literal=a=1 --reconcile=never", check=True)
        created = next(events)
        cluster.run(
            ["patch", "configmap", "shared", "--type=merge", "-p", '{"data":{"a":"2"}}'],
            check=True,
        )
        patched = next(events)
        cluster.run("delete configmap shared", check=True)
        deleted = next(events)
    types = [event["type"] for event in (created, patched, deleted)]
    assert types == ["ADDED", "MODIFIED", "DELETED"]
    assert created["object"]["data"] == {"a": "1"}
    assert patched["object"]["data"] == deleted["object"]["data"] == {"a": "2"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (created, patched)]
    assert int(since) < versions[0] < versions[1]


def test_watch_of_kubepy_shows_what_kube_apiserver_writes(watched: Watched) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}
    events = iter(watched.cluster.client.watch("configmaps", timeout=PATIENCE))
    own_events = filter(lambda event: event.object["metadata"]["name"] == "theirs", events)
    created = watched.server.send("POST", path, {**body, "data": {"a": "1"}})
    added = next(own_events)
    patch = {"data": {"a": "2"}}
    patched = watched.server.send("PATCH", f"{path}/theirs", patch, content_type=MERGE)
    modified = next(own_events)
    watched.server.send("DELETE", f"{path}/theirs")
    deleted = next(own_events)
    assert [added.type, modified.type, deleted.type] == ["ADDED", "MODIFIED", "DELETED"]
    for event, answer in ((added, created), (modified, patched)):
        assert without_managers({NAME: answer}) == {NAME: event.object}
    assert deleted.object["data"] == {"a": "2"}
