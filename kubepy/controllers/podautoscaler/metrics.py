"""The metrics of an autoscaler: where they come from, what they call for, and what the status says
about them.

Pods have cpu and memory (:mod:`kubepy.api.objects.usage`) as if metrics-server had measured them.
Metrics of pods, objects and external ones need an adapter, which no cluster has by itself: asking
for them fails as it does without one. Upstream: ``computeStatusFor…Metric`` of ``horizontal.go``,
``metrics/client.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import AnyObject, Object, name_of
from kubepy.api.objects.usage import WINDOW, KnownUsage, Usage, container_usage
from kubepy.api.selectors import go_label_selector
from kubepy.api.values.quantity import BINARY_SI, DECIMAL_SI, Quantity
from kubepy.controllers.podautoscaler.replica_calculator import (
    MetricsError,
    PodMetric,
    Sample,
    Tolerances,
    get_raw_resource_replicas,
    get_resource_replicas,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

NO_CUSTOM_METRICS = (
    "unable to fetch metrics from custom metrics API: no custom metrics API "
    "(custom.metrics.k8s.io) "
    "registered"
)
NO_EXTERNAL_METRICS = (
    "unable to fetch metrics from external metrics API: the server could not find the requested "
    "resource (get {}.external.metrics.k8s.io)"
)
ROUGH = 10**6  # nanos in a thousandth


class MetricTarget(NamedTuple):
    """What the metrics of an autoscaler are about: the pods of its scale target.

    :param replicas: the number that the target asks for.
    :param known_usage: tells what containers use where no annotation does.
    """

    namespace: str
    replicas: int
    pods: Sequence[Pod]
    now: datetime
    tolerances: Tolerances
    known_usage: KnownUsage | None = None


class MetricProposal(NamedTuple):
    """The replicas that a metric calls for, its name in reasons, and its entry in the status."""

    replicas: int
    name: str
    status: Object


class MetricFailure(Exception):
    """A metric that cannot be used.

    :param reason: that of the condition and the event, whose message is ``cause``; the text is for
        the whole result.
    """

    def __init__(self, reason: str, cause: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.cause = cause


def compute_metric(spec: AnyObject, target: MetricTarget) -> MetricProposal:
    """Compute the replicas that a metric calls for. Raises MetricFailure."""
    return COMPUTATIONS[spec["type"]](spec, target)


# --- resources ------------------------------------------------------------------------------------


def compute_resource_metric(spec: AnyObject, target: MetricTarget) -> MetricProposal:
    source = spec["resource"]
    try:
        proposal = compute_usage(source, target, "", "resource")
    except MetricsError as error:
        raise MetricFailure(
            "FailedGetResourceMetric",
            str(error),
            f"failed to get {source['name']} resource metric value: {error}",
        ) from None
    entry = {"name": source["name"], "current": proposal.status}
    return proposal._replace(status={"type": "Resource", "resource": entry})


def compute_container_resource_metric(spec: AnyObject, target: MetricTarget) -> MetricProposal:
    source = spec["containerResource"]
    try:
        proposal = compute_usage(source, target, source["container"], "container resource")
    except MetricsError as error:
        raise MetricFailure(
            "FailedGetContainerResourceMetric",
            str(error),
            f"failed to get {source['container']} container metric value: {error}",
        ) from None
    entry = {"name": source["name"], "container": source["container"], "current": proposal.status}
    return proposal._replace(status={"type": "ContainerResource", "containerResource": entry})


def compute_usage(
    source: AnyObject, target: MetricTarget, container: str, kind: str
) -> MetricProposal:
    """Compute the replicas for the usage of a resource; the status is that of the value alone.
    Raises MetricsError."""
    resource = source["name"]
    goal = source["target"]
    average = goal.get("averageValue")
    utilization = goal.get("averageUtilization")
    wanted = "usage" if average is not None else "utilization"
    try:
        try:
            metrics = resource_metrics(target, resource, container)
        except MetricsError as error:
            raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from None
        sample = Sample(
            target.pods, metrics, resource, target.replicas, target.now, target.tolerances
        )
        if average is not None:
            raw = get_raw_resource_replicas(sample, Quantity.parse(average).milli_value())
            status: Object = {"averageValue": _quantity(resource, raw.usage.average)}
            return MetricProposal(raw.replicas, f"{resource} resource", status)
        proposal = get_resource_replicas(sample, utilization, container)
    except MetricsError as error:
        raise MetricsError(f"failed to get {resource} {wanted}: {error}") from None

    status = {
        "averageUtilization": proposal.usage.utilization,
        "averageValue": _quantity(resource, proposal.usage.average),
    }
    return MetricProposal(
        proposal.replicas, f"{resource} {kind} utilization (percentage of request)", status
    )


def resource_metrics(target: MetricTarget, resource: str, container: str) -> dict[str, PodMetric]:
    """Return the usage of pods, or of one container in each (``GetResourceMetric``). Raises
    MetricsError."""
    now = target.now
    measured: dict[str, dict[str, Usage]] = {}
    for pod in target.pods:
        usage = container_usage(pod, now, target.known_usage)
        if usage:
            measured[name_of(pod)] = usage
    if not measured:
        raise MetricsError("no metrics returned from resource metrics API")
    amounts = {name: amount_of(usage, resource, container) for name, usage in measured.items()}
    return {
        name: PodMetric(amount, now, WINDOW)
        for name, amount in amounts.items()
        if amount is not None
    }


def amount_of(usage: Mapping[str, Usage], resource: str, container: str) -> int | None:
    """Return thousandths; None where the container, or one of all containers, has no amount of the
    resource."""
    used = [usage.get(container, {})] if container else list(usage.values())
    total = 0
    for amounts in used:
        if resource not in amounts:
            return None
        total += amounts[resource].milli_value()
    return total


def _quantity(resource: str, milli: int) -> str:
    form = BINARY_SI if resource == "memory" else DECIMAL_SI
    return str(Quantity.of_milli(milli, form))


# --- metrics of adapters --------------------------------------------------------------------------


def compute_pods_metric(spec: AnyObject, target: MetricTarget) -> MetricProposal:
    cause = f"unable to get metric {spec['pods']['metric']['name']}: {NO_CUSTOM_METRICS}"
    raise MetricFailure("FailedGetPodsMetric", cause, f"failed to get pods metric value: {cause}")


def compute_object_metric(spec: AnyObject, target: MetricTarget) -> MetricProposal:
    source = spec["object"]
    name = source["metric"]["name"]
    described = source["describedObject"]
    goal = source["target"]
    place = f"{described.get('kind', '')} {target.namespace}/{described.get('name', '')}"
    cause = f"unable to get metric {name}: {NO_CUSTOM_METRICS} on {place}"
    text = cause
    if goal["type"] == "AverageValue" and goal.get("averageValue") is not None:
        text = f"failed to get {name} object metric: {cause}"
    elif goal["type"] != "Value" or goal.get("value") is None:
        cause = text = (
            "invalid object metric source: neither a value target nor an average value target was "
            "set"
        )

    raise MetricFailure(
        "FailedGetObjectMetric", cause, f"failed to get object metric value: {text}"
    )


def compute_external_metric(spec: AnyObject, target: MetricTarget) -> MetricProposal:
    source = spec["external"]
    name = source["metric"]["name"]
    selector = go_label_selector(source["metric"].get("selector"))
    cause = (
        f"unable to get external metric {target.namespace}/{name}/{selector}: "
        + NO_EXTERNAL_METRICS.format(name)
    )
    if source["target"].get("averageValue") is not None:
        text = f"failed to get {name} external metric: {cause}"
    else:
        text = f"failed to get external metric {name}: {cause}"
    raise MetricFailure(
        "FailedGetExternalMetric", cause, f"failed to get {name} external metric value: {text}"
    )


COMPUTATIONS: Mapping[str, Callable[[AnyObject, MetricTarget], MetricProposal]] = {
    "Resource": compute_resource_metric,
    "ContainerResource": compute_container_resource_metric,
    "Pods": compute_pods_metric,
    "Object": compute_object_metric,
    "External": compute_external_metric,
}
