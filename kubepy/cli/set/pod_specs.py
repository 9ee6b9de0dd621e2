"""The pod spec inside an object, and the choice of its containers by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError

TEMPLATED = {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}


def pod_spec_of(obj: Object) -> Object:
    """Where the object keeps its pod spec. Raises CliError for kinds without one (``UpdatePodSpecForObject``)."""
    spec: Object = obj.get("spec") or {}
    if obj["kind"] == "Pod":
        return spec
    if obj["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    elif obj["kind"] not in TEMPLATED:
        raise CliError("the object is not a pod or does not have a pod template: "
                       f"*{obj['apiVersion'].rpartition('/')[2]}.{obj['kind']}")  # Go's type
    found: Object = spec["template"]["spec"]
    return found


def all_containers(spec: Object) -> Iterator[Object]:
    """The containers, then the init containers."""
    yield from spec.get("containers") or []
    yield from spec.get("initContainers") or []


def select_containers(spec: Object, pattern: str) -> list[Object]:
    """The containers whose names fit ``pattern``, where ``*`` stands for anything."""
    fits = _matcher(pattern)
    return [container for container in all_containers(spec) if fits(container["name"])]


def _matcher(pattern: str) -> Callable[[str], bool]:
    expression = re.compile(".*".join(re.escape(part) for part in pattern.split("*")))
    return lambda name: expression.fullmatch(name) is not None


def split_pairs(words: list[str], kind: str) -> tuple[list[str], dict[str, str]]:
    """Resources, and ``name=value`` pairs behind them (``GetResourcesAndPairs``, ``ParsePairs``). Raises CliError."""
    resources: list[str] = []
    pairs: dict[str, str] = {}
    wrong: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name and equals:
            pairs[name] = value
        elif word.endswith("-") and word != "-":
            wrong.append(word)
        elif pairs or wrong:
            raise CliError(f"all resources must be specified before {kind} changes: {word}")
        else:
            resources.append(word)
    if wrong:
        raise CliError(f"invalid {kind} format: {', '.join(wrong)}")
    return resources, pairs
