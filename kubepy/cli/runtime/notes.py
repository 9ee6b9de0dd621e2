"""Notes to the user about pods that have no node: why, and the command that helps, which kubectl
never says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import nested_list, nested_map
from kubepy.api.values.quantity import Quantity
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import selectors
    from kubepy.api.objects import pods as pod_objects
    from kubepy.kubelet import nodes as kubelet_nodes

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.client import Client


class Notes(NamedTuple):
    """Writes notes.

    :param say: writes a line to stderr.
    :param program: how the program is to be called for this cluster: ``kubepy --state lab``.
    """

    say: Callable[[str], None]
    program: str

    def unscheduled_pods(self, client: Client, owner: Object | None = None) -> None:
        """Say which pods have no node, the scheduler's reason, and the command that helps.
        ``owner``: only those that this workload selects."""
        selector = selectors.from_label_selector(owner["spec"].get("selector")) if owner else None
        waiting: dict[
            tuple[str, str], list[Object]
        ] = {}  # by the scheduler's message and what they want of a node
        namespace = owner["metadata"]["namespace"] if owner else None
        for pod in client.find_recorded("pods", "phase", "Pending", namespace):
            if (
                pod["spec"].get("nodeName")
                or "deletionTimestamp" in pod["metadata"]
                or (selector and not selector.matches(pod["metadata"].get("labels")))
            ):
                continue
            message = next(
                (
                    condition.get("message", "")
                    for condition in nested_list(pod.get("status", {}), "conditions")
                    if condition["type"] == "PodScheduled" and condition["status"] == "False"
                ),
                "",
            )
            if message:
                waiting.setdefault((message, str(pod["spec"].get("nodeSelector"))), []).append(pod)

        nodes = client.list("nodes").items if waiting else []
        if waiting and not nodes:
            waiting = {
                ("there are no nodes", ""): [pod for pods in waiting.values() for pod in pods]
            }

        for (message, _), pods in waiting.items():
            first = pods[0]["metadata"]
            name = f"{first['namespace']}/{first['name']}"
            subject = f"pod {name} is" if len(pods) == 1 else f"{len(pods)} pods ({name} …) are"
            reason = (
                message.partition(". no new claims")[0].partition(". preemption:")[0].rstrip(".")
            )
            help = next(filter(None, self._remedies(message, pods[0], nodes)))
            self.say(f"note: {subject} Pending: {reason}: {help}")

    def _remedies(self, message: str, pod: Object, nodes: Sequence[Object]) -> Iterator[str]:
        """Yield the commands that help an unschedulable pod, by the scheduler's message, the best
        one first."""

        def on_node(command: str, arguments: Callable[[Object], str | None]) -> str:
            changes = ((node["metadata"]["name"], arguments(node["spec"])) for node in nodes)
            node, words = next(
                ((name, words) for name, words in changes if words is not None), ("", "")
            )
            if node:
                return f'"{self.program} {command} {node}{words}"'
            return ""

        def taint(spec: Object) -> str | None:
            return next(
                (
                    f" {taint['key']}:{taint['effect']}-"
                    for taint in nested_list(spec, "taints")
                    if "node.kubernetes.io/" not in taint["key"]
                    and taint["effect"] != "PreferNoSchedule"
                ),
                None,
            )

        namespace = pod["metadata"]["namespace"]
        labels = "".join(
            f" {key}={value}" for key, value in nested_map(pod["spec"], "nodeSelector").items()
        )
        if "there are no nodes" in message:
            yield f"make one with {self.new_node(nodes, pod)}"
        if "unschedulable" in message:
            yield on_node("uncordon", lambda spec: "" if spec.get("unschedulable") else None)
        if "untolerated taint" in message:
            yield on_node("taint nodes", taint)
        if "affinity/selector" in message and labels:
            yield on_node("label nodes", lambda _: labels)
        if "Insufficient" in message or "Too many pods" in message:
            yield f"make another with {self.new_node(nodes, pod)}"
        if "persistentvolumeclaim" in message.lower():
            yield f'"{self.program} describe pvc -n {namespace}" shows the claims'
        yield f'"{self.program} describe pod {pod["metadata"]["name"]} -n {namespace}" shows more'

    def missing_nodes(self, client: Client) -> None:
        """Say how to make a node, where there is none."""
        if not client.list("nodes").items:
            self.say(
                f"note: there are no nodes, so pods will stay Pending: make one with "
                f"{self.new_node()}"
            )

    def new_node(self, nodes: Sequence[Object] = (), pod: Object | None = None) -> str:
        """Return the command that makes a node of a free name, large enough for a pod.

        A node whose status is empty becomes Ready when the controllers run, with a default
        capacity.
        """
        names = {node["metadata"]["name"] for node in nodes}
        name = next(name for name in (f"node-{number}" for number in count(1)) if name not in names)
        node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        default = kubelet_nodes.DEFAULT_CAPACITY
        requests = pod_objects.pod_requests(pod) if pod else {}
        larger = {
            resource: str(quantity)
            for resource, quantity in requests.items()
            if resource not in default or Quantity.parse(default[resource]) < quantity
        }
        if larger:
            node["status"] = {"capacity": {**default, **larger}}
        return f"echo '{json.dumps(node, separators=(',', ':'))}' | {self.program} create -f -"
