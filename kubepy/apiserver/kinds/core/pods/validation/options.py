"""The faults that validation of a pod tolerates because the object that is updated has them
already.

Upstream: ``GetValidationOptionsFromPodSpecAndMeta`` (``pkg/api/pod/util.go``), with the feature
gates of v1.36 at their defaults. Creation tolerates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.api.objects.pods import containers_with_paths
from kubepy.api.values.gonumbers import int_or_none
from kubepy.apiserver.kinds.core.pods.validation.security import host_sysctl_complaint
from kubepy.apiserver.validation.fields import (
    has_invalid_label_value,
    validate_label_selector,
    validate_local_non_reserved_path,
)
from kubepy.apiserver.validation.resources import is_divisible_by_page, is_huge_page

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class PodOptions(NamedTuple):
    """The tolerated faults. ``resource_is_pod``: the object is a pod, no workload with a
    template."""

    resource_is_pod: bool = False
    allow_invalid_deletion_cost: bool = False
    allow_invalid_selector_values: bool = False
    allow_invalid_node_affinity_values: bool = False
    allow_invalid_spread_selector: bool = False
    allow_indivisible_huge_pages: bool = False
    allow_non_local_token_path: bool = False
    allow_namespaced_sysctls: bool = False
    allow_restart_container_in_init: bool = False
    allow_volume_devices_in_user_namespace: bool = False


def options_for_update(
    old_spec: Object, old_metadata: Object, *, resource_is_pod: bool = False
) -> PodOptions:
    containers = [container for container, _ in containers_with_paths(old_spec, "")]
    node_affinity = nested_map(old_spec, "affinity", "nodeAffinity", REQUIRED)
    amounts: list[tuple[str, str]] = []
    for container in containers:
        amounts += nested_map(container, "resources", "limits").items()
        amounts += nested_map(container, "resources", "requests").items()
    sysctls = nested_list(old_spec, "securityContext", "sysctls")
    spread_errors: list[Any] = []
    for constraint in old_spec.get("topologySpreadConstraints") or ():
        validate_label_selector(constraint.get("labelSelector"), "", spread_errors)

    token_errors: list[Any] = []
    for volume in old_spec.get("volumes") or ():
        for source in nested_list(volume, "projected", "sources"):
            if token := source.get("serviceAccountToken"):
                validate_local_non_reserved_path(token.get("path", ""), "", token_errors)

    return PodOptions(
        resource_is_pod=resource_is_pod,
        allow_invalid_deletion_cost=not is_deletion_cost(old_metadata.get("annotations")),
        allow_invalid_selector_values=any(
            has_invalid_label_value(term.get("labelSelector"))
            or has_invalid_label_value(term.get("namespaceSelector"))
            for term in pod_affinity_terms(old_spec)
        ),
        allow_invalid_node_affinity_values=any(
            has_invalid_label_value(term) for term in node_affinity.get("nodeSelectorTerms") or ()
        ),
        allow_invalid_spread_selector=bool(spread_errors),
        allow_indivisible_huge_pages=any(
            is_huge_page(name) and not is_divisible_by_page(name, amount)
            for name, amount in amounts
        ),
        allow_non_local_token_path=bool(token_errors),
        allow_namespaced_sysctls=any(
            host_sysctl_complaint(sysctl.get("name", ""), old_spec) for sysctl in sysctls
        ),
        allow_restart_container_in_init=any(
            map(_restarts_init_container, old_spec.get("initContainers") or ())
        ),
        allow_volume_devices_in_user_namespace=(
            old_spec.get("hostUsers") is False
            and any(container.get("volumeDevices") for container in containers)
        ),
    )


def _restarts_init_container(container: Object) -> bool:
    """Return whether a resize restarts an init container that is no sidecar."""
    if container.get("restartPolicy") == "Always":
        return False
    policies = container.get("resizePolicy") or ()
    return any(policy.get("restartPolicy") == "RestartContainer" for policy in policies)


def is_deletion_cost(annotations: dict[str, str] | None) -> bool:
    """Return whether the pod-deletion-cost annotation is absent or a 32-bit integer as Go's
    ParseInt reads it."""
    cost = (annotations or {}).get(DELETION_COST)
    if cost is None or cost == "0":
        return True
    digits = cost[1:] if cost.startswith("-") else cost
    well_formed = digits.isascii() and digits.isdigit() and not digits.startswith("0")
    return well_formed and int_or_none(cost, 32) is not None


def pod_affinity_terms(spec: Object) -> Iterator[Object]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        block = affinity.get(kind) or {}
        yield from block.get(REQUIRED) or ()
        for weighted in block.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
