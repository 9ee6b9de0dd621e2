"""The pods of a StatefulSet: ordinals, identity, storage, health, and new ones. Pure functions.

Upstream: ``stateful_set_utils.go``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.clock import later
from kubepy.api.meta import is_being_deleted, labels_of, name_of, namespace_of
from kubepy.api.objects.pods import TERMINAL_PHASES, is_pod_ready, phase_of, pod_ready_time
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.pod_control import pod_from_template
from kubepy.controllers.statefulset.claims import claim_name

if TYPE_CHECKING:
    from kubepy.api.typed import Pod, PodSpec, StatefulSet

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"
MOST_MISSING = 500  # missing pods that one sync looks at: replicas may be any number of 32 bits
POD_NAME = re.compile(r"(.*)-([0-9]+)")


class Replica(NamedTuple):
    """A pod of the set and what the controller reads of it: an index of the informers holds it
    ready.

    A pod that is still to be made has only a name and a namespace, and no phase.
    """

    pod: Pod
    parent: str  # the name of the set that the pod's name belongs to
    ordinal: int  # -1: too large a number to be one
    revision: str  # that it is at, or is to be made at
    phase: str = ""
    is_being_deleted: bool = False
    is_ready: bool = False
    ready_since: datetime | None = None
    identity_matches: bool = True  # its name and labels are those of its ordinal
    claims: Mapping[str, str] = {}  # by volume

    @property
    def is_created(self) -> bool:
        return self.phase != ""

    @property
    def has_ended(self) -> bool:
        return self.phase in TERMINAL_PHASES

    @property
    def is_running_and_ready(self) -> bool:
        return self.is_ready and self.phase == "Running"

    def is_available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Return whether it has been ready for so long (``IsPodAvailable``)."""
        if not self.is_ready or not min_ready_seconds:
            return self.is_ready
        if self.ready_since is None:
            return False
        return later(self.ready_since, min_ready_seconds) <= now


def read_replica(pod: Pod) -> Replica:
    parent, ordinal = parent_name_and_ordinal(pod)
    name = name_of(pod)
    labels = labels_of(pod)
    identity_matches = (
        ordinal >= 0 and f"{parent}-{ordinal}" == name and labels.get(POD_NAME_LABEL) == name
    )
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"].get("volumes") or []
        if volume.get("persistentVolumeClaim")
    }
    return Replica(
        pod,
        parent,
        ordinal,
        labels.get(REVISION_LABEL, ""),
        phase_of(pod),
        is_being_deleted(pod),
        is_pod_ready(pod),
        pod_ready_time(pod),
        identity_matches,
        claims,
    )


def parent_name_and_ordinal(pod: Pod) -> tuple[str, int]:
    """Return the set that a pod's name belongs to, and its ordinal, or -1; ("", -1) for other
    names."""
    match = POD_NAME.fullmatch(name_of(pod))
    if match is None:
        return "", -1
    ordinal = int_or_none(match[2], 32)
    return match[1], -1 if ordinal is None else ordinal


def ordinal_of(pod: Pod) -> int:
    return parent_name_and_ordinal(pod)[1]


def start_ordinal(stateful_set: StatefulSet) -> int:
    ordinals = stateful_set["spec"].get("ordinals") or {}
    return int(ordinals.get("start", 0))


def ordinals(stateful_set: StatefulSet) -> range:
    """Return the ordinals that the set is to have."""
    start = start_ordinal(stateful_set)
    return range(start, start + stateful_set["spec"].get("replicas", 1))


def considered_ordinals(
    stateful_set: StatefulSet, present: Collection[int], room: int = MOST_MISSING
) -> list[int]:
    """Return the ordinals that a sync looks at, in order: those that have pods, and the first that
    lack them, of which an ordered set makes one.

    :param room: how many pods may be made at most.
    """
    in_range = ordinals(stateful_set)
    most = min(1 if is_ordered(stateful_set) else MOST_MISSING, room)
    missing = islice((ordinal for ordinal in in_range if ordinal not in present), most)
    return sorted([*missing, *(ordinal for ordinal in present if ordinal in in_range)])


def pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    return f"{name_of(stateful_set)}-{ordinal}"


def is_ordered(stateful_set: StatefulSet) -> bool:
    """Return whether pods come and go one after another (not ``Parallel``)."""
    return stateful_set["spec"].get("podManagementPolicy") != "Parallel"


def is_rolling(stateful_set: StatefulSet) -> bool:
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    return strategy.get("type") == "RollingUpdate"


def partition(stateful_set: StatefulSet) -> int:
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    rolling_update = strategy.get("rollingUpdate") or {}
    return int(rolling_update.get("partition", 0))


# --- new pods -------------------------------------------------------------------------------------


def missing_replica(stateful_set: StatefulSet, ordinal: int, revision: str) -> Replica:
    """Return the replica of a pod that is still to be made, at a revision."""
    name = pod_name(stateful_set, ordinal)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace_of(stateful_set)},
    }
    return Replica(cast("Pod", pod), name_of(stateful_set), ordinal, revision)


def is_made_at_current_revision(current_set: StatefulSet, ordinal: int) -> bool:
    """Return whether a pod is made at the current revision: below the partition; without a
    rollingUpdate block below the count of pods still at the current revision."""
    strategy = current_set["spec"].get("updateStrategy") or {}
    if strategy.get("rollingUpdate") is not None:
        return ordinal < start_ordinal(current_set) + partition(current_set)
    current = (current_set.get("status") or {}).get("currentReplicas", 0)
    if not is_rolling(current_set):
        return False
    return ordinal < start_ordinal(current_set) + current


def new_stateful_pod(stateful_set: StatefulSet, ordinal: int, revision: str) -> Pod:
    """Return the pod of the set at that revision (``newVersionedStatefulSetPod``)."""
    pod = pod_from_template(stateful_set, stateful_set["spec"]["template"])
    name = pod_name(stateful_set, ordinal)
    metadata = pod[
        "metadata"
    ]  # with the generateName of the template, though the pod has a name of its own
    labels = {
        **metadata.get("labels", {}),
        **identity_labels(name, ordinal),
        REVISION_LABEL: revision,
    }
    spec = cast(
        "PodSpec",
        {**pod["spec"], "hostname": name, "subdomain": stateful_set["spec"].get("serviceName", "")},
    )
    return cast(
        "Pod",
        {
            **pod,
            "metadata": {
                **metadata,
                "name": name,
                "namespace": stateful_set["metadata"]["namespace"],
                "labels": labels,
            },
            "spec": with_storage(stateful_set, spec, ordinal),
        },
    )


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def with_storage(stateful_set: StatefulSet, spec: PodSpec, ordinal: int) -> PodSpec:
    """Return the pod spec with a volume for each claim template, in place of others of those names
    (``updateStorage``)."""
    volumes = [
        {
            "name": name_of(template),
            "persistentVolumeClaim": {"claimName": claim_name(stateful_set, template, ordinal)},
        }
        for template in stateful_set["spec"].get("volumeClaimTemplates") or []
    ]
    names = {volume["name"] for volume in volumes}
    others = [volume for volume in spec.get("volumes") or [] if volume["name"] not in names]
    if volumes or others:
        return cast("PodSpec", {**spec, "volumes": [*volumes, *others]})
    return spec


# --- identity and storage -------------------------------------------------------------------------


def storage_matches(stateful_set: StatefulSet, replica: Replica) -> bool:
    """Return whether the pod has a volume for each claim template (``storageMatches``)."""
    templates = stateful_set["spec"].get("volumeClaimTemplates")
    if not templates:
        return True
    return all(
        replica.claims.get(name_of(template)) == claim_name(stateful_set, template, replica.ordinal)
        for template in templates
    )


def with_identity_and_storage(stateful_set: StatefulSet, replica: Replica) -> Pod:
    """Return the pod with the name, the labels and the volumes that its ordinal must have
    (``UpdateStatefulPod``)."""
    pod = replica.pod
    ordinal = replica.ordinal
    metadata = pod["metadata"]
    spec = pod["spec"]
    if not replica.identity_matches:
        name = pod_name(
            stateful_set, ordinal
        )  # a pod named db-01 is not there under its right name, and fails there
        labels = {**labels_of(pod), **identity_labels(name, ordinal)}
        metadata = {**metadata, "name": name, "labels": labels}
    if not storage_matches(stateful_set, replica):
        spec = with_storage(stateful_set, spec, ordinal)
    return {**pod, "metadata": metadata, "spec": spec}
