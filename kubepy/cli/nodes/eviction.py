"""Which pods `drain` may remove from a node, and what stands in the way: decisions, nothing is written here.

Upstream: ``k8s.io/kubectl/pkg/drain/filters.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, annotations_of, controller_of, name_of, namespace_of
from kubepy.api.objects.pods import is_pod_terminal

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class Rules(NamedTuple):
    """The flags of drain that decide about pods. ``skip_deleted_after``: seconds, 0 for never."""

    force: bool
    ignore_daemonsets: bool
    delete_emptydir_data: bool
    skip_deleted_after: int


class Verdict(NamedTuple):
    """Whether a pod is to go; a warning or an error says why it is special."""

    remove: bool
    warning: str = ""
    error: str = ""


class Plan(NamedTuple):
    """For one node: the pods to remove, and what is to be said about the others."""

    remove: list[Object]
    warnings: str
    errors: list[str]


# Looks up the DaemonSet of a pod: None where it is there, else the error of getting it.
Missing = Callable[[str, str], str | None]


def plan_removal(pods: list[Object], rules: Rules, missing_daemonset: Missing, now: datetime) -> Plan:
    """Judge all pods of a node."""
    verdicts = [(pod, judge(pod, rules, missing_daemonset, now)) for pod in pods]
    warnings = _by_text((verdict.warning, pod) for pod, verdict in verdicts)
    errors = _by_text((verdict.error, pod) for pod, verdict in verdicts)
    return Plan(
        [pod for pod, verdict in verdicts if verdict.remove],
        "; ".join(f"{text}: {names}" for text, names in warnings.items()),
        [f"cannot delete {text}: {names}" for text, names in errors.items()],
    )


def _by_text(found: Iterable[tuple[str, Object]]) -> dict[str, str]:
    names: dict[str, list[str]] = {}
    for text, pod in found:
        if text:
            names.setdefault(text, []).append(f"{namespace_of(pod)}/{name_of(pod)}")
    return {text: ", ".join(pods) for text, pods in names.items()}


def judge(pod: Object, rules: Rules, missing_daemonset: Missing, now: datetime) -> Verdict:
    """The filters in upstream's order: the first that keeps the pod decides, else the last one that warns."""
    if was_deleted_long_ago(pod, rules.skip_deleted_after, now):
        return Verdict(False)
    verdict = _daemonset(pod, rules, missing_daemonset)
    if verdict.remove and MIRROR_ANNOTATION in annotations_of(pod):
        return Verdict(False)
    for check in (_local_storage, _unmanaged):
        if verdict.remove:
            verdict = check(pod, rules)
    return verdict


def was_deleted_long_ago(pod: Object, seconds: int, now: datetime) -> bool:
    deleted = pod["metadata"].get("deletionTimestamp")
    return bool(seconds > 0 and deleted and int((now - parse_time(deleted)).total_seconds()) > seconds)


def _daemonset(pod: Object, rules: Rules, missing_daemonset: Missing) -> Verdict:
    controller = controller_of(pod)
    if controller is None or (controller["apiVersion"], controller["kind"]) != ("apps/v1", "DaemonSet"):
        return Verdict(True)
    if is_pod_terminal(pod):
        return Verdict(True)
    if error := missing_daemonset(namespace_of(pod), controller["name"]):
        return Verdict(True, warning=error) if rules.force else Verdict(False, error=error)
    if not rules.ignore_daemonsets:
        return Verdict(False, error="DaemonSet-managed Pods (use --ignore-daemonsets to ignore)")
    return Verdict(False, warning="ignoring DaemonSet-managed Pods")


def _local_storage(pod: Object, rules: Rules) -> Verdict:
    if is_pod_terminal(pod) or not any("emptyDir" in volume for volume in pod["spec"].get("volumes") or []):
        return Verdict(True)
    if not rules.delete_emptydir_data:
        return Verdict(False, error="Pods with local storage (use --delete-emptydir-data to override)")
    return Verdict(True, warning="deleting Pods with local storage")


def _unmanaged(pod: Object, rules: Rules) -> Verdict:
    if is_pod_terminal(pod) or controller_of(pod) is not None:
        return Verdict(True)
    if rules.force:
        return Verdict(True, warning="deleting Pods that declare no controller")
    return Verdict(False, error="Pods that declare no controller (use --force to override)")
