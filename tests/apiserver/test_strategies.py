"""Strategies of creates and updates: generations, statuses, and fields that are kept or set."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client
from tests.apiserver.rules import changed, created, daemon_set, pod, strategy, updated, workload

NOW = "2026-11-20T10:00:00Z"
DS = "daemonsets.apps"
GENERATION = "deprecated.daemonset.template.generation"
IMAGE = "spec.template.spec.containers.0.image"


# --- generations ----------------------------------------------------------------------------------


def generations(client: Client, changes: dict[str, Any]) -> tuple[int, str]:
    """Return generation and template generation of a DaemonSet after a change of it."""
    made = client.create(DS, daemon_set(), namespace="default")
    metadata = client.update(DS, changed(made, changes), namespace="default")["metadata"]
    return metadata["generation"], metadata["annotations"][GENERATION]


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ({}, (1, "1")),
        ({"metadata.labels": {"a": "b"}}, (1, "1")),
        ({"status.numberReady": 5}, (1, "1")),
        ({"spec.minReadySeconds": 5}, (2, "1")),
        ({IMAGE: "web:2"}, (2, "2")),
        ({"metadata.annotations": {GENERATION: "7"}}, (1, "1")),
    ],
)
def test_generations_of_daemon_set_count_changes_of_spec_and_of_template(
    client: Client, changes: dict[str, Any], after: tuple[int, str]
) -> None:
    assert generations(client, changes) == after


def test_annotations_of_deployment_count_as_its_spec(client: Client) -> None:
    made = client.create("deployments.apps", workload("Deployment"), namespace="default")
    labelled = client.update(
        "deployments.apps", changed(made, {"metadata.labels": {"a": "b"}}), namespace="default"
    )
    noted = client.update(
        "deployments.apps",
        changed(labelled, {"metadata.annotations": {"a": "b"}}),
        namespace="default",
    )
    assert [one["metadata"]["generation"] for one in (made, labelled, noted)] == [1, 1, 2]


def test_priority_class_stays_at_its_first_generation(client: Client) -> None:
    key = "priorityclasses.scheduling.k8s.io"
    made = client.create(
        key,
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "p"},
            "value": 5,
        },
    )
    after = client.update(key, changed(made, {"description": "fast"}))
    assert (made["metadata"]["generation"], after["metadata"]["generation"]) == (1, 1)


def test_labels_of_endpoint_slice_count_too(client: Client) -> None:
    key = "endpointslices.discovery.k8s.io"
    made = client.create(
        key,
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "endpoints": [],
            "metadata": {"name": "e"},
        },
        namespace="default",
    )
    noted = client.update(
        key, changed(made, {"metadata.annotations": {"a": "b"}}), namespace="default"
    )
    labelled = client.update(
        key, changed(noted, {"metadata.labels": {"a": "b"}}), namespace="default"
    )
    assert [one["metadata"]["generation"] for one in (made, noted, labelled)] == [1, 1, 2]


# --- statuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "obj", "status"),
    [
        (
            DS,
            daemon_set(),
            {
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
                "numberReady": 0,
            },
        ),
        ("deployments.apps", workload("Deployment"), {}),
        ("replicasets.apps", workload("ReplicaSet"), {"replicas": 0}),
        ("statefulsets.apps", workload("StatefulSet"), {"availableReplicas": 0, "replicas": 0}),
    ],
)
def test_status_of_new_workload_is_empty_and_only_its_subresource_changes_it(
    client: Client, key: str, obj: dict[str, Any], status: dict[str, Any]
) -> None:
    made = client.create(key, changed(obj, {"status.observedGeneration": 9}), namespace="default")
    assert made["status"] == status
    after = client.update(key, changed(made, {"status.observedGeneration": 9}), namespace="default")
    assert after["status"] == status
    observed = changed(made, {"status.observedGeneration": 1, "spec.minReadySeconds": 9})
    written = client.update(key, observed, namespace="default", subresource="status")
    assert (written["status"], written["spec"]) == (
        {**status, "observedGeneration": 1},
        made["spec"],
    )


def test_status_is_refused_too(client: Client) -> None:
    made = client.create(DS, daemon_set(), namespace="default")
    with pytest.raises(Status) as caught:
        client.update(
            DS, changed(made, {"status.numberReady": -1}), namespace="default", subresource="status"
        )
    assert str(caught.value) == (
        'DaemonSet.apps "ds" is invalid: status.numberReady: Invalid value: -1: must be '
        "greater than or equal to 0"
    )


def test_node_brings_its_status_along() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "1"}},
    }
    made = created("nodes", node)
    assert made["status"]["capacity"] == {"cpu": "1"}
    assert (
        updated("nodes", changed(node, {"status.capacity.cpu": "2"}), node)["status"]
        == made["status"]
    )


def test_finalizers_of_namespace_are_changed_by_finalize_only(client: Client) -> None:
    made = client.create(
        "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    )
    assert client.update("namespaces", changed(made, {"spec.finalizers": ["a.b/c"]}))["spec"] == {
        "finalizers": ["kubernetes"]
    }


# --- services: addresses and ports ----------------------------------------------------------------


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec},
    }


def serve(client: Client, name: str, **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = client.create("services", service(name, **spec), namespace="default")[
        "spec"
    ]
    return made


def test_service_address_is_unique(client: Client) -> None:
    given = [serve(client, f"s{index}")["clusterIP"] for index in range(60)]
    assert len(set(given)) == 60
    assert all(ip.startswith("10.") for ip in given)


def test_address_is_same_in_every_cluster(client: Client) -> None:
    spec = serve(client, "web")
    assert spec == {
        "clusterIP": spec["clusterIP"],
        "clusterIPs": [spec["clusterIP"]],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"app": "web"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    client.delete("services", "web", namespace="default")
    assert serve(client, "web")["clusterIP"] == spec["clusterIP"]


def test_headless_service_has_no_address(client: Client) -> None:
    assert serve(client, "web", clusterIP="None")["clusterIPs"] == ["None"]


def test_address_that_is_taken_is_refused(client: Client) -> None:
    serve(client, "one", clusterIP="10.96.0.77")
    with pytest.raises(Status) as caught:
        serve(client, "two", clusterIP="10.96.0.77")
    assert str(caught.value) == (
        'Service "two" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.77"]: failed to '
        "allocate IP 10.96.0.77: provided IP is already allocated"
    )


def test_node_ports_are_given_and_not_twice(client: Client) -> None:
    spec = serve(
        client, "one", type="NodePort", ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    )
    given = [port["nodePort"] for port in spec["ports"]]
    assert len(set(given)) == 2
    assert all(30000 <= port <= 32767 for port in given)
    with pytest.raises(Status) as caught:
        serve(client, "two", type="NodePort", ports=[{"port": 80, "nodePort": given[0]}])
    assert str(caught.value) == (
        f'Service "two" is invalid: spec.ports[0].nodePort: Invalid value: {given[0]}: '
        "provided port is already allocated"
    )


def test_update_without_address_and_ports_keeps_them(client: Client) -> None:
    spec = serve(client, "web", type="NodePort")
    after = client.update("services", service("web", type="NodePort"), namespace="default")["spec"]
    assert after == spec


def test_service_that_becomes_internal_gives_its_node_ports_back(client: Client) -> None:
    serve(client, "web", type="NodePort")
    after = client.update("services", service("web"), namespace="default")["spec"]
    assert after["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


def test_service_of_another_name_has_no_address(client: Client) -> None:
    serve(client, "web")
    other = {**service("web"), "spec": {"type": "ExternalName", "externalName": "example.com"}}
    assert client.update("services", other, namespace="default")["spec"] == {
        "externalName": "example.com",
        "sessionAffinity": "None",
        "type": "ExternalName",
    }


@pytest.mark.parametrize("is_new", [True, False])
def test_service_that_is_a_name_elsewhere_has_no_internal_traffic_policy(
    client: Client, is_new: bool
) -> None:
    if not is_new:
        serve(client, "web")
    other = {
        **service("web"),
        "spec": {
            "type": "ExternalName",
            "externalName": "example.com",
            "internalTrafficPolicy": "Cluster",
        },
    }
    write = client.create if is_new else client.update
    assert write("services", other, namespace="default")["spec"] == {
        "externalName": "example.com",
        "sessionAffinity": "None",
        "type": "ExternalName",
    }


# --- deletion, names, selection -------------------------------------------------------------------


def test_pod_takes_as_long_to_go_as_it_was_given() -> None:
    running = {**created("pods", pod(nodeName="n")), "status": {"phase": "Running"}}
    own = strategy("pods")
    assert own.grace_period_seconds(running, None) == 30
    assert own.grace_period_seconds(running, 5) == 5
    assert own.grace_period_seconds({**running, "status": {"phase": "Succeeded"}}, None) == 0
    assert own.grace_period_seconds(created("pods", pod()), None) == 0, "nobody runs it"


def test_jobs_and_replication_controllers_let_go_of_their_pods() -> None:
    assert [
        strategy(key).default_propagation() for key in ("jobs.batch", "replicationcontrollers", DS)
    ] == ["Orphan", "Orphan", "Background"]


def test_role_may_have_name_that_no_pod_may() -> None:
    assert strategy("roles.rbac.authorization.k8s.io").validate_name("system:node") == []
    assert strategy("roles.rbac.authorization.k8s.io").validate_name("a/b") == [
        "may not contain '/'"
    ]


def test_events_are_found_by_what_they_are_about() -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Pulled",
        "source": {"component": "kubelet"},
        "type": "Normal",
    }
    found = strategy("events").selectable_fields(event)
    assert {key: value for key, value in found.items() if value} == {
        "involvedObject.kind": "Pod",
        "involvedObject.name": "p",
        "involvedObject.namespace": "default",
        "reason": "Pulled",
        "source": "kubelet",
        "type": "Normal",
    }


# --- claims ---------------------------------------------------------------------------------------


def test_claims_two_sources_say_same() -> None:
    source = {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    for field in ("dataSource", "dataSourceRef"):
        spec = created("persistentvolumeclaims", changed(claim, {f"spec.{field}": source}))["spec"]
        assert (spec["dataSource"], spec["dataSourceRef"]) == (source, source)


# --- definitions ----------------------------------------------------------------------------------

CRD = "customresourcedefinitions.apiextensions.k8s.io"


def definition(plural: str, kind: str, **names: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {
        "lastTransitionTime": NOW,
        "message": message,
        "reason": reason,
        "status": status,
        "type": kind,
    }


def test_definition_is_established_with_its_names(client: Client) -> None:
    status = client.create(CRD, definition("boats", "Boat"))["status"]
    assert status == {
        "acceptedNames": {
            "plural": "boats",
            "singular": "boat",
            "kind": "Boat",
            "listKind": "BoatList",
        },
        "conditions": [
            condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ],
        "storedVersions": ["v1"],
    }


def test_name_that_is_anothers_is_not_accepted(client: Client) -> None:
    client.create(CRD, definition("boats", "Boat"))
    status = client.create(CRD, definition("ships", "Ship", shortNames=["boat"]))["status"]
    assert status == {
        "acceptedNames": {
            "plural": "ships",
            "singular": "ship",
            "kind": "Ship",
            "listKind": "ShipList",
        },
        "conditions": [
            condition("NamesAccepted", "False", "ShortNamesConflict", '"boat" is already in use'),
            condition("Established", "False", "NotAccepted", "not all names are accepted"),
        ],
        "storedVersions": ["v1"],
    }


def test_new_storage_version_is_remembered_and_old_one_must_stay(client: Client) -> None:
    made = client.create(CRD, definition("boats", "Boat"))
    first = made["spec"]["versions"][0]
    both = changed(made, {"spec.versions": [{**first, "storage": False}, {**first, "name": "v2"}]})
    after = client.update(CRD, both)
    assert (after["status"]["storedVersions"], after["metadata"]["generation"]) == (["v1", "v2"], 2)
    with pytest.raises(Status) as caught:
        client.update(CRD, changed(after, {"spec.versions": [{**first, "name": "v2"}]}))
    assert str(caught.value) == (
        'CustomResourceDefinition.apiextensions.k8s.io "boats.example.org" is invalid: '
        "status.storedVersions[0]: "
        'Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, '
        "and must remain in "
        "spec.versions until a storage migration ensures no data remains persisted in v1 and "
        "removes v1 from "
        "status.storedVersions"
    )


def test_kind_of_established_definition_stays(client: Client) -> None:
    made = client.create(CRD, definition("boats", "Boat"))
    with pytest.raises(Status) as caught:
        client.update(CRD, changed(made, {"spec.names.kind": "Ship", "spec.scope": "Namespaced"}))
    assert str(caught.value) == (
        'CustomResourceDefinition.apiextensions.k8s.io "boats.example.org" is invalid: '
        "[spec.scope: Invalid value: "
        '"Namespaced": field is immutable, spec.names.kind: Invalid value: "Ship": field is '
        "immutable]"
    )
