"""What a Service is let through with, and warned of (``pkg/api/service/warnings.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.validation.formats import cidr_warnings, ip_warnings
from kubepy.apiserver.validation.services import TOPOLOGY_HINTS, TOPOLOGY_MODE


def service_warnings(service: Object) -> list[str]:
    spec = service["spec"]
    warnings = []
    external_ips, kind = spec.get("externalIPs") or [], spec.get("type")
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if TOPOLOGY_HINTS in annotations_of(service):
        warnings.append(f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
    if not headless and kind != "ExternalName":
        for index, ip in enumerate(spec.get("clusterIPs") or ()):
            warnings += ip_warnings(ip, f"spec.clusterIPs[{index}]")
    if headless:
        ignored = (("spec.loadBalancerIP", spec.get("loadBalancerIP")), ("spec.externalIPs", external_ips),
                   ("spec.SessionAffinity", spec.get("sessionAffinity") != "None"))
        warnings += [f"{field} is ignored for headless services" for field, given in ignored if given]
    for index, ip in enumerate(external_ips):
        warnings += ip_warnings(ip, f"spec.externalIPs[{index}]")
    if spec.get("loadBalancerIP"):
        warnings += ip_warnings(spec["loadBalancerIP"], "spec.loadBalancerIP")
    for index, network in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        warnings += cidr_warnings(network, f"spec.loadBalancerSourceRanges[{index}]")
    if external_ips and not headless and kind != "ExternalName":
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if kind == "ExternalName" and external_ips:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings
