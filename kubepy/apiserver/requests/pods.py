"""The ``binding`` and ``eviction`` subresources of a pod.

A binding assigns the pod to a node; an eviction is a deletion that a PodDisruptionBudget may
forbid. Upstream: ``pkg/registry/core/pod/storage`` (``BindingREST``, ``eviction.go``).
"""

from __future__ import annotations

from contextlib import suppress

from kubepy.api import errors
from kubepy.api.meta import Object, clone, labels_of
from kubepy.api.objects.pods import get_condition, is_pod_ready, set_condition
from kubepy.api.scheme import GroupVersionResource, Resource
from kubepy.api.selectors import SelectorError, from_label_selector
from kubepy.apiserver.request import DeleteOptions, Request
from kubepy.apiserver.requests import podbatches
from kubepy.apiserver.requests.admission import admit_body, check_namespace
from kubepy.apiserver.requests.decoding import decode_request, match_namespace
from kubepy.apiserver.requests.deletion import check_preconditions, delete
from kubepy.apiserver.requests.updating import replace
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.quoting import quote
from kubepy.storage import Key

BINDING = Resource("bindings", "Binding")
EVICTION = Resource("evictions", "Eviction", "policy", other_versions=("v1beta1",))
BUDGETS = GroupVersionResource.parse("poddisruptionbudgets.policy")
MAX_DISRUPTED_PODS = 2000
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_PHASES_WITHOUT_BUDGET = ("Pending", "Succeeded", "Failed")
# Labels that a pod takes over from its node (the PodTopologyLabels admission plugin).
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def _decoded(scope: RequestScope, kind: Resource, body: Object) -> Object:
    """Decode the body of a creation of a subresource, which has the name of the pod. Raises
    BadRequest, Invalid."""
    obj = decode_request(scope, kind, body)
    match_namespace(obj, scope)
    if obj["metadata"].get("name", "") != scope.name:
        raise errors.BadRequest(f"name in URL does not match name in {kind.kind} object")
    return obj


# --- binding --------------------------------------------------------------------------------------


def bind(scope: RequestScope, body: Object) -> Object:
    """Set the pod's nodeName and its PodScheduled condition, and add the labels and annotations of
    a Binding to it.

    Raises BadRequest, Invalid, NotFound, Forbidden, Conflict (bound already, deleted, another uid
    or version).
    """
    binding = body if podbatches.is_simple_binding(scope, body) else _admitted_binding(scope, body)
    metadata, node_name = binding["metadata"], binding["target"].get("name", "")
    pod = scope.transaction.require(key := scope.key)
    for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if (expected := metadata.get(field)) and expected != pod["metadata"].get(field):
            raise _precondition_failed(
                scope,
                f"{name} in precondition: {expected}, {name} in object meta: "
                f"{pod['metadata'].get(field)}",
            )

    if obstacle := _obstacle(pod):
        raise errors.conflict("pods/binding", scope.name, f"pod {scope.name} {obstacle}")
    status = {
        field: value
        for field, value in pod.get("status", {}).items()
        if field != "nominatedNodeName"
    }
    status["conditions"] = list(status.get("conditions") or ())
    scheduled = {"lastProbeTime": None, "status": "True", "type": "PodScheduled"}
    set_condition(status["conditions"], scheduled, scope.context.clock.now())
    bound = {
        **pod,
        "metadata": {**pod["metadata"]},
        "spec": {**pod["spec"], "nodeName": node_name},
        "status": status,
    }
    node_labels = labels_of(scope.transaction.get(Key("nodes", "", node_name)) or {"metadata": {}})
    topology = {label: node_labels[label] for label in _TOPOLOGY_LABELS if label in node_labels}
    additions = {
        "annotations": metadata.get("annotations"),
        "labels": {**(metadata.get("labels") or {}), **topology},
    }
    for field, added in additions.items():
        if added:
            bound["metadata"][field] = {**(pod["metadata"].get(field) or {}), **added}
    stored = scope.transaction.update(key, bound, pod, is_plain=True)
    memory = scope.transaction.memory
    if memory is not None and memory.accepted.get(key) is pod and not any(additions.values()):
        scope.transaction.accept(key, stored)
    return stored


def _admitted_binding(scope: RequestScope, body: Object) -> Object:
    binding = _decoded(scope, BINDING, body)
    if problems := _binding_problems(binding.get("target") or {}):
        raise errors.invalid(BINDING.kind, scope.name, problems)
    attributes = Attributes(scope, binding, body=BINDING)
    check_namespace(attributes)
    admit_body(attributes)
    return binding


def _binding_problems(target: Object) -> list[errors.FieldError]:
    """Return what is wrong with the target of a Binding (``ValidatePodBinding``)."""
    problems = []
    if target.get("kind", "") not in ("", "Node"):
        problems.append(errors.not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        problems.append(errors.required("target.name"))
    return problems


def _obstacle(pod: Object) -> str:
    """Word why a pod cannot be bound, "" if it can be."""
    if pod["metadata"].get("deletionTimestamp"):
        return "is being deleted, cannot be assigned to a host"
    if node_name := pod["spec"].get("nodeName"):
        return f"is already assigned to node {quote(node_name)}"
    return "has non-empty .spec.schedulingGates" if pod["spec"].get("schedulingGates") else ""


def _precondition_failed(scope: RequestScope, detail: str) -> errors.Conflict:
    return errors.conflict(
        "pods",
        scope.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/"
        f"{scope.namespace}/{scope.name}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {detail}",
    )


# --- eviction -------------------------------------------------------------------------------------


def eviction_of(pod: str, namespace: str, options: DeleteOptions) -> Object:
    """Make the Eviction that a client posts."""
    preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    fields = {
        "gracePeriodSeconds": options.grace_period_seconds,
        "propagationPolicy": options.propagation_policy,
        "dryRun": ["All"] if options.dry_run else None,
        "preconditions": {name: value for name, value in preconditions.items() if value is not None}
        or None,
    }
    return {
        "kind": EVICTION.kind,
        "apiVersion": EVICTION.api_version,
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": {name: value for name, value in fields.items() if value is not None},
    }


def is_dry_run(body: Object, requested: bool) -> bool:
    """Tell whether a request, or the DeleteOptions of its Eviction, ask for a dry run
    (``propagateDryRun``).

    Raises BadRequest for two that do not agree, Invalid for a dry run of another kind.
    """
    options = body.get("deleteOptions")
    values = options.get("dryRun") if isinstance(options, dict) else None
    if not values or not isinstance(values, list):
        return requested
    if requested and values != ["All"]:
        raise errors.BadRequest(
            "Non-matching dry-run options in request and content: [All] and "
            f"[{' '.join(map(str, values))}]"
        )
    if any(value != "All" for value in values):
        problem = errors.not_supported("dryRun", values, ["All"])
        raise errors.invalid("DeleteOptions.meta.k8s.io", "", [problem])
    return True


def evict(scope: RequestScope, body: Object) -> None:
    """Delete a pod if its budget allows it. Raises BadRequest, Invalid, NotFound, TooManyRequests,
    Forbidden."""
    transaction, clock = scope.transaction, scope.context.clock
    eviction = _decoded(scope, EVICTION, body)
    options = _delete_options(scope, eviction.get("deleteOptions") or {})
    attributes = Attributes(scope, eviction, body=EVICTION)
    check_namespace(attributes)
    admit_body(attributes)
    pod = transaction.require(scope.key)
    scope = scope._replace(is_internal=True)
    needs_no_budget = pod.get("status", {}).get("phase") in _PHASES_WITHOUT_BUDGET or pod[
        "metadata"
    ].get("deletionTimestamp")
    budget = None if needs_no_budget else _budget_of(scope, pod)
    if budget is not None and not _is_unhealthy_and_free(pod, budget):
        _check_and_decrement(scope, budget)
    check_preconditions("Pod", pod, options)
    if not transaction.dry_run:  # addConditionAndDeletePod
        evicted = clone(pod)
        condition = {
            "lastProbeTime": None,
            "message": "Eviction API: evicting",
            "reason": "EvictionByEvictionAPI",
            "status": "True",
            "type": "DisruptionTarget",
        }
        set_condition(
            evicted.setdefault("status", {}).setdefault("conditions", []), condition, clock.now()
        )
        transaction.update(scope.key, evicted, pod)

    options = options._replace(
        resource_version=None
    )  # it has been checked, and the pod has changed since
    delete(
        scope._replace(
            request=scope.request._replace(verb="delete", subresource="", options=options)
        )
    )


def _delete_options(scope: RequestScope, fields: Object) -> DeleteOptions:
    """Return the DeleteOptions of an Eviction. Raises Invalid."""
    field = "ignoreStoreReadErrorWithClusterBreakingPotential"
    if fields.get(field):
        detail = "can not be set for pod eviction, try after removing the option"
        raise errors.invalid(
            "Eviction.policy",
            scope.name,
            [errors.invalid_value(f"deleteOptions.{field}", True, detail)],
        )

    preconditions = fields.get("preconditions") or {}
    return DeleteOptions(
        fields.get("gracePeriodSeconds"),
        fields.get("propagationPolicy"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        scope.transaction.dry_run,
    )


def _budget_of(scope: RequestScope, pod: Object) -> Object | None:
    """Return the budget that covers a pod. Raises Status (500) if there are several."""
    budgets = []
    for budget in scope.transaction.list(BUDGETS.group_resource, scope.namespace):
        with suppress(
            SelectorError
        ):  # upstream: a budget whose selector cannot be read covers nothing
            if from_label_selector(budget["spec"].get("selector")).matches(labels_of(pod)):
                budgets.append(budget)
    if len(budgets) > 1:
        raise errors.Status(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not "
            "support."
        )
    return budgets[0] if budgets else None


def _is_unhealthy_and_free(pod: Object, budget: Object) -> bool:
    """Tell whether an unready pod may go because the budget says so, or enough others are
    healthy."""
    if is_pod_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _check_and_decrement(scope: RequestScope, budget: Object) -> None:
    """Count one disruption against the budget (``checkAndDecrement``). Raises TooManyRequests,
    Forbidden."""
    status, metadata, clock = budget.get("status", {}), budget["metadata"], scope.context.clock
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _too_many_requests(
            f"The disruption budget {name} is still being processed by the server.", 10
        )

    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise errors.forbidden(
            "poddisruptionbudget.policy", name, "pdb disruptions allowed is negative"
        )

    if len(status.get("disruptedPods") or {}) > MAX_DISRUPTED_PODS:
        raise errors.forbidden(
            "poddisruptionbudget.policy",
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )

    if allowed == 0:
        raise _too_many_requests(_refusal(budget))
    new = clone(budget)
    new["status"]["disruptionsAllowed"] = allowed - 1
    new["status"].setdefault("disruptedPods", {})[scope.name] = clock.timestamp()
    if allowed == 1:
        condition: Object = {
            "message": "",
            "reason": "InsufficientPods",
            "status": "False",
            "type": "DisruptionAllowed",
        }
        if observed := new["status"].get("observedGeneration"):
            condition["observedGeneration"] = observed
        set_condition(new["status"].setdefault("conditions", []), condition, clock.now())

    request = Request(
        "update", BUDGETS, metadata["namespace"], name, "status", context=scope.context
    )
    replace(
        scope._replace(request=request, resource=scope.server.resource_of(request)), new, budget
    )


def _too_many_requests(detail: str, retry_after_seconds: int = 0) -> errors.TooManyRequests:
    return errors.TooManyRequests(
        REFUSED,
        causes=[errors.Cause("DisruptionBudget", detail)],
        retry_after_seconds=retry_after_seconds,
    )


def _refusal(budget: Object) -> str:
    """Word why a budget allows no disruption now."""
    name, status = budget["metadata"]["name"], budget.get("status", {})
    condition = get_condition(budget, "DisruptionAllowed") or {}
    message = condition.get("message", "") if condition.get("status") == "False" else ""
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if message and condition.get("reason") == "SyncFailed":
        return (
            f"The disruption budget {name} does not allow evicting pods currently because it "
            f"failed sync: {message}"
        )

    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )

    if message:
        return (
            f"The disruption budget {name} does not allow evicting pods currently "
            f"({condition['reason']}): {message}"
        )

    return f"The disruption budget {name} does not allow evicting pods currently"
