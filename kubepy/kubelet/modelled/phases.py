"""The phase of a pod from the states of its containers (``getPhase`` in
``pkg/kubelet/kubelet_pods.go``). Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.kubelet.modelled.restarting import restarts_after

if TYPE_CHECKING:
    from kubepy.api.typed import Container, PodSpec
    from kubepy.kubelet.modelled.records import ContainerRecord


def phase_of(spec: PodSpec, records: Mapping[str, ContainerRecord], *, is_ending: bool) -> str:
    """Return the phase of a pod.

    :param is_ending: the pod as a whole ends, so that no container starts again.
    """
    containers = cast("list[Container]", spec.get("containers") or [])
    init_containers = cast("list[Container]", spec.get("initContainers") or [])
    sidecars = [each for each in init_containers if is_restartable_init_container(each)]
    has_initialized = any(records[each["name"]].runs for each in containers)
    initialization = Counter(
        _initialization(each, spec, records[each["name"]])
        for each in init_containers
        if not is_restartable_init_container(each)
    )
    if initialization["failed"]:
        return "Failed"

    states = Counter(_state(records[each["name"]]) for each in containers)
    of_sidecars = Counter(_state(records[each["name"]]) for each in sidecars)
    is_initializing = any(not records[each["name"]].has_started for each in sidecars)
    if initialization["pending"] or (is_initializing and not has_initialized and not is_ending):
        return "Pending"
    if states["waiting"] or of_sidecars["waiting"]:
        return "Pending"
    if states["running"] or of_sidecars["running"]:
        return "Running"

    endings = [_end_code(records[each["name"]]) for each in containers]
    restarts = any(_restarts(each, spec, records[each["name"]]) for each in containers)
    if restarts and not is_ending:
        return "Running"
    return "Failed" if any(endings) else "Succeeded"


def _restarts(container: Container, spec: PodSpec, record: ContainerRecord) -> bool:
    if record.is_replaced:
        return True
    return restarts_after(container, spec, _end_code(record))


def _state(record: ContainerRecord) -> str:
    """Return whether a container waits for its first run, runs, or has ended."""
    if record.is_running:
        return "running"
    if record.ending is not None or record.last is not None:
        return "ended"
    return "waiting"


def _end_code(record: ContainerRecord) -> int:
    ending = record.ending or record.last
    if ending is None:
        return 0
    return ending.exit_code


def _initialization(container: Container, spec: PodSpec, record: ContainerRecord) -> str:
    """Return how far an init container is: ``pending``, ``done``, ``failed`` for good or
    ``retried``."""
    if record.is_running:
        return "pending"
    ending = record.ending or record.last
    if ending is None:
        return "pending"
    if ending.exit_code == 0 and record.ending is not None:
        return "done"
    if restarts_after(container, spec, ending.exit_code):
        return "pending"
    return "failed"
