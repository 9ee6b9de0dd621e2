"""Defaults of LimitRanges (``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.defaults import round_up_all


def default_limit_range(limit_range: Object) -> None:
    """Take a container's default limit from its max, and its default request from that or from
    min."""
    for item in nested_list(limit_range, "spec", "limits"):
        for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            round_up_all(item.get(field))
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        for field, amounts in (("default", limits), ("defaultRequest", requests)):
            if amounts:
                item[field] = amounts
