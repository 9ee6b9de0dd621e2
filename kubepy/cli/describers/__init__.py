"""What `describe` says about an object: functions from an object (and what belongs to it) to lines.

Each describer takes a :class:`~kubepy.cli.describers.writer.Writer`, an object, and its
:class:`~kubepy.cli.describers.writer.Surroundings` (events, time, what else to list).
`rollout history --revision` prints pod templates with the same functions, its tabs left as they are.
Upstream: ``k8s.io/kubectl/pkg/describe/describe.go``.
"""

from collections.abc import Callable
from importlib import import_module

from kubepy.api.meta import Object
from kubepy.cli.describers.writer import Surroundings, Writer

Describer = Callable[[Writer, Object, Surroundings], None]

# resource → module:function; what is not here is described field by field.
DESCRIBERS = {
    "configmaps": "core:config_map",
    "endpoints": "endpoints:endpoints",
    "limitranges": "quotas:limit_range",
    "namespaces": "core:namespace",
    "nodes": "nodes:node",
    "persistentvolumeclaims": "claims:claim",
    "persistentvolumes": "storage:volume",
    "pods": "pods:pod",
    "replicationcontrollers": "workloads:replication_controller",
    "resourcequotas": "quotas:resource_quota",
    "secrets": "core:secret",
    "serviceaccounts": "core:service_account",
    "services": "core:service",
    "daemonsets.apps": "workloads:daemon_set",
    "deployments.apps": "workloads:deployment",
    "replicasets.apps": "workloads:replica_set",
    "statefulsets.apps": "workloads:stateful_set",
    "cronjobs.batch": "jobs:cron_job",
    "jobs.batch": "jobs:job",
    "certificatesigningrequests.certificates.k8s.io": "access:certificate_request",
    "clusterrolebindings.rbac.authorization.k8s.io": "access:role_binding",
    "clusterroles.rbac.authorization.k8s.io": "access:role",
    "csinodes.storage.k8s.io": "storage:csi_node",
    "endpointslices.discovery.k8s.io": "endpoints:endpoint_slice",
    "horizontalpodautoscalers.autoscaling": "autoscaling:autoscaler",
    "ingressclasses.networking.k8s.io": "networking:ingress_class",
    "ingresses.networking.k8s.io": "networking:ingress",
    "ipaddresses.networking.k8s.io": "networking:ip_address",
    "networkpolicies.networking.k8s.io": "networkpolicies:network_policy",
    "poddisruptionbudgets.policy": "policy:pod_disruption_budget",
    "priorityclasses.scheduling.k8s.io": "policy:priority_class",
    "rolebindings.rbac.authorization.k8s.io": "access:role_binding",
    "roles.rbac.authorization.k8s.io": "access:role",
    "servicecidrs.networking.k8s.io": "networking:service_cidr",
    "storageclasses.storage.k8s.io": "storage:storage_class",
    "volumeattributesclasses.storage.k8s.io": "storage:volume_attributes_class",
}


def describer_for(resource: str) -> Describer:
    """The describer of a resource (``daemonsets.apps``)."""
    module, _, function = DESCRIBERS.get(resource, "generic:generic").partition(":")
    describer: Describer = getattr(import_module(f"kubepy.cli.describers.{module}"), function)
    return describer
