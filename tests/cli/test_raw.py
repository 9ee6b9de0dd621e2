"""``kubepy get --raw``: the response of an API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Done, Kubepy

NOT_FOUND = "Error from server (NotFound): the server could not find the requested resource\n"


def read(kubepy: Kubepy, path: str) -> Any:
    done = kubepy("get", "--raw", path)
    assert (done.err, done.status) == ("", 0)
    return json.loads(done.out)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_cluster_is_well(kubepy: Kubepy, path: str) -> None:
    assert kubepy("get", "--raw", path) == Done("ok", "", 0)


def test_object_stands_in_order_of_its_type(paint: Kubepy) -> None:
    body = paint("get", "--raw", "/api/v1/namespaces/default/configmaps/paint").out
    assert body.startswith(
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"paint","namespace":"default",'
    )
    assert body.endswith(
        '"manager":"kubectl-create","operation":"Update","apiVersion":"v1","time":"'
        + json.loads(body)["metadata"]["creationTimestamp"]
        + '","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:colour":{}}}}]},'
        '"data":{"colour":"red"}}\n'
    )


def test_list_tells_its_kind_once(paint: Kubepy) -> None:
    found = read(paint, "/api/v1/namespaces/default/configmaps")
    assert list(found) == ["kind", "apiVersion", "metadata", "items"]
    assert (found["kind"], [list(one) for one in found["items"]]) == (
        "ConfigMapList",
        [["metadata", "data"]],
    )


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/api/v1/configmaps", ["paint", "more"]),
        ("/api/v1/namespaces/kube-system/configmaps", ["more"]),
        ("/api/v1/configmaps?fieldSelector=metadata.name%3Dpaint", ["paint"]),
        ("/api/v1/configmaps?labelSelector=a", []),
        ("/api/v1/namespaces", ["default", "kube-node-lease", "kube-public", "kube-system"]),
    ],
)
def test_lists(paint: Kubepy, path: str, names: list[str]) -> None:
    paint("create", "cm", "more", "-n", "kube-system")
    assert [one["metadata"]["name"] for one in read(paint, path)["items"]] == names


def test_subresources(kubepy: Kubepy) -> None:
    kubepy("create", "deployment", "web", "--image=nginx", "--replicas=3")
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    assert read(kubepy, f"{path}/scale")["spec"] == {"replicas": 3}
    assert read(kubepy, f"{path}/status")["kind"] == "Deployment"
    assert kubepy("get", "--raw", f"{path}/eviction") == Done("", NOT_FOUND, 1)


def test_discovery(kubepy: Kubepy) -> None:
    assert read(kubepy, "/api") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    }
    assert "apps" in [one["name"] for one in read(kubepy, "/apis")["groups"]]
    assert read(kubepy, "/apis/apps") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
    }
    resources = {one["name"]: one for one in read(kubepy, "/api/v1")["resources"]}
    assert (resources["pods"]["shortNames"], resources["pods"]["storageVersionHash"]) == (
        ["po"],
        "xPOwRZ+Yhw8=",
    )
    assert "storageVersionHash" not in resources["bindings"]
    assert resources["replicationcontrollers/scale"] == {
        "name": "replicationcontrollers/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }


def test_index_of_openapi_leads_to_its_documents(kubepy: Kubepy) -> None:
    paths = read(kubepy, "/openapi/v3")["paths"]
    url = paths["api/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/api/v1?hash=")
    assert read(kubepy, url)["openapi"] == "3.0.0"
    moved = kubepy("get", "--raw", "/openapi/v3/api/v1?hash=of-before")
    assert moved == Done("", "", 0)


def test_version_is_one_that_kubepy_keeps_to(kubepy: Kubepy) -> None:
    assert (
        read(kubepy, "/version") == json.loads(kubepy("version", "-o", "json").out)["serverVersion"]
    )


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/apis/nope",
        "/apis/apps/v2",
        "/api/v1/nope",
        "/api/v1/pods/a",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/pods/a/b/c",
    ],
)
def test_paths_that_lead_nowhere(kubepy: Kubepy, path: str) -> None:
    assert kubepy("get", "--raw", path) == Done("", NOT_FOUND, 1)


def test_object_that_is_not_there(kubepy: Kubepy) -> None:
    assert kubepy("get", "--raw", "/api/v1/namespaces/default/pods/a").err == (
        'Error from server (NotFound): pods "a" not found\n'
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("cm", "--raw=/api"), "arguments may not be passed when --raw is specified"),
        (("--raw=api",), '--raw must be a valid URL path: parse "api": invalid URI for request'),
        (("--raw=/api", "-o", "json"), "--raw and --output are mutually exclusive"),
        (
            ("--raw=/api", "-w"),
            "--raw may not be specified with other flags that filter the server request or alter "
            "the output",
        ),
    ],
)
def test_raw_path_excludes_other_flags(kubepy: Kubepy, words: tuple[str, ...], error: str) -> None:
    assert kubepy("get", *words) == Done("", f"error: {error}\n", 1)
