"""Events after which a pod that waits for its claims is scheduled again."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.conftest import Lab
from tests.controllers.statefulset_objects import storage_class
from tests.controllers.volume_objects import CLAIMS, claim, make, pod, said, volume


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.node("node-1")
    return lab


def refusals(lab: Lab, name: str = "p") -> int:
    return sum("FailedScheduling" in one for one in said(lab, name))


def phase(lab: Lab, name: str = "p") -> str:
    return str(lab.client.get("pods", name, namespace="default")["status"]["phase"])


def test_pod_waits_for_its_claim_and_for_nothing_else(lab: Lab) -> None:
    make(lab, pod())
    lab.settle()
    make(lab, volume("other", "9Gi"), claim("another", "1Ti"), storage_class(mode="Immediate"))
    lab.settle()
    assert (phase(lab), refusals(lab)) == ("Pending", 1)
    make(lab, claim())
    lab.settle()
    assert phase(lab) == "Running"


def test_pod_waits_until_another_gives_up_claim_that_serves_one_at_time(lab: Lab) -> None:
    make(
        lab,
        storage_class(mode="Immediate"),
        claim(accessModes=["ReadWriteOncePod"]),
        claim("other"),
    )
    make(lab, pod("first"), pod("beside", "other"))
    lab.settle()
    make(lab, pod("second"))
    lab.settle()
    lab.client.delete(
        "pods", "beside", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    lab.settle()
    assert (phase(lab, "second"), refusals(lab, "second")) == ("Pending", 1)
    lab.client.delete(
        "pods", "first", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    lab.settle()
    assert phase(lab, "second") == "Running"


def test_pod_waits_until_class_reaches_its_node(lab: Lab) -> None:
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["far"]}]}]
    make(lab, storage_class(allowedTopologies=topologies), claim(), pod())
    lab.settle()
    assert phase(lab) == "Pending"
    lab.change("nodes", "node-1", lambda one: one["metadata"].update(labels={"zone": "far"}))
    lab.settle()
    assert (phase(lab), lab.client.get(CLAIMS, "data", namespace="default")["status"]["phase"]) == (
        "Running",
        "Bound",
    )


def test_pod_goes_where_its_claims_volume_is_being_made(lab: Lab) -> None:
    lab.node("node-2")
    asked = claim()
    asked["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "node-2"}
    make(lab, storage_class(provisioner="example.com/other"), asked, pod())
    lab.settle()
    found = lab.client.get(CLAIMS, "data", namespace="default")
    assert (phase(lab), annotations_of(found)["volume.kubernetes.io/selected-node"]) == (
        "Pending",
        "node-2",
    )


ISCSI = {"targetPortal": "10.0.2.15", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}
RBD = {"monitors": ["a:1", "b:1"], "image": "img", "pool": "p"}


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d"}}, False),
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "e"}}, True),
        (
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            True,
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            False,
        ),
        ({"iscsi": {**ISCSI, "readOnly": True}}, {"iscsi": ISCSI}, False),
        ({"rbd": RBD}, {"rbd": {**RBD, "monitors": ["b:1", "c:1"]}}, False),
        ({"rbd": RBD}, {"rbd": {**RBD, "monitors": ["c:1"]}}, True),
        ({"rbd": RBD}, {"rbd": {**RBD, "pool": "other"}}, True),
    ],
)
def test_disk_is_mounted_once_on_node(lab: Lab, first: Object, second: Object, fits: bool) -> None:
    make(lab, pod("first", volumes=[{"name": "v", **first}]))
    lab.settle()
    make(lab, pod("second", volumes=[{"name": "v", **second}]))
    lab.settle()
    assert (phase(lab, "second") == "Running") == fits
    assert any("1 node(s) had no available disk" in one for one in said(lab, "second")) != fits
    lab.client.delete(
        "pods", "first", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    lab.settle()
    assert phase(lab, "second") == "Running"
