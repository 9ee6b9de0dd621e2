"""What the API server does with each kind: one entry a kind, with its strategy, its columns, its admission plugins.

The names, verbs and categories of the kinds are in :data:`kubepy.api.scheme.BUILT_IN`, in the same order. A strategy
leads to the kind's defaults (``kubepy.apiserver.defaults``) and to its validation (``kubepy.apiserver.validation``).
Everything is imported when it is first needed. Upstream: ``pkg/registry/*/rest``, ``pkg/printers/internalversion``,
``pkg/kubeapiserver/options/plugins.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.printers import PLAIN, Printer, Table, print_table
from kubepy.apiserver.server import Attributes
from kubepy.apiserver.strategies import Strategy
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.admission import classes, limits, podsecurity, scheduling
    from kubepy.apiserver.printers import access as print_access
    from kubepy.apiserver.printers import core as print_core
    from kubepy.apiserver.printers import custom as print_custom
    from kubepy.apiserver.printers import networking as print_networking
    from kubepy.apiserver.printers import pods as print_pods
    from kubepy.apiserver.printers import scaling as print_scaling
    from kubepy.apiserver.printers import storage as print_storage
    from kubepy.apiserver.printers import workloads as print_workloads
    from kubepy.apiserver.strategies import (
        access,
        apps,
        batch,
        core,
        csi,
        custom,
        definitions,
        endpoints,
        networking,
        nodes,
        pods,
        policy,
        services,
        storage,
        webhooks,
    )


class AdmissionPlugin(NamedTuple):
    """An admission plugin, and the operations that it is about: ``create``, ``update``, ``update/resize`` …"""

    operations: tuple[str, ...]
    admit: Callable[[Attributes], None]


class ServedKind(NamedTuple):
    """What the server does with one kind.

    ``mutating`` plugins complete an object before the kind's own rules see it, ``validating`` ones refuse what those
    rules let through; both are in upstream's order.
    """

    strategy: Callable[[], type[Strategy]] = lambda: Strategy
    printer: Callable[[], Printer] = lambda: PLAIN
    mutating: tuple[AdmissionPlugin, ...] = ()
    validating: tuple[AdmissionPlugin, ...] = ()


# --- admission plugins --------------------------------------------------------------------------------------------

_CREATE, _WRITE = ("create",), ("create", "update")

CHECK_CLAIM_LIMITS = AdmissionPlugin(_WRITE, lambda attributes: limits.check_limits(attributes))
CHECK_LIMITS = AdmissionPlugin(("create", "update/resize"), lambda attributes: limits.check_limits(attributes))
CHECK_NAMESPACE = AdmissionPlugin(_WRITE, lambda attributes: podsecurity.check_namespace(attributes))
CHECK_ONE_DEFAULT = AdmissionPlugin(_WRITE, lambda attributes: scheduling.check_one_default(attributes))
CHECK_OVERHEAD = AdmissionPlugin(_CREATE, lambda attributes: scheduling.check_overhead(attributes))
CHECK_POD = AdmissionPlugin((*_WRITE, "update/ephemeralcontainers", "update/resize"),
                            lambda attributes: podsecurity.check_pod(attributes))
CHECK_RESIZE = AdmissionPlugin(("update",), lambda attributes: classes.check_resize(attributes))
DEFAULT_INGRESS_CLASS = AdmissionPlugin(_CREATE, lambda attributes: classes.set_default_ingress_class(attributes))
DEFAULT_STORAGE_CLASS = AdmissionPlugin(_CREATE, lambda attributes: classes.set_default_storage_class(attributes))
DEFAULT_TOLERATIONS = AdmissionPlugin(_WRITE, lambda attributes: scheduling.add_default_tolerations(attributes))
KEEP_PRIORITY = AdmissionPlugin(("update",), lambda attributes: scheduling.keep_priority(attributes))
LIMIT_DEFAULTS = AdmissionPlugin(_CREATE, lambda attributes: limits.apply_limit_defaults(attributes))
PROTECT_CLAIM = AdmissionPlugin(_CREATE, lambda attributes: classes.protect_claim(attributes))
PROTECT_VOLUME = AdmissionPlugin(_CREATE, lambda attributes: classes.protect_volume(attributes))
RUNTIME_CLASS = AdmissionPlugin(_CREATE, lambda attributes: scheduling.apply_runtime_class(attributes))
SET_PRIORITY = AdmissionPlugin(_CREATE, lambda attributes: scheduling.set_priority(attributes))
TAINT_NODE = AdmissionPlugin(_CREATE, lambda attributes: scheduling.taint_node(attributes))
WARN_OF_TEMPLATE = AdmissionPlugin(_WRITE, lambda attributes: podsecurity.warn_of_template(attributes))

# --- kinds --------------------------------------------------------------------------------------------------------

KINDS: dict[str, ServedKind] = {
    "scales.autoscaling": ServedKind(printer=lambda: print_scaling.SCALE),  # the subresource of many kinds
    "componentstatuses": ServedKind(printer=lambda: print_core.COMPONENT_STATUS),
    "configmaps": ServedKind(lambda: core.ConfigMapStrategy, lambda: print_core.CONFIG_MAP),
    "endpoints": ServedKind(lambda: endpoints.EndpointsStrategy, lambda: print_networking.ENDPOINTS),
    "events": ServedKind(lambda: core.EventStrategy, lambda: print_core.EVENT),
    "limitranges": ServedKind(lambda: core.LimitRangeStrategy),
    "namespaces": ServedKind(
        lambda: core.NamespaceStrategy, lambda: print_core.NAMESPACE, validating=(CHECK_NAMESPACE,)),
    "nodes": ServedKind(lambda: core.NodeStrategy, lambda: print_core.NODE, mutating=(TAINT_NODE,)),
    "persistentvolumeclaims": ServedKind(
        lambda: storage.PersistentVolumeClaimStrategy, lambda: print_storage.PERSISTENT_VOLUME_CLAIM,
        mutating=(DEFAULT_STORAGE_CLASS, PROTECT_CLAIM), validating=(CHECK_CLAIM_LIMITS, CHECK_RESIZE)),
    "persistentvolumes": ServedKind(
        lambda: storage.PersistentVolumeStrategy, lambda: print_storage.PERSISTENT_VOLUME,
        mutating=(PROTECT_VOLUME,)),
    "pods": ServedKind(
        lambda: pods.PodStrategy, lambda: print_pods.POD,
        mutating=(LIMIT_DEFAULTS, SET_PRIORITY, KEEP_PRIORITY, DEFAULT_TOLERATIONS, RUNTIME_CLASS),
        validating=(CHECK_LIMITS, CHECK_POD, CHECK_OVERHEAD)),
    "podtemplates": ServedKind(
        lambda: apps.PodTemplateStrategy, lambda: print_pods.POD_TEMPLATE, validating=(WARN_OF_TEMPLATE,)),
    "replicationcontrollers": ServedKind(
        lambda: apps.ReplicationControllerStrategy, lambda: print_workloads.REPLICATION_CONTROLLER,
        validating=(WARN_OF_TEMPLATE,)),
    "resourcequotas": ServedKind(lambda: core.ResourceQuotaStrategy, lambda: print_core.RESOURCE_QUOTA),
    "secrets": ServedKind(lambda: core.SecretStrategy, lambda: print_core.SECRET),
    "serviceaccounts": ServedKind(lambda: core.ServiceAccountStrategy, lambda: print_core.SERVICE_ACCOUNT),
    "services": ServedKind(lambda: services.ServiceStrategy, lambda: print_networking.SERVICE),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.MutatingAdmissionPolicyStrategy, lambda: print_access.MUTATING_ADMISSION_POLICY),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.MutatingAdmissionPolicyBindingStrategy, lambda: print_access.ADMISSION_POLICY_BINDING),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.MutatingWebhookConfigurationStrategy, lambda: print_access.WEBHOOK_CONFIGURATION),
    "validatingadmissionpolicies.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.ValidatingAdmissionPolicyStrategy, lambda: print_access.VALIDATING_ADMISSION_POLICY),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.ValidatingAdmissionPolicyBindingStrategy, lambda: print_access.ADMISSION_POLICY_BINDING),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.ValidatingWebhookConfigurationStrategy, lambda: print_access.WEBHOOK_CONFIGURATION),
    "customresourcedefinitions.apiextensions.k8s.io": ServedKind(lambda: definitions.CustomResourceDefinitionStrategy),
    "apiservices.apiregistration.k8s.io": ServedKind(printer=lambda: print_access.API_SERVICE),
    "controllerrevisions.apps": ServedKind(
        lambda: apps.ControllerRevisionStrategy, lambda: print_workloads.CONTROLLER_REVISION),
    "daemonsets.apps": ServedKind(
        lambda: apps.DaemonSetStrategy, lambda: print_workloads.DAEMON_SET, validating=(WARN_OF_TEMPLATE,)),
    "deployments.apps": ServedKind(
        lambda: apps.DeploymentStrategy, lambda: print_workloads.DEPLOYMENT, validating=(WARN_OF_TEMPLATE,)),
    "replicasets.apps": ServedKind(
        lambda: apps.ReplicaSetStrategy, lambda: print_workloads.REPLICA_SET, validating=(WARN_OF_TEMPLATE,)),
    "statefulsets.apps": ServedKind(
        lambda: apps.StatefulSetStrategy, lambda: print_workloads.STATEFUL_SET, validating=(WARN_OF_TEMPLATE,)),
    "selfsubjectreviews.authentication.k8s.io": ServedKind(lambda: access.SelfSubjectReviewStrategy),
    "tokenreviews.authentication.k8s.io": ServedKind(lambda: access.TokenReviewStrategy),
    "localsubjectaccessreviews.authorization.k8s.io": ServedKind(lambda: access.LocalSubjectAccessReviewStrategy),
    "selfsubjectaccessreviews.authorization.k8s.io": ServedKind(lambda: access.SelfSubjectAccessReviewStrategy),
    "selfsubjectrulesreviews.authorization.k8s.io": ServedKind(lambda: access.SelfSubjectRulesReviewStrategy),
    "subjectaccessreviews.authorization.k8s.io": ServedKind(lambda: access.SubjectAccessReviewStrategy),
    "horizontalpodautoscalers.autoscaling": ServedKind(
        lambda: policy.HorizontalPodAutoscalerStrategy, lambda: print_scaling.HORIZONTAL_POD_AUTOSCALER),
    "cronjobs.batch": ServedKind(
        lambda: batch.CronJobStrategy, lambda: print_workloads.CRON_JOB, validating=(WARN_OF_TEMPLATE,)),
    "jobs.batch": ServedKind(lambda: batch.JobStrategy, lambda: print_workloads.JOB, validating=(WARN_OF_TEMPLATE,)),
    "certificatesigningrequests.certificates.k8s.io": ServedKind(
        lambda: access.CertificateSigningRequestStrategy, lambda: print_access.CERTIFICATE_SIGNING_REQUEST),
    "leases.coordination.k8s.io": ServedKind(lambda: nodes.LeaseStrategy, lambda: print_core.LEASE),
    "endpointslices.discovery.k8s.io": ServedKind(
        lambda: endpoints.EndpointSliceStrategy, lambda: print_networking.ENDPOINT_SLICE),
    "events.events.k8s.io": ServedKind(printer=lambda: print_core.EVENTS_K8S_IO_EVENT),
    "flowschemas.flowcontrol.apiserver.k8s.io": ServedKind(
        lambda: policy.FlowSchemaStrategy, lambda: print_access.FLOW_SCHEMA),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": ServedKind(
        lambda: policy.PriorityLevelConfigurationStrategy, lambda: print_access.PRIORITY_LEVEL_CONFIGURATION),
    "ingressclasses.networking.k8s.io": ServedKind(
        lambda: networking.IngressClassStrategy, lambda: print_networking.INGRESS_CLASS),
    "ingresses.networking.k8s.io": ServedKind(
        lambda: networking.IngressStrategy, lambda: print_networking.INGRESS, mutating=(DEFAULT_INGRESS_CLASS,)),
    "ipaddresses.networking.k8s.io": ServedKind(
        lambda: networking.IPAddressStrategy, lambda: print_networking.IP_ADDRESS),
    "networkpolicies.networking.k8s.io": ServedKind(
        lambda: networking.NetworkPolicyStrategy, lambda: print_networking.NETWORK_POLICY),
    "servicecidrs.networking.k8s.io": ServedKind(
        lambda: networking.ServiceCIDRStrategy, lambda: print_networking.SERVICE_CIDR),
    "runtimeclasses.node.k8s.io": ServedKind(lambda: nodes.RuntimeClassStrategy, lambda: print_scaling.RUNTIME_CLASS),
    "poddisruptionbudgets.policy": ServedKind(
        lambda: policy.PodDisruptionBudgetStrategy, lambda: print_scaling.POD_DISRUPTION_BUDGET),
    "clusterrolebindings.rbac.authorization.k8s.io": ServedKind(
        lambda: access.ClusterRoleBindingStrategy, lambda: print_access.ROLE_BINDING),
    "clusterroles.rbac.authorization.k8s.io": ServedKind(lambda: access.ClusterRoleStrategy),
    "rolebindings.rbac.authorization.k8s.io": ServedKind(
        lambda: access.RoleBindingStrategy, lambda: print_access.ROLE_BINDING),
    "roles.rbac.authorization.k8s.io": ServedKind(lambda: access.RoleStrategy),
    "deviceclasses.resource.k8s.io": ServedKind(lambda: nodes.DeviceClassStrategy, lambda: print_scaling.DEVICE_CLASS),
    "resourceclaims.resource.k8s.io": ServedKind(
        lambda: nodes.ResourceClaimStrategy, lambda: print_scaling.RESOURCE_CLAIM),
    "resourceclaimtemplates.resource.k8s.io": ServedKind(
        lambda: nodes.ResourceClaimTemplateStrategy, lambda: print_scaling.RESOURCE_CLAIM_TEMPLATE),
    "resourceslices.resource.k8s.io": ServedKind(
        lambda: nodes.ResourceSliceStrategy, lambda: print_scaling.RESOURCE_SLICE),
    "priorityclasses.scheduling.k8s.io": ServedKind(
        lambda: policy.PriorityClassStrategy, lambda: print_scaling.PRIORITY_CLASS, validating=(CHECK_ONE_DEFAULT,)),
    "csidrivers.storage.k8s.io": ServedKind(lambda: csi.CSIDriverStrategy, lambda: print_storage.CSI_DRIVER),
    "csinodes.storage.k8s.io": ServedKind(lambda: csi.CSINodeStrategy, lambda: print_storage.CSI_NODE),
    "csistoragecapacities.storage.k8s.io": ServedKind(
        lambda: csi.CSIStorageCapacityStrategy, lambda: print_storage.CSI_STORAGE_CAPACITY),
    "storageclasses.storage.k8s.io": ServedKind(
        lambda: storage.StorageClassStrategy, lambda: print_storage.STORAGE_CLASS),
    "volumeattachments.storage.k8s.io": ServedKind(
        lambda: csi.VolumeAttachmentStrategy, lambda: print_storage.VOLUME_ATTACHMENT),
    "volumeattributesclasses.storage.k8s.io": ServedKind(
        lambda: storage.VolumeAttributesClassStrategy, lambda: print_storage.VOLUME_ATTRIBUTES_CLASS),
}
_OTHER = ServedKind()  # a kind that is missing above has no rules of its own


def kind_of(resource: Resource) -> ServedKind:
    return KINDS.get(resource.key, _OTHER)


def new_strategy(resource: Resource, definition_of: Callable[[Resource], Object]) -> Strategy:
    """Make the strategy of a kind.

    :param definition_of: returns the CustomResourceDefinition of a custom resource.
    """
    if not resource.custom:
        return kind_of(resource).strategy()(resource)
    own = custom.CustomWithStatusStrategy if "status" in resource.subresources else custom.CustomStrategy
    return own(resource, definition_of(resource))


def table(resource: Resource, objects: Sequence[Object], now: datetime, subresource: str = "") -> Table:
    """Return the table of objects of one resource, or of a subresource of it, for the CLI and for servers."""
    if subresource == "scale":
        return print_table(KINDS["scales.autoscaling"].printer(), objects, now)
    if resource.custom:
        return print_custom.custom_table(resource, objects, now)
    return print_table(kind_of(resource).printer(), objects, now)
