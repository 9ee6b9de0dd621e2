from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.clock import parse_time
from kubepy.api.errors import MethodNotAllowed, Status
from kubepy.api.scheme import GroupVersionResource
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import (
    MERGE_PATCH,
    CollectionOptions,
    DeleteOptions,
    ListOptions,
    Patch,
    Request,
)

NOW = "2026-11-20T10:00:00Z"


def make(client: Client, name: str = "cm", **metadata: Any) -> dict[str, Any]:
    return client.create(
        "configmaps", {"metadata": {"name": name, **metadata}}, namespace="default"
    )


def names(client: Client, resource: str = "configmaps") -> list[str]:
    return [one["metadata"]["name"] for one in client.list(resource, namespace="default").items]


def delete(
    client: Client, name: str = "cm", resource: str = "configmaps", **options: Any
) -> dict[str, Any]:
    return client.delete(resource, name, namespace="default", options=DeleteOptions(**options))


def pod(client: Client, name: str = "p", node: str = "n") -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "c:1"}], "nodeName": node}
    metadata = {"name": name, "labels": {"app": "x"}}
    return client.create("pods", {"metadata": metadata, "spec": spec}, namespace="default")


def deletion_of(obj: dict[str, Any]) -> tuple[Any, Any]:
    return obj["metadata"].get("deletionTimestamp"), obj["metadata"].get(
        "deletionGracePeriodSeconds"
    )


def test_object_that_nothing_holds_goes_at_once(client: Client) -> None:
    made = make(client)
    assert delete(client)["metadata"]["uid"] == made["metadata"]["uid"]
    assert names(client) == []
    with pytest.raises(Status, match='configmaps "cm" not found'):
        delete(client)


def test_object_with_finalizer_is_marked_and_goes_with_last_one(client: Client) -> None:
    make(client, finalizers=["example.org/a", "example.org/b"], generation=1)
    kept = delete(client)
    assert deletion_of(kept) == (NOW, 0)
    assert kept["metadata"]["generation"] == 2
    assert delete(client) == kept, "a second deletion changes nothing"
    for finalizers in (["example.org/b"], []):
        client.patch(
            "configmaps",
            "cm",
            Patch(MERGE_PATCH, {"metadata": {"finalizers": finalizers}}),
            namespace="default",
        )
    assert names(client) == []


def test_finalizer_added_to_deleted_object_is_refused(client: Client) -> None:
    make(client, finalizers=["example.org/a"])
    delete(client)
    with pytest.raises(Status) as caught:
        client.patch(
            "configmaps",
            "cm",
            Patch(MERGE_PATCH, {"metadata": {"finalizers": ["example.org/a", "example.org/b"]}}),
            namespace="default",
        )
    assert str(caught.value) == (
        'ConfigMap "cm" is invalid: metadata.finalizers: Forbidden: no new finalizers can be '
        "added if the object is "
        'being deleted, found new finalizers []string{"example.org/b"}'
    )


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [
        ("Foreground", ["example.org/a", "foregroundDeletion"]),
        ("Orphan", ["example.org/a", "orphan"]),
        ("Background", ["example.org/a"]),
        (None, ["example.org/a"]),
    ],
)
def test_propagation_policy_becomes_collectors_finalizer(
    client: Client, policy: str | None, finalizers: list[str]
) -> None:
    make(client, finalizers=["example.org/a"])
    assert delete(client, propagation_policy=policy)["metadata"]["finalizers"] == finalizers


def test_later_policy_takes_finalizer_away_again(client: Client) -> None:
    make(client)
    assert delete(client, propagation_policy="Foreground")["metadata"]["finalizers"] == [
        "foregroundDeletion"
    ]
    delete(client, propagation_policy="Background")
    assert names(client) == []


def test_policy_that_does_not_exist_is_refused(client: Client) -> None:
    make(client)
    with pytest.raises(Status) as caught:
        delete(client, propagation_policy="Sideways")
    assert str(caught.value) == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: '
        '"Sideways": supported values: '
        '"Foreground", "Background", "Orphan", "nil"'
    )


def test_preconditions_must_hold(client: Client) -> None:
    made = make(client)
    uid = made["metadata"]["uid"]
    with pytest.raises(Status) as caught:
        delete(client, uid="1-1")
    assert str(caught.value) == (
        'Operation cannot be fulfilled on ConfigMap "cm": the UID in the precondition (1-1) does '
        "not match the UID in "
        f"record ({uid}). The object might have been deleted and then recreated"
    )
    with pytest.raises(Status, match="The object might have been modified"):
        delete(client, resource_version="1")
    delete(client, uid=uid, resource_version=made["metadata"]["resourceVersion"])
    assert names(client) == []


def test_pod_on_node_has_its_grace_period(client: Client) -> None:
    pod(client)
    kept = delete(client, "p", "pods")
    assert deletion_of(kept) == ("2026-11-20T10:00:30Z", 30)
    assert kept["metadata"]["generation"] == 2


def test_grace_period_only_shrinks(cluster: LocalCluster) -> None:
    client = cluster.client
    pod(client)
    assert deletion_of(delete(client, "p", "pods", grace_period_seconds=45)) == (
        "2026-11-20T10:00:45Z",
        45,
    )
    assert deletion_of(delete(client, "p", "pods", grace_period_seconds=10)) == (
        "2026-11-20T10:00:10Z",
        10,
    )
    assert deletion_of(delete(client, "p", "pods", grace_period_seconds=60)) == (
        "2026-11-20T10:00:10Z",
        10,
    )
    assert deletion_of(delete(client, "p", "pods")) == ("2026-11-20T10:00:10Z", 10)
    cluster.clock.own = parse_time("2026-11-20T10:00:08Z")
    assert deletion_of(delete(client, "p", "pods", grace_period_seconds=5)) == (
        "2026-11-20T10:00:08Z",
        1,
    )
    delete(client, "p", "pods", grace_period_seconds=0)
    assert names(client, "pods") == []


def test_pod_without_node_goes_at_once_and_negative_grace_period_is_one_second(
    client: Client,
) -> None:
    pod(client, "free", node="")
    delete(client, "free", "pods")
    pod(client)
    assert deletion_of(delete(client, "p", "pods", grace_period_seconds=-5)) == (
        "2026-11-20T10:00:01Z",
        1,
    )
    assert names(client, "pods") == ["p"]


def test_namespace_terminates_and_goes_when_it_is_finalized(client: Client) -> None:
    client.create("namespaces", {"metadata": {"name": "lab"}})
    kept = client.delete("namespaces", "lab")
    assert (kept["status"]["phase"], kept["spec"], deletion_of(kept)) == (
        "Terminating",
        {"finalizers": ["kubernetes"]},
        (NOW, None),
    )
    assert client.delete("namespaces", "lab") == kept
    finalized = {**kept, "spec": {}}
    client.update("namespaces", finalized, subresource="finalize")
    with pytest.raises(Status, match='namespaces "lab" not found'):
        client.get("namespaces", "lab")


def test_immortal_namespace_deletion_is_forbidden(client: Client) -> None:
    for name in ("default", "kube-system", "kube-public"):
        with pytest.raises(Status) as caught:
            client.delete("namespaces", name)
        assert (
            str(caught.value)
            == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        )


def test_collection_is_deleted_as_its_selector_chooses(client: Client) -> None:
    for name in "abc":
        make(client, name, labels={"set": "one" if name < "c" else "two"})
    gone = client.delete_collection(
        "configmaps",
        namespace="default",
        options=CollectionOptions(ListOptions(label_selector="set=one")),
    )
    assert [one["metadata"]["name"] for one in gone] == ["a", "b"]
    assert names(client) == ["c"]


# --- binding --------------------------------------------------------------------------------------


def test_binding_sets_node_condition_and_nodes_zone(client: Client) -> None:
    client.create(
        "nodes",
        {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "disk": "ssd"}}},
    )
    pod(client, node="")
    client.bind("p", "n", namespace="default")
    bound = client.get("pods", "p", namespace="default")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {"app": "x", "topology.kubernetes.io/zone": "z"}
    assert bound["status"]["conditions"] == [
        {"lastProbeTime": None, "lastTransitionTime": NOW, "status": "True", "type": "PodScheduled"}
    ]
    with pytest.raises(Status) as caught:
        client.bind("p", "m", namespace="default")
    assert str(caught.value) == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"'
    )


def post(
    client: Client, subresource: str, body: Any, resource: str = "pods", name: str = "p"
) -> Any:
    return client.do(
        Request("create", GroupVersionResource.parse(resource), "default", name, subresource), body
    )


def test_binding_adds_its_labels_and_annotations_and_is_answered_by_a_status(
    client: Client,
) -> None:
    pod(client, node="")
    status = post(
        client,
        "binding",
        {
            "metadata": {"name": "p", "labels": {"l": "1"}, "annotations": {"a": "1"}},
            "target": {"name": "n"},
        },
    )
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    metadata = client.get("pods", "p", namespace="default")["metadata"]
    assert (metadata["labels"]["l"], metadata["annotations"]) == ("1", {"a": "1"})


def test_created_binding_binds_its_pod_and_is_not_stored(client: Client) -> None:
    pod(client, node="")
    client.create(
        "bindings",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p"},
            "target": {"kind": "Node", "name": "n"},
        },
        namespace="default",
    )
    assert client.get("pods", "p", namespace="default")["spec"]["nodeName"] == "n"
    assert client.list("bindings").items == []


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            {"metadata": {"name": "q"}, "target": {"name": "n"}},
            400,
            "name in URL does not match name in Binding object",
        ),
        ({"metadata": {"name": "p"}}, 422, 'Binding "p" is invalid: target.name: Required value'),
        (
            {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}},
            422,
            'Binding "p" is invalid: target.kind: Unsupported value: "Pod": supported values: '
            '"Node", "<empty>"',
        ),
        (
            {"kind": "Pod", "metadata": {"name": "p"}},
            400,
            'Pod in version "v1" cannot be handled as a Binding: no kind "Pod" is registered for '
            'version "v1" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"',
        ),
        ({"metadata": {"name": "p", "uid": "other"}, "target": {"name": "n"}}, 409, None),
        ({"metadata": {"name": "p", "resourceVersion": "1"}, "target": {"name": "n"}}, 409, None),
    ],
)
def test_binding_that_is_wrong_is_refused(
    client: Client, body: Any, code: int, message: str | None
) -> None:
    pod(client, node="")
    with pytest.raises(Status) as caught:
        post(client, "binding", body)
    assert caught.value.code == code
    assert message in (None, caught.value.message)
    assert "nodeName" not in client.get("pods", "p", namespace="default")["spec"]


def test_subresource_that_is_no_view_cannot_be_read(client: Client) -> None:
    pod(client)
    for subresource in ("log", "exec", "binding", "proxy"):
        with pytest.raises(MethodNotAllowed):
            client.get("pods", "p", namespace="default", subresource=subresource)
    with pytest.raises(MethodNotAllowed):
        client.get("namespaces", "default", subresource="finalize")


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_system_priority_class_delete_is_forbidden(cluster: LocalCluster, name: str) -> None:
    with pytest.raises(Status) as error:
        cluster.client.delete("priorityclasses.scheduling.k8s.io", name)
    assert (error.value.code, error.value.message) == (
        403,
        f'priorityclasses.scheduling.k8s.io "{name}" is forbidden: this is a system priority '
        f"class and cannot be "
        "deleted",
    )
