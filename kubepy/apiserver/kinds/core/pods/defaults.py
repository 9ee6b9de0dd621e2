"""Defaults of pods and pod templates (``SetDefaults_Pod``, ``SetDefaults_PodSpec``,
``core/v1/defaults.go``)."""

from __future__ import annotations

import re
from functools import lru_cache

from kubepy.api.meta import Object
from kubepy.api.objects.pods import CONTAINER_LISTS, aggregate
from kubepy.apiserver.defaults import fill, round_up_all
from kubepy.apiserver.kinds.core.persistentvolumeclaims.defaults import default_claim_spec
from kubepy.apiserver.kinds.core.volumesources.defaults import SOURCES, default_source

FILE_MODE = 0o644
HOUR = 3600
HTTP_GET = {"path": "/", "scheme": "HTTP"}
PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
POD_SPEC = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
}
CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
INIT_ANNOTATIONS = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{suffix}"
    for stage in ("alpha", "beta")
    for suffix in ("s", "-statuses")
)
WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def default_pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    _drop_init_annotations(pod["metadata"])
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources") or {}
            if resources.get("limits") is not None:  # in a pod only, never in a template
                resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}

    if spec.get("resources") is not None:
        default_pod_resources(spec)
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _default_host_ports(spec)


def _default_host_ports(spec: Object) -> None:
    """Give the ports of a pod in the host's network the same numbers there."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def default_pod_template(template: Object) -> None:
    _drop_init_annotations(template.setdefault("metadata", {}))
    default_pod_spec(template.setdefault("spec", {}))


def _drop_init_annotations(metadata: Object) -> None:
    """Drop the alpha and beta annotations of init containers (``dropInitContainerAnnotations``)."""
    annotations = metadata.get("annotations")
    if not annotations or not INIT_ANNOTATIONS & annotations.keys():
        return
    metadata["annotations"] = {
        key: value for key, value in annotations.items() if key not in INIT_ANNOTATIONS
    }
    if not metadata["annotations"]:
        del metadata["annotations"]


def default_pod_spec(spec: Object) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # one field, kept under both its names
        spec["serviceAccountName"] = account
        spec["serviceAccount"] = account
    fill(spec, POD_SPEC)
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for field in CONTAINER_LISTS:
        for container in spec.get(field) or ():
            default_container(container)
    round_up_all(spec.get("overhead"))


# --- containers -----------------------------------------------------------------------------------


def default_container(container: Object) -> None:
    fill(container, CONTAINER)
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    resources = container.setdefault("resources", {})
    if resources:
        round_up_all(resources.get("limits"))
        round_up_all(resources.get("requests"))
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"

    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        _default_field_reference(source)
        if source.get("fileKeyRef") is not None:
            source["fileKeyRef"].setdefault("optional", False)

    for kind in PROBES:
        probe = container.get(kind)
        if probe is not None:
            _default_probe(probe)

    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict) and handler.get("httpGet") is not None:
            fill(handler["httpGet"], HTTP_GET)


def _default_probe(probe: Object) -> None:
    fill(probe, PROBE)
    if probe.get("httpGet") is not None:
        fill(probe["httpGet"], HTTP_GET)
    if probe.get("grpc") is not None and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _default_field_reference(holder: Object | None) -> None:
    reference = (holder or {}).get("fieldRef")
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


# --- volumes --------------------------------------------------------------------------------------


def default_volume(volume: Object) -> None:
    if not any(key != "name" and source is not None for key, source in volume.items()):
        volume["emptyDir"] = {}
    for kind, source in volume.items():
        if source is None:
            continue
        if kind in WITH_MODE:
            _default_mode(kind, source)
        elif kind in SOURCES:
            default_source(kind, source)
        elif kind == "image" and not source.get("pullPolicy"):
            source["pullPolicy"] = pull_policy(source.get("reference", ""))
        elif kind == "ephemeral" and source.get("volumeClaimTemplate") is not None:
            default_claim_spec(source["volumeClaimTemplate"].setdefault("spec", {}))


def _default_mode(kind: str, source: Object) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = FILE_MODE
    if kind == "downwardAPI":
        _default_downward_items(source)
    for projection in source.get("sources") or ():
        _default_downward_items(projection.get("downwardAPI"))
        token = projection.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = HOUR


def _default_downward_items(source: Object | None) -> None:
    for item in (source or {}).get("items") or ():
        _default_field_reference(item)


# --- resources of the pod as a whole --------------------------------------------------------------


HUGE_PAGES = "hugepages-"


def default_pod_resources(spec: Object) -> None:
    resources = spec["resources"]
    limits = dict(resources.get("limits") or {})
    requests = dict(resources.get("requests") or {})
    if limits or requests:
        for name, total in aggregate(spec, "limits").items():
            if name.startswith(HUGE_PAGES) and name not in requests:
                limits.setdefault(name, str(total))

    if limits:
        for name, total in aggregate(spec, "requests").items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, str(total))
        for name in limits:
            if name in ("cpu", "memory") or name.startswith(HUGE_PAGES):
                requests.setdefault(name, limits[name])

    for field, amounts in (("limits", limits), ("requests", requests)):
        if amounts:
            resources[field] = amounts


# --- images ---------------------------------------------------------------------------------------


_LABEL = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = (
    rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_PART}(?:/{_PART})*)"
    rf"(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?"
)
_IDENTIFIER = "[a-f0-9]{64}"  # an image id is no name


@lru_cache(maxsize=1024)
def image_tag(image: str) -> str:
    """Return the tag of an image; ``latest`` without tag and digest; "" for a digest alone or an
    invalid name."""
    match = re.fullmatch(_IMAGE, image, re.ASCII)  # re keeps the compiled pattern
    if match is None or re.fullmatch(_IDENTIFIER, image):
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def pull_policy(image: str) -> str:
    if image_tag(image) == "latest":
        return "Always"
    return "IfNotPresent"
