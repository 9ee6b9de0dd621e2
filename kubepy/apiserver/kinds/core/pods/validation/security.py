"""Security contexts of pods and containers (``ValidateSecurityContext``,
``validatePodSpecSecurityContext``)."""

from __future__ import annotations

import re

from kubepy.api.errors import (
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.api.objects.pods import containers_with_paths
from kubepy.api.values.names import dns1123_subdomain
from kubepy.apiserver.validation.fields import (
    Errors,
    go_view,
    validate_as,
    validate_local_descending_path,
    validate_optional_choice,
)
from kubepy.apiserver.validation.formats import user_or_group_id

PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
SYSCTL_PATTERN = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
NET_BIOS = r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}'
IPC_SYSCTLS = frozenset(
    ("kernel.sem", "fs.mqueue.msg_max", "fs.mqueue.msgsize_max", "fs.mqueue.queues_max")
)


def validate_security_context(
    context: Object, path: str, errors: Errors, *, host_users: bool
) -> None:
    """Validate the security context of a container."""
    for field in ("runAsUser", "runAsGroup"):
        _validate_id(context.get(field), f"{path}.{field}", errors)

    mount = context.get("procMount")
    if mount is not None:
        validate_optional_choice(mount, ("Default", "Unmasked"), f"{path}.procMount", errors)
        if host_users and mount == "Unmasked":
            detail = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid_value(f"{path}.procMount", mount, detail))

    validate_seccomp_profile(context.get("seccompProfile"), f"{path}.seccompProfile", errors)

    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid_value(path, go_view("core.SecurityContext", context), detail))
        if "CAP_SYS_ADMIN" in nested_list(context, "capabilities", "add"):
            detail = (
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                "CAP_SYS_ADMIN"
            )
            errors.append(invalid_value(path, go_view("core.SecurityContext", context), detail))

    validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", errors)
    validate_app_armor_profile(context.get("appArmorProfile"), f"{path}.appArmorProfile", errors)


def _validate_id(number: int | None, path: str, errors: Errors) -> None:
    if number is not None:
        validate_as(user_or_group_id, number, path, errors)


def validate_pod_security_context(
    spec: Object, path: str, errors: Errors, *, allow_namespaced_sysctls: bool
) -> None:
    """Validate the security context of a pod, and the fields of its spec that belong to it
    (hostPID, hostIPC)."""
    context = spec.get("securityContext")
    if not context:
        if spec.get("shareProcessNamespace") and spec.get("hostPID"):
            _validate_shared_processes(path, errors)
        return

    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        _validate_id(context.get(field), f"{path}.{field}", errors)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        _validate_id(group, f"{path}.supplementalGroups[{index}]", errors)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        _validate_shared_processes(path, errors)

    if sysctls := context.get("sysctls"):
        names = [sysctl.get("name", "") for sysctl in sysctls]
        for index, name in enumerate(names):
            at = f"{path}.sysctls[{index}].name"
            if not name:
                errors.append(required(at))
            elif len(name) > 253 or not re.fullmatch(SYSCTL_PATTERN, name):
                detail = f"must have at most 253 characters and match regex ^{SYSCTL_PATTERN}$"
                errors.append(invalid_value(at, name, detail))
            elif name in names[:index]:
                errors.append(duplicate(at, name))
            if not allow_namespaced_sysctls and (detail := host_sysctl_complaint(name, spec)):
                errors.append(invalid_value(at, name, detail))

    validate_optional_choice(
        context.get("fsGroupChangePolicy"),
        ("Always", "OnRootMismatch"),
        f"{path}.fsGroupChangePolicy",
        errors,
    )
    validate_seccomp_profile(context.get("seccompProfile"), f"{path}.seccompProfile", errors)
    validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", errors)
    validate_app_armor_profile(context.get("appArmorProfile"), f"{path}.appArmorProfile", errors)
    validate_optional_choice(
        context.get("supplementalGroupsPolicy"),
        ("Merge", "Strict"),
        f"{path}.supplementalGroupsPolicy",
        errors,
    )
    validate_optional_choice(
        context.get("seLinuxChangePolicy"),
        ("Recursive",),  # the gate SELinuxMount is off
        f"{path}.seLinuxChangePolicy",
        errors,
    )


def _validate_shared_processes(path: str, errors: Errors) -> None:
    detail = "ShareProcessNamespace and HostPID cannot both be enabled"
    errors.append(invalid_value(f"{path}.shareProcessNamespace", True, detail))


def host_sysctl_complaint(sysctl: str, spec: Object) -> str:
    """Return why a sysctl of a namespace that the pod shares with the host cannot be set, "" if it
    can."""
    name = sysctl.replace("/", ".")
    if spec.get("hostNetwork") and name.startswith("net."):
        return "may not be specified when 'hostNetwork' is true"
    if spec.get("hostIPC") and (
        name in IPC_SYSCTLS or name.startswith(("kernel.shm", "kernel.msg", "fs.mqueue."))
    ):
        return "may not be specified when 'hostIPC' is true"
    return ""


# --- profiles -------------------------------------------------------------------------------------


def validate_seccomp_profile(profile: Object | None, path: str, errors: Errors) -> None:
    if profile is None:
        return
    kind = profile.get("type", "")
    local = profile.get("localhostProfile")

    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in PROFILE_TYPES:
        errors.append(not_supported(f"{path}.type", kind, PROFILE_TYPES))

    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            errors.append(
                invalid_value(
                    f"{path}.localhostProfile", go_view("core.SeccompProfile", profile), detail
                )
            )
    elif local is None:
        errors.append(
            required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        )
    else:
        validate_local_descending_path(local, f"{path}.localhostProfile", errors)


def validate_app_armor_profile(profile: Object | None, path: str, errors: Errors) -> None:
    if profile is None:
        return

    kind = profile.get("type", "")
    local = profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{path}.type", "type is required when appArmorProfile is set"))
    elif kind not in PROFILE_TYPES:
        errors.append(not_supported(f"{path}.type", kind, PROFILE_TYPES))
    elif kind == "Localhost":
        at = f"{path}.localhostProfile"
        if not local:
            errors.append(required(at, "must be set when AppArmor type is Localhost"))
        elif local != local.strip():
            errors.append(invalid_value(at, local, "must not be padded with whitespace"))
        if local and len(local.encode()) > 4095:
            errors.append(too_long(at, 4095))
    elif local is not None:
        detail = "can only be set when AppArmor type is Localhost"
        errors.append(invalid_value(f"{path}.localhostProfile", local, detail))


# --- Windows --------------------------------------------------------------------------------------


def validate_windows_options(options: Object | None, path: str, errors: Errors) -> None:
    if not options:
        return
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        validate_as(dns1123_subdomain, name, f"{path}.gmsaCredentialSpecName", errors)

    spec = options.get("gmsaCredentialSpec")
    if spec is not None:
        if not spec:
            errors.append(
                invalid_value(
                    f"{path}.gmsaCredentialSpec",
                    spec,
                    "gmsaCredentialSpec cannot be an empty string",
                )
            )
        elif len(spec.encode()) > 64 * 1024:
            errors.append(
                invalid_value(
                    f"{path}.gmsaCredentialSpec",
                    spec,
                    "gmsaCredentialSpec size must be under 64 KiB",
                )
            )

    user = options.get("runAsUserName")
    if user is not None:
        validate_as(windows_user_name, user, f"{path}.runAsUserName", errors)


def windows_user_name(name: str) -> list[str]:
    """Check a name like ``DOMAIN\\user`` or ``user``; returns complaints."""
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if re.search(r"[\x00-\x1f\x7f]", name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    complaints = []
    if backslash and len(domain) >= 256:
        complaints.append("runAsUserName's Domain length must be under 256 characters")

    if backslash and not (
        re.fullmatch(NET_BIOS, domain) or re.fullmatch(rf"{DNS_LABEL}(?:\.{DNS_LABEL})*", domain)
    ):
        complaints.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")

    if not user:
        complaints.append("runAsUserName's User cannot be empty")
    elif len(user) > 104:
        complaints.append("runAsUserName's User length must not be longer than 104 characters")

    if re.fullmatch(r"[\. ]+", user):
        complaints.append("runAsUserName's User cannot contain only periods or spaces")

    if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
        complaints.append(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        )

    return complaints


def validate_host_process(spec: Object, path: str, errors: Errors) -> None:
    """Require that all containers are Windows HostProcess containers, or none
    (``validateWindowsHostProcessPod``)."""
    of_pod = _host_process(spec)
    containers = list(containers_with_paths(spec, path))
    running = 0
    for container, at in containers:
        own = _host_process(container)
        if of_pod is not None and own is not None and of_pod != own:
            detail = (
                f"pod hostProcess value must be identical if both are specified, was "
                f"{str(of_pod).lower()}"
            )
            errors.append(
                invalid_value(f"{at}.securityContext.windowsOptions.hostProcess", own, detail)
            )
        running += bool(of_pod if own is None else own)

    if running and running != len(containers):
        detail = (
            "If pod contains any hostProcess containers then all containers must be "
            "HostProcess containers"
        )
        errors.append(invalid_value(path, "", detail))

    if running and not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid_value(f"{path}.hostNetwork", False, detail))


def _host_process(holder: Object) -> bool | None:
    options = nested_map(holder, "securityContext", "windowsOptions")
    return options.get("hostProcess")


def validate_os(spec: Object, path: str, errors: Errors) -> None:
    """Validate ``spec.os``, and forbid the fields that only the other operating system has."""
    system = (spec.get("os") or {}).get("name", "")
    if not system:
        errors.append(required(f"{path}.os.name"))
    elif system not in ("linux", "windows"):
        errors.append(not_supported(f"{path}.os", system, ("linux", "windows")))
    elif system == "linux":
        for holder, at in ((spec, path), *containers_with_paths(spec, path)):
            if (holder.get("securityContext") or {}).get("windowsOptions") is not None:
                errors.append(
                    forbidden_field(
                        f"{at}.securityContext.windowsOptions",
                        "windows options cannot be set for a linux pod",
                    )
                )
    else:
        detail = "cannot be set for a windows pod"
        for field in LINUX_POD_FIELDS:
            block, _, name = field.rpartition(".")
            if ((spec.get(block) or {}) if block else spec).get(name) is not None:
                errors.append(forbidden_field(f"{path}.{field}", detail))
        for container, at in containers_with_paths(spec, path):
            context = container.get("securityContext") or {}
            errors.extend(
                forbidden_field(f"{at}.securityContext.{field}", detail)
                for field in LINUX_CONTAINER_FIELDS
                if context.get(field) is not None
            )


# The fields of pods in upstream's order.
LINUX_POD_FIELDS = (
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)
LINUX_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
