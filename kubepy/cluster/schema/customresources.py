"""What a CustomResourceDefinition makes: a resource that is served like the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubepy.cluster.meta import Object
from kubepy.cluster.scheme import PrinterColumn, Resource

_KUBE_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


def resources_of(definition: Object) -> Iterator[Resource]:
    """The resource of a definition; none if it serves no version, or its names were never accepted.

    One that was written by hand says nothing of its names, and is served.
    """
    spec, status = definition["spec"], definition.get("status") or {}
    if any(one["type"] == "Established" and one["status"] != "True" for one in status.get("conditions") or ()):
        return
    served = sorted((one for one in spec.get("versions") or () if one.get("served")),
                    key=lambda one: version_rank(one["name"]), reverse=True)
    if not served:
        return
    names, preferred = {**spec["names"], **_accepted(status)}, served[0]
    subresources = preferred.get("subresources") or {}
    resource = Resource(
        names["plural"], names["kind"], spec["group"], preferred["name"], spec.get("scope") == "Namespaced",
        names.get("singular", ""), tuple(names.get("shortNames") or ()), tuple(names.get("categories") or ()),
        tuple(name for name in ("scale", "status") if name in subresources),
        other_versions=tuple(one["name"] for one in served[1:]), custom=True,
        scale_paths=_scale_paths(subresources.get("scale")),
        printer_columns=tuple(PrinterColumn(one["name"], one["type"], one["jsonPath"], one.get("priority", 0))
                              for one in preferred.get("additionalPrinterColumns") or ()),
    )
    yield resource._replace(deprecation=deprecation_of(resource, preferred))


def _accepted(status: Object) -> Object:
    return {name: value for name, value in (status.get("acceptedNames") or {}).items() if value}


def deprecation_of(resource: Resource, version: Object) -> str:
    """What to warn of when this version of a resource is asked for, "" if it is not deprecated."""
    if not version.get("deprecated"):
        return ""
    own = version.get("deprecationWarning")
    return str(own) if own is not None else f"{resource.group}/{version['name']} {resource.kind} is deprecated"


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Greater for a better version: v2 > v1 > v1beta1 > v1alpha1 > anything else (``version.CompareKubeAware``)."""
    found = _KUBE_VERSION.fullmatch(version)
    if not found:
        return (-1, 0, 0, version)
    return (_STABILITY[found[2]], int(found[1]), int(found[3] or 0), "")


def _scale_paths(scale: Any) -> tuple[tuple[str, ...], ...]:
    if not scale:
        return ()
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return tuple(tuple(part for part in scale.get(name, "").split(".") if part) for name in names)
