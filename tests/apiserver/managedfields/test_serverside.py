"""Server-side apply, and the managers of fields after other writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import clone
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.managedfields.fieldpath import from_fields_v1, path_text
from kubepy.apiserver.managedfields.updater import managers_of_field, upgrade_patch
from kubepy.apiserver.request import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    CreateOptions,
    Patch,
    PatchOptions,
    UpdateOptions,
)

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dial"}}
Owned = dict[str, list[str]]


def apply(
    client: Client, data: dict[str, Any], manager: str = "one", **options: Any
) -> dict[str, Any]:
    config = {**CONFIG_MAP, "data": data}
    return client.patch(
        "configmaps",
        "dial",
        Patch(APPLY_PATCH, config),
        namespace="default",
        options=PatchOptions(field_manager=manager, **options),
    )


def owned(client: Client, obj: dict[str, Any]) -> Owned:
    """Return the fields of each manager: ``{"one Apply": [".data.a"]}``."""
    return {
        " ".join(
            filter(None, (entry["manager"], entry["operation"], entry.get("subresource")))
        ): sorted(map(path_text, from_fields_v1(entry["fieldsV1"])))
        for entry in client.with_managed_fields(obj)["metadata"].get("managedFields", [])
    }


def deployment(**spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "c:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }


def apply_deployment(
    client: Client,
    config: dict[str, Any],
    manager: str = "one",
    subresource: str = "",
    **options: Any,
) -> dict[str, Any]:
    return client.patch(
        "deployments.apps",
        "web",
        Patch(APPLY_PATCH, config),
        namespace="default",
        subresource=subresource,
        options=PatchOptions(field_manager=manager, **options),
    )


# --- applying -------------------------------------------------------------------------------------


def test_apply_creates_and_again_writes_nothing(client: Client) -> None:
    made = apply(client, {"a": "1"})
    assert made["data"] == {"a": "1"}
    assert owned(client, made) == {"one Apply": [".data.a"]}
    assert apply(client, {"a": "1"}) == made
    assert client.revision() == int(made["metadata"]["resourceVersion"])


def test_apply_with_uid_creates_nothing(client: Client) -> None:
    config = {**CONFIG_MAP, "metadata": {"name": "dial", "uid": "before"}}
    with pytest.raises(Status) as refused:
        client.patch(
            "configmaps",
            "dial",
            Patch(APPLY_PATCH, config),
            namespace="default",
            options=PatchOptions(field_manager="one"),
        )
    assert (refused.value.reason, str(refused.value)) == (
        "Conflict",
        'Operation cannot be fulfilled on configmaps "dial": uid mismatch: the provided object '
        "specified "
        "uid before, and no existing object was found",
    )


def test_apply_removes_omitted_field_unless_another_applies_it(client: Client) -> None:
    apply(client, {"a": "1", "b": "2"})
    apply(client, {"b": "2", "c": "3"}, "two")
    left = apply(client, {})
    assert left["data"] == {"b": "2", "c": "3"}
    assert owned(client, left) == {"one Apply": [".data"], "two Apply": [".data.b", ".data.c"]}


def test_apply_of_field_with_another_applier_conflicts_unless_forced(client: Client) -> None:
    apply(client, {"a": "1", "b": "2"})
    with pytest.raises(Status) as caught:
        apply(client, {"a": "9", "b": "8"}, "two")
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert (
        str(caught.value)
        == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'
    )
    assert [tuple(cause) for cause in caught.value.causes] == [
        ("FieldManagerConflict", 'conflict with "one"', ".data.a"),
        ("FieldManagerConflict", 'conflict with "one"', ".data.b"),
    ]
    forced = apply(client, {"a": "9"}, "two", force=True)
    assert owned(client, forced) == {"one Apply": [".data.b"], "two Apply": [".data.a"]}


def test_update_takes_fields_over_and_gives_no_conflict_when_value_is_same(client: Client) -> None:
    apply(client, {"a": "1", "b": "2"})
    changed = client.patch(
        "configmaps",
        "dial",
        Patch(MERGE_PATCH, {"data": {"a": "5", "b": "2"}}),
        namespace="default",
        options=PatchOptions(field_manager="editor"),
    )
    assert owned(client, changed) == {"one Apply": [".data.b"], "editor Update": [".data.a"]}
    assert owned(client, apply(client, {"a": "5"})) == {
        "one Apply": [".data.a"],
        "editor Update": [".data.a"],
    }


def test_dry_run_writes_nothing(client: Client) -> None:
    assert apply(client, {"a": "1"}, dry_run=True)["data"] == {"a": "1"}
    with pytest.raises(Status, match='configmaps "dial" not found'):
        client.get("configmaps", "dial", namespace="default")


def test_fields_of_object_that_nobody_tracked_belong_to_before_first_apply(client: Client) -> None:
    client.create("configmaps", {**CONFIG_MAP, "data": {"a": "1"}}, namespace="default")
    with pytest.raises(Status, match=r'conflict with "before-first-apply" using v1: \.data\.a'):
        apply(client, {"a": "2"})


@pytest.mark.parametrize(
    ("config", "manager", "why"),
    [
        (
            {**CONFIG_MAP, "data": {"a": 1}},
            "one",
            "failed to create typed patch object (/dial; /v1, Kind=ConfigMap): "
            ".data.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            {**CONFIG_MAP, "dta": {}},
            "one",
            "failed to create typed patch object (/dial; /v1, Kind=ConfigMap): .dta: field "
            "not declared in schema",
        ),
        ({**CONFIG_MAP, "kind": "Secret"}, "one", "invalid object type: /v1, Kind=Secret"),
        (
            {**CONFIG_MAP, "metadata": {"name": "dial", "managedFields": []}},
            "one",
            "metadata.managedFields must be nil",
        ),
        (
            {**CONFIG_MAP, "metadata": {"name": "other"}},
            "one",
            "the name of the object (other) does not match the name on the URL (dial)",
        ),
        (
            CONFIG_MAP,
            "",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required '
            "for apply "
            "patch",
        ),
        (
            [],
            "one",
            "error decoding YAML: the applied configuration is not an object with metadata",
        ),
    ],
)
def test_invalid_apply_configuration_is_refused(
    client: Client, config: Any, manager: str, why: str
) -> None:
    with pytest.raises(Status) as caught:
        client.patch(
            "configmaps",
            "dial",
            Patch(APPLY_PATCH, config),
            namespace="default",
            options=PatchOptions(field_manager=manager),
        )
    assert str(caught.value) == why


def test_containers_are_merged_by_name_and_taken_out_by_who_applied_them(client: Client) -> None:
    apply_deployment(client, deployment())
    side = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}},
    }
    both = apply_deployment(client, side, "injector")
    assert [one["name"] for one in both["spec"]["template"]["spec"]["containers"]] == ["c", "side"]
    side["spec"] = {}
    left = apply_deployment(client, side, "injector")
    assert [one["name"] for one in left["spec"]["template"]["spec"]["containers"]] == ["c"]
    assert owned(client, left)["injector Apply"] == [".spec"]
    defaults = deployment(progressDeadlineSeconds=5)
    assert (
        apply_deployment(client, defaults, "two")["spec"]["progressDeadlineSeconds"] == 5
    )  # no conflict


def test_manager_of_status_has_nothing_else(client: Client) -> None:
    apply_deployment(client, deployment())
    config = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "status": {"replicas": 3},
    }
    changed = apply_deployment(client, config, "observer", subresource="status")
    assert changed["status"]["replicas"] == 3
    assert owned(client, changed)["observer Apply status"] == [".status.replicas"]
    assert "three Apply" not in owned(client, apply_deployment(client, config, "three"))


def test_custom_resource_goes_by_lists_of_its_schema(client: Client) -> None:
    items = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "length": {"type": "integer"}},
    }
    sails = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"sails": sails}}},
    }
    client.create(
        "customresourcedefinitions.apiextensions.k8s.io",
        {
            "metadata": {"name": "boats.sea.example"},
            "spec": {
                "group": "sea.example",
                "names": {"plural": "boats", "kind": "Boat"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        },
    )

    def sail(manager: str, name: str, length: int) -> dict[str, Any]:
        config = {
            "apiVersion": "sea.example/v1",
            "kind": "Boat",
            "metadata": {"name": "b"},
            "spec": {"sails": [{"name": name, "length": length}]},
        }
        return client.patch(
            "boats.sea.example",
            "b",
            Patch(APPLY_PATCH, config),
            namespace="default",
            options=PatchOptions(field_manager=manager),
        )

    sail("one", "jib", 3)
    both = sail("two", "main", 9)
    assert both["spec"]["sails"] == [{"name": "jib", "length": 3}, {"name": "main", "length": 9}]
    with pytest.raises(Status, match=r'conflict with "one": .spec.sails\[name="jib"\].length'):
        sail("two", "jib", 4)


# --- from apply on the client ---------------------------------------------------------------------


def test_definition_with_values_of_any_type_is_applied_and_again(client: Client) -> None:
    properties = {
        "size": {"type": "integer", "default": 3},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "on": {"type": "boolean", "default": True},
        "names": {"type": "array", "items": {"type": "string"}},
        "limits": {
            "type": "object",
            "default": {"cpu": 1},
            "additionalProperties": {"type": "integer"},
        },
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "dials.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "dials", "kind": "Dial"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    options = PatchOptions(field_manager="one")
    crds = "customresourcedefinitions.apiextensions.k8s.io"
    made = client.patch(crds, "dials.example.com", Patch(APPLY_PATCH, definition), options=options)
    assert made["spec"]["versions"][0]["schema"] == schema
    assert (
        client.patch(crds, "dials.example.com", Patch(APPLY_PATCH, definition), options=options)
        == made
    )


def test_kubectl_takes_over_what_apply_on_client_left(client: Client) -> None:
    text = '{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"dial"}}\n'
    metadata = {"name": "dial", "annotations": {LAST_APPLIED: text}}
    client.create(
        "configmaps",
        {**CONFIG_MAP, "metadata": metadata, "data": {"a": "1", "b": "2"}},
        namespace="default",
        options=CreateOptions(field_manager="kubectl-client-side-apply"),
    )
    with pytest.raises(
        Status, match=r'conflict with "kubectl-client-side-apply" using v1: \.data\.b'
    ):
        apply(client, {"a": "5", "b": "6"}, "kubectl")
    changed = apply(client, {"a": "5"}, "kubectl")
    assert changed["metadata"]["annotations"][LAST_APPLIED] == text.replace('"1"', '"5"')
    full = client.with_managed_fields(changed)
    clients = managers_of_field(full, ("metadata", "annotations", LAST_APPLIED), "Update")
    assert clients == ["kubectl-client-side-apply"]
    patch = upgrade_patch(full, clients, "kubectl")
    upgraded = client.patch(
        "configmaps",
        "dial",
        Patch(JSON_PATCH, patch),
        namespace="default",
        options=PatchOptions(field_manager="kubectl"),
    )
    assert owned(client, upgraded) == {
        "kubectl Apply": [
            ".data",
            ".data.a",
            ".data.b",
            ".metadata.annotations",
            f".metadata.annotations.{LAST_APPLIED}",
        ]
    }
    assert upgrade_patch(client.with_managed_fields(upgraded), clients, "kubectl") is None


# --- other writes ---------------------------------------------------------------------------------


def test_creator_manages_all_fields_and_storage_keeps_only_its_name(client: Client) -> None:
    made = client.create(
        "configmaps",
        {**CONFIG_MAP, "data": {"a": "1"}},
        namespace="default",
        options=CreateOptions(field_manager="kubectl-create"),
    )
    assert owned(client, made) == {"kubectl-create Update": [".data", ".data.a"]}
    assert made["metadata"]["managedFields"] == [
        {
            "apiVersion": "v1",
            "manager": "kubectl-create",
            "operation": "Update",
            "time": "2026-11-20T10:00:00Z",
        }
    ]


def test_server_added_fields_of_new_object_have_no_manager(client: Client) -> None:
    made = client.create(
        "services",
        {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}},
        namespace="default",
        options=CreateOptions(field_manager="kubectl-create"),
    )
    assert made["spec"]["clusterIP"]
    fields = owned(client, made)["kubectl-create Update"]
    assert [one for one in fields if "[" not in one] == [
        ".spec.internalTrafficPolicy",
        ".spec.ports",
        ".spec.sessionAffinity",
        ".spec.type",
    ]
    changed = client.patch(
        "services",
        "s",
        Patch(MERGE_PATCH, {"spec": {"type": "NodePort"}}),
        namespace="default",
        options=PatchOptions(field_manager="kubectl-patch"),
    )
    assert changed["spec"]["ports"][0]["nodePort"]
    assert owned(client, changed)["kubectl-patch Update"] == [
        ".spec.externalTrafficPolicy",
        ".spec.type",
    ]
    assert not any("nodePort" in one for one in owned(client, changed)["kubectl-create Update"])


def test_requested_field_dropped_by_server_keeps_its_manager(client: Client) -> None:
    obj = deployment(serviceName="web")
    made = client.create(
        "statefulsets.apps",
        {**obj, "kind": "StatefulSet"},
        namespace="default",
        options=CreateOptions(field_manager="kubectl-create"),
    )
    gated = {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}}
    changed = client.patch(
        "statefulsets.apps",
        "web",
        Patch(MERGE_PATCH, gated),
        namespace="default",
        options=PatchOptions(field_manager="kubectl-patch"),
    )
    assert changed["spec"] == made["spec"]
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


def test_client_changes_belong_to_client_and_controller_changes_to_controllers(
    client: Client,
) -> None:
    client.create(
        "deployments.apps",
        deployment(),
        namespace="default",
        options=CreateOptions(field_manager="kubectl-create"),
    )
    client.patch(
        "deployments.apps",
        "web",
        Patch(MERGE_PATCH, {"metadata": {"labels": {"x": "y"}}}),
        namespace="default",
        options=PatchOptions(field_manager="kubectl-label"),
    )
    scale = client.get("deployments.apps", "web", namespace="default", subresource="scale")
    client.update(
        "deployments.apps",
        {**scale, "spec": {"replicas": 4}},
        namespace="default",
        subresource="scale",
        options=UpdateOptions(field_manager="kubectl"),
    )
    obj = clone(client.get("deployments.apps", "web", namespace="default"))
    obj["status"]["replicas"] = 1
    obj["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "1"}
    found = owned(
        client, client.update("deployments.apps", obj, namespace="default", subresource="status")
    )
    assert found["kubectl-label Update"] == [".metadata.labels", ".metadata.labels.x"]
    assert found["kubectl Update scale"] == [".spec.replicas"]
    assert found["kube-controller-manager Update status"] == [
        ".metadata.annotations",
        ".metadata.annotations.deployment.kubernetes.io/revision",
        ".status.replicas",
    ]
    assert ".spec.replicas" not in found["kubectl-create Update"]
    with pytest.raises(
        Status, match=r'"kubectl" with subresource "scale" using apps/v1: \.spec\.replicas'
    ):
        apply_deployment(client, deployment(replicas=2))


def test_field_that_controller_removed_has_no_manager(client: Client) -> None:
    apply(client, {"a": "1", "b": "2"})
    obj = clone(client.get("configmaps", "dial", namespace="default"))
    del obj["data"]["a"]
    assert owned(client, client.update("configmaps", obj, namespace="default")) == {
        "one Apply": [".data.b"]
    }


def test_update_can_set_entries_or_reset_them(client: Client) -> None:
    full = client.with_managed_fields(apply(client, {"a": "1"}))
    full["metadata"]["managedFields"][0]["manager"] = "renamed"
    full["data"] = {"a": "1", "b": "2"}
    changed = client.update(
        "configmaps", full, namespace="default", options=UpdateOptions(field_manager="editor")
    )
    assert owned(client, changed) == {"renamed Apply": [".data.a"], "editor Update": [".data.b"]}
    reset = clone(changed)
    reset["metadata"]["managedFields"] = [{}]
    reset["data"] = {"a": "3"}
    assert (
        owned(
            client,
            client.update(
                "configmaps",
                reset,
                namespace="default",
                options=UpdateOptions(field_manager="editor"),
            ),
        )
        == {}
    )


def test_too_many_updaters_become_one(client: Client) -> None:
    apply(client, {"a": "1"})
    for index in range(12):
        client.patch(
            "configmaps",
            "dial",
            Patch(MERGE_PATCH, {"data": {f"k{index}": ""}}),
            namespace="default",
            options=PatchOptions(field_manager=f"m{index:02}"),
        )
    found = owned(client, client.get("configmaps", "dial", namespace="default"))
    assert found["ancient-changes Update"] == [".data.k0", ".data.k1", ".data.k2"]
    assert len(found) == 11


def test_appliers_are_in_file_beside_object_and_others_are_not(
    client: Client, cluster: LocalCluster, tmp_path: Path
) -> None:
    client.create(
        "configmaps",
        {"metadata": {"name": "plain"}},
        namespace="default",
        options=CreateOptions(field_manager="kubectl-create"),
    )
    apply(client, {"a": "1"})
    folder = tmp_path / "state" / "namespaces" / "default" / "configmaps"
    assert [one.name for one in (folder / ".managed").iterdir()] == ["dial.yaml"]
    assert (
        "managedFields"
        not in (folder / "dial.yaml").read_text() + (folder / "plain.yaml").read_text()
    )
