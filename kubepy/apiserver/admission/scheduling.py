"""Admission for scheduling: taints of new nodes, priority, tolerations, runtime classes.

Upstream: ``plugin/pkg/admission/{nodetaint,priority,defaulttolerationseconds,runtimeclass}``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object, clone
from kubepy.apiserver.server import Attributes
from kubepy.quoting import quote
from kubepy.storage import Key

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
TOLERATION_SECONDS = 300
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"


def taint_node(attributes: Attributes) -> None:
    """Taint a new node as not ready; its kubelet removes the taint."""
    spec = attributes.obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(
        taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints
    ):
        spec["taints"] = [*taints, {"effect": "NoSchedule", "key": NOT_READY}]


# --- priority -------------------------------------------------------------------------------------


def set_priority(attributes: Attributes) -> None:
    """Set ``priority`` and ``preemptionPolicy`` from the pod's PriorityClass. Raises Forbidden for
    other values."""
    spec = attributes.obj.setdefault("spec", {})
    priority_class = _priority_class(attributes)
    priority = int(priority_class.get("value", 0))
    policy = priority_class.get("preemptionPolicy", "PreemptLowerPriority")
    _refuse_other(attributes, "the integer value of priority", "priority", priority)
    _refuse_other(attributes, "the string value of PreemptionPolicy", "preemptionPolicy", policy)
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy
    if name := priority_class.get("metadata", {}).get("name"):
        spec["priorityClassName"] = name


def _priority_class(attributes: Attributes) -> Object:
    """Return the class that the pod names, else the default one, else an empty one. Raises
    Forbidden."""
    if name := attributes.obj["spec"].get("priorityClassName"):
        priority_class = attributes.transaction.get(Key(PRIORITY_CLASSES, "", name))
        if priority_class is None:
            raise attributes.forbidden(f"no PriorityClass with name {name} was found")
        return priority_class
    return _default_priority_class(attributes) or {}


def _default_priority_class(attributes: Attributes) -> Object | None:
    defaults = [
        priority_class
        for priority_class in attributes.transaction.list(PRIORITY_CLASSES)
        if priority_class.get("globalDefault")
    ]
    return min(defaults, key=lambda default: int(default.get("value", 0)), default=None)


def _refuse_other(attributes: Attributes, label: str, field: str, computed: Any) -> None:
    value = attributes.obj["spec"].get(field)
    if value is not None and value != computed:
        raise attributes.forbidden(
            f"{label} ({value}) must not be provided in pod spec; priority admission controller "
            f"computed {computed} from the given PriorityClass name"
        )


def keep_priority(attributes: Attributes) -> None:
    """Keep a pod's priority, which is settled when it is made."""
    old = (attributes.old or {}).get("spec", {})
    spec = attributes.obj.setdefault("spec", {})
    for field in ("priority", "preemptionPolicy"):
        if field in old:
            spec.setdefault(field, old[field])


def check_one_default(attributes: Attributes) -> None:
    """Refuse a second PriorityClass that is the default. Raises Forbidden."""
    if not attributes.obj.get("globalDefault"):
        return
    default = _default_priority_class(attributes)
    if default is not None and default["metadata"]["name"] != attributes.name:
        name = default["metadata"]["name"]
        raise attributes.forbidden(
            f"PriorityClass {name} is already marked as default. Only one default can exist"
        )


# --- tolerations ----------------------------------------------------------------------------------


def add_default_tolerations(attributes: Attributes) -> None:
    """Let a pod stay five minutes on a node that fails, unless it says otherwise."""
    spec = attributes.obj.setdefault("spec", {})
    tolerations = spec.get("tolerations") or []
    tolerated = {
        toleration.get("key", "")
        for toleration in tolerations
        if toleration.get("effect", "") in ("", "NoExecute")
    }
    missing = [key for key in (NOT_READY, UNREACHABLE) if not tolerated & {"", key}]
    added = [
        {
            "effect": "NoExecute",
            "key": key,
            "operator": "Exists",
            "tolerationSeconds": TOLERATION_SECONDS,
        }
        for key in missing
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


# --- runtime classes ------------------------------------------------------------------------------


def apply_runtime_class(attributes: Attributes) -> None:
    """Set overhead, node selector and tolerations of the class that the pod names. Raises
    Forbidden."""
    runtime_class = _runtime_class(attributes)
    if runtime_class is None:
        return
    spec = attributes.obj["spec"]
    if (overhead := runtime_class.get("overhead")) is not None:
        fixed = overhead.get("podFixed") or {}
        if spec.get("overhead") and spec["overhead"] != fixed:
            raise attributes.forbidden(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            )
        if fixed:
            spec["overhead"] = dict(fixed)

    if (scheduling := runtime_class.get("scheduling")) is not None:
        _select_nodes(attributes, scheduling.get("nodeSelector") or {})
        tolerations = spec.get("tolerations") or []
        if added := [
            clone(toleration)
            for toleration in scheduling.get("tolerations") or []
            if toleration not in tolerations
        ]:
            spec["tolerations"] = [*tolerations, *added]


def _runtime_class(attributes: Attributes) -> Object | None:
    name = attributes.obj["spec"].get("runtimeClassName")
    if name is None:
        return None
    runtime_class = attributes.transaction.get(Key(RUNTIME_CLASSES, "", name))
    if runtime_class is None:
        raise attributes.forbidden(f"pod rejected: RuntimeClass {quote(name)} not found")
    return runtime_class


def _select_nodes(attributes: Attributes, selector: dict[str, str]) -> None:
    own = attributes.obj["spec"].get("nodeSelector") or {}
    for key in sorted(selector):
        if own.get(key, selector[key]) != selector[key]:
            raise attributes.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {selector[key]}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    if selector:
        attributes.obj["spec"]["nodeSelector"] = {**own, **selector}


def check_overhead(attributes: Attributes) -> None:
    """Refuse overhead that does not come from the pod's RuntimeClass. Raises Forbidden."""
    runtime_class = _runtime_class(attributes)
    overhead = attributes.obj["spec"].get("overhead") or {}
    if runtime_class is not None and runtime_class.get("overhead") is not None:
        if overhead != (runtime_class["overhead"].get("podFixed") or {}):
            raise attributes.forbidden(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            )
    elif overhead:
        raise attributes.forbidden(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        )
