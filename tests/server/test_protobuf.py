"""Requests and answers in protobuf, as typed clients send and ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api import protobuf
from tests.server.conftest import Answer, Api

PROTOBUF = "application/vnd.kubernetes.protobuf"
TYPED = {"content-type": PROTOBUF, "accept": f"{PROTOBUF},application/json"}
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "web"},
    "data": {"a": "1"},
}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crons.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "crons", "kind": "Cron"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def post(api: Api, path: str, obj: Any, headers: dict[str, str] = TYPED) -> Answer:
    return api.request("POST", path, protobuf.encode(obj), headers)


def object_of(answer: Answer) -> Any:
    assert answer.headers["content-type"] == PROTOBUF, answer.body
    return protobuf.decode(answer.body)


def test_typed_client_creates_reads_lists_and_deletes(api: Api) -> None:
    created = post(api, CONFIG_MAPS, CONFIG_MAP)
    assert created.status == 201
    assert object_of(created)["data"] == {"a": "1"}
    read = api.request("GET", f"{CONFIG_MAPS}/web", headers=TYPED)
    assert object_of(read) == object_of(created)
    listed = object_of(api.request("GET", CONFIG_MAPS, headers=TYPED))
    assert listed["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["web"]
    options = protobuf.encode(
        {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    )
    deleted = api.request("DELETE", f"{CONFIG_MAPS}/web", options, TYPED)
    assert object_of(deleted)["status"] == "Success"


def test_body_that_does_not_say_its_kind_has_that_of_the_path(api: Api) -> None:
    envelope = protobuf.encode({**CONFIG_MAP})
    bare = envelope.replace(b"\n\x0f\n\x02v1\x12\x09ConfigMap", b"\n\x04\n\x00\x12\x00")
    assert bare != envelope
    assert api.request("POST", CONFIG_MAPS, bare, TYPED).status == 201


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            protobuf.MAGIC + b"\xff",
            "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF "
            "(6b387300ff)",
        ),
        (
            b"{}",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does "
            "not appear to be a "
            "protobuf message, expected prefix [107 56 115 0] ({})",
        ),
        (
            protobuf.encode({"apiVersion": "v1", "kind": "Secret"}).replace(
                b"\x12\x14\n\x10", b"\x12\x14\n\x13"
            ),
            'Secret in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
        ),
        (
            protobuf.encode({"apiVersion": "v1", "kind": "Secret"}),
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to '
            "(core.ConfigMap): unknown "
            "conversion",
        ),
    ],
)
def test_rubbish_is_refused_in_upstreams_words(api: Api, body: bytes, message: str) -> None:
    answer = api.request("POST", CONFIG_MAPS, body, TYPED)
    status = object_of(answer)
    assert (answer.status, status["reason"], status["message"]) == (400, "BadRequest", message)


def test_custom_resource_has_only_its_metadata_in_protobuf(api: Api) -> None:
    assert post(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).status == 201
    crons = "/apis/example.org/v1/namespaces/default/crons"
    cron = {"apiVersion": "example.org/v1", "kind": "Cron", "metadata": {"name": "daily"}}
    assert api.request("POST", crons, cron).status == 201
    assert api.request("POST", crons, protobuf.encode(CONFIG_MAP), TYPED).status == 415
    assert api.request("GET", crons, headers={"accept": PROTOBUF}).status == 406
    metadata = {"accept": f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    listed = object_of(api.request("GET", crons, headers=metadata))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["daily"]
    options = protobuf.encode({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"})
    assert api.request("DELETE", f"{crons}/daily", options, TYPED).status == 200


def test_list_of_encoded_objects_is_the_list_encoded_whole(api: Api) -> None:
    for index in range(3):
        assert (
            post(api, CONFIG_MAPS, {**CONFIG_MAP, "metadata": {"name": f"web-{index}"}}).status
            == 201
        )
    answer = api.request("GET", f"{CONFIG_MAPS}?limit=2", headers=TYPED)
    whole = object_of(answer)
    assert (len(whole["items"]), whole["metadata"]["remainingItemCount"]) == (2, 1)
    assert protobuf.encode(whole) == answer.body


def test_watch_sends_frames(api: Api) -> None:
    assert post(api, CONFIG_MAPS, CONFIG_MAP).status == 201
    stream = api.stream(f"{CONFIG_MAPS}?watch=1", headers={"accept": f"{PROTOBUF};stream=watch"})
    assert (stream.status, stream.headers["content-type"]) == (200, f"{PROTOBUF};stream=watch")
    frame = stream.next()
    assert frame is not None
    obj = object_of(api.request("GET", f"{CONFIG_MAPS}/web", headers=TYPED))
    assert frame == protobuf.encode_watch_event("ADDED", protobuf.encode(obj))
    stream.close()


def causes_of(api: Api, path: str, obj: Any) -> list[str]:
    """Return the fields and messages of the refusal that a creation gets, [] if it is none."""
    answer = post(api, f"{path}?dryRun=All", obj)
    return [
        f"{cause['field']}: {cause['message']}"
        for cause in object_of(answer).get("details", {}).get("causes", [])
    ]


@pytest.mark.parametrize(
    ("path", "obj", "causes"),
    [
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            {
                "kind": "Lease",
                "metadata": {"name": "a", "finalizers": ["plain"]},
                "spec": {"leaseDurationSeconds": 1},
            },
            [],
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "A_b", "finalizers": ["plain"]},
                "spec": {},
            },
            [],
        ),
        (
            "/api/v1/namespaces/default/configmaps",
            {"kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["plain"]}},
            [
                'metadata.finalizers[0]: Invalid value: "plain": name is neither a standard '
                "finalizer name nor is it fully "
                "qualified"
            ],
        ),
        (
            "/apis/networking.k8s.io/v1/ipaddresses",
            {
                "kind": "IPAddress",
                "metadata": {"name": "a"},
                "spec": {
                    "parentRef": {"resource": "services", "name": "a", "namespace": "default"}
                },
            },
            [
                'metadata.name: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or '
                "2001:db8::ffff)"
            ],
        ),
        (
            "/apis/networking.k8s.io/v1/ipaddresses",
            {"kind": "IPAddress", "metadata": {"name": "2001:DB8::1"}, "spec": {}},
            [
                'metadata.name: Invalid value: "2001:DB8::1": must be in canonical form '
                '("2001:db8::1")',
                "spec.parentRef: Required value",
            ],
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            {
                "kind": "ClusterRole",
                "metadata": {"name": "a"},
                "aggregationRule": {
                    "clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]
                },
            },
            [
                "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid "
                'value: "Is": not a valid selector '
                "operator",
                "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label "
                "selector.",
            ],
        ),
        (
            "/api/v1/namespaces/default/pods",
            {
                "kind": "Pod",
                "metadata": {"name": "a"},
                "spec": {
                    "securityContext": {"seLinuxChangePolicy": "MountOption"},
                    "containers": [{"name": "a", "image": "a"}],
                },
            },
            [
                'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": '
                'supported values: "Recursive"'
            ],
        ),
    ],
)
def test_refusals_are_those_of_a_real_server(
    api: Api, path: str, obj: Any, causes: list[str]
) -> None:
    api_version = "/".join(path.split("/")[2:4]) if path.startswith("/apis/") else "v1"
    assert causes_of(api, path, {"apiVersion": api_version, **obj}) == causes
