"""Objects requested in another version than the stored one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

SCALER = """apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  targetCPUUtilizationPercentage: 50
"""
DEFINITION = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example.org}
spec:
  group: harbour.example.org
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
     properties: {spec: {type: object, properties: {sails: {type: integer}}}}}}}
  - {name: v1beta1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object,
     properties: {spec: {type: object, properties: {sails: {type: integer}}}}}}}
"""  # noqa: E501
BOAT = (
    "apiVersion: harbour.example.org/v1beta1\nkind: Boat\nmetadata: {name: ada}\nspec: {sails: 2}\n"
)
DEPRECATED = (
    "Warning: harbour.example.org/v1beta1 Boat is deprecated; use harbour.example.org/v1 Boat\n"
)


@pytest.fixture
def scaler(kubepy: Kubepy, folder: Path) -> Kubepy:
    (folder / "scaler.yaml").write_text(SCALER)
    assert (
        kubepy("apply", "-f", "scaler.yaml").out
        == "horizontalpodautoscaler.autoscaling/web created\n"
    )
    return kubepy


@pytest.fixture
def boat(kubepy: Kubepy, folder: Path) -> Kubepy:
    (folder / "definition.yaml").write_text(DEFINITION)
    (folder / "boat.yaml").write_text(BOAT)
    kubepy("apply", "-f", "definition.yaml")
    assert kubepy("apply", "-f", "boat.yaml") == Done(
        "boat.harbour.example.org/ada created\n", DEPRECATED, 0
    )
    return kubepy


def test_last_applied_in_older_version_is_applied_in_it(scaler: Kubepy, folder: Path) -> None:
    changed = "horizontalpodautoscaler.autoscaling/web {}\n"
    assert scaler("apply", "-f", "scaler.yaml") == Done(changed.format("unchanged"), "", 0)
    (folder / "scaler.yaml").write_text(SCALER.replace(": 50", ": 70"))
    assert "+  targetCPUUtilizationPercentage: 70\n" in scaler("diff", "-f", "scaler.yaml").out
    assert scaler("apply", "-f", "scaler.yaml") == Done(changed.format("configured"), "", 0)
    assert scaler("get", "hpa", "web", "-o", "jsonpath={.spec.metrics[*].resource.target}").out == (
        '{"averageUtilization":70,"type":"Utilization"}'
    )
    assert scaler("apply", "--server-side", "--force-conflicts", "-f", "scaler.yaml") == Done(
        changed.format("serverside-applied"), "", 0
    )


def test_autoscaler_is_read_in_version_that_is_named(scaler: Kubepy) -> None:
    spec = {
        "maxReplicas": 3,
        "minReplicas": 1,
        "targetCPUUtilizationPercentage": 50,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }
    for words in (("hpa.v1.autoscaling", "web"), ("-f", "scaler.yaml")):
        read = json.loads(scaler("get", *words, "-o", "json").out)
        assert (read["apiVersion"], read["spec"], read["status"]) == (
            "autoscaling/v1",
            spec,
            {"currentReplicas": 0, "desiredReplicas": 0},
        )
    listed = json.loads(scaler("get", "hpa.v1.autoscaling", "-o", "json").out)
    assert [one["spec"] for one in listed["items"]] == [spec]
    raw = scaler(
        "get", "--raw", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/web"
    ).out
    assert json.loads(raw)["spec"] == spec
    assert scaler("get", "hpa", "web", "-o", "jsonpath={.apiVersion}").out == "autoscaling/v2"


def test_tables_and_descriptions_are_same_in_every_version(scaler: Kubepy) -> None:
    tables = [
        scaler("get", word, "-o", "wide").out.splitlines() for word in ("hpa.v1.autoscaling", "hpa")
    ]
    assert [line.split()[:-1] for line in tables[0]] == [line.split()[:-1] for line in tables[1]]
    assert scaler("describe", "hpa.v1.autoscaling", "web") == scaler("describe", "hpa", "web")


def test_older_version_keeps_unknown_fields_in_annotations(kubepy: Kubepy) -> None:
    metrics = [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50},
            },
        },
        {
            "type": "Resource",
            "resource": {
                "name": "memory",
                "target": {"type": "AverageValue", "averageValue": "1Gi"},
            },
        },
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": "hits"},
                "target": {"type": "AverageValue", "averageValue": "5"},
            },
        },
    ]
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "maxReplicas": 3,
            "metrics": metrics,
            "behavior": {
                "scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
            },
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    }
    kubepy("create", "-f", "-", stdin=json.dumps(scaler))
    before = json.loads(kubepy("get", "hpa", "web", "-o", "json").out)["spec"]
    older = json.loads(kubepy("get", "hpa.v1.autoscaling", "web", "-o", "json").out)
    assert older["spec"]["targetCPUUtilizationPercentage"] == 50
    assert json.loads(
        older["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]
    ) == [
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
        {"type": "Pods", "pods": {"metricName": "hits", "targetAverageValue": "5"}},
    ]
    assert kubepy("replace", "-f", "-", stdin=json.dumps(older)).status == 0
    after = json.loads(kubepy("get", "hpa", "web", "-o", "json").out)
    assert "annotations" not in after["metadata"]
    by_type = sorted(after["spec"].pop("metrics"), key=json.dumps)
    assert (by_type, after["spec"]) == (sorted(before.pop("metrics"), key=json.dumps), before)


def test_deprecated_version_is_warned_of_at_every_request(boat: Kubepy) -> None:
    for words in (
        ("get", "boats.v1beta1.harbour.example.org"),
        ("get", "-f", "boat.yaml"),
        ("apply", "-f", "boat.yaml"),
        ("label", "-f", "boat.yaml", "a=b"),
    ):
        assert boat(*words).err == DEPRECATED, words
    assert boat("get", "boats").err == ""
    failed = boat("get", "boats.v1beta1.harbour.example.org", "--warnings-as-errors")
    assert (failed.err, failed.status) == (DEPRECATED + "error: 1 warning received\n", 1)


def test_custom_object_says_version_that_it_was_asked_for_in(boat: Kubepy) -> None:
    assert boat("apply", "-f", "boat.yaml").out == "boat.harbour.example.org/ada unchanged\n"
    version = "jsonpath={.apiVersion}"
    assert boat("get", "-f", "boat.yaml", "-o", version).out == "harbour.example.org/v1beta1"
    assert (
        boat("get", "boat.v1beta1.harbour.example.org/ada", "-o", version).out
        == "harbour.example.org/v1beta1"
    )
    assert boat("get", "boat", "ada", "-o", version).out == "harbour.example.org/v1"
    assert (
        boat("delete", "-f", "boat.yaml").out
        == 'boat.harbour.example.org "ada" deleted from default namespace\n'
    )


def test_older_autoscaler_has_rest_of_status_in_annotations(scaler: Kubepy) -> None:
    condition = {"type": "AbleToScale", "status": "True", "reason": "R", "message": "m"}
    metrics = [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "current": {"averageUtilization": 70, "averageValue": "140m"},
            },
        },
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "memory",
                "container": "web",
                "current": {"averageValue": "1Mi"},
            },
        },
        {"type": ""},
    ]
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "conditions": [condition],
        "currentMetrics": metrics,
    }
    done = scaler(
        "patch",
        "hpa",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": status}),
    )
    assert done.status == 0, done.err
    older = json.loads(
        scaler("get", "hpa.v1.autoscaling", "web", "-o", "json", "--reconcile=never").out
    )
    assert older["status"] == {
        "currentCPUUtilizationPercentage": 70,
        "currentReplicas": 2,
        "desiredReplicas": 3,
    }
    annotations = older["metadata"]["annotations"]
    assert annotations["autoscaling.alpha.kubernetes.io/current-metrics"] == (
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":70,'
        '"currentAverageValue":"140m"}},'
        '{"type":"ContainerResource","containerResource":{"name":"memory",'
        '"currentAverageValue":"1Mi",'
        '"container":"web"}},{"type":""}]'
    )
    assert json.loads(annotations["autoscaling.alpha.kubernetes.io/conditions"]) == [
        condition | {"lastTransitionTime": None}
    ]
