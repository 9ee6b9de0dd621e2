"""Why a controller's objects cannot be created, or a kubelet's reports are not taken: what refuses
them.

Nothing is parsed. The creation that the controller tries, or the status that a kubelet reports, is
tried as a dry run on a fork, by that user; the API's answer is the evidence. Then everything that
might be to blame is taken away on a fork of its own, one thing after the other (:class:`Suspect`: a
limit of a quota, a rule of a LimitRange, a label, an expression of a policy, a webhook), until the
answer changes: that one is the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.errors import AlreadyExists, InternalError, Status
from kubepy.api.meta import (
    Object,
    clone,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    status_of,
)
from kubepy.api.objects import podsecurity, quotas
from kubepy.api.objects.deployments import new_replica_set as find_new_replica_set
from kubepy.api.objects.nodes import is_down
from kubepy.api.objects.pods import get_condition, is_pod_active, is_pod_terminal, node_name
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.admission.podsecurity import PREFIX
from kubepy.apiserver.request import CreateOptions, UpdateOptions
from kubepy.controllers import cronjob
from kubepy.controllers.daemonset.placement import node_should_run_daemon_pod
from kubepy.controllers.daemonset.pods import for_node, new_pod, target_node_name
from kubepy.controllers.deployment.replica_sets import new_replica_set
from kubepy.controllers.ephemeralvolume import ephemeral_volumes, new_claim
from kubepy.controllers.job.backoff import BackoffRecord
from kubepy.controllers.job.decide import manage
from kubepy.controllers.job.state import is_finished, new_job_state
from kubepy.controllers.pod_control import is_namespace_terminating, pod_from_template
from kubepy.controllers.statefulset.claims import new_claims
from kubepy.controllers.statefulset.pods import is_ordered, new_stateful_pod, ordinal_of, ordinals
from kubepy.controlplane.users import user_of
from kubepy.insight.why import room
from kubepy.insight.why.containers import SOME_USER
from kubepy.insight.why.goals import desired_replicas
from kubepy.insight.why.remedies import (
    SCALED,
    absent,
    compact_json,
    field_path,
    json_patch,
    merge_patch,
    of_template,
    pods_of,
    replace_in_place,
    scale_down,
    set_resources,
    top_owner,
)
from kubepy.insight.why.scene import Diagnosis, value_at
from kubepy.kubelet.images import facts_of
from kubepy.kubelet.modelled.nonroot import ROOT
from kubepy.kubelet.nodes import is_registration_due, register
from kubepy.kubelet.users import kubelet_of

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Scene, Words

GROUP = "admissionregistration.k8s.io"
QUOTAS = "resourcequotas"
LIMIT_RANGES = "limitranges"
NAMESPACES = "namespaces"
NODES = "nodes"
POLICIES = f"validatingadmissionpolicies.{GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"
WEBHOOKS = (f"validatingwebhookconfigurations.{GROUP}", f"mutatingwebhookconfigurations.{GROUP}")
ENFORCE = f"{PREFIX}enforce"
PODS = "pods"
CLAIMS = "persistentvolumeclaims"
BINDING = "pods/binding"
POD_STATUS = "pods/status"
NODE_STATUS = "nodes/status"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def _restricted(container: Object, spec: Object) -> Object:
    """Return what the security context of a container must have at the level ``restricted``, and a
    user that is not root where its image is known to run as root."""
    facts = facts_of(container.get("image") or "")
    has_user = any(
        nested_map(holder, "securityContext").get("runAsUser") for holder in (container, spec)
    )
    if has_user or facts is None or facts.user not in ROOT:
        return RESTRICTED
    return {**RESTRICTED, "runAsUser": SOME_USER}


class Creation(NamedTuple):
    """An object that a controller would create now, or the binding or status of one that it would
    write.

    :ivar missing: how many of its kind are missing.
    """

    resource: str
    obj: Object
    missing: int = 1


class Suspect(NamedTuple):
    """Something that may refuse a creation.

    :ivar field: of ``obj``: what refuses.
    :ivar harmless: the object as it would refuse nothing.
    """

    cause: str
    resource: str
    obj: Object
    field: str
    harmless: Object


# --- what the controllers would create ------------------------------------------------------------


def of_replica_set(scene: Scene, owner: Object) -> Iterator[Creation]:
    missing = desired_replicas(owner) - len(
        [pod for pod in scene.owned(owner, PODS) if is_pod_active(pod)]
    )
    if missing > 0:
        yield Creation(PODS, dict(pod_from_template(owner, owner["spec"]["template"])), missing)


def of_daemon_set(scene: Scene, owner: Object) -> Iterator[Creation]:
    daemon_set: Any = owner
    placement = node_should_run_daemon_pod(daemon_set)
    present = {target_node_name(pod) for pod in daemon_pods(scene, owner)}
    lacking = [
        name_of(node)
        for node in scene.list("nodes")
        if name_of(node) not in present and placement(typed(node)).should_run
    ]
    if lacking:
        yield Creation(PODS, dict(for_node(new_pod(daemon_set, ""), lacking[0])), len(lacking))


def daemon_pods(scene: Scene, owner: Object) -> Iterator[Any]:
    return (pod for pod in scene.owned(owner, PODS) if is_pod_active(pod))


def typed(obj: Any) -> Any:
    """Return an object, or a list of objects, for a function that asks for a type of
    ``kubepy.api.typed``."""
    return obj


def of_stateful_set(scene: Scene, owner: Object) -> Iterator[Creation]:
    stateful_set = typed(owner)
    in_range = ordinals(stateful_set)
    present = {ordinal_of(typed(pod)) for pod in scene.owned(owner, PODS)}
    ordinal = next((ordinal for ordinal in in_range if ordinal not in present), None)
    if ordinal is None:
        return
    lacking = len(in_range) - sum(number in in_range for number in present)
    revision = status_of(owner).get("updateRevision", "")
    for claim in new_claims(stateful_set, ordinal):
        if scene.get(CLAIMS, namespace_of(owner), name_of(claim)) is None:
            yield Creation(CLAIMS, dict(claim), lacking)
    yield Creation(
        PODS,
        dict(new_stateful_pod(stateful_set, ordinal, revision)),
        1 if is_ordered(stateful_set) else lacking,
    )


def of_job(scene: Scene, owner: Object) -> Iterator[Creation]:
    job = typed(owner)
    pods = [typed(pod) for pod in scene.owned(owner, PODS)]
    if is_finished(job):
        return
    state = new_job_state(scene.key(owner), job, pods, BackoffRecord(), scene.now)
    pods_to_create = manage(state).create
    if pods_to_create:
        yield Creation(PODS, dict(pods_to_create[0]), len(pods_to_create))


def of_deployment(scene: Scene, owner: Object) -> Iterator[Creation]:
    replica_sets = scene.owned(owner, "replicasets.apps")
    if find_new_replica_set(typed(owner), typed(replica_sets)) is None and not owner["spec"].get(
        "paused"
    ):
        yield Creation(
            "replicasets.apps", dict(new_replica_set(typed(owner), 1, desired_replicas(owner)))
        )


def of_cron_job(scene: Scene, owner: Object) -> Iterator[Creation]:
    """Yield the Job of the next minute, if starting the last one failed."""
    events = [
        event
        for event in scene.events(owner)
        if event.get("reason") in ("FailedCreate", "SuccessfulCreate")
    ]
    if events and events[-1]["reason"] == "FailedCreate":
        kept = sum(
            owner["spec"].get(f"{result}JobsHistoryLimit", 1) for result in ("successful", "failed")
        )
        missing = max(kept + 1 - len(scene.owned(owner, "jobs.batch")), 1)
        yield Creation(
            "jobs.batch",
            dict(cronjob.new_job(typed(owner), scene.now + timedelta(minutes=1))),
            missing,
        )


def of_pod(scene: Scene, owner: Object) -> Iterator[Creation]:
    """Yield the missing claims of a pod's ephemeral volumes, and the binding that the scheduler has
    failed to make."""
    for volume in ephemeral_volumes(typed(owner)):
        claim = dict(new_claim(typed(owner), volume))
        if not node_name(owner) and scene.get(CLAIMS, namespace_of(owner), name_of(claim)) is None:
            yield Creation(CLAIMS, claim)
    if (get_condition(owner, "PodScheduled") or {}).get("reason") == "SchedulerError":
        for node in scene.list("nodes")[:1]:
            yield Creation(BINDING, {"target": {"name": name_of(node)}})


def of_kubelet(scene: Scene, owner: Object) -> Iterator[Creation]:
    """Yield the report of a node that its kubelet would call ready, and the status of a pod that
    has none yet."""
    if owner["kind"] == "Pod":
        if (
            node_name(owner)
            and not is_pod_terminal(owner)
            and not status_of(owner).get("startTime")
        ):
            yield Creation(POD_STATUS, owner)
    elif is_registration_due(typed(owner)) and not is_down(owner, scene.now):
        yield Creation(NODE_STATUS, dict(register(typed(owner), scene.now)))


LIMIT_OF_PODS = "exceeded limit: limits.pods of kubepy.yaml"

Creations = Callable[["Scene", Object], Iterator[Creation]]
# By the resource of the owner: its controller, and what that would create.
CREATORS: dict[str, tuple[str, Creations]] = {
    "cronjobs.batch": ("cronjob-controller", of_cron_job),
    "daemonsets.apps": ("daemonset-controller", of_daemon_set),
    "deployments.apps": ("deployment-controller", of_deployment),
    "jobs.batch": ("job-controller", of_job),
    "replicasets.apps": ("replicaset-controller", of_replica_set),
    "replicationcontrollers": ("replication-controller", of_replica_set),
    "statefulsets.apps": ("statefulset-controller", of_stateful_set),
}
SCHEDULED = ("default-scheduler", of_pod)
REPORTED = ("kubelet", of_kubelet)
SENDERS: dict[str, tuple[tuple[str, Creations], ...]] = {
    **{resource: (sender,) for resource, sender in CREATORS.items()},
    NODES: (REPORTED,),
    PODS: (SCHEDULED, REPORTED),
}


# --- trying it ------------------------------------------------------------------------------------


class Trial(NamedTuple):
    """Creations that are tried on forks, as the user of a controller.

    :ivar user: a UserInfo.
    """

    scene: Scene
    creation: Creation
    owner: Object
    user: Object

    def run(self, change: Callable[[LocalCluster], object] = lambda fork: None) -> Object | Status:
        """Try the creation on a fork that was changed first; return what would be created, or the
        API's answer."""
        fork = self.scene.cluster.fork(is_prediction=True)
        change(fork)
        client = fork.client.silenced().as_user(self.user)
        try:
            if self.creation.resource == BINDING:
                node = self.creation.obj["target"]["name"]
                client.bind(name_of(self.owner), node, namespace=namespace_of(self.owner))
                return {}
            resource, _, subresource = self.creation.resource.partition("/")
            if subresource:
                return client.update(
                    resource,
                    self.creation.obj,
                    namespace=namespace_of(self.owner),
                    subresource=subresource,
                    options=UpdateOptions(dry_run=True),
                )
            return client.create(
                self.creation.resource,
                self.named(),
                namespace=namespace_of(self.owner),
                options=CreateOptions(dry_run=True),
            )
        except Status as error:
            return error

    def named(self) -> Object:
        """Return the object under a name that stays the same: generated ones would make every
        answer another one."""
        obj: Object = clone(self.creation.obj)
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = f"{obj['metadata']['generateName']}xxxxx"
        return obj


def trials(scene: Scene, owner: Object) -> Iterator[Trial]:
    """Yield a trial of each creation that an owner's controller would make now."""
    if is_being_deleted(owner):
        return
    key = scene.key(owner)
    for controller, creations in SENDERS[key.resource]:
        if controller == "kubelet":
            user = kubelet_of(node_name(owner) or key.name)
        else:
            user = user_of(controller)
        for creation in creations(scene, owner):
            yield Trial(scene, creation, owner, user)


def first_refusal(scene: Scene, owner: Object) -> tuple[Trial, Status] | None:
    """Return the first creation that is refused, with the API's answer."""
    for trial in trials(scene, owner):
        answer = trial.run()
        if isinstance(answer, Status) and not isinstance(answer, AlreadyExists):
            if is_namespace_terminating(answer):
                return None
            return (trial, answer)
    return None


def creation_error(scene: Scene, owner: Object) -> Status | None:
    """Return the API's answer to the creation that an owner's controller would try now; None where
    it succeeds."""
    refusal = first_refusal(scene, owner)
    if refusal is not None:
        return refusal[1]
    return None


# --- suspects -------------------------------------------------------------------------------------


def changed(obj: Object, parts: Iterable[str | int], value: Any = None) -> Object:
    """Return a copy of an object with another value of a field; None: without the field."""
    *path, last = parts
    copy: Object = clone(obj)
    inner: Any = copy
    for part in path:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return copy


def in_quotas(scene: Scene, namespace: str) -> Iterator[Suspect]:
    for quota in scene.list(QUOTAS, namespace):
        for name in nested_map(quota["spec"], "hard"):
            yield Suspect(
                "quota-exceeded",
                QUOTAS,
                quota,
                field_path("spec.hard", name),
                changed(quota, ("spec", "hard", name)),
            )


LIMITS = ("max", "min", "maxLimitRequestRatio", "default", "defaultRequest")


def in_limit_ranges(scene: Scene, namespace: str) -> Iterator[Suspect]:
    """Yield each rule, then all rules about a resource together (a maximum makes a default), then
    all of an item."""
    for limits in scene.list(LIMIT_RANGES, namespace):
        for index, item in enumerate(nested_list(limits["spec"], "limits")):
            rules = [(field, name) for field in LIMITS for name in item.get(field) or ()]
            for field, name in rules:
                yield Suspect(
                    "limit-range",
                    LIMIT_RANGES,
                    limits,
                    field_path(f"spec.limits[{index}].{field}", name),
                    changed(limits, ("spec", "limits", index, field, name)),
                )
            for name in dict.fromkeys(name for _, name in rules):
                free = limits
                for field in LIMITS:
                    if name in (item.get(field) or ()):
                        free = changed(free, ("spec", "limits", index, field, name))
                first = next(field for field, other in rules if other == name)
                yield Suspect(
                    "limit-range",
                    LIMIT_RANGES,
                    limits,
                    field_path(f"spec.limits[{index}].{first}", name),
                    free,
                )
            for field, name in rules[:1]:  # of one that must have a rule
                yield Suspect(
                    "limit-range",
                    LIMIT_RANGES,
                    limits,
                    field_path(f"spec.limits[{index}].{field}", name),
                    changed(limits, ("spec", "limits", index)),
                )


def in_namespace(scene: Scene, name: str) -> Iterator[Suspect]:
    namespace = scene.get(NAMESPACES, "", name)
    if namespace is not None and ENFORCE in labels_of(namespace):
        yield Suspect(
            "pod-security",
            NAMESPACES,
            namespace,
            field_path("metadata.labels", ENFORCE),
            changed(namespace, ("metadata", "labels", ENFORCE)),
        )


def in_policies(scene: Scene, namespace: str) -> Iterator[Suspect]:
    bound = {binding["spec"].get("policyName") for binding in scene.list(BINDINGS)}
    for policy in scene.list(POLICIES):
        if name_of(policy) in bound:
            for index, _ in enumerate(nested_list(policy["spec"], "validations")):
                path = ("spec", "validations", index, "expression")
                yield Suspect(
                    "admission-policy",
                    POLICIES,
                    policy,
                    f"spec.validations[{index}].expression",
                    changed(policy, path, "true"),
                )
            yield Suspect(
                "admission-policy",
                POLICIES,
                policy,
                "spec.failurePolicy",  # of one that cannot be evaluated
                changed(policy, ("spec", "failurePolicy"), "Ignore"),
            )


def in_webhooks(scene: Scene, namespace: str) -> Iterator[Suspect]:
    for resource in WEBHOOKS:
        for configuration in scene.list(resource):
            for index, hook in enumerate(nested_list(configuration, "webhooks")):
                place = "service" if "service" in hook["clientConfig"] else "url"
                yield Suspect(
                    "webhook-unreachable",
                    resource,
                    configuration,
                    f"webhooks[{index}].clientConfig.{place}",
                    changed(configuration, ("webhooks", index, "failurePolicy"), "Ignore"),
                )
                others = [other for other in configuration["webhooks"] if other is not hook]
                yield Suspect(
                    "webhook-refused",
                    resource,
                    configuration,
                    f"webhooks[{index}].name",
                    {**configuration, "webhooks": others},
                )


SUSPECTS = (in_quotas, in_limit_ranges, in_namespace, in_policies, in_webhooks)


def suspects(scene: Scene, namespace: str, error: Status) -> Iterator[Suspect]:
    """Yield everything that may refuse an object in a namespace ("": in none).

    Only a webhook makes an internal error.
    """
    sources = SUSPECTS if namespace else (in_policies, in_webhooks)
    for source in (in_webhooks,) if isinstance(error, InternalError) else sources:
        yield from source(scene, namespace)


def put(suspect: Suspect, fork: LocalCluster) -> None:
    """Make a suspect harmless on a fork; where that is refused it stays as it is."""
    with suppress(Status):
        fork.client.update(suspect.resource, suspect.harmless, namespace=namespace_of(suspect.obj))


def remove(suspect: Suspect, fork: LocalCluster) -> None:
    """Delete the object of a suspect on a fork."""
    with suppress(Status):
        fork.client.delete(
            suspect.resource, name_of(suspect.obj), namespace=namespace_of(suspect.obj)
        )


def culprit(trial: Trial, error: Status) -> tuple[Suspect, Object | Status] | None:
    """Return the first suspect without which the answer is another, with that answer.

    An object with many suspects is taken away as a whole first: most of them are innocent.
    """

    def answer_changes(answer: Object | Status) -> bool:
        return not isinstance(answer, Status) or (answer.code, answer.message) != (
            error.code,
            error.message,
        )

    listed = suspects(trial.scene, namespace_of(trial.owner), error)
    for _, of_object in groupby(listed, lambda suspect: id(suspect.obj)):
        group = list(of_object)
        if (
            len(group) > 2
            and group[0].resource in (QUOTAS, LIMIT_RANGES)
            and not answer_changes(trial.run(partial(remove, group[0])))
        ):
            continue
        for suspect in group:
            if answer_changes(answer := trial.run(partial(put, suspect))):
                return suspect, answer

    return None


# --- the finding ----------------------------------------------------------------------------------


class Refusal(NamedTuple):
    """A creation that is refused, and what refuses it.

    :ivar created: the object as it would be created without that, or as it was sent.
    """

    trial: Trial
    error: Status
    suspect: Suspect
    created: Object

    @property
    def scene(self) -> Scene:
        return self.trial.scene

    def link(self, field: str, text: str) -> Link:
        return self.scene.link(self.suspect.obj, field, text)


def refused(scene: Scene, owner: Object) -> Finding | None:
    """Find out what refuses the objects that an owner's controller would create now; None where
    nothing does."""
    refusal = first_refusal(scene, owner)
    if refusal is None:
        return None
    trial, error = refusal
    if LIMIT_OF_PODS in error.message:
        return beyond_limit(scene, owner, error)
    blamed = culprit(trial, error)
    if blamed is None:
        return None
    suspect, answer = blamed
    case = Refusal(
        trial, error, suspect, trial.creation.obj if isinstance(answer, Status) else answer
    )
    links, remedies = EVIDENCE[suspect.cause](case)
    return scene.finding(suspect.cause, refused_link(case), *links, remedies=remedies)


def beyond_limit(scene: Scene, owner: Object, error: Status) -> Finding:
    """Return the finding about an owner whose pods are more than the settings of the cluster
    allow."""
    workload = top_owner(scene, owner)
    present = len(pods_of(scene, workload))
    fewer = [scene.command(workload, "scale", scene.word(workload), f"--replicas={present}")]
    return scene.finding(
        "pod-limit",
        scene.link(
            owner, COUNTS.get(owner["kind"], "status.replicas"), f"no pod is made: {error.message}"
        ),
        remedies=fewer if workload["kind"] in SCALED and present else [],
    )


REQUESTS = {
    BINDING: "its binding to a node",
    CLAIMS: "its claim",
    NODE_STATUS: "the report of its kubelet",
    PODS: "its pods",
    POD_STATUS: "the status that its kubelet reports",
    "jobs.batch": "its Jobs",
    "replicasets.apps": "its ReplicaSet",
}
READY = 'status.conditions[?(@.type=="Ready")].status'
COUNTS = {
    "DaemonSet": "status.currentNumberScheduled",
    "Job": "status.active",
    "CronJob": "status.lastScheduleTime",
    "Pod": 'status.conditions[?(@.type=="PodScheduled")].message',
    "StatefulSet": "status.replicas",
}


def refused_link(case: Refusal) -> Link:
    """Return the link that shows the refusal at the owner: its condition where it has one, else a
    count."""
    owner = case.trial.owner
    request = REQUESTS[case.trial.creation.resource]
    if get_condition(owner, "ReplicaFailure"):
        return case.scene.condition_link(
            owner, "ReplicaFailure", f"the API refuses {request}", field="message"
        )
    field = COUNTS.get(owner["kind"], "status.replicas")
    text = f"the API refuses {request}"
    if case.trial.creation.resource in (NODE_STATUS, POD_STATUS):
        field = READY
    return case.scene.link(
        owner, field, text if field.endswith("message") else f"{text}: {case.error.message}"
    )


Evidence = tuple[list["Link"], list["Words"]]


def quota_exceeded(case: Refusal) -> Evidence:
    """Show the resource of the quota that is used up, or that the pod's containers have to name."""
    scene = case.scene
    quota = case.suspect.obj
    resource = case.trial.creation.resource
    hard, used = (quotas.amounts(status_of(quota).get(field)) for field in ("hard", "used"))
    usage = quotas.masked(quotas.evaluator_for(resource).usage(case.created, scene.now), hard)
    name = min({*quota["spec"]["hard"]} - {*case.suspect.harmless["spec"]["hard"]})
    if name not in usage or used.get(name, quotas.ZERO) + usage[name] <= hard[name]:
        return unnamed_resource(case)
    missing = case.trial.creation.missing
    links = [
        case.link(
            field_path("status.used", name),
            f"{used[name]} of {hard[name]} {name} are in use, and {usage[name]} more would be too "
            f"many",
        )
    ]
    if resource == PODS:
        default = room.default_request(scene, case.created, name.removeprefix("requests."))
    else:
        default = None

    if default is not None:
        links.insert(0, default)
    raised = {
        over: str(sum_of(used.get(over, quotas.ZERO), usage[over], missing))
        for over in usage
        if sum_of(used.get(over, quotas.ZERO), usage[over], missing) > hard[over]
    }
    return links, [
        merge_patch(scene, quota, {"spec": {"hard": raised}}),
        *scale_down(scene, case.trial.owner),
        *replace_in_place(scene, case.trial.owner),
    ]


def sum_of(start: Quantity, each: Quantity, number: int) -> Quantity:
    """Return a quantity plus another one so many times."""
    return Quantity(start.nanos + each.nanos * number, start.format)


def unnamed_resource(case: Refusal) -> Evidence:
    """Show a resource under quota for which a container names no amount."""
    scene = case.scene
    quota = case.suspect.obj
    hard = nested_map(quota["spec"], "hard")
    if case.trial.creation.resource == PODS:
        unnamed = list(quotas.unnamed_resources(case.trial.creation.obj, hard))
    else:
        unnamed = []

    amounts = {}
    for kind in ("requests", "limits"):
        names = [
            name.removeprefix(f"{kind}.")
            for name in unnamed
            if name.startswith(f"{kind}.") or (kind == "requests" and "." not in name)
        ]
        if names:
            amounts[kind] = {name: modest(hard, name, kind) for name in names}

    links = [
        case.link(
            case.suspect.field,
            "so each container must name the resource, and those of the pods do not",
        )
    ]
    workload = top_owner(scene, case.trial.owner)
    return links, [
        *(set_resources(scene, workload, amounts) if amounts else ()),
        scene.command(quota, "delete", scene.word(quota)),
    ]


def modest(hard: Object, name: str, flag: str) -> str:
    """Return a modest amount of a resource: a small one, or the quota's own where that is
    smaller."""
    usual = {"cpu": "100m", "memory": "128Mi"}.get(name, "1")
    limit = hard.get(f"{flag}.{name}", hard.get(name, usual))
    if Quantity.parse(usual) < Quantity.parse(str(limit)):
        return usual
    return str(limit)


def limit_range(case: Refusal) -> Evidence:
    scene = case.scene
    limits = case.suspect.obj
    links = [
        case.link(case.suspect.field, "it demands this of all that is created in its namespace")
    ]
    return links, [*within_limits(case), scene.command(limits, "delete", scene.word(limits))]


def within_limits(case: Refusal) -> list[Words]:
    """Return the command that gives the containers the amounts that the LimitRange allows."""
    workload = top_owner(case.scene, case.trial.owner)
    head, _, name = case.suspect.field.rpartition(".")
    if head.endswith("max"):
        flags = ("limits", "requests")
    elif head.endswith("min"):
        flags = ("requests", "limits")
    else:
        return []
    item = value_at(case.suspect.obj, head.rpartition(".")[0])
    if item.get("type") != "Container" or case.trial.creation.resource != PODS:
        return []
    amount = str(value_at(case.suspect.obj, case.suspect.field))
    return set_resources(case.scene, workload, {flag: {name: amount} for flag in flags})


def pod_security(case: Refusal) -> Evidence:
    scene = case.scene
    namespace = case.suspect.obj
    workload = top_owner(case.scene, case.trial.owner)
    links = [case.link(case.suspect.field, "it takes only pods of this level")]
    remedies: list[Words] = []
    pod = case.trial.creation.obj
    template = nested_map(workload["spec"], "template", "spec")
    if workload["spec"].get("template"):
        hardened = clone(pod["spec"])
        for container in (*hardened["containers"], *nested_list(hardened, "initContainers")):
            container["securityContext"] = {
                **nested_map(container, "securityContext"),
                **_restricted(container, hardened),
            }
        level = podsecurity.LevelVersion(labels_of(namespace)[ENFORCE], None)
        if not podsecurity.violations(level, pod["metadata"], hardened):
            patch = {
                field: [
                    {
                        "name": container["name"],
                        "securityContext": _restricted(container, template),
                    }
                    for container in template[field]
                ]
                for field in ("containers", "initContainers")
                if template.get(field)
            }
            remedies += of_template(
                workload,
                scene.command(
                    workload,
                    "patch",
                    scene.word(workload),
                    "-p",
                    compact_json({"spec": {"template": {"spec": patch}}}),
                ),
            )

    lower = next(
        (
            level
            for level in reversed(podsecurity.LEVELS)
            if not podsecurity.violations(
                podsecurity.LevelVersion(level, None), pod["metadata"], pod["spec"]
            )
        ),
        "privileged",
    )
    remedies.append(
        ("label", f"namespace/{name_of(namespace)}", f"{ENFORCE}={lower}", "--overwrite")
    )
    return links, remedies


def admission_policy(case: Refusal) -> Evidence:
    scene = case.scene
    policy = case.suspect.obj
    is_broken = case.suspect.field == "spec.failurePolicy"
    bindings = [
        binding
        for binding in scene.list(BINDINGS)
        if binding["spec"].get("policyName") == name_of(policy)
    ][:1]
    field, text = (
        ("spec.paramRef", "these parameters are missing")
        if is_broken
        else ("spec.validationActions", "it makes the policy count")
    )
    links = [scene.link(binding, field, text) for binding in bindings]
    links.append(
        case.link(
            case.suspect.field,
            "it cannot be evaluated, and that counts as a refusal"
            if is_broken
            else "it does not hold",
        )
    )
    if is_broken:
        mend = [merge_patch(scene, policy, {"spec": {"failurePolicy": "Ignore"}})]
    else:
        mend = [
            merge_patch(scene, binding, {"spec": {"validationActions": ["Warn", "Audit"]}})
            for binding in bindings
        ]

    return links, [
        *mend,
        *(scene.command(binding, "delete", scene.word(binding)) for binding in bindings),
    ]


def webhook_unreachable(case: Refusal) -> Evidence:
    scene = case.scene
    configuration = case.suspect.obj
    index = int(case.suspect.field.partition("[")[2].partition("]")[0])
    links = [
        case.link(f"webhooks[{index}].failurePolicy", "without its answer the request is refused"),
        case.link(case.suspect.field, "it does not answer there"),
    ]
    service = configuration["webhooks"][index]["clientConfig"].get("service")
    if service:
        present = scene.get("services", service["namespace"], service["name"])
        links.append(
            absent("services", service["namespace"], service["name"], "there is no such Service")
            if present is None
            else scene.link(
                present, "spec.selector", "the Service has nothing behind it that answers"
            )
        )

    ignore = json_patch(
        scene,
        configuration,
        {"op": "replace", "path": f"/webhooks/{index}/failurePolicy", "value": "Ignore"},
    )
    return links, [ignore, scene.command(configuration, "delete", scene.word(configuration))]


def webhook_refused(case: Refusal) -> Evidence:
    scene = case.scene
    configuration = case.suspect.obj
    links = [case.link(case.suspect.field, "this webhook denies it")]
    return links, [scene.command(configuration, "delete", scene.word(configuration))]


EVIDENCE: dict[str, Callable[[Refusal], Evidence]] = {
    "admission-policy": admission_policy,
    "limit-range": limit_range,
    "pod-security": pod_security,
    "quota-exceeded": quota_exceeded,
    "webhook-refused": webhook_refused,
    "webhook-unreachable": webhook_unreachable,
}
DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = dict.fromkeys(SENDERS, (refused,))
