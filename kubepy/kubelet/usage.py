"""What is known of the usage of containers, where a kubelet models them: a rule, or the table of
well-known images, and for all others a share of what they ask for.

:mod:`kubepy.api.objects.usage` asks for it where no annotation says anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.objects.outcomes import UnknownOutcomeError
from kubepy.api.objects.usage import MEASURED, AnnotationError, Usage, measured_containers
from kubepy.api.values.quantity import BINARY_SI, Quantity
from kubepy.apiserver.settings import ESTIMATED, MODELLED
from kubepy.kubelet.behaviours import OF_TABLE, Behaviours
from kubepy.kubelet.modelled.agent import ClientView

if TYPE_CHECKING:
    from kubepy.api.meta import AnyObject
    from kubepy.api.typed import Container, Node, Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.behaviours import Behaviour

# Hundredths of its requests that a container uses of which nothing is known: an idle server.
SHARES = {"cpu": 10, "memory": 50}


class KnownUsage:
    """Tells what containers of modelled pods use."""

    def __init__(self, client: Client) -> None:
        self._find = ClientView(client).get
        self._behaviours = Behaviours.of_cluster(client, self._find)
        self._estimates = client.settings.kubelet.usage == ESTIMATED

    def __call__(self, pod: AnyObject) -> Mapping[str, Usage]:
        """Return what the containers of a pod use, by their names."""
        known_pod = cast("Pod", pod)
        node = self._find("nodes", "", pod["spec"].get("nodeName") or "")
        usages: dict[str, Usage] = {}
        for container in measured_containers(pod):
            try:
                behaviour = self._behaviours.of(
                    known_pod,
                    cast("Container", container),
                    cast("Node | None", node),
                )
            except (AnnotationError, UnknownOutcomeError):  # the pod was not started with it
                return {}
            usage = container_usage(container, behaviour, estimates=self._estimates)
            if usage or self._estimates:
                usages[container["name"]] = usage
        return usages


def known_usage(client: Client) -> KnownUsage | None:
    """Return what tells the usage of a cluster's containers; None where they are not modelled."""
    if client.settings.kubelet.containers != MODELLED:
        return None
    return KnownUsage(client)


def container_usage(container: AnyObject, behaviour: Behaviour, *, estimates: bool = True) -> Usage:
    """Return what a container uses: what is known of it, at most its limit, or a share of its
    requests.

    :param estimates: whether there are shares, and whether the table of images counts; without them
        only annotations and rules say anything.
    """
    resources: Mapping[str, Any] = container.get("resources") or {}
    limits: Mapping[str, str] = resources.get("limits") or {}
    requests: Mapping[str, str] = resources.get("requests") or {}
    usage: Usage = {}
    for name in MEASURED:
        amount = _known_amount(behaviour, name)
        if not estimates and behaviour.sources.get(name, "").startswith(OF_TABLE):
            amount = None
        if amount is not None:
            usage[name] = amount
            if name in limits:
                usage[name] = min(amount, Quantity.parse(limits[name]))
        elif estimates and name in requests:
            usage[name] = _share(requests[name], SHARES[name])
    return usage


def _known_amount(behaviour: Behaviour, name: str) -> Quantity | None:
    if name == "memory":
        if behaviour.memory is None:
            return None
        return Quantity.of(behaviour.memory, BINARY_SI)
    if behaviour.cpu is None:
        return None
    return Quantity.of_milli(int(behaviour.cpu * 1000))


def _share(text: str, hundredths: int) -> Quantity:
    """Return a part of a quantity, in whole millionths of a core or whole bytes."""
    quantity = Quantity.parse(text)
    unit = 10**9 if quantity.format == BINARY_SI else 10**3
    return Quantity(quantity.nanos * hundredths // 100 // unit * unit, quantity.format)
