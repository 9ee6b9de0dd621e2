"""The node agent of a manager: what modelled pods find around them, read from its informers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.kubelet import volumes
from kubepy.kubelet.behaviours import Behaviours
from kubepy.kubelet.modelled.host import NodeAgent
from kubepy.kubelet.modelled.logs import LogStore
from kubepy.kubelet.modelled.pods import ModelledPods
from kubepy.kubelet.network import Network
from kubepy.runtime.informers import Informers

if TYPE_CHECKING:
    from kubepy.api.clock import Clock
    from kubepy.api.meta import Object
    from kubepy.api.typed import Pod
    from kubepy.runtime.reconcile import Context


class InformerView:
    """Reads objects from the informers of a manager."""

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._informers = informers
        self._clock = clock

    @property
    def now(self) -> datetime:
        """The cluster's time."""
        return self._clock.now()

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Return an object, None where there is none."""
        return self._informers.get(resource, namespace, name)

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        """Return the objects of a resource, in one namespace or in all."""
        return self._informers.list(resource, namespace)


def modelled_pods(
    context: Context,
    draw: Callable[[Pod, str, float, float], float],
    defaults: Mapping[str, str],
) -> ModelledPods:
    """Return the modelled pods of a manager's cluster."""
    client = context.client
    view = InformerView(context.informers, context.clock)
    behaviours = Behaviours(client.settings.kubelet.rules, defaults)
    logs = LogStore(client.value, lambda name, text: client.set_values({name: text}))
    agent = NodeAgent(
        behaviours=behaviours,
        draw=draw,
        find=context.informers.get,
        view=view,
        network=Network(view, behaviours),
        logs=logs,
        images={},
        claims=volumes.ClaimFiles(client.value, client.set_values),
    )
    return ModelledPods(agent, client.value, client.set_values, defaults)
