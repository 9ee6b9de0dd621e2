"""Managers of the replicas field after requests to the scale subresource."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import APPLY_PATCH, MERGE_PATCH, CreateOptions, Patch, PatchOptions

APPS = "apps/v1"


def deployment(**spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "c:1"}]},
    }
    return {
        "apiVersion": APPS,
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }


def create(client: Client) -> dict[str, Any]:
    return client.create(
        "deployments.apps",
        deployment(replicas=2),
        namespace="default",
        options=CreateOptions(field_manager="kubectl-create"),
    )


def apply(
    client: Client,
    config: dict[str, Any],
    manager: str = "owner",
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


def scale(client: Client, replicas: int) -> str:
    """Scale as kubectl does, and return the object's new version."""
    done = client.patch(
        "deployments.apps",
        "web",
        Patch(MERGE_PATCH, {"spec": {"replicas": replicas}}),
        namespace="default",
        subresource="scale",
        options=PatchOptions(field_manager="kubectl"),
    )
    return str(done["metadata"]["resourceVersion"])


def entries_with_replicas(client: Client) -> list[tuple[str, str, str, bool]]:
    """Return manager, subresource and time of each entry with replicas, and whether the entry has
    other fields too."""
    shown = client.with_managed_fields(client.get("deployments.apps", "web", namespace="default"))
    return [
        (
            one["manager"],
            one.get("subresource", ""),
            one.get("time", ""),
            len(one["fieldsV1"]["f:spec"]) > 1,
        )
        for one in shown["metadata"]["managedFields"]
        if "f:replicas" in one["fieldsV1"].get("f:spec", {})
    ]


def managers(client: Client) -> list[str]:
    shown = client.with_managed_fields(client.get("deployments.apps", "web", namespace="default"))
    return [one["manager"] for one in shown["metadata"]["managedFields"]]


def test_scale_update_owns_replicas_without_a_time(client: Client) -> None:
    create(client)
    scale(client, 3)
    assert entries_with_replicas(client) == [("kubectl", "scale", "", False)]
    assert managers(client) == ["kubectl", "kubectl-create"]


def test_scale_that_changes_nothing_takes_replicas_out_of_updaters_entry(client: Client) -> None:
    made = create(client)
    version = scale(client, 2)
    assert version != made["metadata"]["resourceVersion"]
    assert entries_with_replicas(client) == [("kubectl-create", "", "", False)]
    assert managers(client) == ["kubectl-create", "kubectl-create"]


def test_next_request_reads_later_entry_and_then_nobody_has_replicas(client: Client) -> None:
    create(client)
    first = scale(client, 2)
    second = scale(client, 2)
    assert second != first
    assert entries_with_replicas(client) == []
    assert managers(client) == ["kubectl-create"]
    assert scale(client, 2) == second
    scale(client, 5)  # fields without a manager in the Scale get none
    assert entries_with_replicas(client) == []


def test_scale_manager_keeps_its_fields_unchanged(client: Client) -> None:
    create(client)
    version = scale(client, 3)
    assert scale(client, 3) == version
    scale(client, 4)
    assert entries_with_replicas(client) == [("kubectl", "scale", "", False)]


def test_applier_keeps_replicas_until_somebody_scales_otherwise(client: Client) -> None:
    applied = apply(client, deployment(replicas=2))
    assert scale(client, 2) == applied["metadata"]["resourceVersion"]
    assert [one[0] for one in entries_with_replicas(client)] == ["owner"]
    scale(client, 3)
    assert [one[:2] for one in entries_with_replicas(client)] == [("kubectl", "scale")]
    with pytest.raises(
        Status, match=r'"kubectl" with subresource "scale" using apps/v1: \.spec\.replicas'
    ):
        apply(client, deployment(replicas=2))


def test_replicas_that_nobody_set_stay_without_manager(client: Client) -> None:
    apply(client, deployment())
    scale(client, 3)
    assert entries_with_replicas(client) == []
    apply(client, deployment(replicas=2))  # no conflict
    assert [one[0] for one in entries_with_replicas(client)] == ["owner"]


def test_scale_of_zero_has_no_replicas_that_anybody_could_manage(client: Client) -> None:
    create(client)
    scale(client, 0)
    assert entries_with_replicas(client) == []
    assert managers(client) == ["kubectl-create"]


def test_scale_can_be_applied(client: Client) -> None:
    apply(client, deployment(replicas=2))
    config = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web"},
        "spec": {"replicas": 4},
    }
    with pytest.raises(Status, match=r'conflict with "owner": \.spec\.replicas'):
        apply(client, config, "scaler", subresource="scale")
    assert apply(client, config, "scaler", subresource="scale", force=True)["spec"] == {
        "replicas": 4
    }
    assert [one[:2] for one in entries_with_replicas(client)] == [("scaler", "scale")]
    with pytest.raises(Status, match="invalid object type: apps/v1, Kind=Deployment"):
        apply(client, deployment(), subresource="scale")


def test_controllers_scale_without_trace(client: Client) -> None:
    made = create(client)
    found = client.get("deployments.apps", "web", namespace="default", subresource="scale")
    client.update(
        "deployments.apps",
        {**found, "spec": {"replicas": 2}},
        namespace="default",
        subresource="scale",
    )
    assert client.get("deployments.apps", "web", namespace="default") == made


# --- custom resources -----------------------------------------------------------------------------


@pytest.fixture
def fleets(client: Client) -> Client:
    numbers = {"type": "object", "properties": {"ships": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": numbers, "status": numbers}}
    paths = {"specReplicasPath": ".spec.ships", "statusReplicasPath": ".status.ships"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": paths},
    }
    client.create(
        "customresourcedefinitions.apiextensions.k8s.io",
        {
            "metadata": {"name": "fleets.sea.example"},
            "spec": {
                "group": "sea.example",
                "names": {"plural": "fleets", "kind": "Fleet"},
                "scope": "Namespaced",
                "versions": [version],
            },
        },
    )
    return client


def create_fleet(client: Client, spec: dict[str, Any]) -> dict[str, Any]:
    obj = {"apiVersion": "sea.example/v1", "kind": "Fleet", "metadata": {"name": "f"}, "spec": spec}
    return client.create(
        "fleets.sea.example",
        obj,
        namespace="default",
        options=CreateOptions(field_manager="kubectl-create"),
    )


def patch_fleet_scale(client: Client, patch: dict[str, Any]) -> dict[str, Any]:
    return client.patch(
        "fleets.sea.example",
        "f",
        Patch(MERGE_PATCH, patch),
        namespace="default",
        subresource="scale",
        options=PatchOptions(field_manager="kubectl"),
    )


def test_replicas_of_custom_resource_are_where_its_definition_says(fleets: Client) -> None:
    create_fleet(fleets, {"ships": 2})
    assert patch_fleet_scale(fleets, {"spec": {"replicas": 3}})["spec"] == {"replicas": 3}
    found = fleets.with_managed_fields(fleets.get("fleets.sea.example", "f", namespace="default"))
    assert found["spec"] == {"ships": 3}
    assert found["metadata"]["managedFields"] == [
        {
            "apiVersion": "sea.example/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:ships": {}}},
            "manager": "kubectl",
            "operation": "Update",
            "subresource": "scale",
        },
        {
            "apiVersion": "sea.example/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {}},
            "manager": "kubectl-create",
            "operation": "Update",
            "time": "2026-11-20T10:00:00Z",
        },
    ]


def test_custom_resource_without_replicas_has_no_scale_until_it_is_given_one(
    fleets: Client,
) -> None:
    create_fleet(fleets, {})
    with pytest.raises(Status, match=r'the spec replicas field "\.spec\.ships" does not exist'):
        fleets.get("fleets.sea.example", "f", namespace="default", subresource="scale")
    with pytest.raises(Status, match=r'the spec replicas field "\.spec\.ships" cannot be empty'):
        patch_fleet_scale(fleets, {"metadata": {"labels": {"a": "b"}}})
    assert patch_fleet_scale(fleets, {"spec": {"replicas": 1}})["spec"] == {"replicas": 1}


@pytest.mark.parametrize(
    ("replicas", "why"),
    [
        (
            -1,
            'Fleet.sea.example "f" is invalid: .spec.ships: Invalid value: -1: should be a '
            "non-negative integer",
        ),
        ("many", ' "" is invalid: patch: Invalid value: "'),
    ],
)
def test_custom_resource_takes_no_other_number(fleets: Client, replicas: Any, why: str) -> None:
    create_fleet(fleets, {"ships": 2})
    with pytest.raises(Status) as caught:
        patch_fleet_scale(fleets, {"spec": {"replicas": replicas}})
    assert str(caught.value).startswith(why)
