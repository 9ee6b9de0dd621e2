from __future__ import annotations

import re
from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import clone
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Patch,
    PatchOptions,
)

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@pytest.fixture
def made(client: Client) -> dict[str, Any]:
    obj = {"metadata": {"name": "cm", "labels": {"a": "b"}}, "data": {"k": "v"}}
    return client.create("configmaps", obj, namespace="default")


def daemon_set(image: str = "c:1") -> dict[str, Any]:
    return {
        "metadata": {"name": "ds"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
        "status": {"numberReady": 9},
    }


def update(client: Client, obj: dict[str, Any], **options: Any) -> dict[str, Any]:
    return client.update("configmaps", obj, namespace="default", **options)


def patch(
    client: Client,
    change: Any,
    patch_type: str = MERGE_PATCH,
    subresource: str = "",
    **options: Any,
) -> dict[str, Any]:
    return client.patch(
        "configmaps",
        "cm",
        Patch(patch_type, change),
        namespace="default",
        subresource=subresource,
        options=PatchOptions(**options),
    )


def test_update_replaces_all_but_what_server_keeps(client: Client, made: dict[str, Any]) -> None:
    new = update(
        client,
        {"metadata": {"name": "cm", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}},
    )
    kept = {key: made["metadata"][key] for key in ("creationTimestamp", "name", "namespace", "uid")}
    assert new == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**kept, "resourceVersion": new["metadata"]["resourceVersion"]},
    }
    assert int(new["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_update_that_changes_nothing_writes_nothing(client: Client, made: dict[str, Any]) -> None:
    assert update(client, clone(made)) == made
    assert patch(client, {"data": {"k": "v"}}) == made
    assert client.revision() == int(made["metadata"]["resourceVersion"])


def test_self_link_is_kept_nowhere(client: Client, made: dict[str, Any]) -> None:
    updated = client.update(
        "configmaps",
        {**made, "metadata": {**made["metadata"], "selfLink": "/x"}},
        namespace="default",
    )
    assert updated["metadata"] == made["metadata"]


def test_namespace_is_finalized_with_good_names_only(client: Client) -> None:
    namespace = client.get("namespaces", "default")
    with pytest.raises(Status) as error:
        client.update(
            "namespaces", {**namespace, "spec": {"finalizers": ["hold"]}}, subresource="finalize"
        )
    assert error.value.message == (
        'Namespace "default" is invalid: spec.finalizers[0]: Invalid value: "hold": name is '
        "neither a standard "
        "finalizer name nor is it fully qualified"
    )
    held = client.update(
        "namespaces", {**namespace, "spec": {"finalizers": ["a.io/hold"]}}, subresource="finalize"
    )
    assert held["spec"] == {"finalizers": ["a.io/hold"]}


def test_update_of_older_version_is_conflict(client: Client, made: dict[str, Any]) -> None:
    update(client, {**clone(made), "data": {"k": "new"}})
    with pytest.raises(Status) as caught:
        update(client, made)
    assert (caught.value.reason, str(caught.value)) == (
        "Conflict",
        f'Operation cannot be fulfilled on configmaps "cm": {MODIFIED}',
    )


def test_version_zero_stands_for_any_version_as_no_version_does(
    client: Client, made: dict[str, Any]
) -> None:
    unversioned = {**clone(made), "data": {"k": "new"}}
    unversioned["metadata"]["resourceVersion"] = "0"
    assert update(client, unversioned)["data"] == {"k": "new"}


def test_update_of_another_uid_fails_in_words_of_etcds_storage(
    client: Client, made: dict[str, Any]
) -> None:
    uid = made["metadata"]["uid"]
    with pytest.raises(Status) as caught:
        update(client, {"metadata": {"name": "cm", "uid": "1-1"}})
    assert str(caught.value) == (
        'Operation cannot be fulfilled on configmaps "cm": StorageError: invalid object, Code: 4, '
        "Key: "
        "/registry/configmaps/default/cm, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        "failed: "
        f"UID in precondition: 1-1, UID in object meta: {uid}"
    )


def test_update_of_what_is_not_there_is_not_found(client: Client) -> None:
    with pytest.raises(Status, match='configmaps "cm" not found'):
        update(client, {"metadata": {"name": "cm"}})


def test_update_keeps_status_and_status_update_keeps_rest(client: Client) -> None:
    made = client.create("daemonsets.apps", daemon_set(), namespace="default")
    assert made["status"]["numberReady"] == 0
    wanted = clone(made)
    wanted["spec"]["minReadySeconds"] = 5
    wanted["status"]["numberReady"] = 3
    with_status = client.update(
        "daemonsets.apps", wanted, namespace="default", subresource="status"
    )
    assert (with_status["status"]["numberReady"], with_status["metadata"]["generation"]) == (3, 1)
    assert "minReadySeconds" not in with_status["spec"]
    del wanted["metadata"]["resourceVersion"]
    wanted["status"]["numberReady"] = 8
    with_spec = client.update("daemonsets.apps", wanted, namespace="default")
    assert (with_spec["status"]["numberReady"], with_spec["metadata"]["generation"]) == (3, 2)
    assert with_spec["spec"]["minReadySeconds"] == 5


def test_generation_rises_with_spec_and_with_nothing_else(client: Client) -> None:
    client.create("daemonsets.apps", daemon_set(), namespace="default")

    def generation(change: dict[str, Any]) -> int:
        patched = client.patch(
            "daemonsets.apps", "ds", Patch(STRATEGIC_MERGE_PATCH, change), namespace="default"
        )
        return int(patched["metadata"]["generation"])

    assert generation({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}) == 1
    assert (
        generation(
            {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "c:2"}]}}}}
        )
        == 2
    )
    assert generation({"metadata": {"generation": 40}, "status": {"numberReady": 7}}) == 2


def test_metadata_that_is_immutable_is_refused(client: Client, made: dict[str, Any]) -> None:
    with pytest.raises(Status) as caught:
        patch(client, {"metadata": {"uid": "1-1", "deletionTimestamp": "2026-11-20T10:00:00Z"}})
    assert [str(cause.field) for cause in caught.value.causes] == [
        "metadata.uid",
        "metadata.deletionTimestamp",
    ]
    assert caught.value.causes[0].message == 'Invalid value: "1-1": field is immutable'


@pytest.mark.parametrize(
    ("change", "reason", "why"),
    [
        (
            {"metadata": {"name": "other"}},
            "BadRequest",
            "the name of the object (other) does not match the name on the URL (cm)",
        ),
        (
            {"metadata": {"namespace": "kube-system"}},
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"metadata": {"resourceVersion": "1"}},
            "Conflict",
            f'Operation cannot be fulfilled on configmaps "cm": {MODIFIED}',
        ),
    ],
)
def test_patch_cannot_make_it_another_object(
    client: Client, made: dict[str, Any], change: dict[str, Any], reason: str, why: str
) -> None:
    with pytest.raises(Status) as caught:
        patch(client, change)
    assert (caught.value.reason, str(caught.value)) == (reason, why)


def test_patch_cannot_change_kind(client: Client, made: dict[str, Any]) -> None:
    assert patch(client, {"kind": "Secret", "apiVersion": "v9"}, STRATEGIC_MERGE_PATCH) == made
    with pytest.raises(
        Status, match=re.escape("converting (v1.Secret) to (core.ConfigMap): unknown conversion")
    ):
        patch(client, {"kind": "Secret"})


def test_unknown_fields_of_patch_warn_or_fail(client: Client, made: dict[str, Any]) -> None:
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    assert patch(client, {"colour": "red"}, STRATEGIC_MERGE_PATCH, field_validation="Warn") == made
    assert warnings == ['unknown field "colour"']
    with pytest.raises(Status) as caught:
        patch(client, {"colour": "red"}, STRATEGIC_MERGE_PATCH, field_validation="Strict")
    assert str(caught.value) == (
        ' "" is invalid: patch: Invalid value: "map[colour:red]": '
        'strict decoding error: unknown field "colour"'
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"spec": {"minReadySeconds": "many"}}, "unrecognized type: int32"),
        ({"spec": {"minReadySeconds": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"template": 5}}, "cannot restore struct from: int64"),
        ({"metadata": {"labels": "x"}}, "cannot restore map from string"),
    ],
)
def test_wrong_type_in_strategic_patch_is_told_as_converter_tells_it(
    client: Client, change: dict[str, Any], why: str
) -> None:
    client.create("daemonsets.apps", daemon_set(), namespace="default")
    with pytest.raises(Status) as caught:
        client.patch(
            "daemonsets.apps", "ds", Patch(STRATEGIC_MERGE_PATCH, change), namespace="default"
        )
    assert str(caught.value).endswith(f": {why}")
    assert str(caught.value).startswith(' "" is invalid: patch: Invalid value: "map[')


def test_json_patch_applies_or_is_rejected(client: Client, made: dict[str, Any]) -> None:
    changed = patch(client, [{"op": "add", "path": "/data/x", "value": "y"}], JSON_PATCH)
    assert changed["data"] == {"k": "v", "x": "y"}
    with pytest.raises(Status) as caught:
        patch(client, [{"op": "remove", "path": "/absent"}], JSON_PATCH)
    assert caught.value.code == 422


def test_subresource_that_kind_has_not_is_not_served(client: Client, made: dict[str, Any]) -> None:
    for subresource in ("status", "scale", "binding"):
        with pytest.raises(Status, match="the server could not find the requested resource"):
            patch(client, {}, subresource=subresource)
    with pytest.raises(Status, match="the server could not find the requested resource"):
        update(client, made, subresource="status")


def test_subresource_that_cannot_be_changed_says_so(client: Client) -> None:
    with pytest.raises(Status) as caught:
        client.patch(
            "pods", "p", Patch(MERGE_PATCH, {}), namespace="default", subresource="binding"
        )
    assert (caught.value.code, str(caught.value)) == (
        405,
        "the server does not allow this method on the requested resource",
    )


def test_object_without_namespace_of_request_is_in_its_own(client: Client) -> None:
    made = client.create("configmaps", {"metadata": {"name": "cm", "namespace": "kube-public"}})
    assert (
        client.update("configmaps", {**clone(made), "data": {"k": "v"}})["metadata"]["namespace"]
        == "kube-public"
    )


def test_dry_run_of_patch_changes_nothing(client: Client, made: dict[str, Any]) -> None:
    assert patch(client, {"data": {"k": "new"}}, dry_run=True)["data"] == {"k": "new"}
    assert client.get("configmaps", "cm", namespace="default") == made


def test_scale_of_deployment_is_read_and_set(client: Client) -> None:
    obj = {"metadata": {"name": "web"}, "spec": {**daemon_set()["spec"], "replicas": 0}}
    made = client.create("deployments.apps", obj, namespace="default")
    scale = client.get("deployments.apps", "web", namespace="default", subresource="scale")
    metadata = {
        key: made["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    assert scale == {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": 0, "selector": "app=x"},
    }
    scaled = client.update(
        "deployments.apps",
        {**scale, "spec": {"replicas": 3}},
        namespace="default",
        subresource="scale",
    )
    assert scaled["spec"] == {"replicas": 3}
    after = client.get("deployments.apps", "web", namespace="default")
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (3, 2)
    with pytest.raises(Status, match="the object has been modified"):
        client.update(
            "deployments.apps",
            {**scale, "spec": {"replicas": 4}},
            namespace="default",
            subresource="scale",
        )
    with pytest.raises(Status) as caught:
        client.patch(
            "deployments.apps",
            "web",
            Patch(MERGE_PATCH, {"spec": {"replicas": -2}}),
            namespace="default",
            subresource="scale",
        )
    assert str(caught.value) == (
        'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -2: '
        "must be greater than or equal to 0"
    )


def test_resource_without_scale_path_is_not_served(client: Client) -> None:
    client.create("daemonsets.apps", daemon_set(), namespace="default")
    with pytest.raises(Status, match="the server could not find the requested resource"):
        client.get("daemonsets.apps", "ds", namespace="default", subresource="scale")
