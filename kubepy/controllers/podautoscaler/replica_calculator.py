"""The number of replicas that a metric calls for
(``pkg/controller/podautoscaler/replica_calculator.go``).

Pure functions over pods and their metrics. Amounts are in thousandths, as upstream counts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import is_being_deleted, name_of
from kubepy.api.objects.pods import get_condition, pod_requests
from kubepy.api.objects.usage import MEASURED, last_usage_change, measured_containers
from kubepy.api.values.quantity import Quantity

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

CPU_INITIALIZATION_PERIOD = timedelta(
    minutes=5
)  # in which the first samples of cpu are not trusted
INITIAL_READINESS_DELAY = timedelta(
    seconds=30
)  # a pod that is not ready after it has been so, once this has passed
MAX_INT32 = 2**31 - 1


class MetricsError(Exception):
    """A metric gives no number of replicas, in upstream's words."""


class PodMetric(NamedTuple):
    """The usage of a pod or a container, measured over ``window`` up to ``timestamp``."""

    value: int
    timestamp: datetime
    window: timedelta


class Tolerances(NamedTuple):
    """How far a ratio may be from 1 until something is done."""

    scale_down: float = 0.1
    scale_up: float = 0.1

    def is_within(self, ratio: float) -> bool:
        return 1.0 - self.scale_down <= ratio <= 1.0 + self.scale_up


class Sample(NamedTuple):
    """The pods of a scale target with the metrics of one resource, at a time.

    :param current_replicas: the replicas that the target asks for now.
    """

    pods: Sequence[Pod]
    metrics: Mapping[str, PodMetric]
    resource: str
    current_replicas: int
    now: datetime
    tolerances: Tolerances = Tolerances()


class Usage(NamedTuple):
    """Usage in relation to its target, as a percentage of the requests (where they matter), and on
    average."""

    ratio: float
    average: int
    utilization: int | None = None


class Proposal(NamedTuple):
    """The number of replicas that a metric calls for, and the usage that it was calculated from."""

    replicas: int
    usage: Usage


class PodGroups(NamedTuple):
    """Pods by what is known of them; ``ready`` counts those whose metrics are trusted."""

    ready: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]


Values = dict[str, int]  # the usage of pods, by their names


def get_resource_replicas(sample: Sample, target: int, container: str = "") -> Proposal:
    """Propose replicas for a target in per cent of the requests (``GetResourceReplicas``). Raises
    MetricsError."""
    groups, values = trusted_values(sample)
    requests = calculate_requests(sample.pods, container, sample.resource)

    def measure(values: Values) -> Usage:
        known = {name: value for name, value in values.items() if name in requests}
        requested = sum(requests[name] for name in known)
        if requested == 0:
            raise MetricsError("no metrics returned matched known pods")
        used = sum(known.values())
        utilization = min(used * 100 // requested, MAX_INT32)
        return Usage(utilization / target, used // len(known), utilization)

    return _propose(
        sample, groups, values, measure, lambda name: requests[name] * max(100, target) // 100
    )


def get_raw_resource_replicas(sample: Sample, target: int) -> Proposal:
    """Propose replicas for an average amount (``GetRawResourceReplicas``). Raises MetricsError."""
    groups, values = trusted_values(sample)

    def measure(values: Values) -> Usage:
        average = sum(values.values()) // len(values)
        return Usage(average / target, average)

    return _propose(sample, groups, values, measure, lambda name: target)


def trusted_values(sample: Sample) -> tuple[PodGroups, Values]:
    """Return the groups of the pods, and the usage of those that are ready."""
    if not sample.pods:
        raise MetricsError("no pods returned by selector while calculating replica count")
    groups = group_pods(sample)
    values = {
        name: metric.value
        for name, metric in sample.metrics.items()
        if name not in groups.ignored and name not in groups.unready
    }
    if not values:
        raise MetricsError("did not receive metrics for targeted pods (pods might be unready)")
    return groups, values


def _propose(
    sample: Sample,
    groups: PodGroups,
    values: Values,
    measure: Callable[[Values], Usage],
    assumed: Callable[[str], int],
) -> Proposal:
    """Propose replicas by the usage of the ready pods, and in the light of the others.

    :param assumed: returns the usage of a pod without metrics that keeps fewer replicas from being
        too few.
    """
    usage = measure(values)
    scale_up_with_unready = bool(groups.unready) and usage.ratio > 1.0
    unchanged = Proposal(sample.current_replicas, usage)
    if not scale_up_with_unready and not groups.missing:
        if sample.tolerances.is_within(usage.ratio):
            return unchanged
        return Proposal(_replicas(usage.ratio * groups.ready), usage)

    values = dict(values)
    if usage.ratio < 1.0:
        values |= {name: assumed(name) for name in groups.missing}
    elif usage.ratio > 1.0:
        values |= dict.fromkeys(groups.missing, 0)

    if scale_up_with_unready:
        values |= dict.fromkeys(groups.unready, 0)
    ratio = measure(values).ratio
    if (
        sample.tolerances.is_within(ratio)
        or (usage.ratio < 1.0 < ratio)
        or (ratio < 1.0 < usage.ratio)
    ):
        return unchanged

    replicas = _replicas(ratio * len(values))
    if (ratio < 1.0 and replicas > sample.current_replicas) or (
        ratio > 1.0 and replicas < sample.current_replicas
    ):
        return unchanged

    return Proposal(replicas, usage)


def _replicas(number: float) -> int:
    return min(math.ceil(number), MAX_INT32)


# --- pods -----------------------------------------------------------------------------------------


def group_pods(sample: Sample) -> PodGroups:
    """Sort out the pods whose metrics say something about the load (``groupPods``)."""
    groups = PodGroups(0, set(), set(), set())
    for pod in sample.pods:
        name = name_of(pod)
        phase = (pod.get("status") or {}).get("phase")
        if is_being_deleted(pod) or phase == "Failed":
            groups.ignored.add(name)
        elif phase == "Pending":
            groups.unready.add(name)
        elif (metric := sample.metrics.get(name)) is None:
            groups.missing.add(name)
        elif sample.resource == "cpu" and is_unready_for_cpu(pod, metric, sample.now):
            groups.unready.add(name)
        else:
            groups = groups._replace(ready=groups.ready + 1)

    return groups


def is_usage_changing(pod: Pod, now: datetime) -> bool:
    """Tell whether a pod's usage will change by itself, or the pod started or became Ready so
    lately that its samples may be left out for a time."""
    started = (pod.get("status") or {}).get("startTime")
    ready = get_condition(pod, "Ready") or {}
    times = (time for time in (started, ready.get("lastTransitionTime")) if time)
    settles_after = CPU_INITIALIZATION_PERIOD + last_usage_change(pod)
    return any(parse_time(time) + settles_after > now for time in times)


def is_unready_for_cpu(pod: Pod, metric: PodMetric, now: datetime) -> bool:
    """Tell whether a pod's cpu is that of its start, not of its load."""
    condition = get_condition(pod, "Ready")
    started_text = (pod.get("status") or {}).get("startTime")
    if condition is None or not started_text:
        return True
    started = parse_time(started_text)
    is_ready = condition.get("status") != "False"
    if condition.get("lastTransitionTime"):
        since = parse_time(condition["lastTransitionTime"])
    else:
        since = started

    if started + CPU_INITIALIZATION_PERIOD > now:
        if not is_ready:
            return True
        return metric.timestamp < since + metric.window

    if is_ready:
        return False
    return started + INITIAL_READINESS_DELAY > since


def calculate_requests(pods: Iterable[Pod], container: str, resource: str) -> Values:
    """Return the requests of pods or of one container in each (``calculateRequests``). Raises
    MetricsError."""
    return {
        name_of(pod): calculate_pod_level_request(pod, resource)
        if is_pod_level_requests_set(pod) and not container
        else calculate_request_from_containers(pod, container, resource)
        for pod in pods
    }


def is_pod_level_requests_set(pod: Pod) -> bool:
    resources = pod["spec"].get("resources") or {}
    for name in resources.get("requests") or {}:
        if name in MEASURED or name.startswith("hugepages-"):
            return True
    return False


def calculate_pod_level_request(pod: Pod, resource: str) -> int:
    request = pod_requests(pod).get(resource)
    if request is None:
        raise MetricsError(f"missing pod-level request for {resource} in Pod {name_of(pod)}")
    return request.milli_value()


def calculate_request_from_containers(pod: Pod, container: str, resource: str) -> int:
    sidecars_first = measured_containers(pod)
    own = pod["spec"]["containers"]
    ordered = [*own, *sidecars_first[: len(sidecars_first) - len(own)]]
    chosen = [one for one in ordered if container in ("", one["name"])]
    if container and not chosen:
        raise MetricsError(f"container {container} not found in Pod {name_of(pod)}")
    added = 0
    for one in chosen:
        request = ((one.get("resources") or {}).get("requests") or {}).get(resource)
        if request is None:
            raise MetricsError(
                f"missing request for {resource} in container {one['name']} of Pod {name_of(pod)}"
            )
        added += Quantity.parse(request).milli_value()

    return added
