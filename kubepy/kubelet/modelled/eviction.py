"""The eviction of pods that use more of their node's disk than their limits allow.

Upstream: ``localStorageEviction`` in ``pkg/kubelet/eviction/eviction_manager.go``, which looks
every ten seconds. Here a look is due only where a limit is exceeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from kubepy.api.clock import EPOCH
from kubepy.api.objects.pods import SYSTEM_CRITICAL_PRIORITY, pod_limits
from kubepy.api.values.quantity import Quantity
from kubepy.kubelet.modelled.life import WARNING, PodLife
from kubepy.kubelet.volumes import MEMORY
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod

EVICTED = "Evicted"
STORAGE = "ephemeral-storage"
INTERVAL = timedelta(seconds=10)  # between two looks of the eviction manager
IMMEDIATE_GRACE = 1  # seconds


def is_limited(pod: Pod) -> bool:
    """Tell whether a pod can be evicted for what it writes."""
    spec = pod["spec"]
    if (spec.get("priority") or 0) >= SYSTEM_CRITICAL_PRIORITY:
        return False
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    if any(_storage_limit(container) for container in containers):
        return True
    return any(True for _ in _limited_volumes(pod))


def plan_eviction(life: PodLife) -> None:
    """Have the eviction manager look at a pod that exceeds a limit, and at no other."""
    record = life.record
    if life.is_ending or record.is_over or not _excess(life):
        record.evicts = None
    elif record.evicts is None:
        record.evicts = _next_look(life.now)


def evict(life: PodLife) -> bool:
    """Evict a pod that exceeds a limit, if the eviction manager looks now. Return whether the pod
    is evicted."""
    record = life.record
    if record.evicts is None or record.evicts > life.now or life.is_ending:
        return False
    record.evicts = None
    message = _excess(life)
    if not message:
        return False
    life.emit(WARNING, EVICTED, message)
    record.end = EVICTED
    record.end_message = message
    record.grace = IMMEDIATE_GRACE
    life.touch()
    return True


def _next_look(now: datetime) -> datetime:
    """Return when the eviction manager looks next."""
    looks = (now - EPOCH) // INTERVAL
    return EPOCH + (looks + 1) * INTERVAL


def _excess(life: PodLife) -> str:
    """Return which limit a pod exceeds, in the words of the eviction; "" for none."""
    for name, limit in _limited_volumes(life.pod):
        if life.host.volume_usage(life.record, name, life.now) > limit.value():
            return f"Usage of EmptyDir volume {quote(name)} exceeds the limit {quote(str(limit))}. "

    usages = {container["name"]: _container_usage(life, container) for container in life.containers}
    total = pod_limits(life.pod).get(STORAGE)
    if total is not None and _pod_usage(life, sum(usages.values())) > total.value():
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "

    for container in life.containers:
        name = container["name"]
        own = _storage_limit(container)
        if own is not None and usages[name] > own.value():
            words = f"exceeded its local ephemeral storage limit {quote(str(own))}. "
            return f"Container {name} {words}"
    return ""


def _limited_volumes(pod: Pod) -> Iterator[tuple[str, Quantity]]:
    """Yield the names of the emptyDirs that have a limit, with the limit."""
    for volume in cast("list[dict[str, dict[str, str]]]", pod["spec"].get("volumes") or []):
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit is None:
            continue
        quantity = Quantity.parse(limit)
        if quantity.value() > 0:
            yield str(volume["name"]), quantity


def _storage_limit(container: Container) -> Quantity | None:
    limits = (container.get("resources") or {}).get("limits") or {}
    text = limits.get(STORAGE)
    if text is None:
        return None
    quantity = Quantity.parse(text)
    return quantity if quantity.value() else None


def _container_usage(life: PodLife, container: Container) -> int:
    """Return the bytes of a container's logs and of what it has written into its own layer."""
    record = life.record_of(container)
    usage = life.host.log_size(container, record.runs)
    machine = life.machine(container["name"]) if record.is_running else None
    if machine is not None:
        usage += max(0, machine.files.root.usage - record.image_size)
    return usage


def _pod_usage(life: PodLife, containers: int) -> int:
    """Return the bytes of containers with those of the emptyDirs on the disk."""
    usage = containers
    for volume in cast("list[dict[str, dict[str, str]]]", life.pod["spec"].get("volumes") or []):
        source = volume.get("emptyDir")
        if source is not None and source.get("medium") != MEMORY:
            usage += life.host.volume_usage(life.record, str(volume["name"]), life.now)
    return usage
