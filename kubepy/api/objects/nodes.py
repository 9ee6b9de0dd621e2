"""Questions about nodes: taints and tolerations, node selectors and required node affinity,
readiness.

Pure functions over plain dicts, on the hot paths of the scheduler and of the DaemonSet controller.
Upstream: ``component-helpers/scheduling/corev1``, ``api/core/v1/toleration.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api.clock import parse_time
from kubepy.api.meta import (
    AnyObject,
    Object,
    ObjectT,
    annotations_of,
    labels_of,
    nested_list,
    nested_map,
    spec_of,
)
from kubepy.api.values.gonumbers import int_or_none

if TYPE_CHECKING:
    from kubepy.api.typed import Taint

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

TAINT_NOT_READY = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINT_MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
TAINT_DISK_PRESSURE = "node.kubernetes.io/disk-pressure"
TAINT_PID_PRESSURE = "node.kubernetes.io/pid-pressure"
TAINT_NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"

DOWN_UNTIL = "kubepy.dev/down-until"  # annotation of a node: its kubelet is silent until this time
METADATA_NAME = "metadata.name"  # the only field that matchFields knows


def taints_of(node: AnyObject) -> list[Taint]:
    return nested_list(node, "spec", "taints")


def is_unschedulable(node: AnyObject) -> bool:
    """Return whether the node is cordoned."""
    return bool(spec_of(node).get("unschedulable"))


def get_condition(node: AnyObject, condition_type: str) -> Object | None:
    """Return the condition of that type, or None (``nodeutil.GetNodeCondition``)."""
    conditions: list[Object] = nested_list(node, "status", "conditions")
    return next(
        (condition for condition in conditions if condition.get("type") == condition_type), None
    )


def is_node_ready(node: AnyObject) -> bool:
    """Return whether the node's Ready condition is True (``nodeutil.IsNodeReady``)."""
    condition = get_condition(node, "Ready")
    return condition is not None and condition.get("status") == "True"


def is_node_unknown(node: AnyObject) -> bool:
    """Return whether nobody knows if the node is ready: its kubelet does not answer."""
    condition = get_condition(node, "Ready")
    return condition is not None and condition.get("status") == "Unknown"


def down_until(node: AnyObject) -> datetime | None:
    """Return until when the node's kubelet is down, or was; None if it is up. What is no time
    counts for nothing."""
    text = annotations_of(node).get(DOWN_UNTIL)
    try:
        if text:
            return parse_time(text)
        return None
    except ValueError:
        return None


def is_down(node: AnyObject, now: datetime) -> bool:
    """Tell whether the node's kubelet is silent now."""
    until = down_until(node)
    return until is not None and until > now


def tolerates(toleration: AnyObject, taint: AnyObject) -> bool:
    """Return whether a toleration covers a taint (``Toleration.ToleratesTaint``; Lt and Gt are off
    in v1.36)."""
    if (effect := toleration.get("effect")) and effect != taint.get("effect"):
        return False
    if (key := toleration.get("key")) and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and toleration.get("value", "") == taint.get("value", "")


def find_untolerated_taint(
    taints: Iterable[ObjectT], tolerations: Sequence[AnyObject] | None, effects: Collection[str]
) -> ObjectT | None:
    """Return the first taint with one of these effects that no toleration covers
    (``FindMatchingUntoleratedTaint``)."""
    for taint in taints:
        if taint.get("effect") in effects and not any(
            tolerates(toleration, taint) for toleration in tolerations or ()
        ):
            return taint
    return None


def required_node_affinity_matches(pod: AnyObject, node: AnyObject) -> bool:
    """Return whether the pod's nodeSelector and required node affinity let it run on the node.

    ``pod`` may be a pod template too: only its spec is read
    (``nodeaffinity.GetRequiredNodeAffinity(pod).Match``).
    """
    spec = pod["spec"]
    if selector := spec.get("nodeSelector"):
        labels = labels_of(node)
        for key, value in selector.items():
            if labels.get(key) != value:
                return False
    required = required_node_selector(spec)
    return required is None or node_selector_matches(required, node)


def required_node_selector(pod_spec: AnyObject) -> Object | None:
    """Return ``affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution``, or None."""
    if not (affinity := pod_spec.get("affinity")) or not (
        node_affinity := affinity.get("nodeAffinity")
    ):
        return None
    required: Object | None = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required


def node_selector_matches(selector: AnyObject, node: AnyObject) -> bool:
    """Return whether a term of a ``v1.NodeSelector`` matches the node. A selector without terms
    matches none."""
    return any(
        node_selector_term_matches(term, node)
        for term in nested_list(selector, "nodeSelectorTerms")
    )


def node_selector_term_matches(term: AnyObject, node: AnyObject) -> bool:
    """Return whether all requirements of a term hold. An empty term matches no node, an unreadable
    one neither."""
    expressions = term.get("matchExpressions")
    fields = term.get("matchFields")
    if not expressions and not fields:
        return False
    metadata = node["metadata"]
    for requirement in fields or ():
        values: Sequence[str] = nested_list(requirement, "values")
        actual = metadata.get("name", "") if requirement["key"] == METADATA_NAME else ""
        if len(values) != 1 or requirement["operator"] not in ("In", "NotIn"):
            return False
        if (actual == values[0]) is not (requirement["operator"] == "In"):
            return False
    labels = nested_map(metadata, "labels")
    return all(_requirement_matches(requirement, labels) for requirement in expressions or ())


def _requirement_matches(requirement: AnyObject, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement["key"])
    values = nested_list(requirement, "values")
    match requirement["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists":
            return value is not None and not values
        case "DoesNotExist":
            return value is None and not values
        case "Gt":
            return (order := _order(value, values)) is not None and order > 0
        case "Lt":
            return (order := _order(value, values)) is not None and order < 0

    return False


def _order(value: str | None, values: Sequence[str]) -> int | None:
    """Return the label minus the one number that it is compared with, None if either is not an
    integer."""
    if value is None or len(values) != 1:
        return None
    number = int_or_none(value)
    bound = int_or_none(values[0])
    if number is None or bound is None:
        return None
    return number - bound
