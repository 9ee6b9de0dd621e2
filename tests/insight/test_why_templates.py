"""Pods that are of an earlier template of their ReplicaSet or ReplicationController."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy import Cluster
from kubepy.insight.why.templates import follows


def pod(**spec: Any) -> dict[str, Any]:
    """Return a pod as it is stored: with what admission and the scheduler have added."""
    token = {"name": "kube-api-access-x", "projected": {}}
    container = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
        "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/var/run"}],
    }
    own = {
        "containers": [container],
        "nodeName": "node-1",
        "serviceAccountName": "default",
        "tolerations": [{"key": "a"}],
        "volumes": [token],
    }
    return {"spec": {**own, **spec}}


def replica_set(*, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "100m"}}
    containers = [{"name": "c", "image": "i", "resources": resources, **(container or {})}]
    template = {"spec": {"containers": containers, **spec}}
    return {"kind": "ReplicaSet", "spec": {"template": template}}


def test_pod_with_what_admission_adds_follows_its_template() -> None:
    assert follows(pod(), replica_set())


@pytest.mark.parametrize(
    ("own", "template"),
    [
        ({}, {"container": {"image": "j"}}),
        ({}, {"container": {"resources": {"requests": {"cpu": "50m"}}}}),
        ({}, {"container": {"env": [{"name": "A", "value": "b"}]}}),
        ({}, {"nodeSelector": {"disk": "ssd"}}),
        ({}, {"tolerations": [{"key": "b"}]}),
        ({}, {"serviceAccountName": "robot"}),
        ({}, {"volumes": [{"name": "v", "emptyDir": {}}]}),
        ({"nodeSelector": {"disk": "ssd"}}, {}),
        ({"schedulingGates": [{"name": "g"}]}, {}),
        ({"serviceAccountName": "robot"}, {}),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {}),
    ],
)
def test_pod_of_an_earlier_template_does_not_follow(
    own: dict[str, Any], template: dict[str, Any]
) -> None:
    assert not follows(pod(**own), replica_set(**template))


def test_pod_whose_gate_was_removed_follows_its_template() -> None:
    assert follows(pod(), replica_set(schedulingGates=[{"name": "g"}]))


def test_broken_pods_of_an_earlier_template_are_to_be_deleted() -> None:
    cluster = Cluster.temporary(nodes=1)
    metadata = {"labels": {"app": "web"}}
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"disk": "ssd"}}
    cluster.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": metadata, "spec": spec},
            },
        }
    )
    cluster.settle(0)
    path = '[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]'
    cluster.run(f"patch rs/web --type=json -p '{path}'", check=True)
    cluster.settle(0)
    answer = cluster.why("rs/web")
    assert answer.cause == "broken-revision"
    [remedy] = answer.remedies
    assert remedy.proven
    assert remedy.command[:2] == ("delete", "pod")
    assert len(remedy.command) == 4, "both pods"
