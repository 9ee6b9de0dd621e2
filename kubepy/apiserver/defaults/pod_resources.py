"""Resources of a pod as a whole: ``spec.resources`` (``defaultPodRequests``, ``defaultHugePagePodLimits``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.objects.pods import aggregate

HUGE_PAGES = "hugepages-"


def default_pod_resources(spec: Object) -> None:
    resources = spec["resources"]
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if limits or requests:
        for name, total in aggregate(spec, "limits").items():
            if name.startswith(HUGE_PAGES) and name not in requests:
                limits.setdefault(name, str(total))
    if limits:
        for name, total in aggregate(spec, "requests").items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, str(total))
        for name in limits:
            if name in ("cpu", "memory") or name.startswith(HUGE_PAGES):
                requests.setdefault(name, limits[name])
    for field, amounts in (("limits", limits), ("requests", requests)):
        if amounts:
            resources[field] = amounts
