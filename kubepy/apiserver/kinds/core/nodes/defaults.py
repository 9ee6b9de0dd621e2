"""Defaults of Nodes (``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.defaults import round_up_all

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
    spec = node.setdefault("spec", {})
    status = node.setdefault("status", {})
    for field in ("capacity", "allocatable"):
        round_up_all(status.get(field))
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    if not status.get("daemonEndpoints"):
        status["daemonEndpoints"] = {key: dict(value) for key, value in DAEMON_ENDPOINTS.items()}
    if not status.get("nodeInfo"):
        status["nodeInfo"] = dict.fromkeys(NODE_INFO, "")

    first = spec.get("podCIDR")
    networks = nested_list(spec, "podCIDRs")
    if first and (
        not networks or networks[0] != first
    ):  # where they disagree, podCIDR alone counts
        spec["podCIDRs"] = [first]
    elif networks:
        spec["podCIDR"] = networks[0]
