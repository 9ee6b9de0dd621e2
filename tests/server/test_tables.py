"""Tables and metadata of objects, as ``kubectl get`` and informers ask for them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubepy.api.scheme import BUILT_IN, Resource
from kubepy.apiserver.kinds import kind_of
from kubepy.apiserver.printers import print_table
from kubepy.server.tables import column_definitions
from tests.server.conftest import Api

TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"}
PARTIAL_LIST = {"accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
PARTIAL = {"accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
MAPS = "/api/v1/namespaces/default/configmaps"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


@pytest.fixture
def maps(api: Api) -> Api:
    for name in ("a", "b"):
        assert api.post(MAPS, config_map(name, x="1")).status == 201
    return api


def test_list_as_table_has_typed_cells_and_metadata(maps: Api) -> None:
    table = maps.get(MAPS, TABLE).json()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [
        (column["name"], column["type"], column["format"], column["priority"])
        for column in table["columnDefinitions"]
    ] == [("Name", "string", "name", 0), ("Data", "string", "", 0), ("Age", "string", "", 0)]
    assert table["columnDefinitions"][0]["description"].startswith(
        "Name must be unique within a namespace."
    )
    assert [row["cells"][:2] for row in table["rows"]] == [["a", 1], ["b", 1]]
    assert {row["object"]["kind"] for row in table["rows"]} == {"PartialObjectMetadata"}
    assert table["rows"][0]["object"]["metadata"]["managedFields"][0]["manager"] == "unknown"
    assert table["metadata"] == {
        "resourceVersion": maps.get(MAPS).json()["metadata"]["resourceVersion"]
    }


@pytest.mark.parametrize(
    ("include", "kind"),
    [("Object", "ConfigMap"), ("Metadata", "PartialObjectMetadata"), ("None", None)],
)
def test_include_object_chooses_what_rows_hold(maps: Api, include: str, kind: str | None) -> None:
    [row, _] = maps.get(f"{MAPS}?includeObject={include}", TABLE).json()["rows"]
    assert (row["object"] or {}).get("kind") == kind


def test_wrong_include_object_is_refused(maps: Api) -> None:
    answer = maps.get(f"{MAPS}?includeObject=All", TABLE)
    assert (answer.status, answer.json()["message"]) == (
        400,
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": must be '
        "'Metadata', "
        "'Object', 'None', or empty",
    )


def test_object_as_table_has_its_resource_version(maps: Api) -> None:
    table = maps.get(f"{MAPS}/a", TABLE).json()
    assert table["metadata"] == {
        "resourceVersion": table["rows"][0]["object"]["metadata"]["resourceVersion"]
    }


def test_error_is_no_table(api: Api) -> None:
    answer = api.get(f"{MAPS}/none", TABLE)
    assert (answer.status, answer.json()["kind"]) == (404, "Status")


def test_ended_pod_has_condition(api: Api) -> None:
    pods = "/api/v1/namespaces/default/pods"
    api.post(
        pods, {"metadata": {"name": "done"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    api.patch(f"{pods}/done/status", {"status": {"phase": "Succeeded"}})
    [row] = api.get(pods, TABLE).json()["rows"]
    assert row["conditions"] == [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ]


def test_metadata_of_list_and_of_object(maps: Api) -> None:
    listed = maps.get(MAPS, PARTIAL_LIST).json()
    assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == (
        "PartialObjectMetadataList",
        ["a", "b"],
    )
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}
    one = maps.get(f"{MAPS}/a", PARTIAL).json()
    assert (one["kind"], one["apiVersion"], "data" in one) == (
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        False,
    )


@pytest.mark.parametrize(
    ("path", "headers", "message"),
    [
        (
            MAPS,
            PARTIAL,
            "you requested PartialObjectMetadata, but the requested object is a list "
            "(*core.ConfigMapList)",
        ),
        (
            f"{MAPS}/a",
            PARTIAL_LIST,
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            "(*core.ConfigMap)",
        ),
    ],
)
def test_metadata_of_the_other_sort_is_not_acceptable(
    maps: Api, path: str, headers: dict[str, str], message: str
) -> None:
    answer = maps.get(path, headers)
    assert (answer.status, answer.json()["reason"], answer.json()["message"]) == (
        406,
        "NotAcceptable",
        message,
    )


def test_custom_columns_have_their_types(api: Api) -> None:
    api.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "crons.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "names": {"plural": "crons", "kind": "Cron", "listKind": "ManyCrons"},
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
                        "additionalPrinterColumns": [
                            {
                                "name": "Load",
                                "type": "number",
                                "jsonPath": ".load",
                                "description": "How much.",
                            },
                            {
                                "name": "Count",
                                "type": "integer",
                                "jsonPath": ".count",
                                "priority": 1,
                            },
                        ],
                    }
                ],
            },
        },
    )
    crons = "/apis/example.org/v1/namespaces/default/crons"
    made = api.post(
        crons,
        {
            "apiVersion": "example.org/v1",
            "kind": "Cron",
            "metadata": {"name": "c"},
            "load": 0.5,
            "count": 3,
        },
    )
    assert made.status == 201, made.body
    answer = api.get(crons, TABLE)
    assert answer.status == 200, answer.body
    table = answer.json()
    assert table["rows"][0]["cells"] == ["c", 0.5, 3]
    assert table["columnDefinitions"][1:] == [
        {"name": "Load", "type": "number", "format": "", "description": "How much.", "priority": 0},
        {
            "name": "Count",
            "type": "integer",
            "format": "",
            "priority": 1,
            "description": "Custom resource definition column (in JSONPath format): .count",
        },
    ]
    plain = api.get(crons).json()
    assert (plain["kind"], list(plain), plain["metadata"]["continue"]) == (
        "ManyCrons",
        ["apiVersion", "items", "kind", "metadata"],
        "",
    )


@pytest.mark.parametrize(
    "resource",
    [resource for resource in BUILT_IN if "list" in resource.verbs],
    ids=lambda resource: resource.key,
)
def test_columns_are_those_of_printer(resource: Resource) -> None:
    columns = print_table(kind_of(resource).printer(), [], NOW).columns
    definitions = column_definitions(resource, columns)
    assert [(definition["name"], definition["priority"]) for definition in definitions] == [
        (column.name, column.priority) for column in columns
    ]
    name = next(definition for definition in definitions if definition["name"] == "Name")
    assert name["description"].startswith("Name must be unique within a namespace.")


@pytest.mark.parametrize(
    "path",
    [
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        "/api/v1/namespaces/default/pods/p/eviction",
    ],
)
def test_backend_without_tables_is_not_acceptable(api: Api, path: str) -> None:
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    answer = api.post(path, {"spec": {}}, accept)
    assert answer.status == 406
    assert answer.json()["message"] == (
        "only the following media types are accepted: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    assert answer.json()["reason"] == "NotAcceptable"
