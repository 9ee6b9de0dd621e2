"""The kinds that the API server serves: one entry a kind, with its strategy, its columns, its
admission plugins.

The names, verbs and categories of the kinds are in :data:`kubepy.api.scheme.BUILT_IN`. A strategy
leads to the kind's defaults (``kubepy.apiserver.defaults``) and to its validation
(``kubepy.apiserver.validation``). Everything is imported when it is first needed. Upstream:
``pkg/registry/*/rest``, ``pkg/printers/internalversion``, ``pkg/kubeapiserver/options/plugins.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.printers import Printer, Table, print_plain, print_table
from kubepy.apiserver.server import Attributes
from kubepy.apiserver.strategies import Strategy
from kubepy.lazy import NamedTuple, lazy_imports

with lazy_imports():
    from kubepy.apiserver.admission import (
        certificates,
        classes,
        limits,
        podsecurity,
        scheduling,
        serviceaccounts,
    )
    from kubepy.apiserver.printers import access as access_printers
    from kubepy.apiserver.printers import core as core_printers
    from kubepy.apiserver.printers import custom as custom_printers
    from kubepy.apiserver.printers import networking as networking_printers
    from kubepy.apiserver.printers import pods as pods_printers
    from kubepy.apiserver.printers import scaling as scaling_printers
    from kubepy.apiserver.printers import storage as storage_printers
    from kubepy.apiserver.printers import workloads as workloads_printers
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
    """A part of an admission plugin, which has upstream's name.

    ``operations`` are those that it is about: ``create``, ``update``, ``update/resize`` …
    """

    name: str
    operations: tuple[str, ...]
    admit: Callable[[Attributes], None]


class ServedKind(NamedTuple):
    """The server's rules for one kind.

    ``mutating`` plugins complete an object before the kind's own rules see it, ``validating`` ones
    refuse what those rules let through; both are in upstream's order.
    """

    strategy: Callable[[], type[Strategy]] = lambda: Strategy
    printer: Callable[[], Printer] = lambda: print_plain
    mutating: tuple[AdmissionPlugin, ...] = ()
    validating: tuple[AdmissionPlugin, ...] = ()


# --- admission plugins ----------------------------------------------------------------------------

_CREATE, _WRITE = ("create",), ("create", "update")

CHECK_APPROVAL = AdmissionPlugin(
    "CertificateApproval",
    ("update/approval",),
    lambda attributes: certificates.check_approval(attributes),
)
CHECK_CLAIM_LIMITS = AdmissionPlugin(
    "LimitRanger", _WRITE, lambda attributes: limits.check_limits(attributes)
)
CHECK_LIMITS = AdmissionPlugin(
    "LimitRanger", ("create", "update/resize"), lambda attributes: limits.check_limits(attributes)
)
CHECK_NAMESPACE = AdmissionPlugin(
    "PodSecurity", _WRITE, lambda attributes: podsecurity.check_namespace(attributes)
)
CHECK_ONE_DEFAULT = AdmissionPlugin(
    "Priority", _WRITE, lambda attributes: scheduling.check_one_default(attributes)
)
CHECK_OVERHEAD = AdmissionPlugin(
    "RuntimeClass", _CREATE, lambda attributes: scheduling.check_overhead(attributes)
)
CHECK_POD = AdmissionPlugin(
    "PodSecurity",
    (*_WRITE, "update/ephemeralcontainers", "update/resize"),
    lambda attributes: podsecurity.check_pod(attributes),
)
CHECK_RESIZE = AdmissionPlugin(
    "PersistentVolumeClaimResize", ("update",), lambda attributes: classes.check_resize(attributes)
)
DEFAULT_INGRESS_CLASS = AdmissionPlugin(
    "DefaultIngressClass", _CREATE, lambda attributes: classes.set_default_ingress_class(attributes)
)
DEFAULT_STORAGE_CLASS = AdmissionPlugin(
    "DefaultStorageClass", _CREATE, lambda attributes: classes.set_default_storage_class(attributes)
)
DEFAULT_TOLERATIONS = AdmissionPlugin(
    "DefaultTolerationSeconds",
    _WRITE,
    lambda attributes: scheduling.add_default_tolerations(attributes),
)
KEEP_PRIORITY = AdmissionPlugin(
    "Priority", ("update",), lambda attributes: scheduling.keep_priority(attributes)
)
LIMIT_DEFAULTS = AdmissionPlugin(
    "LimitRanger", _CREATE, lambda attributes: limits.apply_limit_defaults(attributes)
)
PROTECT_CLAIM = AdmissionPlugin(
    "StorageObjectInUseProtection", _CREATE, lambda attributes: classes.protect_claim(attributes)
)
PROTECT_VOLUME = AdmissionPlugin(
    "StorageObjectInUseProtection", _CREATE, lambda attributes: classes.protect_volume(attributes)
)
RUNTIME_CLASS = AdmissionPlugin(
    "RuntimeClass", _CREATE, lambda attributes: scheduling.apply_runtime_class(attributes)
)
SET_PRIORITY = AdmissionPlugin(
    "Priority", _CREATE, lambda attributes: scheduling.set_priority(attributes)
)
CHECK_SIGNING = AdmissionPlugin(
    "CertificateSigning",
    ("update/status",),
    lambda attributes: certificates.check_signing(attributes),
)
CHECK_SUBJECT = AdmissionPlugin(
    "CertificateSubjectRestriction",
    _CREATE,
    lambda attributes: certificates.check_subject(attributes),
)
CHECK_SERVICE_ACCOUNT = AdmissionPlugin(
    "ServiceAccount",
    ("create", "update/ephemeralcontainers"),
    lambda attributes: serviceaccounts.check_service_account(attributes),
)
SET_SERVICE_ACCOUNT = AdmissionPlugin(
    "ServiceAccount", _CREATE, lambda attributes: serviceaccounts.set_service_account(attributes)
)
TAINT_NODE = AdmissionPlugin(
    "TaintNodesByCondition", _CREATE, lambda attributes: scheduling.taint_node(attributes)
)
WARN_OF_TEMPLATE = AdmissionPlugin(
    "PodSecurity", _WRITE, lambda attributes: podsecurity.warn_of_template(attributes)
)

# --- kinds ----------------------------------------------------------------------------------------

KINDS: dict[str, ServedKind] = {
    "scales.autoscaling": ServedKind(
        printer=lambda: scaling_printers.print_scale
    ),  # the subresource of many kinds
    "componentstatuses": ServedKind(printer=lambda: core_printers.print_component_status),
    "configmaps": ServedKind(
        lambda: core.ConfigMapStrategy, lambda: core_printers.print_config_map
    ),
    "endpoints": ServedKind(
        lambda: endpoints.EndpointsStrategy, lambda: networking_printers.print_endpoints
    ),
    "events": ServedKind(lambda: core.EventStrategy, lambda: core_printers.print_event),
    "limitranges": ServedKind(lambda: core.LimitRangeStrategy),
    "namespaces": ServedKind(
        lambda: core.NamespaceStrategy,
        lambda: core_printers.print_namespace,
        validating=(CHECK_NAMESPACE,),
    ),
    "nodes": ServedKind(
        lambda: core.NodeStrategy, lambda: core_printers.print_node, mutating=(TAINT_NODE,)
    ),
    "persistentvolumeclaims": ServedKind(
        lambda: storage.PersistentVolumeClaimStrategy,
        lambda: storage_printers.print_claim,
        mutating=(DEFAULT_STORAGE_CLASS, PROTECT_CLAIM),
        validating=(CHECK_CLAIM_LIMITS, CHECK_RESIZE),
    ),
    "persistentvolumes": ServedKind(
        lambda: storage.PersistentVolumeStrategy,
        lambda: storage_printers.print_volume,
        mutating=(PROTECT_VOLUME,),
    ),
    "pods": ServedKind(
        lambda: pods.PodStrategy,
        lambda: pods_printers.print_pod,
        mutating=(
            LIMIT_DEFAULTS,
            SET_SERVICE_ACCOUNT,
            SET_PRIORITY,
            KEEP_PRIORITY,
            DEFAULT_TOLERATIONS,
            RUNTIME_CLASS,
        ),
        validating=(CHECK_LIMITS, CHECK_SERVICE_ACCOUNT, CHECK_POD, CHECK_OVERHEAD),
    ),
    "podtemplates": ServedKind(
        lambda: apps.PodTemplateStrategy,
        lambda: pods_printers.print_pod_template,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "replicationcontrollers": ServedKind(
        lambda: apps.ReplicationControllerStrategy,
        lambda: workloads_printers.print_replication_controller,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "resourcequotas": ServedKind(
        lambda: core.ResourceQuotaStrategy, lambda: core_printers.print_resource_quota
    ),
    "secrets": ServedKind(lambda: core.SecretStrategy, lambda: core_printers.print_secret),
    "serviceaccounts": ServedKind(
        lambda: core.ServiceAccountStrategy, lambda: core_printers.print_service_account
    ),
    "services": ServedKind(
        lambda: services.ServiceStrategy, lambda: networking_printers.print_service
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.MutatingAdmissionPolicyStrategy,
        lambda: access_printers.print_mutating_policy,
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.MutatingAdmissionPolicyBindingStrategy,
        lambda: access_printers.print_policy_binding,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.MutatingWebhookConfigurationStrategy,
        lambda: access_printers.print_webhooks,
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.ValidatingAdmissionPolicyStrategy,
        lambda: access_printers.print_validating_policy,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.ValidatingAdmissionPolicyBindingStrategy,
        lambda: access_printers.print_policy_binding,
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": ServedKind(
        lambda: webhooks.ValidatingWebhookConfigurationStrategy,
        lambda: access_printers.print_webhooks,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": ServedKind(
        lambda: definitions.CustomResourceDefinitionStrategy
    ),
    "apiservices.apiregistration.k8s.io": ServedKind(
        printer=lambda: access_printers.print_api_service
    ),
    "controllerrevisions.apps": ServedKind(
        lambda: apps.ControllerRevisionStrategy,
        lambda: workloads_printers.print_controller_revision,
    ),
    "daemonsets.apps": ServedKind(
        lambda: apps.DaemonSetStrategy,
        lambda: workloads_printers.print_daemon_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "deployments.apps": ServedKind(
        lambda: apps.DeploymentStrategy,
        lambda: workloads_printers.print_deployment,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "replicasets.apps": ServedKind(
        lambda: apps.ReplicaSetStrategy,
        lambda: workloads_printers.print_replica_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "statefulsets.apps": ServedKind(
        lambda: apps.StatefulSetStrategy,
        lambda: workloads_printers.print_stateful_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "selfsubjectreviews.authentication.k8s.io": ServedKind(
        lambda: access.SelfSubjectReviewStrategy
    ),
    "tokenreviews.authentication.k8s.io": ServedKind(lambda: access.TokenReviewStrategy),
    "localsubjectaccessreviews.authorization.k8s.io": ServedKind(
        lambda: access.LocalSubjectAccessReviewStrategy
    ),
    "selfsubjectaccessreviews.authorization.k8s.io": ServedKind(
        lambda: access.SelfSubjectAccessReviewStrategy
    ),
    "selfsubjectrulesreviews.authorization.k8s.io": ServedKind(
        lambda: access.SelfSubjectRulesReviewStrategy
    ),
    "subjectaccessreviews.authorization.k8s.io": ServedKind(
        lambda: access.SubjectAccessReviewStrategy
    ),
    "horizontalpodautoscalers.autoscaling": ServedKind(
        lambda: policy.HorizontalPodAutoscalerStrategy, lambda: scaling_printers.print_autoscaler
    ),
    "cronjobs.batch": ServedKind(
        lambda: batch.CronJobStrategy,
        lambda: workloads_printers.print_cron_job,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "jobs.batch": ServedKind(
        lambda: batch.JobStrategy,
        lambda: workloads_printers.print_job,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "certificatesigningrequests.certificates.k8s.io": ServedKind(
        lambda: access.CertificateSigningRequestStrategy,
        lambda: access_printers.print_certificate_request,
        validating=(CHECK_APPROVAL, CHECK_SIGNING, CHECK_SUBJECT),
    ),
    "leases.coordination.k8s.io": ServedKind(
        lambda: nodes.LeaseStrategy, lambda: core_printers.print_lease
    ),
    "endpointslices.discovery.k8s.io": ServedKind(
        lambda: endpoints.EndpointSliceStrategy, lambda: networking_printers.print_endpoint_slice
    ),
    "events.events.k8s.io": ServedKind(
        lambda: core.EventStrategy, lambda: core_printers.print_new_event
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": ServedKind(
        lambda: policy.FlowSchemaStrategy, lambda: access_printers.print_flow_schema
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": ServedKind(
        lambda: policy.PriorityLevelConfigurationStrategy,
        lambda: access_printers.print_priority_level,
    ),
    "ingressclasses.networking.k8s.io": ServedKind(
        lambda: networking.IngressClassStrategy, lambda: networking_printers.print_ingress_class
    ),
    "ingresses.networking.k8s.io": ServedKind(
        lambda: networking.IngressStrategy,
        lambda: networking_printers.print_ingress,
        mutating=(DEFAULT_INGRESS_CLASS,),
    ),
    "ipaddresses.networking.k8s.io": ServedKind(
        lambda: networking.IPAddressStrategy, lambda: networking_printers.print_ip_address
    ),
    "networkpolicies.networking.k8s.io": ServedKind(
        lambda: networking.NetworkPolicyStrategy, lambda: networking_printers.print_network_policy
    ),
    "servicecidrs.networking.k8s.io": ServedKind(
        lambda: networking.ServiceCIDRStrategy, lambda: networking_printers.print_service_cidr
    ),
    "runtimeclasses.node.k8s.io": ServedKind(
        lambda: nodes.RuntimeClassStrategy, lambda: scaling_printers.print_runtime_class
    ),
    "poddisruptionbudgets.policy": ServedKind(
        lambda: policy.PodDisruptionBudgetStrategy, lambda: scaling_printers.print_disruption_budget
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": ServedKind(
        lambda: access.ClusterRoleBindingStrategy, lambda: access_printers.print_role_binding
    ),
    "clusterroles.rbac.authorization.k8s.io": ServedKind(lambda: access.ClusterRoleStrategy),
    "rolebindings.rbac.authorization.k8s.io": ServedKind(
        lambda: access.RoleBindingStrategy, lambda: access_printers.print_role_binding
    ),
    "roles.rbac.authorization.k8s.io": ServedKind(lambda: access.RoleStrategy),
    "deviceclasses.resource.k8s.io": ServedKind(
        lambda: nodes.DeviceClassStrategy, lambda: scaling_printers.print_named
    ),
    "resourceclaims.resource.k8s.io": ServedKind(
        lambda: nodes.ResourceClaimStrategy, lambda: scaling_printers.print_resource_claim
    ),
    "resourceclaimtemplates.resource.k8s.io": ServedKind(
        lambda: nodes.ResourceClaimTemplateStrategy, lambda: scaling_printers.print_named
    ),
    "resourceslices.resource.k8s.io": ServedKind(
        lambda: nodes.ResourceSliceStrategy, lambda: scaling_printers.print_resource_slice
    ),
    "priorityclasses.scheduling.k8s.io": ServedKind(
        lambda: policy.PriorityClassStrategy,
        lambda: scaling_printers.print_priority_class,
        validating=(CHECK_ONE_DEFAULT,),
    ),
    "csidrivers.storage.k8s.io": ServedKind(
        lambda: csi.CSIDriverStrategy, lambda: storage_printers.print_csi_driver
    ),
    "csinodes.storage.k8s.io": ServedKind(
        lambda: csi.CSINodeStrategy, lambda: storage_printers.print_csi_node
    ),
    "csistoragecapacities.storage.k8s.io": ServedKind(lambda: csi.CSIStorageCapacityStrategy),
    "storageclasses.storage.k8s.io": ServedKind(
        lambda: storage.StorageClassStrategy, lambda: storage_printers.print_storage_class
    ),
    "volumeattachments.storage.k8s.io": ServedKind(
        lambda: csi.VolumeAttachmentStrategy, lambda: storage_printers.print_volume_attachment
    ),
    "volumeattributesclasses.storage.k8s.io": ServedKind(
        lambda: storage.VolumeAttributesClassStrategy,
        lambda: storage_printers.print_volume_attributes_class,
    ),
    "nodes.metrics.k8s.io": ServedKind(printer=lambda: scaling_printers.print_node_metrics),
    "pods.metrics.k8s.io": ServedKind(printer=lambda: scaling_printers.print_pod_metrics),
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
    own = (
        custom.CustomWithStatusStrategy
        if "status" in resource.subresources
        else custom.CustomStrategy
    )
    return own(resource, definition_of(resource))


def table(
    resource: Resource, objects: Sequence[Object], now: datetime, subresource: str = ""
) -> Table:
    """Return the table of objects of one resource, or of a subresource of it, for the CLI and for
    servers."""
    if subresource == "scale":
        return print_table(KINDS["scales.autoscaling"].printer(), objects, now)
    if resource.custom:
        return custom_printers.custom_table(resource, objects, now)
    return print_table(kind_of(resource).printer(), objects, now)
