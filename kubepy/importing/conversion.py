"""Objects in API versions that v1.36 does not serve any more, in the version that it has.

Converted are the versions that Kubernetes itself has converted: sources of v1.16 and later hold
them. Upstream: ``pkg/apis/*/v1beta1/conversion.go`` of the releases that had them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kubepy.api.meta import Object, annotations_of, nested_list, nested_map, spec_of, status_of
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.objects import autoscalers, definitions
    from kubepy.api.values import goformat

_APPS = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "ControllerRevision")
_STORAGE = ("StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "CSIStorageCapacity")
_RBAC = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_NETWORKING = "networking.k8s.io"
# Versions whose fields are those of another version, with their kinds.
_SAME_FIELDS: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"), "apps/v1", _APPS),
    (("extensions/v1beta1",), f"{_NETWORKING}/v1", ("NetworkPolicy",)),
    (("batch/v1beta1", "batch/v2alpha1"), "batch/v1", ("CronJob",)),
    (("storage.k8s.io/v1beta1", "storage.k8s.io/v1alpha1"), "storage.k8s.io/v1", _STORAGE),
    (
        ("rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1"),
        "rbac.authorization.k8s.io/v1",
        _RBAC,
    ),
    (
        ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha1"),
        "scheduling.k8s.io/v1",
        ("PriorityClass",),
    ),
    (("coordination.k8s.io/v1beta1",), "coordination.k8s.io/v1", ("Lease",)),
    (("node.k8s.io/v1beta1",), "node.k8s.io/v1", ("RuntimeClass",)),
    (("autoscaling/v2beta2",), "autoscaling/v2", ("HorizontalPodAutoscaler",)),
    (
        tuple(f"flowcontrol.apiserver.k8s.io/v1beta{number}" for number in (1, 2, 3)),
        "flowcontrol.apiserver.k8s.io/v1",
        ("FlowSchema", "PriorityLevelConfiguration"),
    ),
    (("apiregistration.k8s.io/v1beta1",), "apiregistration.k8s.io/v1", ("APIService",)),
    (
        ("admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1alpha1"),
        "admissionregistration.k8s.io/v1",
        _POLICIES,
    ),
    (
        (f"{_NETWORKING}/v1beta1",),
        f"{_NETWORKING}/v1",
        ("IngressClass", "IPAddress", "ServiceCIDR"),
    ),
    (("events.k8s.io/v1beta1",), "events.k8s.io/v1", ("Event",)),
)
# The selector of policy/v1 that matches no pod, as the empty one of v1beta1 does.
_NO_PODS = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"

Convert = Callable[[Object], Object]


def converted(obj: Object) -> Object | None:
    """Return an object in the version that v1.36 has; None where there is no conversion.

    :param obj: of a version that is not served.
    """
    convert = _CONVERSIONS.get((obj["apiVersion"], obj["kind"]))
    if convert is None:
        return None
    return convert(obj)


def _renamed(api_version: str) -> Convert:
    return lambda obj: {**obj, "apiVersion": api_version}


def _workload(obj: Object) -> Object:
    """Convert a workload of the first versions: their selector, where it is left out, is the labels
    of the template."""
    spec = dict(spec_of(obj))
    labels = nested_map(
        spec,
        "template",
        "metadata",
        "labels",
    )
    if "template" in spec and not spec.get("selector") and labels:
        spec["selector"] = {"matchLabels": labels}
    for field in ("rollbackTo", "templateGeneration"):
        spec.pop(field, None)
    rest = {**obj, "apiVersion": "apps/v1"}
    if spec:
        rest["spec"] = spec
    return rest


def _ingress(obj: Object) -> Object:
    spec = dict(spec_of(obj))
    backend = spec.pop("backend", None)
    if backend is not None:
        spec["defaultBackend"] = _ingress_backend(backend)
    if spec.get("rules"):
        spec["rules"] = [_ingress_rule(rule) for rule in spec["rules"]]
    return {**obj, "apiVersion": f"{_NETWORKING}/v1", "spec": spec}


def _ingress_rule(rule: Object) -> Object:
    paths = nested_list(rule, "http", "paths")
    if not paths:
        return rule
    kept = [
        {
            "pathType": "ImplementationSpecific",
            **path,
            "backend": _ingress_backend(path.get("backend") or {}),
        }
        for path in paths
    ]
    return {**rule, "http": {**rule["http"], "paths": kept}}


def _ingress_backend(backend: Object) -> Object:
    if "serviceName" not in backend:
        return backend
    port = backend.get("servicePort")
    field = "number" if isinstance(port, int) else "name"
    return {"service": {"name": backend["serviceName"], "port": {field: port}}}


def _budget(obj: Object) -> Object:
    spec = dict(spec_of(obj))
    if spec.get("selector") == {}:
        nothing = {"key": _NO_PODS, "operator": "Exists"}
        spec["selector"] = {"matchExpressions": [nothing]}
    return {**obj, "apiVersion": "policy/v1", "spec": spec}


def _autoscaler_v1(obj: Object) -> Object:
    """Convert an autoscaler with its status; of its metrics only cpu stands there."""
    after = autoscalers.to_v2(obj)
    status = dict(status_of(obj))
    current: list[Any] = []
    utilization = status.pop("currentCPUUtilizationPercentage", None)
    if utilization is not None:
        value = {"averageUtilization": utilization, "averageValue": "0"}
        current.append({"type": "Resource", "resource": {"name": "cpu", "current": value}})
    if current:
        status["currentMetrics"] = current
    conditions = _json_annotation(obj, autoscalers.CONDITIONS)
    if conditions:
        status["conditions"] = conditions
    return {**after, "status": status} if status else after


def _json_annotation(obj: Object, name: str) -> Any:
    import json

    try:
        return json.loads(annotations_of(obj).get(name) or "null")
    except ValueError:
        return None


def _autoscaler_v2beta1(obj: Object) -> Object:
    """Convert an autoscaler whose metrics are as the annotations of v1 have them."""
    spec = dict(spec_of(obj))
    metrics = spec.pop("metrics", None) or []
    annotations = {**annotations_of(obj), autoscalers.METRICS: goformat.to_json(metrics)}
    metadata = {**obj["metadata"], "annotations": annotations}
    after = autoscalers.to_v2({**obj, "metadata": metadata, "spec": spec})
    status = dict(status_of(obj))
    status.pop("currentMetrics", None)
    return {**after, "status": status} if status else after


def _endpoint_slice(obj: Object) -> Object:
    endpoints = [_endpoint(endpoint) for endpoint in obj.get("endpoints") or ()]
    return {**obj, "apiVersion": "discovery.k8s.io/v1", "endpoints": endpoints}


def _endpoint(endpoint: Object) -> Object:
    """Convert an endpoint, whose node and zone were entries of its topology."""
    after = {name: value for name, value in endpoint.items() if name != "topology"}
    topology = dict(endpoint.get("topology") or {})
    node = topology.pop("kubernetes.io/hostname", None)
    zone = topology.pop("topology.kubernetes.io/zone", None)
    topology.pop("topology.kubernetes.io/region", None)
    if node:
        after.setdefault("nodeName", node)
    if zone:
        after.setdefault("zone", zone)
    if topology:
        after.setdefault("deprecatedTopology", topology)
    return after


def _webhooks(obj: Object) -> Object:
    """Convert webhooks with the defaults that their first version had."""
    defaults = {
        "admissionReviewVersions": ["v1beta1"],
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "sideEffects": "Unknown",
        "timeoutSeconds": 30,
    }
    webhooks = [{**defaults, **webhook} for webhook in obj.get("webhooks") or ()]
    return {**obj, "apiVersion": "admissionregistration.k8s.io/v1", "webhooks": webhooks}


def _signing_request(obj: Object) -> Object:
    spec = {"signerName": _LEGACY_SIGNER, **spec_of(obj)}
    return {**obj, "apiVersion": "certificates.k8s.io/v1", "spec": spec}


def _bindings_v1alpha1(obj: Object) -> Object:
    """Convert a binding whose subjects name the API version of their kind."""
    subjects = []
    for subject in obj.get("subjects") or ():
        group = (subject.get("apiVersion") or "").rpartition("/")[0]
        after = {name: value for name, value in subject.items() if name != "apiVersion"}
        if group:
            after["apiGroup"] = group
        subjects.append(after)
    after = {**obj, "apiVersion": "rbac.authorization.k8s.io/v1"}
    if subjects:
        after["subjects"] = subjects
    return after


def _all_conversions() -> Mapping[tuple[str, str], Convert]:
    conversions: dict[tuple[str, str], Convert] = {}
    for older, version, kinds in _SAME_FIELDS:
        for api_version in older:
            for kind in kinds:
                conversions[api_version, kind] = _renamed(version)
    for api_version in ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"):
        for kind in _APPS[:4]:
            conversions[api_version, kind] = _workload
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        conversions["rbac.authorization.k8s.io/v1alpha1", kind] = _bindings_v1alpha1
    for kind in _WEBHOOKS:
        conversions["admissionregistration.k8s.io/v1beta1", kind] = _webhooks
    autoscaler = "HorizontalPodAutoscaler"
    conversions |= {
        ("extensions/v1beta1", "Ingress"): _ingress,
        (f"{_NETWORKING}/v1beta1", "Ingress"): _ingress,
        ("policy/v1beta1", "PodDisruptionBudget"): _budget,
        ("autoscaling/v1", autoscaler): _autoscaler_v1,
        ("autoscaling/v2beta1", autoscaler): _autoscaler_v2beta1,
        ("discovery.k8s.io/v1beta1", "EndpointSlice"): _endpoint_slice,
        ("certificates.k8s.io/v1beta1", "CertificateSigningRequest"): _signing_request,
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"): lambda obj: (
            definitions.from_v1beta1(obj)
        ),
    }
    return MappingProxyType(conversions)


_CONVERSIONS = _all_conversions()
