"""Objects as a control plane stores them: in which version, and in protobuf.

Nearly every kind is stored in the version that kubepy knows. Upstream: the overrides in
``pkg/kubeapiserver/default_storage_factory_builder.go``, and the codec that
``pkg/controlplane/apiserver/apiextensions.go`` chooses.
"""

from __future__ import annotations

from kubepy.api.meta import AnyObject, Object
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import protobuf
    from kubepy.api.objects import autoscalers, definitions
    from kubepy.api.types import table

_ADMISSION = "admissionregistration.k8s.io"
_DEFINITION = "CustomResourceDefinition"
_STATEFUL_SET = "StatefulSet"
_AUTOSCALER = "HorizontalPodAutoscaler"
_CLAIM = "PersistentVolumeClaim"
_JOB = "Job"

# The kinds that v1.36 still stores in an older version; the fields are the same.
_OLDER = {
    "MutatingAdmissionPolicy": f"{_ADMISSION}/v1beta1",
    "MutatingAdmissionPolicyBinding": f"{_ADMISSION}/v1beta1",
}

# Older versions in which objects may still be stored that no server has written since, with the
# fields of v1: groups, versions, kinds.
_SAME_FIELDS = {
    f"{_ADMISSION}/v1alpha1": (*_OLDER,),
    f"{_ADMISSION}/v1beta1": (
        *_OLDER,
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
    "flowcontrol.apiserver.k8s.io/v1beta3": ("FlowSchema",),
    "networking.k8s.io/v1beta1": ("IPAddress", "ServiceCIDR"),
    "resource.k8s.io/v1beta2": (
        "DeviceClass",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
    ),
    "storage.k8s.io/v1beta1": ("CSIStorageCapacity", "VolumeAttributesClass"),
}

# The resources whose objects a control plane stores in another version than kubepy.
CONVERTED = frozenset(
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        f"mutatingadmissionpolicies.{_ADMISSION}",
        f"mutatingadmissionpolicybindings.{_ADMISSION}",
    )
)


def to_stored(obj: AnyObject) -> Object:
    """Return an object in the version in which a control plane stores it."""
    kind = obj["kind"]
    if kind == _DEFINITION and obj["apiVersion"] == definitions.V1:
        return definitions.to_v1beta1(obj)
    version = _OLDER.get(kind)
    if version is not None and obj["apiVersion"] == f"{_ADMISSION}/v1":
        return {**obj, "apiVersion": version}
    return dict(obj)


def from_stored(obj: AnyObject) -> Object:
    """Return a stored object in the version that kubepy has.

    Raises ValueError for a built-in kind in a version that it does not read.
    """
    api_version, kind = obj["apiVersion"], obj["kind"]
    if api_version == definitions.V1BETA1 and kind == _DEFINITION:
        return definitions.from_v1beta1(obj)
    if api_version == autoscalers.V1 and kind == _AUTOSCALER:
        return autoscalers.to_v2(obj)
    read = {**obj, "apiVersion": _read_version(api_version, kind)}
    if kind == _STATEFUL_SET and read["apiVersion"] == "apps/v1":
        _name_claims(read)
    elif kind == _CLAIM and read["apiVersion"] == "v1":
        _default_phase(read)
    elif kind == _JOB and read["apiVersion"] == "batch/v1":
        _default_labels(read)
    return read


def _default_phase(claim: Object) -> None:
    """Give a claim the phase that a control plane does not store: it sets the default of a new
    claim whenever it reads it (``SetDefaults_PersistentVolumeClaim``)."""
    status = claim.get("status") or {}
    if not status.get("phase"):
        claim["status"] = {**status, "phase": "Pending"}


def _default_labels(job: Object) -> None:
    """Give a Job without labels those of its template, which get there after its defaults were set
    when it was made, and before they are set when it is read (``SetDefaults_Job``)."""
    labels = (job["spec"].get("template", {}).get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"] = {**job["metadata"], "labels": labels}


def _name_claims(stateful_set: Object) -> None:
    """Give the claims of a StatefulSet the apiVersion and kind that protobuf does not hold."""
    spec = stateful_set["spec"]
    if claims := spec.get("volumeClaimTemplates"):
        names = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        stateful_set["spec"] = {
            **spec,
            "volumeClaimTemplates": [{**claim, **names} for claim in claims],
        }


def _read_version(api_version: str, kind: str) -> str:
    """Return the version whose fields a stored object has, by the name that kubepy knows."""
    group, _, _ = api_version.rpartition("/")
    if kind in _SAME_FIELDS.get(api_version, ()):
        return f"{group}/v1"
    if table.package_of(api_version) is None and table.package_of(f"{group}/v1") is not None:
        raise ValueError(f"{kind} in {api_version} is not read")
    return api_version


def to_protobuf(obj: AnyObject) -> bytes | None:
    """Return the bytes of an object that :func:`to_stored` has given; None for a kind that has no
    protobuf, which is stored as JSON: custom resources."""
    api_version = obj["apiVersion"]
    known = {**obj, "apiVersion": _read_version(api_version, obj["kind"])}
    if not protobuf.has_message(known["apiVersion"], known["kind"]):
        return None
    return protobuf.encode(known, api_version)


def from_protobuf(data: bytes) -> Object:
    """Return the object of bytes that begin with ``k8s\\0``, in the version in which it is stored.

    Raises ValueError.
    """
    return protobuf.decode(data, fields_version=_read_version)
