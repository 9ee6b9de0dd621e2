"""The ``binding`` and ``eviction`` subresources of a pod.

A binding assigns the pod to a node; an eviction is a deletion that a PodDisruptionBudget may forbid. Upstream:
``pkg/registry/core/pod/storage`` (``BindingREST``, ``eviction.go``).
"""

from __future__ import annotations

from contextlib import suppress

from kubepy.api import errors
from kubepy.api.meta import Object, clone, labels_of
from kubepy.api.objects.pods import get_condition, is_pod_ready, set_condition
from kubepy.api.scheme import GroupVersionResource, Resource
from kubepy.api.selectors import SelectorError, from_label_selector
from kubepy.apiserver.request import Request
from kubepy.apiserver.requests.admission import admit_body, check_namespace
from kubepy.apiserver.requests.deletion import delete
from kubepy.apiserver.requests.updating import replace
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.quoting import quote
from kubepy.storage import Key

BINDING, EVICTION = Resource("bindings", "Binding"), Resource("evictions", "Eviction", "policy")
BUDGETS = GroupVersionResource.parse("poddisruptionbudgets.policy")
MAX_DISRUPTED_PODS = 2000
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_PHASES_WITHOUT_BUDGET = ("Pending", "Succeeded", "Failed")
# Labels that a pod takes over from its node (the PodTopologyLabels admission plugin).
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def _body(scope: RequestScope, kind: Resource, content: Object) -> Object:
    """Make the object that a client posts to a subresource."""
    metadata = {"name": scope.name, "namespace": scope.namespace}
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, **content}


# --- binding ------------------------------------------------------------------------------------------------------


def bind(scope: RequestScope, node_name: str) -> Object:
    """Set the pod's nodeName and its PodScheduled condition. Raises NotFound, Conflict (bound already, deleted)."""
    binding = _body(scope, BINDING, {"target": {"kind": "Node", "name": node_name}})
    admit_body(Attributes(scope, binding, body=BINDING))
    node_name = (binding.get("target") or {}).get("name", "")
    pod = scope.transaction.require(scope.key)
    spec = pod["spec"]
    obstacle = ""
    if pod["metadata"].get("deletionTimestamp"):
        obstacle = f"pod {scope.name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        obstacle = f'pod {scope.name} is already assigned to node {quote(spec["nodeName"])}'
    elif spec.get("schedulingGates"):
        obstacle = f"pod {scope.name} has non-empty .spec.schedulingGates"
    if obstacle:
        raise errors.conflict("pods/binding", scope.name, obstacle)
    status = {field: value for field, value in pod.get("status", {}).items() if field != "nominatedNodeName"}
    status["conditions"] = list(status.get("conditions") or ())
    scheduled = {"lastProbeTime": None, "status": "True", "type": "PodScheduled"}
    set_condition(status["conditions"], scheduled, scope.server.clock.now())
    bound = {**pod, "spec": {**spec, "nodeName": node_name}, "status": status}
    node_labels = labels_of(scope.transaction.get(Key("nodes", "", node_name)) or {"metadata": {}})
    if topology := {label: node_labels[label] for label in _TOPOLOGY_LABELS if label in node_labels}:
        bound["metadata"] = {**pod["metadata"], "labels": {**labels_of(pod), **topology}}
    return scope.transaction.update(scope.key, bound, pod)


# --- eviction -----------------------------------------------------------------------------------------------------


def evict(scope: RequestScope) -> None:
    """Delete a pod if its budget allows it. Raises NotFound, TooManyRequests, Forbidden."""
    transaction, clock = scope.transaction, scope.server.clock
    pod = transaction.require(scope.key)
    eviction = Attributes(scope, _body(scope, EVICTION, {}), body=EVICTION)
    check_namespace(eviction)
    admit_body(eviction)
    scope = scope._replace(is_internal=True)
    needs_no_budget = (pod.get("status", {}).get("phase") in _PHASES_WITHOUT_BUDGET
                       or pod["metadata"].get("deletionTimestamp"))
    budget = None if needs_no_budget else _budget_of(scope, pod)
    if budget is not None and not _is_unhealthy_and_free(pod, budget):
        _check_and_decrement(scope, budget)
    if not transaction.dry_run:  # addConditionAndDeletePod
        pod = transaction.require(scope.key)
        evicted = clone(pod)
        condition = {"lastProbeTime": None, "message": "Eviction API: evicting", "reason": "EvictionByEvictionAPI",
                     "status": "True", "type": "DisruptionTarget"}
        set_condition(evicted.setdefault("status", {}).setdefault("conditions", []), condition, clock.now())
        transaction.update(scope.key, evicted, pod)
    delete(scope._replace(request=scope.request._replace(verb="delete", subresource="")))


def _budget_of(scope: RequestScope, pod: Object) -> Object | None:
    """Return the budget that covers a pod. Raises Status (500) if there are several."""
    budgets = []
    for budget in scope.transaction.list(BUDGETS.group_resource, scope.namespace):
        with suppress(SelectorError):  # upstream: a budget whose selector cannot be read covers nothing
            if from_label_selector(budget["spec"].get("selector")).matches(labels_of(pod)):
                budgets.append(budget)
    if len(budgets) > 1:
        raise errors.Status("This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                            "support.")
    return budgets[0] if budgets else None


def _is_unhealthy_and_free(pod: Object, budget: Object) -> bool:
    """Tell whether an unready pod may go because the budget says so, or enough others are healthy."""
    if is_pod_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _check_and_decrement(scope: RequestScope, budget: Object) -> None:
    """Count one disruption against the budget (``checkAndDecrement``). Raises TooManyRequests, Forbidden."""
    status, metadata, clock = budget.get("status", {}), budget["metadata"], scope.server.clock
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _too_many_requests(f"The disruption budget {name} is still being processed by the server.", 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise errors.forbidden("poddisruptionbudget.policy", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > MAX_DISRUPTED_PODS:
        raise errors.forbidden("poddisruptionbudget.policy", name,
                               "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _too_many_requests(_refusal(budget))
    new = clone(budget)
    new["status"]["disruptionsAllowed"] = allowed - 1
    new["status"].setdefault("disruptedPods", {})[scope.name] = clock.timestamp()
    if allowed == 1:
        condition: Object = {"message": "", "reason": "InsufficientPods", "status": "False",
                             "type": "DisruptionAllowed"}
        if observed := new["status"].get("observedGeneration"):
            condition["observedGeneration"] = observed
        set_condition(new["status"].setdefault("conditions", []), condition, clock.now())
    request = Request("update", BUDGETS, metadata["namespace"], name, "status")
    replace(scope._replace(request=request, resource=scope.server.resource_of(request)), new, budget)


def _too_many_requests(detail: str, retry_after_seconds: int = 0) -> errors.TooManyRequests:
    return errors.TooManyRequests(REFUSED, causes=[errors.Cause("DisruptionBudget", detail)],
                                  retry_after_seconds=retry_after_seconds)


def _refusal(budget: Object) -> str:
    """Word why a budget allows no disruption now."""
    name, status = budget["metadata"]["name"], budget.get("status", {})
    condition = get_condition(budget, "DisruptionAllowed") or {}
    message = condition.get("message", "") if condition.get("status") == "False" else ""
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if message and condition.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if message:
        return f"The disruption budget {name} does not allow evicting pods currently ({condition['reason']}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"
