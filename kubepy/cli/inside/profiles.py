"""The profiles of ``kubepy debug``: what a debugging container may do.

Upstream: ``kubectl/pkg/cmd/debug/profiles.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.inside.pods import find_container

EPHEMERAL, COPY, NODE = "ephemeral", "copy", "node"
LEGACY = "legacy"
HOST_VOLUME = "host-root"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


class Kept(NamedTuple):
    """The parts of a pod that its copy keeps."""

    labels: bool = False
    annotations: bool = False
    liveness: bool = False
    readiness: bool = False
    startup: bool = False
    init_containers: bool = True


def _debugged(pod: Object, name: str) -> Object:
    container = find_container(pod, name)
    assert container is not None
    return container


def _security(container: Object) -> Object:
    context: Object = container.setdefault("securityContext", {})
    return context


def _add_capabilities(container: Object, *names: str) -> None:
    capabilities: Object = _security(container).setdefault("capabilities", {})
    capabilities.setdefault("add", []).extend(names)


def _mount_root(pod: Object, container: Object) -> None:
    """Mount the node's root at /host."""
    volume = {"name": HOST_VOLUME, "hostPath": {"path": "/"}}
    mount = {"name": HOST_VOLUME, "mountPath": "/host"}
    pod["spec"].setdefault("volumes", []).append(volume)
    container.setdefault("volumeMounts", []).append(mount)


def _use_host_namespaces(pod: Object) -> None:
    pod["spec"] |= {"hostNetwork": True, "hostPID": True, "hostIPC": True}


def _strip_copy(pod: Object, kept: Kept) -> None:
    """Remove from the copy of a pod what it does not keep, and let its containers see each other's
    processes."""
    metadata = pod["metadata"]
    spec = pod["spec"]
    if not kept.labels:
        metadata.pop("labels", None)
    if not kept.annotations:
        metadata.pop("annotations", None)
    keeps = (kept.liveness, kept.readiness, kept.startup)
    for container in spec["containers"]:
        for probe, is_kept in zip(_PROBES, keeps, strict=True):
            if not is_kept:
                container.pop(probe, None)
    if not kept.init_containers:
        spec.pop("initContainers", None)
    spec.setdefault("shareProcessNamespace", True)


def _legacy(pod: Object, container: Object, style: str) -> None:
    if style == NODE:
        _mount_root(pod, container)
        _use_host_namespaces(pod)
    elif style == COPY:
        pod["metadata"].pop("labels", None)


def _general(pod: Object, container: Object, style: str) -> None:
    if style == NODE:
        _mount_root(pod, container)
        container.pop("securityContext", None)
        _use_host_namespaces(pod)
    else:
        _add_capabilities(container, "SYS_PTRACE")


def _baseline(pod: Object, container: Object, style: str) -> None:
    container.pop("securityContext", None)


def _restricted(pod: Object, container: Object, style: str) -> None:
    container["securityContext"] = {
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _netadmin(pod: Object, container: Object, style: str) -> None:
    _add_capabilities(container, "NET_ADMIN", "NET_RAW")
    if style == NODE:
        _use_host_namespaces(pod)


def _sysadmin(pod: Object, container: Object, style: str) -> None:
    _security(container)["privileged"] = True
    if style == NODE:
        _use_host_namespaces(pod)
        _mount_root(pod, container)


PROFILES: dict[str, Callable[[Object, Object, str], None]] = {
    LEGACY: _legacy,
    "general": _general,
    "baseline": _baseline,
    "restricted": _restricted,
    "netadmin": _netadmin,
    "sysadmin": _sysadmin,
}


def require_profile(name: str) -> None:
    """Raise CliError for a profile that there is not."""
    if name not in PROFILES:
        raise CliError(f"unknown profile: {name}")


def apply_profile(profile: str, pod: Object, name: str, style: str, kept: Kept) -> None:
    """Give a container of a pod what a profile grants; the pod is changed."""
    if style == COPY and profile != LEGACY:
        _strip_copy(pod, kept)
    PROFILES[profile](pod, _debugged(pod, name), style)
