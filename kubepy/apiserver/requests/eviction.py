"""Evicting a pod: a deletion that PodDisruptionBudgets may forbid (``pkg/registry/core/pod/storage/eviction.go``)."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.meta import Object, clone, labels_of
from kubepy.api.objects.pods import get_condition, is_pod_ready, set_condition
from kubepy.api.selectors import SelectorError, from_label_selector
from kubepy.apiserver.admission import admit_into_namespace
from kubepy.apiserver.requests.deletion import delete
from kubepy.apiserver.requests.options import DeleteOptions
from kubepy.apiserver.requests.server import Server, Target
from kubepy.apiserver.requests.sessions import Session
from kubepy.apiserver.requests.updating import replace

BUDGETS = "poddisruptionbudgets.policy"
MAX_DISRUPTED_PODS = 2000
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_FREE_PHASES = ("Pending", "Succeeded", "Failed")


def evict(server: Server, session: Session, target: Target, options: DeleteOptions) -> None:
    """Delete a pod if its budget allows it. Raises NotFound, TooManyRequests, Forbidden."""
    pod = session.require(target.key)
    admit_into_namespace(session, target, pod)
    budget = None if _needs_no_budget(pod) else _budget_of(session, pod)
    if budget is not None and not _is_unhealthy_and_free(pod, budget):
        _take_one(server, session, budget, target.name)
    _delete_with_condition(server, session, target, options)


def _needs_no_budget(pod: Object) -> bool:
    phase = pod.get("status", {}).get("phase")
    return phase in _FREE_PHASES or bool(pod["metadata"].get("deletionTimestamp"))


def _budget_of(session: Session, pod: Object) -> Object | None:
    """The budget that covers a pod. Raises InternalError if there are several."""
    found = [one for one in session.list(BUDGETS, pod["metadata"]["namespace"]) if _covers(one, pod)]
    if len(found) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise errors.Status(why)
    return found[0] if found else None


def _covers(budget: Object, pod: Object) -> bool:
    try:
        return from_label_selector(budget["spec"].get("selector")).matches(labels_of(pod))
    except SelectorError:
        return False  # upstream: a budget whose selector cannot be read covers nothing


def _is_unhealthy_and_free(pod: Object, budget: Object) -> bool:
    """An unready pod may go if the budget says so, or if enough others are healthy."""
    if is_pod_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _take_one(server: Server, session: Session, budget: Object, pod_name: str) -> None:
    """Count one disruption against the budget (``checkAndDecrement``)."""
    status, metadata = budget.get("status", {}), budget["metadata"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _too_many(f"The disruption budget {metadata['name']} is still being processed by the server.", 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise errors.forbidden("poddisruptionbudget.policy", metadata["name"], "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("poddisruptionbudget.policy", metadata["name"], why)
    if allowed == 0:
        raise _too_many(_why_not(budget))
    new = clone(budget)
    new["status"]["disruptionsAllowed"] = allowed - 1
    new["status"].setdefault("disruptedPods", {})[pod_name] = server.clock.timestamp()
    if allowed == 1:
        _set_disruption_not_allowed(server, new)
    replace(server, session, server.target(BUDGETS, metadata["namespace"], metadata["name"]), new, budget, "status")


def _why_not(budget: Object) -> str:
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


def _too_many(why: str, retry_after_seconds: int = 0) -> errors.Status:
    return errors.TooManyRequests(REFUSED, causes=[errors.Cause("DisruptionBudget", why)],
                                  retry_after_seconds=retry_after_seconds)


def _set_disruption_not_allowed(server: Server, budget: Object) -> None:
    condition: Object = {"message": "", "reason": "InsufficientPods", "status": "False", "type": "DisruptionAllowed"}
    if observed := budget["status"].get("observedGeneration"):
        condition["observedGeneration"] = observed
    set_condition(budget["status"].setdefault("conditions", []), condition, server.clock.now())


def _delete_with_condition(server: Server, session: Session, target: Target, options: DeleteOptions) -> None:
    """Deletion preceded by the DisruptionTarget condition (``addConditionAndDeletePod``)."""
    pod = session.require(target.key)
    if not session.dry_run:
        new = clone(pod)
        condition = {"lastProbeTime": None, "message": "Eviction API: evicting", "reason": "EvictionByEvictionAPI",
                     "status": "True", "type": "DisruptionTarget"}
        set_condition(new.setdefault("status", {}).setdefault("conditions", []), condition, server.clock.now())
        pod = session.update(target.key, new, pod)
    delete(server, session, target, options)
