"""The pods of a StatefulSet: ordinals, identity, health, and how a new one looks. Pure functions.

Upstream: ``stateful_set_utils.go``.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from kubepy.cluster.objects.meta import Object, is_being_deleted, labels_of, name_of
from kubepy.cluster.objects.pods import is_pod_available, is_pod_ready, phase_of
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


def parent_and_ordinal(pod: Object) -> tuple[str, int]:
    """The set that a pod's name belongs to, and its ordinal; ("", -1) for other names."""
    found = MEMBER.fullmatch(name_of(pod))
    if found is None or int(found[2]) >= 2**31:
        return "", -1
    return found[1], int(found[2])


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


def is_ordered(set_: Object) -> bool:
    """Whether pods come and go one after another (not ``Parallel``)."""
    return bool(set_["spec"].get("podManagementPolicy") != "Parallel")


def partition(set_: Object) -> int:
    return int((set_["spec"].get("updateStrategy", {}).get("rollingUpdate") or {}).get("partition", 0))


def is_rolling(set_: Object) -> bool:
    return bool(set_["spec"].get("updateStrategy", {}).get("type") == "RollingUpdate")


# --- health -------------------------------------------------------------------------------------------------------


def is_created(pod: Object) -> bool:
    return phase_of(pod) != ""


def is_running_and_ready(pod: Object) -> bool:
    return phase_of(pod) == "Running" and is_pod_ready(pod)


def is_healthy(pod: Object, set_: Object, now: datetime) -> bool:
    """Running, Ready, and available for long enough."""
    return is_running_and_ready(pod) and is_pod_available(pod, min_ready_seconds(set_), now)


def is_unavailable(pod: Object, set_: Object, now: datetime) -> bool:
    return not is_pod_available(pod, min_ready_seconds(set_), now) or is_being_deleted(pod)


def min_ready_seconds(set_: Object) -> int:
    return int(set_["spec"].get("minReadySeconds", 0))


def revision_name_of(pod: Object) -> str:
    return labels_of(pod).get(REVISION_LABEL, "")


# --- new pods -----------------------------------------------------------------------------------------------------


def new_member(versions: Versions, ordinal: int) -> Object:
    """The pod to make for an ordinal, at the current or the update revision (``newVersionedStatefulSetPod``)."""
    if _is_at_current_revision(versions.current_set, ordinal):
        return _new_pod(versions.current_set, ordinal, versions.current)
    return _new_pod(versions.update_set, ordinal, versions.update)


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
    """The pod with the labels and volumes that a member must have."""
    ordinal = ordinal_of(pod)
    labels = {**labels_of(pod), **identity_labels(pod_name(set_, ordinal), ordinal)}
    spec = pod["spec"] if storage_matches(set_, pod) else with_claims(set_, pod["spec"], ordinal)
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}
