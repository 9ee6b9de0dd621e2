"""Objects in older API versions."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.storage import Key
from tests.importing.conftest import fields, import_objects

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}
OLD_RULES = [
    {"http": {"paths": [{"path": "/", "backend": {"serviceName": "web", "servicePort": "http"}}]}}
]


def stored(obj: dict[str, Any], resource: str) -> dict[str, Any]:
    """Import one object; return it as it is stored."""
    imported = import_objects([obj])
    metadata = obj["metadata"]
    key = Key(resource, metadata.get("namespace", ""), metadata["name"])
    found = imported.cluster.store.get(key)
    assert found is not None, imported.taken.refused
    assert imported.taken.converted == {(obj["kind"], obj["apiVersion"]): 1}
    return found


@pytest.mark.parametrize("version", ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"])
def test_workload_of_the_first_versions_gets_its_selector(version: str) -> None:
    obj = fields(
        "Deployment", "web", "shop", apiVersion=version, spec={"template": TEMPLATE, "replicas": 2}
    )
    converted = stored(obj, "deployments.apps")
    assert converted["apiVersion"] == "apps/v1"
    assert converted["spec"]["selector"] == SELECTOR


@pytest.mark.parametrize("version", ["extensions/v1beta1", "networking.k8s.io/v1beta1"])
def test_ingress_gets_backends_of_v1(version: str) -> None:
    spec = {"backend": {"serviceName": "all", "servicePort": 80}, "rules": OLD_RULES}
    obj = fields("Ingress", "web", "shop", apiVersion=version, spec=spec)
    converted = stored(obj, "ingresses.networking.k8s.io")
    assert converted["spec"] == {
        "defaultBackend": {"service": {"name": "all", "port": {"number": 80}}},
        "rules": [
            {
                "http": {
                    "paths": [
                        {
                            "path": "/",
                            "pathType": "ImplementationSpecific",
                            "backend": {"service": {"name": "web", "port": {"name": "http"}}},
                        }
                    ]
                }
            }
        ],
    }


def test_budget_whose_empty_selector_matched_nothing_matches_nothing() -> None:
    obj = fields(
        "PodDisruptionBudget",
        "web",
        "shop",
        apiVersion="policy/v1beta1",
        spec={"selector": {}, "minAvailable": 1},
    )
    converted = stored(obj, "poddisruptionbudgets.policy")
    assert converted["spec"]["selector"]["matchExpressions"][0]["operator"] == "Exists"


@pytest.mark.parametrize(
    "version", ["autoscaling/v1", "autoscaling/v2beta1", "autoscaling/v2beta2"]
)
def test_autoscaler_keeps_target_and_status(version: str) -> None:
    spec: dict[str, Any] = {
        "maxReplicas": 5,
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
    }
    target: dict[str, Any] = {"type": "Utilization", "averageUtilization": 70}
    if version == "autoscaling/v1":
        spec["targetCPUUtilizationPercentage"] = 70
    elif version == "autoscaling/v2beta1":
        resource: dict[str, Any] = {"name": "cpu", "targetAverageUtilization": 70}
        spec["metrics"] = [{"type": "Resource", "resource": resource}]
    else:
        resource = {"name": "cpu", "target": target}
        spec["metrics"] = [{"type": "Resource", "resource": resource}]
    obj = fields(
        "HorizontalPodAutoscaler",
        "web",
        "shop",
        apiVersion=version,
        spec=spec,
        status={"currentReplicas": 2, "desiredReplicas": 3},
    )
    converted = stored(obj, "horizontalpodautoscalers.autoscaling")
    assert converted["spec"]["metrics"][0]["resource"] == {"name": "cpu", "target": target}
    assert converted["status"]["desiredReplicas"] == 3


def test_endpoint_slice_has_node_and_zone_of_its_topology() -> None:
    topology = {"kubernetes.io/hostname": "n", "topology.kubernetes.io/zone": "z"}
    obj = fields(
        "EndpointSlice",
        "web",
        "shop",
        apiVersion="discovery.k8s.io/v1beta1",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"], "topology": topology}],
    )
    converted = stored(obj, "endpointslices.discovery.k8s.io")
    (endpoint,) = converted["endpoints"]
    assert (endpoint["nodeName"], endpoint["zone"]) == ("n", "z")
    assert "topology" not in endpoint


@pytest.mark.parametrize(
    ("kind", "version", "resource", "more"),
    [
        (
            "ClusterRole",
            "rbac.authorization.k8s.io/v1beta1",
            "clusterroles.rbac.authorization.k8s.io",
            {"rules": []},
        ),
        (
            "StorageClass",
            "storage.k8s.io/v1beta1",
            "storageclasses.storage.k8s.io",
            {"provisioner": "example.org/p"},
        ),
        (
            "PriorityClass",
            "scheduling.k8s.io/v1beta1",
            "priorityclasses.scheduling.k8s.io",
            {"value": 5},
        ),
        (
            "ClusterRoleBinding",
            "rbac.authorization.k8s.io/v1alpha1",
            "clusterrolebindings.rbac.authorization.k8s.io",
            {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "view",
                },
                "subjects": [
                    {"kind": "User", "name": "u", "apiVersion": "rbac.authorization.k8s.io/v1"}
                ],
            },
        ),
    ],
)
def test_version_that_is_not_served_any_more_becomes_v1(
    kind: str, version: str, resource: str, more: dict[str, Any]
) -> None:
    converted = stored(fields(kind, "a", apiVersion=version, **more), resource)
    assert converted["apiVersion"].endswith("/v1")


def test_fields_that_are_not_those_of_the_version_are_refused() -> None:
    spec = {"rules": [{"http": {"paths": ["x"]}}]}
    obj = fields("Ingress", "web", "shop", apiVersion="extensions/v1beta1", spec=spec)
    imported = import_objects([obj, fields("ConfigMap", "a", "shop")])
    assert "its fields are not those of extensions/v1beta1" in imported.taken.refused[0].reason
