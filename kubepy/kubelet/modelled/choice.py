"""The choice of the pods that are modelled; all others just run. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kubepy.api.meta import annotations_of, controller_of
from kubepy.api.objects.outcomes import OUTCOME, POD_OUTCOME, UnknownOutcomeError
from kubepy.api.objects.references import ROOT_CA_CONFIG_MAP, references_of
from kubepy.api.objects.usage import AnnotationError
from kubepy.kubelet.modelled.leniency import ignores_references
from kubepy.kubelet.modelled.nonroot import root_problem
from kubepy.kubelet.modelled.programs import is_other_image, program_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubepy.api.typed import Container, Node, Pod
    from kubepy.kubelet.behaviours import Behaviour, Behaviours

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
LIFE_FIELDS = (
    "pull",
    "start",
    "program",
    "ready_after",
    "stops_after",
    "runs_for",
    "exit_code",
    "memory",
    "log",
)
# What the sources of fields begin with that the simple kubelet acts on as well.
SIMPLE_SOURCES = ("annotation ", "kubepy.yaml: ")


def is_left_to_outcome(pod: Pod, node: Node, defaults: Mapping[str, str]) -> bool:
    """Tell whether an annotation or a default chooses the outcome of a pod, which is not modelled
    then."""
    if annotations_of(pod).get(OUTCOME) or defaults.get(OUTCOME):
        return True
    return bool(annotations_of(node).get(POD_OUTCOME))


def is_modelled(pod: Pod, node: Node, behaviours: Behaviours, defaults: Mapping[str, str]) -> bool:
    """Tell whether a pod does more than run: it has a command, a probe, a hook or an init
    container, it has a deadline, it reads a ConfigMap, a Secret or a claim, a container of it has
    ended or is to run another image, or a rule speaks of its life; or a Job runs a server, which
    does not end.

    A pod whose outcome an annotation or a default chooses is not modelled: the outcome decides.
    """
    if is_left_to_outcome(pod, node, defaults):
        return False
    spec = pod["spec"]
    containers = spec["containers"]
    try:
        known = [behaviours.of(pod, container, node) for container in containers]
    except (AnnotationError, UnknownOutcomeError):  # the pod is not started
        return False
    if spec.get("initContainers") or spec.get("ephemeralContainers"):
        return True
    if spec.get("activeDeadlineSeconds") is not None:
        return True
    if _needs_objects(pod, node, defaults):
        return True
    if _differs(pod):
        return True
    if is_pod_of_job(pod) and any(behaviour.listens is not None for behaviour in known):
        return True
    return any(
        _does_more_than_run(container, behaviour) or root_problem(pod, container, behaviour)
        for container, behaviour in zip(containers, known, strict=True)
    )


def is_pod_of_job(pod: Pod) -> bool:
    """Tell whether a Job controls a pod: its containers end by themselves, unless it is known that
    they do not."""
    return (controller_of(pod) or {}).get("kind") == "Job"


def _differs(pod: Pod) -> bool:
    """Tell whether a container has ended before, or runs another image than the pod says by now."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    if not statuses:
        return False
    images = {}
    for status in statuses:
        if status.get("lastState"):
            return True
        images[status["name"]] = status.get("image")
    for container in pod["spec"]["containers"]:
        image = images.get(container["name"])
        if image and is_other_image(image, container):
            return True
    return False


def _needs_objects(pod: Pod, node: Node, defaults: Mapping[str, str]) -> bool:
    """Tell whether a pod starts only when objects are there that it names."""
    if ignores_references(pod, node, defaults):
        return False
    spec = pod["spec"]
    volumes = cast("list[dict[str, object]]", spec.get("volumes") or [])
    if any(volume.get("persistentVolumeClaim") for volume in volumes):
        return True
    return any(
        reference.name != ROOT_CA_CONFIG_MAP and not reference.optional
        for reference in references_of(spec)
    )


def _does_more_than_run(container: Container, behaviour: Behaviour) -> bool:
    values = cast("dict[str, object]", container)
    if container.get("lifecycle") or any(values.get(name) for name in PROBES):
        return True
    for name in LIFE_FIELDS:
        source = behaviour.sources.get(name)
        if source is not None and not source.startswith(SIMPLE_SOURCES):
            return True
    return not program_of(container, behaviour).is_opaque
