"""The faults of a cluster, as ``faults:`` in ``kubepy.yaml`` or a file of ``--faults`` describes
them (docs/faults.md).

Only what a fault is, and to what it happens; ``controlplane.faults`` and the kubelet let it happen.
Each draw is a function of the seed, the object and the purpose, so that the same seed has the same
faults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kubepy.api.clock import Ids
from kubepy.api.meta import AnyObject, annotations_of, labels_of, name_of, namespace_of, uid_of
from kubepy.api.objects.outcomes import OUTCOME, UnknownOutcomeError, parse_outcomes
from kubepy.api.objects.usage import AnnotationError
from kubepy.api.scheme import Scheme
from kubepy.api.selectors import LabelSelector, SelectorError, from_label_selector
from kubepy.api.values.goformat import parse_duration
from kubepy.apiserver.strict_fields import (
    Parser,
    field_error,
    list_of,
    map_of,
    parse_fields,
    parse_text,
    shown,
)

# The controllers that can be afflicted, by the names that events and ``kubepy clock`` show.
# Kubelets are not among them: there is one a node, and faults of nodes are theirs.
CONTROLLERS = (
    "node-lifecycle-controller",
    "ttl-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "resourcequota-controller",
    "clusterrole-aggregation-controller",
    "crd-finalizer",
    "daemonset-controller",
    "replicaset-controller",
    "replication-controller",
    "deployment-controller",
    "statefulset-controller",
    "ephemeral-volume-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-binder-controller",
    "kubepy.dev/simulated",
    "persistentvolume-expander-controller",
    "external-resizer simulated.kubepy.dev",
    "pv-protection-controller",
    "pvc-protection-controller",
    "job-controller",
    "cronjob-controller",
    "ttl-after-finished-controller",
    "horizontal-pod-autoscaler-controller",
    "disruption-controller",
    "endpoint-slice-controller",
    "endpoint-controller",
    "endpoint-slice-mirroring-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "kubernetes-service-controller",
    "service-lb-controller",
    "default-scheduler",
)
POD_INDEX = "apps.kubernetes.io/pod-index"  # label of a StatefulSet's pod
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"  # annotation of an indexed Job's pod
Seed = int | str


class SecondsRange(NamedTuple):
    """Seconds from ``low`` to ``high``, of which each case draws its own."""

    low: float
    high: float


class NodeFault(NamedTuple):
    """Nodes that go down and come back.

    :param names: of the nodes; none: all that the selector chooses.
    :param rate: the share of outages that happen; each node draws anew for each of them.
    :param after: when the first outage begins, counted from when the controllers first see the node
        with this setting.
    :param down_for: how long an outage lasts.
    :param every: the time from the planned beginning of an outage to that of the next one; None:
        there is but one.
    """

    down_for: SecondsRange
    names: tuple[str, ...] = ()
    selector: LabelSelector = LabelSelector()
    rate: float = 1.0
    after: SecondsRange = SecondsRange(0.0, 0.0)
    every: float | None = None


class PodFault(NamedTuple):
    """Pods that have a bad outcome unless annotations of their own, or of their node, say
    otherwise.

    :param ordinals: of pods of a StatefulSet or an indexed Job; none: pods with and without.
    """

    outcome: str
    namespaces: tuple[str, ...] = ()
    selector: LabelSelector = LabelSelector()
    nodes: tuple[str, ...] = ()
    ordinals: tuple[int, ...] = ()
    rate: float = 1.0


class ControllerFault(NamedTuple):
    """Faults of controllers: conflicts, restarts or late watch events.

    :param rate: of the writes, or of the watch events, that it happens to.
    :param controllers: none: all; ``resources``: of what is written or watched; none: all.
    :param delay: of late watch events.
    """

    rate: float
    controllers: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    delay: SecondsRange = SecondsRange(0.0, 0.0)

    def concerns(self, controller: str, resource: str) -> bool:
        return (not self.controllers or controller in self.controllers) and (
            not self.resources or resource in self.resources
        )


class FaultSettings(NamedTuple):
    """All faults of a cluster.

    :param source: the settings as JSON, by which one is told from another.
    :param seed: what the faults are drawn from, in place of the cluster's.
    """

    source: str
    seed: Seed | None = None
    nodes: tuple[NodeFault, ...] = ()
    pods: tuple[PodFault, ...] = ()
    conflicts: ControllerFault | None = None
    restarts: ControllerFault | None = None
    late_events: ControllerFault | None = None

    def draw(self, *subject: object) -> float:
        """Draw a number from 0 to 1 that the seed and the subject alone decide."""
        return Ids(self.seed).fraction("faults", *map(str, subject), unseeded="")

    def draw_from(self, seconds: SecondsRange, *subject: object) -> float:
        """Draw from a range of seconds; whole ones between whole ones."""
        digits = 0 if seconds.low.is_integer() and seconds.high.is_integer() else 3
        return round(seconds.low + (seconds.high - seconds.low) * self.draw(*subject), digits)

    def pod_outcome(self, pod: AnyObject) -> str:
        """Return the outcome that a pod gets from the first fault that happens to it, "" from
        none."""
        labels, node = labels_of(pod), pod["spec"].get("nodeName", "")
        for index, fault in enumerate(self.pods):
            ordinal = labels.get(POD_INDEX) or annotations_of(pod).get(COMPLETION_INDEX, "")
            if (
                (not fault.namespaces or namespace_of(pod) in fault.namespaces)
                and fault.selector.matches(labels)
                and (not fault.nodes or node in fault.nodes)
                and (not fault.ordinals or ordinal in map(str, fault.ordinals))
                and self.draw("pod", index, namespace_of(pod), name_of(pod), uid_of(pod))
                < fault.rate
            ):
                return fault.outcome
        return ""

    def afflicts(self, controller: str) -> bool:
        """Tell whether a controller has conflicts, restarts or late watch events."""
        return controller in CONTROLLERS and any(
            fault is not None
            and fault.rate > 0
            and (not fault.controllers or controller in fault.controllers)
            for fault in (self.conflicts, self.restarts, self.late_events)
        )


# --- parsing --------------------------------------------------------------------------------------


def parse_faults(path: str, value: Any) -> FaultSettings:
    """Check faults. ``path``: of the file and field that they stand in. Raises FolderError, which
    names the field."""
    path = path.removesuffix(": ") if not isinstance(value, dict) else path
    return FaultSettings(
        json.dumps(value, sort_keys=True, default=str), **parse_fields(path, value, FAULTS)
    )


def parse_rate(path: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise field_error(path, f"{shown(value)} is not a number from 0 to 1")
    return float(value)


def parse_seconds(path: str, value: Any) -> float:
    seconds = parse_range(path, value)
    if seconds.low != seconds.high:
        raise field_error(path, f"{shown(value)} is a range: must be one duration such as 5m")
    return seconds.low


def parse_range(path: str, value: Any) -> SecondsRange:
    """Read a duration, or a range of them."""
    low_text, dots, high_text = value.partition("..") if isinstance(value, str) else ("", "", "")
    try:
        low = parse_duration(
            "0" if value == 0 and not isinstance(value, bool) else low_text.strip()
        )
        high = parse_duration(high_text.strip()) if dots else low
    except ValueError:
        low, high = 1.0, 0.0
    if not 0 <= low <= high:
        raise field_error(
            path, f"{shown(value)} is not a duration such as 5m, or a range such as 2s..8s"
        )
    return SecondsRange(low, high)


def parse_length(path: str, value: Any) -> SecondsRange:
    """Read a duration or a range of at least a second, as exact as the annotation that says when a
    node is back."""
    seconds = parse_range(path, value)
    if seconds.low < 1:
        raise field_error(path, f"{shown(value)} is less than 1s")
    return seconds


def parse_selector(path: str, value: Any) -> LabelSelector:
    """Read a LabelSelector."""
    fields = parse_fields(
        path, value, dict.fromkeys(("matchLabels", "matchExpressions"), lambda _, entry: entry)
    )
    labels, entries = fields.get("matchLabels", {}), fields.get("matchExpressions", [])
    if not isinstance(labels, dict) or not all(
        isinstance(text, str) for pair in labels.items() for text in pair
    ):
        raise field_error(f"{path}.matchLabels", "must be a map of strings")

    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise field_error(f"{path}.matchExpressions", "must be a list of key, operator and values")
    for index, entry in enumerate(entries):
        strings = {"key": parse_text, "operator": parse_text, "values": list_of(parse_text)}
        parse_fields(f"{path}.matchExpressions[{index}]", entry, strings, ("key", "operator"))
    for field, part in (("matchLabels", {"matchLabels": labels}), ("matchExpressions", value)):
        try:
            selector = from_label_selector(part)
        except SelectorError as error:
            raise field_error(f"{path}.{field}", str(error)) from None

    return selector


def parse_ordinal(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise field_error(path, f"{shown(value)} is not a number from 0 on")
    return value


def parse_outcome(path: str, value: Any) -> str:
    """Check an outcome, or a sequence of them: ``crash-loop*3, ready`` (docs/kubelet.md)."""
    text = parse_text(path, value)
    try:
        parse_outcomes(OUTCOME, text)
    except (AnnotationError, UnknownOutcomeError) as error:
        raise field_error(path, str(error).removeprefix(f"{OUTCOME}: ")) from None
    return text


def parse_controller(path: str, value: Any) -> str:
    if value not in CONTROLLERS:
        raise field_error(
            path, f"{shown(value)} is not a controller: must be one of {', '.join(CONTROLLERS)}"
        )
    return str(value)


def parse_resource(path: str, value: Any) -> str:
    """Read the name of a resource as the command line does. One of another group may be defined
    later."""
    word = (
        value
        if isinstance(value, str) and value == value.lower() and not set(value) & set(" /*,")
        else ""
    )
    scheme = Scheme()
    if resource := scheme.find(word):
        return resource.key
    _, dot, group = word.partition(".")
    if not dot or not group or group in {resource.group for resource in scheme}:
        raise field_error(path, f"{shown(value)} is not a resource such as pods or daemonsets.apps")
    return word


def parse_seed(path: str, value: Any) -> Seed:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise field_error(path, "must be a number or a string")
    return value


NODE_FAULT: Mapping[str, Parser] = {
    "names": list_of(parse_text),
    "selector": parse_selector,
    "rate": parse_rate,
    "after": parse_range,
    "downFor": parse_length,
    "every": parse_seconds,
}
POD_FAULT: Mapping[str, Parser] = {
    "namespaces": list_of(parse_text),
    "selector": parse_selector,
    "nodes": list_of(parse_text),
    "ordinals": list_of(parse_ordinal),
    "rate": parse_rate,
    "outcome": parse_outcome,
}
CONTROLLER_FAULT: Mapping[str, Parser] = {
    "rate": parse_rate,
    "controllers": list_of(parse_controller),
    "resources": list_of(parse_resource),
}
LATE_EVENTS: Mapping[str, Parser] = {**CONTROLLER_FAULT, "delay": parse_range}


def parse_node_fault(path: str, value: Any) -> NodeFault:
    fault = NodeFault(**parse_fields(path, value, NODE_FAULT, ("downFor",)))
    if fault.every is not None and fault.every <= fault.down_for.high:
        raise field_error(f"{path}.every", "must be longer than downFor")
    return fault


FAULTS: Mapping[str, Parser] = {
    "seed": parse_seed,
    "nodes": list_of(parse_node_fault),
    "pods": list_of(map_of(PodFault, POD_FAULT, "outcome")),
    "conflicts": map_of(ControllerFault, CONTROLLER_FAULT, "rate"),
    "restarts": map_of(ControllerFault, CONTROLLER_FAULT, "rate"),
    "lateEvents": map_of(ControllerFault, LATE_EVENTS, "rate", "delay"),
}
