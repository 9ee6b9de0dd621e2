"""What `describe` says about an object: functions from an object (and what belongs to it) to lines.

Each describer takes a :class:`~kubepy.cli.describers.writer.Writer`, an object, and its
:class:`~kubepy.cli.describers.writer.Surroundings` (events, time, what else to list).
`rollout history --revision` prints pod templates with the same functions, its tabs left as they are.
Upstream: ``k8s.io/kubectl/pkg/describe/describe.go``.
"""

from collections.abc import Callable
from importlib import import_module

from kubepy.cli.describers.writer import Surroundings, Writer
from kubepy.cluster.objects.meta import Object

Describer = Callable[[Writer, Object, Surroundings], None]

# resource → module:function; what is not here is described field by field.
DESCRIBERS = {
    "configmaps": "core:config_map",
    "limitranges": "quotas:limit_range",
    "namespaces": "core:namespace",
    "nodes": "nodes:node",
    "persistentvolumeclaims": "storage:claim",
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
    "poddisruptionbudgets.policy": "policy:pod_disruption_budget",
    "priorityclasses.scheduling.k8s.io": "policy:priority_class",
    "storageclasses.storage.k8s.io": "storage:storage_class",
}


def describer_for(resource: str) -> Describer:
    """The describer of a resource (``daemonsets.apps``)."""
    module, _, function = DESCRIBERS.get(resource, "generic:generic").partition(":")
    describer: Describer = getattr(import_module(f"kubepy.cli.describers.{module}"), function)
    return describer
