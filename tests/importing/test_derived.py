"""Objects that controllers derive from others, where a source leaves the whole kind out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubepy.controlplane import build_manager
from kubepy.importing.making import ImportedCluster
from tests.importing.conftest import import_objects, kinds_of, kubepy

LEFT_OUT = ("Endpoints", "EndpointSlice", "ControllerRevision")


@pytest.fixture(scope="module")
def objects(world: Path) -> list[dict[str, Any]]:
    text = kubepy(world, "get", kinds_of(world), "-A", "-o", "json").out
    items: list[dict[str, Any]] = json.loads(text)["items"]
    return items


@pytest.fixture
def imported(objects: list[dict[str, Any]]) -> ImportedCluster:
    return import_objects(obj for obj in objects if obj["kind"] not in LEFT_OUT)


def found(imported: ImportedCluster, resource: str) -> dict[str, Any]:
    listed = imported.cluster.client.list(resource, namespace="shop").items
    return {obj["metadata"]["name"]: obj for obj in listed}


def test_revisions_have_the_names_that_pods_and_status_tell(
    imported: ImportedCluster, objects: list[dict[str, Any]]
) -> None:
    revisions = {
        obj["metadata"]["name"]: obj["data"]
        for obj in objects
        if obj["kind"] == "ControllerRevision"
    }
    assert len(revisions) == 2
    made = found(imported, "controllerrevisions.apps")
    assert {name: obj["data"] for name, obj in made.items()} == revisions


def test_endpoints_of_services_are_made(imported: ImportedCluster) -> None:
    addresses = [
        address["ip"]
        for subset in found(imported, "endpoints")["web"]["subsets"]
        for address in subset["addresses"]
    ]
    (endpoint_slice,) = found(imported, "endpointslices.discovery.k8s.io").values()
    in_slice = [endpoint["addresses"][0] for endpoint in endpoint_slice["endpoints"]]
    assert len(addresses) == 3
    assert sorted(in_slice) == sorted(addresses)


def test_cluster_with_derived_objects_is_at_rest(imported: ImportedCluster) -> None:
    cluster = imported.cluster
    before = cluster.store.revision
    build_manager(cluster).run_until_settled()
    changes = cluster.store.changes(before).changes
    assert [change.key for change in changes if change.key.resource != "events"] == []


def test_nothing_is_derived_where_the_source_holds_the_kinds(
    objects: list[dict[str, Any]],
) -> None:
    assert import_objects(objects).made.derived == {}


def test_replica_set_of_the_present_template_is_made(objects: list[dict[str, Any]]) -> None:
    original = {
        obj["metadata"]["name"]: obj
        for obj in objects
        if obj["kind"] == "ReplicaSet" and obj["status"]["replicas"]
    }
    imported = import_objects(obj for obj in objects if obj["kind"] != "ReplicaSet")
    made = found(imported, "replicasets.apps")
    assert made.keys() == original.keys()
    for name, replica_set in made.items():
        for field in ("uid", "labels", "ownerReferences"):
            expected = original[name]["metadata"][field]
            assert replica_set["metadata"][field] == expected
        assert replica_set["spec"] == original[name]["spec"]
    cluster = imported.cluster
    before = cluster.store.revision
    build_manager(cluster).run_until_settled()
    changes = cluster.store.changes(before).changes
    assert [change.key for change in changes if change.key.resource != "events"] == []
