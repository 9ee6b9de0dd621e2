"""Services that lead nowhere: no pod is chosen, none that is chosen is ready, or nobody gives them an address.

A Service is done when a pod that is ready stands behind it. One without a selector, or of type ExternalName, leads
where others say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import Object, labels_of, namespace_of
from kubepy.api.objects.pods import is_pod_ready
from kubepy.insight.why.deletions import counted, top_owner
from kubepy.insight.why.jobs import patch

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Diagnosis, Scene

PODS = "pods"
WORKLOADS = ("deployments.apps", "statefulsets.apps", "replicasets.apps", "replicationcontrollers")


def chooses(service: Object, labels: dict[str, str]) -> bool:
    """Return whether a Service's selector matches labels."""
    selector = service["spec"].get("selector") or {}
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def without_pods(scene: Scene, service: Object) -> Finding:
    """Return the finding about a Service whose selector matches no pod, with a workload that would have such pods."""
    link = scene.link(service, "spec.selector", "no pod has these labels")
    for resource in WORKLOADS:
        for workload in scene.list(resource, namespace_of(service)):
            template = workload["spec"].get("template") or {}
            if (chooses(service, (template.get("metadata") or {}).get("labels") or {})
                    and workload["spec"].get("replicas") == 0 and top_owner(scene, workload) is None):
                return scene.finding("no-endpoints", link, scene.link(
                    workload, "spec.replicas", "its pods would have them, but it is scaled to zero"),
                    remedies=[scene.command(workload, "scale", scene.word(workload), "--replicas=1")])
    return scene.finding("no-endpoints", link)


def no_endpoints(scene: Scene, service: Object) -> Finding | None:
    """Diagnose a Service with a selector behind which no pod is ready."""
    spec = service["spec"]
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return None
    pods = [pod for pod in scene.list(PODS, namespace_of(service)) if chooses(service, labels_of(pod))]
    if not pods:
        return without_pods(scene, service)
    if any(is_pod_ready(pod) for pod in pods):
        return None
    link = scene.link(service, "spec.selector", f"{counted(pods, 'pod')} chosen, and none is ready")
    finding = scene.diagnose_any(pods)
    return scene.lead(finding, link) if finding is not None else scene.finding("no-endpoints", link)


def load_balancer_pending(scene: Scene, service: Object) -> Finding | None:
    """Diagnose a Service of type LoadBalancer to which nobody has given an address."""
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    if service["spec"].get("type") != "LoadBalancer" or balancer.get("ingress"):
        return None
    if service["spec"].get("loadBalancerClass"):
        field, text = "spec.loadBalancerClass", "nobody here gives Services of this class an address"
    elif scene.settings.networking.load_balancer_pool:
        field, text = "status.loadBalancer", "the pool has no address left, or not the one that it asks for"
    else:
        field, text = "status.loadBalancer", ("nobody gives it an address: kubepy.yaml names no "
                                              "networking.loadBalancerPool")
    return scene.finding("load-balancer-pending", scene.link(service, field, text),
                         remedies=[patch(scene, service, {"type": "NodePort"})])


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {"services": (no_endpoints, load_balancer_pending)}
