"""A DaemonSet's pods: the node and the template that each is of, and new ones. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.meta import annotations_of, is_being_deleted, labels_of, name_of
from kubepy.api.objects.nodes import METADATA_NAME, required_node_selector
from kubepy.api.objects.pods import is_pod_active, is_pod_ready, phase_of, pod_ready_time
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.daemonset.placement import daemon_tolerations
from kubepy.controllers.pod_control import pod_from_template
from kubepy.runtime.history import restores

if TYPE_CHECKING:
    from kubepy.api.typed import ControllerRevision, DaemonSet, ObjectMeta, Pod

HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"

# All that is read of a pod to make a DaemonPod of it. Of pods that nothing else asks for only these
# fields are read.
DAEMON_POD_PARTS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels",
    "metadata.ownerReferences",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "spec.nodeName",
    "spec.affinity",
    "status.phase",
    "status.conditions",
)


class DaemonPod(NamedTuple):
    """A pod of a DaemonSet, and what the controller reads of it: an index of the informers holds it
    ready."""

    pod: Pod  # perhaps only what is in DAEMON_POD_PARTS: not to be written
    name: str
    target_node: str  # "" for none
    phase: str
    is_scheduled: bool
    is_being_deleted: bool
    is_active: bool  # neither ended nor being deleted
    is_ready: bool
    ready_since: datetime | None
    hash: str | None
    template_generation: str | None


def read_daemon_pod(pod: Pod) -> DaemonPod:
    labels = labels_of(pod)
    return DaemonPod(
        pod,
        name_of(pod),
        target_node_name(pod),
        phase_of(pod),
        bool(pod["spec"].get("nodeName")),
        is_being_deleted(pod),
        is_pod_active(pod),
        is_pod_ready(pod),
        pod_ready_time(pod),
        labels.get(HASH_LABEL),
        labels.get(GENERATION_LABEL),
    )


def target_node_name(pod: Pod) -> str:
    """Return the node that a pod runs on, or that its node affinity names; "" for none
    (``GetTargetNodeName``)."""
    if bound := pod["spec"].get("nodeName"):
        return bound
    selector: Mapping[str, Any] = required_node_selector(pod["spec"]) or {}
    for term in selector.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == METADATA_NAME and field.get("operator") == "In":
                values: list[str] = field.get("values") or []
                return values[0] if len(values) == 1 else ""
    return ""


def oldest_first(pods: Iterable[DaemonPod]) -> list[DaemonPod]:
    """Sort scheduled before unscheduled pods, then by age (``podByCreationTimestampAndPhase``).

    Upstream goes by name among those of one second, as a rollout there takes longer than that; here
    UIDs tell the age.
    """
    return sorted(pods, key=lambda pod: (not pod.is_scheduled, *_creation(pod.pod["metadata"])))


def _creation(metadata: ObjectMeta) -> tuple[str, str]:
    return metadata.get("creationTimestamp", ""), metadata.get("uid", "")


# --- revisions ------------------------------------------------------------------------------------


def template_generation(obj: DaemonSet | ControllerRevision) -> str | None:
    """Return the number in the deprecated annotation as pods are labelled with it; None without a
    number there."""
    generation = int_or_none(annotations_of(obj).get(GENERATION_ANNOTATION, ""))
    return None if generation is None else str(generation)


def is_generation_reused(
    daemon_set: DaemonSet, old_revisions: Iterable[ControllerRevision]
) -> bool:
    """Return whether another template was recorded under the present template generation in this
    DaemonSet's life.

    An API server counts on with every template; in a state folder whose index is new, a file that
    was edited by hand has the number of the template before. Revisions older than the DaemonSet are
    another one's, adopted by it; one that an older server wrote may hold the same template in other
    words.
    """
    generation, creation = template_generation(daemon_set), _creation(daemon_set["metadata"])
    return any(
        template_generation(revision) == generation
        and _creation(revision["metadata"]) > creation
        and not restores(revision, daemon_set)
        for revision in old_revisions
    )


# --- new pods -------------------------------------------------------------------------------------


def new_pod(daemon_set: DaemonSet, hash_: str) -> Pod:
    """Return a pod of the present template for any node (``CreatePodTemplate``);
    see :func:`for_node`."""
    template = daemon_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    if (generation := template_generation(daemon_set)) is not None:
        labels[GENERATION_LABEL] = generation
    if hash_:
        labels[HASH_LABEL] = hash_
    spec = {**template["spec"], "tolerations": daemon_tolerations(template["spec"])}
    return pod_from_template(daemon_set, {"metadata": {**metadata, "labels": labels}, "spec": spec})


def for_node(pod: Pod, node: str) -> Pod:
    """Return the pod for one node: its required node affinity names that node and nothing else.

    The template's own required terms have been met already, and matchFields can't be combined with
    them (``ReplaceDaemonSetPodNodeNameNodeAffinity``).
    """
    terms = [{"matchFields": [{"key": METADATA_NAME, "operator": "In", "values": [node]}]}]
    affinity = pod["spec"].get("affinity") or {}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
    }
    return cast(
        "Pod",
        {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": node_affinity}}},
    )


def with_hash(pod: Pod, hash_: str) -> Pod:
    """Return the pod with the hash label of another revision of its template."""
    labels = {**labels_of(pod), HASH_LABEL: hash_}
    return cast("Pod", {**pod, "metadata": {**pod["metadata"], "labels": labels}})
