"""HorizontalPodAutoscalers: sizes, rates and windows; targets, metrics, status and events in a
cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api.clock import parse_time
from kubepy.api.meta import Object
from kubepy.controllers.podautoscaler import HorizontalController
from kubepy.controllers.podautoscaler.normalization import (
    ReplicaLimits,
    ScalingHistory,
    SizeChange,
    normalize,
)
from kubepy.controlplane import build_manager
from tests.controllers.conftest import NOW, Lab

RESOURCE = "horizontalpodautoscalers.autoscaling"
START = datetime(2026, 1, 1, tzinfo=UTC)
RULES: Object = {
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    "selectPolicy": "Max",
    "stabilizationWindowSeconds": 0,
}


def behavior(up: Object | None = None, down: Object | None = None) -> Object:
    return {"scaleUp": {**RULES, **(up or {})}, "scaleDown": {**RULES, **(down or {})}}


def policies(*entries: tuple[str, int, int], select: str = "Max") -> Object:
    return {
        "policies": [
            {"type": kind, "value": value, "periodSeconds": period}
            for kind, value, period in entries
        ],
        "selectPolicy": select,
    }


class Autoscaled:
    """A target whose metrics call for given sizes, one after another, so many seconds apart."""

    def __init__(self, rules: Object | None, lowest: int = 1, highest: int = 100) -> None:
        self.rules, self.lowest, self.highest = rules, lowest, highest
        self.history = ScalingHistory()
        self.seconds = 0.0

    def play(
        self, current: int, desired: list[int], apart: float = 15
    ) -> list[tuple[int, str, str]]:
        """Return the sizes, and the reasons of AbleToScale and ScalingLimited."""
        seen = []
        for wanted in desired:
            now = START + timedelta(seconds=self.seconds)
            self.history.record_initial_recommendation(current, now)
            limits = ReplicaLimits(current, wanted, self.lowest, self.highest)
            decision = normalize(limits, self.rules, self.history, now)
            if decision.replicas != current:
                self.history.store_scale_event(self.rules, current, decision.replicas, now)
            seen.append((decision.replicas, decision.able.reason, decision.limited.reason))
            current = decision.replicas
            self.seconds += apart
            self.history = ScalingHistory.from_json(
                self.history.to_json()
            )  # as from process to process
        return seen

    def sizes(self, current: int, desired: list[int], apart: float = 15) -> list[int]:
        return [size for size, _, _ in self.play(current, desired, apart)]


# --- sizes


def test_growth_is_limited_to_double_or_four() -> None:
    assert Autoscaled(None).play(1, [50, 50, 50]) == [
        (4, "ReadyForNewScale", "ScaleUpLimit"),
        (8, "ReadyForNewScale", "ScaleUpLimit"),
        (16, "ReadyForNewScale", "ScaleUpLimit"),
    ]


def test_size_stays_between_limits() -> None:
    assert Autoscaled(None, highest=5).play(4, [9]) == [(5, "ReadyForNewScale", "TooManyReplicas")]
    assert Autoscaled(behavior(), 3).play(6, [1]) == [(3, "ReadyForNewScale", "TooFewReplicas")]
    assert Autoscaled(None).play(4, [4]) == [(4, "ReadyForNewScale", "DesiredWithinRange")]


def test_target_shrinks_once_high_recommendations_are_five_minutes_old() -> None:
    seen = Autoscaled(None).play(4, [4, 2, 2, 2, 2, 2], apart=100)
    assert [size for size, _, _ in seen] == [4, 4, 4, 4, 2, 2]
    assert [reason for _, reason, _ in seen] == [
        "ReadyForNewScale",
        "ScaleDownStabilized",
        "ScaleDownStabilized",
        "ScaleDownStabilized",
        "ReadyForNewScale",
        "ReadyForNewScale",
    ]


def test_behavior_without_window_downwards_takes_five_minutes() -> None:
    rules = behavior()
    del rules["scaleDown"]["stabilizationWindowSeconds"]
    assert Autoscaled(rules).sizes(4, [2, 2, 2, 2, 2], apart=100) == [4, 4, 4, 2, 2]


def test_windows_hold_back_both_directions() -> None:
    rules = behavior({"stabilizationWindowSeconds": 60}, {"stabilizationWindowSeconds": 60})
    assert Autoscaled(rules).play(4, [4, 8, 3, 8, 8, 8, 8, 8], apart=20)[-4:] == [
        (4, "ScaleUpStabilized", "DesiredWithinRange"),
        (8, "ReadyForNewScale", "DesiredWithinRange"),
        (8, "ReadyForNewScale", "DesiredWithinRange"),
        (8, "ReadyForNewScale", "DesiredWithinRange"),
    ]


@pytest.mark.parametrize(
    ("rules", "sizes"),
    [
        (policies(("Pods", 2, 60)), [12, 12, 12, 12, 14, 14]),
        (policies(("Percent", 50, 30)), [15, 15, 23, 23, 35, 35]),
        (policies(("Pods", 2, 60), ("Percent", 50, 30)), [15, 15, 23, 23, 35, 35]),
        (policies(("Pods", 2, 60), ("Percent", 50, 30), select="Min"), [12, 12, 12, 12, 14, 14]),
        (policies(("Pods", 2, 60), select="Disabled"), [10, 10, 10, 10, 10, 10]),
        (policies(("Pods", 1000, 15)), [100, 100, 100, 100, 100, 100]),
    ],
    ids=["pods", "percent", "the larger", "the smaller", "disabled", "as many as there may be"],
)
def test_policies_limit_growth_in_their_period(rules: Object, sizes: list[int]) -> None:
    assert Autoscaled(behavior(up=rules)).sizes(10, [1000] * 6) == sizes


@pytest.mark.parametrize(
    ("rules", "sizes"),
    [
        (policies(("Pods", 4, 60)), [96, 96, 96, 96, 92, 92]),
        (policies(("Percent", 10, 60)), [90, 90, 90, 90, 81, 81]),
        (policies(("Pods", 4, 60), ("Percent", 10, 60)), [90, 90, 90, 90, 81, 81]),
        (policies(("Pods", 4, 60), ("Percent", 10, 60), select="Min"), [96, 96, 96, 96, 92, 92]),
        (policies(("Pods", 4, 60), select="Disabled"), [100, 100, 100, 100, 100, 100]),
    ],
    ids=["pods", "percent", "the larger", "the smaller", "disabled"],
)
def test_policies_limit_shrinking_in_their_period(rules: Object, sizes: list[int]) -> None:
    assert Autoscaled(behavior(down=rules)).sizes(100, [1] * 6) == sizes


def test_rates_are_told() -> None:
    assert Autoscaled(behavior(up=policies(("Pods", 2, 60)))).play(10, [20])[0][2] == "ScaleUpLimit"
    assert (
        Autoscaled(behavior(down=policies(("Pods", 2, 60)))).play(10, [5])[0][2] == "ScaleDownLimit"
    )


def test_history_forgets_what_no_policy_looks_at() -> None:
    history = ScalingHistory()
    history.scale_ups = [SizeChange(3, START)]
    history.store_scale_event(behavior(), 1, 3, START + timedelta(minutes=5))
    assert [change.replicas for change in history.scale_ups] == [2]


# --- in a cluster


class HpaLab:
    """A Deployment of one container that requests 200m, and an autoscaler of it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        for number in range(3):
            lab.node(f"node-{number}")
        lab.settle()

    def deployment(self, replicas: int = 1, name: str = "web", **annotations: str) -> None:
        labels = {"app": name}
        template = {
            "metadata": {
                "labels": labels,
                "annotations": {f"kubepy.dev/{key}": text for key, text in annotations.items()},
            },
            "spec": {
                "containers": [
                    {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "200m"}}}
                ]
            },
        }
        self.lab.create(
            "deployments.apps",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": template,
                },
            },
            "default",
        )

    def autoscaler(
        self,
        name: str = "web",
        kind: str = "Deployment",
        api: str = "apps/v1",
        target: str = "web",
        **spec: Any,
    ) -> None:
        resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        full = {
            "scaleTargetRef": {"apiVersion": api, "kind": kind, "name": target},
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": resource}],
            **spec,
        }
        self.lab.create(
            RESOURCE,
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name},
                "spec": full,
            },
            "default",
        )

    def at(self, seconds: float) -> HpaLab:
        self.lab.pass_time(seconds)
        self.lab.settle()
        return self

    @property
    def replicas(self) -> int:
        return int(
            self.lab.client.get("deployments.apps", "web", namespace="default")["spec"]["replicas"]
        )

    @property
    def status(self) -> Object:
        status: Object = self.lab.client.get(RESOURCE, "web", namespace="default")["status"]
        return status

    def conditions(self) -> list[str]:
        return [
            f"{one['type']}={one['status']} {one['reason']}" for one in self.status["conditions"]
        ]

    def events(self, name: str = "web") -> list[str]:
        return [
            f"{one['type']} {one['reason']}: {one['message']}"
            for one in self.lab.client.list("events").items
            if one["involvedObject"]["name"] == name
            and one["involvedObject"]["kind"] == "HorizontalPodAutoscaler"
        ]


@pytest.fixture
def hpa(lab: Lab) -> HpaLab:
    return HpaLab(lab)


def test_target_is_brought_between_its_limits_at_once(hpa: HpaLab) -> None:
    hpa.deployment(replicas=1)
    hpa.autoscaler(minReplicas=3)
    hpa.at(0)
    assert (hpa.replicas, hpa.status["currentReplicas"], hpa.status["desiredReplicas"]) == (3, 1, 3)
    assert hpa.events() == [
        "Normal SuccessfulRescale: New size: 3; reason: Current number of replicas below "
        "Spec.MinReplicas"
    ]
    hpa.lab.change(
        "deployments.apps", "web", lambda obj: obj["spec"].update(replicas=12), "default"
    )
    assert hpa.at(15).replicas == 10
    assert hpa.events()[-1].endswith(
        "New size: 10; reason: Current number of replicas above Spec.MaxReplicas"
    )


def test_target_follows_usage_over_time(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="100m@0s,300m@60s,50m@200s")
    hpa.autoscaler()
    assert hpa.at(0).replicas == 2
    assert hpa.at(30).replicas == 2
    assert hpa.status["currentMetrics"] == [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "current": {"averageUtilization": 50, "averageValue": "100m"},
            },
        }
    ]
    assert hpa.at(61).replicas == 4
    assert hpa.events()[0] == (
        "Warning FailedGetResourceMetric: failed to get cpu utilization: did not receive "
        "metrics for targeted pods (pods might be unready)"
    )
    assert hpa.events()[2:] == [
        "Normal SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage "
        "of request) above target"
    ]
    assert hpa.status["lastScaleTime"] == "2026-11-20T10:01:01Z"
    assert (
        hpa.at(300).replicas == 6
    )  # what was recommended at 61 s, and was more than the double then
    assert hpa.conditions() == [
        "AbleToScale=True SucceededRescale",
        "ScalingActive=True ValidMetricFound",
        "ScalingLimited=False DesiredWithinRange",
    ]
    assert hpa.at(700).replicas == 3
    assert (
        hpa.events()[-1]
        == "Normal SuccessfulRescale: New size: 3; reason: All metrics below target"
    )


def test_average_values_of_memory_and_of_one_container(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, memory="96Mi", **{"cpu.web": "300m"})
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "64Mi"}}
    container = {
        "name": "cpu",
        "container": "web",
        "target": {"type": "Utilization", "averageUtilization": 60},
    }
    hpa.autoscaler(
        metrics=[
            {"type": "Resource", "resource": memory},
            {"type": "ContainerResource", "containerResource": container},
        ]
    )
    assert hpa.at(0).replicas == 3  # cpu is not trusted yet
    assert [entry["type"] for entry in hpa.status["currentMetrics"]] == ["Resource", ""]
    assert hpa.status["currentMetrics"][0]["resource"]["current"] == {"averageValue": "96Mi"}
    hpa.at(15)
    assert hpa.status["currentMetrics"][1]["containerResource"] == {
        "name": "cpu",
        "container": "web",
        "current": {"averageUtilization": 150, "averageValue": "300m"},
    }
    assert hpa.at(60).replicas == 10
    assert (
        "Normal SuccessfulRescale: New size: 10; reason: cpu container resource utilization "
        "(percentage of "
        "request) above target"
    ) in hpa.events()


def test_target_without_metrics_is_left_alone(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="100m@1h")  # none before that
    hpa.autoscaler()
    assert hpa.at(0).replicas == 2
    cause = "unable to get metrics for resource cpu: no metrics returned from resource metrics API"
    assert hpa.events() == [
        f"Warning FailedGetResourceMetric: failed to get cpu utilization: {cause}",
        "Warning FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error "
        "is: failed to get cpu "
        f"resource metric value: failed to get cpu utilization: {cause}",
    ]
    assert hpa.conditions() == [
        "AbleToScale=True SucceededGetScale",
        "ScalingActive=False FailedGetResourceMetric",
    ]
    assert hpa.status["conditions"][1]["message"] == (
        f"the HPA was unable to compute the replica count: failed to get cpu utilization: {cause}"
    )
    assert (hpa.status["currentReplicas"], hpa.status["desiredReplicas"]) == (2, 0)


def test_missing_requests_are_named(hpa: HpaLab) -> None:
    hpa.deployment(replicas=1, memory="1Gi")
    memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}
    hpa.autoscaler(metrics=[{"type": "Resource", "resource": memory}])
    hpa.at(15)
    assert hpa.events()[0].startswith(
        "Warning FailedGetResourceMetric: failed to get memory utilization: missing "
        "request for memory in container web of Pod web-"
    )


@pytest.mark.parametrize(
    ("metric", "event"),
    [
        (
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "qps"},
                    "target": {"type": "AverageValue", "averageValue": "10"},
                },
            },
            "FailedGetPodsMetric: unable to get metric qps: unable to fetch metrics from custom "
            "metrics API: no custom "
            "metrics API (custom.metrics.k8s.io) registered",
        ),
        (
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "hits"},
                    "target": {"type": "Value", "value": "10"},
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
                },
            },
            "FailedGetObjectMetric: unable to get metric hits: unable to fetch metrics from "
            "custom metrics API: no custom "
            "metrics API (custom.metrics.k8s.io) registered on Service default/web",
        ),
        (
            {
                "type": "External",
                "external": {
                    "metric": {"name": "queue"},
                    "target": {"type": "Value", "value": "10"},
                },
            },
            "FailedGetExternalMetric: unable to get external metric default/queue/nil: unable to "
            "fetch metrics from external "
            "metrics API: the server could not find the requested resource (get "
            "queue.external.metrics.k8s.io)",
        ),
    ],
)
def test_metrics_of_adapters_fail(hpa: HpaLab, metric: Object, event: str) -> None:
    hpa.deployment(replicas=2)
    hpa.autoscaler(metrics=[metric])
    hpa.at(0)
    assert hpa.events()[0] == f"Warning {event}"
    assert hpa.conditions()[1] == f"ScalingActive=False {event.partition(':')[0]}"


def test_metric_that_fails_does_not_keep_target_from_growing(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="200m")
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    pods = {
        "type": "Pods",
        "pods": {
            "metric": {"name": "qps"},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
    hpa.autoscaler(metrics=[pods, cpu])
    hpa.at(0)
    assert hpa.at(15).replicas == 4
    hpa.lab.change(
        RESOURCE,
        "web",
        lambda obj: obj["spec"]["metrics"][1]["resource"]["target"].update(averageUtilization=500),
        "default",
    )
    assert hpa.at(900).replicas == 4
    assert hpa.conditions()[1] == "ScalingActive=False FailedGetPodsMetric"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"target": "other"}, 'deployments.apps "other" not found'),
        ({"kind": "DaemonSet"}, "the server could not find the requested resource"),
        (
            {"kind": "Rocket", "api": "example.org/v1"},
            'no matches for kind "Rocket" in group "example.org"',
        ),
    ],
)
def test_target_that_cannot_be_read_is_reported(
    hpa: HpaLab, target: dict[str, str], message: str
) -> None:
    hpa.autoscaler(**target)
    hpa.at(0)
    assert hpa.events() == [f"Warning FailedGetScale: {message}"]
    [condition] = hpa.status["conditions"]
    assert (condition["type"], condition["status"], condition["message"]) == (
        "AbleToScale",
        "False",
        f"the HPA controller was unable to get the target's current scale: {message}",
    )


def test_target_of_size_zero_disables_scaling(hpa: HpaLab) -> None:
    hpa.deployment(replicas=0, cpu="1")
    hpa.autoscaler(minReplicas=2)
    assert hpa.at(0).replicas == 0
    assert hpa.conditions() == [
        "AbleToScale=True SucceededGetScale",
        "ScalingActive=False ScalingDisabled",
    ]
    assert "currentReplicas" not in hpa.status


def test_pods_of_two_autoscalers_are_ambiguous(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="200m")
    hpa.autoscaler()
    hpa.autoscaler("another")
    hpa.at(0)
    hpa.at(15)
    message = (
        "pods by selector app=web are controlled by multiple HPAs: [default/another default/web]"
    )
    assert f"Warning AmbiguousSelector: {message}" in hpa.events()
    assert hpa.conditions()[1] == "ScalingActive=False AmbiguousSelector"
    hpa.lab.client.delete(RESOURCE, "another", namespace="default")
    assert hpa.at(30).replicas == 4


@pytest.mark.parametrize(
    ("kind", "resource", "api"),
    [
        ("StatefulSet", "statefulsets.apps", "apps/v1"),
        ("ReplicaSet", "replicasets.apps", "apps/v1"),
        ("ReplicationController", "replicationcontrollers", "v1"),
    ],
)
def test_other_targets_are_scaled(hpa: HpaLab, kind: str, resource: str, api: str) -> None:
    template = {
        "metadata": {"labels": {"app": "x"}, "annotations": {"kubepy.dev/cpu": "1"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]
        },
    }
    selector: Object = {"app": "x"} if api == "v1" else {"matchLabels": {"app": "x"}}
    hpa.lab.create(
        resource,
        {
            "apiVersion": api,
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": {"replicas": 1, "selector": selector, "template": template},
        },
        "default",
    )
    hpa.autoscaler(kind=kind, api=api, maxReplicas=3)
    hpa.at(0)
    hpa.at(15)
    assert hpa.lab.client.get(resource, "web", namespace="default")["spec"]["replicas"] == 3


def test_custom_resource_with_scale_is_scaled(hpa: HpaLab) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            }
        },
    }
    hpa.lab.create(
        "customresourcedefinitions.apiextensions.k8s.io",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "rockets.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "versions": [version],
                "names": {"kind": "Rocket", "plural": "rockets"},
            },
        },
    )
    rocket: Object = {
        "apiVersion": "example.org/v1",
        "kind": "Rocket",
        "metadata": {"name": "web"},
        "spec": {"size": 2},
        "status": {"size": 2},
    }
    hpa.lab.create("rockets.example.org", rocket, "default")
    hpa.autoscaler(kind="Rocket", api="example.org/v1", minReplicas=4)
    hpa.at(0)
    assert (
        hpa.lab.client.get("rockets.example.org", "web", namespace="default")["spec"]["size"] == 4
    )
    hpa.at(15)
    assert "Warning SelectorRequired: selector is required" in hpa.events()
    assert hpa.status["conditions"][1]["message"] == "the HPA target's scale is missing a selector"


def test_period_is_due_and_changes_nothing_when_all_is_well(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="100m")
    hpa.autoscaler()
    hpa.at(0).at(30)
    revision = hpa.lab.client.revision()
    hpa.lab.pass_time(45)
    summary = hpa.lab.settle()
    assert hpa.lab.client.revision() == revision
    assert [(due.reconciler, (due.time - hpa.lab.now).total_seconds()) for due in summary.due] == [
        ("horizontal-pod-autoscaler-controller", 15.0)
    ]
    assert summary.failures == []


def test_watching_manager_waits_for_first_period(hpa: HpaLab) -> None:
    hpa.deployment(replicas=1)
    hpa.autoscaler(minReplicas=2)
    hpa.lab.watch()
    assert hpa.replicas == 1
    hpa.lab.pass_time(15)
    hpa.lab.watch()
    assert hpa.replicas == 2


def test_deleted_autoscaler_has_no_due_key(hpa: HpaLab) -> None:
    hpa.deployment(replicas=1, cpu="1")
    hpa.autoscaler()
    hpa.at(0)
    hpa.lab.client.delete(RESOURCE, "web", namespace="default")
    assert hpa.lab.settle().due == []


def test_tolerance_of_behavior_counts(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="108m")
    hpa.autoscaler(behavior={"scaleUp": {"tolerance": "0.05"}})
    assert hpa.at(0).at(15).replicas == 3


def test_time_goes_on_until_target_has_its_last_size(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="100m@0s,300m@60s,50m@2h")
    hpa.autoscaler()
    summary = build_manager(hpa.lab.cluster).advance(settled=True)
    assert hpa.replicas == 1
    assert timedelta(hours=2) < hpa.lab.now - parse_time(NOW) < timedelta(hours=3)
    assert [work.reconciler for work in summary.due] == ["horizontal-pod-autoscaler-controller"]


CHANGES: dict[str, Callable[[HpaLab], object]] = {
    "usage": lambda hpa: set_usage(hpa, "150m"),
    "usage of new pods": lambda hpa: hpa.lab.change(
        "deployments.apps",
        "web",
        lambda obj: obj["spec"]["template"]["metadata"]["annotations"].update(
            {"kubepy.dev/cpu": "150m"}
        ),
        "default",
    ),
    "size of the target": lambda hpa: hpa.lab.change(
        "deployments.apps", "web", lambda obj: obj["spec"].update(replicas=1), "default"
    ),
    "target": lambda hpa: hpa.lab.client.delete("deployments.apps", "web", namespace="default"),
    "limits": lambda hpa: hpa.lab.change(
        RESOURCE, "web", lambda obj: obj["spec"].update(minReplicas=4), "default"
    ),
    "another autoscaler": lambda hpa: hpa.autoscaler("another"),
}


def set_usage(hpa: HpaLab, cpu: str) -> None:
    for pod in hpa.lab.names("pods", "default"):
        hpa.lab.change(
            "pods",
            pod,
            lambda obj: obj["metadata"]["annotations"].update({"kubepy.dev/cpu": cpu}),
            "default",
        )


def settle_for_good(hpa: HpaLab) -> None:
    """Let time go on until it is settled, and see that in the hour after nothing changes but
    events."""
    build_manager(hpa.lab.cluster).advance(settled=True)
    before = versions(hpa)
    build_manager(hpa.lab.cluster).advance(hpa.lab.now + timedelta(hours=1))
    assert versions(hpa) == before


def versions(hpa: HpaLab) -> list[tuple[str, str]]:
    return [
        (one["metadata"]["uid"], one["metadata"]["resourceVersion"])
        for resource in (RESOURCE, "deployments.apps", "pods")
        for one in hpa.lab.client.list(resource).items
    ]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_round_after_a_change_is_waited_for(
    hpa: HpaLab, change: Callable[[HpaLab], object]
) -> None:
    hpa.deployment(replicas=2, cpu="100m")
    hpa.autoscaler(minReplicas=2)
    settle_for_good(hpa)
    change(hpa)
    status = hpa.status
    settle_for_good(hpa)
    assert hpa.status != status


def test_round_after_an_autoscaler_of_the_same_pods_is_gone_is_waited_for(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="100m")
    hpa.autoscaler()
    hpa.autoscaler("another")
    settle_for_good(hpa)
    set_usage(hpa, "150m")
    settle_for_good(hpa)
    assert hpa.replicas == 2
    hpa.lab.client.delete(RESOURCE, "another", namespace="default")
    settle_for_good(hpa)
    assert hpa.replicas > 2


def test_round_is_not_waited_for_after_a_change_that_it_does_not_read(hpa: HpaLab) -> None:
    hpa.deployment(replicas=2, cpu="100m")
    hpa.deployment(replicas=2, name="other")
    hpa.autoscaler()
    settle_for_good(hpa)
    before = hpa.lab.now
    hpa.lab.change(
        "deployments.apps", "other", lambda obj: obj["spec"].update(replicas=3), "default"
    )
    build_manager(hpa.lab.cluster).advance(settled=True)
    assert hpa.lab.now == before


# --- rounds that are left out ---------------------------------------------------------------------


@pytest.fixture
def steady() -> Cluster:
    """A cluster in which an autoscaler keeps three pods, and has done so for two hours."""
    cluster = Cluster.temporary(nodes=1)
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"kubepy.dev/cpu": "100m"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "200m"}}}]
        },
    }
    cluster.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template,
            },
        }
    )
    cluster.run("autoscale deploy web --min=2 --max=9 --cpu=50%", check=True)
    cluster.advance("2h")
    return cluster


def size(cluster: Cluster) -> int:
    return int(cluster.client.get("deploy/web")["spec"]["replicas"])


def test_rounds_of_a_steady_autoscaler_are_not_run(
    steady: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[object] = []
    reconcile = HorizontalController._reconcile
    monkeypatch.setattr(
        HorizontalController,
        "_reconcile",
        lambda self, run: (rounds.append(run), reconcile(self, run)),
    )
    steady.advance("30d")
    assert len(rounds) <= 2
    steady.run("annotate pods --all kubepy.dev/cpu=200m --overwrite", check=True)
    steady.advance("15s")
    assert size(steady) == 6


def test_window_counts_recommendations_of_rounds_that_were_not_run(steady: Cluster) -> None:
    steady.run("annotate pods --all kubepy.dev/cpu=60m --overwrite", check=True)
    steady.advance("4m45s")
    assert size(steady) == 3
    steady.advance("30s")
    assert size(steady) == 2


# --- rounds that only warn ------------------------------------------------------------------------


def without_metrics() -> Cluster:
    """Return a cluster with an autoscaler whose target's pods have no metrics."""
    cluster = Cluster.temporary(nodes=1)
    cluster.run("create deploy web --image=i --replicas=3", check=True)
    cluster.run("autoscale deploy web --min=2 --max=9 --cpu=50%", check=True)
    return cluster


def test_rounds_that_only_warn_are_run_where_a_warning_is_let_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = without_metrics()
    cluster.advance("2h")
    rounds: list[object] = []
    reconcile = HorizontalController._reconcile

    def count(self: HorizontalController, run: object) -> None:
        rounds.append(run)
        reconcile(self, run)  # type: ignore[arg-type]

    monkeypatch.setattr(HorizontalController, "_reconcile", count)
    cluster.advance("5d")
    assert len(rounds) <= 5 * 24 * 12 + 2, "one in five minutes"


def test_rounds_that_were_not_run_leave_what_they_would_have_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compare with a controller that runs each round, at moments in the midst of a rest."""
    resting, running = without_metrics(), without_metrics()

    def advance(by: str) -> None:
        resting.advance(by)
        with monkeypatch.context() as patch:
            patch.setattr(HorizontalController, "_periods_of_rest", lambda self, run: 1)
            running.advance(by)
        for resource in ("events", "hpa", "deploy", "pods"):
            assert resting.client.list(resource) == running.client.list(resource)

    for by in ("2h3m17s", "4m", "1s", "71m30s", "1d", "2m20s", "61s"):
        advance(by)
    for cluster in (resting, running):
        cluster.run("annotate pods --all kubepy.dev/cpu=200m", check=True)
        cluster.run("set resources deploy web --requests=cpu=100m", check=True)
    for by in ("7s", "20m", "11h"):
        advance(by)
