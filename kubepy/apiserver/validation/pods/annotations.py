"""The annotations that mean something to a pod (``ValidatePodSpecificAnnotations`` upstream)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.errors import FieldError, forbidden_field, invalid_value
from kubepy.api.meta import Object
from kubepy.api.objects.pods import containers_with_paths
from kubepy.apiserver.validation.fields import Errors, validate_local_descending_path
from kubepy.apiserver.validation.pods.options import DELETION_COST, PodOptions, is_deletion_cost
from kubepy.quoting import quote

MIRROR = "kubernetes.io/config.mirror"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
RUNTIME_DEFAULTS = ("runtime/default", "docker/default")
MUST_MATCH = "type in annotation and field must match"


def validate_pod_annotations(annotations: Mapping[str, str] | None, spec: Object, options: PodOptions, path: str,
                             errors: Errors) -> None:
    if not annotations:
        return
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid_value(f"{path}[{MIRROR}]", annotations[MIRROR], why))
    if not options.allow_invalid_deletion_cost and not is_deletion_cost(dict(annotations)):
        errors.append(invalid_value(f"{path}[{DELETION_COST}]", annotations[DELETION_COST], "must be a 32bit integer"))
    for key in sorted(annotations):
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            _validate_seccomp(annotations[key], f"{path}.{key}", errors)
    for key in sorted(annotations):
        if key.startswith(APP_ARMOR):
            _validate_app_armor(key, annotations[key], spec, f"{path}[{key}]", errors)


def _validate_seccomp(profile: str, path: str, errors: Errors) -> None:
    if profile in (*RUNTIME_DEFAULTS, "unconfined"):
        return
    if profile.startswith("localhost/"):
        validate_local_descending_path(profile.removeprefix("localhost/"), path, errors)
    else:
        errors.append(invalid_value(path, profile, "must be a valid seccomp profile"))


def _validate_app_armor(key: str, profile: str, spec: Object, path: str, errors: Errors) -> None:
    container = key.removeprefix(APP_ARMOR)
    if all(one.get("name") != container for one, _ in containers_with_paths(spec, "")):
        errors.append(invalid_value(path, container, "container not found"))
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
        errors.append(invalid_value(path, profile, f"invalid AppArmor profile name: {quote(profile)}"))


def validate_profiles_match(annotations: Mapping[str, str] | None, spec: Object, path: str, errors: Errors) -> None:
    """The old annotations and the new fields must not contradict each other."""
    if not annotations or not any("security." in key for key in annotations):
        return
    pod_context = spec.get("securityContext") or {}
    errors.extend(_contradiction(annotations.get(SECCOMP_POD), pod_context.get("seccompProfile"), "seccomp",
                                 f"{path}.securityContext.seccompProfile"))
    containers = [(one, at, one.get("securityContext") or {}) for one, at in containers_with_paths(spec, path)]
    for container, at, context in containers:
        noted = annotations.get(SECCOMP_CONTAINER + container.get("name", ""))
        errors.extend(_contradiction(noted, context.get("seccompProfile"), "seccomp",
                                     f"{at}.securityContext.seccompProfile"))
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, at, context in containers:
        noted = annotations.get(APP_ARMOR + container.get("name", ""))
        profile = context.get("appArmorProfile") or pod_context.get("appArmorProfile")
        errors.extend(_contradiction(noted, profile, "apparmor", f"{at}.securityContext.appArmorProfile"))


def _contradiction(noted: str | None, profile: Object | None, what: str, path: str) -> list[FieldError]:
    if noted is None or profile is None:
        return []
    match profile.get("type"):
        case "Unconfined":
            same = noted == "unconfined"
        case "RuntimeDefault":
            same = noted in RUNTIME_DEFAULTS if what == "seccomp" else noted == "runtime/default"
        case "Localhost":
            same = noted.startswith("localhost/")
            if same and noted.removeprefix("localhost/") != profile.get("localhostProfile"):
                return [forbidden_field(f"{path}.localhostProfile",
                                        f"{what} profile in annotation and field must match")]
        case _:
            same = True
    return [] if same else [forbidden_field(f"{path}.type", f"{what} {MUST_MATCH}")]


def validate_annotation_changes(new: Mapping[str, str], old: Mapping[str, str], path: str, errors: Errors) -> None:
    """Some annotations of a pod stay as they were made."""
    for key in sorted(old):
        if new.get(key) != old[key]:
            _forbid(key, "remove or update", path, errors)
    for key in sorted(new):
        if key not in old:
            _forbid(key, "add", path, errors)


def _forbid(key: str, verb: str, path: str, errors: Errors) -> None:
    if key.startswith(APP_ARMOR):
        errors.append(forbidden_field(f"{path}[{key}]", f"may not {verb} AppArmor annotations"))
    if key == MIRROR:
        errors.append(forbidden_field(f"{path}[{key}]", f"may not {verb} mirror pod annotation"))
