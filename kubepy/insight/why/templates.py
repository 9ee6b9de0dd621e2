"""Pods of ReplicaSets and ReplicationControllers, which keep no revisions: whether a pod is still
what the template says.

Admission and the scheduler add to a pod (defaults, tokens, tolerations, a node), so that it has
more than its template; what the template says, it has as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kubepy.api.meta import Object, name_of, nested_list
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal
from kubepy.insight.why.remedies import pod_spec_of

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Scene

# Fields that nobody but the template gives to a pod: they are the same in both.
SAME = ("affinity", "nodeSelector", "readinessGates", "runtimeClassName")
ADDED_TO = ("tolerations", "topologySpreadConstraints", "volumes")  # a pod may have more of them
CONTAINERS = ("initContainers", "containers")
OF_CONTAINER = ("args", "command", "env", "envFrom", "image", "ports")
TOKEN = "kube-api-access-"  # the volume that admission adds


def of_earlier_template(scene: Scene, obj: Object) -> Finding | None:
    """Blame pods that come to nothing and are of an earlier template: a new one replaces none."""
    if scene.owner(obj) is not None:
        return None
    old = [
        pod
        for pod in scene.owned(obj, "pods")
        if not is_pod_ready(pod) and not is_pod_terminal(pod) and not follows(pod, obj)
    ]
    reason = scene.diagnose_any(old)
    if reason is None:
        return None
    return scene.lead(
        reason._replace(cause="broken-revision", remedies=(), fallbacks=()),
        scene.link(obj, "spec.template", "it has changed since, which replaces no pods"),
        [scene.command(obj, "delete", "pod", *sorted(map(name_of, old)))],
    )


def follows(pod: Object, workload: Object) -> bool:
    """Return whether a pod is what the template of its workload says."""
    spec = pod["spec"]
    wanted = pod_spec_of(workload)
    if any((spec.get(field) or None) != (wanted.get(field) or None) for field in SAME):
        return False
    if not includes(nested_list(wanted, "schedulingGates"), nested_list(spec, "schedulingGates")):
        return False  # gates of a pod are removed, never added
    if not all(
        includes(nested_list(spec, field), nested_list(wanted, field)) for field in ADDED_TO
    ):
        return False
    return has_volumes(spec, wanted) and has_account(spec, wanted) and has_containers(spec, wanted)


def includes(items: Iterable[Any], others: Iterable[Any]) -> bool:
    present = list(items)
    return all(item in present for item in others)


def has_volumes(spec: Object, wanted: Object) -> bool:
    """Return whether a pod has no volume but those of its template, and a token."""
    names = {volume["name"] for volume in nested_list(wanted, "volumes")}
    return all(
        volume["name"] in names or volume["name"].startswith(TOKEN)
        for volume in nested_list(spec, "volumes")
    )


def has_account(spec: Object, wanted: Object) -> bool:
    own = spec.get("serviceAccountName") or "default"
    return bool(own == (wanted.get("serviceAccountName") or "default"))


def has_containers(spec: Object, wanted: Object) -> bool:
    """Return whether a pod's containers run what those of its template do, with their requests."""
    for field in CONTAINERS:
        present = {container["name"]: container for container in nested_list(spec, field)}
        for container in nested_list(wanted, field):
            own = present.get(container["name"])
            if own is None or not is_like(own, container):
                return False
    return True


def is_like(container: Object, wanted: Object) -> bool:
    if any((container.get(name) or None) != (wanted.get(name) or None) for name in OF_CONTAINER):
        return False
    return all(
        contains((container.get("resources") or {}).get(kind) or {}, amounts)
        for kind, amounts in (wanted.get("resources") or {}).items()
        if isinstance(amounts, Mapping)
    )


def contains(amounts: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(amounts.get(name) == amount for name, amount in wanted.items())
