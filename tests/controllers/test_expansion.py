"""Claims whose requested size grows."""

from __future__ import annotations

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import Object
from tests.controllers.conftest import Lab
from tests.controllers.statefulset_objects import storage_class
from tests.controllers.volume_objects import CLAIMS, VOLUMES, claim, make, said, volume


def grow(lab: Lab, size: str) -> None:
    def ask(obj: Object) -> None:
        obj["spec"]["resources"]["requests"]["storage"] = size

    lab.change(CLAIMS, "data", ask, "default")
    lab.settle()


def bound(lab: Lab, **fields: object) -> None:
    """Create a bound claim of a class that allows expansion."""
    make(
        lab,
        storage_class(mode="Immediate", **{"allowVolumeExpansion": True, **fields}),
        claim(size="1Gi"),
    )
    lab.settle()


def test_claim_of_simulated_storage_has_its_new_size_at_once(lab: Lab) -> None:
    bound(lab)
    before = said(lab)
    grow(lab, "2Gi")
    found = lab.client.get(CLAIMS, "data", namespace="default")
    [made] = lab.client.list(VOLUMES).items
    assert found["status"] == {
        "accessModes": ["ReadWriteOnce"],
        "allocatedResources": {"storage": "2Gi"},
        "capacity": {"storage": "2Gi"},
        "phase": "Bound",
    }
    assert (made["spec"]["capacity"], made["status"]["phase"]) == ({"storage": "2Gi"}, "Bound")
    assert said(lab)[len(before) :] == [
        "Normal ExternalExpanding: waiting for an external controller to expand this PVC",
        f"Normal Resizing: External resizer is resizing volume {made['metadata']['name']}",
        "Normal VolumeResizeSuccessful: Resize volume succeeded",
    ]
    lab.settle()
    assert len(said(lab)) == len(before) + 3


def test_claim_larger_than_asked_for_grows_only_beyond_what_it_has(lab: Lab) -> None:
    make(
        lab,
        storage_class(mode="Immediate", default=False, allowVolumeExpansion=True),
        volume("large", "5Gi", storageClassName="standard"),
        claim(size="1Gi", storageClassName="standard"),
    )
    lab.settle()
    grow(lab, "3Gi")
    assert lab.client.get(CLAIMS, "data", namespace="default")["status"]["capacity"] == {
        "storage": "5Gi"
    }
    assert said(lab) == []


def test_volume_of_another_driver_waits_for_its_own_resizer(lab: Lab) -> None:
    other = volume(
        "pv",
        "1Gi",
        csi={"driver": "other.example.com", "volumeHandle": "x"},
        storageClassName="standard",
    )
    make(lab, storage_class(mode="Immediate", allowVolumeExpansion=True), other, claim())
    lab.settle()
    grow(lab, "2Gi")
    assert lab.client.get(CLAIMS, "data", namespace="default")["status"]["capacity"] == {
        "storage": "1Gi"
    }
    assert said(lab) == [
        "Normal ExternalExpanding: waiting for an external controller to expand this PVC"
    ]


def test_class_that_does_not_allow_it_refuses(lab: Lab) -> None:
    bound(lab, allowVolumeExpansion=False)
    with pytest.raises(Status, match="only dynamically provisioned pvc can be resized"):
        grow(lab, "2Gi")
