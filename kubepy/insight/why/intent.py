"""Changes that do nothing, or are undone: what a hand wants, and what the controllers go by.

A ConfigMap or Secret that was changed replaces no pods, and neither does a change of a workload
beside its template. An autoscaler undoes the size that a hand sets, or cannot set one itself.
Managed fields say who changed what, and when.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import (
    Object,
    annotations_of,
    is_being_deleted,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    status_of,
    uid_of,
)
from kubepy.api.objects.deployments import new_replica_set
from kubepy.api.objects.usage import MEASURED, PREFIX
from kubepy.insight.timeline import read_timeline
from kubepy.insight.why.jobs import patch
from kubepy.insight.why.scene import condition_status, plural, value_at

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

AUTOSCALERS = "horizontalpodautoscalers.autoscaling"
PODS = "pods"
CONTROLLERS = "kube-controller-manager"  # the field manager of all controllers
CHANGE_CAUSE = "kubernetes.io/change-cause"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ROLLED_OUT = ("Deployment", "DaemonSet", "StatefulSet")  # kinds that `rollout restart` knows
SCALED = ("deployments.apps", "replicasets.apps", "replicationcontrollers", "statefulsets.apps")
NEW_SIZE = re.compile(r"New size: (\d+)")
ROOT_CA = "kube-root-ca.crt"  # of every pod's token volume; its content never changes


# --- ConfigMaps and Secrets -----------------------------------------------------------------------


class ConfigSource(NamedTuple):
    """A ConfigMap or Secret that a pod uses.

    :ivar field: the path of the field that names it, below the pod's spec.
    :ivar is_live: the kubelet brings its files up to date while the pod runs.
    :ivar is_optional: the kubelet starts the pod without it, too.
    """

    resource: str
    name: str
    field: str
    is_live: bool = False
    is_optional: bool = False


def sources_of(spec: Object) -> Iterator[ConfigSource]:
    """Yield the ConfigMaps and Secrets that a pod spec uses in its environment and its volumes."""
    with_parts = {
        mount["name"]
        for name in ("initContainers", "containers")
        for container in spec.get(name) or ()
        for mount in nested_list(container, "volumeMounts")
        if mount.get("subPath")
    }
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            for number, source in enumerate(nested_list(container, "envFrom")):
                yield from named(
                    source, f"spec.{kind}[{index}].envFrom[{number}]", ("configMapRef", "secretRef")
                )
            for number, variable in enumerate(nested_list(container, "env")):
                yield from named(
                    nested_map(variable, "valueFrom"),
                    f"spec.{kind}[{index}].env[{number}].valueFrom",
                    ("configMapKeyRef", "secretKeyRef"),
                )

    for index, volume in enumerate(nested_list(spec, "volumes")):
        parts = [
            (volume, f"spec.volumes[{index}]"),
            *(
                (part, f"spec.volumes[{index}].projected.sources[{number}]")
                for number, part in enumerate(nested_list(volume, "projected", "sources"))
            ),
        ]
        for part, path in parts:
            for source in named(part, path, ("configMap", "secret")):
                if source.name != ROOT_CA:
                    yield source._replace(is_live=volume["name"] not in with_parts)


def named(holder: Object, path: str, fields: tuple[str, str]) -> Iterator[ConfigSource]:
    """Yield what an object names in one of two fields, a ConfigMap or a Secret."""
    for field, resource in zip(fields, ("configmaps", "secrets"), strict=True):
        reference = holder.get(field) or {}
        key = "secretName" if "secretName" in reference else "name"
        if name := reference.get(key):
            yield ConfigSource(
                resource, name, f"{path}.{field}.{key}", is_optional=bool(reference.get("optional"))
            )


def changed_after_start(scene: Scene, content: Object, pod: Object) -> bool:
    """Return whether a ConfigMap or Secret was written after the containers of a pod had started.

    Times are whole seconds, and an edited file leaves none. Where time stands, which it does in a
    cluster with a time of its own, resource versions decide.
    """
    states = [
        nested_map(status, "state", "running")
        for status in nested_list(pod, "status", "containerStatuses")
    ]
    starts = [state["startedAt"] for state in states if state.get("startedAt")]
    if not starts:
        return False
    started = str(min(starts))
    changed = str(value_at(content, changed_field(content)))
    newest = max(
        (entry.get("time", "") for entry in nested_list(content["metadata"], "managedFields")),
        default="",
    )
    is_exact = scene.cluster.clock.own is None
    if is_exact or newest > started or started != pod["metadata"].get("creationTimestamp"):
        return changed > started
    return _version(content) > start_version(scene, pod)


def is_late(scene: Scene, content: Object, pod: Object) -> bool:
    """Return whether a ConfigMap or Secret was made after a pod, and is as it was then. A pod that
    must have it would have waited, and started with what it has.

    Within one second the resource version decides, which tells when it was last written: one that a
    second manager has written since is not as it was made.
    """
    made, pod_made = (obj["metadata"]["creationTimestamp"] for obj in (content, pod))
    if value_at(content, changed_field(content)) > made:
        return False
    if made != pod_made:
        return bool(made > pod_made)
    is_as_made = len(nested_list(content["metadata"], "managedFields")) <= 1
    return is_as_made and _version(content) > start_version(scene, pod)


def start_version(scene: Scene, pod: Object) -> int:
    """Return the resource version of the event that the scheduler has bound a pod, without one the
    pod's own."""
    events = scene.events(pod)
    bound = [_version(event) for event in events if event["reason"] == "Scheduled"]
    return min(bound, default=_version(pod))


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def changed_field(content: Object) -> str:
    """Return the path of the time at which the data of a ConfigMap or Secret was written last."""
    entries = nested_list(content["metadata"], "managedFields")
    times = [
        (entry.get("time", ""), index)
        for index, entry in enumerate(entries)
        if not {"f:data", "f:binaryData", "f:stringData"}.isdisjoint(nested_list(entry, "fieldsV1"))
    ]
    if not times or max(times)[0] < content["metadata"]["creationTimestamp"]:
        return "metadata.creationTimestamp"
    return f"metadata.managedFields[{max(times)[1]}].time"


def pods_of(scene: Scene, obj: Object) -> list[Object]:
    """Return the pods of a workload that stay, or a pod itself."""
    if obj["kind"] == "Pod":
        return [obj]
    holders = scene.owned(obj, "replicasets.apps") if obj["kind"] == "Deployment" else [obj]
    return [
        pod for holder in holders for pod in scene.owned(holder, PODS) if not is_being_deleted(pod)
    ]


def config_changed(scene: Scene, obj: Object) -> Finding | None:
    """Say that a ConfigMap or Secret was changed after pods that use it had started."""
    spec = obj["spec"] if obj["kind"] == "Pod" else nested_map(obj["spec"], "template", "spec")
    path = "" if obj["kind"] == "Pod" else "spec.template."
    for source in sources_of(spec):
        content = scene.get(source.resource, namespace_of(obj), source.name)
        content = scene.client.with_managed_fields(content) if content else None
        if content:
            pods = [
                pod
                for pod in pods_of(scene, obj)
                if changed_after_start(scene, content, pod)
                and (source.is_optional or not is_late(scene, content, pod))
            ]
        else:
            pods = []
        if content is None or not pods:
            continue
        if source.is_live:
            use = (
                "it uses this as files, which the kubelet brings up to date; a program that read "
                "them before goes on with the old ones"
            )
        else:
            use = "it uses this, which its containers read when they start"
        started = "it" if obj["kind"] == "Pod" else plural(len(pods), "pod")
        field = changed_field(content)
        done = "made" if is_late(scene, content, pods[0]) else "changed"
        if value_at(content, field) <= value_at(pods[0], "status.startTime"):
            field = "metadata.resourceVersion"  # the time says nothing
        if obj["kind"] in ROLLED_OUT:
            restart = [scene.command(obj, "rollout", "restart", scene.word(obj))]
        else:
            restart = []
        return scene.finding(
            "config-changed",
            scene.link(obj, path + source.field, use),
            scene.link(content, field, f"it was {done} after {started} had started"),
            scene.link(pods[0], "status.startTime", "it started before that"),
            remedies=restart,
        )

    return None


# --- templates ------------------------------------------------------------------------------------


def template_unchanged(scene: Scene, obj: Object) -> Finding | None:
    """Say that a workload was changed after its newest revision was made, but not its template."""
    revision = newest_revision(scene, obj)
    if revision is None:
        return None
    rolled_out = revision["metadata"].get("creationTimestamp", "")
    obj = scene.client.with_managed_fields(obj)
    for index, entry in enumerate(nested_list(obj["metadata"], "managedFields")):
        fields = nested_map(entry, "fieldsV1")
        if (
            entry.get("manager") == CONTROLLERS
            or entry.get("subresource")
            or entry.get("time", "") < rolled_out
            or "f:template" in nested_map(fields, "f:spec")
            or is_change_cause(fields)
        ):
            continue
        text = (
            f"{entry.get('manager')} changed {changed_fields(fields)} at this time, but not "
            f"the template"
        )
        return scene.finding(
            "template-unchanged",
            scene.link(obj, f"metadata.managedFields[{index}].time", text),
            scene.link(
                revision,
                "metadata.creationTimestamp",
                "it is the newest revision, and has this template",
            ),
        )

    return None


def is_change_cause(fields: Object) -> bool:
    """Return whether a managed fields entry is about the annotation that describes a revision
    alone."""
    annotations = nested_map(fields, "f:metadata", "f:annotations")
    return (
        set(fields) == {"f:metadata"}
        and set(annotations) <= {".", f"f:{CHANGE_CAUSE}"}
        and (set(fields["f:metadata"]) == {"f:annotations"})
    )


def newest_revision(scene: Scene, obj: Object) -> Object | None:
    """Return the ReplicaSet or ControllerRevision of a workload's template."""
    if obj["kind"] == "Deployment":
        return new_replica_set(obj, scene.owned(obj, "replicasets.apps"))
    revisions = scene.owned(obj, "controllerrevisions.apps")
    return max(revisions, key=lambda revision: int(revision.get("revision") or 0), default=None)


def changed_fields(fields: Object) -> str:
    """Name the fields of a managed fields entry: ``metadata.annotations``, ``spec.replicas``."""
    names = [
        f"{part}.{field[2:]}"
        for part in ("metadata", "spec")
        for field in fields.get(f"f:{part}") or ()
        if field.startswith("f:")
    ]
    return ", ".join(names) or "it"


# --- autoscalers ----------------------------------------------------------------------------------


def autoscalers_of(scene: Scene, workload: Object) -> list[Object]:
    """Return the autoscalers of a workload that are not being deleted."""
    wanted = workload["kind"], name_of(workload)
    return [
        autoscaler
        for autoscaler in scene.list(AUTOSCALERS, namespace_of(workload))
        if not is_being_deleted(autoscaler) and target_name(autoscaler) == wanted
    ]


def target_name(autoscaler: Object) -> tuple[str, str]:
    """Return the kind and the name of the workload that an autoscaler scales."""
    reference = autoscaler["spec"]["scaleTargetRef"]
    return reference["kind"], reference["name"]


def rivals(scene: Scene, autoscaler: Object) -> list[Object]:
    """Return the other autoscalers of the same workload that are not being deleted."""
    return [
        other
        for other in scene.list(AUTOSCALERS, namespace_of(autoscaler))
        if uid_of(other) != uid_of(autoscaler)
        and not is_being_deleted(other)
        and target_name(other) == target_name(autoscaler)
    ]


def target_of(scene: Scene, autoscaler: Object) -> Object | None:
    """Return the workload that an autoscaler scales."""
    reference = autoscaler["spec"]["scaleTargetRef"]
    resource = scene.cluster.scheme.for_kind(reference.get("apiVersion", ""), reference["kind"])
    if resource:
        return scene.get(resource.key, namespace_of(autoscaler), reference["name"])
    return None


def autoscaler_conflict(scene: Scene, workload: Object) -> Finding | None:
    """Say that the autoscaler of a workload will undo, or has undone, the size that a hand set, or
    that several of them undo each other's."""
    autoscalers = autoscalers_of(scene, workload)
    if len(autoscalers) > 1:
        return rivalry(scene, autoscalers, workload)
    if autoscalers:
        return conflict(scene, workload, autoscalers[0])
    return None


def rivalry(scene: Scene, autoscalers: list[Object], asked: Object) -> Finding:
    """Return the finding about several autoscalers of one workload.

    :param asked: the workload, or one of the autoscalers, which is left as it is.
    """
    others = [other for other in autoscalers if other is not asked]
    names = " and ".join(f"hpa/{name_of(other)}" for other in others)
    is_workload = len(others) == len(autoscalers)
    if is_workload:
        link = scene.link(asked, "spec.replicas", f"{names} set this size against each other")
    else:
        link = scene.link(asked, "spec.scaleTargetRef.name", f"{names} scales the same pods")

    limits = [
        scene.link(
            other,
            "spec.maxReplicas",
            f"it keeps the size from {other['spec'].get('minReplicas', 1)} to "
            f"{other['spec']['maxReplicas']}",
        )
        for other in others
    ]
    return scene.finding(
        "autoscaler-rival",
        link,
        *limits,
        remedies=[scene.command(other, "delete", "hpa", name_of(other)) for other in others],
    )


def conflict(scene: Scene, workload: Object, autoscaler: Object) -> Finding | None:
    """Return the finding about a workload and an autoscaler that disagree about its size."""
    replicas = workload["spec"].get("replicas", 1)
    spec = autoscaler["spec"]
    lowest = spec.get("minReplicas", 1)
    highest = spec["maxReplicas"]
    name = f"hpa/{name_of(autoscaler)}"
    if replicas and not lowest <= replicas <= highest:
        field, limit = (
            ("spec.maxReplicas", highest) if replicas > highest else ("spec.minReplicas", lowest)
        )
        link = scene.link(autoscaler, field, f"it sets the size back to {limit}")
        change = {field.removeprefix("spec."): replicas}
        return scene.finding(
            "autoscaler-conflict",
            scene.link(workload, "spec.replicas", f"{name} does not allow this size"),
            link,
            remedies=[patch(scene, autoscaler, change)],
        )

    desired = status_of(autoscaler).get("desiredReplicas") or 0
    if replicas and desired and desired != replicas:
        text = f"somebody set this size after {name} had set another one"
        return scene.finding(
            "autoscaler-conflict",
            scene.link(workload, "spec.replicas", text),
            scene.link(
                autoscaler, "status.desiredReplicas", "this is the size that the autoscaler wants"
            ),
        )

    undone = undone_size(scene, workload, autoscaler) if replicas else None
    if undone is not None:
        size, event = undone
        text = f"{name} set this size, and undid {size} replicas, which somebody else had set"
        return scene.finding(
            "autoscaler-conflict",
            scene.link(workload, "spec.replicas", text),
            scene.link(
                event,
                "message",
                f"{name} allows {lowest} to {highest} replicas, and goes by its metrics",
            ),
        )

    return None


def manifest_conflict(scene: Scene, workload: Object) -> Finding | None:
    """Say that the manifest of a workload has another size than its autoscaler has set."""
    autoscalers = autoscalers_of(scene, workload)
    applied = applied_replicas(workload)
    replicas = workload["spec"].get("replicas", 1)
    if not autoscalers or applied is None or not replicas or applied == replicas:
        return None
    [autoscaler, *_] = autoscalers
    text = (
        f"its manifest has {applied} replicas, and each `apply` sets them again: leave "
        f"replicas out of it"
    )
    return scene.finding(
        "autoscaler-conflict",
        scene.link(workload, "spec.replicas", f"hpa/{name_of(autoscaler)} set this size"),
        scene.link(workload, f"metadata.annotations['{LAST_APPLIED}']", text),
    )


def applied_replicas(workload: Object) -> int | None:
    """Return the size in the manifest that was applied last; None for none."""
    try:
        replicas = json.loads(annotations_of(workload).get(LAST_APPLIED, "{}"))["spec"]["replicas"]
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(replicas, int):
        return replicas
    return None


def undone_size(scene: Scene, workload: Object, autoscaler: Object) -> tuple[int, Object] | None:
    """Return the size that an autoscaler replaced last, if somebody else had set it, and the event
    that says so."""
    events = {
        int(size[0]): event
        for event in scene.events(autoscaler)
        if event.get("reason") == "SuccessfulRescale"
        and (size := NEW_SIZE.findall(event.get("message", "")))
    }
    event = events.get(workload["spec"].get("replicas", 1))
    key = scene.key(workload)
    if event is None:
        return None
    sizes = [
        int(step.reason.split(" to ")[1])
        for step in read_timeline(scene.cluster, subject=key).steps
        if step.key == key and step.action == "scaled" and " to " in step.reason
    ]
    if len(sizes) > 1 and sizes[-2] not in events:
        return (sizes[-2], event)
    return None


def autoscaler(scene: Scene, obj: Object) -> Finding | None:
    """Diagnose an autoscaler that cannot scale: no target or none with pods, a rival, no
    metrics."""
    target = target_of(scene, obj)
    if condition_status(obj, "AbleToScale") == "False" or target is None:
        if condition_status(obj, "AbleToScale"):
            link = scene.condition_link(
                obj, "AbleToScale", "it cannot read the size of its target", "message"
            )
        else:
            link = scene.link(obj, "spec.scaleTargetRef.name", "there is no such target")
        return scene.finding("autoscaler-without-target", link)

    if others := rivals(scene, obj):
        return rivalry(scene, [obj, *others], obj)
    active = scene.condition_link(obj, "ScalingActive", "it does not scale", "reason")
    if condition_status(obj, "ScalingActive") != "False":
        finding = of_target(scene, obj, target) if scene.is_stuck else None
        return finding or conflict(scene, target, obj) or of_target(scene, obj, target)
    if active.value == "ScalingDisabled":
        size = max(obj["spec"].get("minReplicas", 1), 1)
        return scene.finding(
            "autoscaler-conflict",
            active,
            scene.link(
                target, "spec.replicas", "a target that a hand has scaled to zero is not scaled"
            ),
            remedies=[scene.command(target, "scale", scene.word(target), f"--replicas={size}")],
        )

    if active.value == "AmbiguousSelector":
        message = scene.condition_link(
            obj, "ScalingActive", "others scale some of the same pods", "message"
        )
        return scene.finding("autoscaler-rival", message)

    lacking = without_metrics(scene, obj, target)
    if not lacking.remedies and (finding := of_target(scene, obj, target)) is not None:
        return finding  # pods that do not run have no metrics
    return lacking


def of_target(scene: Scene, obj: Object, target: Object) -> Finding | None:
    """Return the finding about the target of an autoscaler, which does not have all of its pods."""
    finding = scene.diagnose(target)
    if finding is None:
        return None
    field = "status.desiredReplicas"
    desired = int(status_of(obj).get("desiredReplicas") or 0)
    if not desired:  # it has not computed a size yet
        field = "spec.minReplicas"
        desired = int(obj["spec"].get("minReplicas", 1))
    available = int(status_of(target).get("availableReplicas") or 0)
    text = f"it wants {plural(desired, 'pod')}, and {available} of its target's are available"
    return scene.lead(finding, scene.link(obj, field, text))


def without_metrics(scene: Scene, obj: Object, target: Object) -> Finding:
    """Return the finding about an autoscaler that cannot compute a size from its metrics."""
    link = scene.condition_link(obj, "ScalingActive", "it cannot compute a size", "message")
    resources = [
        metric["resource"]["name"]
        for metric in nested_list(obj["spec"], "metrics")
        if metric["type"] == "Resource"
    ]
    template = nested_map(target["spec"], "template")
    containers = nested_list(template, "spec", "containers")
    annotations = nested_map(template, "metadata", "annotations")
    chain = []
    change = {}
    requests = []
    for resource in MEASURED:
        if resource not in resources:
            continue
        annotation = PREFIX + resource
        amount = "100m" if resource == "cpu" else "128Mi"
        for index, container in enumerate(containers):
            if resource not in nested_map(container, "resources", "requests"):
                chain.append(
                    scene.link(
                        target,
                        f"spec.template.spec.containers[{index}].resources.requests.{resource}",
                        f"container {container['name']} requests no {resource}",
                    )
                )
                requests.append((container["name"], resource, amount))
        if not any(name.startswith(annotation) for name in annotations):
            chain.append(
                scene.link(
                    target,
                    f"spec.template.metadata.annotations['{annotation}']",
                    f"its pods do not say how much {resource} they use",
                )
            )
            change[annotation] = amount

    return scene.finding(
        "autoscaler-without-metrics",
        link,
        *chain,
        remedies=[measured(scene, target, change, requests)] if chain else (),
    )


def measured(
    scene: Scene, target: Object, annotations: dict[str, str], requests: list[tuple[str, str, str]]
) -> Words:
    """Return the command after which the pods of a workload have metrics and requests."""
    template: dict[str, Any] = {"metadata": {"annotations": annotations}} if annotations else {}
    if requests:
        names = dict.fromkeys(name for name, _, _ in requests)
        template["spec"] = {
            "containers": [
                {
                    "name": name,
                    "resources": {
                        "requests": {
                            resource: amount
                            for other, resource, amount in requests
                            if other == name
                        }
                    },
                }
                for name in names
            ]
        }

    text = json.dumps({"spec": {"template": template}}, separators=(",", ":"))
    return scene.command(target, "patch", scene.word(target), "-p", text)


def note_limited(scene: Scene, obj: Object) -> Finding | None:
    """Say about an autoscaler that it has no more room, or disagrees with a hand."""
    target = target_of(scene, obj)
    link = scene.condition_link(
        obj, "ScalingLimited", "its metrics call for more replicas than maxReplicas", "reason"
    )
    if condition_status(obj, "ScalingLimited") == "True" and link.value == "TooManyReplicas":
        return scene.finding(
            "autoscaler-limited", link, scene.link(obj, "spec.maxReplicas", "it stays at this size")
        )
    if target is not None:
        return conflict(scene, target, obj)
    return None


WITH_TEMPLATES = ("daemonsets.apps", "deployments.apps", "statefulsets.apps")
DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {AUTOSCALERS: (autoscaler,)}
NOTES: dict[str, tuple[Diagnosis, ...]] = {
    **dict.fromkeys(SCALED, (autoscaler_conflict, manifest_conflict)),
    AUTOSCALERS: (note_limited,),
}
LAST_NOTES: dict[str, tuple[Diagnosis, ...]] = dict.fromkeys(WITH_TEMPLATES, (template_unchanged,))
