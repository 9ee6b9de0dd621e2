"""Resizing pods and adding ephemeral containers: a subresource changes only its own fields."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import STRATEGIC_MERGE_PATCH, Patch

Object = dict[str, Any]


@pytest.fixture
def pod(client: Client) -> Object:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m"}}
    spec = {
        "containers": [{"name": "c", "image": "web:1", "resources": resources}],
        "initContainers": [{"name": "i", "image": "web:1"}],
    }
    return client.create("pods", {"metadata": {"name": "p"}, "spec": spec}, namespace="default")


def patch(client: Client, spec: Object, subresource: str) -> Object:
    return client.patch(
        "pods",
        "p",
        Patch(STRATEGIC_MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}, "spec": spec}),
        namespace="default",
        subresource=subresource,
    )


def refusal(client: Client, spec: Object, subresource: str) -> str:
    with pytest.raises(Status) as error:
        patch(client, spec, subresource)
    return error.value.message.removeprefix('Pod "p" is invalid: ')


def container(**resources: Object) -> Object:
    return {"containers": [{"name": "c", "resources": resources}]}


def test_resize_changes_amounts_and_generation_but_nothing_else(
    client: Client, pod: Object
) -> None:
    asked = container(requests={"cpu": "150m"}, limits={"cpu": "300m"})
    asked["containers"][0]["image"] = "other:1"
    resized = patch(client, asked, "resize")
    assert resized["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "150m", "memory": "64Mi"},
        "limits": {"cpu": "300m"},
    }
    assert resized["spec"]["containers"][0]["image"] == "web:1"
    assert "labels" not in resized["metadata"]
    assert resized["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            container(requests={"cpu": None}, limits={"cpu": None}),
            "[spec.containers[0].resources.requests: Forbidden: resource requests cannot be "
            "removed, "
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed]",
        ),
        (
            container(requests={"ephemeral-storage": "1Gi"}),
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            container(requests={"cpu": "1"}),
            'spec.containers[0].resources.requests: Invalid value: "1": must be less than or '
            "equal to cpu limit of 200m",
        ),
        (
            container(requests={"cpu": "200m", "memory": "64Mi"}, limits={"memory": "64Mi"}),
            'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of '
            "resizing",
        ),
        (
            {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1m"}}}]},
            "spec: Forbidden: resources for non-sidecar init containers are immutable",
        ),
    ],
)
def test_resize_of_immutable_fields_is_refused(
    client: Client, pod: Object, spec: Object, why: str
) -> None:
    if "QOS" in why:
        client.delete("pods", "p", namespace="default")
        alone = {**pod["spec"], "initContainers": None}
        client.create("pods", {"metadata": {"name": "p"}, "spec": alone}, namespace="default")
    assert refusal(client, spec, "resize") == why


def test_resources_of_pod_as_whole_are_resized(client: Client) -> None:
    spec = {
        "containers": [{"name": "c", "image": "web:1"}],
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
    }
    client.create("pods", {"metadata": {"name": "p"}, "spec": spec}, namespace="default")
    resized = patch(client, {"resources": {"limits": {"cpu": "3"}}}, "resize")
    assert resized["spec"]["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"cpu": "3", "memory": "1Gi"},
    }
    assert refusal(client, {"resources": None}, "resize") == (
        '[spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing, '
        "spec.resources: Forbidden: pod-level resources cannot be removed]"
    )
    assert refusal(client, {"resources": {"limits": {"cpu": None}}}, "resize") == (
        "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"
    )


def test_resize_is_not_for_other_updates(client: Client, pod: Object) -> None:
    assert "pod updates may not change fields other than" in refusal(
        client, container(requests={"cpu": "150m"}), ""
    )


def test_ephemeral_containers_are_added_and_stay(client: Client, pod: Object) -> None:
    debugger = {"name": "d", "image": "sh:1"}
    added = patch(client, {"ephemeralContainers": [debugger]}, "ephemeralcontainers")
    assert [one["name"] for one in added["spec"]["ephemeralContainers"]] == ["d"]
    assert added["metadata"]["generation"] == 2
    assert refusal(
        client, {"ephemeralContainers": [{"name": "d", "$patch": "delete"}]}, "ephemeralcontainers"
    ) == (
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be '
        "removed\n"
    )


def test_ephemeral_containers_are_not_for_other_updates(client: Client, pod: Object) -> None:
    why = refusal(client, {"ephemeralContainers": [{"name": "d", "image": "sh:1"}]}, "")
    assert "pod updates may not change fields other than" in why
