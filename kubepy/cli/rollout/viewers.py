"""How far a rollout is: from an object to what to say and whether it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.api.meta import Object, name_of
from kubepy.api.objects.deployments import revision_of
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError
from kubepy.quoting import quote


class Progress(NamedTuple):
    message: str
    done: bool


Viewer = Callable[[Object, int], Progress]


def viewer_for(resource: Resource) -> Viewer:
    """Raises CliError for kinds without rollouts."""
    viewer = VIEWERS.get(resource.key)
    if viewer is None:
        raise CliError(f"no status viewer has been implemented for {resource.qualified_kind}")
    return viewer


def is_observed(obj: Object) -> bool:
    return bool(obj["metadata"].get("generation", 0) <= obj.get("status", {}).get("observedGeneration", 0))


def daemon_set(obj: Object, revision: int) -> Progress:
    name, status = name_of(obj), obj.get("status", {})
    _require_rolling_update(obj)
    if not is_observed(obj):
        return Progress("Waiting for daemon set spec update to be observed...", False)
    wanted, updated = status.get("desiredNumberScheduled", 0), status.get("updatedNumberScheduled", 0)
    available = status.get("numberAvailable", 0)
    waiting = f"Waiting for daemon set {quote(name)} rollout to finish:"
    if updated < wanted:
        return Progress(f"{waiting} {updated} out of {wanted} new pods have been updated...", False)
    if available < wanted:
        return Progress(f"{waiting} {available} of {wanted} updated pods are available...", False)
    return Progress(f"daemon set {quote(name)} successfully rolled out", True)


def _require_rolling_update(obj: Object) -> None:
    if obj["spec"].get("updateStrategy", {}).get("type") != "RollingUpdate":
        raise CliError("rollout status is only available for RollingUpdate strategy type")


def deployment(obj: Object, revision: int) -> Progress:
    name, status = name_of(obj), obj.get("status", {})
    if revision > 0 and revision_of(obj) != revision:
        raise CliError(f"desired revision ({revision}) is different from the running revision ({revision_of(obj)})")
    if not is_observed(obj):
        return Progress("Waiting for deployment spec update to be observed...", False)
    if any(one["type"] == "Progressing" and one.get("reason") == "ProgressDeadlineExceeded"
           for one in status.get("conditions") or []):
        raise CliError(f"deployment {quote(name)} exceeded its progress deadline")
    wanted, total = obj["spec"].get("replicas", 0), status.get("replicas", 0)
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    waiting = f"Waiting for deployment {quote(name)} rollout to finish:"
    if updated < wanted:
        return Progress(f"{waiting} {updated} out of {wanted} new replicas have been updated...", False)
    if total > updated:
        return Progress(f"{waiting} {total - updated} old replicas are pending termination...", False)
    if available < updated:
        return Progress(f"{waiting} {available} of {updated} updated replicas are available...", False)
    return Progress(f"deployment {quote(name)} successfully rolled out", True)


def stateful_set(obj: Object, revision: int) -> Progress:
    spec, status = obj["spec"], obj.get("status", {})
    _require_rolling_update(obj)
    if not status.get("observedGeneration") or not is_observed(obj):
        return Progress("Waiting for statefulset spec update to be observed...", False)
    wanted, ready = spec.get("replicas", 1), status.get("readyReplicas", 0)
    if ready < wanted:
        return Progress(f"Waiting for {wanted - ready} pods to be ready...", False)
    updated = status.get("updatedReplicas", 0)
    rolling = spec["updateStrategy"].get("rollingUpdate")
    if rolling is not None:
        above = wanted - rolling["partition"] if "partition" in rolling else 0
        if updated < above:
            return Progress(f"Waiting for partitioned roll out to finish: {updated} out of {above} new pods have been"
                            " updated...", False)
        return Progress(f"partitioned roll out complete: {updated} new pods have been updated...", True)
    current, update = status.get("currentRevision", ""), status.get("updateRevision", "")
    if update != current:
        return Progress(f"waiting for statefulset rolling update to complete {updated} pods at revision {update}...",
                        False)
    return Progress(f"statefulset rolling update complete {status.get('currentReplicas', 0)} pods at revision"
                    f" {current}...", True)


VIEWERS: dict[str, Viewer] = {
    "daemonsets.apps": daemon_set,
    "deployments.apps": deployment,
    "statefulsets.apps": stateful_set,
}
