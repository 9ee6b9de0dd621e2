"""Warnings of pods and pod templates that are valid but questionable
(``pkg/api/pod/warnings.go``)."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.meta import Object, annotations_of, nested_list, nested_map, spec_of
from kubepy.api.objects.pods import containers_with_paths
from kubepy.api.values.names import dns1123_label, label_value
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.kinds.core.pods.validation.options import REQUIRED
from kubepy.apiserver.kinds.core.pods.validation.scheduling import PREFERRED
from kubepy.apiserver.kinds.core.pods.validation.spec import (
    APP_ARMOR,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
)
from kubepy.apiserver.kinds.core.pods.validation.volumes import overlapping_paths
from kubepy.apiserver.validation.formats import ip_warnings
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.apiserver.kinds.core.persistentvolumeclaims import (
        validation as persistentvolumeclaims_validation,
    )

DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": "deprecated since v1.17; use "
    '"topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": "deprecated since v1.17; use "
    '"topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": "deprecated since v1.17; use "
    '"node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and "
    "Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": "non-functional in v1.16+; use the "
    '"priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field '
    "instead",
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" '
    "field instead",
}
# The field of a volume, its name in upstream's warning, and the warning.
DEPRECATED_VOLUMES = (
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)
NO_SELECTOR = "a null labelSelector results in matching no pod"


def warnings_for_pod(pod: Object) -> list[str]:
    warnings = []
    if complaints := dns1123_label(pod["metadata"].get("name", "")):
        detail = (
            "this is used in the Pod's hostname, which can result in surprising behavior; "
            "a DNS label is recommended"
        )
        warnings.append(f"metadata.name: {detail}: [{' '.join(complaints)}]")
    return warnings + list(_warnings(pod["spec"], annotations_of(pod), "", is_template=False))


def warnings_for_template(template: Object, path: str) -> list[str]:
    annotations = nested_map(template, "metadata", "annotations")
    return list(_warnings(spec_of(template), annotations, f"{path}.", is_template=True))


def _warnings(
    spec: Object, annotations: dict[str, str], prefix: str, *, is_template: bool
) -> Iterator[str]:
    path = f"{prefix}spec"
    yield from _scheduling_warnings(spec, path)
    for key, detail in DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {detail}"
    if spec.get("volumes"):
        yield from _volume_warnings(spec["volumes"], f"{path}.volumes")
    yield from _duplicate_warnings(spec, path)
    yield from _amount_warnings(spec.get("overhead"), f"{path}.overhead")

    if (
        SECCOMP_POD in annotations
        and (spec.get("securityContext") or {}).get("seccompProfile") is None
    ):
        yield _use_seccomp_field(SECCOMP_POD, prefix)

    for container, at in containers_with_paths(spec, path):
        if annotations:
            yield from _profile_warnings(
                container, spec, annotations, prefix, is_template=is_template
            )
        if resources := container.get("resources"):
            yield from _resource_warnings(resources, f"{at}.resources")
        if len(container.get("env") or ()) > 1:
            yield from _env_warnings(container["env"], f"{at}.env")

    yield from _port_warnings(spec, path)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        detail = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {detail}"
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _selector_warnings(affinity.get(kind) or {}, f"{path}.affinity.{kind}")
    for index, server in enumerate(nested_list(spec, "dnsConfig", "nameservers")):
        yield from ip_warnings(server, f"{path}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip")


def _resource_warnings(resources: Object, path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        for field in ("limits", "requests"):
            amount = (resources.get(field) or {}).get(name)
            yield from _amount_warnings({name: amount}, f"{path}.{field}")


def _selector_warnings(affinity: Object, path: str) -> Iterator[str]:
    """Warn of terms of pod affinity without a selector."""
    for index, term in enumerate(affinity.get(REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{path}.{REQUIRED}[{index}].labelSelector: {NO_SELECTOR}"
    for index, weighted in enumerate(affinity.get(PREFERRED) or ()):
        term = weighted.get("podAffinityTerm") or {}
        if term.get("labelSelector") is None:
            at = f"{path}.{PREFERRED}[{index}].podAffinityTerm"
            yield f"{at}.labelSelector: {NO_SELECTOR}"


# --- placement ------------------------------------------------------------------------------------


def _scheduling_warnings(spec: Object, path: str) -> Iterator[str]:
    for key in sorted(spec.get("nodeSelector") or ()):
        if key in DEPRECATED_LABELS:
            yield f"{path}.nodeSelector[{key}]: {DEPRECATED_LABELS[key]}"
    node_affinity = nested_map(spec, "affinity", "nodeAffinity")
    terms = nested_list(node_affinity, REQUIRED, "nodeSelectorTerms")
    for index, term in enumerate(terms):
        at = f"{path}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[{index}]"
        yield from node_term_warnings(term, at)
    for index, preferred in enumerate(node_affinity.get(PREFERRED) or ()):
        at = f"{path}.affinity.nodeAffinity.{PREFERRED}[{index}].preference"
        yield from node_term_warnings(preferred.get("preference") or {}, at, check_values=True)

    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at = f"{path}.topologySpreadConstraints[{index}]"
        key = constraint.get("topologyKey", "")
        if key in DEPRECATED_LABELS:
            yield f"{at}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}.labelSelector: {NO_SELECTOR}"


def node_term_warnings(term: Object, path: str, *, check_values: bool = False) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        key = expression.get("key", "")
        if key in DEPRECATED_LABELS:
            yield f"{at}.key: {key} is {DEPRECATED_LABELS[key]}"
        values = expression.get("values") if check_values else None
        for position, value in enumerate(values or ()):
            for detail in label_value(value):
                yield f"{at}.values[{position}]: {value} is invalid, {detail}"


# --- lists ----------------------------------------------------------------------------------------


def _duplicate_warnings(spec: Object, path: str) -> Iterator[str]:
    addresses = [alias.get("ip", "") for alias in spec.get("hostAliases") or ()]
    for index, address in enumerate(addresses):
        if address in addresses[:index]:
            yield f"{path}.hostAliases[{index}].ip: duplicate ip {quote(address)}"
    names = [secret.get("name", "") for secret in spec.get("imagePullSecrets") or ()]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"{path}.imagePullSecrets[{index}].name: duplicate name {quote(name)}"
    for index, name in enumerate(names):
        if not name:
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _volume_warnings(volumes: list[Object], path: str) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        for kind, shown, detail in DEPRECATED_VOLUMES:
            if volume.get(kind) is not None:
                yield f"{path}[{index}].{shown}: {detail}"
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            at = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            yield from persistentvolumeclaims_validation.claim_spec_warnings(spec_of(template), at)
    yield from overlapping_paths(volumes)


# --- containers -----------------------------------------------------------------------------------


def _use_seccomp_field(key: str, prefix: str) -> str:
    return (
        f"{prefix}metadata.annotations[{key}]: non-functional in v1.27+; use the "
        f'"seccompProfile" field instead'
    )


def _profile_warnings(
    container: Object, spec: Object, annotations: dict[str, str], prefix: str, *, is_template: bool
) -> Iterator[str]:
    context = container.get("securityContext") or {}
    name = container.get("name", "")
    if SECCOMP_CONTAINER + name in annotations and context.get("seccompProfile") is None:
        yield _use_seccomp_field(SECCOMP_CONTAINER + name, prefix)
    key = APP_ARMOR + name
    if not is_template or key not in annotations or context.get("appArmorProfile") is not None:
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    if of_pod is None or of_pod != _profile_of_annotation(annotations[key]):
        yield (
            f"{prefix}metadata.annotations[{key}]: deprecated since v1.30; use the "
            f'"appArmorProfile" field instead'
        )


def _profile_of_annotation(annotation: str) -> Object | None:
    """Return the field for an AppArmor annotation, None for an invalid one
    (``ApparmorFieldForAnnotation``)."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    local = annotation.removeprefix("localhost/")
    if local != annotation and local:
        return {"localhostProfile": local, "type": "Localhost"}
    return None


def _amount_warnings(amounts: Object | None, path: str) -> Iterator[str]:
    """Warn of amounts that are no whole number of bytes."""
    for name in ("memory", "ephemeral-storage"):
        amount = (amounts or {}).get(name)
        if amount is None or amount[-1:] not in "mun":
            continue
        if Quantity.parse(amount).milli_value() % 1000:
            yield (
                f"{path}[{name}]: fractional byte value {quote(amount)} is invalid, must be an "
                f"integer"
            )


def _env_warnings(variables: list[Object], path: str) -> Iterator[str]:
    """Warn of a second definition of a variable, unless it refers to the first."""
    names: set[str] = set()
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        value = variable.get("value", "")
        reference = f"$({name})"
        hides = (
            variable.get("valueFrom") is not None or value == reference or reference not in value
        )
        if name in names and hides:
            yield (
                f"{path}[{index}]: hides previous definition of {quote(name)}, which may be "
                f"dropped when using apply"
            )
        names.add(name)


def _port_warnings(spec: Object, path: str) -> Iterator[str]:
    ports: list[tuple[Object, str]] = []
    for container, at in containers_with_paths(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            ports.append((port, f"{at}.ports[{index}]"))

    earlier: dict[tuple[int, str], list[tuple[Object, str]]] = {}
    for port, at in ports:
        if port.get("hostIP") and not port.get("hostPort"):
            shown = (
                f"{{Name:{port.get('name', '')} HostPort:0 "
                f"ContainerPort:{port.get('containerPort', 0)} "
                f"Protocol:{port.get('protocol', '')} HostIP:{port['hostIP']}}}"
            )
            yield f"{at}: hostIP set without hostPort: {shown}"
        same = earlier.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for other, other_at in same:
            if conflict := _conflict(port, other):
                yield f"{at}: {conflict} port definition with {other_at}"
        same.append((port, at))

    names: dict[str, str] = {}
    for port, at in ports:
        name = port.get("name", "")
        if name and (other_at := names.setdefault(name, at)) != at:
            yield (
                f"{at}: duplicate port name {quote(name)} with {other_at}, services and probes "
                f"that select ports "
                f"by name will use {other_at}"
            )


def _conflict(port: Object, other: Object) -> str:
    address = port.get("hostIP", "")
    other_address = other.get("hostIP", "")
    host = port.get("hostPort", 0)
    other_host = other.get("hostPort", 0)
    if address == other_address and host == other_host:
        return "duplicate"
    if not host or not other_host:
        return "overlapping"
    if host == other_host and bool(address) != bool(other_address):
        return "dangerously ambiguous"
    return ""
