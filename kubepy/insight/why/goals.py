"""The goal of each kind: the state in which ``why`` calls an object done.

An object that is being deleted is done when it is gone; every other by the goal of its kind, and
where the kind has none, when no condition of its status says that it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kubepy.api.meta import (
    Object,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    status_of,
    uid_of,
)
from kubepy.api.objects.pods import RESIZE_PENDING, phase_of
from kubepy.insight.why import disruption, intent, jobs
from kubepy.insight.why.scene import condition_status

if TYPE_CHECKING:
    from kubepy.insight.why.scene import Scene

Goal = Callable[["Scene", Object], bool]
HEALTHY_CONDITIONS = ("Ready", "Available", "Established", "NamesAccepted", "Healthy", "Synced")
# The kinds that make a custom resource done when it owns some.
OWNED = (
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "jobs.batch",
    "pods",
    "persistentvolumeclaims",
)
ROLLED_OUT = ("Deployment", "StatefulSet")
SERVICE_NAME = "kubernetes.io/service-name"


def is_observed(obj: Object) -> bool:
    """Return whether its controller has seen the object as it is."""
    generation = int(obj["metadata"].get("generation") or 0)
    return generation <= int(status_of(obj).get("observedGeneration") or 0)


def count(obj: Object, field: str) -> int:
    """Return a number of the status, 0 where it is missing."""
    return int(status_of(obj).get(field) or 0)


def desired_replicas(obj: Object) -> int:
    """Return the number of pods that a workload should have; one of a DaemonSet is counted by its
    controller."""
    if obj["kind"] == "DaemonSet":
        return count(obj, "desiredNumberScheduled")
    replicas = obj["spec"].get("replicas")
    if replicas is None:
        return 1
    return int(replicas)


def progress(obj: Object) -> tuple[int, int] | None:
    """Return how many pods of a workload are new, and how many are available, or have succeeded;
    None for other kinds."""
    if obj["kind"] == "DaemonSet":
        return count(obj, "updatedNumberScheduled"), count(obj, "numberAvailable")
    if obj["kind"] == "Job":
        return 0, count(obj, "succeeded")
    if obj["kind"] in ROLLED_OUT:
        return (count(obj, "updatedReplicas"), count(obj, "availableReplicas"))
    return None


def is_done_with(scene: Scene, obj: Object, pods: int) -> bool:
    """Return whether a workload is where it should be as soon as so many more of its pods are
    ready, or succeed."""
    if obj["kind"] == "Job":
        completions = obj["spec"].get("completions")
        return (
            completions is not None
            and not has_failed(obj)
            and count(obj, "succeeded") + pods >= completions
        )
    more = {field: count(obj, field) + pods for field in ("availableReplicas", "numberAvailable")}
    return is_done(scene, {**obj, "status": {**status_of(obj), **more}}, obj)


def deployment(scene: Scene, obj: Object) -> bool:
    """Return whether it is rolled out, as ``rollout status`` says, whether or not its deadline was
    exceeded."""
    desired = desired_replicas(obj)
    updated = count(obj, "updatedReplicas")
    return (
        is_observed(obj)
        and updated >= desired
        and count(obj, "replicas") <= updated
        and count(obj, "availableReplicas") >= updated
    )


def daemon_set(scene: Scene, obj: Object) -> bool:
    desired = desired_replicas(obj)
    return (
        is_observed(obj)
        and count(obj, "updatedNumberScheduled") >= desired
        and count(obj, "numberAvailable") >= desired
    )


def partition_of(obj: Object) -> int:
    """Return the ordinal from which a StatefulSet's rollout replaces pods."""
    rolling = nested_map(obj["spec"], "updateStrategy", "rollingUpdate")
    return int(rolling.get("partition") or 0)


def stateful_set(scene: Scene, obj: Object) -> bool:
    """Return whether all its pods are available, and all that a rollout replaces are new.

    After a template that was there before came back, the current revision is the new one again,
    while pods may still be of the one between.
    """
    desired = desired_replicas(obj)
    start = int(nested_map(obj["spec"], "ordinals").get("start") or 0)
    to_update = desired
    status = status_of(obj)
    if status.get("currentRevision") != status.get("updateRevision"):
        to_update = min(desired, max(start + desired - partition_of(obj), 0))
    return (
        is_observed(obj)
        and count(obj, "updatedReplicas") >= to_update
        and count(obj, "replicas") == desired
        and count(obj, "availableReplicas") >= desired
    )


def replica_set(scene: Scene, obj: Object) -> bool:
    desired = desired_replicas(obj)
    return (
        is_observed(obj)
        and count(obj, "replicas") == desired
        and count(obj, "availableReplicas") >= desired
    )


def pod(scene: Scene, obj: Object) -> bool:
    return phase_of(obj) == "Succeeded" or (
        phase_of(obj) == "Running" and condition_status(obj, "Ready") == "True"
    )


def resized_pod(scene: Scene, obj: Object) -> bool:
    """Tell whether a pod is well, and has the resources that it asks for."""
    return pod(scene, obj) and condition_status(obj, RESIZE_PENDING) != "True"


def job(scene: Scene, obj: Object) -> bool:
    return condition_status(obj, "Complete") == "True"


def goes_on(scene: Scene, obj: Object | None) -> bool:
    """Return whether an object is on its way though nothing is due: a Job whose pods run, nobody
    knows for how long."""
    return obj is not None and scene.key(obj).resource == "jobs.batch" and jobs.goes_on(scene, obj)


def has_failed(obj: Object | None) -> bool:
    """Return whether nothing can bring an object further: a Job that has failed, which may be gone
    soon."""
    return obj is not None and obj["kind"] == "Job" and condition_status(obj, "Failed") == "True"


def claim(scene: Scene, obj: Object) -> bool:
    return phase_of(obj) == "Bound"


def volume(scene: Scene, obj: Object) -> bool:
    return phase_of(obj) in ("Available", "Bound")


def namespace(scene: Scene, obj: Object) -> bool:
    return phase_of(obj) in ("", "Active")


def ready_slices(scene: Scene, service: Object) -> list[Object]:
    """Return the EndpointSlices of a Service that have a ready endpoint."""
    slices = (
        endpoint_slice
        for endpoint_slice in scene.list("endpointslices.discovery.k8s.io", namespace_of(service))
        if labels_of(endpoint_slice).get(SERVICE_NAME) == name_of(service)
    )
    return [endpoint_slice for endpoint_slice in slices if ready_endpoints(endpoint_slice)]


def ready_endpoints(endpoint_slice: Object) -> int:
    """Return how many endpoints of an EndpointSlice are ready."""
    return sum(
        nested_map(endpoint, "conditions").get("ready") is not False
        for endpoint in nested_list(endpoint_slice, "endpoints")
    )


def unserved_ports(scene: Scene, service: Object) -> list[int]:
    """Return the positions of a Service's ports whose targetPort is a name that no ready pod has.

    A pod without it is in a slice without that port.
    """
    served = {
        port.get("name") or ""
        for endpoint_slice in ready_slices(scene, service)
        for port in nested_list(endpoint_slice, "ports")
    }
    return [
        index
        for index, port in enumerate(nested_list(service["spec"], "ports"))
        if isinstance(port.get("targetPort"), str) and (port.get("name") or "") not in served
    ]


def is_backed(scene: Scene, service: Object) -> bool:
    """Return whether a ready pod stands behind each port of a Service."""
    return bool(ready_slices(scene, service)) and not unserved_ports(scene, service)


def has_address(service: Object) -> bool:
    """Return whether a load balancer has got an address."""
    return bool(nested_map(service, "status", "loadBalancer").get("ingress"))


def service(scene: Scene, obj: Object) -> bool:
    """Return whether it leads to pods, and a load balancer has its address."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return True
    if spec.get("type") == "LoadBalancer" and not has_address(obj):
        return False
    return not spec.get("selector") or is_backed(scene, obj)


def backends_of(ingress: Object) -> Iterator[tuple[str, Object]]:
    """Yield the Services that an Ingress leads to, as it names them, each with the path of that
    field."""
    spec = ingress["spec"]
    backends = [("spec.defaultBackend", nested_map(spec, "defaultBackend"))]
    for index, rule in enumerate(nested_list(spec, "rules")):
        for number, path in enumerate(nested_list(rule, "http", "paths")):
            backends.append(
                (f"spec.rules[{index}].http.paths[{number}].backend", nested_map(path, "backend"))
            )
    for field, backend in backends:
        if "service" in backend:
            yield f"{field}.service", backend["service"]


def port_of_backend(service: Object, backend: Object) -> Object | None:
    """Return the port of a Service that an Ingress means; None where the Service does not have
    it."""
    wanted = nested_map(backend, "port")
    ports = nested_list(service["spec"], "ports")
    if "name" in wanted:
        return next((port for port in ports if port.get("name") == wanted["name"]), None)
    return next((port for port in ports if port["port"] == wanted.get("number")), None)


def ingress(scene: Scene, obj: Object) -> bool:
    """Return whether there is a Service with the port, and a ready pod that has it, behind each of
    its backends. Other ports of the Service do not matter."""
    return all(_leads_to_pods(scene, obj, backend) for _, backend in backends_of(obj))


def _leads_to_pods(scene: Scene, ingress: Object, backend: Object) -> bool:
    service = scene.get("services", namespace_of(ingress), backend["name"])
    if service is None or (port := port_of_backend(service, backend)) is None:
        return False
    if service["spec"].get("type") == "ExternalName":
        return True
    index = nested_list(service["spec"], "ports").index(port)
    return bool(ready_slices(scene, service)) and index not in unserved_ports(scene, service)


def autoscaler(scene: Scene, obj: Object) -> bool:
    """Return whether it can scale, alone, and its target has the size that it wants, with all of
    its pods."""
    is_able = (
        condition_status(obj, "AbleToScale") == "True"
        and condition_status(obj, "ScalingActive") != "False"
    )
    if (
        not is_able
        or intent.rivals(scene, obj)
        or count(obj, "currentReplicas") != count(obj, "desiredReplicas")
    ):
        return False
    target = intent.target_of(scene, obj)
    return target is not None and is_done(scene, target, target)


def generic(scene: Scene, obj: Object) -> bool:
    """Return whether nothing says that it is not done: a generation unseen, a condition not True,
    an object it owns."""
    if not all(
        is_done(scene, child, child) for resource in OWNED for child in scene.owned(obj, resource)
    ):
        return False
    status = obj.get("status")
    if not isinstance(status, dict):
        return True
    if "observedGeneration" in status and not is_observed(obj):
        return False
    conditions = status.get("conditions")
    return not isinstance(conditions, list) or all(
        condition_status(obj, name) in ("", "True") for name in HEALTHY_CONDITIONS
    )


GOALS: dict[str, Goal] = {
    "cronjobs.batch": jobs.cron_job_is_done,
    "daemonsets.apps": daemon_set,
    "deployments.apps": deployment,
    "horizontalpodautoscalers.autoscaling": autoscaler,
    "ingresses.networking.k8s.io": ingress,
    "jobs.batch": job,
    "namespaces": namespace,
    "nodes": disruption.node_is_done,
    "persistentvolumeclaims": claim,
    "persistentvolumes": volume,
    "poddisruptionbudgets.policy": disruption.budget_is_done,
    "pods": resized_pod,
    "replicasets.apps": replica_set,
    "replicationcontrollers": replica_set,
    "services": service,
    "statefulsets.apps": stateful_set,
}


def is_done(scene: Scene, obj: Object | None, asked: Object) -> bool:
    """Return whether the object that was asked about is where it should be.

    :param obj: the object as it is in the scene; None where it is missing.
    :param asked: the object as it was when it was asked about: one that was being deleted then must
        be gone.
    """
    if is_being_deleted(asked):
        return obj is None or uid_of(obj) != uid_of(asked)
    if obj is None or is_being_deleted(obj):
        return False
    return GOALS.get(scene.key(obj).resource, generic)(scene, obj)
