"""New amounts of cpu and memory for the containers of a pod: the ``resize`` subresource (``ValidatePodResize``)."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.errors import WHOLE_OBJECT, FieldError, forbidden_field, invalid_value
from kubepy.api.meta import Object, annotations_of
from kubepy.api.objects.pods import is_restartable_init_container, qos_class
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.apiserver.validation.pods.annotations import MIRROR
from kubepy.apiserver.validation.pods.pods import revalidate

RESIZABLE = ("cpu", "memory")
FIELDS = ("requests", "limits")


def validate_pod_resize(pod: Object, old: Object) -> list[FieldError]:
    """``pod`` differs from ``old`` in resources only: its own, and those of its containers."""
    errors = revalidate(pod, old)
    if never := _reason_never(old):
        return [forbidden_field(WHOLE_OBJECT, never)]
    if qos_class(pod) != qos_class(old):
        shown = (old.get("status") or {}).get("qosClass", "")
        errors.append(invalid_value("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if not _is_supported_on_node(old):
        errors.append(forbidden_field("spec", "Pod running on node without support for resize"))
    errors += _pod_level_changes(pod["spec"].get("resources"), old["spec"].get("resources"))
    errors += _removals(pod, old)
    errors += _other_changes(pod, old)
    return errors


def _reason_never(old: Object) -> str:
    if MIRROR in annotations_of(old):
        return "static pods cannot be resized"
    return "windows pods cannot be resized" if (old["spec"].get("os") or {}).get("name") == "windows" else ""


def _pod_level_changes(new: Object | None, old: Object | None) -> Iterator[FieldError]:
    """Resources of the pod as a whole (``validatePodLevelResourcesResize``)."""
    if not any((one or {}).get(field) for one in (new, old) for field in FIELDS):
        return
    if old is not None and new is None:
        yield forbidden_field("spec.resources", "pod-level resources cannot be removed")
        return
    for field in FIELDS if old is not None else ():
        if ((old or {}).get(field) or {}).keys() - ((new or {}).get(field) or {}).keys():
            yield forbidden_field(f"spec.resources.{field}", f"pod-level resource {field} cannot be removed")
    if not semantically_equal(_with_old_resources(new or {}, old or {}), old or {}):
        yield forbidden_field("spec", "only cpu and memory resources are mutable at pod-level")


def _is_supported_on_node(pod: Object) -> bool:
    """A kubelet that resizes says what its running containers have."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _removals(pod: Object, old: Object) -> Iterator[FieldError]:
    sidecars = [pair for pair in _pairs(pod, old, "initContainers") if is_restartable_init_container(pair[1])]
    for path, before, after in (*sidecars, *_pairs(pod, old, "containers")):
        for field in FIELDS:
            had, has = ((one.get("resources") or {}).get(field) or {} for one in (before, after))
            if had.keys() - has.keys():
                yield forbidden_field(f"{path}.resources.{field}", f"resource {field} cannot be removed")


def _pairs(pod: Object, old: Object, field: str) -> list[tuple[str, Object, Object]]:
    """The path, the old container and the new one."""
    return [(f"spec.{field}[{index}]", before, after) for index, (before, after)
            in enumerate(zip(old["spec"].get(field) or (), pod["spec"].get(field) or (), strict=True))]


def _other_changes(pod: Object, old: Object) -> Iterator[FieldError]:
    for _, before, after in _pairs(pod, old, "containers"):
        if not semantically_equal(_with_old_amounts(after, before), before):
            yield forbidden_field("spec", "only cpu and memory resources are mutable")
    for path, before, after in _pairs(pod, old, "initContainers"):
        if is_restartable_init_container(before):
            if not semantically_equal(_with_old_amounts(after, before), before):
                yield forbidden_field(path, "only cpu and memory resources for init or sidecar containers are mutable")
        elif not semantically_equal(after, before):
            yield forbidden_field("spec", "resources for non-sidecar init containers are immutable")


def _with_old_amounts(container: Object, old: Object) -> Object:
    """The container with the old cpu and memory, and without claims."""
    return {**container, "resources": _with_old_resources(container.get("resources") or {}, old.get("resources") or {},
                                                          claims=False)}


def _with_old_resources(resources: Object, old: Object, *, claims: bool = True) -> Object:
    munged = {field: _with_old(resources.get(field) or {}, old.get(field) or {}) for field in FIELDS}
    kept = {"claims": resources["claims"]} if claims and resources.get("claims") else {}
    return {field: amounts for field, amounts in munged.items() if amounts} | kept


def _with_old(amounts: Object, had: Object) -> Object:
    others = {name: amount for name, amount in amounts.items() if name not in RESIZABLE}
    return others | {name: had[name] for name in RESIZABLE if name in had}
