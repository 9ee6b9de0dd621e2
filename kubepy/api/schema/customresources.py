"""The resources of CustomResourceDefinitions, which are served like the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubepy.api.meta import Object, nested_list, nested_map, status_of
from kubepy.api.scheme import PrinterColumn, Resource

_KUBE_VERSION = re.compile(r"v([0-9]{1,18})(?:(alpha|beta)([0-9]{1,18}))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}
VERBS = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)  # in discovery's order
SCALE_PATHS = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")


def resources_of(definition: Object) -> Iterator[Resource]:
    """Yield the resource of a definition; none if it serves no version, or its names were never
    accepted.

    A definition that was written by hand has no conditions, and is served.
    """
    spec = definition["spec"]
    status = status_of(definition)
    if any(
        condition["type"] == "Established" and condition["status"] != "True"
        for condition in nested_list(status, "conditions")
    ):
        return

    served = sorted(
        (version for version in nested_list(spec, "versions") if version.get("served")),
        key=lambda version: version_rank(version["name"]),
        reverse=True,
    )
    if not served:
        return
    accepted = {name: value for name, value in nested_map(status, "acceptedNames").items() if value}
    names = {**spec["names"], **accepted}
    preferred = served[0]
    is_terminating = any(
        condition["type"] == "Terminating" and condition["status"] == "True"
        for condition in nested_list(status, "conditions")
    )
    variants = tuple(
        _in_version(spec, names, version)._replace(is_terminating=is_terminating)
        for version in spec["versions"]
    )
    resource = next(variant for variant in variants if variant.version == preferred["name"])
    yield resource._replace(
        other_versions=tuple(version["name"] for version in served[1:]),
        deprecation=deprecation_of(spec, preferred),
        variants=variants if len(variants) > 1 else (),
    )


def _in_version(spec: Object, names: Object, version: Object) -> Resource:
    """Return the resource with the subresources and columns of one of its versions."""
    subresources = nested_map(version, "subresources")
    scale = nested_map(subresources, "scale")
    scale_paths = tuple(
        tuple(part for part in scale.get(name, "").split(".") if part) for name in SCALE_PATHS
    )
    return Resource(
        names["plural"],
        names["kind"],
        spec["group"],
        version["name"],
        spec.get("scope") == "Namespaced",
        names.get("singular", ""),
        tuple(nested_list(names, "shortNames")),
        tuple(nested_list(names, "categories")),
        tuple(name for name in ("scale", "status") if name in subresources),
        VERBS,
        custom=True,
        scale_paths=scale_paths if scale else (),
        printer_columns=tuple(
            PrinterColumn(
                column["name"],
                column["type"],
                column["jsonPath"],
                column.get("priority", 0),
                column.get("format", ""),
                column.get("description", ""),
            )
            for column in nested_list(version, "additionalPrinterColumns")
        ),
        storage_version=next(
            (stored["name"] for stored in spec["versions"] if stored.get("storage")), ""
        ),
        list_kind=names.get("listKind", ""),
    )


def deprecation_of(spec: Object, version: Object) -> str:
    """Give the warning of a version of a definition, "" if it is not deprecated
    (``defaultDeprecationWarning``).

    The version's own warning counts; otherwise the best served version that is better and not
    deprecated is named.
    """
    if not version.get("deprecated"):
        return ""
    own = version.get("deprecationWarning")
    if own is not None:
        return str(own)
    group = spec["group"]
    kind = spec["names"]["kind"]
    better = [
        other["name"]
        for other in spec["versions"]
        if other.get("served")
        and not other.get("deprecated")
        and version_rank(other["name"]) > version_rank(version["name"])
    ]
    advice = f"; use {group}/{max(better, key=version_rank)} {kind}" if better else ""
    return f"{group}/{version['name']} {kind} is deprecated{advice}"


def version_rank(version: str) -> tuple[int, ...]:
    """Return a rank that is greater for a better version: v2 > v1 > v1beta1 > v1alpha1 > anything
    else, a before b.

    Upstream: ``version.CompareKubeAwareVersionStrings``.
    """
    match = _KUBE_VERSION.fullmatch(version)
    if not match:
        return (-1, *(-ord(character) for character in version), 1)
    return (_STABILITY[match[2]], int(match[1]), int(match[3] or 0))
