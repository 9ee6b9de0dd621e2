"""The kinds that the API server serves: one entry a kind, with its strategy, its columns, its
admission plugins.

The names, verbs and categories of the kinds are in :data:`kubepy.api.scheme.BUILT_IN`. Each API
group has a package here, with the strategies, defaults, validation and printers of its kinds; in
``core`` each larger kind has one. Everything is imported when it is first needed. Upstream:
``pkg/registry/*/rest``, ``pkg/printers/internalversion``, ``pkg/kubeapiserver/options/plugins.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.printers import Printer, Table, print_plain, print_table
from kubepy.apiserver.server import Attributes
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import NamedTuple, lazy_imports

with lazy_imports():
    from kubepy.apiserver.admission import certificates as certificates_admission
    from kubepy.apiserver.admission import classes, limits, podsecurity, serviceaccounts
    from kubepy.apiserver.admission import scheduling as scheduling_admission
    from kubepy.apiserver.customresources import printers as custom_printers
    from kubepy.apiserver.customresources import strategy as custom_strategy
    from kubepy.apiserver.kinds.admissionregistration import (
        printers as admissionregistration_printers,
    )
    from kubepy.apiserver.kinds.admissionregistration import (
        strategy as admissionregistration_strategy,
    )
    from kubepy.apiserver.kinds.apiextensions import strategy as apiextensions_strategy
    from kubepy.apiserver.kinds.apiregistration import printers as apiregistration_printers
    from kubepy.apiserver.kinds.apps import printers as apps_printers
    from kubepy.apiserver.kinds.apps import strategy as apps_strategy
    from kubepy.apiserver.kinds.authentication import strategy as authentication_strategy
    from kubepy.apiserver.kinds.authorization import strategy as authorization_strategy
    from kubepy.apiserver.kinds.autoscaling import printers as autoscaling_printers
    from kubepy.apiserver.kinds.autoscaling import strategy as autoscaling_strategy
    from kubepy.apiserver.kinds.batch import printers as batch_printers
    from kubepy.apiserver.kinds.batch import strategy as batch_strategy
    from kubepy.apiserver.kinds.certificates import printers as certificates_printers
    from kubepy.apiserver.kinds.certificates import strategy as certificates_strategy
    from kubepy.apiserver.kinds.coordination import printers as coordination_printers
    from kubepy.apiserver.kinds.coordination import strategy as coordination_strategy
    from kubepy.apiserver.kinds.core import printers as core_printers
    from kubepy.apiserver.kinds.core import strategy as core_strategy
    from kubepy.apiserver.kinds.core.endpoints import printers as endpoints_printers
    from kubepy.apiserver.kinds.core.endpoints import strategy as endpoints_strategy
    from kubepy.apiserver.kinds.core.limitranges import strategy as limitranges_strategy
    from kubepy.apiserver.kinds.core.nodes import printers as nodes_printers
    from kubepy.apiserver.kinds.core.nodes import strategy as nodes_strategy
    from kubepy.apiserver.kinds.core.persistentvolumeclaims import (
        printers as persistentvolumeclaims_printers,
    )
    from kubepy.apiserver.kinds.core.persistentvolumeclaims import (
        strategy as persistentvolumeclaims_strategy,
    )
    from kubepy.apiserver.kinds.core.persistentvolumes import printers as persistentvolumes_printers
    from kubepy.apiserver.kinds.core.persistentvolumes import strategy as persistentvolumes_strategy
    from kubepy.apiserver.kinds.core.pods import printers as pods_printers
    from kubepy.apiserver.kinds.core.pods import strategy as pods_strategy
    from kubepy.apiserver.kinds.core.podtemplates import printers as podtemplates_printers
    from kubepy.apiserver.kinds.core.podtemplates import strategy as podtemplates_strategy
    from kubepy.apiserver.kinds.core.replicationcontrollers import (
        printers as replicationcontrollers_printers,
    )
    from kubepy.apiserver.kinds.core.replicationcontrollers import (
        strategy as replicationcontrollers_strategy,
    )
    from kubepy.apiserver.kinds.core.resourcequotas import printers as resourcequotas_printers
    from kubepy.apiserver.kinds.core.resourcequotas import strategy as resourcequotas_strategy
    from kubepy.apiserver.kinds.core.services import printers as services_printers
    from kubepy.apiserver.kinds.core.services import strategy as services_strategy
    from kubepy.apiserver.kinds.discovery import printers as discovery_printers
    from kubepy.apiserver.kinds.discovery import strategy as discovery_strategy
    from kubepy.apiserver.kinds.events import printers as events_printers
    from kubepy.apiserver.kinds.flowcontrol import printers as flowcontrol_printers
    from kubepy.apiserver.kinds.flowcontrol import strategy as flowcontrol_strategy
    from kubepy.apiserver.kinds.metrics import printers as metrics_printers
    from kubepy.apiserver.kinds.networking import printers as networking_printers
    from kubepy.apiserver.kinds.networking import strategy as networking_strategy
    from kubepy.apiserver.kinds.node import printers as node_printers
    from kubepy.apiserver.kinds.node import strategy as node_strategy
    from kubepy.apiserver.kinds.policy import printers as policy_printers
    from kubepy.apiserver.kinds.policy import strategy as policy_strategy
    from kubepy.apiserver.kinds.rbac import printers as rbac_printers
    from kubepy.apiserver.kinds.rbac import strategy as rbac_strategy
    from kubepy.apiserver.kinds.resource import printers as resource_printers
    from kubepy.apiserver.kinds.resource import strategy as resource_strategy
    from kubepy.apiserver.kinds.scheduling import printers as scheduling_printers
    from kubepy.apiserver.kinds.scheduling import strategy as scheduling_strategy
    from kubepy.apiserver.kinds.storage import printers as storage_printers
    from kubepy.apiserver.kinds.storage import strategy as storage_strategy


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
    lambda attributes: certificates_admission.check_approval(attributes),
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
    "Priority", _WRITE, lambda attributes: scheduling_admission.check_one_default(attributes)
)
CHECK_OVERHEAD = AdmissionPlugin(
    "RuntimeClass", _CREATE, lambda attributes: scheduling_admission.check_overhead(attributes)
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
    lambda attributes: scheduling_admission.add_default_tolerations(attributes),
)
KEEP_PRIORITY = AdmissionPlugin(
    "Priority", ("update",), lambda attributes: scheduling_admission.keep_priority(attributes)
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
    "RuntimeClass", _CREATE, lambda attributes: scheduling_admission.apply_runtime_class(attributes)
)
SET_PRIORITY = AdmissionPlugin(
    "Priority", _CREATE, lambda attributes: scheduling_admission.set_priority(attributes)
)
CHECK_SIGNING = AdmissionPlugin(
    "CertificateSigning",
    ("update/status",),
    lambda attributes: certificates_admission.check_signing(attributes),
)
CHECK_SUBJECT = AdmissionPlugin(
    "CertificateSubjectRestriction",
    _CREATE,
    lambda attributes: certificates_admission.check_subject(attributes),
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
    "TaintNodesByCondition", _CREATE, lambda attributes: scheduling_admission.taint_node(attributes)
)
WARN_OF_TEMPLATE = AdmissionPlugin(
    "PodSecurity", _WRITE, lambda attributes: podsecurity.warn_of_template(attributes)
)

# --- kinds ----------------------------------------------------------------------------------------

KINDS: dict[str, ServedKind] = {
    "scales.autoscaling": ServedKind(
        printer=lambda: autoscaling_printers.print_scale
    ),  # the subresource of many kinds
    "componentstatuses": ServedKind(printer=lambda: core_printers.print_component_status),
    "configmaps": ServedKind(
        lambda: core_strategy.ConfigMapStrategy, lambda: core_printers.print_config_map
    ),
    "endpoints": ServedKind(
        lambda: endpoints_strategy.EndpointsStrategy, lambda: endpoints_printers.print_endpoints
    ),
    "events": ServedKind(lambda: core_strategy.EventStrategy, lambda: core_printers.print_event),
    "limitranges": ServedKind(lambda: limitranges_strategy.LimitRangeStrategy),
    "namespaces": ServedKind(
        lambda: core_strategy.NamespaceStrategy,
        lambda: core_printers.print_namespace,
        validating=(CHECK_NAMESPACE,),
    ),
    "nodes": ServedKind(
        lambda: nodes_strategy.NodeStrategy,
        lambda: nodes_printers.print_node,
        mutating=(TAINT_NODE,),
    ),
    "persistentvolumeclaims": ServedKind(
        lambda: persistentvolumeclaims_strategy.PersistentVolumeClaimStrategy,
        lambda: persistentvolumeclaims_printers.print_claim,
        mutating=(DEFAULT_STORAGE_CLASS, PROTECT_CLAIM),
        validating=(CHECK_CLAIM_LIMITS, CHECK_RESIZE),
    ),
    "persistentvolumes": ServedKind(
        lambda: persistentvolumes_strategy.PersistentVolumeStrategy,
        lambda: persistentvolumes_printers.print_volume,
        mutating=(PROTECT_VOLUME,),
    ),
    "pods": ServedKind(
        lambda: pods_strategy.PodStrategy,
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
        lambda: podtemplates_strategy.PodTemplateStrategy,
        lambda: podtemplates_printers.print_pod_template,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "replicationcontrollers": ServedKind(
        lambda: replicationcontrollers_strategy.ReplicationControllerStrategy,
        lambda: replicationcontrollers_printers.print_replication_controller,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "resourcequotas": ServedKind(
        lambda: resourcequotas_strategy.ResourceQuotaStrategy,
        lambda: resourcequotas_printers.print_resource_quota,
    ),
    "secrets": ServedKind(lambda: core_strategy.SecretStrategy, lambda: core_printers.print_secret),
    "serviceaccounts": ServedKind(
        lambda: core_strategy.ServiceAccountStrategy, lambda: core_printers.print_service_account
    ),
    "services": ServedKind(
        lambda: services_strategy.ServiceStrategy, lambda: services_printers.print_service
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": ServedKind(
        lambda: admissionregistration_strategy.MutatingAdmissionPolicyStrategy,
        lambda: admissionregistration_printers.print_mutating_policy,
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": ServedKind(
        lambda: admissionregistration_strategy.MutatingAdmissionPolicyBindingStrategy,
        lambda: admissionregistration_printers.print_policy_binding,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": ServedKind(
        lambda: admissionregistration_strategy.MutatingWebhookConfigurationStrategy,
        lambda: admissionregistration_printers.print_webhooks,
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": ServedKind(
        lambda: admissionregistration_strategy.ValidatingAdmissionPolicyStrategy,
        lambda: admissionregistration_printers.print_validating_policy,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": ServedKind(
        lambda: admissionregistration_strategy.ValidatingAdmissionPolicyBindingStrategy,
        lambda: admissionregistration_printers.print_policy_binding,
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": ServedKind(
        lambda: admissionregistration_strategy.ValidatingWebhookConfigurationStrategy,
        lambda: admissionregistration_printers.print_webhooks,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": ServedKind(
        lambda: apiextensions_strategy.CustomResourceDefinitionStrategy
    ),
    "apiservices.apiregistration.k8s.io": ServedKind(
        printer=lambda: apiregistration_printers.print_api_service
    ),
    "controllerrevisions.apps": ServedKind(
        lambda: apps_strategy.ControllerRevisionStrategy,
        lambda: apps_printers.print_controller_revision,
    ),
    "daemonsets.apps": ServedKind(
        lambda: apps_strategy.DaemonSetStrategy,
        lambda: apps_printers.print_daemon_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "deployments.apps": ServedKind(
        lambda: apps_strategy.DeploymentStrategy,
        lambda: apps_printers.print_deployment,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "replicasets.apps": ServedKind(
        lambda: apps_strategy.ReplicaSetStrategy,
        lambda: apps_printers.print_replica_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "statefulsets.apps": ServedKind(
        lambda: apps_strategy.StatefulSetStrategy,
        lambda: apps_printers.print_stateful_set,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "selfsubjectreviews.authentication.k8s.io": ServedKind(
        lambda: authentication_strategy.SelfSubjectReviewStrategy
    ),
    "tokenreviews.authentication.k8s.io": ServedKind(
        lambda: authentication_strategy.TokenReviewStrategy
    ),
    "localsubjectaccessreviews.authorization.k8s.io": ServedKind(
        lambda: authorization_strategy.LocalSubjectAccessReviewStrategy
    ),
    "selfsubjectaccessreviews.authorization.k8s.io": ServedKind(
        lambda: authorization_strategy.SelfSubjectAccessReviewStrategy
    ),
    "selfsubjectrulesreviews.authorization.k8s.io": ServedKind(
        lambda: authorization_strategy.SelfSubjectRulesReviewStrategy
    ),
    "subjectaccessreviews.authorization.k8s.io": ServedKind(
        lambda: authorization_strategy.SubjectAccessReviewStrategy
    ),
    "horizontalpodautoscalers.autoscaling": ServedKind(
        lambda: autoscaling_strategy.HorizontalPodAutoscalerStrategy,
        lambda: autoscaling_printers.print_autoscaler,
    ),
    "cronjobs.batch": ServedKind(
        lambda: batch_strategy.CronJobStrategy,
        lambda: batch_printers.print_cron_job,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "jobs.batch": ServedKind(
        lambda: batch_strategy.JobStrategy,
        lambda: batch_printers.print_job,
        validating=(WARN_OF_TEMPLATE,),
    ),
    "certificatesigningrequests.certificates.k8s.io": ServedKind(
        lambda: certificates_strategy.CertificateSigningRequestStrategy,
        lambda: certificates_printers.print_certificate_request,
        validating=(CHECK_APPROVAL, CHECK_SIGNING, CHECK_SUBJECT),
    ),
    "leases.coordination.k8s.io": ServedKind(
        lambda: coordination_strategy.LeaseStrategy, lambda: coordination_printers.print_lease
    ),
    "endpointslices.discovery.k8s.io": ServedKind(
        lambda: discovery_strategy.EndpointSliceStrategy,
        lambda: discovery_printers.print_endpoint_slice,
    ),
    "events.events.k8s.io": ServedKind(
        lambda: core_strategy.EventStrategy, lambda: events_printers.print_new_event
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": ServedKind(
        lambda: flowcontrol_strategy.FlowSchemaStrategy,
        lambda: flowcontrol_printers.print_flow_schema,
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": ServedKind(
        lambda: flowcontrol_strategy.PriorityLevelConfigurationStrategy,
        lambda: flowcontrol_printers.print_priority_level,
    ),
    "ingressclasses.networking.k8s.io": ServedKind(
        lambda: networking_strategy.IngressClassStrategy,
        lambda: networking_printers.print_ingress_class,
    ),
    "ingresses.networking.k8s.io": ServedKind(
        lambda: networking_strategy.IngressStrategy,
        lambda: networking_printers.print_ingress,
        mutating=(DEFAULT_INGRESS_CLASS,),
    ),
    "ipaddresses.networking.k8s.io": ServedKind(
        lambda: networking_strategy.IPAddressStrategy, lambda: networking_printers.print_ip_address
    ),
    "networkpolicies.networking.k8s.io": ServedKind(
        lambda: networking_strategy.NetworkPolicyStrategy,
        lambda: networking_printers.print_network_policy,
    ),
    "servicecidrs.networking.k8s.io": ServedKind(
        lambda: networking_strategy.ServiceCIDRStrategy,
        lambda: networking_printers.print_service_cidr,
    ),
    "runtimeclasses.node.k8s.io": ServedKind(
        lambda: node_strategy.RuntimeClassStrategy, lambda: node_printers.print_runtime_class
    ),
    "poddisruptionbudgets.policy": ServedKind(
        lambda: policy_strategy.PodDisruptionBudgetStrategy,
        lambda: policy_printers.print_disruption_budget,
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": ServedKind(
        lambda: rbac_strategy.ClusterRoleBindingStrategy, lambda: rbac_printers.print_role_binding
    ),
    "clusterroles.rbac.authorization.k8s.io": ServedKind(lambda: rbac_strategy.ClusterRoleStrategy),
    "rolebindings.rbac.authorization.k8s.io": ServedKind(
        lambda: rbac_strategy.RoleBindingStrategy, lambda: rbac_printers.print_role_binding
    ),
    "roles.rbac.authorization.k8s.io": ServedKind(lambda: rbac_strategy.RoleStrategy),
    "deviceclasses.resource.k8s.io": ServedKind(
        lambda: resource_strategy.DeviceClassStrategy, lambda: resource_printers.print_named
    ),
    "resourceclaims.resource.k8s.io": ServedKind(
        lambda: resource_strategy.ResourceClaimStrategy,
        lambda: resource_printers.print_resource_claim,
    ),
    "resourceclaimtemplates.resource.k8s.io": ServedKind(
        lambda: resource_strategy.ResourceClaimTemplateStrategy,
        lambda: resource_printers.print_named,
    ),
    "resourceslices.resource.k8s.io": ServedKind(
        lambda: resource_strategy.ResourceSliceStrategy,
        lambda: resource_printers.print_resource_slice,
    ),
    "priorityclasses.scheduling.k8s.io": ServedKind(
        lambda: scheduling_strategy.PriorityClassStrategy,
        lambda: scheduling_printers.print_priority_class,
        validating=(CHECK_ONE_DEFAULT,),
    ),
    "csidrivers.storage.k8s.io": ServedKind(
        lambda: storage_strategy.CSIDriverStrategy, lambda: storage_printers.print_csi_driver
    ),
    "csinodes.storage.k8s.io": ServedKind(
        lambda: storage_strategy.CSINodeStrategy, lambda: storage_printers.print_csi_node
    ),
    "csistoragecapacities.storage.k8s.io": ServedKind(
        lambda: storage_strategy.CSIStorageCapacityStrategy
    ),
    "storageclasses.storage.k8s.io": ServedKind(
        lambda: storage_strategy.StorageClassStrategy, lambda: storage_printers.print_storage_class
    ),
    "volumeattachments.storage.k8s.io": ServedKind(
        lambda: storage_strategy.VolumeAttachmentStrategy,
        lambda: storage_printers.print_volume_attachment,
    ),
    "volumeattributesclasses.storage.k8s.io": ServedKind(
        lambda: storage_strategy.VolumeAttributesClassStrategy,
        lambda: storage_printers.print_volume_attributes_class,
    ),
    "nodes.metrics.k8s.io": ServedKind(printer=lambda: metrics_printers.print_node_metrics),
    "pods.metrics.k8s.io": ServedKind(printer=lambda: metrics_printers.print_pod_metrics),
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
        custom_strategy.CustomWithStatusStrategy
        if "status" in resource.subresources
        else custom_strategy.CustomStrategy
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
