"""A DaemonSet's pods: which node each is for, which template it is of, what a new one looks like. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubepy.api.meta import Object, annotations_of, labels_of, uid_of
from kubepy.api.objects.nodes import METADATA_NAME, required_node_selector
from kubepy.api.values.gonumbers import int_or_none, scaled_value
from kubepy.controllers.daemonset.placement import daemon_tolerations
from kubepy.controllers.pod_control import pod_from_template
from kubepy.runtime.history import restores

HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"

def target_node(pod: Object) -> str:
    """The node that a pod runs on or is meant for, "" for none (``GetTargetNodeName``)."""
    spec = pod["spec"]
    return spec.get("nodeName") or _pinned_to(required_node_selector(spec) or {})


def _pinned_to(selector: Mapping[str, Any]) -> str:
    for term in selector.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == METADATA_NAME and field.get("operator") == "In":
                values: list[str] = field.get("values") or []
                return values[0] if len(values) == 1 else ""
    return ""


def oldest_first(pods: Iterable[Object]) -> list[Object]:
    """Scheduled before unscheduled, then by age (``podByCreationTimestampAndPhase``).

    Upstream goes by name among those of one second, as a rollout there takes longer than that; here UIDs tell the age.
    """
    return sorted(pods, key=_age)


def _age(pod: Object) -> tuple[bool, str, str]:
    return not pod["spec"].get("nodeName"), pod["metadata"].get("creationTimestamp", ""), uid_of(pod)


# --- revisions ----------------------------------------------------------------------------------------------------


def template_generation(daemon_set: Object) -> str | None:
    """What the deprecated annotation counts, as pods are labelled with it; None without a number there."""
    generation = int_or_none(annotations_of(daemon_set).get(GENERATION_ANNOTATION, ""))
    return None if generation is None else str(generation)


def is_generation_reused(daemon_set: Object, old_revisions: Iterable[Object]) -> bool:
    """Tell whether another template was recorded under the present template generation in this DaemonSet's life.

    An API server counts on with every template; in a state folder whose index is new, a file that was edited by hand
    has the number of the template before. Revisions older than the DaemonSet are another one's, adopted by it; one that
    an older server wrote may hold the same template in other words.
    """
    generation, begin = template_generation(daemon_set), _made(daemon_set)
    return any(template_generation(revision) == generation and _made(revision) > begin
               and not restores(revision, daemon_set) for revision in old_revisions)


def _made(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("creationTimestamp", ""), uid_of(obj)


def without_template_generation(daemon_set: Object) -> Object:
    """The DaemonSet as it is judged when only the hash tells which pods are of the present template."""
    annotations = {name: text for name, text in annotations_of(daemon_set).items() if name != GENERATION_ANNOTATION}
    return {**daemon_set, "metadata": {**daemon_set["metadata"], "annotations": annotations}}


def is_updated(pod: Object, hash_: str, generation: str | None) -> bool:
    """Whether a pod is of the present template, by its hash or by the older generation label (``IsPodUpdated``)."""
    labels = labels_of(pod)
    return (bool(hash_) and labels.get(HASH_LABEL) == hash_) or (
        generation is not None and labels.get(GENERATION_LABEL) == generation)


# --- strategy -----------------------------------------------------------------------------------------------------


def surge_count(daemon_set: Object, desired: int) -> int:
    """How many nodes may have a second pod; 0 unless the strategy is RollingUpdate. Raises ValueError."""
    return scaled_value(_rolling_update(daemon_set).get("maxSurge"), desired, round_up=True)


def unavailable_count(daemon_set: Object, desired: int) -> int:
    """How many nodes may be without an available pod. Raises ValueError."""
    return scaled_value(_rolling_update(daemon_set).get("maxUnavailable"), desired, round_up=True)


def allows_surge(daemon_set: Object) -> bool:
    """Whether a node may have two pods at all (``AllowsSurge``)."""
    try:
        return surge_count(daemon_set, 1) > 0
    except ValueError:
        return False


def _rolling_update(daemon_set: Object) -> Object:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") != "RollingUpdate":
        return {}
    parameters: Object = strategy.get("rollingUpdate") or {}
    return parameters


# --- new pods -----------------------------------------------------------------------------------------------------


def new_pod(daemon_set: Object, hash_: str) -> Object:
    """A pod of the present template for any node; :func:`pinned` makes it one node's (``CreatePodTemplate``)."""
    template = daemon_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    if (generation := template_generation(daemon_set)) is not None:
        labels[GENERATION_LABEL] = generation
    if hash_:
        labels[HASH_LABEL] = hash_
    spec = {**template["spec"], "tolerations": daemon_tolerations(template["spec"])}
    return pod_from_template(daemon_set, {"metadata": {**metadata, "labels": labels}, "spec": spec})


def pinned(pod: Object, node: str) -> Object:
    """The pod for one node: its required node affinity names that node and nothing else.

    The template's own required terms have been met already, and matchFields can't be combined with them
    (``ReplaceDaemonSetPodNodeNameNodeAffinity``).
    """
    terms = [{"matchFields": [{"key": METADATA_NAME, "operator": "In", "values": [node]}]}]
    affinity = pod["spec"].get("affinity") or {}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
    }
    return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": node_affinity}}}
