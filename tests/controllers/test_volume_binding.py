"""Claims and volumes that name each other, or the wrong one; and their events, each recorded
once."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object, uid_of
from kubepy.api.objects.volumes import best_match
from tests.controllers.conftest import Lab
from tests.controllers.statefulset_objects import storage_class
from tests.controllers.volume_objects import (
    CLAIMS,
    VOLUMES,
    claim,
    claims,
    make,
    phases,
    said,
    volume,
)


def reserved(name: str, uid: str = "", **fields: object) -> Object:
    """Return a volume reserved for the claim ``data``."""
    return volume(
        name,
        claimRef={"namespace": "default", "name": "data", **({"uid": uid} if uid else {})},
        **fields,
    )


def bound_claim(lab: Lab) -> Object:
    make(lab, volume("first"), claim())
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "first")}
    return lab.client.get(CLAIMS, "data", namespace="default")


def touch(lab: Lab, resource: str, name: str, namespace: str = "") -> None:
    """Change the object a minute later, so that all controllers that watch it sync."""
    lab.pass_time(60)
    lab.change(
        resource, name, lambda one: one["metadata"].update(labels={"touched": "yes"}), namespace
    )
    lab.settle()


def test_claim_and_volume_that_name_each_other_are_bound(lab: Lab) -> None:
    make(lab, reserved("own"), claim(volumeName="own"))
    lab.settle()
    assert (claims(lab), phases(lab)) == ({"data": ("Bound", "own")}, {"own": "Bound"})
    assert lab.client.get(VOLUMES, "own")["spec"]["claimRef"]["uid"]


def test_volume_kept_for_claim_that_has_another_goes_on_being_kept(lab: Lab) -> None:
    make(lab, reserved("second", uid_of(bound_claim(lab))))
    lab.settle()
    assert phases(lab) == {"first": "Bound", "second": "Available"}
    assert lab.client.get(VOLUMES, "second")["spec"]["claimRef"] == {
        "namespace": "default",
        "name": "data",
    }


def test_volume_made_for_claim_that_has_another_goes(lab: Lab) -> None:
    made = reserved(
        "second",
        uid_of(bound_claim(lab)),
        persistentVolumeReclaimPolicy="Delete",
        csi={"driver": "simulated.kubepy.dev", "volumeHandle": "second"},
    )
    made["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "kubepy.dev/simulated"}
    make(lab, made)
    lab.settle()
    assert phases(lab) == {"first": "Bound"}


def test_volume_does_not_serve_another_claim_of_name(lab: Lab) -> None:
    bound_claim(lab)
    lab.change(CLAIMS, "data", lambda one: one["metadata"].update(finalizers=[]), "default")
    lab.client.delete(CLAIMS, "data", namespace="default")
    make(lab, claim())
    lab.settle()
    assert (claims(lab), phases(lab)) == ({"data": ("Pending", "")}, {"first": "Released"})


def test_claim_is_told_once_that_it_is_lost_and_left_alone(lab: Lab) -> None:
    bound_claim(lab)
    lab.change(VOLUMES, "first", lambda one: one["metadata"].update(finalizers=[]))
    lab.client.delete(VOLUMES, "first")
    lab.settle()
    lab.change(
        CLAIMS,
        "data",
        lambda one: one["status"].update(capacity={"storage": "1Gi"}),
        "default",
        "status",
    )
    touch(lab, CLAIMS, "data", "default")
    assert lab.client.get(CLAIMS, "data", namespace="default")["status"]["capacity"] == {
        "storage": "1Gi"
    }
    assert said(lab) == [
        "Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    ]


def test_volume_is_told_once_that_it_has_failed_and_keeps_time_of_that(lab: Lab) -> None:
    make(lab, volume("first", persistentVolumeReclaimPolicy="Delete"), claim())
    lab.settle()
    lab.client.delete(CLAIMS, "data", namespace="default")
    lab.settle()
    before = lab.client.get(VOLUMES, "first")["status"]
    touch(lab, VOLUMES, "first")
    assert (lab.client.get(VOLUMES, "first")["status"], len(said(lab, "first"))) == (before, 1)


def test_external_provisioner_is_asked_once(lab: Lab) -> None:
    make(lab, storage_class(mode="Immediate", provisioner="example.com/other"), claim())
    lab.settle()
    touch(lab, CLAIMS, "data", "default")
    assert [(one["reason"], one["count"]) for one in lab.client.list("events").items] == [
        ("ExternalProvisioning", 1)
    ]


def test_claim_with_selector_is_not_provisioned(lab: Lab) -> None:
    make(lab, storage_class(mode="Immediate"), claim(selector={"matchLabels": {"disk": "ssd"}}))
    lab.settle()
    assert (claims(lab), lab.names(VOLUMES)) == ({"data": ("Pending", "")}, [])
    assert said(lab)[-1] == (
        'Warning ProvisioningFailed: failed to provision volume with StorageClass "standard": '
        "claim Selector is not "
        "supported"
    )
    make(lab, volume("ssd", labels={"disk": "ssd"}, storageClassName="standard"))
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "ssd")}


def test_volume_that_was_made_already_is_not_made_again(lab: Lab) -> None:
    make(lab, claim(size="2Gi"))
    name = f"pvc-{uid_of(lab.client.get(CLAIMS, 'data', namespace='default'))}"
    make(lab, volume(name, "1Gi"), storage_class(mode="Immediate"))
    lab.settle()
    assert (claims(lab), lab.names(VOLUMES)) == ({"data": ("Pending", "")}, [name])
    assert [one.split(":")[0] for one in said(lab)] == ["Normal ExternalProvisioning"]


def test_claim_that_waits_for_its_consumer_gets_no_volume_before_whatever_it_says(lab: Lab) -> None:
    asked = claim()
    asked["metadata"]["annotations"] = {
        "volume.kubernetes.io/storage-provisioner": "kubepy.dev/simulated"
    }
    make(lab, storage_class(), asked)
    lab.settle()
    assert (claims(lab), lab.names(VOLUMES)) == ({"data": ("Pending", "")}, [])


def test_released_volume_of_csi_driver_waits_for_that_to_delete_it(lab: Lab) -> None:
    make(
        lab,
        volume(
            "disk",
            persistentVolumeReclaimPolicy="Delete",
            csi={"driver": "other.example.com", "volumeHandle": "x"},
        ),
        claim(),
    )
    lab.settle()
    lab.client.delete(CLAIMS, "data", namespace="default")
    lab.settle()
    assert (phases(lab), said(lab, "disk")) == ({"disk": "Released"}, [])


def test_volume_that_is_on_its_way_out_is_not_given_away(lab: Lab) -> None:
    leaving = volume("leaving")
    leaving["metadata"]["finalizers"] = ["test/held"]
    make(lab, leaving)
    lab.client.delete(VOLUMES, "leaving")
    lab.settle()
    make(lab, claim())
    lab.settle()
    assert claims(lab) == {"data": ("Pending", "")}


@pytest.mark.parametrize(("zone", "found"), [("a", True), ("b", False)])
def test_reserved_volume_serves_node_that_reaches_it_or_none(zone: str, found: bool) -> None:
    """Reserve a volume on another node: the second volume is free, but the claim may only use the
    reserved one."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    own = reserved("own", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    free = {**volume("free"), "status": {"phase": "Available"}}
    node = {"metadata": {"name": "n", "labels": {"zone": zone}}}
    wanted = {**claim(), "metadata": {"name": "data", "namespace": "default"}}
    assert best_match(wanted, [free, own], node) == (own if found else None)
