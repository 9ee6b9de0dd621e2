"""The pods of a StatefulSet: ordinals, identity, health, and how a new one looks. Pure functions.

Upstream: ``stateful_set_utils.go``.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import later
from kubepy.api.meta import Object, is_being_deleted, labels_of, name_of, namespace_of
from kubepy.api.objects.pods import TERMINAL_PHASES, is_pod_ready, phase_of, pod_ready_time
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.pod_control import pod_from_template
from kubepy.controllers.statefulset.claims import claim_name

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"
MEMBER = re.compile(r"(.*)-([0-9]+)")


class Versions(NamedTuple):
    """The set as it was at its current revision and as it is at the update revision, and those revisions' names."""

    current_set: Object
    update_set: Object
    current: str
    update: str


class Member(NamedTuple):
    """A pod of the set, or the place of one that is still to be made, and what the set goes by in it."""

    pod: Object  # of a place only the name
    ordinal: int  # -1: too large a number to be one
    revision: str  # that it is at, or is to be made at
    phase: str = ""
    is_leaving: bool = False  # being deleted
    is_ready: bool = False
    ready_since: datetime | None = None
    fits: bool = True  # its name, labels and volumes are as the set wants them

    @property
    def is_created(self) -> bool:
        return self.phase != ""

    @property
    def has_ended(self) -> bool:
        return self.phase in TERMINAL_PHASES

    @property
    def is_running_and_ready(self) -> bool:
        return self.is_ready and self.phase == "Running"

    def is_available(self, seconds: int, now: datetime) -> bool:
        """Whether it has been ready for so long (``IsPodAvailable``)."""
        if not self.is_ready or not seconds:
            return self.is_ready
        return self.ready_since is not None and later(self.ready_since, seconds) <= now


def read_member(set_: Object, pod: Object) -> Member:
    return Member(
        pod, ordinal_of(pod), labels_of(pod).get(REVISION_LABEL, ""), phase_of(pod), is_being_deleted(pod),
        is_pod_ready(pod), pod_ready_time(pod), identity_matches(set_, pod) and storage_matches(set_, pod))


def parent_and_ordinal(pod: Object) -> tuple[str, int]:
    """The set that a pod's name belongs to, and its ordinal, or -1; ("", -1) for other names."""
    found = MEMBER.fullmatch(name_of(pod))
    if found is None:
        return "", -1
    ordinal = int_or_none(found[2], 32)
    return found[1], -1 if ordinal is None else ordinal


def ordinal_of(pod: Object) -> int:
    return parent_and_ordinal(pod)[1]


def is_member_of(set_: Object, pod: Object) -> bool:
    return parent_and_ordinal(pod)[0] == name_of(set_)


def start_ordinal(set_: Object) -> int:
    return int((set_["spec"].get("ordinals") or {}).get("start", 0))


def ordinals(set_: Object) -> range:
    """The ordinals that the set is to have."""
    start = start_ordinal(set_)
    return range(start, start + set_["spec"].get("replicas", 1))


def pod_name(set_: Object, ordinal: int) -> str:
    return f"{name_of(set_)}-{ordinal}"


def min_ready_seconds(set_: Object) -> int:
    return int(set_["spec"].get("minReadySeconds", 0))


def is_ordered(set_: Object) -> bool:
    """Whether pods come and go one after another (not ``Parallel``)."""
    return bool(set_["spec"].get("podManagementPolicy") != "Parallel")


def partition(set_: Object) -> int:
    return int((set_["spec"].get("updateStrategy", {}).get("rollingUpdate") or {}).get("partition", 0))


def is_rolling(set_: Object) -> bool:
    return bool(set_["spec"].get("updateStrategy", {}).get("type") == "RollingUpdate")


# --- new pods -----------------------------------------------------------------------------------------------------


def vacancy(versions: Versions, ordinal: int) -> Member:
    """The place of a pod that is to be made, at the current or the update revision."""
    set_ = versions.current_set
    revision = versions.current if _is_at_current_revision(set_, ordinal) else versions.update
    named = {"name": pod_name(set_, ordinal), "namespace": namespace_of(set_)}
    return Member({"apiVersion": "v1", "kind": "Pod", "metadata": named}, ordinal, revision)


def new_pod(versions: Versions, place: Member) -> Object:
    """The pod to make for a place (``newVersionedStatefulSetPod``)."""
    at_current = place.revision == versions.current
    return _new_pod(versions.current_set if at_current else versions.update_set, place.ordinal, place.revision)


def _is_at_current_revision(set_: Object, ordinal: int) -> bool:
    """Below the partition; without a rollingUpdate block below the count of pods still at the current revision."""
    strategy = set_["spec"].get("updateStrategy", {})
    if strategy.get("rollingUpdate") is not None:
        return ordinal < start_ordinal(set_) + partition(set_)
    current = (set_.get("status") or {}).get("currentReplicas", 0)
    return is_rolling(set_) and ordinal < start_ordinal(set_) + current


def _new_pod(set_: Object, ordinal: int, revision: str) -> Object:
    pod = pod_from_template(set_, set_["spec"]["template"])
    name = pod_name(set_, ordinal)
    metadata = pod["metadata"]  # with the generateName of the template, though the pod has a name of its own
    labels = {**metadata.get("labels", {}), **identity_labels(name, ordinal), REVISION_LABEL: revision}
    spec = {**pod["spec"], "hostname": name, "subdomain": set_["spec"].get("serviceName", "")}
    return {**pod, "metadata": {**metadata, "name": name, "namespace": set_["metadata"]["namespace"],
                                "labels": labels},
            "spec": with_claims(set_, spec, ordinal)}


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def with_claims(set_: Object, spec: Object, ordinal: int) -> Object:
    """The pod spec with a volume for each claim template, in place of others of those names (``updateStorage``)."""
    templates = set_["spec"].get("volumeClaimTemplates") or []
    volumes = [{"name": name_of(one), "persistentVolumeClaim": {"claimName": claim_name(set_, one, ordinal)}}
               for one in templates]
    named = {volume["name"] for volume in volumes}
    volumes += [volume for volume in spec.get("volumes") or [] if volume["name"] not in named]
    return {**spec, "volumes": volumes} if volumes else spec


# --- identity and storage -----------------------------------------------------------------------------------------


def identity_matches(set_: Object, pod: Object) -> bool:
    parent, ordinal = parent_and_ordinal(pod)
    return (ordinal >= 0 and parent == name_of(set_) and pod_name(set_, ordinal) == name_of(pod)
            and labels_of(pod).get(POD_NAME_LABEL) == name_of(pod))


def storage_matches(set_: Object, pod: Object) -> bool:
    claims = {volume["name"]: (volume.get("persistentVolumeClaim") or {}).get("claimName")
              for volume in pod["spec"].get("volumes") or []}
    return all(claims.get(name_of(one)) == claim_name(set_, one, ordinal_of(pod))
               for one in set_["spec"].get("volumeClaimTemplates") or [])


def repaired(set_: Object, pod: Object) -> Object:
    """The pod with the name, the labels and the volumes that a member must have (``UpdateStatefulPod``)."""
    ordinal, metadata, spec = ordinal_of(pod), pod["metadata"], pod["spec"]
    if not identity_matches(set_, pod):
        name = pod_name(set_, ordinal)  # a pod named db-01 is not there under its right name, and fails there
        metadata = {**metadata, "name": name, "labels": {**labels_of(pod), **identity_labels(name, ordinal)}}
    if not storage_matches(set_, pod):
        spec = with_claims(set_, spec, ordinal)
    return {**pod, "metadata": metadata, "spec": spec}
