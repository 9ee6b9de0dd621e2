"""Services that lead nowhere: no pod is chosen, none of those is ready, none has the port, or there
is no address.

A Service is done when a pod that is ready stands behind each of its ports. One without a selector,
or of type ExternalName, leads where others say.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from kubepy.api.meta import Object, labels_of, name_of, namespace_of, nested_list, nested_map
from kubepy.api.objects.pods import is_pod_ready
from kubepy.insight.why import goals
from kubepy.insight.why.deletions import counted, top_owner
from kubepy.insight.why.jobs import patch
from kubepy.insight.why.remedies import json_patch, pointer

if TYPE_CHECKING:
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

PODS = "pods"
WORKLOADS = (
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "replicationcontrollers",
)
SIMILAR = 0.6  # names that are at least so much alike may be one name, mistyped
MOST_OFFERED = 2  # workloads, ports or Services that might have been meant


def chooses(service: Object, labels: dict[str, str]) -> bool:
    """Return whether a Service's selector matches labels."""
    selector = nested_map(service["spec"], "selector")
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def alikeness(name: str, other: str) -> float:
    """Return how much two names are alike, from 0 to 1."""
    return SequenceMatcher(None, name, other).ratio()


def template_labels(workload: Object) -> dict[str, str]:
    metadata = nested_map(workload["spec"], "template", "metadata")
    return dict(nested_map(metadata, "labels"))


# --- pods -----------------------------------------------------------------------------------------


def without_pods(scene: Scene, service: Object) -> Finding:
    """Return the finding about a Service whose selector matches no pod, with a workload that would
    have such pods, or that the selector may have meant."""
    link = scene.link(service, "spec.selector", "no pod has these labels")
    workloads = top_workloads(scene, service)
    for workload in workloads:
        if chooses(service, template_labels(workload)):
            return of_workload_without_pods(scene, workload, link)
    meant = [workload for workload in workloads if may_be_meant(service, workload)][:MOST_OFFERED]
    links = [
        scene.link(workload, "spec.template.metadata.labels", "its pods have these labels")
        for workload in meant[:1]
    ]
    return scene.finding(
        "no-endpoints",
        link,
        *links,
        remedies=[select(scene, service, workload) for workload in meant],
    )


def top_workloads(scene: Scene, service: Object) -> list[Object]:
    """Return the workloads of a Service's namespace that belong to no other."""
    return [
        workload
        for resource in WORKLOADS
        for workload in scene.list(resource, namespace_of(service))
        if top_owner(scene, workload) is None
    ]


def without_selector(scene: Scene, service: Object) -> Finding:
    """Return the finding about a Service that chooses no pods, with the workloads that it may
    mean: one of its name, or the only one."""
    link = scene.link(
        service, "spec.selector", "it has no selector, and nobody has made EndpointSlices for it"
    )
    workloads = top_workloads(scene, service)
    meant = [workload for workload in workloads if may_be_meant(service, workload)] or workloads
    return scene.finding(
        "no-endpoints",
        link,
        remedies=[select(scene, service, workload) for workload in meant[:MOST_OFFERED]],
    )


def of_workload_without_pods(scene: Scene, workload: Object, link: Link) -> Finding:
    """Return the finding about a workload whose pods the Service would choose, if there were
    any."""
    if workload["spec"].get("replicas") == 0:
        return scene.finding(
            "no-endpoints",
            link,
            scene.link(
                workload, "spec.replicas", "its pods would have them, but it is scaled to zero"
            ),
            remedies=[scene.command(workload, "scale", scene.word(workload), "--replicas=1")],
        )
    finding = scene.diagnose(workload)
    if finding is not None:
        return scene.lead(finding, link)
    return scene.finding("no-endpoints", link)


def may_be_meant(service: Object, workload: Object) -> bool:
    """Return whether a Service may be meant to choose the pods of a workload: by its own name, or
    by a label that is mistyped."""
    values = [str(value) for value in nested_map(service["spec"], "selector").values()]
    labels = template_labels(workload)
    return bool(labels) and (
        name_of(workload) == name_of(service)
        or any(alikeness(value, label) >= SIMILAR for value in values for label in labels.values())
    )


def select(scene: Scene, service: Object, workload: Object) -> Words:
    """Return the command that lets a Service choose the pods of a workload."""
    chosen = nested_map(workload["spec"], "selector").get("matchLabels") or template_labels(
        workload
    )
    labels = ",".join(f"{key}={value}" for key, value in sorted(chosen.items()))
    return scene.command(service, "set", "selector", scene.word(service), labels)


def no_endpoints(scene: Scene, service: Object) -> Finding | None:
    """Diagnose a Service with a selector behind which no pod is ready."""
    spec = service["spec"]
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return None
    pods = [
        pod for pod in scene.list(PODS, namespace_of(service)) if chooses(service, labels_of(pod))
    ]
    if not pods:
        return without_pods(scene, service)
    if any(is_pod_ready(pod) for pod in pods):
        return None
    link = scene.link(service, "spec.selector", f"{counted(pods, 'pod')} chosen, and none is ready")
    workload = top_owner(scene, pods[0])
    finding = scene.diagnose(workload) if workload is not None else None
    finding = finding or scene.diagnose_any(pods)
    if finding is not None:
        return scene.lead(finding, link)
    return scene.finding("no-endpoints", link)


# --- ports ----------------------------------------------------------------------------------------


def target_port(scene: Scene, service: Object) -> Finding | None:
    """Diagnose a Service with a targetPort that is the name of no port of its ready pods."""
    unserved = goals.unserved_ports(scene, service) if service["spec"].get("selector") else []
    pods = [
        pod
        for pod in scene.list(PODS, namespace_of(service))
        if chooses(service, labels_of(pod)) and is_pod_ready(pod)
    ]
    if not unserved or not pods:
        return None
    index = unserved[0]
    port = service["spec"]["ports"][index]
    link = scene.link(service, f"spec.ports[{index}].targetPort", "no pod has a port of this name")
    places = [
        (place, declared)
        for place, declared in ports_of(pods[0])
        if declared.get("protocol", "TCP") == port.get("protocol", "TCP")
    ]
    shown = ", ".join(
        str(declared.get("name") or declared["containerPort"]) for _, declared in places
    )
    field = places[0][0] if places else "spec.containers[0].ports"
    last = scene.link(pods[0], field, f"its ports: {shown}" if shown else "it names no ports")
    remedies = [
        json_patch(
            scene,
            service,
            {
                "op": "replace",
                "path": pointer("spec", "ports", index, "targetPort"),
                "value": value,
            },
        )
        for value in targets(port, [declared for _, declared in places])
    ]
    return scene.finding("target-port", link, last, remedies=remedies)


def ports_of(pod: Object) -> Iterator[tuple[str, Object]]:
    """Yield the ports that the containers of a pod name, each with the path of the list that has
    it."""
    for index, container in enumerate(pod["spec"]["containers"]):
        for port in nested_list(container, "ports"):
            yield f"spec.containers[{index}].ports", port


def targets(port: Object, declared: list[Object]) -> list[str | int]:
    """Return what a port of a Service may be meant to lead to: the port of that number, one with a
    name like the target's, then others; the same number where the pods name no ports."""

    def rank(candidate: Object) -> tuple[bool, float]:
        return (
            candidate["containerPort"] != port["port"],
            -alikeness(str(candidate.get("name") or ""), str(port["targetPort"])),
        )

    ranked = sorted(declared, key=rank)[:MOST_OFFERED]
    return [candidate.get("name") or candidate["containerPort"] for candidate in ranked] or [
        port["port"]
    ]


# --- addresses ------------------------------------------------------------------------------------


def load_balancer_pending(scene: Scene, service: Object) -> Finding | None:
    """Diagnose a Service of type LoadBalancer to which nobody has given an address."""
    balancer = nested_map(service, "status", "loadBalancer")
    if service["spec"].get("type") != "LoadBalancer" or balancer.get("ingress"):
        return None
    if service["spec"].get("loadBalancerClass"):
        field = "spec.loadBalancerClass"
        text = "nobody here gives Services of this class an address"
    elif scene.settings.networking.load_balancer_pool:
        field = "status.loadBalancer"
        text = "the pool has no address left, or not the one that it asks for"
    else:
        field = "status.loadBalancer"
        text = "nobody gives it an address: kubepy.yaml names no networking.loadBalancerPool"

    return scene.finding(
        "load-balancer-pending",
        scene.link(service, field, text),
        remedies=[patch(scene, service, {"type": "NodePort"})],
    )


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    "services": (no_endpoints, target_port, load_balancer_pending)
}
