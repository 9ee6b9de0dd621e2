"""Readiness, availability, phases, conditions and host ports of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubepy.api.objects import pods

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def pod(ready: str | None = None, phase: str = "Running", **meta: Any) -> dict[str, Any]:
    conditions = (
        [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-11-20T12:00:00Z"}]
        if ready
        else []
    )
    return {
        "metadata": {"name": "p", **meta},
        "spec": {},
        "status": {"phase": phase, "conditions": conditions},
    }


def test_pod_with_true_ready_condition_is_ready() -> None:
    assert pods.is_pod_ready(pod("True"))
    assert not pods.is_pod_ready(pod("False"))
    assert not pods.is_pod_ready(pod())
    assert not pods.is_pod_ready({"metadata": {}, "spec": {}})


def test_pod_ready_for_min_ready_seconds_is_available() -> None:
    ready = pod("True")
    assert pods.is_pod_available(ready, 0, NOON)
    assert not pods.is_pod_available(ready, 10, NOON + timedelta(seconds=9.9))
    assert pods.is_pod_available(ready, 10, NOON + timedelta(seconds=10))
    assert not pods.is_pod_available(pod("False"), 0, NOON)
    assert not pods.is_pod_available(pod("False"), 10, NOON + timedelta(hours=1))


def test_ready_time_is_last_transition_of_ready_pod() -> None:
    assert pods.pod_ready_time(pod("True")) == NOON
    assert pods.pod_ready_time(pod("False")) is None


@pytest.mark.parametrize(
    ("phase", "deleted", "active", "terminating", "terminal"),
    [
        ("Pending", False, True, False, False),
        ("Running", False, True, False, False),
        ("Running", True, False, True, False),
        ("Failed", False, False, False, True),
        ("Failed", True, False, False, True),
        ("Succeeded", False, False, False, True),
    ],
)
def test_pod_life_by_phase_and_deletion(
    phase: str, deleted: bool, active: bool, terminating: bool, terminal: bool
) -> None:
    one = pod(phase=phase, **({"deletionTimestamp": "2026-11-20T12:00:00Z"} if deleted else {}))
    assert (pods.is_pod_active(one), pods.is_pod_terminating(one), pods.is_pod_terminal(one)) == (
        active, terminating, terminal)  # fmt: skip


def test_set_condition_appends_new_type() -> None:
    ready, unscheduled = (
        {"type": "Ready", "status": "True"},
        {"type": "PodScheduled", "status": "False"},
    )
    conditions = [ready]
    assert pods.set_condition(conditions, unscheduled, NOON)
    assert conditions == [ready, {**unscheduled, "lastTransitionTime": "2026-11-20T12:00:00Z"}]


def test_set_condition_changes_transition_time_only_with_status() -> None:
    old = {
        "type": "Ready",
        "status": "False",
        "reason": "A",
        "lastTransitionTime": "2026-11-20T11:00:00Z",
    }
    conditions = [old]
    assert pods.set_condition(conditions, {"type": "Ready", "status": "False", "reason": "B"}, NOON)
    assert conditions == [{**old, "reason": "B"}]
    assert old["reason"] == "A", "the old condition is shared and stays as it was"
    assert not pods.set_condition(
        conditions, {"type": "Ready", "status": "False", "reason": "B"}, NOON
    )
    assert pods.set_condition(conditions, {"type": "Ready", "status": "True"}, NOON)
    assert conditions == [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T12:00:00Z"}
    ]


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def container(port: int, **rest: Any) -> dict[str, Any]:
        return {
            "name": f"c{port}",
            "ports": [{"containerPort": port, "hostPort": port}, {"containerPort": 1}],
            **rest,
        }

    spec = {
        "containers": [
            container(80),
            {"ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]},
            {},
        ],
        "initContainers": [container(90), container(91, restartPolicy="Always")],
    }
    assert pods.host_ports({"spec": spec}) == [
        ("0.0.0.0", "TCP", 80), ("10.0.0.1", "UDP", 53), ("0.0.0.0", "TCP", 91)]  # fmt: skip


def test_host_ports_clash_on_same_address_or_with_all_addresses() -> None:
    everywhere, here, there = (
        pods.HostPort(ip, "TCP", 80) for ip in ("0.0.0.0", "10.0.0.1", "10.0.0.2")
    )
    assert everywhere.clashes(here)
    assert here.clashes(everywhere)
    assert here.clashes(here)
    assert not here.clashes(there)
    assert not everywhere.clashes(pods.HostPort("0.0.0.0", "UDP", 80))
    assert not everywhere.clashes(pods.HostPort("0.0.0.0", "TCP", 81))


def holding(
    cpu: str | None = None, memory: str | None = None, *, limit: bool = False, **rest: Any
) -> dict[str, Any]:
    amounts = {
        name: value for name, value in (("cpu", cpu), ("memory", memory)) if value is not None
    }
    resources = {"requests": amounts} | ({"limits": amounts} if limit else {})
    return {"name": "c", "resources": resources if amounts else {}, **rest}


def within(cpu: str, cpu_limit: str, memory: str, memory_limit: str) -> dict[str, Any]:
    resources = {
        "requests": {"cpu": cpu, "memory": memory},
        "limits": {"cpu": cpu_limit, "memory": memory_limit},
    }
    return {"name": "c", "resources": resources}


def amounts(quantities: dict[str, Any]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in quantities.items()}


def test_pod_requests_sum_containers_and_overhead() -> None:
    spec = {"containers": [holding("100m", "64Mi"), holding("1")], "overhead": {"cpu": "10m"}}
    assert amounts(pods.pod_requests({"spec": spec})) == {"cpu": "1110m", "memory": "64Mi"}
    assert pods.pod_requests({"spec": {"containers": [holding()]}}) == {}


def test_pod_requests_count_largest_init_container_with_earlier_sidecars() -> None:
    init = [
        holding("200m", restartPolicy="Always"),
        holding("600m"),
        holding("100m", restartPolicy="Always"),
    ]
    spec = {"containers": [holding("100m")], "initContainers": init}
    assert amounts(pods.pod_requests({"spec": spec})) == {"cpu": "800m"}
    spec["containers"] = [holding("700m")]
    assert amounts(pods.pod_requests({"spec": spec})) == {"cpu": "1"}


def test_pod_level_requests_replace_those_of_containers() -> None:
    spec = {"containers": [holding("100m", "64Mi")], "resources": {"requests": {"cpu": "2"}}}
    assert amounts(pods.pod_requests({"spec": spec})) == {"cpu": "2", "memory": "64Mi"}
    pages = {"hugepages-2Mi": "4Mi", "example.org/gpu": "1"}
    spec = {"containers": [holding("100m")], "resources": {"requests": pages}}
    assert amounts(pods.pod_requests({"spec": spec})) == {"cpu": "100m", "hugepages-2Mi": "4Mi"}


def test_pod_limits_add_overhead_only_to_set_limits() -> None:
    spec = {"containers": [holding("1", limit=True)], "overhead": {"cpu": "10m", "memory": "1Mi"}}
    assert amounts(pods.pod_limits({"spec": spec})) == {"cpu": "1010m"}


@pytest.mark.parametrize(
    ("containers", "wanted"),
    [
        ([holding()], "BestEffort"),
        ([holding("0")], "BestEffort"),
        ([holding("1", "1Gi", limit=True)], "Guaranteed"),
        ([holding("1", "1Gi", limit=True), holding()], "Burstable"),
        ([holding("1", limit=True)], "Burstable"),
        ([holding("1", "1Gi")], "Burstable"),
        ([within("1", "2", "1Gi", "1Gi")], "Burstable"),
        ([within("1", "1000m", "1Gi", "1024Mi")], "Guaranteed"),
    ],
)
def test_qos_class_follows_requests_and_limits(
    containers: list[dict[str, Any]], wanted: str
) -> None:
    assert pods.qos_class({"spec": {"containers": containers}}) == wanted


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        (
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            "Guaranteed",
        ),
        ({"requests": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_qos_class_uses_pod_level_resources(resources: dict[str, Any], wanted: str) -> None:
    spec = {"containers": [holding("100m")], "resources": resources}
    assert pods.qos_class({"spec": spec}) == wanted


# --- aggregate ------------------------------------------------------------------------------------


def requesting(cpu: str, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def requested(**spec: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in pods.aggregate(spec, "requests").items()}


def test_aggregate_sums_containers() -> None:
    containers = [
        requesting("100m"),
        requesting("1"),
        {"resources": {"requests": {"memory": "1Mi"}}},
    ]
    assert requested(containers=containers) == {"cpu": "1100m", "memory": "1Mi"}


def test_aggregate_counts_largest_init_container() -> None:
    init = [requesting("2"), requesting("500m")]
    assert requested(containers=[requesting("1")], initContainers=init) == {"cpu": "2"}
    assert requested(containers=[requesting("3")], initContainers=init) == {"cpu": "3"}


def test_aggregate_adds_sidecars_to_later_containers() -> None:
    init = [requesting("1"), requesting("1", restartPolicy="Always"), requesting("3")]
    assert requested(containers=[requesting("1")], initContainers=init) == {"cpu": "4"}
    assert requested(containers=[requesting("5")], initContainers=init) == {"cpu": "6"}
