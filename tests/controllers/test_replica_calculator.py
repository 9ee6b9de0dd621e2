"""The arithmetic of autoscaling: the number of replicas that the usage of ready, unready and silent
pods calls for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from kubepy.api.clock import format_time
from kubepy.api.meta import Object
from kubepy.api.objects.usage import WINDOW
from kubepy.controllers.podautoscaler.replica_calculator import (
    MetricsError,
    PodMetric,
    Sample,
    Tolerances,
    calculate_requests,
    get_raw_resource_replicas,
    get_resource_replicas,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = 3600.0


class Case(NamedTuple):
    """Levels of pods, in thousandths; None is a pod without metrics. Each pod requests ``request``.

    ``states`` overrides the state of the first pods: see ``pod``.
    """

    levels: list[int | None]
    replicas: int
    request: int = 1000
    states: tuple[str, ...] = ()
    resource: str = "cpu"
    current: int = 0
    tolerances: Tolerances = Tolerances()


def pod(name: str, request: int, state: str = "") -> Object:
    """Return a pod that has been ready for long, or one that is in another state."""
    started, ready_since, ready, phase = LONG_AGO, LONG_AGO - 5, True, "Running"
    metadata: Object = {"name": name}
    match state:
        case "unready":  # from its start on
            ready_since, ready = LONG_AGO - 1, False
        case "hot":  # ready, but its first sample is from before
            started, ready_since = 60, 5
        case "warm":  # young, with a sample of its time as a ready pod
            started, ready_since = 60, 30
        case "fallen":  # was ready once
            ready_since, ready = 30, False
        case "pending":
            phase, ready = "Pending", False
        case "failed":
            phase, ready = "Failed", False
        case "deleted":
            metadata["deletionTimestamp"] = format_time(NOW)
    condition = {
        "type": "Ready",
        "status": str(ready),
        "lastTransitionTime": format_time(NOW - timedelta(seconds=ready_since)),
    }
    return {
        "metadata": metadata,
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "resources": {"requests": {"cpu": f"{request}m", "memory": f"{request}m"}},
                }
            ]
        },
        "status": {
            "phase": phase,
            "conditions": [condition],
            "startTime": format_time(NOW - timedelta(seconds=started)),
        },
    }


def sample(case: Case) -> Sample:
    states = [*case.states, *[""] * (len(case.levels) - len(case.states))]
    pods: list[Any] = [
        pod(f"pod-{index}", case.request, state) for index, state in enumerate(states)
    ]
    metrics = {
        f"pod-{index}": PodMetric(level, NOW, WINDOW)
        for index, level in enumerate(case.levels)
        if level is not None
    }
    return Sample(pods, metrics, case.resource, case.current or len(pods), NOW, case.tolerances)


UTILIZATION = {  # of a target of 30 %
    "more load, more replicas": Case([300, 500, 700], 5),
    "less load, fewer replicas": Case(
        [100, 300, 500, 250, 250], 5, request=1010, tolerances=Tolerances(0.0, 0.0)
    ),
    "much less load": Case([100, 300, 500, 250, 250], 3, request=2000),
    "load above target within tolerance": Case([320, 325, 325], 3),
    "load above target beyond a tolerance of its own": Case(
        [320, 325, 325], 4, tolerances=Tolerances(0.1, 0.05)
    ),
    "load below target within tolerance": Case([280, 280, 275], 3),
    "load below target beyond a tolerance of its own": Case(
        [200, 200, 195], 2, tolerances=Tolerances(0.3, 0.1)
    ),
    "load below target within a tolerance of its own": Case(
        [220, 220, 215], 3, tolerances=Tolerances(0.3, 0.1)
    ),
    "unready pods count as idle when scaling up": Case([300, 500, 700], 4, states=("unready",)),
    "pods with too young samples count as idle when scaling up": Case(
        [0, 500, 700], 4, states=("hot",)
    ),
    "a young pod with a good sample counts": Case([500, 700], 4, states=("warm",)),
    "unready pods that leave no need to scale": Case(
        [400, 500, 700], 3, states=("unready", "unready")
    ),
    "unready pods do not matter when scaling down": Case(
        [100, 100, 100, 100, 100], 2, states=("unready",)
    ),
    "a pod that was ready before counts": Case([100, 500, 700], 5, states=("fallen",)),
    "pending pods count as idle when scaling up": Case([None, 500, 700], 4, states=("pending",)),
    "failed pods are left out": Case([None, 500, 700], 4, states=("failed",)),
    "deleted pods are left out": Case([900, 500, 700], 4, states=("deleted",)),
    "silent pods count as idle when scaling up": Case([None, 500, 700], 4),
    "silent pods count as busy when scaling down": Case([None, None, 100, 100], 4, request=1000),
    "silent pods count as busy, and still too many": Case(
        [None, 100, 100, 100, 100, 100, 100, 100], 6
    ),
    "silent pods that would turn the direction leave it": Case([None, None, None, 320], 4),
    "memory is trusted whether pods are ready or not": Case(
        [300, 500, 700], 5, states=("unready",), resource="memory"
    ),
    "fewer pods than asked for": Case([600, 600], 4, current=3),
}


@pytest.mark.parametrize("name", UTILIZATION)
def test_replicas_for_utilization(name: str) -> None:
    case = UTILIZATION[name]
    assert get_resource_replicas(sample(case), 30).replicas == case.replicas


AVERAGE = {  # of a target of 400m
    "more than the target": Case([600, 800], 4),
    "less than the target": Case([100, 100, 100, 100], 1),
    "within tolerance": Case([420, 430], 2),
    "silent pods are on target when scaling down": Case([None, None, 100, 100], 3),
    "silent pods are idle when scaling up": Case([None, 1000, 1000], 5),
    "unready pods are idle when scaling up": Case([1000, 1000, 1000], 5, states=("unready",)),
    "nothing requested is needed": Case([600, 800], 4, request=0),
}


@pytest.mark.parametrize("name", AVERAGE)
def test_replicas_for_average_value(name: str) -> None:
    case = AVERAGE[name]
    assert get_raw_resource_replicas(sample(case), 400).replicas == case.replicas


def test_usage_is_that_of_ready_pods() -> None:
    usage = get_resource_replicas(sample(Case([900, 500, 701], 4, states=("unready",))), 30).usage
    assert (usage.utilization, usage.average) == (60, 600)
    assert (
        get_raw_resource_replicas(
            sample(Case([900, 500, 701], 4, states=("unready",))), 400
        ).usage.average
        == 600
    )


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case([], 0), "no pods returned by selector while calculating replica count"),
        (
            Case([None, None], 0),
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
        (
            Case([500], 0, states=("unready",)),
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
        (Case([500], 0, request=0), "no metrics returned matched known pods"),
    ],
)
def test_no_answer_has_reason(case: Case, message: str) -> None:
    with pytest.raises(MetricsError) as caught:
        get_resource_replicas(sample(case), 30)
    assert str(caught.value) == message


def test_requests_are_those_of_containers_sidecars_or_pod() -> None:
    first = pod("first", 200)
    first["spec"]["initContainers"] = [
        {"name": "mesh", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
        {"name": "prepare", "resources": {"requests": {"cpu": "2"}}},
    ]
    second = pod("second", 200)
    second["spec"]["resources"] = {"requests": {"cpu": "1"}}
    pods: list[Any] = [first, second]
    assert calculate_requests(pods, "", "cpu") == {"first": 250, "second": 1000}
    assert calculate_requests(pods, "c", "cpu") == {"first": 200, "second": 200}
    with pytest.raises(MetricsError, match=r"^container mesh not found in Pod second$"):
        calculate_requests(pods, "mesh", "cpu")
    with pytest.raises(
        MetricsError, match=r"^missing request for memory in container mesh of Pod first$"
    ):
        calculate_requests(pods, "", "memory")
