"""The Pod Security Standards: the checks of a pod at the levels ``baseline`` and ``restricted``.

A check returns a violation, which has a reason and a detail. The checks of a level, and their
strictness, depend on the version of the standard that a namespace asks for. Upstream:
``k8s.io/pod-security-admission/policy``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.api.meta import AnyObject, Object, nested_list, nested_map
from kubepy.api.values.goformat import quote

LATEST = 36  # the minor version of the cluster, which "latest" means
LEVELS = ("privileged", "baseline", "restricted")

_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
# The version since which a sysctl is allowed.
_SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
_ALLOWED_VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_OTHER_VOLUMES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_SAFE_PROFILES = ("RuntimeDefault", "Localhost")


class LevelVersion(NamedTuple):
    """A level at a version of the standard; ``minor`` None: the latest."""

    level: str = "privileged"
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


class PolicyViolation(NamedTuple):
    reason: str
    detail: str

    def __str__(self) -> str:
        if self.detail:
            return f"{self.reason} ({self.detail})"
        return self.reason


class CheckedPod(NamedTuple):
    """The checked parts of a pod or pod template. ``minor``: the version of the standard."""

    annotations: Mapping[str, str]
    spec: AnyObject
    minor: int

    @property
    def containers(self) -> Iterator[Object]:
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(field) or ()

    @property
    def context(self) -> Object:
        return nested_map(self.spec, "securityContext")

    @property
    def is_windows(self) -> bool:
        return nested_map(self.spec, "os").get("name") == "windows"

    @property
    def has_own_users(self) -> bool:
        """Return whether the pod runs in a user namespace, whose root is an ordinary user outside
        of it."""
        return self.spec.get("hostUsers") is False and self.minor >= 35


def violations(policy: LevelVersion, metadata: AnyObject, spec: AnyObject) -> list[PolicyViolation]:
    """Return all that a level forbids in a pod, in upstream's order."""
    minor = LATEST if policy.minor is None else min(policy.minor, LATEST)
    pod = CheckedPod(nested_map(metadata, "annotations"), spec, minor)
    if policy.level == "privileged":
        return []
    results = [check(pod) for check, applies in _CHECKS if applies(policy.level, minor)]
    return [violation for violation in results if violation is not None]


Check = Callable[[CheckedPod], PolicyViolation | None]
Applies = Callable[[str, int], bool]

# All checks, with the levels and minor versions to which they apply: those of the baseline by
# upstream's names, then those of restricted, some of which replace a check of the baseline.
_CHECKS: list[tuple[Check, Applies]] = []


def _check(applies: Applies = lambda level, minor: True) -> Callable[[Check], Check]:
    """Add a check to the list. ``applies``: to a level and minor version."""

    def register(check: Check) -> Check:
        _CHECKS.append((check, applies))
        return check

    return register


# --- words ----------------------------------------------------------------------------------------


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)


def _some(word: str, count: int, plural: str = "") -> str:
    if count == 1:
        return word
    return plural or f"{word}s"


def _named(names: list[str]) -> str:
    """List containers: ``container "a"`` or ``containers "a", "b"``."""
    return f"{_some('container', len(names))} {_quoted(names)}"


def _setters(of_pod: bool, names: list[str]) -> str:
    """Name the pod, some containers, or both as those that set a forbidden value."""
    return " and ".join([*(["pod"] if of_pod else []), *([_named(names)] if names else [])])


def _context(container: AnyObject) -> Object:
    return nested_map(container, "securityContext")


def _containers_where(pod: CheckedPod, is_bad: Callable[[AnyObject], Any]) -> list[str]:
    return [container["name"] for container in pod.containers if is_bad(container)]


# --- baseline -------------------------------------------------------------------------------------


@_check()
def _app_armor(pod: CheckedPod) -> PolicyViolation | None:
    def kind(context: AnyObject) -> str:
        return str(nested_map(context, "appArmorProfile").get("type", "RuntimeDefault"))

    bad = _containers_where(pod, lambda container: kind(_context(container)) not in _SAFE_PROFILES)
    contexts = [pod.context, *(_context(container) for container in pod.containers)]
    values = sorted({kind(context) for context in contexts if kind(context) not in _SAFE_PROFILES})
    notes = sorted(
        f"{key}={quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    setters = _setters(kind(pod.context) not in _SAFE_PROFILES, bad)
    setters = " and ".join(
        part for part in (setters, _some("annotation", len(notes)) if notes else "") if part
    )
    if not setters:
        return None
    shown = [*values, *notes]
    return PolicyViolation(
        _some("forbidden AppArmor profile", len(shown)),
        f"{setters} must not set AppArmor profile type to {_quoted(shown)}",
    )


def _added(container: AnyObject) -> list[str]:
    return nested_list(_context(container), "capabilities", "add")


@_check(lambda level, minor: level == "baseline" or minor < 22)
def _added_capabilities(pod: CheckedPod) -> PolicyViolation | None:
    bad = _containers_where(pod, lambda container: set(_added(container)) - _CAPABILITIES)
    names = sorted(
        {name for container in pod.containers for name in _added(container)} - _CAPABILITIES
    )
    detail = f"{_named(bad)} must not include {_quoted(names)} in securityContext.capabilities.add"
    if bad:
        return PolicyViolation("non-default capabilities", detail)
    return None


@_check()
def _host_namespaces(pod: CheckedPod) -> PolicyViolation | None:
    shared = [
        f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)
    ]
    if shared:
        return PolicyViolation("host namespaces", ", ".join(shared))
    return None


@_check(lambda level, minor: level == "baseline")
def _host_paths(pod: CheckedPod) -> PolicyViolation | None:
    names = [
        volume["name"]
        for volume in nested_list(pod.spec, "volumes")
        if volume.get("hostPath") is not None
    ]
    if names:
        return PolicyViolation(
            "hostPath volumes", f"{_some('volume', len(names))} {_quoted(names)}"
        )
    return None


@_check()
def _host_ports(pod: CheckedPod) -> PolicyViolation | None:
    def ports(container: AnyObject) -> list[str]:
        return [
            str(port["hostPort"])
            for port in nested_list(container, "ports")
            if port.get("hostPort")
        ]

    bad = _containers_where(pod, ports)
    used = sorted({port for container in pod.containers for port in ports(container)})
    detail = (
        f"{_named(bad)} {_some('uses', len(bad), 'use')} {_some('hostPort', len(used))} "
        f"{', '.join(used)}"
    )
    if bad:
        return PolicyViolation("hostPort", detail)
    return None


@_check(lambda level, minor: minor >= 34)
def _hosts_of_probes(pod: CheckedPod) -> PolicyViolation | None:
    def hosts(container: AnyObject) -> list[str]:
        lifecycle = nested_map(container, "lifecycle")
        handlers = [
            container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")
        ]
        handlers += [lifecycle.get(hook) for hook in ("postStart", "preStop")]
        return [
            action["host"]
            for handler in handlers
            if handler
            for kind in ("httpGet", "tcpSocket")
            if (action := handler.get(kind)) and action.get("host")
        ]

    bad = sorted(set(_containers_where(pod, hosts)))
    used = sorted({host for container in pod.containers for host in hosts(container)})
    detail = (
        f"{_named(bad)} {_some('uses', len(bad), 'use')} "
        f"{_some('probe or lifecycle host', len(used))} "
        f"{_quoted(used)}"
    )
    if bad:
        return PolicyViolation("probe or lifecycle host", detail)
    return None


@_check()
def _privileged(pod: CheckedPod) -> PolicyViolation | None:
    bad = _containers_where(pod, lambda container: _context(container).get("privileged"))
    if bad:
        return PolicyViolation(
            "privileged", f"{_named(bad)} must not set securityContext.privileged=true"
        )
    return None


@_check(lambda level, minor: level == "baseline" or minor < 35)
def _proc_mount(pod: CheckedPod) -> PolicyViolation | None:
    if pod.has_own_users:
        return None
    return _changed_proc_mount(pod)


def _changed_proc_mount(pod: CheckedPod) -> PolicyViolation | None:
    def mount(container: AnyObject) -> str:
        return str(_context(container).get("procMount") or "Default")

    bad = _containers_where(pod, lambda container: mount(container) != "Default")
    mounts = sorted({mount(container) for container in pod.containers} - {"Default"})
    detail = f"{_named(bad)} must not set securityContext.procMount to {_quoted(mounts)}"
    if bad:
        return PolicyViolation("procMount", detail)
    return None


@_check()
def _selinux(pod: CheckedPod) -> PolicyViolation | None:
    allowed = (*_SELINUX_TYPES, *(("container_engine_t",) if pod.minor >= 31 else ()))

    def options(context: AnyObject) -> Object:
        return nested_map(context, "seLinuxOptions")

    def is_bad(context: AnyObject) -> bool:
        chosen = options(context)
        return bool(
            chosen.get("type", "") not in allowed or chosen.get("user") or chosen.get("role")
        )

    setters = _setters(
        is_bad(pod.context), _containers_where(pod, lambda container: is_bad(_context(container)))
    )
    if not setters:
        return None
    all_options = [
        options(pod.context),
        *(options(_context(container)) for container in pod.containers),
    ]
    types = sorted({option.get("type", "") for option in all_options} - set(allowed))
    data = [f"{_some('type', len(types))} {_quoted(types)}"] if types else []
    data += [
        f"{field} may not be set"
        for field in ("user", "role")
        if any(option.get(field) for option in all_options)
    ]
    return PolicyViolation(
        "seLinuxOptions",
        f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}",
    )


def _seccomp_type(context: AnyObject) -> str:
    return str(nested_map(context, "seccompProfile").get("type", ""))


@_check(lambda level, minor: level == "baseline" or minor < 19)
def _seccomp(pod: CheckedPod) -> PolicyViolation | None:
    """Check the profiles, in the annotations that carried them before version 1.19."""
    if pod.minor >= 19:
        return _bad_seccomp(pod)
    keys = [_SECCOMP_POD, *(_SECCOMP_CONTAINER + container["name"] for container in pod.containers)]
    bad = sorted(
        {
            f"{key}={quote(value)}"
            for key in keys
            if (value := pod.annotations.get(key)) is not None
            and value not in ("runtime/default", "docker/default")
            and not value.startswith("localhost/")
        }
    )
    if bad:
        return PolicyViolation(
            "seccompProfile", f"forbidden {_some('annotation', len(bad))} {', '.join(bad)}"
        )

    return None


def _bad_seccomp(pod: CheckedPod) -> PolicyViolation | None:
    """Check that the profiles that are set are safe ones."""
    safe = ("", *_SAFE_PROFILES)
    bad = _containers_where(pod, lambda container: _seccomp_type(_context(container)) not in safe)
    setters = _setters(_seccomp_type(pod.context) not in safe, bad)
    contexts = [pod.context, *(_context(container) for container in pod.containers)]
    values = sorted({_seccomp_type(context) for context in contexts} - set(safe))
    detail = f"{setters} must not set securityContext.seccompProfile.type to {_quoted(values)}"
    if setters:
        return PolicyViolation("seccompProfile", detail)
    return None


@_check()
def _sysctls(pod: CheckedPod) -> PolicyViolation | None:
    names = [
        sysctl["name"]
        for sysctl in nested_list(pod.context, "sysctls")
        if _SYSCTLS.get(sysctl["name"], 99) > pod.minor
    ]
    if names:
        return PolicyViolation("forbidden sysctls", ", ".join(names))
    return None


@_check()
def _windows_host_process(pod: CheckedPod) -> PolicyViolation | None:
    def is_bad(context: AnyObject) -> bool:
        return bool(nested_map(context, "windowsOptions").get("hostProcess"))

    setters = _setters(
        is_bad(pod.context), _containers_where(pod, lambda container: is_bad(_context(container)))
    )
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    if setters:
        return PolicyViolation("hostProcess", detail)
    return None


# --- restricted -----------------------------------------------------------------------------------


def _is_exempt(pod: CheckedPod) -> bool:
    """Return whether the pod is exempt from checks of Linux features, because it runs on
    Windows."""
    return pod.is_windows and pod.minor >= 25


@_check(lambda level, minor: level == "restricted" and minor >= 8)
def _privilege_escalation(pod: CheckedPod) -> PolicyViolation | None:
    bad = _containers_where(
        pod, lambda container: _context(container).get("allowPrivilegeEscalation") is not False
    )
    if not bad or _is_exempt(pod):
        return None
    return PolicyViolation(
        "allowPrivilegeEscalation != false",
        f"{_named(bad)} must set securityContext.allowPrivilegeEscalation=false",
    )


@_check(lambda level, minor: level == "restricted" and minor >= 22)
def _dropped_capabilities(pod: CheckedPod) -> PolicyViolation | None:
    def keeps_some(container: AnyObject) -> bool:
        return "ALL" not in nested_list(_context(container), "capabilities", "drop")

    keeping = _containers_where(pod, keeps_some)
    adding = _containers_where(pod, lambda container: set(_added(container)) - {"NET_BIND_SERVICE"})
    added = sorted(
        {name for container in pod.containers for name in _added(container)} - {"NET_BIND_SERVICE"}
    )
    details = (
        [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    )
    details += (
        [f"{_named(adding)} must not include {_quoted(added)} in securityContext.capabilities.add"]
        if adding
        else []
    )
    if details and not _is_exempt(pod):
        return PolicyViolation("unrestricted capabilities", "; ".join(details))
    return None


@_check(lambda level, minor: level == "restricted" and minor >= 35)
def _any_proc_mount(pod: CheckedPod) -> PolicyViolation | None:
    return _changed_proc_mount(pod)


@_check(lambda level, minor: level == "restricted")
def _volume_types(pod: CheckedPod) -> PolicyViolation | None:
    bad = {
        volume["name"]: next(
            (kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown"
        )
        for volume in nested_list(pod.spec, "volumes")
        if all(volume.get(kind) is None for kind in _ALLOWED_VOLUMES)
    }
    types = sorted(set(bad.values()))
    detail = (
        f"{_some('volume', len(bad))} {_quoted(bad)} {_some('uses', len(bad), 'use')} "
        f"{_some('restricted volume type', len(types))} {_quoted(types)}"
    )
    if bad:
        return PolicyViolation("restricted volume types", detail)
    return None


@_check(lambda level, minor: level == "restricted")
def _runs_as_root(pod: CheckedPod) -> PolicyViolation | None:
    if pod.has_own_users:
        return None
    setters = _setters(
        pod.context.get("runAsNonRoot") is False,
        _containers_where(pod, lambda container: _context(container).get("runAsNonRoot") is False),
    )
    if setters:
        return PolicyViolation(
            "runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false"
        )

    silent = _containers_where(
        pod, lambda container: _context(container).get("runAsNonRoot") is None
    )
    if pod.context.get("runAsNonRoot") or not silent:
        return None
    return PolicyViolation(
        "runAsNonRoot != true",
        f"pod or {_named(silent)} must set securityContext.runAsNonRoot=true",
    )


@_check(lambda level, minor: level == "restricted" and minor >= 23)
def _root_user(pod: CheckedPod) -> PolicyViolation | None:
    setters = _setters(
        pod.context.get("runAsUser") == 0,
        _containers_where(pod, lambda container: _context(container).get("runAsUser") == 0),
    )
    if not setters or pod.has_own_users:
        return None
    return PolicyViolation("runAsUser=0", f"{setters} must not set runAsUser=0")


@_check(lambda level, minor: level == "restricted" and minor >= 19)
def _no_seccomp(pod: CheckedPod) -> PolicyViolation | None:
    if _is_exempt(pod):
        return None
    if (violation := _bad_seccomp(pod)) is not None:
        return violation
    silent = _containers_where(pod, lambda container: not _seccomp_type(_context(container)))
    if _seccomp_type(pod.context) or not silent:
        return None
    return PolicyViolation(
        "seccompProfile",
        f"pod or {_named(silent)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"',
    )
