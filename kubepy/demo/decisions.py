"""The decisions of the controllers in a plan, each with the numbers behind it.

All of it is read off the document of ``kubepy plan -o json``: the steps, and the numbers of the
workload before each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubepy.api.meta import Object

PODS = "pods"
CREATED, TERMINATING = "created", "terminating"
NOW = "0s"


class PodDecision(NamedTuple):
    """A pod that is made or ended, and why it may be.

    :ivar after: how long after the command: ``5s``.
    :ivar action: ``creates`` or ``ends``.
    :ivar reason: the numbers right before, in words.
    """

    after: str
    action: str
    pod: str
    node: str
    reason: str

    def lines(self) -> list[str]:
        """Return it as text, two lines."""
        moment = "now" if self.after == NOW else f"after {self.after}"
        place = f" on {self.node}" if self.node else ""
        return [f"{moment:<10} {self.action} {self.pod}{place}", f"{'':<10}   {self.reason}"]


def decisions_of(document: Object) -> list[PodDecision]:
    """Return the decisions in a plan about one workload.

    :param document: as ``kubepy plan -o json`` prints it.
    """
    workload = document["workloads"][0]
    numbers = {entry["step"]: entry for entry in workload["numbers"]}
    before = numbers[0]
    running = before["pods"]  # those that are not being deleted
    decisions: list[PodDecision] = []
    steps = document["steps"]
    for number, step in enumerate(steps, 1):
        action = step["action"]
        if step["resource"] == PODS and action in (CREATED, TERMINATING):
            is_created = action == CREATED
            reason = (
                _reason_to_create(before, running, workload)
                if is_created
                else _reason_to_end(before)
            )
            decisions.append(
                PodDecision(
                    step["after"],
                    "creates" if is_created else "ends",
                    step["name"],
                    _node_of(step, steps[number:]),
                    reason,
                )
            )
            running += 1 if is_created else -1
        before = numbers.get(number, before)
    return decisions


def _node_of(step: Object, following: Sequence[Object]) -> str:
    """Return the node of a pod: of one that is created that to which it is scheduled later."""
    if step["node"]:
        return str(step["node"])
    name = step["name"]
    nodes = [later["node"] for later in following if later["name"] == name and later["node"]]
    return nodes[0] if nodes else ""


def _reason_to_create(before: Object, running: int, workload: Object) -> str:
    """Return why a pod may be made: one is missing, or the strategy allows one too many."""
    desired = before["desired"]
    if running < desired:
        return f"{running} of {desired} pods are there"
    surge = workload["bounds"]["maxSurge"]
    return f"{running} pods are there; {desired} are desired, and {surge} more allowed (maxSurge)"


def _reason_to_end(before: Object) -> str:
    """Return why a pod may be ended: more are available than must be."""
    available, required = before["available"], before["required"]
    if required is None:
        return f"{available} pods are available; nothing says how many must be"
    return f"{available} pods are available; {required} must be (maxUnavailable)"
