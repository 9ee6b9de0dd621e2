"""Generic ephemeral volumes: each pod has claims of its own, created and deleted with it."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object, annotations_of, controller_of, labels_of, uid_of
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.conftest import Lab
from tests.controllers.statefulset_objects import storage_class
from tests.controllers.volume_objects import CLAIMS, claim, claims, make, pod, said


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.node("node-1")
    return lab


def with_scratch(name: str = "p", **metadata: object) -> Object:
    """Return a pod with an ephemeral volume."""
    template = {"metadata": metadata, "spec": claim()["spec"]}
    return pod(name, volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])


def get_claim(lab: Lab) -> Object:
    return lab.client.get(CLAIMS, "p-scratch", namespace="default")


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_claim_is_pods_own_and_as_its_template_says(lab: Lab, mode: str) -> None:
    make(
        lab,
        storage_class(mode=mode),
        with_scratch(labels={"use": "scratch"}, annotations={"note": "x"}),
    )
    lab.settle()
    [made] = lab.client.list("pods").items
    owner = controller_of(get_claim(lab))
    assert owner == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": uid_of(made),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert (labels_of(get_claim(lab)), annotations_of(get_claim(lab))["note"]) == (
        {"use": "scratch"},
        "x",
    )
    assert (claims(lab)["p-scratch"][0], made["status"]["phase"]) == ("Bound", "Running")


def test_claim_and_its_volume_go_with_pod(lab: Lab) -> None:
    make(lab, storage_class(), with_scratch())
    lab.settle()
    lab.client.delete("pods", "p", namespace="default")
    lab.settle()
    assert (lab.names(CLAIMS), lab.names("persistentvolumes")) == ([], [])


def test_claim_of_name_that_is_not_pods_is_not_touched(lab: Lab) -> None:
    make(lab, storage_class(mode="Immediate"), claim("p-scratch"), with_scratch())
    lab.settle()
    assert lab.client.get("pods", "p", namespace="default")["status"]["phase"] == "Pending"
    why = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    assert set(said(lab, "p")) == {
        f"Warning FailedBinding: ephemeral volume scratch: {why}",
        f"Warning FailedScheduling: 0/1 nodes are available: {why}. not found",
    }
    lab.client.delete(CLAIMS, "p-scratch", namespace="default")
    lab.settle()
    assert lab.client.get("pods", "p", namespace="default")["status"]["phase"] == "Running"


def test_claim_that_somebody_deletes_before_pod_has_node_is_made_again(lab: Lab) -> None:
    make(lab, with_scratch())  # no class: the claim stays Pending, and the pod unscheduled
    lab.settle()
    before = uid_of(get_claim(lab))
    lab.client.delete(CLAIMS, "p-scratch", namespace="default")
    lab.settle()
    assert uid_of(get_claim(lab)) != before


def test_claim_that_cannot_be_made_is_told(lab: Lab) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"persistentvolumeclaims": "0"}},
    }
    lab.create("resourcequotas", quota, "default")
    lab.settle()
    make(lab, with_scratch())
    lab.settle()
    why = (
        'create PVC p-scratch: persistentvolumeclaims "p-scratch" is forbidden: exceeded quota: '
        "q, requested: "
        "persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: "
        "persistentvolumeclaims=0"
    )
    assert f"Warning FailedBinding: ephemeral volume scratch: {why}" in said(lab, "p")


def test_finalizer_of_pod_that_was_shut_down_does_not_hold_its_claim(lab: Lab) -> None:
    held = with_scratch()
    held["metadata"]["finalizers"] = ["test/held"]
    make(lab, storage_class(), held)
    lab.settle()
    lab.client.delete(CLAIMS, "p-scratch", namespace="default")
    lab.settle()
    assert lab.names(CLAIMS) == ["p-scratch"]
    lab.client.delete(
        "pods", "p", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    lab.settle()
    assert (lab.names(CLAIMS), lab.names("pods")) == ([], ["p"])
