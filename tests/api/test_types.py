"""Decoding of objects into Go types, and Go's form of values in errors."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kubepy.api.types import DecodeError, decode, decode_as, go_fields, go_order


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def daemon_set(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec}


def test_decode_drops_empty_fields_and_adds_required_ones() -> None:
    obj = daemon_set(
        minReadySeconds=0,
        template={
            "metadata": {"creationTimestamp": None, "labels": {}},
            "spec": {
                "containers": [{"name": "c", "env": [], "tty": False, "image": ""}],
                "nodeSelector": None,
                "terminationGracePeriodSeconds": 0,
                "securityContext": {},
            },
        },
    )
    assert decode(obj).object == {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {
            "selector": None,
            "template": {
                "metadata": {},
                "spec": {
                    "containers": [{"name": "c", "resources": {}}],
                    "terminationGracePeriodSeconds": 0,
                    "securityContext": {},
                },
            },
            "updateStrategy": {},
        },
        "status": {
            "currentNumberScheduled": 0,
            "desiredNumberScheduled": 0,
            "numberMisscheduled": 0,
            "numberReady": 0,
        },
    }


def test_decode_inlined_structs_maps_and_null_items() -> None:
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}, None]
    assert decode(pod(containers=[], volumes=volumes)).object["spec"] == {
        "containers": None,
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": ""}],
    }
    assert decode_as(
        "core/v1.ConfigMap", {"data": {"a": None, "b": "c"}, "binaryData": {"x": "aG\nk="}}
    ).object == {
        "metadata": {},
        "data": {"a": "", "b": "c"},
        "binaryData": {"x": "aGk="},
    }


def test_decode_normalizes_times_and_quantities() -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2026-11-20T10:00:00.5+02:00",
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "status": {"conditions": [condition], "capacity": {"cpu": 0.5}},
    }
    status = decode(node).object["status"]
    assert status["conditions"] == [
        {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": "2026-11-20T08:00:00Z",
            "lastHeartbeatTime": None,
        }
    ]
    assert status["capacity"] == {"cpu": "500m"}
    padded = {"apiVersion": "v1", "kind": "Node", "status": {"capacity": {"cpu": " 2 "}}}
    assert decode(padded).object["status"]["capacity"] == {"cpu": "2"}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "spec": {"renewTime": "2026-01-01T00:00:00.5Z"},
    }
    with pytest.raises(DecodeError, match=r'cannot parse ".5Z" as ".000000"'):
        decode(lease)


def test_decode_returns_unknown_fields_in_key_order() -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"nmae": "x", "name": "d"},
        "spec": {
            "template": {"spec": {"containers": [{"name": "c", "imagePullPolice": "x"}]}},
            "replica": 1,
        },
    }
    decoded = decode(obj)
    assert decoded.unknown_fields == [
        "metadata.nmae", "spec.replica", "spec.template.spec.containers[0].imagePullPolice",
    ]  # fmt: skip
    assert decoded.object["spec"]["template"]["spec"]["containers"] == [
        {"name": "c", "resources": {}}
    ]


def test_decode_field_names_are_case_sensitive() -> None:
    assert decode(pod(Containers=[])).unknown_fields == ["spec.Containers"]


def test_decode_leaves_input_unchanged() -> None:
    obj = pod(containers=[{"name": "c", "args": ["a"]}], nodeSelector={"a": "b"})
    before = copy.deepcopy(obj)
    result = decode(obj).object
    result["spec"]["containers"][0]["args"].append("b")
    result["spec"]["nodeSelector"]["c"] = "d"
    result["metadata"]["labels"] = {}
    assert obj == before


def test_decode_unknown_kind_decodes_metadata_only() -> None:
    boat = {
        "apiVersion": "example.org/v1",
        "kind": "Boat",
        "metadata": {"name": "b", "sail": 1},
        "spec": {"a": []},
    }
    decoded = decode(boat)
    assert decoded.object == {**boat, "metadata": {"name": "b"}}
    assert decoded.unknown_fields == ["metadata.sail"]


def test_decode_keeps_free_form_parts() -> None:
    revision = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {},
        "revision": 1,
        "data": {"spec": {"list": [], "none": None}},
    }
    assert decode(revision).object == revision
    schema = {
        "type": "object",
        "properties": {
            "a": {"items": {"type": "string"}, "additionalProperties": True},
            "b": {"default": [], "enum": ["x", None]},
        },
    }
    assert decode_as("apiextensions/v1.JSONSchemaProps", schema).object == schema


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (
            daemon_set(minReadySeconds="3"),
            "json: cannot unmarshal string into Go struct field "
            "DaemonSetSpec.spec.minReadySeconds of type int32",
        ),
        (
            daemon_set(minReadySeconds=1.5),
            "json: cannot unmarshal number 1.5 into Go struct field "
            "DaemonSetSpec.spec.minReadySeconds of type int32",
        ),
        (
            daemon_set(minReadySeconds=1e20),
            "json: cannot unmarshal number 100000000000000000000 into Go struct field "
            "DaemonSetSpec.spec.minReadySeconds"
            " of type int32",
        ),
        (
            daemon_set(minReadySeconds=2**31),
            "json: cannot unmarshal number 2147483648 into Go struct field "
            "DaemonSetSpec.spec.minReadySeconds"
            " of type int32",
        ),
        (
            daemon_set(updateStrategy={"rollingUpdate": {"maxSurge": True}}),
            "json: cannot unmarshal bool into Go struct field "
            "RollingUpdateDaemonSet.spec.updateStrategy.rollingUpdate"
            ".maxSurge of type int32",
        ),
        (
            pod(containers=3),
            "json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type "
            "[]v1.Container",
        ),
        (
            pod(containers=["c"]),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
            "v1.Container",
        ),
        (
            pod(restartPolicy={}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.restartPolicy of "
            "type v1.RestartPolicy",
        ),
        (
            pod(hostNetwork="yes"),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type "
            "bool",
        ),
        (
            pod(nodeSelector={"a": 1}),
            "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type "
            "string",
        ),
        (
            pod(nodeSelector=[1]),
            "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type "
            "map[string]string",
        ),
        (
            pod(containers=[{"resources": {"limits": {"cpu": "lots"}}}]),
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"a": True}}},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type "
            "string",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "no base64"}},
            "illegal base64 data at input byte 2",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YWJj=GVm"}},
            "illegal base64 data at input byte 4",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YWJjZ"}},
            "illegal base64 data at input byte 4",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YWI=YWI="}},
            "illegal base64 data at input byte 4",
        ),
        (
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"deletionTimestamp": "2026-13-01T00:00:00Z"},
            },
            'parsing time "2026-13-01T00:00:00Z": month out of range',
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"deletionTimestamp": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as '
            '"2006"',
        ),
    ],
)
def test_decode_value_of_wrong_type_reports_upstream_error(
    obj: dict[str, Any], message: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(obj)
    assert str(caught.value) == message


def test_decode_several_wrong_values_reports_first_key() -> None:
    with pytest.raises(DecodeError, match="hostNetwork"):
        decode(pod(restartPolicy=1, hostNetwork=1))


@pytest.mark.parametrize(
    ("type_name", "value", "shown"),
    [
        (
            "apps.DaemonSetUpdateStrategy",
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "Recreate"},
            '{"Type":"Recreate","RollingUpdate":{"MaxUnavailable":1,"MaxSurge":0}}',
        ),
        (
            "apps.DeploymentStrategy",
            {"type": "BlueGreen"},
            '{"Type":"BlueGreen","RollingUpdate":null}',
        ),
        (
            "*apps.RollingUpdateStatefulSetStrategy",
            {"partition": 1},
            '{"Partition":1,"MaxUnavailable":null}',
        ),
        ("*apps.RollingUpdateStatefulSetStrategy", None, "null"),
        ("core.EnvVar", {"name": "A"}, '{"Name":"A","Value":"","ValueFrom":null}'),
        (
            "core.ServicePort",
            {"port": 80, "targetPort": "http"},
            '{"Name":"","Protocol":"","AppProtocol":null,"Port":80,"TargetPort":"http",'
            '"NodePort":0}',
        ),
        (
            "meta/v1.LabelSelector",
            {"matchLabels": {"b": "1", "a": "2"}},
            '{"matchLabels":{"a":"2","b":"1"}}',
        ),
    ],
)
def test_go_fields_have_go_names_and_all_fields(type_name: str, value: Any, shown: str) -> None:
    assert json.dumps(go_fields(type_name, value), separators=(",", ":")) == shown


def test_go_fields_of_pod_spec_move_host_fields_to_security_context() -> None:
    shown = go_fields("core.PodSpec", {"hostNetwork": True, "securityContext": {"runAsUser": 0}})
    assert (shown["SecurityContext"]["HostNetwork"], shown["SecurityContext"]["RunAsUser"]) == (
        True,
        0,
    )


def test_go_order_sorts_keys_as_go_fields() -> None:
    expressions = [{"values": ["x"], "operator": "In", "key": "a"}]
    selector = {"matchExpressions": expressions, "matchLabels": {"b": "1", "a": "2"}}
    assert json.dumps(go_order("*meta/v1.LabelSelector", selector)) == (
        '{"matchLabels": {"a": "2", "b": "1"}, "matchExpressions": [{"key": "a", "operator": '
        '"In", "values": ["x"]}]}'
    )


def test_decode_null_bytes_become_empty() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"a": None, "b": "eHg="},
    }
    assert decode(secret).object["data"] == {"a": "", "b": "eHg="}
