"""Pod Security: the labels of a namespace forbid pods, or warn of them
(``plugin/…/security/podsecurity``).

``enforce`` refuses pods; ``warn`` warns of pods and of the templates of workloads. ``audit`` is
ignored: there is no audit log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api import errors
from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object, controller_of, labels_of
from kubepy.api.values.gonumbers import int_or_none
from kubepy.apiserver.server import Attributes
from kubepy.lazy import lazy_imports
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.api.objects.podsecurity import LevelVersion

with lazy_imports():
    from kubepy.api.objects import podsecurity

PREFIX = "pod-security.kubernetes.io/"
MODES = ("enforce", "audit", "warn")
MAX_PODS = 3000  # how many pods of a namespace a new level is tried on
_VERSION = re.compile(r"v1\.(0|[1-9]\d*)")
# Where the template of a pod is.
_TEMPLATES = {
    "podtemplates": ("template",),
    "replicationcontrollers": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}


class Policy(NamedTuple):
    """The policy that a namespace's labels ask for; ``wrong`` are the errors in them."""

    enforce: LevelVersion
    warn: LevelVersion
    wrong: list[FieldError]


def policy_of(labels: Mapping[str, str]) -> Policy:
    """Read the policy in labels.

    A label that cannot be read enforces the strictest level and warns of nothing. Without a level
    of their own, warnings follow the enforced one.
    """
    wrong: list[FieldError] = []
    levels = {mode: _level_version(labels, mode, wrong) for mode in MODES}
    enforce = levels["enforce"]
    warn = levels["warn"]
    is_enforced = labels.get(f"{PREFIX}enforce") in podsecurity.LEVELS
    if f"{PREFIX}warn" not in labels and is_enforced and enforce.level != "privileged":
        minor = warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor
        warn = podsecurity.LevelVersion(enforce.level, minor)
    return Policy(enforce, warn, wrong)


def _level_version(
    labels: Mapping[str, str], mode: str, wrong: list[FieldError]
) -> podsecurity.LevelVersion:
    level = labels.get(PREFIX + mode, "privileged")
    if level not in podsecurity.LEVELS:
        wrong.append(
            _wrong(f"{PREFIX}{mode}", level, f"must be one of {', '.join(podsecurity.LEVELS)}")
        )
        level = "restricted" if mode == "enforce" else "privileged"
    version = labels.get(f"{PREFIX}{mode}-version", "latest")
    match = _VERSION.fullmatch(version)
    if match is None and version != "latest":
        wrong.append(_wrong(f"{PREFIX}{mode}-version", version, 'must be "latest" or "v1.x"'))
    return podsecurity.LevelVersion(level, int_or_none(match[1]) if match else None)


def _wrong(label: str, value: str, detail: str) -> FieldError:
    return invalid_value(f"metadata.labels[{label}]", value, detail)


def _policy_around(attributes: Attributes) -> Policy | None:
    """Return the policy of the object's namespace, None if it has none."""
    namespace = attributes.transaction.get(Key("namespaces", "", attributes.namespace))
    labels = labels_of(namespace) if namespace is not None else {}
    if _has_policy(labels):
        return policy_of(labels)
    return None


def _has_policy(labels: Mapping[str, str]) -> bool:
    return any(label.startswith(PREFIX) for label in labels)


# --- pods -----------------------------------------------------------------------------------------


def check_pod(attributes: Attributes) -> None:
    """Refuse a pod that the namespace does not take, or warn of it. Raises Forbidden."""
    policy = _policy_around(attributes)
    if policy is None:
        return
    metadata = attributes.obj["metadata"]
    spec = attributes.obj["spec"]
    if attributes.old is not None and _images(spec) <= _images(attributes.old["spec"]):
        return  # only new images and containers are checked again
    if violations := podsecurity.violations(policy.enforce, metadata, spec):
        raise attributes.forbidden(
            f'violates PodSecurity "{policy.enforce}": {", ".join(map(str, violations))}'
        )
    _warn(attributes, policy, metadata, spec)


def _images(spec: Object) -> set[tuple[str, str]]:
    """Return the names and images of all containers."""
    return {
        (container["name"], container.get("image", ""))
        for field in ("containers", "initContainers", "ephemeralContainers")
        for container in spec.get(field) or ()
    }


def _warn(attributes: Attributes, policy: Policy, metadata: Object, spec: Object) -> None:
    if violations := podsecurity.violations(policy.warn, metadata, spec):
        attributes.context.warn(
            f'would violate PodSecurity "{policy.warn}": {", ".join(map(str, violations))}'
        )


def warn_of_template(attributes: Attributes) -> None:
    """Warn of the pods that a workload would make; the workload itself is let through."""
    policy = _policy_around(attributes)
    template: Object = attributes.obj
    for field in _TEMPLATES[attributes.resource.key]:
        template = template.get(field) or {}
    if policy is not None and template:
        _warn(attributes, policy, template.get("metadata") or {}, template.get("spec") or {})


# --- namespaces -----------------------------------------------------------------------------------


def check_namespace(attributes: Attributes) -> None:
    """Refuse labels that cannot be read, and warn of the pods that a stricter level would forbid.
    Raises Invalid."""
    if not _has_policy(labels_of(attributes.obj)):
        return
    policy = policy_of(labels_of(attributes.obj))
    before = policy_of(labels_of(attributes.old)) if attributes.old is not None else None
    if policy.wrong and (before is None or policy.wrong != before.wrong):
        raise errors.invalid("Namespace", attributes.name, policy.wrong)
    new = policy.enforce
    old = None if before is None else before.enforce
    if old is None or new == old or new.level == "privileged":
        return
    if new.minor != old.minor or podsecurity.LEVELS.index(new.level) > podsecurity.LEVELS.index(
        old.level
    ):
        attributes.context.warn_all(_warnings_of_pods(attributes, new))


def _warnings_of_pods(attributes: Attributes, enforce: LevelVersion) -> Iterable[str]:
    pods = _one_of_each_controller_first(attributes.transaction.list("pods", attributes.name))
    names: dict[str, list[str]] = {}
    for pod in pods[:MAX_PODS]:
        violations = podsecurity.violations(enforce, pod["metadata"], pod["spec"])
        if violations:
            reasons = ", ".join(violation.reason for violation in violations)
            names.setdefault(reasons, []).append(pod["metadata"]["name"])

    if len(pods) > MAX_PODS:
        yield (
            f"new PodSecurity enforce level only checked against the first {MAX_PODS} of "
            f"{len(pods)} existing pods"
        )

    if names:
        yield (
            f'existing pods in namespace "{attributes.name}" violate the new PodSecurity enforce '
            f"level "
            f'"{enforce}"'
        )

    texts = []
    for reasons, violators in names.items():
        others = len(violators) - 1
        more = f" (and {others} other {'pod' if others == 1 else 'pods'})" if others else ""
        texts.append(f"{min(violators)}{more}: {reasons}")

    yield from sorted(texts)


def _one_of_each_controller_first(pods: list[Object]) -> list[Object]:
    known: set[str] = set()
    first: list[Object] = []
    others: list[Object] = []
    for pod in pods:
        owner = (controller_of(pod) or {}).get("uid", "")
        (others if owner in known else first).append(pod)
        if owner:
            known.add(owner)
    return first + others
