"""What pods use of cpu and memory, by their annotations and what else is known of them: there are
no containers that could be measured.

``kubepy.dev/cpu`` and ``kubepy.dev/memory`` say what the containers of a pod use together, in equal
parts; ``kubepy.dev/cpu.NAME`` what the container NAME uses, beside that. A value is a quantity
(``250m``, ``128Mi``) or a series of them with the times since the pod's start from which they hold:
``100m@0s,400m@60s``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import AnyObject, annotations_of, nested_list, nested_map, status_of
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.api.values.goformat import parse_duration, quote
from kubepy.api.values.quantity import Quantity, QuantityError, parse_quantity

PREFIX = "kubepy.dev/"
MEASURED = ("cpu", "memory")
WINDOW = timedelta(seconds=15)  # over which metrics-server measures: its --metric-resolution
NO_SERIES = "it must be a quantity such as {}, or a series such as {}@0s,{}@60s"
EXAMPLES = {"cpu": ("250m", "100m", "400m"), "memory": ("128Mi", "64Mi", "256Mi")}

Usage = dict[str, Quantity]
KnownUsage = Callable[[AnyObject], Mapping[str, Usage]]


class AnnotationError(ValueError):
    """An annotation of kubepy's own with a value that it does not take; the text names both."""

    def __init__(self, annotation: str, value: str, wrong: str) -> None:
        super().__init__(f"{annotation}: {quote(value)}: {wrong}")
        self.annotation = annotation


class UsageSeries(NamedTuple):
    """Amounts, each with the seconds since the pod's start from which it holds, in the order of
    these."""

    steps: tuple[tuple[float, Quantity], ...]

    def at(self, seconds: float) -> Quantity | None:
        """Return the amount so many seconds after the start; None before the first step."""
        return next((amount for start, amount in reversed(self.steps) if start <= seconds), None)


def parse_series(resource: str, annotation: str, text: str) -> UsageSeries:
    """Read the value of an annotation about cpu or memory. Raises AnnotationError."""
    steps: list[tuple[float, Quantity]] = []
    for part in text.split(","):
        amount_text, at, time = (word.strip() for word in part.partition("@"))
        try:
            amount = parse_quantity(amount_text)
            start = parse_duration(time) if at else 0.0
        except (QuantityError, ValueError):
            raise AnnotationError(annotation, text, NO_SERIES.format(*EXAMPLES[resource])) from None
        if amount.nanos < 0 or start < 0:
            raise AnnotationError(annotation, text, "amounts and times must not be negative")
        if steps and start <= steps[-1][0]:
            raise AnnotationError(annotation, text, "the times of a series must rise")
        steps.append((start, amount))
    return UsageSeries(tuple(steps))


def check_usage(pod: AnyObject) -> None:
    """Raise AnnotationError for the first annotation about usage that cannot be read, or names no
    container."""
    if not (annotations := annotations_of(pod)):
        return
    names = {container["name"] for container in measured_containers(pod)}
    for annotation, text in annotations.items():
        resource, dot, container = annotation.removeprefix(PREFIX).partition(".")
        if annotation.startswith(PREFIX) and resource in MEASURED:
            parse_series(resource, annotation, text)
            if dot and container not in names:
                raise AnnotationError(
                    annotation, text, f"the pod has no container {quote(container)}"
                )


def last_usage_change(pod: AnyObject) -> timedelta:
    """Return how long after its start the usage of a pod changes for the last time."""
    last = 0.0
    for annotation, text in annotations_of(pod).items():
        resource = annotation.removeprefix(PREFIX).partition(".")[0]
        if annotation.startswith(PREFIX) and resource in MEASURED:
            with suppress(AnnotationError):
                last = max(last, parse_series(resource, annotation, text).steps[-1][0])
    return timedelta(seconds=min(last, 1e9))


def measured_containers(pod: AnyObject) -> list[AnyObject]:
    """Return the containers that run as long as the pod: sidecars and all that are no init
    containers."""
    sidecars = filter(is_restartable_init_container, nested_list(pod["spec"], "initContainers"))
    return [*sidecars, *pod["spec"]["containers"]]


def container_usage(
    pod: AnyObject, now: datetime, known: KnownUsage | None = None
) -> dict[str, Usage]:
    """Return what the running containers of a pod use, by their names.

    A container without an amount is left out, as is everything of a pod whose annotations cannot be
    read.

    :param known: returns what else is known of the containers of a pod: it counts where no
        annotation says an amount.
    """
    status = status_of(pod)
    annotations = annotations_of(pod)
    running = running_containers(status)
    started = status.get("startTime")
    if not started or not running:
        return {}
    if known is None and not any(name.startswith(PREFIX) for name in annotations):
        return {}
    seconds = (now - parse_time(started)).total_seconds()
    containers = [
        name for container in measured_containers(pod) if (name := container["name"]) in running
    ]
    used: dict[str, Usage] = {name: {} for name in containers}
    try:
        for resource in MEASURED:
            for name, amount in divided_amounts(resource, containers, annotations, seconds).items():
                used[name][resource] = amount
    except AnnotationError:
        return {}

    if known is not None:
        said = _said_resources(annotations)
        for name, usage in known(pod).items():
            if name not in used:
                continue
            for resource, quantity in usage.items():
                if resource not in said and f"{resource}.{name}" not in said:
                    used[name].setdefault(resource, quantity)
    return {name: usage for name, usage in used.items() if usage}


def _said_resources(annotations: Mapping[str, str]) -> set[str]:
    """Return of what annotations speak: ``cpu`` for all containers, ``cpu.NAME`` for one."""
    return {name.removeprefix(PREFIX) for name in annotations if name.startswith(PREFIX)}


def running_containers(status: AnyObject) -> set[str]:
    if status.get("phase") != "Running":
        return set()
    entries = [
        *nested_list(status, "initContainerStatuses"),
        *nested_list(status, "containerStatuses"),
    ]
    return {entry.get("name", "") for entry in entries if "running" in nested_map(entry, "state")}


def divided_amounts(
    resource: str, containers: list[str], annotations: Mapping[str, str], seconds: float
) -> dict[str, Quantity]:
    """Return the amount of each container that has one; nanocores and bytes are not divided
    further."""

    def amount(annotation: str) -> Quantity | None:
        text = annotations.get(annotation)
        if text is None:
            return None
        return parse_series(resource, annotation, text).at(seconds)

    own = {
        name: f"{PREFIX}{resource}.{name}"
        for name in containers
        if f"{PREFIX}{resource}.{name}" in annotations
    }
    amounts = {
        name: used for name, annotation in own.items() if (used := amount(annotation)) is not None
    }
    others = [name for name in containers if name not in own]
    if others and (shared := amount(PREFIX + resource)) is not None:
        unit = 1 if resource == "cpu" else 10**9
        share, rest = divmod(shared.nanos // unit, len(others))
        for index, name in enumerate(others):
            part = (share + (index < rest)) * unit
            amounts[name] = shared if len(others) == 1 else Quantity(part, shared.format)

    return amounts


def total(usages: Iterable[Usage]) -> Usage:
    """Add up what several use."""
    added: Usage = {}
    for usage in usages:
        for resource, amount in usage.items():
            added[resource] = added[resource] + amount if resource in added else amount
    return added
