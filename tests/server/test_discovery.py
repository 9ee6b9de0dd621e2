"""Discovery: legacy documents, the aggregated ones, custom resources in both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubepy.api import protobuf
from kubepy.server.openapi import Specification
from tests.server.conftest import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
V2, V2_BETA = AGGREGATED.format("v2"), AGGREGATED.format("v2beta1")
CLIENT_GO = f"{V2},{V2_BETA},application/json"


def definition(
    group: str = "sea.example", plural: str = "ships", kind: str = "Ship", **version: Any
) -> Any:
    """Return a CustomResourceDefinition with versions v1, which stores, and v1beta1."""
    schema = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["sails"],
                    "properties": {
                        "sails": {
                            "type": "integer",
                            "minimum": 1,
                            "default": 3,
                            "description": "How many there are.",
                        },
                        "port": {"x-kubernetes-int-or-string": True},
                        "flag": {"type": "string", "nullable": True},
                        "cargo": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        "boat": {
                            "type": "object",
                            "x-kubernetes-embedded-resource": True,
                            "x-kubernetes-preserve-unknown-fields": True,
                        },
                    },
                }
            },
        }
    }
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema, **version}
        for name in ("v1beta1", "v1")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "versions": versions,
            "names": {
                "plural": plural,
                "singular": kind.lower(),
                "kind": kind,
                "shortNames": ["sh"],
                "categories": ["all", "fleet"],
            },
        },
    }


def define(api: Api, **parameters: Any) -> None:
    created = api.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(**parameters)
    )
    assert created.status == 201, created.body


def resources(api: Api, path: str) -> dict[str, Any]:
    return {entry["name"]: entry for entry in api.get(path).json()["resources"]}


# --- legacy ---------------------------------------------------------------------------------------


def test_api_names_the_version_and_the_servers_address(api: Api) -> None:
    answer = api.get("/api", {"host": "10.0.0.1:6443"})
    assert answer.json() == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1:6443"}
        ],
    }
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-cache, private"


def test_groups_are_in_the_order_of_a_real_server_with_preferred_versions(api: Api) -> None:
    groups = api.get("/apis").json()["groups"]
    names = [group["name"] for group in groups]
    assert names[:4] == ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]
    assert names[-2:] == ["flowcontrol.apiserver.k8s.io", "metrics.k8s.io"]
    autoscaling = next(group for group in groups if group["name"] == "autoscaling")
    assert autoscaling == {
        "name": "autoscaling",
        "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
        "versions": [
            {"groupVersion": "autoscaling/v2", "version": "v2"},
            {"groupVersion": "autoscaling/v1", "version": "v1"},
        ],
    }
    assert api.get("/apis/autoscaling/").json() == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        **autoscaling,
    }


def test_core_resources_have_the_subresources_of_a_real_server(api: Api) -> None:
    listed = resources(api, "/api/v1")
    assert [name for name in listed if name.startswith("pods")] == [
        "pods",
        "pods/attach",
        "pods/binding",
        "pods/ephemeralcontainers",
        "pods/eviction",
        "pods/exec",
        "pods/log",
        "pods/portforward",
        "pods/proxy",
        "pods/resize",
        "pods/status",
    ]
    assert listed["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="
    assert listed["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }
    assert listed["nodes/proxy"]["kind"] == "NodeProxyOptions"
    assert listed["namespaces/finalize"]["verbs"] == ["update"]
    assert "deletecollection" not in listed["namespaces"]["verbs"]
    assert "apiVersion" not in api.get("/api/v1").json()


@pytest.mark.parametrize(
    ("name", "path", "digest"),
    [
        ("customresourcedefinitions", "/apis/apiextensions.k8s.io/v1", "jfWCUB31mvA="),
        ("mutatingadmissionpolicies", "/apis/admissionregistration.k8s.io/v1", "LYmCf+UMVdg="),
        ("horizontalpodautoscalers", "/apis/autoscaling/v1", "qwQve8ut294="),
        ("events", "/apis/events.k8s.io/v1", "r2yiGXH7wu8="),
        ("selfsubjectreviews", "/apis/authentication.k8s.io/v1", None),
    ],
)
def test_storage_version_hash_is_that_of_upstream(
    api: Api, name: str, path: str, digest: str | None
) -> None:
    assert resources(api, path)[name].get("storageVersionHash") == digest


def test_documents_come_as_yaml_and_protobuf_too(api: Api) -> None:
    assert api.get("/apis/apps", {"accept": "application/yaml"}).body.startswith(
        b"apiVersion: v1\nkind: APIGroup\n"
    )
    assert api.get("/apis", {"accept": "application/vnd.kubernetes.protobuf"}).body.startswith(
        b"k8s\0"
    )
    assert api.get("/apis", {"accept": "text/csv"}).status == 406
    assert (
        api.get("/api/v1", {"accept": "text/csv"})
        .json()["message"]
        .startswith("406: Not Acceptable\n")
    )
    assert api.get("/version", {"accept": "application/yaml"}).status == 406


@pytest.mark.parametrize(
    ("path", "is_text"),
    [
        ("/apis/nope", True),
        ("/apis/nope/v1", True),
        ("/apis/apps/v2", False),
        ("/api/v2", False),
        ("/nope", True),
    ],
)
def test_unknown_paths_are_not_found(api: Api, path: str, *, is_text: bool) -> None:
    answer = api.get(path)
    assert answer.status == 404
    assert (answer.body == b"404 page not found\n") == is_text


def test_other_methods_are_not_allowed_on_routes(api: Api) -> None:
    assert api.post("/api", {}).status == 405
    assert api.post("/apis", {}).status == 200
    assert api.delete("/apis/apps/v1").json()["reason"] == "MethodNotAllowed"


# --- aggregated -----------------------------------------------------------------------------------


def test_aggregated_documents_answer_client_go_with_etag_and_304(api: Api) -> None:
    answer = api.get("/apis", {"accept": CLIENT_GO})
    assert answer.headers["content-type"] == V2
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["cache-control"] == "public"
    document = answer.json()
    assert (document["kind"], document["apiVersion"]) == (
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )
    assert document["items"][1]["metadata"] == {"name": "apps"}
    assert document["items"][1]["versions"][0]["freshness"] == "Current"
    unchanged = api.get("/apis", {"accept": CLIENT_GO, "if-none-match": answer.headers["etag"]})
    assert (unchanged.status, unchanged.body) == (304, b"")
    core = api.get("/api", {"accept": CLIENT_GO}).json()
    assert [item["metadata"] for item in core["items"]] == [{}]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (f"{V2_BETA},{V2}", V2_BETA),
        (f"{V2};q=0.5,application/json", V2),
        (f"application/json,{V2_BETA}", V2_BETA),
        (f"application/json;q=0.8,{V2};q=0.9", V2),
        (f"{AGGREGATED.format('v3')},application/json", "application/json"),
        (f"{V2};profile=nopeer", V2),
        ("*/*", "application/json"),
        ("", "application/json"),
    ],
)
def test_accept_decides_between_aggregated_and_legacy(
    api: Api, accept: str, content_type: str
) -> None:
    assert api.get("/apis", {"accept": accept}).headers["content-type"] == content_type


def test_aggregated_subresources_have_kinds_and_verbs(api: Api) -> None:
    [core] = api.get("/api", {"accept": V2}).json()["items"]
    pods = next(entry for entry in core["versions"][0]["resources"] if entry["resource"] == "pods")
    assert pods["responseKind"] == {"group": "", "version": "", "kind": "Pod"}
    assert (pods["scope"], pods["singularResource"], pods["shortNames"]) == (
        "Namespaced",
        "pod",
        ["po"],
    )
    eviction = next(entry for entry in pods["subresources"] if entry["subresource"] == "eviction")
    assert eviction == {
        "subresource": "eviction",
        "verbs": ["create"],
        "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"},
    }


# --- custom resources -----------------------------------------------------------------------------


def test_custom_resources_appear_with_all_served_versions_and_go(api: Api) -> None:
    before = api.get("/apis", {"accept": V2})
    define(
        api,
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.sails", "statusReplicasPath": ".status.sails"},
        },
    )
    group = api.get("/apis/sea.example").json()
    assert [version["version"] for version in group["versions"]] == ["v1", "v1beta1"]
    listed = resources(api, "/apis/sea.example/v1beta1")
    assert list(listed) == ["ships", "ships/status", "ships/scale"]
    assert listed["ships"]["verbs"] == [
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "create",
        "update",
        "watch",
    ]
    assert listed["ships"]["categories"] == ["all", "fleet"]
    assert listed["ships/scale"]["kind"] == "Scale"
    after = api.get("/apis", {"accept": V2})
    assert after.headers["etag"] != before.headers["etag"]
    own = next(item for item in after.json()["items"] if item["metadata"]["name"] == "sea.example")
    assert own["versions"][1]["resources"][0]["responseKind"] == {
        "group": "sea.example",
        "version": "v1beta1",
        "kind": "Ship",
    }
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ships.sea.example"
    api.delete(place)
    assert resources(api, "/apis/sea.example/v1")["ships"]["verbs"] == [
        "delete",
        "deletecollection",
        "get",
        "list",
        "watch",
    ]
    api.patch(
        place, {"metadata": {"finalizers": None}}
    )  # as the controller does that deletes the objects
    assert api.get("/apis/sea.example").status == 404
    assert api.get("/apis", {"accept": V2}).headers["etag"] == before.headers["etag"]


def test_definition_that_another_process_makes_is_discovered(api: Api) -> None:
    assert api.get("/apis/sea.example/v1").status == 404
    api.cluster.client.create("customresourcedefinitions.apiextensions.k8s.io", definition())
    assert api.get("/apis/sea.example/v1").status == 200


# --- OpenAPI --------------------------------------------------------------------------------------


def openapi(api: Api, path: str) -> Any:
    return api.get(f"/openapi/v3/{path}").json()


def test_openapi_index_leads_to_documents_that_can_be_cached_for_ever(api: Api) -> None:
    paths = api.get("/openapi/v3").json()["paths"]
    assert {
        "api",
        "api/v1",
        "apis",
        "apis/apps",
        "apis/apps/v1",
        "version",
        "openid/v1/jwks",
    } <= set(paths)
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    answer = api.get(url)
    assert answer.headers["cache-control"] == "public, immutable"
    assert answer.headers["etag"].strip('"') == url.partition("hash=")[2]
    assert api.get(url, {"if-none-match": answer.headers["etag"]}).status == 304
    moved = api.get("/openapi/v3/apis/apps/v1?hash=OLD")
    assert (moved.status, moved.headers["location"]) == (301, url)
    assert api.get("/openapi/v3/apis/nope/v1").status == 404


def test_openapi_document_has_operations_types_and_what_merges_them(api: Api) -> None:
    document = openapi(api, "apis/apps/v1")
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = document["paths"][path]["patch"]
    assert patch["operationId"] == "patchAppsV1NamespacedDeployment"
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    schemas = document["components"]["schemas"]
    template = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert template["x-kubernetes-patch-merge-key"] == "name"
    assert template["x-kubernetes-list-map-keys"] == ["name"]
    port = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]
    assert (port["default"], port["enum"]) == ("TCP", ["SCTP", "TCP", "UDP"])
    assert "description" in port


@pytest.mark.parametrize("name", ["", "apis/sea.example/v1"])
def test_every_reference_of_an_openapi_document_is_defined(api: Api, name: str) -> None:
    define(api)
    for path in [name] if name else api.get("/openapi/v3").json()["paths"]:
        text = api.get(f"/openapi/v3/{path}").body.decode()
        document = json.loads(text)
        defined = document["components"]["schemas"]
        used = {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}
        assert used == set(defined), path
    v2 = api.get("/openapi/v2").body.decode()
    defined = json.loads(v2)
    for kind in ("definitions", "parameters"):
        used = {part.partition('"')[0] for part in v2.split(f'"#/{kind}/')[1:]}
        assert used <= set(defined[kind])


def test_openapi_of_custom_resources_comes_from_their_schemas(api: Api) -> None:
    define(api, selectableFields=[{"jsonPath": ".spec.flag"}])
    document = openapi(api, "apis/sea.example/v1beta1")
    ship = document["components"]["schemas"]["example.sea.v1beta1.Ship"]
    assert ship["x-kubernetes-group-version-kind"] == [
        {"group": "sea.example", "version": "v1beta1", "kind": "Ship"}
    ]
    assert ship["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.flag"}]
    assert set(ship["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    spec = ship["properties"]["spec"]["properties"]
    assert spec["sails"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "How many there are.",
    }
    assert spec["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert spec["boat"]["required"] == ["kind", "apiVersion"]
    patch = document["paths"]["/apis/sea.example/v1beta1/namespaces/{namespace}/ships/{name}"][
        "patch"
    ]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    old = api.get("/openapi/v2").json()["definitions"]["example.sea.v1.Ship"]["properties"]["spec"][
        "properties"
    ]
    assert old["sails"] == {"type": "integer", "minimum": 1, "description": "How many there are."}
    assert "type" not in old["flag"]
    assert "type" not in old["cargo"]


def test_openapi_changes_with_a_definition(api: Api) -> None:
    define(api)
    before = api.get("/openapi/v3").json()["paths"]
    changed = definition()
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["hull"] = {
        "type": "string"
    }
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ships.sea.example"
    assert api.patch(place, {"spec": {"versions": changed["spec"]["versions"]}}).status == 200
    after = api.get("/openapi/v3").json()["paths"]
    assert before["apis/sea.example/v1"] != after["apis/sea.example/v1"]
    assert before["apis/apps/v1"] == after["apis/apps/v1"]
    assert (
        "hull"
        in openapi(api, "apis/sea.example/v1beta1")["components"]["schemas"][
            "example.sea.v1beta1.Ship"
        ]["properties"]
    )


@pytest.mark.parametrize(("path", "version"), [("/openapi/v2", "v2"), ("/openapi/v3/api/v1", "v3")])
@pytest.mark.parametrize("separator", [".", "@"])
def test_openapi_comes_as_protobuf(api: Api, path: str, version: str, separator: str) -> None:
    accept = f"application/com.github.proto-openapi.spec.{version}{separator}v1.0+protobuf"
    answer = api.get(path, {"accept": accept})
    assert (
        answer.headers["content-type"]
        == f"application/com.github.proto-openapi.spec.{version}.v1.0+protobuf"
    )
    assert answer.body.startswith(b"\n\x032.0" if version == "v2" else b"\n\x053.0.0")
    assert api.get(path, {"accept": "application/yaml"}).status == 406


def test_specification_without_descriptions_is_complete(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubepy.api.schema import definitions

    monkeypatch.setattr(
        definitions, "installed_descriptions", lambda: definitions.Descriptions(None)
    )
    monkeypatch.setattr(definitions, "schemas_folder", lambda: None)
    pod = openapi(api, "api/v1")["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert pod["properties"]["spec"] == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}],
        "default": {},
    }
    assert Specification.__doc__


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1"])
def test_document_of_discovery_in_protobuf_says_what_its_json_says(api: Api, path: str) -> None:
    host = {
        "host": "127.0.0.1:6443"
    }  # without it /api has an empty list, of which protobuf has none
    answer = api.get(path, {"accept": "application/vnd.kubernetes.protobuf", **host})
    assert (answer.status, answer.headers["content-type"]) == (
        200,
        "application/vnd.kubernetes.protobuf",
    )
    document = api.get(path, host).json()
    # JSON leaves the version of two kinds out; who reads protobuf takes the one that it expects.
    assert protobuf.decode(answer.body, "v1") == {"apiVersion": "v1", **document}
