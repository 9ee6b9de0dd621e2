"""Objects that pods name and that are not there: ConfigMaps, Secrets, their keys; ServiceAccounts,
PriorityClasses, RuntimeClasses.

A kubelet does not start a pod without the former, the API does not create one without the latter.
Where the simulated kubelet starts it all the same (docs/kubelet.md), the object is done, and its
answer says what a real one would lack.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import (
    Object,
    annotations_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    spec_of,
)
from kubepy.api.objects.outcomes import REFERENCES
from kubepy.api.objects.pods import get_condition, node_name, phase_of
from kubepy.api.objects.references import SECRETS, MissingReference, missing_references
from kubepy.apiserver.settings import FULL
from kubepy.insight.why.containers import CONFIG_ERROR, FailingContainer, failing_containers
from kubepy.insight.why.intent import config_changed
from kubepy.insight.why.manifests import create as new_object
from kubepy.insight.why.refusals import COUNTS, CREATORS, Trial, first_refusal
from kubepy.insight.why.remedies import absent, merge_patch, patch_template, pods_of, top_owner
from kubepy.insight.why.workloads import undo

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
SERVICE_ACCOUNTS = "serviceaccounts"
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
WITH_TEMPLATE = (
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
)
RUNS_HERE = "the pod runs here, but a real kubelet would not start it"


# --- ConfigMaps and Secrets -----------------------------------------------------------------------


def missing_configuration(scene: Scene, pod: Object) -> Finding | None:
    """Blame a ConfigMap, a Secret or a key without which the kubelet does not start a container."""
    for failing in failing_containers(pod):
        if failing.reason in (CREATING, INITIALIZING, CONFIG_ERROR):
            missing = [
                problem
                for problem in _missing(scene, pod["spec"], namespace_of(pod))
                if is_about(problem, failing)
            ]
            if missing:
                text = f"{failing.title} is not started: {missing[0].message}"
                link = scene.link(pod, f"{failing.path}.state.waiting.reason", text)
                return missing_finding(scene, pod, missing, link)
    return None


def _missing(scene: Scene, spec: Object, namespace: str) -> Iterable[MissingReference]:
    """Return the references of a pod's spec that a kubelet cannot follow, but for those to objects
    that were there where the cluster was imported from."""
    absent_objects = scene.settings.absent
    for problem in missing_references(spec, namespace, scene.get):
        reference = problem.reference
        if absent_objects is None or not absent_objects.has(
            reference.kind, namespace, reference.name
        ):
            yield problem


def is_about(problem: MissingReference, failing: FailingContainer) -> bool:
    """Tell whether a missing object keeps this container waiting: of its environment, or of a
    volume of the pod."""
    if failing.reason == CONFIG_ERROR:
        return problem.reference.container == failing.name
    return bool(problem.reference.volume)


def missing_finding(
    scene: Scene, obj: Object, missing: list[MissingReference], *links: Link, note: str = ""
) -> Finding:
    """Return the finding about the first of the missing references of a pod or of a workload's
    template."""
    problem = missing[0]
    path = "" if obj["kind"] == "Pod" else "spec.template."
    reference = problem.reference
    resource = problem.reference.resource
    noun = reference.kind
    place = f"volume {reference.volume}" if reference.volume else f"container {reference.container}"
    if problem.is_key:
        what = f"key {reference.key} of {noun} {reference.name}"
    else:
        what = f"{noun} {reference.name}"

    use = scene.link(obj, path + reference.field, f"{place} reads {what}{note and f': {note}'}")
    present = scene.get(resource, namespace_of(obj), reference.name)
    if present is None:
        last = absent(resource, namespace_of(obj), reference.name, f"there is no such {noun}")
    else:
        keys = ", ".join(sorted(nested_list(present, "data"))) or "none"
        last = scene.link(
            present, f"data['{reference.key}']", f"it has no such key; its keys: {keys}"
        )

    cause = "secret-missing" if resource == SECRETS else "configmap-missing"
    if problem.is_key:
        cause = "key-missing"
    return scene.finding(cause, *links, use, last, remedies=[provide(scene, obj, missing, present)])


def provide(
    scene: Scene, obj: Object, missing: Iterable[MissingReference], present: Object | None
) -> Words:
    """Return the command that makes the first missing object with all its keys that are read, or
    adds the keys."""
    problems = [*missing]
    first = problems[0].reference
    same = [
        problem.reference
        for problem in problems
        if (problem.reference.resource, problem.reference.name) == (first.resource, first.name)
    ]
    keys = list(dict.fromkeys(reference.key for reference in same if reference.key))
    if present is not None:
        field = "stringData" if first.resource == SECRETS else "data"
        return merge_patch(scene, present, {field: dict.fromkeys(keys, "value")})
    kind = ("secret", "generic") if first.resource == SECRETS else ("configmap",)
    return scene.command(
        obj, "create", *kind, first.name, *(f"--from-literal={key}=value" for key in keys)
    )


def runs_without_configuration(scene: Scene, obj: Object) -> Finding | None:
    """Say of a pod or workload that is done that a real kubelet would not start it, unless somebody
    has said whether it matters (``references``)."""
    pods = [pod for pod in pods_of(scene, obj) if phase_of(pod) == "Running"]
    if not pods or scene.settings.kubelet.references:
        return None
    node = scene.get("nodes", "", node_name(pods[0]))
    if any(
        annotations_of(holder).get(REFERENCES) for holder in (pods[0], node) if holder is not None
    ):
        return None
    spec = obj["spec"] if obj["kind"] == "Pod" else obj["spec"]["template"]["spec"]
    missing = [*_missing(scene, spec, namespace_of(obj))]
    if missing:
        return missing_finding(scene, obj, missing, note=RUNS_HERE)
    return None


def runs_without_account(scene: Scene, obj: Object) -> Finding | None:
    """Say of a pod or workload that is done that a real cluster would refuse its pods, as their
    account is missing."""
    path = "spec" if obj["kind"] == "Pod" else "spec.template.spec"
    spec = obj["spec"] if obj["kind"] == "Pod" else obj["spec"]["template"]["spec"]
    name = spec.get("serviceAccountName") or "default"
    if (
        scene.settings.bootstrap == FULL
        or name == "default"
        or not pods_of(scene, obj)
        or scene.get(SERVICE_ACCOUNTS, namespace_of(obj), name) is not None
    ):
        return None

    return scene.finding(
        "service-account-missing",
        scene.link(
            obj,
            f"{path}.serviceAccountName",
            "its pods run here, but a cluster with bootstrap: full, as every "
            "real one, refuses to create them",
        ),
        absent(SERVICE_ACCOUNTS, namespace_of(obj), name, "there is no such ServiceAccount"),
        remedies=[scene.command(obj, "create", "serviceaccount", name)],
    )


# --- what the API demands -------------------------------------------------------------------------


class DemandedObject(NamedTuple):
    """An object that must be there before the API creates a pod.

    :ivar field: of the pod's spec: the one that names it.
    :ivar obj: a sufficient one.
    :ivar command: makes it; empty where there is no such command.
    """

    cause: str
    resource: str
    kind: str
    field: str
    obj: Object
    command: Words = ()


def demanded_objects(scene: Scene, spec: Object) -> Iterable[DemandedObject]:
    """Yield the objects that the API demands for a pod, as far as they are missing from its
    namespace or cluster."""
    if name := spec.get("priorityClassName"):
        yield DemandedObject(
            "priority-class-missing",
            PRIORITY_CLASSES,
            "PriorityClass",
            "priorityClassName",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": 1000,
            },
            ("create", "priorityclass", name, "--value=1000"),
        )

    if name := spec.get("runtimeClassName"):
        yield DemandedObject(
            "runtime-class-missing",
            RUNTIME_CLASSES,
            "RuntimeClass",
            "runtimeClassName",
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name},
                "handler": "runc",
            },
        )

    if scene.settings.bootstrap == FULL:
        name = spec.get("serviceAccountName") or "default"
        yield DemandedObject(
            "service-account-missing",
            SERVICE_ACCOUNTS,
            "ServiceAccount",
            "serviceAccountName",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
            ("create", "serviceaccount", name),
        )


def missing_for_creation(scene: Scene, owner: Object) -> Finding | None:
    """Blame a missing object for which the API refuses the pods of an owner: with it the answer is
    another."""
    template: Any = nested_map(owner["spec"], "template")
    if scene.key(owner).resource == "deployments.apps" or not template:
        return None
    for demanded in demanded_objects(scene, spec_of(template)):
        if (
            is_missing(scene, demanded, namespace_of(owner))
            and (refusal := first_refusal(scene, owner)) is not None
            and helps(refusal[0], refusal[1].message, demanded)
        ):
            return creation_finding(scene, owner, demanded, refusal[1].message)
    return None


def is_missing(scene: Scene, demanded: DemandedObject, namespace: str) -> bool:
    in_namespace = namespace if demanded.resource == SERVICE_ACCOUNTS else ""
    return scene.get(demanded.resource, in_namespace, name_of(demanded.obj)) is None


def helps(trial: Trial, message: str, demanded: DemandedObject) -> bool:
    """Tell whether the API answers something else when the object is there."""
    namespace = namespace_of(trial.owner) if demanded.resource == SERVICE_ACCOUNTS else ""

    def create(fork: LocalCluster) -> object:
        return fork.client.create(demanded.resource, demanded.obj, namespace=namespace)

    answer = trial.run(create)
    return getattr(answer, "message", "") != message


def creation_finding(
    scene: Scene, owner: Object, demanded: DemandedObject, message: str
) -> Finding:
    """Return the finding about an object without which the pods of an owner are not created."""
    name = name_of(demanded.obj)
    namespaced = demanded.resource == SERVICE_ACCOUNTS
    namespace = namespace_of(owner) if namespaced else ""
    field = f"spec.template.spec.{demanded.field}"
    has_condition = get_condition(owner, "ReplicaFailure") is not None
    links = [
        scene.condition_link(owner, "ReplicaFailure", "the API refuses its pods", "message")
        if has_condition
        else scene.link(
            owner,
            COUNTS.get(owner["kind"], "status.replicas"),
            f"the API refuses its pods: {message}",
        ),
        scene.link(owner, field, f"its pods name {demanded.kind} {name}"),
        absent(demanded.resource, namespace, name, f"there is no such {demanded.kind}"),
    ]
    create = scene.command(owner, *demanded.command) if namespaced else demanded.command
    if demanded.resource == RUNTIME_CLASSES:
        return scene.finding(
            demanded.cause,
            *links,
            remedies=[
                *(undo(scene, owner) if top_owner(scene, owner) is owner else ()),
                *patch_template(scene, owner, ("remove", (demanded.field,), None)),
                new_object(demanded.obj),
            ],
        )

    remedies = [*(undo(scene, owner) if top_owner(scene, owner) is owner else ()), create]
    return scene.finding(demanded.cause, *links, remedies=[words for words in remedies if words])


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    "pods": (missing_configuration,),
    **dict.fromkeys(CREATORS, (missing_for_creation,)),
}
NOTES: dict[str, tuple[Diagnosis, ...]] = dict.fromkeys(
    ("pods", *WITH_TEMPLATE), (runs_without_configuration, config_changed, runs_without_account)
)
