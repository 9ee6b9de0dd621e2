"""Custom resources in several versions: the one that is stored, and conversion webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.scheme import GroupVersionResource
from kubepy.apiserver.client import CRDS, Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import (
    APPLY_PATCH,
    MERGE_PATCH,
    CreateOptions,
    Patch,
    PatchOptions,
)
from kubepy.controlplane.open import make_cluster
from tests.apiserver.test_mutating_policies import bind, patched
from tests.apiserver.webhook_server import Hook, configuration, json_patch, rule, serving
from tests.stores import disagreements

Object = dict[str, Any]
FOOS = "foos.example.com"


def gvr(version: str) -> GroupVersionResource:
    return GroupVersionResource("example.com", version, "foos")


def definition(conversion: Object | None = None, storage: str = "v1") -> Object:
    """Make a definition: ``spec.size`` (v1) is ``spec.length`` in v1alpha1; discovery prefers
    v1."""

    def version(name: str, field: str) -> Object:
        spec = {
            "type": "object",
            "properties": {field: {"type": "integer", "minimum": 1}},
            "required": [field],
        }
        return {
            "name": name,
            "served": True,
            "storage": name == storage,
            "additionalPrinterColumns": [
                {"name": field.title(), "type": "integer", "jsonPath": f".spec.{field}"}
            ],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }

    webhook = {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/convert"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": FOOS},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [version("v1", "size"), version("v1alpha1", "length")],
            "conversion": conversion or {"strategy": "Webhook", "webhook": webhook},
        },
    }


def foo(version: str, name: str = "a", **spec: int) -> Object:
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Foo",
        "metadata": {"name": name},
        "spec": spec,
    }


def converted(request: Object) -> Object:
    """Convert as the definition says."""
    objects = []
    for obj in request["objects"]:
        [value] = obj["spec"].values()
        field = "size" if request["desiredAPIVersion"] == "example.com/v1" else "length"
        objects.append({**obj, "apiVersion": request["desiredAPIVersion"], "spec": {field: value}})
    return {"result": {"status": "Success"}, "convertedObjects": objects}


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving(converted) as server:
        yield server


@pytest.fixture
def cluster(hook: Hook, tmp_path: Path) -> Iterator[LocalCluster]:
    made = make_cluster(tmp_path / "state", {"webhooks": {"default/hook": hook.url}})
    yield made
    assert disagreements(made.store) == []
    made.close()


@pytest.fixture
def client(cluster: LocalCluster) -> Client:
    cluster.client.create(CRDS, definition())
    return cluster.client


def test_object_is_stored_in_storage_version_and_shown_in_that_of_request(
    client: Client, hook: Hook
) -> None:
    made = client.create(gvr("v1alpha1"), foo("v1alpha1", length=3), namespace="default")
    assert (made["apiVersion"], made["spec"]) == ("example.com/v1alpha1", {"length": 3})
    stored = client.get(FOOS, "a", namespace="default")
    assert (stored["apiVersion"], stored["spec"]) == ("example.com/v1", {"size": 3})
    review = hook.reviews[0]
    assert (review["kind"], review["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert list(review["request"]) == ["uid", "desiredAPIVersion", "objects"]
    assert review["request"]["desiredAPIVersion"] == "example.com/v1"
    assert hook.paths[0] == "/convert?timeout=30s"


def test_objects_in_version_of_request_are_not_converted(client: Client, hook: Hook) -> None:
    client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    client.patch(gvr("v1"), "a", Patch(MERGE_PATCH, {"spec": {"size": 4}}), namespace="default")
    client.list(gvr("v1"))
    client.delete(FOOS, "a", namespace="default")
    assert hook.reviews == []


def test_list_is_converted_by_one_call(client: Client, hook: Hook) -> None:
    for index in range(3):
        client.create(gvr("v1"), foo("v1", f"f{index}", size=index + 1), namespace="default")
    listed = client.list(gvr("v1alpha1")).items
    assert [obj["spec"] for obj in listed] == [{"length": 1}, {"length": 2}, {"length": 3}]
    assert [len(request["objects"]) for request in hook.requests] == [3]


def test_patch_in_other_version_changes_what_is_stored(client: Client) -> None:
    client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    patched = client.patch(
        gvr("v1alpha1"), "a", Patch(MERGE_PATCH, {"spec": {"length": 7}}), namespace="default"
    )
    assert (patched["spec"], patched["metadata"]["generation"]) == ({"length": 7}, 2)
    assert client.get(FOOS, "a", namespace="default")["spec"] == {"size": 7}
    applied = client.patch(
        gvr("v1alpha1"),
        "b",
        Patch(APPLY_PATCH, foo("v1alpha1", "b", length=9)),
        namespace="default",
        options=PatchOptions(field_manager="me"),
    )
    assert applied["spec"] == {"length": 9}
    assert client.get(FOOS, "b", namespace="default")["spec"] == {"size": 9}


def test_object_is_validated_by_schema_of_request(client: Client) -> None:
    with pytest.raises(Status) as error:
        client.create(gvr("v1alpha1"), foo("v1alpha1", length=0), namespace="default")
    assert error.value.message == (
        'Foo.example.com "a" is invalid: spec.length: Invalid value: 0: spec.length in body '
        "should be greater than or equal to 1"
    )


def test_version_without_webhook_only_changes_its_name(cluster: LocalCluster, hook: Hook) -> None:
    client = cluster.client
    client.create(CRDS, definition({"strategy": "None"}, storage="v1alpha1"))
    client.create(gvr("v1alpha1"), foo("v1alpha1", length=3), namespace="default")
    assert (
        client.get(gvr("v1"), "a", namespace="default")["spec"] == {}
    )  # pruned: v1 does not know it
    assert client.get(FOOS, "a", namespace="default")["apiVersion"] == "example.com/v1alpha1"
    assert hook.reviews == []


def test_object_keeps_its_version_until_it_is_written_after_storage_moved(
    client: Client, cluster: LocalCluster
) -> None:
    client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    versions = definition(storage="v1alpha1")["spec"]["versions"]
    client.patch(CRDS, FOOS, Patch(MERGE_PATCH, {"spec": {"versions": versions}}))
    assert client.get(FOOS, "a", namespace="default")["apiVersion"] == "example.com/v1"
    client.patch(gvr("v1"), "a", Patch(MERGE_PATCH, {}), namespace="default")
    stored = client.get(FOOS, "a", namespace="default")
    assert (stored["apiVersion"], stored["spec"]) == ("example.com/v1alpha1", {"length": 3})
    assert client.get(CRDS, FOOS)["status"]["storedVersions"] == ["v1", "v1alpha1"]


def test_columns_and_subresources_are_those_of_version(
    client: Client, cluster: LocalCluster
) -> None:
    resource = cluster.scheme.find("foos.v1alpha1.example.com")
    assert resource is not None
    assert [column.name for column in resource.printer_columns] == ["Length"]
    preferred = cluster.scheme.find("foos")
    assert preferred is not None
    assert [column.name for column in preferred.printer_columns] == ["Size"]


def with_metadata(**metadata: Any) -> Any:
    def respond(request: Object) -> Object:
        answer = converted(request)
        answer["convertedObjects"][0]["metadata"] = {
            **answer["convertedObjects"][0]["metadata"],
            **metadata,
        }
        return answer

    return respond


@pytest.mark.parametrize(
    ("respond", "problem"),
    [
        (lambda request: {"result": {"status": "Failure", "message": "no way"}}, "failed: no way"),
        (lambda request: {"result": {}}, "failed: response.result.status was '', not 'Success'"),
        (lambda request: {"result": {"status": "Success"}}, "returned 0 objects, expected 1"),
        (lambda request: {**converted(request), "uid": "x"}, 'failed: expected response.uid="'),
        (
            lambda request: {**converted(request), "convertedObjects": request["objects"]},
            "returned invalid object at index 0: invalid groupVersion (expected "
            "example.com/v1alpha1, received "
            "example.com/v1)",
        ),
        (with_metadata(name="b"), "returned invalid object: must have the same name: a != b"),
        (with_metadata(uid="b"), "returned invalid object: must have the same UID: "),
        (
            with_metadata(labels={"a": "b c"}),
            'returned invalid metadata: metadata.labels: Invalid value: "b c"',
        ),
        (
            with_metadata(labels={"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in "
            "converted object",
        ),
    ],
)
def test_bad_conversion_fails_in_upstreams_words(
    client: Client, hook: Hook, respond: Any, problem: str
) -> None:
    client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    hook.respond = respond
    with pytest.raises(Status) as error:
        client.get(gvr("v1alpha1"), "a", namespace="default")
    assert error.value.message.startswith(
        f"conversion webhook for example.com/v1, Kind=Foo {problem}"
    )
    assert (error.value.code, error.value.reason) == (500, "")


def test_conversion_may_change_labels_but_no_other_metadata(client: Client, hook: Hook) -> None:
    client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    hook.respond = with_metadata(labels={"a": "b"}, generation=99, finalizers=["x/y"])
    metadata = client.get(gvr("v1alpha1"), "a", namespace="default")["metadata"]
    assert (metadata["labels"], metadata["generation"], "finalizers" in metadata) == (
        {"a": "b"},
        1,
        False,
    )


def test_unreachable_webhook_is_named_and_does_not_block_deletion(cluster: LocalCluster) -> None:
    client = cluster.client
    made = definition()
    made["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] = "gone"
    client.create(CRDS, made)
    client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    failed = (
        "conversion webhook for example.com/{}, Kind=Foo failed: Post "
        '"https://gone.default.svc:443/convert?'
        'timeout=30s": service "gone" not found'
    )
    with pytest.raises(Status) as error:
        client.get(gvr("v1alpha1"), "a", namespace="default")
    assert error.value.message == failed.format("v1")
    with pytest.raises(Status) as error:
        client.create(gvr("v1alpha1"), foo("v1alpha1", "b", length=3), namespace="default")
    assert error.value.message == failed.format("v1alpha1")
    client.delete(FOOS, "a", namespace="default")
    client.delete(CRDS, FOOS)


def test_admission_webhook_sees_version_of_its_rule(client: Client, hook: Hook) -> None:
    reviews: list[Object] = []

    def respond(request: Object) -> Object:
        if "objects" in request:
            return converted(request)
        reviews.append(request)
        return {"allowed": True}

    hook.respond = respond
    rules = [rule("foos", group="example.com", version="v1alpha1")]
    client.create(
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        configuration("ValidatingWebhookConfiguration", rules=rules),
    )
    client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    [review] = reviews
    assert (review["kind"]["version"], review["requestKind"]["version"]) == ("v1alpha1", "v1")
    assert review["object"]["spec"] == {"length": 3}


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_mutating_webhook_may_set_any_resource_version(
    version: str, client: Client, hook: Hook
) -> None:
    patch = json_patch({"op": "add", "path": "/metadata/resourceVersion", "value": "abc"})

    def respond(request: Object) -> Object:
        return converted(request) if "objects" in request else patch

    hook.respond = respond
    client.create(
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        configuration(
            "MutatingWebhookConfiguration",
            rules=[rule("foos", group="example.com", version=version)],
        ),
    )
    tried = client.create(
        gvr("v1"), foo("v1", size=3), namespace="default", options=CreateOptions(dry_run=True)
    )
    assert tried["metadata"]["resourceVersion"] == "abc"
    made = client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    assert made["metadata"]["resourceVersion"].isdecimal()
    assert client.get(FOOS, "a", namespace="default") == made


def test_mutating_policy_may_set_any_resource_version(client: Client) -> None:
    operation = 'JSONPatch{op: "add", path: "/metadata/resourceVersion", value: "abc"}'
    bind(client, patched(f"[{operation}]"), resources=("foos",))
    made = client.create(gvr("v1"), foo("v1", size=3), namespace="default")
    assert made["metadata"]["resourceVersion"].isdecimal()
