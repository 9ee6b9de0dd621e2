"""The volumes of a pod and their mounts (``pkg/apis/core/validation/validation.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kubepy.api.errors import duplicate, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.claims import validate_claim_template
from kubepy.apiserver.validation.fields import (
    Errors,
    validate_choice,
    validate_file_mode,
    validate_format,
    validate_local_descending_path,
    validate_local_non_reserved_path,
    validate_no_backsteps,
)
from kubepy.apiserver.validation.pods.env import VOLUME_FIELDS, validate_field_selector, validate_resource_selector
from kubepy.apiserver.validation.pods.options import PodOptions
from kubepy.apiserver.validation.storage_sources import validate_storage_source
from kubepy.quoting import quote

# In upstream's order; the second entry is what the field is called in an error, where that differs.
SOURCES: dict[str, str] = {
    "emptyDir": "", "hostPath": "", "gitRepo": "", "gcePersistentDisk": "persistentDisk", "awsElasticBlockStore": "",
    "secret": "", "nfs": "", "iscsi": "", "glusterfs": "", "flocker": "", "persistentVolumeClaim": "", "rbd": "",
    "cinder": "", "cephfs": "", "quobyte": "", "downwardAPI": "", "fc": "", "flexVolume": "", "configMap": "",
    "azureFile": "", "vsphereVolume": "", "photonPersistentDisk": "", "portworxVolume": "", "azureDisk": "",
    "storageos": "", "projected": "", "scaleIO": "", "csi": "", "ephemeral": "", "image": "",
}
SECOND_SOURCE_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # upstream's spelling
HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
TEN_MINUTES = 600


def validate_volumes(volumes: list[Object], pod_name: str, options: PodOptions, path: str,
                     errors: Errors) -> dict[str, Object]:
    """The volumes without errors, by name: only those can be mounted. ``pod_name`` is "" in a template."""
    good: dict[str, Object] = {}
    made_for = {f"{pod_name}-{entry.get('name', '')}" for entry in volumes if pod_name and entry.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        found: Errors = []
        item_path = f"{path}[{index}]"
        name = volume.get("name", "")
        _validate_source(volume, pod_name, options, item_path, found)
        if not name:
            found.append(required(f"{item_path}.name"))
        else:
            validate_format(name, dns1123_label(name), f"{item_path}.name", found)
        if name in good:
            found.append(duplicate(f"{item_path}.name", name))
        if not found:
            good[volume["name"]] = volume
        errors.extend(found)
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if made_for and claim in made_for:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid_value(f"{path}[{index}].persistentVolumeClaim.claimName", claim, detail))
    return good


def _validate_source(volume: Object, pod_name: str, options: PodOptions, path: str, errors: Errors) -> None:
    found = [kind for kind in SOURCES if volume.get(kind) is not None]
    if not found:
        errors.append(required(path, "must specify a volume type"))
        return
    kind = found[0]
    item_path = f"{path}.{SOURCES[kind] or kind}"
    source = volume[kind]
    match kind:
        case "projected":
            validate_file_mode(source.get("defaultMode"), f"{item_path}.defaultMode", errors)
            paths: set[str] = set()
            for index, projection in enumerate(source.get("sources") or ()):
                place = f"{item_path}.sources[{index}]"
                _validate_projection(projection, options, paths, item_path, place, errors)
                if len([entry for entry in projection.values() if entry is not None]) > 1:
                    errors.append(forbidden_field(place, "may not specify more than 1 volume type per source"))
        case "image":
            if options.resource_is_pod and not source.get("reference"):
                errors.append(required(f"{item_path}.reference"))
            validate_choice(source.get("pullPolicy", ""), PULL_POLICIES, f"{item_path}.pullPolicy", errors)
        case _ if kind in _VALIDATORS:
            _VALIDATORS[kind](source, item_path, errors)
        case _:
            validate_storage_source(kind, source, volume.get("name", ""), item_path, errors)
    for second in found[1:]:
        at = f"{path}.{SECOND_SOURCE_NAMES.get(second, second)}"
        errors.append(forbidden_field(at, "may not specify more than 1 volume type"))
    if kind == "ephemeral" and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        for complaint in dns1123_subdomain(claim):
            errors.append(invalid_value(f"{path}.name", volume["name"], f"PVC name {quote(claim)}: {complaint}"))


# --- plain sources ------------------------------------------------------------------------------------------------


def _validate_empty_dir(source: Object, path: str, errors: Errors) -> None:
    if (limit := source.get("sizeLimit")) is not None:
        if Quantity.parse(limit).nanos < 0:
            errors.append(forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def validate_host_path(source: Object, path: str, errors: Errors) -> None:
    if not source.get("path"):
        errors.append(required(f"{path}.path"))
        return
    validate_no_backsteps(source["path"], f"{path}.path", errors)
    if (kind := source.get("type")) and kind not in HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, HOST_PATH_TYPES))


def _validate_git_repo(source: Object, path: str, errors: Errors) -> None:
    if not source.get("repository"):
        errors.append(required(f"{path}.repository"))
    validate_local_descending_path(source.get("directory", ""), f"{path}.directory", errors)


def _validate_secret(source: Object, path: str, errors: Errors) -> None:
    _validate_keyed(source, "secretName", path, errors)


def _validate_config_map(source: Object, path: str, errors: Errors) -> None:
    _validate_keyed(source, "name", path, errors)


def _validate_keyed(source: Object, name_field: str, path: str, errors: Errors) -> None:
    if not source.get(name_field):
        errors.append(required(f"{path}.{name_field}"))
    validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    for index, item in enumerate(source.get("items") or ()):
        _validate_key_to_path(item, f"{path}.items[{index}]", errors)


def _validate_key_to_path(item: Object, path: str, errors: Errors) -> None:
    for field in ("key", "path"):
        if not item.get(field):
            errors.append(required(f"{path}.{field}"))
    validate_local_non_reserved_path(item.get("path", ""), f"{path}.path", errors)
    validate_file_mode(item.get("mode"), f"{path}.mode", errors)


def _validate_claim_source(source: Object, path: str, errors: Errors) -> None:
    if not source.get("claimName"):
        errors.append(required(f"{path}.claimName"))


def _validate_ephemeral(source: Object, path: str, errors: Errors) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        errors.append(required(f"{path}.volumeClaimTemplate"))
    else:
        validate_claim_template(template, f"{path}.volumeClaimTemplate", errors)


# --- downward API and projections ---------------------------------------------------------------------------------


def _validate_downward_api(source: Object, path: str, errors: Errors) -> None:
    validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    for item in source.get("items") or ():
        _validate_downward_file(item, path, errors)


def _validate_downward_file(item: Object, path: str, errors: Errors) -> None:
    """Upstream names these fields without ``items`` and the index: ``downwardAPI.path``."""
    if not item.get("path"):
        errors.append(required(f"{path}.path"))
    validate_local_non_reserved_path(item.get("path", ""), f"{path}.path", errors)
    of_field, of_resource = item.get("fieldRef"), item.get("resourceFieldRef")
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


def _validate_projection(projection: Object, options: PodOptions, paths: set[str], path: str, at: str,
                         errors: Errors) -> None:
    """clusterTrustBundle and podCertificate are behind gates that are off in v1.36, and dropped before."""
    for kind in ("secret", "configMap"):
        if (source := projection.get(kind)) is not None:
            if not source.get("name"):
                errors.append(required(f"{at}.{kind}.name"))
            for index, entry in enumerate(source.get("items") or ()):
                _validate_key_to_path(entry, f"{at}.{kind}.items[{index}]", errors)
                _claim_path(entry.get("path", ""), source.get("name", ""), paths, path, errors)
    if (source := projection.get("downwardAPI")) is not None:
        for item in source.get("items") or ():
            _validate_downward_file(item, f"{at}.downwardAPI", errors)
            _claim_path(item.get("path", ""), item.get("path", ""), paths, path, errors)
    if (source := projection.get("serviceAccountToken")) is not None:
        # Upstream names the token's path without its source: ``projected.path``.
        seconds = source.get("expirationSeconds", 0)
        if seconds < TEN_MINUTES:
            errors.append(invalid_value(f"{at}.serviceAccountToken.expirationSeconds", seconds,
                                        "may not specify a duration less than 10 minutes"))
        if seconds > 2**32:
            errors.append(invalid_value(f"{at}.serviceAccountToken.expirationSeconds", seconds,
                                        "may not specify a duration larger than 2^32 seconds"))
        if not source.get("path"):
            errors.append(required(f"{path}.path"))
        elif not options.allow_non_local_token_path:
            validate_local_non_reserved_path(source["path"], f"{path}.path", errors)


def _claim_path(target: str, shown: str, paths: set[str], path: str, errors: Errors) -> None:
    if target and target in paths:
        errors.append(invalid_value(path, shown, "conflicting duplicate paths"))
    paths.add(target)


_VALIDATORS: dict[str, Any] = {
    "emptyDir": _validate_empty_dir, "hostPath": validate_host_path, "gitRepo": _validate_git_repo,
    "secret": _validate_secret, "configMap": _validate_config_map, "persistentVolumeClaim": _validate_claim_source,
    "downwardAPI": _validate_downward_api, "ephemeral": _validate_ephemeral,
}


# --- overlapping paths (warningsForOverlappingVirtualPaths) ---------------------------------------------------------


class _Placed(NamedTuple):
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def overlapping_paths(volumes: list[Object]) -> Iterator[str]:
    for volume in volumes:
        name = volume.get("name", "")
        for kind, described in _kinds(volume):
            items = (volume[kind] or {}).get("items") or ()
            yield from (_warning(name, described, overlap) for overlap in _overlaps(_items(items, "")))
        if volume.get("projected") is not None:
            sources = volume["projected"].get("sources") or ()
            placed: list[_Placed] = []
            for source in sources:
                if not any(value is not None for value in source.values()):
                    yield f"volume {quote(name)} (Projected) has no sources provided"
                    continue
                for projected_path in _projected_paths(source):
                    clean = projected_path._replace(path=projected_path.path.rstrip("/"))
                    yield from (_warning(name, "Projected", f"{clean} with {other}") for other in _colliding(placed, clean))
                    placed.append(clean)


def _kinds(volume: Object) -> Iterator[tuple[str, str]]:
    if volume.get("configMap") is not None:
        yield "configMap", f'ConfigMap {quote(volume["configMap"].get("name", ""))}'
    if volume.get("secret") is not None:
        yield "secret", f'Secret {quote(volume["secret"].get("secretName", ""))}'
    if volume.get("downwardAPI") is not None:
        yield "downwardAPI", "DownwardAPI"


def _warning(name: str, described: str, overlap: str) -> str:
    return f"volume {quote(name)} ({described}): overlapping paths: {overlap}"


def _projected_paths(source: Object) -> list[_Placed]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (given := source.get(kind)) is not None and given.get("items"):
            return _items(given["items"], f'{shown} {quote(given.get("name", ""))}')
    if (given := source.get("downwardAPI")) is not None and given.get("items"):
        return _items(given["items"], "DownwardAPI")
    if (given := source.get("serviceAccountToken")) is not None:
        return [_Placed(given.get("path", ""), "ServiceAccountToken")]
    return []


def _items(items: Iterable[Object], source: str) -> list[_Placed]:
    return [_Placed(item.get("path", ""), source) for item in items]


def _overlaps(paths: list[_Placed]) -> Iterator[str]:
    placed: list[_Placed] = []
    for entry in paths:
        clean = entry._replace(path=entry.path.rstrip("/"))
        yield from (f"{clean} with {other}" for other in _colliding(placed, clean))
        placed.append(clean)


def _colliding(placed: list[_Placed], new: _Placed) -> list[_Placed]:
    if not new.path:
        return []
    return [entry for entry in placed if entry.path and (
        f"{entry.path}/".startswith(f"{new.path}/") or f"{new.path}/".startswith(f"{entry.path}/"))]
