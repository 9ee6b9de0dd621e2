"""The node agent of a manager: what modelled pods find around them, read from its informers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api.errors import NotFound
from kubepy.kubelet.behaviours import Behaviours
from kubepy.kubelet.modelled.claims import ClaimFiles
from kubepy.kubelet.modelled.host import NodeAgent
from kubepy.kubelet.modelled.listening import Listeners
from kubepy.kubelet.modelled.logs import LogStore
from kubepy.kubelet.modelled.pods import ModelledPods
from kubepy.kubelet.network import Network
from kubepy.runtime.informers import Informers
from kubepy.shell.files import Tree

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.api.objects.references import Find
    from kubepy.api.typed import Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.network import ClusterView
    from kubepy.runtime.reconcile import Context


API_SERVER = ("services", "default", "kubernetes")


class InformerView:
    """Reads objects from the informers of a manager."""

    def __init__(self, informers: Informers, client: Client) -> None:
        self._informers = informers
        self._client = client

    @property
    def now(self) -> datetime:
        """The cluster's time."""
        return self._client.clock.now()

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Return an object, None where there is none."""
        obj = self._informers.get(resource, namespace, name)
        if obj is None and (resource, namespace, name) == API_SERVER:
            return next(iter(self._client.list_implied(resource, namespace)), None)
        return obj

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
    view = InformerView(context.informers, client)
    agent = node_agent(client, view, context.informers.get, draw)
    return ModelledPods(agent, client.value, client.set_values, defaults)


def node_agent(
    client: Client,
    view: ClusterView,
    find: Find,
    draw: Callable[[Pod, str, float, float], float],
) -> NodeAgent:
    """Return the agent of all nodes of a cluster.

    :param find: looks up objects for the environment and the volumes of containers.
    """
    behaviours = Behaviours.of_cluster(client, find)
    values = ValueTrees(client)
    return NodeAgent(
        behaviours=behaviours,
        draw=draw,
        find=find,
        view=view,
        network=Network(view, Listeners(behaviours.of)),
        logs=LogStore(client.value, lambda name, text: client.set_values({name: text})),
        images={},
        claims=ClaimFiles(find, values.load, values.save),
    )


class ClientView:
    """Reads objects of a cluster through a client, for whoever has no informers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def now(self) -> datetime:
        """The cluster's time."""
        return self._client.clock.now()

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Return an object, None where there is none."""
        try:
            return self._client.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        """Return the objects of a resource, in one namespace or in all."""
        return self._client.list(resource, namespace=namespace).items


def modelled_pods_of(client: Client) -> ModelledPods:
    """Return the modelled pods of a cluster, for whoever looks into one."""
    view = ClientView(client)

    def draw(pod: Pod, purpose: str, low: float, high: float) -> float:
        return low

    agent = node_agent(client, view, view.get, draw)
    defaults = client.settings.kubelet.annotations()
    return ModelledPods(agent, client.value, client.set_values, defaults)


class ValueTrees:
    """The files of volumes as small values of the cluster."""

    PREFIX = "volume/"

    def __init__(self, client: Client) -> None:
        self._client = client

    def load(self, key: str) -> Tree | None:
        """Return the files of a volume."""
        text = self._client.value(f"{self.PREFIX}{key}")
        if text is None:
            return None
        return Tree.from_json(json.loads(text))

    def save(self, key: str, tree: Tree) -> None:
        """Keep the files of a volume."""
        text = json.dumps(tree.to_json(), separators=(",", ":"), ensure_ascii=False)
        self._client.set_values({f"{self.PREFIX}{key}": text})
