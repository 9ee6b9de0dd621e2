"""Updates of a pod's status and of its resources (``ValidatePodStatusUpdate``,
``ValidatePodResize``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubepy.api.errors import (
    WHOLE_OBJECT,
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from kubepy.api.meta import Object, annotations_of, nested_map, status_of
from kubepy.api.objects.pods import is_restartable_init_container, qos_class
from kubepy.api.values.names import dns1123_subdomain
from kubepy.apiserver.kinds.core.pods.validation.pods import revalidate
from kubepy.apiserver.kinds.core.pods.validation.spec import MIRROR, validate_annotation_changes
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    Errors,
    go_view,
    label_key,
    semantically_equal,
    validate_as,
)
from kubepy.apiserver.validation.formats import (
    have_families_of_their_own,
    user_or_group_id,
    validate_ip,
)

SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
NOT_AN_INTEGER = "must be a non-negative integer"
NOT_TERMINATED = "may not be transitioned to non-terminated state"
TWO_OF_A_FAMILY = "may specify no more than one IP for each IP family"
HEALTHS = ("Healthy", "Unhealthy", "Unknown")
# The lists of container statuses, and the fields with their containers.
STATUS_LISTS = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", ""),
)


def validate_pod_status_update(pod: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(pod)
    old_status = status_of(old)

    if annotations_of(pod) != annotations_of(old):
        validate_annotation_changes(
            annotations_of(pod), annotations_of(old), "metadata.annotations", errors
        )

    _validate_conditions(status, errors)
    node = status.get("nominatedNodeName", "")
    if node and node != old_status.get("nominatedNodeName", ""):
        _validate_nominated_node(node, old, errors)
    generation = status.get("observedGeneration", 0)
    if generation < 0:
        errors.append(invalid_value("status.observedGeneration", generation, NOT_AN_INTEGER))
    if status.get("qosClass", "") != old_status.get("qosClass", ""):
        errors.append(invalid_value("status.qosClass", status.get("qosClass", ""), IMMUTABLE))

    for field, containers in STATUS_LISTS:
        if old_statuses := old_status.get(field):
            errors.extend(
                _restarts(status.get(field) or (), old_statuses, old["spec"], containers, field)
            )

    if claims := status.get("resourceClaimStatuses"):
        _validate_claim_statuses(claims, pod["spec"], errors)
    _validate_addresses(status, old_status, "podIPs", "core.PodIP", errors)

    if status.get("hostIPs"):
        first = status["hostIPs"][0].get("ip", "")
        if status.get("hostIP", "") != first:
            errors.append(invalid_value("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))

    _validate_addresses(status, old_status, "hostIPs", "core.HostIP", errors)
    present = [
        (statuses, field, containers)
        for field, containers in STATUS_LISTS
        if (statuses := status.get(field))
    ]
    for statuses, field, _ in present:
        _validate_users(statuses, pod["spec"], f"status.{field}", errors)

    for statuses, field, containers in present:
        containers_of_field = {
            container.get("name"): container for container in pod["spec"].get(containers) or ()
        }
        errors.extend(_validate_allocations(statuses, containers_of_field, f"status.{field}"))

    return errors


def _validate_conditions(status: Object, errors: Errors) -> None:
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type", "")
        generation = condition.get("observedGeneration", 0)
        at = f"status.conditions[{index}]"
        if generation < 0:
            errors.append(invalid_value(f"{at}.observedGeneration", generation, NOT_AN_INTEGER))
        if kind not in SYSTEM_CONDITIONS:
            validate_as(label_key, kind, f"{at}.Type", errors)


def _validate_nominated_node(node: str, old: Object, errors: Errors) -> None:
    path = "status.nominatedNodeName"
    validate_as(dns1123_subdomain, node, path, errors)
    if old["spec"].get("nodeName"):
        detail = "may not be set on pods that are already bound to a node"
        errors.append(forbidden_field(path, detail))


# --- terminated containers ------------------------------------------------------------------------


def _restarts(
    statuses: Iterable[Object],
    old_statuses: Iterable[Object],
    spec: Object,
    containers: str,
    field: str,
) -> Iterator[FieldError]:
    """Refuse restarts of terminated containers that the pod's restart policy does not allow."""
    running = {
        status.get("name")
        for status in statuses
        if (status.get("state") or {}).get("terminated") is None
    }
    if containers and _could_restart_all(spec):
        return

    by_name = {
        container.get("name"): container for container in reversed(spec.get(containers) or ())
    }
    for index, status in enumerate(old_statuses):
        terminated = (status.get("state") or {}).get("terminated")
        if terminated is None or status.get("name") not in running:
            continue
        container = by_name.get(status.get("name"))
        exit_code = terminated.get("exitCode", 0)
        if container is None or not _should_restart(container, spec, exit_code):
            yield forbidden_field(f"status.{field}[{index}].state", NOT_TERMINATED)


def _could_restart_all(spec: Object) -> bool:
    """Return whether a rule restarts all containers of the pod (``AllContainersCouldRestart``)."""
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for rule in container.get("restartPolicyRules") or ():
            if rule.get("action") == "RestartAllContainers":
                return True
    return False


def _should_restart(container: Object, spec: Object, exit_code: int) -> bool:
    """Return whether a container restarts after an exit code
    (``podutil.ContainerShouldRestart``)."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed == (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


# --- claims and addresses -------------------------------------------------------------------------


def _validate_claim_statuses(statuses: Iterable[Object], spec: Object, errors: Errors) -> None:
    claim_names = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    names: set[str] = set()
    for index, status in enumerate(statuses):
        name = status.get("name", "")
        claim = status.get("resourceClaimName")
        at = f"status.resourceClaimStatuses[{index}]"
        if name not in claim_names:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid_value(f"{at}.name", name, detail))
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        if claim is not None:
            validate_as(dns1123_subdomain, claim, f"{at}.resourceClaimName", errors)


def _validate_addresses(
    status: Object, old_status: Object, field: str, type_name: str, errors: Errors
) -> None:
    """Require at most one address of each family, valid unless the old pod had it already."""
    addresses = [entry.get("ip", "") for entry in status.get(field) or ()]
    old_addresses = {entry.get("ip", "") for entry in old_status.get(field) or ()}
    for index, address in enumerate(addresses):
        if address not in old_addresses:
            validate_ip(address, f"status.{field}[{index}]", errors)
    if not have_families_of_their_own(addresses):
        shown = [go_view(type_name, entry) for entry in status[field]]
        errors.append(invalid_value(f"status.{field}", shown, TWO_OF_A_FAMILY))


# --- users and devices ----------------------------------------------------------------------------


def _validate_users(statuses: Iterable[Object], spec: Object, path: str, errors: Errors) -> None:
    system = (spec.get("os") or {}).get("name", "linux")
    for index, status in enumerate(statuses):
        user = (status.get("user") or {}).get("linux")
        at = f"{path}[{index}].user.linux"
        if user is None:
            continue
        if system == "windows":
            errors.append(forbidden_field(at, "cannot be set for a windows pod"))
            continue
        validate_as(user_or_group_id, user.get("uid", 0), f"{at}.uid", errors)
        validate_as(user_or_group_id, user.get("gid", 0), f"{at}.gid", errors)
        for position, group in enumerate(user.get("supplementalGroups") or ()):
            validate_as(user_or_group_id, group, f"{at}.supplementalGroups[{position}]", errors)


def _validate_allocations(
    statuses: Iterable[Object], containers: Mapping[Any, Object], path: str
) -> Iterator[FieldError]:
    """Validate the health of devices (``allocatedResourcesStatus``), which the container must have
    requested."""
    for index, status in enumerate(statuses):
        at = f"{path}[{index}].allocatedResourcesStatus"
        if status.get("allocatedResourcesStatus") and path.endswith("ephemeralContainerStatuses"):
            yield forbidden_field(at, "must not be specified in container status")
            continue
        container = containers.get(status.get("name"))
        for position, allocated in enumerate(status.get("allocatedResourcesStatus") or ()):
            if container is not None and (
                detail := _check_requested(allocated.get("name", ""), container)
            ):
                yield invalid_value(f"{at}[{position}].name", allocated.get("name", ""), detail)
            identifiers: set[str] = set()
            for number, device in enumerate(allocated.get("resources") or ()):
                place = f"{at}[{position}].resources[{number}]"
                identifier = device.get("resourceID", "")
                if device.get("health", "") not in HEALTHS:
                    yield not_supported(f"{place}.health", device.get("health", ""), HEALTHS)
                if device.get("message") == "":
                    yield required(f"{place}.message", "must be non-empty if specified")
                if identifier in identifiers:
                    yield duplicate(f"{place}.resourceID", identifier)
                identifiers.add(identifier)


def _check_requested(name: str, container: Object) -> str:
    """Return why an allocated resource is none that the container requests, "" if it is."""
    resources = container.get("resources") or {}
    if not name.startswith("claim:"):
        is_requested = name in (resources.get("requests") or {})
        if is_requested:
            return ""
        return "must match one of the container's resource requests"

    claims = {
        "/".join(filter(None, (f"claim:{claim.get('name', '')}", claim.get("request"))))
        for claim in resources.get("claims") or ()
    }
    if name in claims:
        return ""
    return (
        "must match one of the container's resource claims in a format "
        "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
    )


# --- the `resize` subresource (ValidatePodResize) -------------------------------------------------


RESIZABLE = ("cpu", "memory")
FIELDS = ("requests", "limits")


def validate_pod_resize(pod: Object, old: Object) -> list[FieldError]:
    """Validate a resize: ``pod`` differs from ``old`` only in its resources and those of its
    containers.

    The simulated kubelets support it, so upstream's question to the node's kubelet is left out.
    """
    errors = revalidate(pod, old)
    if MIRROR in annotations_of(old):
        return [forbidden_field(WHOLE_OBJECT, "static pods cannot be resized")]
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return [forbidden_field(WHOLE_OBJECT, "windows pods cannot be resized")]

    if qos_class(pod) != qos_class(old):
        shown = status_of(old).get("qosClass", "")
        errors.append(
            invalid_value("spec", shown, "Pod QOS Class may not change as a result of resizing")
        )

    errors += _pod_level_changes(pod["spec"].get("resources"), old["spec"].get("resources"))

    sidecars = [
        pair
        for pair in _pairs(pod, old, "initContainers")
        if is_restartable_init_container(pair[1])
    ]
    for path, old_container, container in (*sidecars, *_pairs(pod, old, "containers")):
        for field in FIELDS:
            old_amounts = nested_map(old_container, "resources", field)
            amounts = nested_map(container, "resources", field)
            if old_amounts.keys() - amounts.keys():
                errors.append(
                    forbidden_field(
                        f"{path}.resources.{field}", f"resource {field} cannot be removed"
                    )
                )

    return [*errors, *_other_changes(pod, old)]


def _pod_level_changes(new: Object | None, old: Object | None) -> Iterator[FieldError]:
    """Validate changes of the resources of the pod as a whole
    (``validatePodLevelResourcesResize``)."""
    new_resources = new or {}
    old_resources = old or {}
    if not any(new_resources.get(field) or old_resources.get(field) for field in FIELDS):
        return
    if old is not None and new is None:
        yield forbidden_field("spec.resources", "pod-level resources cannot be removed")
        return
    for field in FIELDS:
        amounts = new_resources.get(field) or {}
        old_amounts = old_resources.get(field) or {}
        if old_amounts.keys() - amounts.keys():
            detail = f"pod-level resource {field} cannot be removed"
            yield forbidden_field(f"spec.resources.{field}", detail)

    if not semantically_equal(_with_old_resources(new_resources, old_resources), old_resources):
        yield forbidden_field("spec", "only cpu and memory resources are mutable at pod-level")


def _pairs(pod: Object, old: Object, field: str) -> list[tuple[str, Object, Object]]:
    """Return the path of every container, the old container and the new one."""
    containers = pod["spec"].get(field) or ()
    old_containers = old["spec"].get(field) or ()
    paths = [f"spec.{field}[{index}]" for index in range(len(containers))]
    return list(zip(paths, old_containers, containers, strict=True))


def _other_changes(pod: Object, old: Object) -> Iterator[FieldError]:
    for _, old_container, container in _pairs(pod, old, "containers"):
        if not semantically_equal(_with_old_amounts(container, old_container), old_container):
            yield forbidden_field("spec", "only cpu and memory resources are mutable")
    for path, old_container, container in _pairs(pod, old, "initContainers"):
        if is_restartable_init_container(old_container):
            if not semantically_equal(_with_old_amounts(container, old_container), old_container):
                yield forbidden_field(
                    path, "only cpu and memory resources for init or sidecar containers are mutable"
                )
        elif not semantically_equal(container, old_container):
            yield forbidden_field("spec", "resources for non-sidecar init containers are immutable")


def _with_old_amounts(container: Object, old: Object) -> Object:
    """Return the container with the old cpu and memory, and without claims."""
    return {
        **container,
        "resources": _with_old_resources(
            container.get("resources") or {}, old.get("resources") or {}, claims=False
        ),
    }


def _with_old_resources(resources: Object, old: Object, *, claims: bool = True) -> Object:
    """Return resources with the old cpu and memory."""
    compared: Object = {}
    for field in FIELDS:
        amounts = resources.get(field) or {}
        old_amounts = old.get(field) or {}
        others = {name: amount for name, amount in amounts.items() if name not in RESIZABLE}
        if changed := others | {
            name: old_amounts[name] for name in RESIZABLE if name in old_amounts
        }:
            compared[field] = changed
    if claims and resources.get("claims"):
        return {**compared, "claims": resources["claims"]}
    return compared
