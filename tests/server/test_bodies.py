"""Bodies of requests: what is read, and in which words the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
CRONS = "/apis/example.org/v1/namespaces/default/crons"
JSON, YAML = {"content-type": "application/json"}, {"content-type": "application/yaml"}
UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NO_JSON = f"{UNRECOGNIZED}couldn't get version/kind; json parse error: "
TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
    '"json:\\"kind,omitempty\\"" }'
)


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status, answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", f"{NO_JSON}unexpected end of JSON input (<empty>)"),
        (b"{", f"{NO_JSON}unexpected end of JSON input ({{)"),
        (
            b"rubbish",
            f"{NO_JSON}invalid character 'r' looking for beginning of value "
            f"(7275626269736800)".replace("6800", "68"),
        ),
        (b"[]", f"{NO_JSON}json: cannot unmarshal array into Go value of type {TYPE_META} (5b5d)"),
        (
            b'{"kind": 1}',
            f"{NO_JSON}json: cannot unmarshal number into Go struct field .kind of type string "
            '({"kind": 1})',
        ),
        (
            b'{"metadata": {"name": "a-name-that-is-long"',
            NO_JSON + 'unexpected end of JSON input ({"metadata": {"name": "a-name- ...)',
        ),
        (
            b'{"kind": "Pod"}',
            'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to '
            "(core.ConfigMap): unknown conversion",
        ),
        (
            b'{"apiVersion": "apps/v1", "kind": "Deployment"}',
            'Deployment in version "v1" cannot be handled as a ConfigMap: converting '
            "(v1.Deployment) to "
            "(core.ConfigMap): unknown conversion",
        ),
        (
            b'{"apiVersion": "v2"}',
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is '
            'registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            b'{"data": {"a": 1}}',
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal '
            "number into Go struct field ConfigMap.data of type string",
        ),
    ],
)
def test_body_that_is_no_config_map_is_refused(api: Api, body: bytes, message: str) -> None:
    answer = api.post(MAPS, body, JSON)
    assert refusal(answer) == (400, message)
    assert answer.json()["reason"] == "BadRequest"


def test_missing_content_type_is_json(api: Api) -> None:
    assert api.post(MAPS, b'{"metadata": {"name": "a"}}').status == 201


@pytest.mark.parametrize("content_type", ["text/plain", "application/cbor", "rubbish"])
def test_other_content_types_are_refused(api: Api, content_type: str) -> None:
    assert refusal(api.post(MAPS, b"{}", {"content-type": content_type})) == (
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, "
        "application/yaml, application/vnd.kubernetes.protobuf",
    )


def test_yaml_is_read(api: Api) -> None:
    answer = api.post(
        MAPS, b"metadata:\n  name: a\ndata: {x: 'yes'}\n", {"content-type": "application/yaml; q=1"}
    )
    assert (answer.status, answer.json()["data"]) == (201, {"x": "yes"})
    assert refusal(api.post(MAPS, b"a: b: c", YAML)) == (
        400,
        f"{UNRECOGNIZED}yaml: mapping values are not allowed in this context (613a20623a2063)",
    )


def test_empty_yaml_is_empty_object(api: Api) -> None:
    assert refusal(api.post(MAPS, b"", YAML)) == (
        422,
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    )


@pytest.mark.parametrize("content_type", [JSON, YAML])
def test_repeated_and_unknown_fields_by_field_validation(
    api: Api, content_type: dict[str, str]
) -> None:
    body = b'{"metadata": {"name": "a"},\n"data": {"x": "1",\n"x": "2"}, "other": 1}'
    if content_type is YAML:
        repeated, prefix = 'line 3: key "x" already set in map', "yaml: unmarshal errors:\n  "
    else:
        repeated, prefix = 'duplicate field "data.x"', ""
    warned = api.post(f"{MAPS}?dryRun=All", body, content_type)
    assert (warned.status, warned.json()["data"]) == (201, {"x": "2"})
    assert warned.headers["warning"] == ", ".join(
        f'299 - "{text}"' for text in (repeated.replace('"', '\\"'), 'unknown field \\"other\\"')
    )
    ignored = api.post(f"{MAPS}?dryRun=All&fieldValidation=Ignore", body, content_type)
    assert (ignored.status, "warning" in ignored.headers) == (201, False)
    assert refusal(api.post(f"{MAPS}?fieldValidation=Strict", body, content_type)) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        f'{prefix}{repeated}, unknown field "other"',
    )


def test_deep_nesting_and_huge_numbers_are_refused_or_kept(api: Api) -> None:
    deep = b'{"metadata":{"name":"a"},"data":' + b'{"a":' * 20000 + b"1" + b"}" * 20001
    answer = api.post(MAPS, deep, JSON)
    assert answer.status == 400, answer.body
    medium = b'{"metadata":{"name":"a"},"data":' + b'{"a":' * 300 + b"1" + b"}" * 301
    assert api.post(MAPS, medium, JSON).status == 400
    huge = b'{"metadata":{"name":"a"},"immutable":1e400}'
    assert api.post(MAPS, huge, JSON).status == 400
    assert (
        api.post(MAPS, b'{"metadata":{"name":"a","generation":' + b"9" * 5000 + b"}}", JSON).status
        == 400
    )


def test_text_that_is_no_utf8_is_replaced(api: Api) -> None:
    answer = api.post(MAPS, b'{"metadata":{"name":"a"},"data":{"x":"\xff"}}', JSON)
    assert (answer.status, answer.json()["data"]) == (201, {"x": "\ufffd"})


def test_other_version_of_same_kind_is_refused(api: Api) -> None:
    answer = api.post(
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"},
    )
    assert refusal(answer) == (
        400,
        "the API version in the data (autoscaling/v1) does not match the expected API "
        "version (autoscaling/v2)",
    )


@pytest.fixture
def crons(api: Api) -> Api:
    api.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
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
        },
    )
    return api


@pytest.mark.parametrize(
    ("obj", "status", "message"),
    [
        (
            {"apiVersion": "example.org/v1", "kind": "Other", "metadata": {"name": "a"}},
            422,
            'Other.example.org "a" is invalid: kind: Invalid value: "Other": must be Cron',
        ),
        (
            {"apiVersion": "example.org/v2", "kind": "Cron"},
            400,
            "the API version in the data (example.org/v2) does not match the expected API version "
            "(example.org/v1)",
        ),
        (
            {"apiVersion": "v"},
            400,
            "the object provided is unrecognized (must be of type Cron): Object 'Kind' is missing "
            "in "
            '\'{"apiVersion": "v"}\' ({"apiVersion": "v"})',
        ),
    ],
)
def test_custom_resource_must_say_what_it_is(
    crons: Api, obj: Any, status: int, message: str
) -> None:
    assert refusal(crons.post(CRONS, obj)) == (status, message)


@pytest.mark.parametrize(
    ("path", "content_type", "message"),
    [
        (f"{MAPS}/a", "application/json", "415: Unsupported Media Type"),
        (f"{MAPS}/a", "application/apply-patch+cbor", "415: Unsupported Media Type"),
        (
            f"{CRONS}/a",
            "application/strategic-merge-patch+json",
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, "
            "application/apply-patch+yaml",
        ),
    ],
)
def test_patch_of_other_type_is_refused(
    crons: Api, path: str, content_type: str, message: str
) -> None:
    assert refusal(crons.patch(path, b"{}", content_type)) == (415, message)


@pytest.mark.parametrize(
    ("patch_type", "body", "status", "message"),
    [
        (
            "json-patch",
            b"{}",
            400,
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp",
        ),
        (
            "json-patch",
            b"rubbish",
            400,
            "error decoding patch: invalid character 'r' looking for beginning of value",
        ),
        (
            "json-patch",
            b'[{"op": "remove", "path": "/data/none"}]',
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            "merge-patch",
            b"[]",
            400,
            "error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}",
        ),
        (
            "strategic-merge-patch",
            b"[]",
            400,
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "json-patch",
            b"[" + b",".join([b'{"op": "test"}'] * 10001) + b"]",
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
            "got 10001",
        ),
    ],
)
def test_broken_patches(api: Api, patch_type: str, body: bytes, status: int, message: str) -> None:
    api.post(MAPS, {"metadata": {"name": "a"}})
    assert refusal(api.patch(f"{MAPS}/a", body, f"application/{patch_type}+json")) == (
        status,
        message,
    )


def test_repeated_key_of_patch_is_warned_of(api: Api) -> None:
    api.post(MAPS, {"metadata": {"name": "a"}})
    answer = api.patch(f"{MAPS}/a", b'{"data": {"x": "1", "x": "2"}}')
    assert (answer.status, answer.headers["warning"]) == (
        200,
        '299 - "duplicate field \\"data.x\\""',
    )
    strict = api.patch(f"{MAPS}/a?fieldValidation=Strict", b'{"data": {"x": "1", "x": "2"}}')
    assert strict.status == 422
    assert 'strict decoding error: duplicate field "data.x"' in strict.json()["message"]
