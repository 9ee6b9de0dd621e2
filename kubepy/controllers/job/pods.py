"""The pods of a Job: new ones, and those to give up. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import has_finalizer, name_of
from kubepy.api.meta import without_finalizer as without
from kubepy.controllers.job.indexes import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    completion_index,
    index_absolute_failure_count,
    index_failure_count,
)
from kubepy.controllers.job.policies import match_pod_failure_policy
from kubepy.controllers.pod_control import pod_from_template
from kubepy.controllers.pod_order import sort_active_pods

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Job, Pod

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
MAX_GENERATED_PREFIX = 63 - 5


def is_indexed(job: Job) -> bool:
    return job["spec"].get("completionMode") == "Indexed"


def has_backoff_limit_per_index(job: Job) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def has_tracking_finalizer(pod: Pod) -> bool:
    """Return whether the pod has not been counted yet (``hasJobTrackingFinalizer``)."""
    return has_finalizer(pod, FINALIZER)


def without_tracking_finalizer(pod: Pod) -> Pod:
    return without(pod, FINALIZER)


def new_pod(job: Job) -> Pod:
    """Return a pod of the Job's template; of an Indexed Job for no index yet."""
    template = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    spec = template["spec"]
    if is_indexed(job):
        if spec.get("initContainers"):
            spec = {
                **spec,
                "initContainers": list(map(_with_index_variable, spec["initContainers"])),
            }
        if spec.get("containers"):
            spec = {**spec, "containers": list(map(_with_index_variable, spec["containers"]))}

    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        finalizers = [*finalizers, FINALIZER]
    return pod_from_template(
        job, {"metadata": {**metadata, "finalizers": finalizers}, "spec": spec}
    )


def _with_index_variable(container: Container) -> Container:
    variables = container.get("env") or []
    if any(variable["name"] == INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return cast(
        "Container",
        {**container, "env": [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]},
    )


def for_index(job: Job, pod: Pod, index: int, replaced: Pod | None) -> Pod:
    """Return the new pod for one index; ``replaced`` is the failed one whose place it takes, if its
    failures count apart.

    The generated name is ``name-0-``, the name cut where that would be too long
    (``podGenerateNameWithIndex``).
    """
    metadata = pod["metadata"]
    suffix = f"-{index}-"
    annotations = {**(metadata.get("annotations") or {}), INDEX: str(index)}
    if has_backoff_limit_per_index(job):
        annotations |= _failure_annotations(job, replaced)
    return cast(
        "Pod",
        {
            **pod,
            "metadata": {
                **metadata,
                "annotations": annotations,
                "labels": {**(metadata.get("labels") or {}), INDEX: str(index)},
                "generateName": f"{name_of(job)[: MAX_GENERATED_PREFIX - len(suffix)]}{suffix}",
            },
            "spec": {**pod["spec"], "hostname": f"{name_of(job)}-{index}"},
        },
    )


def _failure_annotations(job: Job, replaced: Pod | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    counted = index_failure_count(replaced)
    ignored = index_absolute_failure_count(replaced) - counted
    if match_pod_failure_policy(job, replaced).counts:
        counted += 1
    else:
        ignored += 1
    return {FAILURES: str(counted), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def active_pods_for_removal(job: Job, active: list[Pod], at_least: int) -> list[Pod]:
    """Return the pods that are too many; of an Indexed Job also those without a place
    (``activePodsForRemoval``)."""
    left, surplus = (
        _split_by_index(active, job["spec"]["completions"]) if is_indexed(job) else (active, [])
    )
    return surplus + sort_active_pods(left)[: max(at_least - len(surplus), 0)]


def _split_by_index(active: Iterable[Pod], completions: int) -> tuple[list[Pod], list[Pod]]:
    """Return one pod for each index, and the others: those of an index that has one, or that there
    is not."""
    kept: list[Pod] = []
    surplus: list[Pod] = []

    def valid_index(pod: Pod) -> int:
        index = completion_index(pod)
        if index is not None and index < completions:
            return index
        return -1

    for index, group in groupby(sorted(active, key=valid_index), valid_index):
        *others, best = sort_active_pods(group)
        surplus += others if index >= 0 else [*others, best]
        if index >= 0:
            kept += [best]

    return kept, surplus
