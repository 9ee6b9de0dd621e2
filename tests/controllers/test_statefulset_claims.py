"""Claims of StatefulSets: created before their pods, owned by the retention policy, reported in
events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.api.meta import Object, annotations_of, labels_of, name_of, uid_of
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.statefulset_objects import CLAIMS, StatefulLab, stateful_set, storage_class
from tests.stores import disagreements


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[StatefulLab]:
    made = StatefulLab(tmp_path / "state")
    yield made
    assert disagreements(made.cluster.store) == []
    made.cluster.close()


def owners(lab: StatefulLab) -> dict[str, list[str]]:
    return {
        name_of(claim): [one["kind"] for one in claim["metadata"].get("ownerReferences", [])]
        for claim in lab.client.list(CLAIMS).items
    }


def test_claims_are_owned_as_retention_policy_says_and_follow_its_changes(lab: StatefulLab) -> None:
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.make(stateful_set(claims=True, replicas=2))
    lab.run()
    for when_deleted, when_scaled, kinds in (
        ("Delete", "Retain", ["StatefulSet"]),
        ("Retain", "Delete", []),
        ("Delete", "Delete", ["StatefulSet"]),
        ("Retain", "Retain", []),
    ):
        lab.edit(
            persistentVolumeClaimRetentionPolicy={
                "whenDeleted": when_deleted,
                "whenScaled": when_scaled,
            }
        )
        lab.run()
        assert owners(lab) == {"data-db-0": kinds, "data-db-1": kinds}


def test_scaling_down_takes_claims_and_volumes_of_condemned_pods_along(lab: StatefulLab) -> None:
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.make(
        stateful_set(claims=True, persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"})
    )
    lab.run()
    lab.edit(replicas=1)
    lab.run()
    assert (sorted(owners(lab)), len(lab.names("persistentvolumes"))) == (["data-db-0"], 1)


def test_pod_made_again_does_not_take_claim_that_goes_with_one_before(lab: StatefulLab) -> None:
    """Scale down and up again while the pod stays Terminating."""
    lab.create("storageclasses.storage.k8s.io", storage_class())
    obj = stateful_set(
        claims=True, replicas=2, persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"}
    )
    obj["spec"]["template"]["metadata"]["annotations"] = {"kubepy.dev/termination": "stuck"}
    lab.make(obj)
    lab.run()
    before = uid_of(lab.client.get(CLAIMS, "data-db-1", namespace="default"))
    lab.edit(replicas=1)
    lab.run()
    assert owners(lab) == {"data-db-0": [], "data-db-1": ["Pod"]}
    lab.edit(replicas=2)
    lab.client.delete(
        "pods", "db-1", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    lab.run()
    claim = lab.client.get(CLAIMS, "data-db-1", namespace="default")
    assert (uid_of(claim) == before, claim["status"]["phase"], owners(lab)["data-db-1"]) == (
        False,
        "Bound",
        [],
    )
    assert lab.set()["status"]["readyReplicas"] == 2
    assert not any(one.startswith("Failed") for one in lab.messages("StatefulSet", "db"))


def test_claim_deleted_under_pod_that_waits_for_it_is_made_again(lab: StatefulLab) -> None:
    lab.make(stateful_set(claims=True))  # without a class no claim is bound
    lab.run()
    before = uid_of(lab.client.get(CLAIMS, "data-db-0", namespace="default"))
    lab.client.delete(CLAIMS, "data-db-0", namespace="default")
    lab.run()
    assert uid_of(lab.client.get(CLAIMS, "data-db-0", namespace="default")) != before


def test_set_that_comes_back_finds_its_claims(lab: StatefulLab) -> None:
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.make(stateful_set(claims=True))
    lab.run()
    before = {
        name_of(claim): claim["spec"]["volumeName"] for claim in lab.client.list(CLAIMS).items
    }
    lab.edit(replicas=0)
    lab.run()
    lab.edit(replicas=3)
    lab.run()
    assert {
        name_of(claim): claim["spec"]["volumeName"] for claim in lab.client.list(CLAIMS).items
    } == before
    assert lab.set()["status"]["readyReplicas"] == 3


def test_claims_bear_labels_of_their_template_and_above_them_those_of_selector(
    lab: StatefulLab,
) -> None:
    obj = stateful_set(claims=True, replicas=1)
    [template] = obj["spec"]["volumeClaimTemplates"]
    metadata = {
        "name": "data",
        "labels": {"app": "other", "tier": "disk"},
        "annotations": {"note": "x"},
    }
    lab.make(
        {
            **obj,
            "spec": {**obj["spec"], "volumeClaimTemplates": [{**template, "metadata": metadata}]},
        }
    )
    lab.run()
    claim = lab.client.get(CLAIMS, "data-db-0", namespace="default")
    assert (labels_of(claim), annotations_of(claim)) == (
        {"app": "db", "tier": "disk"},
        {"note": "x"},
    )


def test_stateful_set_events_are_upstreams(lab: StatefulLab) -> None:
    lab.make(stateful_set(claims=True, replicas=1))
    lab.run()
    lab.edit(replicas=0)
    lab.run()
    assert lab.messages("StatefulSet", "db") == [
        "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful",
        "SuccessfulDelete: Delete Pod db-0 in StatefulSet db successful",
    ]


def test_claims_that_change_hands_are_told_of_as_update_of_their_pod(lab: StatefulLab) -> None:
    lab.make(stateful_set(claims=True, replicas=1))
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.run()
    before = lab.messages("StatefulSet", "db")
    lab.edit(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"})
    lab.run()
    assert lab.messages("StatefulSet", "db")[len(before) :] == [
        "SuccessfulUpdate: Update Pod db-0 in StatefulSet db successful"
    ]


def test_label_is_given_back_to_pod_whose_claim_is_being_deleted(lab: StatefulLab) -> None:
    def forget_name(pod: Object) -> None:
        del pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"]

    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.make(stateful_set(claims=True, replicas=1))
    lab.run()
    lab.client.delete(CLAIMS, "data-db-0", namespace="default")
    lab.change("pods", "db-0", forget_name, "default")
    lab.run()
    assert labels_of(lab.pods()[0])["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert (
        lab.messages("StatefulSet", "db")[-1]
        == "SuccessfulUpdate: Update Pod db-0 in StatefulSet db successful"
    )


def test_claims_of_pod_that_cannot_be_made_have_their_owner(lab: StatefulLab) -> None:
    obj = stateful_set(claims=True, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"})
    obj["spec"]["template"]["spec"]["priorityClassName"] = "none"
    lab.make(obj)
    lab.run()
    assert owners(lab) == {"data-db-0": ["StatefulSet"]}
    assert lab.messages("StatefulSet", "db") == [
        "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        'FailedCreate: Create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: '
        "no PriorityClass with "
        "name none was found",
    ]


def test_adopted_pod_without_claims_volume_cannot_be_mended(lab: StatefulLab) -> None:
    """Adopt a pod without the claim's volume: a pod's volumes never change, so the set waits until
    somebody deletes the pod."""
    labels = {"app": "db", "statefulset.kubernetes.io/pod-name": "db-0"}
    lab.create(
        "pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "db-0", "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "x"}], "nodeName": "node-1"},
        },
        "default",
    )
    lab.make(stateful_set(claims=True))
    lab.run()
    created, failed = lab.messages("StatefulSet", "db")
    assert created == "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success"
    assert failed.startswith(
        'FailedUpdate: Update Pod db-0 in StatefulSet db failed error: Pod "db-0" is invalid: '
        "spec: Forbidden: pod updates may not change fields other than"
    )
    assert [name_of(pod) for pod in lab.pods()] == ["db-0"]


def test_pod_waits_for_claim_that_is_being_deleted(lab: StatefulLab) -> None:
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.make(stateful_set(claims=True, replicas=1))
    lab.run()
    lab.change(
        CLAIMS,
        "data-db-0",
        lambda one: one["metadata"]["finalizers"].append("test/held"),
        "default",
    )
    lab.client.delete(CLAIMS, "data-db-0", namespace="default")
    lab.client.delete("pods", "db-0", namespace="default")
    lab.run()
    assert lab.pods() == []
    assert lab.messages("StatefulSet", "db")[-1] == (
        "FailedCreate: Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being "
        "deleted"
    )


def test_claim_that_another_controls_is_left_to_it(lab: StatefulLab) -> None:
    owner = lab.config_map("keeper")
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "keeper",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.create(
        CLAIMS,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-db-0", "ownerReferences": [reference]},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        "default",
    )
    lab.make(
        stateful_set(
            claims=True, replicas=1, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}
        )
    )
    lab.run()
    assert owners(lab) == {"data-db-0": ["ConfigMap"]}
    assert lab.messages("StatefulSet", "db")[0] == (
        "ConflictingController: PersistentVolumeClaim data-db-0 has a conflicting OwnerReference "
        "that acts as a "
        "manging controller, the retention policy is ignored for this claim"
    )
