"""The volumes of a pod and their mounts (``pkg/apis/core/validation/validation.go``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api.errors import duplicate, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.kinds.core.pods.validation.env import (
    VOLUME_FIELDS,
    validate_field_selector,
    validate_resource_selector,
)
from kubepy.apiserver.kinds.core.pods.validation.options import PodOptions
from kubepy.apiserver.validation.fields import (
    Errors,
    validate_as,
    validate_choice,
    validate_file_mode,
    validate_local_descending_path,
    validate_local_non_reserved_path,
    validate_no_backsteps,
    validate_required,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.apiserver.kinds.core.persistentvolumeclaims import (
        validation as persistentvolumeclaims_validation,
    )
    from kubepy.apiserver.kinds.core.volumesources import validation as volumesources_validation

# The fields of volume sources in upstream's order, and their names in errors where those differ.
SOURCES: dict[str, str] = {
    "emptyDir": "",
    "hostPath": "",
    "gitRepo": "",
    "gcePersistentDisk": "persistentDisk",
    "awsElasticBlockStore": "",
    "secret": "",
    "nfs": "",
    "iscsi": "",
    "glusterfs": "",
    "flocker": "",
    "persistentVolumeClaim": "",
    "rbd": "",
    "cinder": "",
    "cephfs": "",
    "quobyte": "",
    "downwardAPI": "",
    "fc": "",
    "flexVolume": "",
    "configMap": "",
    "azureFile": "",
    "vsphereVolume": "",
    "photonPersistentDisk": "",
    "portworxVolume": "",
    "azureDisk": "",
    "storageos": "",
    "projected": "",
    "scaleIO": "",
    "csi": "",
    "ephemeral": "",
    "image": "",
}
SECOND_SOURCE_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # upstream's spelling
HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
TEN_MINUTES = 600


def validate_volumes(
    volumes: list[Object], pod_name: str, options: PodOptions, path: str, errors: Errors
) -> dict[str, Object]:
    """Validate volumes. Returns those without errors, by name: only those can be mounted.

    ``pod_name`` is "" in a template.
    """
    valid: dict[str, Object] = {}
    ephemeral_claims = {
        f"{pod_name}-{volume.get('name', '')}"
        for volume in volumes
        if pod_name and volume.get("ephemeral") is not None
    }
    for index, volume in enumerate(volumes):
        volume_errors: Errors = []
        at = f"{path}[{index}]"
        name = volume.get("name", "")
        _validate_source(volume, pod_name, options, at, volume_errors)
        if not name:
            volume_errors.append(required(f"{at}.name"))
        else:
            validate_as(dns1123_label, name, f"{at}.name", volume_errors)
        if name in valid:
            volume_errors.append(duplicate(f"{at}.name", name))
        if not volume_errors:
            valid[volume["name"]] = volume
        errors.extend(volume_errors)
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in ephemeral_claims:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid_value(f"{at}.persistentVolumeClaim.claimName", claim, detail))

    return valid


def _validate_source(
    volume: Object, pod_name: str, options: PodOptions, path: str, errors: Errors
) -> None:
    kinds = [kind for kind in SOURCES if volume.get(kind) is not None]
    if not kinds:
        errors.append(required(path, "must specify a volume type"))
        return

    kind = kinds[0]
    source = volume[kind]
    source_path = f"{path}.{SOURCES[kind] or kind}"
    match kind:
        case "projected":
            validate_file_mode(source.get("defaultMode"), f"{source_path}.defaultMode", errors)
            paths: set[str] = set()
            for index, projection in enumerate(source.get("sources") or ()):
                place = f"{source_path}.sources[{index}]"
                _validate_projection(projection, options, paths, place, errors)
                if len([entry for entry in projection.values() if entry is not None]) > 1:
                    errors.append(
                        forbidden_field(place, "may not specify more than 1 volume type per source")
                    )
        case "image":
            if options.resource_is_pod and not source.get("reference"):
                errors.append(required(f"{source_path}.reference"))
            validate_choice(
                source.get("pullPolicy", ""), PULL_POLICIES, f"{source_path}.pullPolicy", errors
            )
        case (
            "emptyDir"
            | "hostPath"
            | "gitRepo"
            | "secret"
            | "configMap"
            | "persistentVolumeClaim"
            | "ephemeral"
            | ("downwardAPI")
        ):
            _validate_plain_source(kind, source, source_path, errors)
        case _:
            volumesources_validation.validate_storage_source(
                kind, source, volume.get("name", ""), source_path, errors
            )

    for second in kinds[1:]:
        at = f"{path}.{SECOND_SOURCE_NAMES.get(second, second)}"
        errors.append(forbidden_field(at, "may not specify more than 1 volume type"))

    if kind == "ephemeral" and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        for complaint in dns1123_subdomain(claim):
            errors.append(
                invalid_value(
                    f"{path}.name", volume["name"], f"PVC name {quote(claim)}: {complaint}"
                )
            )


# --- plain sources --------------------------------------------------------------------------------


def _validate_plain_source(kind: str, source: Object, path: str, errors: Errors) -> None:
    match kind:
        case "emptyDir":
            limit = source.get("sizeLimit")
            if limit is not None and Quantity.parse(limit).nanos < 0:
                errors.append(
                    forbidden_field(
                        f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"
                    )
                )
        case "hostPath":
            validate_host_path(source, path, errors)
        case "gitRepo":
            validate_required(source, ("repository",), path, errors)
            validate_local_descending_path(source.get("directory", ""), f"{path}.directory", errors)
        case "secret" | "configMap":
            validate_required(source, ("secretName" if kind == "secret" else "name",), path, errors)
            validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
            for index, item in enumerate(source.get("items") or ()):
                _validate_key_to_path(item, f"{path}.items[{index}]", errors)
        case "persistentVolumeClaim":
            validate_required(source, ("claimName",), path, errors)
        case "ephemeral":
            template = source.get("volumeClaimTemplate")
            if template is None:
                errors.append(required(f"{path}.volumeClaimTemplate"))
            else:
                persistentvolumeclaims_validation.validate_claim_template(
                    template, f"{path}.volumeClaimTemplate", errors
                )
        case "downwardAPI":
            validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
            for item in source.get("items") or ():
                _validate_downward_file(item, path, errors)


def validate_host_path(source: Object, path: str, errors: Errors) -> None:
    if not source.get("path"):
        errors.append(required(f"{path}.path"))
        return
    validate_no_backsteps(source["path"], f"{path}.path", errors)
    kind = source.get("type")
    if kind and kind not in HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, HOST_PATH_TYPES))


def _validate_key_to_path(item: Object, path: str, errors: Errors) -> None:
    validate_required(item, ("key", "path"), path, errors)
    validate_local_non_reserved_path(item.get("path", ""), f"{path}.path", errors)
    validate_file_mode(item.get("mode"), f"{path}.mode", errors)


# --- downward API and projections -----------------------------------------------------------------


def _validate_downward_file(item: Object, path: str, errors: Errors) -> None:
    """Validate a file; upstream's errors have no ``items`` and no index here:
    ``downwardAPI.path``."""
    if not item.get("path"):
        errors.append(required(f"{path}.path"))
    validate_local_non_reserved_path(item.get("path", ""), f"{path}.path", errors)
    of_field = item.get("fieldRef")
    of_resource = item.get("resourceFieldRef")
    if of_field is not None:
        validate_field_selector(of_field, VOLUME_FIELDS, f"{path}.fieldRef", errors)
        if of_resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid_value(path, "resource", detail))
    elif of_resource is not None:
        validate_resource_selector(of_resource, f"{path}.resourceFieldRef", errors, volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))

    validate_file_mode(item.get("mode"), f"{path}.mode", errors)


def _validate_projection(
    projection: Object, options: PodOptions, paths: set[str], at: str, errors: Errors
) -> None:
    """Validate a source of a projected volume; ``paths`` collects the paths of its files.

    clusterTrustBundle and podCertificate are dropped earlier: their feature gates are off in v1.36.
    """
    path = at.rpartition(".sources[")[0]
    for kind in ("secret", "configMap"):
        source = projection.get(kind)
        if source is not None:
            if not source.get("name"):
                errors.append(required(f"{at}.{kind}.name"))
            for index, entry in enumerate(source.get("items") or ()):
                _validate_key_to_path(entry, f"{at}.{kind}.items[{index}]", errors)
                _reserve_path(entry.get("path", ""), source.get("name", ""), paths, path, errors)

    source = projection.get("downwardAPI")
    if source is not None:
        for item in source.get("items") or ():
            _validate_downward_file(item, f"{at}.downwardAPI", errors)
            _reserve_path(item.get("path", ""), item.get("path", ""), paths, path, errors)

    source = projection.get("serviceAccountToken")
    if source is not None:
        # Upstream's error has the token's path without its source: ``projected.path``.
        seconds = source.get("expirationSeconds", 0)
        if seconds < TEN_MINUTES:
            errors.append(
                invalid_value(
                    f"{at}.serviceAccountToken.expirationSeconds",
                    seconds,
                    "may not specify a duration less than 10 minutes",
                )
            )
        if seconds > 2**32:
            errors.append(
                invalid_value(
                    f"{at}.serviceAccountToken.expirationSeconds",
                    seconds,
                    "may not specify a duration larger than 2^32 seconds",
                )
            )
        if not source.get("path"):
            errors.append(required(f"{path}.path"))
        elif not options.allow_non_local_token_path:
            validate_local_non_reserved_path(source["path"], f"{path}.path", errors)


def _reserve_path(target: str, shown: str, paths: set[str], path: str, errors: Errors) -> None:
    if target and target in paths:
        errors.append(invalid_value(path, shown, "conflicting duplicate paths"))
    paths.add(target)


# --- overlapping paths (warningsForOverlappingVirtualPaths) ---------------------------------------


class _FilePath(NamedTuple):
    """The path of a file in a volume, and the source that it comes from."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        if self.source:
            return f"{quote(self.path)} ({self.source})"
        return quote(self.path)


def overlapping_paths(volumes: list[Object]) -> Iterator[str]:
    for volume in volumes:
        name = volume.get("name", "")
        for kind, shown, name_field in (
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ):
            source = volume.get(kind)
            if source is not None:
                described = shown
                if name_field:
                    described = f"{shown} {quote(source.get(name_field, ''))}"
                yield from _overlaps(
                    _file_paths(source, ""), [], f"volume {quote(name)} ({described})"
                )
        earlier: list[_FilePath] = []
        for source in nested_list(volume, "projected", "sources"):
            if not any(value is not None for value in source.values()):
                yield f"volume {quote(name)} (Projected) has no sources provided"
            else:
                yield from _overlaps(
                    _projected_paths(source), earlier, f"volume {quote(name)} (Projected)"
                )


def _projected_paths(source: Object) -> list[_FilePath]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        projection = source.get(kind)
        if projection is not None and projection.get("items"):
            return _file_paths(projection, f"{shown} {quote(projection.get('name', ''))}")
    projection = source.get("downwardAPI")
    if projection is not None and projection.get("items"):
        return _file_paths(projection, "DownwardAPI")
    projection = source.get("serviceAccountToken")
    if projection is not None:
        return [_FilePath(projection.get("path", ""), "ServiceAccountToken")]
    return []


def _file_paths(source: Object, shown: str) -> list[_FilePath]:
    return [_FilePath(item.get("path", ""), shown) for item in source.get("items") or ()]


def _overlaps(paths: list[_FilePath], earlier: list[_FilePath], prefix: str) -> Iterator[str]:
    """Yield warnings of paths that are equal to earlier ones, above or below them; adds the paths
    to ``earlier``."""
    for file in paths:
        new = file._replace(path=file.path.rstrip("/"))
        for old in earlier:
            if _overlap(new.path, old.path):
                yield f"{prefix}: overlapping paths: {new} with {old}"
        earlier.append(new)


def _overlap(path: str, other: str) -> bool:
    """Return whether one of the paths is the other, or above it."""
    if not path or not other:
        return False
    return f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")
