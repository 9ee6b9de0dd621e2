"""Pods that find too little room on nodes for a reason that lies elsewhere: a LimitRange that gives
them requests, or pods of higher priority, which have taken the room.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubepy.api.meta import (
    Object,
    annotations_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    uid_of,
)
from kubepy.api.objects.pods import SYSTEM_CRITICAL_PRIORITY
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.admission.limits import ANNOTATION
from kubepy.insight.why.remedies import field_path, pods_of, top_owner
from kubepy.scheduler.cache import PodInfo

if TYPE_CHECKING:
    from kubepy.insight import Link
    from kubepy.insight.why.scene import Scene

LIMIT_RANGES = "limitranges"


# --- LimitRanges ----------------------------------------------------------------------------------


def default_request(scene: Scene, pod: Object, resource: str) -> Link | None:
    """Return the link of the LimitRange that gives a container of a pod its request; None where
    none does."""
    if ANNOTATION not in annotations_of(pod):
        return None
    requested = [
        requests[resource]
        for container in pod["spec"]["containers"]
        if resource in (requests := nested_map(container, "resources", "requests"))
    ]
    for limits in scene.list(LIMIT_RANGES, namespace_of(pod)):
        for index, item in enumerate(nested_list(limits["spec"], "limits")):
            amount = nested_map(item, "defaultRequest").get(resource)
            if (
                item.get("type") == "Container"
                and amount is not None
                and is_among(amount, requested)
            ):
                field = field_path(f"spec.limits[{index}].defaultRequest", resource)
                return scene.link(limits, field, "containers that name no request get this one")

    return None


def is_among(amount: Any, amounts: Iterable[Any]) -> bool:
    wanted = Quantity.parse(str(amount))
    return any(Quantity.parse(str(other)) == wanted for other in amounts)


# --- priorities -----------------------------------------------------------------------------------


def outranking(
    scene: Scene, pod: Object, priority: int, others: Iterable[PodInfo]
) -> list[PodInfo]:
    """Return the pods of others whose priority is higher than a pod's, the highest first.

    Those that are critical to the system do not count.
    """
    own = {uid_of(other) for other in pods_of(scene, top_owner(scene, pod))}
    higher = [
        other
        for other in others
        if priority < other.priority < SYSTEM_CRITICAL_PRIORITY and uid_of(other.pod) not in own
    ]
    return sorted(higher, key=lambda other: (-other.priority, other.key))


def preemption_link(scene: Scene, preemptor: Object) -> Link | None:
    """Return the link of the event by which a pod has displaced another one."""
    for event in scene.list("events"):
        related = nested_map(event, "related")
        if event.get("reason") == "Preempted" and related.get("uid") == uid_of(preemptor):
            victim = nested_map(event, "involvedObject").get("name", "")
            return scene.link(
                event, "reason", f"pod/{name_of(preemptor)} has displaced pod/{victim}"
            )
    return None
