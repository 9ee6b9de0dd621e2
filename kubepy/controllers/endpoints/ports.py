"""The ports of a pod that a Service leads to (``FindPort``, ``getEndpointPorts``)."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.meta import Object
from kubepy.api.objects.pods import is_restartable_init_container


def endpoint_ports(service: Object, pod: Object) -> list[Object]:
    """The Service's ports as the pod has them, in the Service's order; one that the pod does not have is left out."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = find_port(port, pod)
        if number is not None:
            one: Object = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            found.append({"appProtocol": port["appProtocol"], **one} if port.get("appProtocol") else one)
    return found


def find_port(port: Object, pod: Object) -> int | None:
    """The number of a Service's target port in a pod; None for a name that no container of it has."""
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    protocol = port.get("protocol", "TCP")
    return next((one["containerPort"] for one in _container_ports(pod)
                 if one.get("name") == target and one.get("protocol", "TCP") == protocol), None)


def _container_ports(pod: Object) -> Iterator[Object]:
    for container in pod["spec"].get("containers") or ():
        yield from container.get("ports") or ()
    for container in pod["spec"].get("initContainers") or ():
        if is_restartable_init_container(container):
            yield from container.get("ports") or ()
