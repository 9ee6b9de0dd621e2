"""Validation errors of volumes, their classes and CSI drivers, with upstream's messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rules import changed, created, refusals, strategy, update_refusals, warnings

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation "
    "is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
V1 = "storage.k8s.io/v1"
GOOD: dict[str, dict[str, Any]] = {
    "csidrivers.storage.k8s.io": {
        "apiVersion": V1,
        "kind": "CSIDriver",
        "spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 600}]},
    },
    "csinodes.storage.k8s.io": {
        "apiVersion": V1,
        "kind": "CSINode",
        "spec": {
            "drivers": [
                {
                    "name": "disk.example.com",
                    "nodeID": "n",
                    "topologyKeys": ["example.com/zone"],
                    "allocatable": {"count": 3},
                }
            ]
        },
    },
    "csistoragecapacities.storage.k8s.io": {
        "apiVersion": V1,
        "kind": "CSIStorageCapacity",
        "storageClassName": "fast",
        "capacity": "1Gi",
        "nodeTopology": {"matchLabels": {"zone": "a"}},
    },
    "volumeattachments.storage.k8s.io": {
        "apiVersion": V1,
        "kind": "VolumeAttachment",
        "spec": {
            "attacher": "disk.example.com",
            "nodeName": "node-1",
            "source": {"persistentVolumeName": "v"},
        },
    },
    "volumeattributesclasses.storage.k8s.io": {
        "apiVersion": V1,
        "kind": "VolumeAttributesClass",
        "driverName": "disk.example.com",
        "parameters": {"iops": "3"},
    },
    "storageclasses.storage.k8s.io": {
        "apiVersion": V1,
        "kind": "StorageClass",
        "provisioner": "example.com/disk",
    },
    "persistentvolumes": {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disk"},
        },
    },
}


def good(key: str) -> dict[str, Any]:
    return {**GOOD[key], "metadata": {"name": "x", "namespace": "default"}}


@pytest.mark.parametrize("key", GOOD)
def test_storage_object_valid_is_accepted(key: str) -> None:
    assert refusals(key, good(key)) == []
    assert update_refusals(key, good(key), good(key)) == []


@pytest.mark.parametrize(
    ("key", "changes", "errors"),
    [
        (
            "csidrivers.storage.k8s.io",
            {"spec.fsGroupPolicy": "Maybe"},
            [
                'spec.fsGroupPolicy: Unsupported value: "Maybe": supported values: "File", '
                '"None", "ReadWriteOnceWithFSType"'
            ],
        ),
        (
            "csidrivers.storage.k8s.io",
            {"spec.volumeLifecycleModes": ["Short"]},
            [
                'spec.volumeLifecycleModes: Unsupported value: "Short": supported values: '
                '"Persistent", "Ephemeral"'
            ],
        ),
        (
            "csidrivers.storage.k8s.io",
            {"spec.tokenRequests": [{"audience": "a", "expirationSeconds": 5}, {"audience": "a"}]},
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 5: may not specify a "
                "duration less than 10 minutes",
                'spec.tokenRequests[1].audience: Duplicate value: "a"',
            ],
        ),
        (
            "csidrivers.storage.k8s.io",
            {"spec.nodeAllocatableUpdatePeriodSeconds": 9},
            [
                "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than "
                "or equal to 10 seconds"
            ],
        ),
        (
            "csinodes.storage.k8s.io",
            {"spec.drivers.0.nodeID": ""},
            ["spec.drivers[0].nodeID: Required value"],
        ),
        (
            "csinodes.storage.k8s.io",
            {"spec.drivers.0.name": "Disk_1"},
            [f'spec.drivers[0].name: Invalid value: "Disk_1": {SUBDOMAIN}'],
        ),
        (
            "csinodes.storage.k8s.io",
            {"spec.drivers.0.topologyKeys": ["a!", "a!"]},
            [
                f'spec.drivers[0]: Invalid value: "a!": {KEY}',
                'spec.drivers[0]: Duplicate value: "a!"',
                f'spec.drivers[0]: Invalid value: "a!": {KEY}',
            ],
        ),
        (
            "csinodes.storage.k8s.io",
            {"spec.drivers.0.allocatable.count": -1},
            [
                "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or "
                "equal to 0"
            ],
        ),
        (
            "csistoragecapacities.storage.k8s.io",
            {"storageClassName": "", "capacity": "-1"},
            [
                f'storageClassName: Invalid value: "": {SUBDOMAIN}',
                'capacity: Invalid value: "-1": must be greater than or equal to 0',
            ],
        ),
        (
            "volumeattachments.storage.k8s.io",
            {"spec.source": {}, "spec.attacher": ""},
            [
                "spec.attacher: Required value",
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and "
                "persistentVolumeName",
                "spec.attacher: Required value",
            ],
        ),
        (
            "volumeattachments.storage.k8s.io",
            {"spec.nodeName": ""},
            [f'spec.nodeName: Invalid value: "": {SUBDOMAIN}'],
        ),
        (
            "volumeattributesclasses.storage.k8s.io",
            {"driverName": "", "parameters": {}},
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ],
        ),
        (
            "storageclasses.storage.k8s.io",
            {"provisioner": "Disk!"},
            [f'provisioner: Invalid value: "Disk!": {KEY}'],
        ),
        (
            "storageclasses.storage.k8s.io",
            {"allowedTopologies": [{}]},
            ['allowedTopologies[0].matchLabelExpressions: Duplicate value: ""'],
        ),
        (
            "persistentvolumes",
            {"spec.iscsi": {"iqn": "disk", "initiatorName": "me", "targetPortal": ""}},
            [
                "spec.iscsi.targetPortal: Required value",
                'spec.iscsi.iqn: Invalid value: "disk": must be valid format',
                'spec.iscsi.initiatorname: Invalid value: "me": must be valid format',
            ],
        ),
        (
            "persistentvolumes",
            {"spec.iscsi.secretRef": {"namespace": "n"}},
            ["spec.iscsi.secretRef.name: Required value"],
        ),
        (
            "persistentvolumes",
            {
                "spec.iscsi": None,
                "spec.glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""},
            },
            [
                'spec.glusterfs.endpointsNamespace: Invalid value: "": if the endpointnamespace '
                "is set, it must be a valid "
                "namespace name"
            ],
        ),
        (
            "persistentvolumes",
            {
                "spec.iscsi": None,
                "spec.hostPath": {"path": "/a/.."},
                "spec.persistentVolumeReclaimPolicy": "Recycle",
            },
            [
                "spec.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
                "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a "
                "hostPath mount of '/'",
            ],
        ),
    ],
)
def test_storage_object_invalid_is_refused(
    key: str, changes: dict[str, Any], errors: list[str]
) -> None:
    assert refusals(key, changed(good(key), changes)) == errors


@pytest.mark.parametrize(
    ("key", "changes", "errors"),
    [
        (
            "csidrivers.storage.k8s.io",
            {"spec.attachRequired": False, "spec.podInfoOnMount": True},
            ["spec.attachedRequired: Invalid value: false: field is immutable"],
        ),
        (
            "csidrivers.storage.k8s.io",
            {"spec.volumeLifecycleModes": ["Ephemeral"]},
            ['spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable'],
        ),
        ("csinodes.storage.k8s.io", {"spec.drivers.0.allocatable.count": 5}, []),
        (
            "csinodes.storage.k8s.io",
            {"spec.drivers.0.nodeID": "other"},
            [
                'spec.drivers: Invalid value: {"Name":"disk.example.com","NodeID":"other",'
                '"TopologyKeys":["example.com/zone"],'
                '"Allocatable":null}: field is immutable'
            ],
        ),
        (
            "csistoragecapacities.storage.k8s.io",
            {"storageClassName": "slow", "nodeTopology": None, "capacity": "2Gi"},
            [
                "nodeTopology: Invalid value: null: field is immutable",
                'storageClassName: Invalid value: "slow": field is immutable',
            ],
        ),
        (
            "volumeattachments.storage.k8s.io",
            {"spec.nodeName": "node-2"},
            [
                'spec: Invalid value: {"Attacher":"disk.example.com",'
                '"Source":{"PersistentVolumeName":"v",'
                '"InlineVolumeSpec":null},"NodeName":"node-2"}: field is immutable'
            ],
        ),
        (
            "volumeattributesclasses.storage.k8s.io",
            {"driverName": "tape", "parameters.iops": "4"},
            [
                "driverName: Forbidden: updates to driverName are forbidden.",
                "parameters: Forbidden: updates to parameters are forbidden.",
            ],
        ),
    ],
)
def test_storage_update_invalid_is_refused(
    key: str, changes: dict[str, Any], errors: list[str]
) -> None:
    assert update_refusals(key, changed(good(key), changes), good(key)) == errors


def test_capacity_with_deprecated_node_label_is_accepted_with_warning() -> None:
    key = "csistoragecapacities.storage.k8s.io"
    obj = changed(good(key), {"nodeTopology": {"matchLabels": {"beta.kubernetes.io/os": "linux"}}})
    assert warnings(key, obj) == [
        "nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "
        '"kubernetes.io/os" instead'
    ]


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        (
            {
                "capacity": {"storage": "1Gi"},
                "allocatedResources": {"storage": "2Gi"},
                "allocatedResourceStatuses": {"storage": "NodeResizePending"},
            },
            [],
        ),
        (
            {"capacity": {"storage": "-1Gi"}},
            [
                "status.capacity[storage]: Invalid value: -1073741824: must be a valid resource "
                "quantity"
            ],
        ),
        (
            {"allocatedResourceStatuses": {"storage": "Growing"}},
            [
                'status.allocatedResourceStatuses: Unsupported value: "storage": supported '
                'values: "ControllerResizeInProgress", '
                '"ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", '
                '"NodeResizePending"'
            ],
        ),
        (
            {"allocatedResources": {"cpu": "1"}},
            ['status.allocatedResources: Unsupported value: "cpu": supported values: "storage"'],
        ),
    ],
)
def test_claim_status_invalid_is_refused(status: dict[str, Any], errors: list[str]) -> None:
    key = "persistentvolumeclaims"
    claim = created(
        key,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "x"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    found = strategy(key).validate_status_update({**claim, "status": status}, claim)
    assert [str(error) for error in found] == errors
