"""Defaults of Services, nodes, volumes, claims, storage classes and limit ranges
(``core/v1/defaults.go``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.meta import Object
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import quantity


def fill(target: Object, defaults: Mapping[str, object]) -> None:
    """Set fields that are absent or zero values."""
    for key, value in defaults.items():
        if not target.get(key):
            target[key] = value


def round_up_all(amounts: Object | None) -> None:
    """Round amounts up to thousandths (``SetDefaults_ResourceList``).

    They are canonical already, so only amounts in ``n`` and ``u`` can be finer than that.
    """
    for name, amount in (amounts or {}).items():
        if amount[-1:] in ("n", "u"):
            parsed = quantity.Quantity.parse(amount)
            amounts[name] = str(quantity.Quantity.of_milli(parsed.milli_value(), parsed.format))  # type: ignore[index]


# --- limit ranges ---------------------------------------------------------------------------------


def default_limit_range(limit_range: Object) -> None:
    """Take a container's default limit from its max, and its default request from that or from
    min."""
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            round_up_all(item.get(field))
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        for field, amounts in (("default", limits), ("defaultRequest", requests)):
            if amounts:
                item[field] = amounts


# --- nodes ----------------------------------------------------------------------------------------


# The parts of a node's status that Go writes out even when nothing is in them.
DAEMON_ENDPOINTS = {"kubeletEndpoint": {"Port": 0}}
NODE_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)


def default_node(node: Object) -> None:
    spec, status = node.setdefault("spec", {}), node.setdefault("status", {})
    for field in ("capacity", "allocatable"):
        round_up_all(status.get(field))
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    if not status.get("daemonEndpoints"):
        status["daemonEndpoints"] = {key: dict(value) for key, value in DAEMON_ENDPOINTS.items()}
    if not status.get("nodeInfo"):
        status["nodeInfo"] = dict.fromkeys(NODE_INFO, "")
    first, networks = spec.get("podCIDR"), spec.get("podCIDRs") or []
    if first and (
        not networks or networks[0] != first
    ):  # where they disagree, podCIDR alone counts
        spec["podCIDRs"] = [first]
    elif networks:
        spec["podCIDR"] = networks[0]


# --- Services -------------------------------------------------------------------------------------


THREE_HOURS = 10800


def default_service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    _default_affinity(spec)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if is_externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in ((service.get("status") or {}).get("loadBalancer") or {}).get(
            "ingress"
        ) or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def _default_affinity(spec: Object) -> None:
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": THREE_HOURS}}


def is_externally_accessible(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )


# --- volumes, claims and storage classes ----------------------------------------------------------


def default_claim(claim: Object) -> None:
    default_claim_spec(claim.setdefault("spec", {}))
    status = claim.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    round_up_all(status.get("capacity"))


def default_claim_spec(spec: Object) -> None:
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.setdefault("resources", {})
    round_up_all(resources.get("limits"))
    round_up_all(resources.get("requests"))


def default_volume_object(volume: Object) -> None:
    """Set the defaults of a PersistentVolume."""
    spec, status = volume.setdefault("spec", {}), volume.setdefault("status", {})
    fill(status, {"phase": "Pending"})
    fill(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    spec.setdefault("volumeMode", "Filesystem")
    round_up_all(spec.get("capacity"))
    for kind in SOURCES:
        if spec.get(kind) is not None:
            default_source(kind, spec[kind])


# The sources of volumes that a PersistentVolume and a volume of a pod have in common.
SOURCES: dict[str, dict[str, object]] = {
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_POINTERS = ("azureDisk", "hostPath")  # their fields are pointers in Go: an empty one is set


def default_source(kind: str, source: Object) -> None:
    """Set the defaults of a volume's source."""
    if kind not in _POINTERS:
        fill(source, SOURCES[kind])
        return
    for field, value in SOURCES[kind].items():
        if source.get(field) is None:
            source[field] = value


def default_storage_class(storage_class: Object) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")
