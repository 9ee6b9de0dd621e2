"""Defaults of Services (``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, nested_list, nested_map

THREE_HOURS = 10800


def default_service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    _default_affinity(spec)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"

    for port in nested_list(spec, "ports"):
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
        for ingress in nested_list(service, "status", "loadBalancer", "ingress"):
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def _default_affinity(spec: Object) -> None:
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = nested_map(spec, "sessionAffinityConfig", "clientIP")
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": THREE_HOURS}}


def is_externally_accessible(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )
