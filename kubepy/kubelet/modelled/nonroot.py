"""Containers that must not run as root, and would (``verifyRunAsNonRoot`` in
``pkg/kubelet/kuberuntime``). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubepy.api.meta import name_of, namespace_of, nested_map, uid_of
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod
    from kubepy.kubelet.behaviours import Behaviour

ROOT = ("root", "0")


def root_problem(pod: Pod, container: Container, behaviour: Behaviour) -> str:
    """Return why a container cannot be created as its security context demands; "" where it can, or
    where the user of its image is not known."""
    if not _security_field(pod, container, "runAsNonRoot"):
        return ""
    place = f"(pod: {quote(_described(pod))}, container: {container['name']})"
    user = _security_field(pod, container, "runAsUser")
    if user is not None:
        if int(user) == 0:
            return f"container's runAsUser breaks non-root policy {place}"
        return ""
    if behaviour.user is None:
        return ""
    image_user = behaviour.user.partition(":")[0]
    if image_user in ROOT:
        return f"container has runAsNonRoot and image will run as root {place}"
    if image_user.isdigit():
        return ""
    return (
        f"container has runAsNonRoot and image has non-numeric user ({image_user}), "
        f"cannot verify user is non-root {place}"
    )


def _security_field(pod: Pod, container: Container, field: str) -> Any:
    """Return a field of the security context of a container, or else of its pod."""
    for holder in (container, pod["spec"]):
        value = nested_map(holder, "securityContext").get(field)
        if value is not None:
            return value
    return None


def _described(pod: Pod) -> str:
    """Return what the kubelet calls a pod (``format.Pod``)."""
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
