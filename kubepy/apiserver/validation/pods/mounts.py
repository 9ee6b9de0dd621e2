"""Volume mounts and volume devices of a container (``ValidateVolumeMounts``, ``ValidateVolumeDevices`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import field_not_found, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.apiserver.validation.fields import Errors, validate_local_descending_path

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_mounts_and_devices(container: Object, volumes: dict[str, Object], path: str, errors: Errors) -> None:
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    if not mounts and not devices:
        return
    device_paths = {one.get("name", ""): one.get("devicePath", "") for one in devices}
    mount_paths = {one.get("name", ""): one.get("mountPath", "") for one in mounts}
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        _validate_target(mount, volumes, seen, f"{path}.volumeMounts[{index}]", errors)
        _validate_against_devices(mount, device_paths, f"{path}.volumeMounts[{index}]", errors)
        _validate_mount_options(mount, container, index, f"{path}.volumeMounts", errors)
    _validate_devices(devices, mount_paths, volumes, f"{path}.volumeDevices", errors)


def _validate_target(mount: Object, volumes: dict[str, Object], seen: set[str], path: str, errors: Errors) -> None:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if name not in volumes:
        errors.append(field_not_found(f"{path}.name", name))
    if not target:
        errors.append(required(f"{path}.mountPath"))
    if target in seen:
        errors.append(invalid_value(f"{path}.mountPath", target, "must be unique"))
    seen.add(target)


def _validate_against_devices(mount: Object, device_paths: dict[str, str], path: str, errors: Errors) -> None:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    if name in device_paths:
        errors.append(invalid_value(f"{path}.name", name, "must not already exist in volumeDevices"))
    if target in device_paths.values():
        errors.append(invalid_value(f"{path}.mountPath", target, "must not already exist as a path in volumeDevices"))


def _validate_mount_options(mount: Object, container: Object, index: int, path: str, errors: Errors) -> None:
    """Upstream names these fields without the mount's index: ``volumeMounts.subPath``."""
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub_path:
        validate_local_descending_path(sub_path, f"{path}.subPath", errors)
    if expression:
        if sub_path:
            why = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid_value(f"{path}[{index}].subPathExpr", expression, why))
        validate_local_descending_path(expression, f"{path}.subPathExpr", errors)
    if mount.get("mountPropagation") is not None:
        _validate_propagation(mount["mountPropagation"], container, f"{path}.mountPropagation", errors)
    if mount.get("recursiveReadOnly") is not None:
        _validate_recursive_read_only(mount, f"{path}.recursiveReadOnly", errors)


def _validate_propagation(propagation: str, container: Object, path: str, errors: Errors) -> None:
    if propagation not in PROPAGATIONS:
        errors.append(not_supported(path, propagation, PROPAGATIONS))
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        why = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden_field(path, why))


def _validate_recursive_read_only(mount: Object, path: str, errors: Errors) -> None:
    mode = mount["recursiveReadOnly"]
    if mode not in RECURSIVE_READ_ONLY:
        errors.append(not_supported(path, mode, RECURSIVE_READ_ONLY))
    elif mode != "Disabled":
        if not mount.get("readOnly"):
            errors.append(forbidden_field(path, "may only be specified when readOnly is true"))
        if mount.get("mountPropagation") not in (None, "None"):
            why = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden_field(path, why))


def _validate_devices(devices: list[Object] | tuple[()], mount_paths: dict[str, str], volumes: dict[str, Object],
                      path: str, errors: Errors) -> None:
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        at = f"{path}[{index}]"
        _validate_device_name(device.get("name", ""), names, volumes, at, errors)
        _validate_device_path(device.get("devicePath", ""), paths, at, errors)
        if device.get("name", "") in mount_paths:
            errors.append(invalid_value(f"{at}.name", device["name"], "must not already exist in volumeMounts"))
        if device.get("devicePath", "") in mount_paths.values():
            why = "must not already exist as a path in volumeMounts"
            errors.append(invalid_value(f"{at}.devicePath", device["devicePath"], why))


def _validate_device_name(name: str, names: set[str], volumes: dict[str, Object], path: str, errors: Errors) -> None:
    volume = volumes.get(name)
    if not name:
        errors.append(required(f"{path}.name"))
    if name in names:
        errors.append(invalid_value(f"{path}.name", name, "must be unique"))
    if volume is None:
        errors.append(field_not_found(f"{path}.name", name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errors.append(invalid_value(f"{path}.name", name, why))
    if name:
        names.add(name)


def _validate_device_path(target: str, paths: set[str], path: str, errors: Errors) -> None:
    if not target:
        errors.append(required(f"{path}.devicePath"))
    if target in paths:
        errors.append(invalid_value(f"{path}.devicePath", target, "must be unique"))
    if ".." in target.split("/"):
        errors.append(invalid_value(f"{path}.devicePath", target, "can not contain backsteps ('..')"))
    else:
        paths.add(target)
