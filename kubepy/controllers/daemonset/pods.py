"""A DaemonSet's pods: the node and the template that each is of, and new ones. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


class PodCriteria(NamedTuple):
    """What a sync judges pods by: the current template, and the time for which a pod must have been
    Ready.

    :ivar hash: of the current revision.
    :ivar template_generation: that pods of the current template carry; None where only the hash
        counts.
    :ivar ready_by: pods are available that have been Ready since then; None: all that are Ready.
    """

    hash: str
    template_generation: str | None
    ready_by: datetime | None = None

    def is_updated(self, pod: DaemonPod) -> bool:
        """Return whether a pod is of the current template, by its hash or by the older generation
        label (``IsPodUpdated``)."""
        if self.hash and pod.hash == self.hash:
            return True
        if self.template_generation is None:
            return False
        return pod.template_generation == self.template_generation

    def is_available(self, pod: DaemonPod) -> bool:
        """Return whether a pod has been Ready for ``minReadySeconds`` (``IsPodAvailable``)."""
        if not pod.is_ready or self.ready_by is None:
            return pod.is_ready
        if pod.ready_since is None:
            return False
        return pod.ready_since <= self.ready_by


def find_updated_pods_on_node(
    pods: Sequence[DaemonPod], criteria: PodCriteria
) -> tuple[DaemonPod | None, DaemonPod | None, bool]:
    """Return the new and the old pod of a node, of those that are not being deleted, and whether
    there are more of one template, which ``pods_should_be_on_node`` cleans up first
    (``findUpdatedPodsOnNode``)."""
    new_pods: list[DaemonPod] = []
    old_pods: list[DaemonPod] = []
    for pod in pods:
        if pod.is_being_deleted:
            continue
        if criteria.is_updated(pod):
            new_pods.append(pod)
        else:
            old_pods.append(pod)
    new_pod = new_pods[0] if new_pods else None
    old_pod = old_pods[0] if old_pods else None
    return new_pod, old_pod, len(new_pods) > 1 or len(old_pods) > 1


def target_node_name(pod: Pod) -> str:
    """Return the node that a pod runs on, or that its node affinity names; "" for none
    (``GetTargetNodeName``)."""
    bound = pod["spec"].get("nodeName")
    if bound:
        return bound
    selector: Mapping[str, Any] = required_node_selector(pod["spec"]) or {}
    for term in selector.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == METADATA_NAME and field.get("operator") == "In":
                values: list[str] = field.get("values") or []
                if len(values) == 1:
                    return values[0]
                return ""
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
    if generation is None:
        return None
    return str(generation)


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
    generation = template_generation(daemon_set)
    creation = _creation(daemon_set["metadata"])
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
    generation = template_generation(daemon_set)
    if generation is not None:
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
