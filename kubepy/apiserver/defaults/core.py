"""Limit ranges and replication controllers (``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.defaults.quantities import round_up_all
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.defaults import pods as defaults


def default_limit_range(limit_range: Object) -> None:
    """Of a container: the default limit comes from max, the default request from that or from min."""
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            round_up_all(item.get(field))
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        for field, amounts in (("default", limits), ("defaultRequest", requests)):
            if amounts:
                item[field] = amounts


def default_replication_controller(controller: Object) -> None:
    """Selector and labels come from the template where they are left out."""
    spec = controller.setdefault("spec", {})
    template = spec.get("template")
    if template is not None:
        defaults.default_pod_template(template)
        if labels := template["metadata"].get("labels"):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not controller["metadata"].get("labels"):
                controller["metadata"]["labels"] = dict(labels)
    spec.setdefault("replicas", 1)
