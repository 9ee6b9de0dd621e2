"""The etcd of a real control plane v1.36.2, recorded: kubepy reads it as its server printed it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kubepy
from kubepy.api import storedforms
from kubepy.apiserver.settings import IMPLIED_ALWAYS
from kubepy.clusters import Cluster
from kubepy.controlplane.open import copy_cluster, open_cluster
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient, Put
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.values import Values
from kubepy.storage.model import Key
from tests.etcd import EtcdServer, fresh_prefix

from .comparing import Objects, assert_same
from .recording import KEYS, RecordedKey, read_recording

Object = dict[str, Any]
RECORDING = list(read_recording())
# A server sets some defaults of the first two whenever it reads them. In the last the managers of
# ports have fields in the order of numbers, where kubepy sorts texts.
OTHERWISE = ("jobs.batch", "persistentvolumeclaims", "statefulsets.apps")
OBJECTS = [key for key in RECORDING if key.object is not None]


class Loaded:
    """The recording in an etcd.

    :ivar objects: the recorded ones by key, with the versions that they have here.
    """

    def __init__(self, address: str, objects: dict[Key, Object]) -> None:
        self.address = address
        self.objects = objects

    def of(self, resource: str) -> Objects:
        return {
            (key.namespace, key.name): obj
            for key, obj in self.objects.items()
            if key.resource == resource
        }


def key_of(recorded: RecordedKey) -> Key:
    key = KEYS.parse(recorded.key)
    assert key is not None, recorded.key
    return key


@pytest.fixture(scope="module")
def loaded(etcd_server: EtcdServer) -> Loaded:
    prefix = fresh_prefix()
    address = etcd_server.address(prefix)
    objects = {}
    with closing(EtcdClient(parse_address(address, {}))) as client:
        for recorded in RECORDING:
            put = Put(prefix.encode() + recorded.key, recorded.value)
            revision = client.txn([], [put]).revision
            if recorded.object is not None:
                metadata = {**recorded.object["metadata"], "resourceVersion": str(revision)}
                objects[key_of(recorded)] = {**recorded.object, "metadata": metadata}
    return Loaded(address, objects)


@pytest.fixture(scope="module")
def cluster(loaded: Loaded) -> Iterator[Cluster]:
    with kubepy.Cluster.open(loaded.address) as cluster:
        yield cluster


def test_recording_has_all_that_controllers_make() -> None:
    resources = {key_of(recorded).resource for recorded in OBJECTS}
    assert len(resources) > 40
    assert {"pods", "endpointslices.discovery.k8s.io", "controllerrevisions.apps"} <= resources
    assert len(OBJECTS) > 250


@pytest.mark.parametrize("resource", sorted({key_of(recorded).resource for recorded in OBJECTS}))
def test_objects_are_printed_as_the_server_printed_them(
    loaded: Loaded, cluster: Cluster, resource: str
) -> None:
    recorded = loaded.of(resource)
    version = next(iter(recorded.values()))["apiVersion"]
    plural = resource.partition(".")[0]
    path = f"/apis/{version}/{plural}" if "/" in version else f"/api/{version}/{plural}"
    answer = json.loads(cluster.run(["get", "--raw", path], check=True).stdout)
    kind = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
    printed = {}
    for item in answer["items"]:
        metadata = item["metadata"]
        printed[metadata.get("namespace", ""), metadata["name"]] = {**kind, **item}
    if resource in IMPLIED_ALWAYS:  # a server makes all of them; the recording has but some
        printed = {name: obj for name, obj in printed.items() if name in recorded}
    assert_same(recorded, printed)


def test_values_are_written_byte_by_byte_as_the_server_wrote_them() -> None:
    values = Values(EtcdKeys(), storedforms, is_protobuf=True)
    number = 0
    for recorded in OBJECTS:
        key = key_of(recorded)
        if recorded.value.startswith(b"k8s\0") and key.resource not in OTHERWISE:
            text = values.decode(key, recorded.value)
            assert values.encode(key, text) == recorded.value, key
            number += 1
    assert number > 250


def test_control_plane_becomes_a_folder(loaded: Loaded, tmp_path: Path) -> None:
    with closing(open_cluster(loaded.address)) as origin:
        copy_cluster(origin, tmp_path / "folder")
    with closing(open_cluster(tmp_path / "folder")) as folder:
        assert folder.problems() == []
        for key, obj in loaded.objects.items():
            copy = folder.client.get(key.resource, key.name, namespace=key.namespace)
            assert copy["metadata"]["uid"] == obj["metadata"]["uid"], key
