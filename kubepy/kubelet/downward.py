"""The downward API: what a pod can read about itself, in variables and files.

Upstream: ``pkg/fieldpath``, ``pkg/api/v1/resource/helpers.go``,
``podFieldSelectorRuntimeValue`` in ``pkg/kubelet/kubelet_pods.go``,
``pkg/kubelet/kubelet_resources.go``. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubepy.api.meta import (
    AnyObject,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    nested_map,
    uid_of,
)
from kubepy.api.values.names import qualified_name
from kubepy.api.values.quantity import Quantity
from kubepy.kubelet.nodes import internal_ip
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

DEFAULTED_RESOURCES = ("cpu", "memory", "ephemeral-storage")
POD_LEVEL_RESOURCES = ("cpu", "memory")
HUGE_PAGES = "hugepages-"
_ZERO = Quantity(0)
_ONE = Quantity.of(1)


class DownwardError(Exception):
    """A field that a pod cannot read, in the kubelet's words."""


# --- fields ---------------------------------------------------------------------------------------


def field_of_pod(pod: Pod, path: str) -> str:
    """Return the text of a field of a pod, as a volume shows it (``ExtractFieldPathAsString``).
    Raises DownwardError."""
    holder, key = _split_subscript(path)
    if key is not None:
        return _subscripted(
            pod,
            path,
            holder,
            key,
        )
    match path:
        case "metadata.annotations":
            return format_map(annotations_of(pod))
        case "metadata.labels":
            return format_map(labels_of(pod))
        case "metadata.name":
            return name_of(pod)
        case "metadata.namespace":
            return namespace_of(pod)
        case "metadata.uid":
            return uid_of(pod)
    raise DownwardError(f"unsupported fieldPath: {path}")


def field_for_variable(pod: Pod, node: Node, path: str) -> str:
    """Return the text of a field of a pod, as a variable shows it
    (``podFieldSelectorRuntimeValue``). Raises DownwardError."""
    spec = pod["spec"]
    match path:
        case "spec.nodeName" | "spec.host":
            return spec.get("nodeName") or ""
        case "spec.serviceAccountName":
            return spec.get("serviceAccountName") or "default"
        case "status.hostIP" | "status.hostIPs":
            return internal_ip(node)
        case "status.podIP":
            return _pod_ips(pod)[0]
        case "status.podIPs":
            return ",".join(_pod_ips(pod))
    return field_of_pod(pod, path)


def format_map(texts: Mapping[str, str]) -> str:
    """Return labels or annotations as lines of ``key="value"``, sorted (``FormatMap``)."""
    lines = []
    for key in sorted(texts):
        value = quote(texts[key])
        lines.append(f"{key}={value}")
    return "\n".join(lines)


def _pod_ips(pod: Pod) -> list[str]:
    """Return the addresses of a pod; an empty text where it has none yet."""
    status = pod.get("status") or {}
    addresses = status.get("podIPs")
    if addresses:
        return [address["ip"] for address in addresses]
    address = status.get("podIP")
    return [address or ""]


def _split_subscript(path: str) -> tuple[str, str | None]:
    """Split ``metadata.labels['app']`` (``SplitMaybeSubscriptedPath``)."""
    holder, opener, key = path.partition("['")
    if not holder or not opener or not path.endswith("']"):
        return path, None
    return holder, key.removesuffix("']")


def _subscripted(pod: Pod, path: str, holder: str, key: str) -> str:
    match holder:
        case "metadata.annotations":
            texts = annotations_of(pod)
            problems = qualified_name(key.lower())
        case "metadata.labels":
            texts = labels_of(pod)
            problems = qualified_name(key)
        case _:
            raise DownwardError(f"fieldPath {quote(path)} does not support subscript")
    if problems:
        raise DownwardError(f"invalid key subscript in {path}: {';'.join(problems)}")
    return texts.get(key, "")


# --- resources ------------------------------------------------------------------------------------


def resource_for_variable(
    selector: AnyObject, pod: Pod, container: AnyObject, allocatable: AnyObject
) -> str:
    """Return an amount of a container for a variable, in units of the divisor, rounded up.

    A limit that is not set is that of the pod, or else the node's allocatable
    (``defaultPodLimitsForDownwardAPI``). Only a container of its own takes the node's amounts where
    it is an init container, as upstream. Raises DownwardError.
    """
    name = selector.get("containerName") or ""
    defaults = _with_pod_limits(pod, allocatable)
    if not name:
        return _amount(selector, container, defaults)
    other = _container(pod, name)
    containers = pod["spec"]["containers"]
    is_init = all(other is not candidate for candidate in containers)
    if is_init:
        return _amount(selector, other, {})
    return _amount(selector, other, defaults)


def resource_for_file(selector: AnyObject, pod: Pod, allocatable: AnyObject) -> str:
    """Return an amount of a container for a file of a volume
    (``ExtractResourceValueByContainerNameAndNodeAllocatable``). Raises DownwardError."""
    name = selector.get("containerName")
    container = _container(pod, name or "")
    return _amount(selector, container, allocatable)


def _container(pod: Pod, name: str) -> AnyObject:
    spec = pod["spec"]
    for containers in (spec["containers"], spec.get("initContainers") or ()):
        for container in containers:
            if container["name"] == name:
                return container
    raise DownwardError(f"container {name} not found")


def _with_pod_limits(pod: Pod, allocatable: AnyObject) -> AnyObject:
    limits = nested_map(pod["spec"], "resources", "limits")
    amounts = dict(allocatable)
    for resource in POD_LEVEL_RESOURCES:
        limit = limits.get(resource)
        if limit is not None and resource in amounts and not _is_zero(limit):
            amounts[resource] = limit
    return amounts


def _is_zero(amount: str | int | float) -> bool:
    quantity = Quantity.parse(amount)
    return quantity.is_zero()


def _amount(selector: AnyObject, container: AnyObject, allocatable: AnyObject) -> str:
    """Return an amount of a container (``ExtractContainerResourceValue``)."""
    path = selector.get("resource") or ""
    kind, _, resource = path.partition(".")
    is_known = resource in DEFAULTED_RESOURCES or resource.startswith(HUGE_PAGES)
    if kind not in ("limits", "requests") or not is_known:
        raise DownwardError(f"unsupported container resource : {path}")

    text = nested_map(container, "resources", kind).get(resource)
    if kind == "limits" and resource in DEFAULTED_RESOURCES and (text is None or _is_zero(text)):
        text = allocatable.get(resource, text)
    amount = _ZERO if text is None else Quantity.parse(text)
    divisor = Quantity.parse(selector.get("divisor") or "0")
    if divisor.is_zero():
        divisor = _ONE
    if resource == "cpu":
        value = amount.milli_value()
        unit = divisor.milli_value()
    else:
        value = amount.value()
        unit = divisor.value()
    units = -(-value // unit)
    return str(units)
