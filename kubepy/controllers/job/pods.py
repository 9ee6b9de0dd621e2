"""The pods of a Job: what a new one looks like, which ones to give up. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from kubepy.api.meta import Object, name_of
from kubepy.controllers.job.indexes import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    all_failures_of_index,
    completion_index,
    failures_of_index,
)
from kubepy.controllers.job.policies import judge_failure
from kubepy.controllers.pod_control import pod_from_template
from kubepy.controllers.pod_order import least_wanted_first

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
MAX_GENERATED_PREFIX = 63 - 5


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def has_limit_per_index(job: Object) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def is_tracked(pod: Object) -> bool:
    """Whether the pod has not been counted yet."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def without_finalizer(pod: Object) -> Object:
    """A copy of the pod without the tracking finalizer."""
    kept = [one for one in pod["metadata"].get("finalizers") or () if one != FINALIZER]
    return {**pod, "metadata": {**pod["metadata"], "finalizers": kept}}


def new_pod(job: Object) -> Object:
    """A pod of the Job's template; of an Indexed Job for no index yet."""
    template = job["spec"]["template"]
    metadata, spec = template.get("metadata") or {}, template["spec"]
    if is_indexed(job):
        spec = {**spec, **{field: [_with_index_variable(one) for one in spec[field]]
                           for field in ("initContainers", "containers") if spec.get(field)}}
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        finalizers = [*finalizers, FINALIZER]
    return pod_from_template(job, {"metadata": {**metadata, "finalizers": finalizers}, "spec": spec})


def _with_index_variable(container: Object) -> Object:
    variables = container.get("env") or []
    if any(one["name"] == INDEX_VARIABLE for one in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]}


def for_index(job: Object, pod: Object, index: int, replaced: Object | None) -> Object:
    """The new pod for one index; ``replaced`` is the failed one whose place it takes, if its failures count apart."""
    metadata, text = pod["metadata"], str(index)
    annotations = {**(metadata.get("annotations") or {}), INDEX: text}
    if has_limit_per_index(job):
        annotations |= _failure_counts(job, replaced)
    labels = {**(metadata.get("labels") or {}), INDEX: text}
    changed = {**metadata, "annotations": annotations, "labels": labels, "generateName": _prefix(name_of(job), index)}
    return {**pod, "metadata": changed, "spec": {**pod["spec"], "hostname": f"{name_of(job)}-{index}"}}


def _failure_counts(job: Object, replaced: Object | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    counted = failures_of_index(replaced)
    ignored = all_failures_of_index(replaced) - counted
    counts = judge_failure(job, replaced).counts
    counted, ignored = counted + counts, ignored + (not counts)
    return {FAILURES: str(counted), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def _prefix(job: str, index: int) -> str:
    """``name-0-``, the name cut where that would be too long (``podGenerateNameWithIndex``)."""
    suffix = f"-{index}-"
    return f"{job[:MAX_GENERATED_PREFIX - len(suffix)]}{suffix}"


def pods_to_remove(job: Object, active: list[Object], at_least: int) -> list[Object]:
    """The pods that are too many; of an Indexed Job also those without a place (``activePodsForRemoval``)."""
    left, surplus = (_split_by_index(active, job["spec"]["completions"]) if is_indexed(job) else (active, []))
    return surplus + least_wanted_first(left)[:max(at_least - len(surplus), 0)]


def _split_by_index(active: Iterable[Object], completions: int) -> tuple[list[Object], list[Object]]:
    """One pod for each index, and the others: those of an index that has one, or that there is not."""
    kept, surplus = [], []

    def place(pod: Object) -> int:
        index = completion_index(pod)
        return index if index is not None and index < completions else -1

    for index, group in groupby(sorted(active, key=place), place):
        *others, best = least_wanted_first(group)
        surplus += others if index >= 0 else [*others, best]
        kept += [best] if index >= 0 else []
    return kept, surplus
