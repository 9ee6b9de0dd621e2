"""Fields that select objects of a kind, and the API server's error for all others."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client

COMMON = 'is not a known field selector: only "metadata.name", "metadata.namespace"'


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "web:1"}], **spec},
    }


@pytest.mark.parametrize(
    ("resource", "field", "why"),
    [
        ("pods", "spec.priority", "field label not supported: spec.priority"),
        ("nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("namespaces", "metadata.namespace", "field label not supported: metadata.namespace"),
        (
            "certificatesigningrequests.certificates.k8s.io",
            "metadata.namespace",
            "field label not supported: metadata.namespace",
        ),
        ("jobs.batch", "status.failed", 'field label "status.failed" not supported for Job'),
        (
            "resourceslices.resource.k8s.io",
            "spec.pool",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool",
        ),
        ("replicasets.apps", "status.replicas", f'"status.replicas" {COMMON}'),
        ("storageclasses.storage.k8s.io", "provisioner", f'"provisioner" {COMMON}'),
    ],
)
def test_field_that_does_not_select_is_refused_in_words_of_its_kind(
    client: Client, resource: str, field: str, why: str
) -> None:
    with pytest.raises(Status) as error:
        client.list(resource, field_selector=f"{field}=x")
    assert (error.value.code, error.value.message) == (400, why)


def test_kinds_without_fields_of_their_own_take_namespace_even_where_there_is_none(
    client: Client,
) -> None:
    assert (
        client.list("storageclasses.storage.k8s.io", field_selector="metadata.namespace=x").items
        == []
    )


def test_host_of_pod_is_old_name_of_its_node(client: Client) -> None:
    client.create("pods", pod("web", nodeName="a"), namespace="default")
    client.create("pods", pod("other"), namespace="default")
    found = client.list("pods", field_selector="spec.host=a").items
    assert [one["metadata"]["name"] for one in found] == ["web"]


def test_addresses_of_pod_may_be_named_but_no_pod_has_them(client: Client) -> None:
    made = client.create("pods", pod("web"), namespace="default")
    status = {**made["status"], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
    reported = {**made, "status": status}
    client.update("pods", reported, namespace="default", subresource="status")
    assert client.list("pods", field_selector="status.podIPs=10.0.0.1").items == []
    assert len(client.list("pods", field_selector="status.podIP=10.0.0.1").items) == 1
