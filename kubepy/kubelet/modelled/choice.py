"""Which pods are modelled, and which just run. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kubepy.api.meta import annotations_of
from kubepy.api.objects.outcomes import OUTCOME, POD_OUTCOME
from kubepy.kubelet.modelled.programs import program_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubepy.api.typed import Container, Node, Pod
    from kubepy.kubelet.behaviours import Behaviour, Behaviours

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
LIFE_FIELDS = (
    "pull",
    "ready_after",
    "stops_after",
    "runs_for",
    "exit_code",
    "memory",
    "log",
)
RULE = "kubelet.rules"  # what the source of a field begins with that a rule has set


def is_modelled(
    pod: Pod, node: Node, behaviours: Behaviours, defaults: Mapping[str, str]
) -> bool:
    """Tell whether a pod does more than run: it has a command, a probe, a hook or an init
    container, or a rule speaks of its life.

    A pod whose outcome an annotation or a default chooses is not modelled: the outcome decides.
    """
    if annotations_of(pod).get(OUTCOME) or defaults.get(OUTCOME):
        return False
    if annotations_of(node).get(POD_OUTCOME):
        return False
    spec = pod["spec"]
    if spec.get("initContainers"):
        return True
    return any(
        _does_more_than_run(container, behaviours.of(pod, container, node))
        for container in spec["containers"]
    )


def _does_more_than_run(container: Container, behaviour: Behaviour) -> bool:
    values = cast("dict[str, object]", container)
    if container.get("lifecycle") or any(values.get(name) for name in PROBES):
        return True
    if behaviour.outcome and behaviour.sources.get("outcome", "").startswith(RULE):
        return False
    if any(behaviour.sources.get(name, "").startswith(RULE) for name in LIFE_FIELDS):
        return True
    return not program_of(container, behaviour).is_opaque
