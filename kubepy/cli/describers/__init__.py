"""Describers: functions that write what `describe` prints about an object.

Each describer takes a :class:`~kubepy.cli.describers.writer.PrefixWriter`, an object, and a
:class:`~kubepy.cli.describers.writer.DescribeContext` (events, time, related objects).
`rollout history --revision` prints pod templates with the same functions, its tabs left as they
are. Upstream: ``k8s.io/kubectl/pkg/describe/describe.go``.
"""

from __future__ import annotations

from collections.abc import Callable

from kubepy.api.meta import AnyObject
from kubepy.cli.describers.writer import DescribeContext, PrefixWriter
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.cli.describers import (
        access,
        autoscaling,
        core,
        generic,
        networking,
        nodes,
        pods,
        policy,
        storage,
        workloads,
    )

Describer = Callable[[PrefixWriter, AnyObject, DescribeContext], None]

# The lambdas keep modules from being imported before their describer is used.
DESCRIBERS: dict[str, Callable[[], Describer]] = {
    "configmaps": lambda: core.config_map,
    "endpoints": lambda: networking.endpoints,
    "limitranges": lambda: policy.limit_range,
    "namespaces": lambda: core.namespace,
    "nodes": lambda: nodes.node,
    "persistentvolumeclaims": lambda: storage.claim,
    "persistentvolumes": lambda: storage.volume,
    "pods": lambda: pods.pod,
    "replicationcontrollers": lambda: workloads.replication_controller,
    "resourcequotas": lambda: policy.resource_quota,
    "secrets": lambda: core.secret,
    "serviceaccounts": lambda: core.service_account,
    "services": lambda: core.service,
    "daemonsets.apps": lambda: workloads.daemon_set,
    "deployments.apps": lambda: workloads.deployment,
    "replicasets.apps": lambda: workloads.replica_set,
    "statefulsets.apps": lambda: workloads.stateful_set,
    "cronjobs.batch": lambda: workloads.cron_job,
    "jobs.batch": lambda: workloads.job,
    "certificatesigningrequests.certificates.k8s.io": lambda: access.certificate_signing_request,
    "clusterrolebindings.rbac.authorization.k8s.io": lambda: access.role_binding,
    "clusterroles.rbac.authorization.k8s.io": lambda: access.role,
    "csinodes.storage.k8s.io": lambda: storage.csi_node,
    "endpointslices.discovery.k8s.io": lambda: networking.endpoint_slice,
    "horizontalpodautoscalers.autoscaling": lambda: autoscaling.autoscaler,
    "ingressclasses.networking.k8s.io": lambda: networking.ingress_class,
    "ingresses.networking.k8s.io": lambda: networking.ingress,
    "ipaddresses.networking.k8s.io": lambda: networking.ip_address,
    "networkpolicies.networking.k8s.io": lambda: networking.network_policy,
    "poddisruptionbudgets.policy": lambda: policy.pod_disruption_budget,
    "priorityclasses.scheduling.k8s.io": lambda: policy.priority_class,
    "rolebindings.rbac.authorization.k8s.io": lambda: access.role_binding,
    "roles.rbac.authorization.k8s.io": lambda: access.role,
    "servicecidrs.networking.k8s.io": lambda: networking.service_cidr,
    "storageclasses.storage.k8s.io": lambda: storage.storage_class,
    "volumeattributesclasses.storage.k8s.io": lambda: storage.volume_attributes_class,
}


def describer_for(resource: str) -> Describer:
    """Return the describer of a resource (``daemonsets.apps``); others are described field by
    field."""
    return DESCRIBERS.get(resource, lambda: generic.generic)()
