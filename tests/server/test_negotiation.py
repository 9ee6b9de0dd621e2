"""The representations that clients ask for, and the forms of errors."""

from __future__ import annotations

import json

import pytest

from kubepy.api import errors
from kubepy.server.messages import HttpRequest
from kubepy.server.negotiation import (
    GroupVersionKind,
    MediaType,
    Restrictions,
    negotiate,
    parse_accept,
)
from kubepy.storage import yaml
from tests.server.conftest import Api

NAMESPACES = "/api/v1/namespaces"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
SUPPORTED = (
    "only the following media types are accepted: application/json, application/yaml, " + PROTOBUF
)


def request(accept: str, query: dict[str, list[str]] | None = None, **headers: str) -> HttpRequest:
    return HttpRequest("GET", "/", query or {}, {"accept": accept, **headers})


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("a/b;q=0.5, c/d", ["c/d", "a/b"]),
        ("*/*, a/b", ["a/b", "*/*"]),
        ("a/*, a/b", ["a/b", "a/*"]),
        ("*/*;q=0.9, a/*;q=0.9, a/b;q=0.8", ["a/b", "a/*", "*/*"]),
        ("*, nothing, a/b/c, x/y;q=rubbish", ["x/y", "*/*"]),
        ("", []),
    ],
)
def test_accept_is_ordered_as_goautoneg_does(header: str, order: list[str]) -> None:
    assert [f"{clause.type}/{clause.subtype}" for clause in parse_accept(header)] == order


TABLE = f"{JSON};as=Table;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", MediaType()),
        ("*/*", MediaType()),
        ("application/*", MediaType()),
        (f"{YAML},{JSON}", MediaType(YAML)),
        (f"{PROTOBUF},{JSON}", MediaType(PROTOBUF)),
        (f"{JSON};pretty=1", MediaType(pretty=True)),
        (f"{JSON};stream=watch", MediaType(stream="watch")),
        (f"{YAML};stream=watch,{JSON};stream=watch", MediaType(stream="watch")),
        (TABLE, MediaType(target=GroupVersionKind("meta.k8s.io", "v1", "Table"))),
        (f"{JSON};as=Table;g=meta.k8s.io;v=v2,{JSON}", MediaType()),
        (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,{JSON}", MediaType()),
        (
            f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}",
            MediaType(
                PROTOBUF, target=GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadata")
            ),
        ),
        (f"application/cbor,{JSON};q=0.1", MediaType()),
    ],
)
def test_first_representation_that_is_there_is_chosen(accept: str, media: MediaType) -> None:
    assert negotiate(request(accept), Restrictions(transforms=True)) == media


@pytest.mark.parametrize(
    "accept", ["text/html", f"{JSON};as=Other;g=meta.k8s.io;v=v1", f"{JSON};stream=other"]
)
def test_nothing_that_fits_is_not_acceptable(accept: str) -> None:
    with pytest.raises(errors.NotAcceptable, match=SUPPORTED):
        negotiate(request(accept), Restrictions(transforms=True))


def test_custom_resources_are_no_protobuf() -> None:
    assert negotiate(request(f"{PROTOBUF},{YAML}"), Restrictions(protobuf=False)).media_type == YAML


@pytest.mark.parametrize(
    ("query", "user_agent", "pretty"),
    [
        ({}, "curl/8", True),
        ({"pretty": ["false"]}, "curl/8", False),
        ({"pretty": ["true"]}, "x", True),
        ({"pretty": ["rubbish"]}, "curl/8", False),
        ({}, "kubectl/v1.36", False),
    ],
)
def test_answers_to_people_are_indented(
    query: dict[str, list[str]], user_agent: str, pretty: bool
) -> None:
    assert (
        negotiate(request("", query, **{"user-agent": user_agent}), Restrictions()).pretty is pretty
    )


def test_object_as_json_yaml_and_indented(api: Api) -> None:
    plain = api.get(f"{NAMESPACES}/default")
    assert (plain.headers["content-type"], plain.body[-2:]) == (JSON, b"}\n")
    as_yaml = api.get(f"{NAMESPACES}/default", {"accept": YAML})
    assert as_yaml.headers["content-type"] == YAML
    [document] = yaml.load_all(as_yaml.body.decode())
    assert document.object == plain.json()
    indented = api.get(f"{NAMESPACES}/default?pretty=true")
    assert (indented.body.splitlines()[1], indented.json()) == (
        b'  "kind": "Namespace",',
        plain.json(),
    )
    assert not indented.body.endswith(b"\n")


def test_unacceptable_answer_of_built_in_kind_names_representations(api: Api) -> None:
    answer = api.get(f"{NAMESPACES}/default", {"accept": "text/html"})
    assert (answer.status, answer.headers["content-type"]) == (406, JSON)
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "NotAcceptable",
        "message": f"406: Not Acceptable\n\nAvailable representations: {JSON}, {YAML}, {PROTOBUF}",
        "details": {},
        "code": 406,
    }
    transformed = api.get(
        f"{NAMESPACES}/default", {"accept": f"{JSON};as=Other;g=meta.k8s.io;v=v1"}
    )
    assert (transformed.status, transformed.json()["message"]) == (406, SUPPORTED)


def test_error_is_sent_as_client_accepts(api: Api) -> None:
    answer = api.get(f"{NAMESPACES}/none", {"accept": YAML})
    assert (answer.status, answer.headers["content-type"]) == (404, YAML)
    [document] = yaml.load_all(answer.body.decode())
    assert document.object["message"] == 'namespaces "none" not found'


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/things",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/x",
        "/api/v1/namespaces/default/pods/x/things",
        "/apis/apps/v1/things",
        "/apis/apps/v7/deployments",
        "/api/v7/pods",
        "/api/v1/namespaces/default/pods/x/status/y",
    ],
)
def test_unknown_resource_of_served_version_is_status(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.status == 404
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "details": {},
        "code": 404,
        "message": "the server could not find the requested resource",
        "reason": "NotFound",
    }


@pytest.mark.parametrize("path", ["/apis/example.org/v1/things", "/nope"])
def test_unknown_path_is_text(api: Api, path: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.body, answer.headers["content-type"]) == (
        404,
        b"404 page not found\n",
        "text/plain; charset=utf-8",
    )


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/api/v1/pods", "GET"),
        ("PUT", "/api/v1/namespaces/default/pods", "GET, POST, DELETE"),
        ("POST", "/api/v1/namespaces/default/pods/x", "GET, PUT, PATCH, DELETE"),
        ("DELETE", "/api/v1/namespaces/default/pods/x/status", "GET, PUT, PATCH"),
        ("DELETE", "/api/v1/namespaces", "GET, POST"),
        ("HEAD", "/api/v1/namespaces/default", "GET, PUT, PATCH, DELETE"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST"),
    ],
)
def test_wrong_method_is_refused_with_right_ones(
    api: Api, method: str, path: str, allow: str
) -> None:
    answer = api.request(method, path)
    assert (answer.status, answer.headers.get("allow")) == (405, allow)
    assert (
        json.loads(answer.body)["message"]
        == "the server does not allow this method on the requested resource"
    )
