"""The managers of objects in etcd: whole, as an API server stores them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.cli.main import main
from kubepy.controlplane.open import open_cluster
from kubepy.storage import Key
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient, Put
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.state import State

Object = dict[str, Any]
WEB = Key("deployments.apps", "default", "web")
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
"""
CONFLICT = 'Apply failed with 1 conflict: conflict with "alpha": .spec.replicas'
# As a kube-apiserver v1.36 stores it after `apply --server-side --field-manager=alpha` and `label`.
OF_ALPHA: Object = {
    "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}},
        },
    }
}
ENTRIES_OF_A_SERVER: list[Object] = [
    {
        "manager": "alpha",
        "operation": "Apply",
        "apiVersion": "apps/v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": OF_ALPHA,
    },
    {
        "manager": "kubectl-label",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "time": "2026-01-01T00:00:01Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}},
    },
]


class Place:
    """A cluster in etcd, what is stored there, and commands on it."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self._folder = folder
        parsed = parse_address(address, {})
        self._keys = EtcdKeys(parsed.prefix)
        self.client = EtcdClient(parsed)

    def value(self, key: Key) -> Object:
        """Return what a kube-apiserver would read."""
        kv, _ = self.client.get(self._keys.of(key))
        assert kv is not None
        obj: Object = json.loads(kv.value)
        return obj

    def put_managers(self, key: Key, entries: list[Object]) -> None:
        """Replace the managers in a value."""
        obj = self.value(key)
        obj["metadata"]["managedFields"] = entries
        text = json.dumps(obj, sort_keys=True, separators=(",", ":"))
        self.client.txn([], [Put(self._keys.of(key), text.encode())])

    def entries(self, key: Key) -> list[Object]:
        entries: list[Object] = self.value(key)["metadata"].get("managedFields", [])
        return entries

    def shown(self, place: str, key: Key) -> list[Object]:
        """Return the managers as the API shows them."""
        cluster = open_cluster(place)
        obj = cluster.client.get(key.resource, key.name, namespace=key.namespace)
        entries: list[Object] = cluster.client.with_managed_fields(obj)["metadata"]["managedFields"]
        cluster.close()
        return entries

    def run(self, *words: str) -> int:
        return main(["--state", self.address, *words])

    def apply(self, replicas: int, *flags: str) -> int:
        path = self._folder / "web.yaml"
        path.write_text(MANIFEST % replicas)
        return self.run("apply", "-f", str(path), *flags)


@pytest.fixture
def place(etcd_address: str, tmp_path: Path) -> Iterator[Place]:
    place = Place(etcd_address, tmp_path)
    assert place.run("init") == 0
    yield place
    place.client.close()


def test_managers_of_applied_objects_and_of_controllers_are_stored_whole(place: Place) -> None:
    assert place.apply(2, "--server-side", "--field-manager=alpha") == 0
    assert place.run("wait", "--for=condition=Available", "deployment/web") == 0
    applied, observed = place.entries(WEB)
    assert [entry["fieldsType"] for entry in (applied, observed)] == ["FieldsV1", "FieldsV1"]
    assert (applied["manager"], applied["operation"]) == ("alpha", "Apply")
    assert applied["apiVersion"] == "apps/v1"
    assert applied["time"]
    assert applied["fieldsV1"] == OF_ALPHA
    assert (observed["manager"], observed["subresource"]) == ("kube-controller-manager", "status")
    assert "f:availableReplicas" in observed["fieldsV1"]["f:status"]

    cluster = open_cluster(place.address)
    pods = [
        Key("pods", "default", pod["metadata"]["name"]) for pod in cluster.client.list("pods").items
    ]
    cluster.close()
    for key in (WEB, *pods):
        assert place.entries(key) == place.shown(place.address, key)
    managers = {entry["manager"] for key in pods for entry in place.entries(key)}
    assert managers == {"kube-controller-manager", "kubelet"}


def test_object_of_a_client_has_no_stamp_in_etcd(place: Place) -> None:
    assert place.run("create", "deployment", "web", "--image=nginx") == 0
    [entry] = [entry for entry in place.entries(WEB) if entry["manager"] == "kubectl-create"]
    assert entry["fieldsType"] == "FieldsV1"
    assert "f:replicas" in entry["fieldsV1"]["f:spec"]


def test_apply_meets_the_managers_that_a_server_has_stored(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.apply(2) == 0
    assert place.run("label", "deployment", "web", "a=b") == 0
    place.put_managers(WEB, ENTRIES_OF_A_SERVER)
    capsys.readouterr()
    assert place.apply(3, "--server-side", "--field-manager=beta") == 1
    assert CONFLICT in capsys.readouterr().err
    assert place.apply(3, "--server-side", "--field-manager=beta", "--force-conflicts") == 0
    managers = {entry["manager"]: entry for entry in place.entries(WEB)}
    assert "f:replicas" not in managers["alpha"]["fieldsV1"]["f:spec"]
    assert "f:replicas" in managers["beta"]["fieldsV1"]["f:spec"]
    assert managers["kubectl-label"] == ENTRIES_OF_A_SERVER[1]


def test_stamp_that_an_earlier_version_has_stored_counts(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.apply(2) == 0
    before = place.shown(place.address, WEB)
    stamp = {
        "apiVersion": "apps/v1",
        "manager": "alpha",
        "operation": "Update",
        "time": before[0]["time"],
    }
    place.put_managers(WEB, [stamp])
    shown = place.shown(place.address, WEB)
    assert [entry["fieldsV1"] for entry in shown] == [entry["fieldsV1"] for entry in before]
    capsys.readouterr()
    assert place.apply(3, "--server-side", "--field-manager=beta") == 1
    assert 'conflict with "alpha" using apps/v1: .spec.replicas' in capsys.readouterr().err
    assert place.run("label", "deployment", "web", "a=b") == 0
    assert all("fieldsType" in entry for entry in place.entries(WEB))


def test_managers_that_cannot_be_read_are_shown_until_somebody_writes(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.apply(2) == 0
    strange = [{**ENTRIES_OF_A_SERVER[0], "operation": "Patch"}]
    place.put_managers(WEB, strange)
    capsys.readouterr()
    assert place.run("get", "--raw", "/apis/apps/v1/namespaces/default/deployments/web") == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["managedFields"] == strange
    folder = str(tmp_path / "folder")
    assert main(["fork", place.address, folder]) == 0
    assert main(["--state", folder, "get", "deployment", "web"]) == 0

    assert place.run("label", "deployment", "web", "a=b") == 0
    assert place.entries(WEB) != strange
    assert place.apply(3, "--server-side", "--field-manager=beta", "--force-conflicts") == 0
    assert "beta" in [entry["manager"] for entry in place.entries(WEB)]


def test_status_that_changes_has_its_time_among_the_managers(place: Place) -> None:
    assert place.apply(1) == 0
    assert place.run("wait", "--for=condition=Available", "deployment/web") == 0
    cluster = open_cluster(place.address)
    stored = cluster.client.get("deployments.apps", "web", namespace="default")
    obj = json.loads(json.dumps(stored))
    for condition in obj["status"]["conditions"]:
        condition["lastUpdateTime"] = "2031-01-01T00:00:00Z"
    cluster.client.update("deployments.apps", obj, subresource="status")
    cluster.close()
    [observed] = [entry for entry in place.entries(WEB) if "subresource" in entry]
    assert observed["time"] == "2031-01-01T00:00:00Z"


def test_forks_give_each_store_its_own_form(place: Place, tmp_path: Path) -> None:
    first, back = str(tmp_path / "first"), f"{place.address}-back"
    assert main(["--state", first, "init"]) == 0
    create = ["create", "deployment", "web", "--image=nginx"]
    assert main(["--state", first, *create]) == 0
    assert main(["--state", first, "wait", "--for=condition=Available", "deployment/web"]) == 0
    assert main(["fork", first, back]) == 0
    copied = Place(back, tmp_path)
    whole = place.shown(first, WEB)
    assert copied.entries(WEB) == whole
    copied.client.close()

    second = str(tmp_path / "second")
    assert main(["fork", back, second]) == 0
    assert place.shown(second, WEB) == whole
    of_folders = [stored(state) for state in (first, second)]
    assert of_folders[0] == of_folders[1]
    assert "fieldsType" not in of_folders[0][WEB][0]


def stored(place: str) -> dict[Key, list[Object]]:
    """Return the managers as a folder keeps them."""
    cluster = open_cluster(place)
    state: State = cluster.store.state()
    entries = {
        record.key: json.loads(record.json or "{}")["metadata"].get("managedFields", [])
        for resource in ("deployments.apps", "pods", "replicasets.apps")
        for record in state.records(resource, None)
    }
    state.close()
    cluster.close()
    return entries
