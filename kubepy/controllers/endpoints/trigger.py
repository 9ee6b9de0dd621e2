"""When the change happened that endpoints follow: the ``last-change-trigger-time`` annotation.

Upstream (``trigger_time_tracker.go``) remembers when it last saw each pod turn ready. Here that is told by what the
endpoints said of the pods so far, so that runs one after the other give the same as one long run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubepy.api.meta import Object, uid_of
from kubepy.api.objects.pods import get_condition, is_pod_ready

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"

Seen = Mapping[str, bool]  # uid of a pod → whether it was ready


def trigger_time(service: Object, pods: Iterable[Object], seen: Seen | None) -> str:
    """The earliest time at which one of the pods that changed did so, "" for none.

    Without endpoints so far (``seen`` None) it is that of the Service.
    """
    if seen is None:
        return str(service["metadata"].get("creationTimestamp", ""))
    changed = (_ready_since(pod) for pod in pods if seen.get(uid_of(pod)) is not is_pod_ready(pod))
    return min((time for time in changed if time), default="")


def _ready_since(pod: Object) -> str:
    return str((get_condition(pod, "Ready") or {}).get("lastTransitionTime", ""))


def seen_in_slices(slices: Iterable[Object]) -> Seen | None:
    """What EndpointSlices say of pods; None without any."""
    slices = list(slices)
    if not slices:
        return None
    return {endpoint["targetRef"]["uid"]: bool(endpoint.get("conditions", {}).get("serving"))
            for one in slices for endpoint in one.get("endpoints") or () if "targetRef" in endpoint}


def seen_in_subsets(endpoints: Object | None) -> Seen | None:
    """What an Endpoints object says of pods; None without one."""
    if endpoints is None:
        return None
    return {address["targetRef"]["uid"]: field == "addresses"
            for subset in endpoints.get("subsets") or () for field in ("addresses", "notReadyAddresses")
            for address in subset.get(field) or () if "targetRef" in address}
