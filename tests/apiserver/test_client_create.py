from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import MERGE_PATCH, CreateOptions, DeleteOptions, Patch
from kubepy.apiserver.requests.decoding import UnknownFieldError

NOW = "2026-11-20T10:00:00Z"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation "
    "is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def config_map(name: str = "cm", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def refused(
    client: Client, obj: dict[str, Any], namespace: str = "default", **options: Any
) -> Status:
    with pytest.raises(Status) as caught:
        client.create("configmaps", obj, namespace=namespace, options=CreateOptions(**options))
    return caught.value


def test_system_fields_of_new_object_are_servers(client: Client) -> None:
    forged = config_map(
        uid="1-1",
        creationTimestamp="2001-01-01T00:00:00Z",
        resourceVersion="12",
        generation=5,
        deletionTimestamp="2001-01-01T00:00:00Z",
        labels={"a": "b"},
    )
    made = client.create("configmaps", forged, namespace="default")
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    assert uid != "1-1"
    assert made == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "creationTimestamp": NOW,
            "generation": 5,
            "labels": {"a": "b"},
            "name": "cm",
            "namespace": "default",
            "resourceVersion": version,
            "uid": uid,
        },
    }
    assert client.get("configmaps", "cm", namespace="default") == made
    assert forged["metadata"]["uid"] == "1-1", "what the caller gave is his"


def test_object_that_exists_is_not_made_again(client: Client) -> None:
    client.create("configmaps", config_map(), namespace="default")
    status = refused(client, config_map())
    assert (status.code, status.reason, str(status)) == (
        409,
        "AlreadyExists",
        'configmaps "cm" already exists',
    )


def test_object_that_is_being_deleted_says_so_when_made_again(client: Client) -> None:
    client.create("configmaps", config_map(finalizers=["example.org/hold"]), namespace="default")
    client.delete("configmaps", "cm", namespace="default")
    assert (
        str(refused(client, config_map()))
        == 'object is being deleted: configmaps "cm" already exists'
    )


def test_namespace_of_object_and_request_must_be_one(client: Client) -> None:
    status = refused(client, config_map(namespace="kube-system"))
    assert (status.reason, str(status)) == (
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )


def test_creation_in_missing_or_terminating_namespace_is_refused(client: Client) -> None:
    assert str(refused(client, config_map(), "nowhere")) == 'namespaces "nowhere" not found'
    client.create("namespaces", {"metadata": {"name": "attic"}})
    client.delete("namespaces", "attic")
    status = refused(client, config_map(), "attic")
    assert (status.code, str(status)) == (
        403,
        'configmaps "cm" is forbidden: unable to create new content in namespace attic because it '
        "is being "
        "terminated",
    )
    assert status.causes[0].reason == "NamespaceTerminating"


def test_generate_name_makes_another_name_each_time_and_cuts_long_prefixes(client: Client) -> None:
    first, second = (
        client.create("configmaps", {"metadata": {"generateName": "batch-"}}, namespace="default")
        for _ in range(2)
    )
    long = client.create(
        "configmaps", {"metadata": {"generateName": "x" * 100}}, namespace="default"
    )
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["generateName"] == "batch-"
    assert len(long["metadata"]["name"]) == 63


def test_bad_generate_name_is_named_beside_bad_name_made_of_it(client: Client) -> None:
    status = refused(client, {"metadata": {"generateName": "Upper-"}})
    name = status.name
    assert name.startswith("Upper-")
    assert len(name) == 11
    assert [(cause.field, cause.message) for cause in status.causes] == [
        ("metadata.generateName", f'Invalid value: "Upper-": {SUBDOMAIN}'),
        ("metadata.name", f'Invalid value: "{name}": {SUBDOMAIN}'),
    ]


def test_object_needs_name(client: Client) -> None:
    status = refused(client, {"metadata": {}})
    assert (
        str(status)
        == 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is '
        "required"
    )


def test_metadata_errors_are_reported_in_upstreams_order(client: Client) -> None:
    wrong = config_map(
        labels={"-dash": "two words", "a/b/c": "x"},
        annotations={"two words": "x", "Example.org/Ok": ""},
        ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "u"}],
        finalizers=["plain", "not a name"],
    )
    assert [cause.field for cause in refused(client, wrong).causes] == [
        "metadata.labels",
        "metadata.labels",
        "metadata.labels",
        "metadata.annotations",
        "metadata.ownerReferences.name",
        "metadata.finalizers",
        "metadata.finalizers[0]",
        "metadata.finalizers[1]",
    ]


def test_owner_controller_is_unique(client: Client) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
        for name in "ab"
    ]
    why = (
        'Only one reference can have Controller set to true. Found "true" in references for '
        "Pod/a and Pod/b"
    )
    assert refused(client, config_map(ownerReferences=owners)).causes[0].message.endswith(why)


def test_owner_that_is_there_twice_counts_once_with_warning(client: Client) -> None:
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u-1"}
    made = client.create(
        "configmaps", config_map(ownerReferences=[owner, dict(owner)]), namespace="default"
    )
    assert made["metadata"]["ownerReferences"] == [owner]
    assert warnings[0].startswith(".metadata.ownerReferences contains duplicate entries")
    assert warnings[0].endswith("duplicate UID(s) observed: u-1")


def test_annotations_have_limit_in_bytes(client: Client) -> None:
    status = refused(client, config_map(annotations={"a": "x" * 256 * 1024}))
    assert str(status).endswith("metadata.annotations: Too long: may not be more than 262144 bytes")


def test_config_map_too_large_error_is_about_whole_object(client: Client) -> None:
    status = refused(client, {**config_map(), "data": {"a": "x" * (1024 * 1024 + 1)}})
    assert (
        str(status) == 'ConfigMap "cm" is invalid: []: Too long: may not be more than 1048576 bytes'
    )
    assert status.causes[0].field == "[]"


def test_secret_too_large_error_is_about_its_data(client: Client) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"a": "x" * (1024 * 1024 + 1)}}
    with pytest.raises(Status) as error:
        client.create("secrets", secret, namespace="default")
    assert (
        str(error.value)
        == 'Secret "s" is invalid: data: Too long: may not be more than 1048576 bytes'
    )


def test_unknown_field_in_write_of_own_controller_is_its_error(client: Client) -> None:
    controller = client.with_context(client.context._replace(component="toy-controller"))
    wrong = {**config_map(), "extra": {"deep": 1}}
    with pytest.raises(UnknownFieldError) as caught:
        controller.create("configmaps", wrong, namespace="default")
    assert str(caught.value) == 'toy-controller: configmaps: unknown field "extra"'
    made = controller.create("configmaps", config_map(), namespace="default")
    with pytest.raises(UnknownFieldError, match="toy-controller"):
        controller.patch(
            "configmaps",
            made["metadata"]["name"],
            Patch(MERGE_PATCH, {"extra": 1}),
            namespace="default",
        )


def test_unknown_fields_are_errors_warnings_or_nothing(client: Client) -> None:
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    wrong = {**config_map(), "extra": {"deep": 1}}
    status = refused(client, wrong, field_validation="Strict")
    assert str(status) == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "extra"'
    )
    made = client.create(
        "configmaps",
        wrong,
        namespace="default",
        options=CreateOptions(dry_run=True, field_validation="Warn"),
    )
    assert "extra" not in made
    assert warnings == ['unknown field "extra"']
    client.create("configmaps", wrong, namespace="default")
    assert warnings == ['unknown field "extra"']


def test_value_of_wrong_type_is_bad_request(client: Client) -> None:
    status = refused(client, {**config_map(), "data": {"live": True}})
    assert (status.reason, str(status)) == (
        "BadRequest",
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal bool '
        "into Go "
        "struct field ConfigMap.data of type string",
    )


def test_dry_run_answers_as_if_and_writes_nothing(cluster: LocalCluster) -> None:
    client, before = cluster.client, cluster.client.revision()
    made = client.create(
        "configmaps", config_map(), namespace="default", options=CreateOptions(dry_run=True)
    )
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    client.create("configmaps", config_map("there"), namespace="default")
    with pytest.raises(Status, match="already exists"):
        client.create(
            "configmaps",
            config_map("there"),
            namespace="default",
            options=CreateOptions(dry_run=True),
        )
    gone = client.delete(
        "configmaps", "there", namespace="default", options=DeleteOptions(dry_run=True)
    )
    assert gone["metadata"]["name"] == "there"
    assert client.revision() == before + 1
    assert [one["metadata"]["name"] for one in client.list("configmaps").items] == ["there"]


def test_new_cluster_has_its_namespaces_and_priority_classes(client: Client) -> None:
    assert [one["metadata"]["name"] for one in client.list("namespaces").items] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    default = client.get("namespaces", "default")
    assert default["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}
    assert (default["spec"], default["status"]) == (
        {"finalizers": ["kubernetes"]},
        {"phase": "Active"},
    )
    assert [
        (one["metadata"]["name"], one["value"])
        for one in client.list("priorityclasses.scheduling.k8s.io").items
    ] == [("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)]


# --- admission ------------------------------------------------------------------------------------


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "c:1"}], **spec},
    }


def test_pod_gets_priority_and_five_minutes_on_failing_node(client: Client) -> None:
    spec = client.create("pods", pod(), namespace="default")["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in spec
    assert spec["tolerations"] == [
        {
            "effect": "NoExecute",
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]


def test_pods_own_toleration_is_kept(client: Client) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    spec = client.create("pods", pod(tolerations=[own]), namespace="default")["spec"]
    assert spec["tolerations"] == [
        own,
        {
            "effect": "NoExecute",
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "tolerationSeconds": 300,
        },
    ]


def test_priority_comes_from_class_that_pod_names(client: Client) -> None:
    spec = client.create(
        "pods", pod(priorityClassName="system-node-critical"), namespace="default"
    )["spec"]
    assert spec["priority"] == 2000001000
    with pytest.raises(Status) as caught:
        client.create("pods", pod(priorityClassName="absent"), namespace="default")
    assert str(caught.value) == 'pods "p" is forbidden: no PriorityClass with name absent was found'
    with pytest.raises(
        Status, match=r"the integer value of priority \(7\) must not be provided in pod spec"
    ):
        client.create("pods", pod(priority=7), namespace="default")


def test_default_class_is_taken_when_pod_names_none(client: Client) -> None:
    for name, value, default in (("high", 20, False), ("low", 10, True)):
        client.create(
            "priorityclasses.scheduling.k8s.io",
            {
                "metadata": {"name": name},
                "value": value,
                "globalDefault": default,
                "preemptionPolicy": "Never",
            },
        )
    spec = client.create("pods", pod(), namespace="default")["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (
        "low",
        10,
        "Never",
    )


def test_new_node_is_tainted_until_it_is_ready(client: Client) -> None:
    own = {"key": "a", "effect": "NoExecute"}
    node = client.create("nodes", {"metadata": {"name": "n"}, "spec": {"taints": [own]}})
    assert node["spec"]["taints"] == [
        own,
        {"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"},
    ]
