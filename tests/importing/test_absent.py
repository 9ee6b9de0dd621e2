"""What a source names and does not hold: it is listed, and what was at rest stays so."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api import errors
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import DeleteOptions
from kubepy.controlplane import build_manager
from kubepy.importing.making import ImportedCluster
from kubepy.storage import Key
from tests.importing.conftest import fields, import_objects, owned_by, pod

POD = Key("pods", "shop", "web-1")
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}


def settle(cluster: LocalCluster) -> int:
    """Run the controllers; return how many objects they have changed."""
    before = cluster.store.revision
    build_manager(cluster).run_until_settled()
    changes = cluster.store.changes(before).changes
    return len([change for change in changes if change.key.resource != "events"])


def owned_pod(**more: Any) -> dict[str, Any]:
    return pod("web-1", metadata=owned_by("ReplicaSet", "web"), **more)


def test_absent_owner_is_listed_and_put_down() -> None:
    imported = import_objects([owned_pod()])
    assert imported.absent.named["ReplicaSet.apps"] == ["shop/web"]
    assert imported.settings["absent"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "namespace": "shop",
            "name": "web",
            "uid": "uid-of-ReplicaSet-web",
        }
    ]


def test_pod_of_an_absent_owner_is_not_collected() -> None:
    imported = import_objects([owned_pod()])
    assert settle(imported.cluster) == 0
    assert imported.cluster.store.get(POD) is not None


def test_pod_is_collected_once_somebody_makes_an_object_of_the_owners_name() -> None:
    imported = import_objects([owned_pod()])
    selector = {"matchLabels": {"app": "other"}}
    template = {
        "metadata": {"labels": {"app": "other"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    spec = {"replicas": 0, "selector": selector, "template": template}
    imported.cluster.client.create(
        "replicasets.apps", {"metadata": {"name": "web"}, "spec": spec}, namespace="shop"
    )
    settle(imported.cluster)
    assert imported.cluster.store.get(POD) is None


def test_owner_in_whose_place_another_object_is_counts_as_gone() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    other = fields(
        "ReplicaSet", "web", "shop", apiVersion="apps/v1", metadata={"uid": "newer"}, spec=spec
    )
    imported = import_objects([owned_pod(), other])
    assert "absent" not in imported.settings
    settle(imported.cluster)
    assert imported.cluster.store.get(POD) is None


def test_pod_of_an_absent_job_keeps_its_finalizer() -> None:
    metadata = {
        **owned_by("Job", "tidy", "batch/v1"),
        "finalizers": ["batch.kubernetes.io/job-tracking"],
    }
    imported = import_objects([pod("web-1", metadata=metadata)])
    settle(imported.cluster)
    kept = imported.cluster.store.get(POD)
    assert kept is not None
    assert kept["metadata"]["finalizers"] == metadata["finalizers"]


def test_nodes_that_pods_name_are_made_where_the_source_has_none() -> None:
    requests = {"cpu": "30", "memory": "1Gi"}
    container = {"name": "c", "image": "nginx", "resources": {"requests": requests}}
    spec = {"containers": [container], "nodeSelector": {"disk": "fast"}}
    imported = import_objects([pod("a", spec=spec, status={"hostIP": "10.1.2.3"})])
    node = imported.cluster.store.get(Key("nodes", "", "n"))
    assert node is not None
    assert imported.made.nodes == ["n"]
    assert node["metadata"]["labels"]["disk"] == "fast"
    assert node["status"]["capacity"]["cpu"] == "60"
    assert node["status"]["addresses"][0] == {"address": "10.1.2.3", "type": "InternalIP"}
    assert settle(imported.cluster) == 0


def test_made_node_has_room_for_init_containers_sidecars_and_overhead() -> None:
    def container(name: str, cpu: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("c", "20")],
        "initContainers": [
            container("sidecar", "15", restartPolicy="Always"),
            container("setup", "30"),
        ],
        "overhead": {"cpu": "1"},
    }
    imported = import_objects([pod("a", spec=spec)])
    node = imported.cluster.client.get("nodes", "n")
    assert node["status"]["capacity"]["cpu"] == "92"  # twice 15 + 30 + 1


def test_made_node_has_the_uid_that_mirror_pods_name() -> None:
    reference = {**owned_by("Node", "n", "v1")["ownerReferences"][0], "uid": "uid-of-n"}
    metadata = {
        "ownerReferences": [reference],
        "annotations": {"kubernetes.io/config.mirror": "hash"},
    }
    imported = import_objects([pod("web-1", metadata=metadata)])
    node = imported.cluster.store.get(Key("nodes", "", "n"))
    assert node is not None
    assert node["metadata"]["uid"] == "uid-of-n"
    assert "absent" not in imported.settings
    assert settle(imported.cluster) == 0
    assert imported.cluster.store.get(POD) is not None


def stateful_set(**more: Any) -> dict[str, Any]:
    """Return a StatefulSet db with one replica, which has a claim."""
    labels = {"app": "db"}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "serviceName": "db",
        "template": {"metadata": {"labels": labels}, "spec": template_spec()},
        "volumeClaimTemplates": [claim],
    }
    status = {
        "currentRevision": "db-5b7c9d8f6b",
        "updateRevision": "db-5b7c9d8f6b",
        "replicas": 1,
    }
    return fields(
        "StatefulSet",
        "db",
        "shop",
        apiVersion="apps/v1",
        spec=spec | more.pop("spec", {}),
        status=status | more.pop("status", {}),
    )


def stateful_pod(name: str, hash_: str = "5b7c9d8f6b", image: str = "nginx") -> dict[str, Any]:
    """Return a pod of that StatefulSet."""
    ordinal = name.rpartition("-")[2]
    labels = {
        "app": "db",
        "apps.kubernetes.io/pod-index": ordinal,
        "controller-revision-hash": f"db-{hash_}",
        "statefulset.kubernetes.io/pod-name": name,
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
    spec = {
        "containers": [{"name": "c", "image": image}],
        "volumes": [volume],
        "hostname": name,
        "subdomain": "db",
    }
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T10:00:00Z"}
    metadata = {"labels": labels, **owned_by("StatefulSet", "db")}
    return pod(name, metadata=metadata, spec=spec, status={"conditions": [condition]})


def test_new_pod_of_a_stateful_set_has_the_claim_that_the_source_does_not_hold() -> None:
    imported = import_objects([stateful_set(), stateful_pod("db-0")])
    cluster = imported.cluster
    settle(cluster)
    before = cluster.store.get(Key("pods", "shop", "db-0"))
    assert before is not None
    cluster.client.delete("pods", "db-0", namespace="shop")
    settle(cluster)
    after = cluster.store.get(Key("pods", "shop", "db-0"))
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["phase"] == "Running"
    assert cluster.client.list("persistentvolumeclaims", namespace="shop").items == []


def test_node_is_not_made_where_the_source_has_nodes() -> None:
    other = fields("Node", "other", status={"conditions": [READY]})
    imported = import_objects([pod("a"), other])
    assert imported.made.nodes == []
    assert imported.absent.named["Node"] == ["n"]


def test_namespaces_are_made() -> None:
    imported = import_objects([pod("a")])
    assert imported.made.namespaces == ["shop"]
    assert imported.cluster.store.get(Key("namespaces", "", "shop")) is not None


def needy(name: str, **more: Any) -> dict[str, Any]:
    """Return a pod that needs a ConfigMap, a Secret and a claim."""
    spec = {
        "containers": [
            {
                "name": "c",
                "image": "nginx",
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}},
                    }
                ],
            }
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    return pod(name, spec=spec, **more)


def new_pod(imported: ImportedCluster) -> Any:
    """Create another such pod without a node; return it after the controllers."""
    manifest = needy("later")
    for field in ("uid", "creationTimestamp"):
        del manifest["metadata"][field]
    del manifest["spec"]["nodeName"], manifest["status"]
    imported.cluster.client.create("pods", manifest, namespace="shop")
    settle(imported.cluster)
    return imported.cluster.store.get(Key("pods", "shop", "later"))


def test_new_pod_does_not_wait_for_what_a_started_one_had() -> None:
    imported = import_objects([needy("web-1")])
    assert {entry["kind"] for entry in imported.settings["absent"]} == {
        "ConfigMap",
        "PersistentVolumeClaim",
        "Secret",
    }
    assert settle(imported.cluster) == 0
    assert new_pod(imported)["status"]["phase"] == "Running"


def test_new_pod_waits_for_what_no_pod_is_known_to_have_had() -> None:
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    status = {
        "phase": "Pending",
        "containerStatuses": [
            {
                "name": "c",
                "image": "nginx",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": waiting,
            }
        ],
    }
    imported = import_objects([needy("web-1", status=status)])
    assert "absent" not in imported.settings
    assert imported.absent.named["ConfigMap"] == ["shop/settings"]
    assert new_pod(imported)["status"]["phase"] == "Pending"


def test_implied_and_optional_objects_are_not_listed() -> None:
    volume = {"name": "v", "configMap": {"name": "maybe", "optional": True}}
    binding = fields(
        "ClusterRoleBinding",
        "admin",
        apiVersion="rbac.authorization.k8s.io/v1",
        roleRef={
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
    )
    spec = {"volumes": [volume], "serviceAccountName": "default"}
    imported = import_objects([pod("a", spec=spec), binding])
    assert list(imported.absent.named) == ["Node"]


def test_other_named_objects_are_listed_by_kind() -> None:
    spec = {
        "serviceAccountName": "robot",
        "priorityClassName": "high",
        "runtimeClassName": "gvisor",
        "imagePullSecrets": [{"name": "registry"}],
    }
    imported = import_objects([pod("a", spec=spec), pod("b", spec=spec)])
    assert imported.absent.named == {
        "Node": ["n"],
        "PriorityClass.scheduling.k8s.io": ["high"],
        "RuntimeClass.node.k8s.io": ["gvisor"],
        "Secret": ["shop/registry"],
        "ServiceAccount": ["shop/robot"],
    }


def template_spec() -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "nginx"}]}


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_node_that_is_not_ready_stays_so(status: str) -> None:
    condition = {**READY, "status": status, "lastTransitionTime": "2026-03-01T09:00:00Z"}
    taint = "not-ready" if status == "False" else "unreachable"
    taints = [
        {
            "key": f"node.kubernetes.io/{taint}",
            "effect": effect,
            "timeAdded": "2026-03-01T09:00:00Z",
        }
        for effect in ("NoSchedule", "NoExecute")
    ]
    annotations = {"node.alpha.kubernetes.io/ttl": "0"}
    down = fields(
        "Node",
        "down",
        metadata={"annotations": annotations},
        spec={"taints": taints},
        status={"conditions": [condition]},
    )
    up = fields(
        "Node",
        "n",
        metadata={"annotations": annotations},
        status={"conditions": [READY], "capacity": ROOM, "allocatable": ROOM},
    )
    imported = import_objects([up, down])
    assert imported.settings["kubelet"]["silentNodes"] == ["down"]
    key = Key("nodes", "", "down")
    before = imported.cluster.store.get(key)
    settle(imported.cluster)
    assert imported.cluster.store.get(key) == before
    imported.cluster.client.create(
        "pods", {"metadata": {"name": "p"}, "spec": template_spec()}, namespace="default"
    )
    settle(imported.cluster)
    placed = imported.cluster.store.get(Key("pods", "default", "p"))
    assert placed is not None
    assert placed["spec"]["nodeName"] == "n"


def test_pod_is_collected_once_its_absent_owner_is_deleted() -> None:
    imported = import_objects([owned_pod()])
    cluster = imported.cluster
    settle(cluster)
    orphaning = DeleteOptions(propagation_policy="Orphan")
    with pytest.raises(errors.NotFound):
        cluster.client.delete("replicasets.apps", "web", namespace="shop", options=orphaning)
    dry_run = DeleteOptions(dry_run=True)
    cluster.client.delete("replicasets.apps", "web", namespace="shop", options=dry_run)
    settle(cluster)
    assert cluster.store.get(POD) is not None
    cluster.client.delete("replicasets.apps", "web", namespace="shop")
    assert "absent" not in cluster.store.settings()
    settle(cluster)
    assert cluster.store.get(POD) is None
    with pytest.raises(errors.NotFound):
        cluster.client.delete("replicasets.apps", "web", namespace="shop")


def terminating_namespace(message: str, kind: str = "NamespaceContentRemaining") -> dict[str, Any]:
    """Return the namespace shop, which is being deleted and has content."""
    condition = {
        "type": kind,
        "status": "True",
        "reason": "SomeResourcesRemain",
        "message": message,
        "lastTransitionTime": "2026-03-01T09:00:06Z",
    }
    return fields(
        "Namespace",
        "shop",
        metadata={"deletionTimestamp": "2026-03-01T09:00:00Z", "uid": "uid-of-shop"},
        spec={"finalizers": ["kubernetes"]},
        status={"phase": "Terminating", "conditions": [condition]},
    )


SHOP = Key("namespaces", "", "shop")


@pytest.mark.parametrize(
    ("kind", "message", "remaining"),
    [
        (
            "NamespaceContentRemaining",
            "Some resources are remaining: widgets.acme.io has 1 resource instances",
            "widgets.acme.io",
        ),
        (
            "NamespaceContentRemaining",
            "Some resources are remaining: configmaps. has 2 resource instances",
            "configmaps",
        ),
        (
            "NamespaceFinalizersRemaining",
            "Some content in the namespace has finalizers remaining: a.io/x in 1 resource "
            "instances",
            "objects with a.io/x",
        ),
        ("NamespaceDeletionDiscoveryFailure", "Discovery failed for some groups", "unknown"),
    ],
)
def test_terminating_namespace_stays_where_its_content_is_absent(
    kind: str, message: str, remaining: str
) -> None:
    imported = import_objects([terminating_namespace(message, kind)])
    cluster = imported.cluster
    entry = {"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": "uid-of-shop"}
    assert imported.settings["absent"] == [{**entry, "remaining": remaining}]
    before = cluster.store.get(SHOP)
    settle(cluster)
    assert cluster.store.get(SHOP) == before
    assert before is not None


def test_terminating_namespace_whose_content_is_held_goes_with_it() -> None:
    message = "Some resources are remaining: configmaps. has 1 resource instances"
    config = fields("ConfigMap", "settings", "shop")
    imported = import_objects([terminating_namespace(message), config])
    assert "absent" not in imported.settings
    settle(imported.cluster)
    assert imported.cluster.store.get(SHOP) is None


ROLLOUT = {
    "currentRevision": "db-5b7c9d8f6b",
    "updateRevision": "db-6c8d7f9b5d",
    "replicas": 2,
    "readyReplicas": 2,
    "availableReplicas": 2,
    "currentReplicas": 1,
    "updatedReplicas": 1,
    "collisionCount": 0,
}
ON_DELETE = {"replicas": 2, "updateStrategy": {"type": "OnDelete"}}
OLD_REVISION = Key("controllerrevisions.apps", "shop", "db-5b7c9d8f6b")


def test_revision_that_a_stateful_set_is_updated_from_is_read_from_its_pods() -> None:
    pods = [stateful_pod("db-0", image="old"), stateful_pod("db-1", "6c8d7f9b5d")]
    imported = import_objects([stateful_set(spec=ON_DELETE, status=ROLLOUT), *pods])
    assert "ControllerRevision.apps" not in imported.absent.named
    cluster = imported.cluster
    revision = cluster.store.get(OLD_REVISION)
    assert revision is not None
    (container,) = revision["data"]["spec"]["template"]["spec"]["containers"]
    assert (container["image"], revision["revision"]) == ("old", 1)
    settle(cluster)
    after = cluster.client.get("statefulsets.apps", "db", namespace="shop")
    assert after["status"] == ROLLOUT


def test_revision_that_no_pod_tells_is_absent_and_stays_the_current_one() -> None:
    pods = [stateful_pod("db-0", image="old"), stateful_pod("db-1", "6c8d7f9b5d", "injected")]
    imported = import_objects([stateful_set(spec=ON_DELETE, status=ROLLOUT), *pods])
    assert imported.absent.named["ControllerRevision.apps"] == ["shop/db-5b7c9d8f6b"]
    cluster = imported.cluster
    assert cluster.store.get(OLD_REVISION) is None
    settle(cluster)
    status = cluster.client.get("statefulsets.apps", "db", namespace="shop")["status"]
    assert status["currentRevision"] == "db-5b7c9d8f6b"
    assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 1)
