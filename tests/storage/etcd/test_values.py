"""Values: objects as JSON and as Kubernetes' protobuf, in the versions that a control plane
stores."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kubepy.api import protobuf, storedforms
from kubepy.api.meta import Object
from kubepy.api.scheme import BUILT_IN, Resource
from kubepy.storage.etcd.errors import ValueFormatError
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.values import Values
from kubepy.storage.model import Key, to_json

from .full_objects import full_object

JSON = Values(EtcdKeys(), storedforms)
PROTOBUF = Values(EtcdKeys("/a"), storedforms, is_protobuf=True)
LEASE = Key("leases.coordination.k8s.io", "kube-system", "a")
DEFINITION = Key("customresourcedefinitions.apiextensions.k8s.io", "", "crontabs.example.org")
STORED = [resource for resource in BUILT_IN if resource.is_stored]
STORED = [resource for resource in STORED if resource.key != "componentstatuses"]
TESTDATA = [
    Path(folder) for folder in os.environ.get("KUBERNETES_TESTDATA", "").split(":") if folder
]


def key_of(resource: Resource) -> Key:
    return Key(resource.key, "text" if resource.namespaced else "", "full")


def read(values: Values, key: Key, value: bytes) -> Any:
    return json.loads(values.decode(key, value))


def definition(*versions: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.example.org"},
        "spec": {
            "group": "example.org",
            "names": {
                "kind": "CronTab",
                "plural": "crontabs",
                "singular": "crontab",
                "listKind": "CronTabList",
            },
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": list(versions),
            **spec,
        },
        "status": {
            "acceptedNames": {"kind": "CronTab", "plural": "crontabs"},
            "conditions": [],
            "storedVersions": ["v1"],
        },
    }


# --- every kind -----------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", STORED, ids=lambda resource: resource.key)
@pytest.mark.parametrize("values", [JSON, PROTOBUF], ids=["json", "protobuf"])
def test_full_object_survives_the_round_trip(values: Values, resource: Resource) -> None:
    obj = full_object(resource)
    key = key_of(resource)
    text = to_json(obj)
    value = values.encode(key, text)
    assert values.decode(key, value) == text
    assert values.encode(key, values.decode(key, value)) == value
    assert value.startswith(b"k8s\0" if values is PROTOBUF else b"{")


@pytest.mark.parametrize("resource", STORED, ids=lambda resource: resource.key)
def test_both_forms_hold_the_same_object(resource: Resource) -> None:
    key = key_of(resource)
    text = to_json(full_object(resource))
    assert PROTOBUF.decode(key, JSON.encode(key, text)) == text
    assert JSON.decode(key, PROTOBUF.encode(key, text)) == text


def test_objects_are_stored_in_the_version_of_upstream() -> None:
    versions = {
        resource.key: read_stored(JSON.encode(key_of(resource), to_json(full_object(resource))))
        for resource in STORED
    }
    group = "admissionregistration.k8s.io"
    older = {
        f"mutatingadmissionpolicies.{group}": f"{group}/v1beta1",
        f"mutatingadmissionpolicybindings.{group}": f"{group}/v1beta1",
        "customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/v1beta1",
    }
    assert versions == {
        resource.key: older.get(resource.key, f"{resource.group}/{resource.version}".lstrip("/"))
        for resource in STORED
    }
    assert versions["horizontalpodautoscalers.autoscaling"] == "autoscaling/v2"
    for resource in STORED:
        value = PROTOBUF.encode(key_of(resource), to_json(full_object(resource)))
        assert versions[resource.key].encode() in value[:70]


def read_stored(value: bytes) -> str:
    return str(json.loads(value)["apiVersion"])


def upstream_files() -> list[Any]:
    """Return upstream's objects with every field, of each kind in each version that is stored."""
    resources = {(resource.group, resource.kind): resource for resource in STORED}
    files = []
    for file in sorted(file for folder in TESTDATA for file in folder.glob("*.pb")):
        group, version, kind = file.name.removesuffix(".pb").rsplit(".", 2)
        resource = resources.get(("" if group == "core" else group, kind))
        api_version = f"{group}/{version}"
        is_read = kind in storedforms._SAME_FIELDS.get(api_version, ())
        if resource is not None and (resource.version == version or is_read):
            files.append(pytest.param(file, resource, id=file.stem))
    return files


@pytest.mark.skipif(
    not TESTDATA, reason="KUBERNETES_TESTDATA names no folders of Kubernetes' round-trip data"
)
@pytest.mark.parametrize(("file", "resource"), upstream_files())
def test_upstream_bytes_are_read_and_written(file: Path, resource: Resource) -> None:
    value = file.read_bytes()
    stored = storedforms.from_protobuf(value)
    assert storedforms.to_protobuf(stored) == value
    # The data have a resourceVersion and a selfLink, which a server does not store
    del stored["metadata"]["resourceVersion"], stored["metadata"]["selfLink"]
    obj = read(PROTOBUF, key_of(resource), value)
    assert obj == storedforms.from_stored(stored)
    stored_now = storedforms.to_stored(obj)
    if stored_now["apiVersion"] == stored["apiVersion"]:
        assert PROTOBUF.encode(key_of(resource), to_json(obj)) == storedforms.to_protobuf(stored)


# --- JSON -----------------------------------------------------------------------------------------


def test_json_of_a_real_server_is_read() -> None:
    value = (
        b'{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":'
        b'"kube-system","uid":"u","creationTimestamp":"2026-11-20T10:13:48Z","managedFields":[{'
        b'"manager":"kube-controller-manager","operation":"Update","apiVersion":'
        b'"coordination.k8s.io/v1","time":"2026-11-20T10:13:48Z","fieldsType":"FieldsV1",'
        b'"fieldsV1":{"f:spec":{"f:holderIdentity":{}}}}]},"spec":{"holderIdentity":"\\u003cme>"}}\n'
    )
    assert JSON.decode(LEASE, value) == (
        '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"creationTimestamp":'
        '"2026-11-20T10:13:48Z","managedFields":[{"apiVersion":"coordination.k8s.io/v1",'
        '"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:holderIdentity":{}}},"manager":'
        '"kube-controller-manager","operation":"Update","time":"2026-11-20T10:13:48Z"}],"name":"a",'
        '"namespace":"kube-system","uid":"u"},"spec":{"holderIdentity":"<me>"}}'
    )


def test_json_is_written_as_the_text_is() -> None:
    text = '{"apiVersion":"v1","data":{"a":"ä"},"kind":"ConfigMap","metadata":{"name":"a"}}'
    value = JSON.encode(Key("configmaps", "default", "a"), text)
    assert value == text.encode()
    assert JSON.decode(Key("configmaps", "default", "a"), value) == text


def test_custom_resource_of_a_real_server_becomes_the_text_of_this_store() -> None:
    key = Key("crontabs.example.org", "default", "a")
    value = (
        b'{"apiVersion":"example.org/v1","kind":"CronTab","metadata":{"name":"a"},'
        b'"spec":"\\u003c"}\n'
    )
    assert JSON.decode(key, value) == (
        '{"apiVersion":"example.org/v1","kind":"CronTab","metadata":{"name":"a"},"spec":"<"}'
    )


def test_custom_resource_is_json_whatever_is_asked_for() -> None:
    key = Key("crontabs.example.org", "default", "a")
    text = '{"apiVersion":"example.org/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"n":1}}'
    assert PROTOBUF.encode(key, text) == text.encode()
    assert PROTOBUF.decode(key, text.encode()) == text


# --- protobuf, written by hand --------------------------------------------------------------------


def test_protobuf_of_a_real_server_is_read_and_written_byte_by_byte() -> None:
    metadata = (
        b"\x0a\x01a\x12\x00\x1a\x0bkube-system\x22\x00\x2a\x01u\x32\x00\x38\x00\x42\x08\x08"
        b"\xdc\xba\x80\xd8\x06\x10\x00"
    )
    spec = b"\x0a\x02me\x10\x0f"
    raw = b"\x0a" + bytes((len(metadata),)) + metadata + b"\x12" + bytes((len(spec),)) + spec
    type_meta = b"\x0a\x16coordination.k8s.io/v1\x12\x05Lease"
    value = (
        b"k8s\0\x0a"
        + bytes((len(type_meta),))
        + type_meta
        + b"\x12"
        + bytes((len(raw),))
        + raw
        + b"\x1a\x00\x22\x00"
    )
    obj = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "creationTimestamp": "2026-11-20T10:13:48Z",
            "name": "a",
            "namespace": "kube-system",
            "uid": "u",
        },
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    }
    assert read(JSON, LEASE, value) == obj
    assert PROTOBUF.encode(LEASE, to_json(obj)) == value


# --- versions -------------------------------------------------------------------------------------

SCHEMA = {"openAPIV3Schema": {"type": "object"}}


def test_definition_is_stored_in_v1beta1_with_what_versions_have_in_common() -> None:
    column = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    version = {"served": True, "schema": SCHEMA, "additionalPrinterColumns": [column]}
    obj = definition(
        {**version, "name": "v1", "storage": True, "subresources": {"status": {}}},
        {**version, "name": "v2", "storage": False},
    )
    stored = json.loads(JSON.encode(DEFINITION, to_json(obj)))
    spec = stored["spec"]
    assert stored["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert spec["version"] == "v1"
    assert spec["validation"] == SCHEMA
    assert spec["additionalPrinterColumns"] == [
        {"name": "Age", "type": "date", "JSONPath": ".metadata.creationTimestamp"}
    ]
    assert spec["preserveUnknownFields"] is False
    assert spec["versions"] == [
        {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}},
        {"name": "v2", "served": True, "storage": False},
    ]
    for values in (JSON, PROTOBUF):
        assert read(values, DEFINITION, values.encode(DEFINITION, to_json(obj))) == obj


def test_definition_with_a_webhook_survives() -> None:
    webhook = {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.org/convert"},
    }
    obj = definition(
        {"name": "v1", "served": True, "storage": True, "schema": SCHEMA},
        conversion={"strategy": "Webhook", "webhook": webhook},
    )
    value = JSON.encode(DEFINITION, to_json(obj))
    assert json.loads(value)["spec"]["conversion"] == {
        "strategy": "Webhook",
        "conversionReviewVersions": ["v1"],
        "webhookClientConfig": {"url": "https://example.org/convert"},
    }
    assert read(JSON, DEFINITION, value) == obj
    assert read(JSON, DEFINITION, PROTOBUF.encode(DEFINITION, to_json(obj))) == obj


def test_old_definition_gets_the_defaults_of_v1beta1() -> None:
    stored = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.example.org"},
        "spec": {
            "group": "example.org",
            "version": "v1",
            "names": {"kind": "CronTab", "plural": "crontabs"},
            "subresources": {"status": {}},
        },
        "status": {
            "acceptedNames": {"kind": "CronTab", "plural": "crontabs"},
            "conditions": [],
            "storedVersions": ["v1"],
        },
    }
    assert read(JSON, DEFINITION, json.dumps(stored).encode()) == definition(
        {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}},
        preserveUnknownFields=True,
    )


def test_definition_stored_in_v1_is_read() -> None:
    obj = definition({"name": "v1", "served": True, "storage": True, "schema": SCHEMA})
    assert read(JSON, DEFINITION, to_json(obj).encode()) == obj


def test_autoscaler_stored_in_v1_is_read_as_v2() -> None:
    stored = {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "a"},
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
        },
    }
    key = Key("horizontalpodautoscalers.autoscaling", "default", "a")
    obj = read(JSON, key, json.dumps(stored).encode())
    assert obj["apiVersion"] == "autoscaling/v2"
    assert obj["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


def test_claim_without_phase_is_pending() -> None:
    """A control plane does not store the phase of a new claim, and prints it."""
    stored = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "spec": {},
        "status": {},
    }
    key = Key("persistentvolumeclaims", "default", "a")
    obj = read(JSON, key, json.dumps(stored).encode())
    assert obj["status"] == {"phase": "Pending"}
    bound = {**stored, "status": {"phase": "Bound"}}
    assert read(JSON, key, json.dumps(bound).encode())["status"] == {"phase": "Bound"}


def test_job_without_labels_has_those_of_its_template() -> None:
    """A control plane defaults a Job's labels before it labels the template of a new one."""
    template = {"metadata": {"labels": {"job-name": "a"}}, "spec": {}}
    stored = {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {"name": "a"},
        "spec": {"template": template},
    }
    key = Key("jobs.batch", "default", "a")
    obj = read(JSON, key, json.dumps(stored).encode())
    assert obj["metadata"]["labels"] == {"job-name": "a"}
    labelled = {**stored, "metadata": {"name": "a", "labels": {"own": "1"}}}
    obj = read(JSON, key, json.dumps(labelled).encode())
    assert obj["metadata"]["labels"] == {"own": "1"}


@pytest.mark.parametrize(
    ("resource", "kind", "api_version", "read_version"),
    [
        ("ipaddresses.networking.k8s.io", "IPAddress", "networking.k8s.io/v1beta1", "v1"),
        ("resourceslices.resource.k8s.io", "ResourceSlice", "resource.k8s.io/v1beta2", "v1"),
    ],
)
def test_older_version_with_the_same_fields_is_read(
    resource: str, kind: str, api_version: str, read_version: str
) -> None:
    key = Key(resource, "", "full")
    [served] = [served for served in STORED if served.key == resource]
    obj = full_object(served)
    encoded = protobuf.encode(obj, api_version)
    stored = {**obj, "kind": kind, "apiVersion": api_version}
    for value in (encoded, b"\n" + json.dumps(stored).encode()):
        assert read(JSON, key, value) == obj
    assert obj["apiVersion"].endswith(f"/{read_version}")


# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (
            b"k8s:enc:aescbc:v1:key1:\x01\x02",
            "it is encrypted (k8s:enc:aescbc:…), and kubepy has no key",
        ),
        (b"", "it is neither JSON nor Kubernetes' protobuf"),
        (b"\x00\x01", "it is neither JSON nor Kubernetes' protobuf"),
        (b"{}", "it holds no object"),
        (b"k8s\0\x0a\xff", "unexpected EOF"),
        (b'{"kind":"Lease"', "Expecting ',' delimiter: line 1 column 16 (char 15)"),
        (
            b'{"kind":"Lease","apiVersion":"coordination.k8s.io/v2","metadata":{}}',
            "Lease in coordination.k8s.io/v2 is not read",
        ),
    ],
)
def test_value_that_is_no_object_names_its_key(value: bytes, reason: str) -> None:
    with pytest.raises(ValueFormatError) as raised:
        PROTOBUF.decode(LEASE, value)
    assert str(raised.value) == (
        f"the value of /a/registry/leases/kube-system/a cannot be read: {reason}"
    )
