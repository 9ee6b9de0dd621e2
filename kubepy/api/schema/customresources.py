"""What a CustomResourceDefinition makes: a resource that is served like the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.scheme import PrinterColumn, Resource

_KUBE_VERSION = re.compile(r"v([0-9]{1,18})(?:(alpha|beta)([0-9]{1,18}))?")
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
    yield resource._replace(deprecation=deprecation_of(spec, preferred))


def _accepted(status: Object) -> Object:
    return {name: value for name, value in (status.get("acceptedNames") or {}).items() if value}


def deprecation_of(spec: Object, version: Object) -> str:
    """Give the warning of a version of a definition, "" if it is not deprecated (``defaultDeprecationWarning``).

    The version's own warning counts; otherwise the best served version that is better and not deprecated is named.
    """
    if not version.get("deprecated"):
        return ""
    own = version.get("deprecationWarning")
    if own is not None:
        return str(own)
    group, kind = spec["group"], spec["names"]["kind"]
    better = [one["name"] for one in spec["versions"] if one.get("served") and not one.get("deprecated")
              and version_rank(one["name"]) > version_rank(version["name"])]
    advice = f"; use {group}/{max(better, key=version_rank)} {kind}" if better else ""
    return f"{group}/{version['name']} {kind} is deprecated{advice}"


def version_rank(version: str) -> tuple[int, ...]:
    """Greater for a better version: v2 > v1 > v1beta1 > v1alpha1 > anything else, a before b
    (``version.CompareKubeAwareVersionStrings``)."""
    found = _KUBE_VERSION.fullmatch(version)
    if not found:
        return (-1, *(-ord(character) for character in version), 1)
    return (_STABILITY[found[2]], int(found[1]), int(found[3] or 0))


def _scale_paths(scale: Any) -> tuple[tuple[str, ...], ...]:
    if not scale:
        return ()
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return tuple(tuple(part for part in scale.get(name, "").split(".") if part) for name in names)
