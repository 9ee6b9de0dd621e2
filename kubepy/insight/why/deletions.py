"""Objects that are being deleted and do not go: what holds them, and what would let them go.

A pod is held until its containers have stopped; then, as every object, by its finalizers. Those
that a controller of the cluster removes tell what it waits for (:data:`KEEPERS`): dependents, pods,
claims, custom resources, which are diagnosed in turn. Any other finalizer is for a program that
does not run here, so that only a patch removes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, cast

from kubepy.api.clock import format_time
from kubepy.api.errors import Status
from kubepy.api.meta import (
    FOREGROUND,
    ORPHAN,
    Object,
    annotations_of,
    is_being_deleted,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    owner_references,
    uid_of,
)
from kubepy.api.objects.nodes import DOWN_UNTIL, down_until, is_down, is_node_unknown
from kubepy.api.objects.outcomes import TERMINATION
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal, node_name, phase_of
from kubepy.api.objects.volumes import is_bound_to
from kubepy.apiserver.request import DeleteOptions
from kubepy.apiserver.requests.deletion import CLEANUP, CRDS
from kubepy.controllers.job.pods import FINALIZER as JOB_TRACKING
from kubepy.controllers.namespace import CONTENT_FAILURE, CONTENT_REMAINING, FINALIZERS_REMAINING
from kubepy.controllers.namespace import FINALIZER as KUBERNETES
from kubepy.controllers.persistentvolume.provisioner import FINALIZER as PROVISIONER_FINALIZER
from kubepy.controllers.persistentvolume.provisioner import is_own
from kubepy.controllers.podgc import TAINT_OUT_OF_SERVICE
from kubepy.controllers.volumeprotection import PV_FINALIZER, PVC_FINALIZER, is_in_use
from kubepy.insight import Finding, Link
from kubepy.insight.why.scene import EVERY_KIND, condition_status, plural

if TYPE_CHECKING:
    from kubepy.api.typed import PersistentVolumeClaim, Pod
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

PODS = "pods"
NODES = "nodes"
CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
FINALIZERS = "metadata.finalizers"
DELETED_AT = "metadata.deletionTimestamp"
REFUSED = "deletion-refused"
GOING = "terminating"  # the cause of objects that will be gone by themselves
AT_ONCE = ("--grace-period=0", "--force")
MOST_MERGED = 20  # objects that a remedy names


def being_deleted(scene: Scene, obj: Object) -> Finding | None:
    """Diagnose any object that is being deleted."""
    if not is_being_deleted(obj):
        return None
    finding = holder(scene, obj)
    if finding.cause == GOING and not scene.reconciles:
        link = scene.link(
            obj, DELETED_AT, "nobody runs the controllers, so nobody goes on with the deletion"
        )
        return scene.finding("no-controllers", link, remedies=[("controller", "--until-settled")])
    return finding


def holder(scene: Scene, obj: Object) -> Finding:
    """Return the finding about what holds an object that is being deleted."""
    resource = scene.key(obj).resource
    metadata = obj["metadata"]
    if resource == PODS and metadata.get("deletionGracePeriodSeconds") != 0:
        return terminating_pod(scene, obj)
    if resource == "namespaces":
        return terminating_namespace(scene, obj)
    if foreign := foreign_finalizers(scene, obj):
        return foreign_finalizer(scene, obj, foreign)
    keepers = (
        KEEPERS[resource if (resource, finalizer) in KEEPERS else "", finalizer]
        for finalizer in nested_list(metadata, "finalizers")
    )
    findings = [keeper(scene, obj) for keeper in keepers] or [
        scene.finding(
            GOING, scene.link(obj, DELETED_AT, "it is being deleted, and nothing holds it")
        )
    ]
    return next(filter(is_stuck, findings), findings[0])


# --- pods -----------------------------------------------------------------------------------------


def terminating_pod(scene: Scene, pod: Object) -> Finding:
    """Diagnose a pod that is being deleted and whose containers have not stopped, as far as anybody
    knows."""
    node = scene.get(NODES, "", node_name(pod))
    force = scene.command(pod, "delete", "pod", name_of(pod), *AT_ONCE)
    if node is None:
        text = (
            f"no kubelet can end it: node {node_name(pod)} does not exist; pods of such a node "
            f"are deleted after 40s"
        )
        return scene.finding(GOING, scene.link(pod, "spec.nodeName", text), remedies=[force])

    if is_silent(scene, node):
        text = (
            f"it is being deleted, and the kubelet of {node_name(pod)}, which would stop it, "
            f"does not answer"
        )
        return scene.lead(
            dead_node(scene, node, of_terminating=True), scene.link(pod, DELETED_AT, text), [force]
        )

    if annotations_of(pod).get(TERMINATION) == "stuck":
        grace = pod["metadata"].get("deletionGracePeriodSeconds")
        return scene.finding(
            "stuck-terminating",
            scene.link(pod, DELETED_AT, f"its grace period of {grace}s ends at this time"),
            scene.link(pod, f"metadata.annotations['{TERMINATION}']", "its containers do not stop"),
            remedies=[force],
        )

    text = "its containers have until then to stop"
    return scene.finding(GOING, scene.link(pod, DELETED_AT, text), remedies=[force])


def is_silent(scene: Scene, node: Object) -> bool:
    """Tell whether the kubelet of a node reports nothing: it is down, or was so where the cluster
    was imported from."""
    if is_down(node, scene.now):
        return True
    return name_of(node) in scene.settings.kubelet.silent_nodes and is_node_unknown(node)


def dead_node(scene: Scene, node: Object, *, of_terminating: bool) -> Finding:
    """Return the finding about a node whose kubelet is silent.

    :param of_terminating: the pods there that are being deleted are asked about, not those that
        should run.
    """
    name = name_of(node)
    until = down_until(node)
    back = f", and will not before {format_time(until)}" if until else ""
    remedies: list[Words] = [("delete", "node", name)]
    if of_terminating and condition_status(node, "Ready") != "True":
        remedies.append(("taint", "node", name, f"{TAINT_OUT_OF_SERVICE}=nodeshutdown:NoExecute"))
    if until is not None:
        remedies.append(("annotate", "node", name, f"{DOWN_UNTIL}-"))
    return scene.finding(
        "dead-node",
        scene.condition_link(node, "Ready", f"its kubelet does not report{back}"),
        remedies=remedies,
    )


def pod_of_dead_node(scene: Scene, pod: Object) -> Finding | None:
    """Diagnose a pod that is not ready because its node is dead."""
    node = scene.get(NODES, "", node_name(pod))
    if node is None and node_name(pod) and not is_pod_terminal(pod):
        return scene.finding(
            "dead-node",
            scene.link(
                pod,
                "spec.nodeName",
                f"node {node_name(pod)} does not exist; pods of such a node are deleted after 40s",
            ),
        )

    if node is None or is_pod_ready(pod) or is_pod_terminal(pod) or not is_silent(scene, node):
        return None
    started = phase_of(pod) == "Running"
    if started:
        text = f"it counts as not ready since node {name_of(node)} is dead"
    else:
        text = f"the kubelet of {name_of(node)}, which would start it, does not answer"

    if started:
        link = scene.condition_link(pod, "Ready", text)
    else:
        link = scene.link(pod, "status.phase", text)

    return scene.lead(dead_node(scene, node, of_terminating=False), link)


def terminating_pods(scene: Scene, workload: Object, pods: Iterable[Object]) -> Finding | None:
    """Diagnose a workload that waits until pods of it are gone.

    :param pods: its pods, or the pods that it waits for. One that does not go by itself comes
        before those that do.
    """
    leaving = [pod for pod in pods if is_being_deleted(pod)]
    finding = worst(scene, leaving)
    if finding is None:
        return None
    text = f"{counted(leaving, 'old pod')} still being deleted, and it waits until they are gone"
    return scene.lead(finding, scene.link(workload, "", text))


def pods_left_behind(scene: Scene, workload: Object) -> Finding | None:
    """Say about a workload that is done that pods of it are being deleted and do not go."""
    if workload["kind"] == "Deployment":
        holders = scene.owned(workload, "replicasets.apps")
    else:
        holders = [workload]

    leaving = [
        pod for holder in holders for pod in scene.owned(holder, PODS) if is_being_deleted(pod)
    ]
    stuck = [
        finding
        for pod in leaving
        if is_stuck(finding := being_deleted(scene, pod)) and finding is not None
    ]
    if not stuck:
        return None
    text = f"it does not wait for them, but {counted(stuck, 'pod')} left behind, and will not go"
    return scene.lead(together(stuck), scene.link(workload, "", text))


def counted(objects: Sized, noun: str) -> str:
    """Return ``1 pod is``, ``3 pods are``."""
    return f"{plural(len(objects), noun)} {'is' if len(objects) == 1 else 'are'}"


def is_stuck(finding: Finding | None) -> bool:
    return finding is not None and finding.cause != GOING


def worst(scene: Scene, objects: Iterable[Object]) -> Finding | None:
    """Return the finding about the first object that could not be deleted, or does not go by
    itself, with remedies that let all such objects go; if there is none, the finding about the
    first object that is being deleted."""
    findings = [
        finding
        for obj in objects
        if (finding := scene.diagnose(obj) if is_being_deleted(obj) else undeleted(scene, obj))
        is not None
    ]
    stuck = [finding for finding in findings if is_stuck(finding)]
    if not stuck:
        if findings:
            return findings[0]
        return None
    return together(stuck)


def together(findings: list[Finding]) -> Finding:
    """Return the first of some findings, with remedies that are for all of them."""
    remedies = zip(*(finding.remedies for finding in findings), strict=False)
    return findings[0]._replace(remedies=tuple(map(merged, remedies)))


def merged(commands: tuple[Words, ...]) -> Words:
    """Merge command lines that differ in the name of an object only; of others return the first."""
    first, *others = commands
    if len(commands) > MOST_MERGED or any(len(words) != len(first) for words in others):
        return first
    places = [
        place for place, words in enumerate(zip(*commands, strict=True)) if len(set(words)) > 1
    ]
    if len(places) != 1:
        return first
    names = dict.fromkeys(words[places[0]] for words in commands)
    return (*first[: places[0]], *names, *first[places[0] + 1 :])


def undeleted(scene: Scene, obj: Object) -> Finding | None:
    """Return the finding about an object that should have been deleted, where the API refuses
    that."""
    key = scene.key(obj)
    try:
        scene.client.delete(
            key.resource, key.name, namespace=key.namespace, options=DeleteOptions(dry_run=True)
        )
    except Status as error:
        return scene.finding(REFUSED, scene.link(obj, "", f"the API refuses to delete it: {error}"))
    return None


# --- finalizers -----------------------------------------------------------------------------------


def foreign_finalizers(scene: Scene, obj: Object) -> list[str]:
    """Return the finalizers of an object that no controller of the cluster removes."""
    resource = scene.key(obj).resource
    return [
        finalizer
        for finalizer in nested_list(obj["metadata"], "finalizers")
        if ("", finalizer) not in KEEPERS and (resource, finalizer) not in KEEPERS
    ]


def foreign_finalizer(scene: Scene, obj: Object, foreign: list[str]) -> Finding:
    """Return the finding about finalizers that no controller of the cluster removes."""
    resource = scene.cluster.scheme.for_kind(obj["apiVersion"], obj["kind"])
    obj = scene.client.with_managed_fields(obj)
    is_custom = resource is not None and resource.custom
    author = " and ".join(
        sorted({manager for finalizer in foreign for manager in managers_of(obj, finalizer)})
    )
    whose = f" (set by {author})" if author else ""
    kept = [finalizer for finalizer in obj["metadata"]["finalizers"] if finalizer not in foreign]
    patch = json.dumps({"metadata": {"finalizers": kept or None}}, separators=(",", ":"))
    names = ", ".join(foreign)
    if is_custom:
        text = (
            f"no controller of this cluster removes {names}{whose}: that is for the operator of "
            f"{obj['kind']} objects"
        )
    else:
        text = f"no controller of this cluster removes {names}{whose}"

    return scene.finding(
        "finalizer-without-owner" if is_custom else "finalizer",
        scene.link(obj, FINALIZERS, text),
        remedies=[scene.command(obj, "patch", scene.word(obj), "--type=merge", "-p", patch)],
    )


def managers_of(obj: Object, finalizer: str) -> Iterator[str]:
    """Yield the field managers that set a finalizer."""
    for entry in nested_list(obj["metadata"], "managedFields"):
        fields = nested_map(entry, "fieldsV1", "f:metadata")
        if f'v:"{finalizer}"' in nested_map(fields, "f:finalizers"):
            yield str(entry.get("manager", ""))


def foreground(scene: Scene, obj: Object) -> Finding:
    """Diagnose an object in foreground deletion: it waits for the dependents that block it."""
    dependents = [child for child in dependents_of(scene, obj) if is_blocking(child, obj)]
    at_once = scene.command(obj, "delete", scene.word(obj), "--cascade=background")
    if dependents:
        text = f"{counted(dependents, 'dependent')} still there (foreground deletion)"
    else:
        text = "the garbage collector removes the finalizer: no dependent is left"

    link = scene.link(obj, FINALIZERS, text)
    finding = worst(scene, dependents)
    if finding is not None and is_stuck(finding):
        return scene.finding(
            finding.cause, link, *finding.chain, remedies=(*finding.remedies, at_once)
        )

    leaf: Sequence[Link] = ()
    if finding is not None:
        leaf = finding.chain
    else:
        leaf = [
            scene.link(
                child, "metadata.ownerReferences", "the garbage collector has not deleted it yet"
            )
            for child in dependents[:1]
        ]

    return scene.finding(
        "foreground-deletion", link, *leaf, remedies=[at_once] if dependents else []
    )


def dependents_of(scene: Scene, owner: Object) -> Iterator[Object]:
    """Yield the objects that name an owner; pods come last, since those between them and the owner
    say more."""
    namespaces = namespace_of(owner) or None
    for resource in sorted(scene.cluster.resources(), key=lambda name: (name == PODS, name)):
        if resource != "events":
            for obj in scene.list(resource, namespaces):
                if any(reference["uid"] == uid_of(owner) for reference in owner_references(obj)):
                    yield obj


def is_blocking(child: Object, owner: Object) -> bool:
    return any(
        reference["uid"] == uid_of(owner) and reference.get("blockOwnerDeletion")
        for reference in owner_references(child)
    )


def orphaning(scene: Scene, obj: Object) -> Finding:
    text = "the garbage collector takes it off its dependents, then removes the finalizer"
    return scene.finding(GOING, scene.link(obj, FINALIZERS, text))


def tracked_pod(scene: Scene, pod: Object) -> Finding:
    """Diagnose a pod that is kept until its Job has counted it."""
    job = scene.owner(pod)
    if job is None or job["kind"] != "Job":
        return scene.finding(
            GOING, scene.link(pod, FINALIZERS, "the Job controller removes the finalizer")
        )

    text = "the Job controller removes the finalizer when it has counted the pod"
    manager = job["spec"].get("managedBy")
    if manager:
        text = f"the finalizer is for {manager} to remove, which runs its Job"
        return scene.finding(
            "finalizer",
            scene.link(pod, FINALIZERS, text),
            scene.link(job, "spec.managedBy", text),
            remedies=foreign_finalizer(scene, pod, [JOB_TRACKING]).remedies,
        )

    return scene.finding(GOING, scene.link(pod, FINALIZERS, text))


# --- claims, volumes, custom resources ------------------------------------------------------------


def protected_claim(scene: Scene, claim: Object) -> Finding:
    """Diagnose a claim that is kept for the pods that use it."""
    pods = users_of(scene, claim)
    names = ", ".join(name_of(pod) for pod in pods)
    if not pods:
        return scene.finding(
            GOING, scene.link(claim, FINALIZERS, "no pod uses it: its finalizer is being removed")
        )

    link = scene.link(claim, FINALIZERS, f"it is kept as long as a pod uses it: {names}")
    leaving = [pod for pod in pods if is_being_deleted(pod)]
    if len(leaving) == len(pods) and (finding := worst(scene, leaving)) is not None:
        return scene.lead(finding, link)
    users = [pod for pod in pods if not is_being_deleted(pod)]
    remedies = [scene.command(claim, "delete", "pod", *(name_of(pod) for pod in users))]
    if len({uid_of(owner) for pod in users if (owner := top_owner(scene, pod))}) == 1:
        owner = top_owner(scene, users[0])
        if owner is not None and "replicas" in owner.get("spec", {}):
            remedies.append(scene.command(owner, "scale", scene.word(owner), "--replicas=0"))

    volumes = nested_list(users[0]["spec"], "volumes")
    index = next(
        (
            index
            for index, volume in enumerate(volumes)
            if nested_map(volume, "persistentVolumeClaim").get("claimName") == name_of(claim)
        ),
        None,
    )
    if is_pod_terminal(users[0]):
        text = f"it uses the claim, also now that it has ended ({phase_of(users[0])})"
    else:
        text = "it uses the claim"

    if index is None:
        field = "spec.volumes"
    else:
        field = f"spec.volumes[{index}].persistentVolumeClaim.claimName"

    return scene.finding(
        "claim-protected", link, scene.link(users[0], field, text), remedies=remedies
    )


def users_of(scene: Scene, claim: Object) -> list[Object]:
    """Return the pods for which a claim is kept."""
    typed = cast("PersistentVolumeClaim", claim)
    return [
        pod for pod in scene.list(PODS, namespace_of(claim)) if is_in_use(typed, cast("Pod", pod))
    ]


def top_owner(scene: Scene, obj: Object) -> Object | None:
    """Return the controller of an object, or that one's controller, up to the last; None for one
    without."""
    owner = scene.owner(obj)
    if owner is not None:
        return top_owner(scene, owner) or owner
    return None


def protected_volume(scene: Scene, volume: Object) -> Finding:
    """Diagnose a volume that is kept for the claim that is bound to it."""
    reference = nested_map(volume["spec"], "claimRef")
    claim = scene.get(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
    if phase_of(volume) != "Bound" or claim is None or not is_bound_to(volume, claim):
        return scene.finding(
            GOING,
            scene.link(volume, FINALIZERS, "no claim is bound to it: its finalizer is removed"),
        )

    link = scene.link(
        volume,
        FINALIZERS,
        f"it is kept as long as a claim is bound to it: {namespace_of(claim)}/{name_of(claim)}",
    )
    if is_being_deleted(claim) and (finding := scene.diagnose(claim)) is not None:
        return scene.lead(finding, link)
    remedies = [scene.command(claim, "delete", scene.word(claim))]
    pods = [f"pod/{name_of(pod)}" for pod in users_of(scene, claim)]
    if pods:
        remedies = [scene.command(claim, "delete", scene.word(claim), *pods)]
    return scene.finding(
        "volume-protected",
        link,
        scene.link(claim, "spec.volumeName", "it is bound to the volume"),
        remedies=remedies,
    )


def provisioned_volume(scene: Scene, volume: Object) -> Finding:
    """Diagnose a volume whose provisioner deletes what is behind it, once no claim needs it."""
    finding = protected_volume(scene, volume)
    if finding.cause == GOING and not is_own(volume):
        return foreign_finalizer(scene, volume, [PROVISIONER_FINALIZER])
    return finding


def definition_with_objects(scene: Scene, definition: Object) -> Finding:
    """Diagnose a CustomResourceDefinition that is kept until its objects are deleted."""
    objects = scene.list(name_of(definition))
    link = scene.condition_link(
        definition,
        "Terminating",
        f"it is kept until its objects are gone: {counted(objects, 'object')} still there",
        "message",
    )
    finding = worst(scene, objects)
    if finding is not None:
        return scene.lead(finding, link)
    return scene.finding(GOING, link)


# --- namespaces -----------------------------------------------------------------------------------


def terminating_namespace(scene: Scene, namespace: Object) -> Finding:
    """Diagnose a namespace that is being deleted: by its content, of which pods go first, then by
    its finalizers."""
    content = list(content_of(scene, name_of(namespace)))
    absent_objects = scene.settings.absent
    unheld = absent_objects.remaining_in(namespace) if absent_objects is not None else ""
    if not content and unheld:
        return namespace_with_absent_content(scene, namespace, unheld)
    if not content:
        return empty_namespace(scene, namespace)
    finding = worst(scene, content)
    is_held = condition_status(namespace, FINALIZERS_REMAINING) == "True"
    reported = [
        condition
        for condition in (FINALIZERS_REMAINING, CONTENT_FAILURE, CONTENT_REMAINING)
        if condition_status(namespace, condition) == "True"
    ]
    text = f"{counted(content, 'object')} still in it"
    if reported:
        link = scene.condition_link(namespace, reported[0], text, "message")
    else:
        link = scene.link(namespace, "status.phase", text)

    chain: Sequence[Link] = ()
    if finding is not None:
        chain = finding.chain
    else:
        chain = [scene.link(content[0], "", "it has not been deleted yet")]

    return scene.finding(
        "namespace-finalizer" if is_held else "namespace-contents",
        link,
        *chain,
        remedies=finding.remedies if finding is not None else (),
    )


def namespace_with_absent_content(scene: Scene, namespace: Object, unheld: str) -> Finding:
    """Diagnose a namespace of an imported cluster that is kept by what the source does not hold."""
    is_held = condition_status(namespace, FINALIZERS_REMAINING) == "True"
    condition = FINALIZERS_REMAINING if is_held else CONTENT_REMAINING
    text = f"the source of the import does not hold what remains in it: {unheld}"
    if condition_status(namespace, condition) == "True":
        link = scene.condition_link(namespace, condition, text, "message")
    else:
        link = scene.link(namespace, "status.phase", text)
    cause = "namespace-finalizer" if is_held else "namespace-contents"
    return scene.finding(cause, link)


def empty_namespace(scene: Scene, namespace: Object) -> Finding:
    """Diagnose a namespace that is being deleted and has no content any more."""
    kept = foreign_finalizers(scene, namespace)
    spec = nested_list(namespace["spec"], "finalizers")
    if KUBERNETES not in spec and spec:
        text = (
            f"no controller of this cluster removes {', '.join(spec)}: only `replace --raw "
            f"/api/v1/namespaces/{name_of(namespace)}/finalize -f FILE` can, with a namespace "
            f"without it"
        )
        return scene.finding("namespace-finalizer", scene.link(namespace, "spec.finalizers", text))
    if kept:
        return foreign_finalizer(scene, namespace, kept)._replace(cause="namespace-finalizer")
    return scene.finding(
        GOING, scene.link(namespace, "status.phase", "all its content is gone, and it will be soon")
    )


def content_of(scene: Scene, namespace: str) -> Iterator[Object]:
    """Yield the objects of a namespace that hold it, pods first: nothing else is deleted before
    they are gone."""
    resources = [
        PODS,
        *(
            resource
            for resource in sorted(scene.cluster.resources())
            if resource not in (PODS, "events", "leases.coordination.k8s.io")
        ),
    ]
    for resource in resources:
        known = scene.cluster.scheme.get(resource)
        if known is not None and known.namespaced:
            yield from scene.list(resource, namespace)


# By resource ("" for all) and finalizer: the diagnosis of an object that a controller of the
# cluster keeps by it.
KEEPERS: dict[tuple[str, str], Callable[[Scene, Object], Finding]] = {
    ("", FOREGROUND): foreground,
    ("", ORPHAN): orphaning,
    (PODS, JOB_TRACKING): tracked_pod,
    (CLAIMS, PVC_FINALIZER): protected_claim,
    (VOLUMES, PV_FINALIZER): protected_volume,
    (VOLUMES, PROVISIONER_FINALIZER): provisioned_volume,
    (CRDS, CLEANUP): definition_with_objects,
}
DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    EVERY_KIND: (being_deleted,),
    PODS: (pod_of_dead_node,),
}
NOTES: dict[str, tuple[Diagnosis, ...]] = {
    PODS: (pod_of_dead_node,),  # ready still, on a node that is gone
    **dict.fromkeys(
        (
            "daemonsets.apps",
            "deployments.apps",
            "jobs.batch",
            "replicasets.apps",
            "replicationcontrollers",
            "statefulsets.apps",
        ),
        (pods_left_behind,),
    ),
}
