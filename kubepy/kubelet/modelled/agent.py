"""The node agent of a manager: what modelled pods find around them, read from its informers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

from kubepy.api.errors import NotFound
from kubepy.api.meta import uid_of
from kubepy.kubelet.behaviours import Behaviours
from kubepy.kubelet.lastingvolumes import LastingVolumes
from kubepy.kubelet.modelled.adoption import record_of_status
from kubepy.kubelet.modelled.host import NodeAgent, PodHost
from kubepy.kubelet.modelled.life import PodLife
from kubepy.kubelet.modelled.listening import Listeners
from kubepy.kubelet.modelled.logs import LogStore
from kubepy.kubelet.modelled.pods import ModelledPods
from kubepy.kubelet.modelled.records import RECORD, load_record
from kubepy.kubelet.modelled.tokens import token_reader
from kubepy.kubelet.network import Network
from kubepy.kubelet.network.services import target_ports
from kubepy.runtime.informers import Informers

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.api.objects.references import Find
    from kubepy.api.typed import Container, Node, Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.network import ClusterView
    from kubepy.runtime.reconcile import Context
    from kubepy.shell.machine import Machine


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
    turns: dict[str, int],
) -> ModelledPods:
    """Return the modelled pods of a manager's cluster."""
    client = context.client
    view = InformerView(context.informers, client)
    agent = node_agent(
        client,
        view,
        context.informers.get,
        draw,
        turns,
        defaults,
    )
    return ModelledPods(
        agent,
        client.value,
        client.set_values,
        defaults,
    )


def node_agent(
    client: Client,
    view: ClusterView,
    find: Find,
    draw: Callable[[Pod, str, float, float], float],
    turns: dict[str, int],
    defaults: Mapping[str, str],
) -> NodeAgent:
    """Return the agent of all nodes of a cluster.

    :param find: looks up objects for the environment and the volumes of containers.
    :param turns: how often each Service was asked.
    """
    behaviours = Behaviours.of_cluster(client, find)
    opening: list[str] = []  # pods whose processes are run up to now

    def machine_of(pod: Pod, container: Container) -> Machine | None:
        life = opened_pod(
            agent,
            client,
            pod,
        )
        if life is None:
            return None
        machine = life.machine_for_commands(container["name"])
        uid = uid_of(pod)
        if uid not in opening:  # it may be a process of it that asks
            opening.append(uid)
            life.run_machines(client.clock.now())
            opening.remove(uid)
        return machine

    listeners = Listeners(
        behaviours.of,
        machine_of,
        lambda pod: target_ports(view, pod),
    )
    agent = NodeAgent(
        behaviours=behaviours,
        draw=draw,
        find=find,
        view=view,
        network=Network(view, listeners, turns),
        logs=LogStore(client.value, lambda name, text: client.set_values({name: text})),
        images={},
        lasting=LastingVolumes(client.value, client.set_values, find),
        defaults=defaults,
        read_token=token_reader(client),
        absent=client.settings.absent,
    )
    return agent


def opened_pod(agent: NodeAgent, client: Client, pod: Pod) -> PodLife | None:
    """Return a pod as it was last, to be looked at; None for one on a node that is gone."""
    now = client.clock.now()
    node = agent.view.get("nodes", "", pod["spec"].get("nodeName") or "")
    if node is None:
        return None
    record = load_record(client.value(f"{RECORD}{uid_of(pod)}")) or record_of_status(pod, now)
    run_pod = agent.pod_to_run(pod, cast("Node", node))
    host = PodHost(
        agent,
        run_pod,
        cast("Node", node),
        is_rehearsal=True,
    )
    return PodLife(run_pod, record, host)


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

    defaults = client.settings.kubelet.annotations()
    agent = node_agent(
        client,
        view,
        view.get,
        draw,
        {},
        defaults,
    )
    return ModelledPods(
        agent,
        client.value,
        client.set_values,
        defaults,
    )
