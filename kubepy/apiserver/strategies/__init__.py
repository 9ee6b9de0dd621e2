"""Which strategy serves which kind. The modules beside this one hold them; each is imported when first needed.

Upstream: ``pkg/registry/*/strategy.go``, wired in ``pkg/registry/*/rest``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.strategies import custom

# The module of each kind's strategy; its class is ``<Kind>Strategy``. A kind that is missing is served plainly.
_MODULES = {
    "namespaces": "core",
    "nodes": "core",
    "pods": "pods",
    "configmaps": "core",
    "secrets": "core",
    "events": "core",
    "services": "services",
    "serviceaccounts": "core",
    "limitranges": "quotas",
    "resourcequotas": "quotas",
    "endpoints": "endpoints",
    "endpointslices.discovery.k8s.io": "endpoints",
    "replicationcontrollers": "replication",
    "podtemplates": "replication",
    "leases.coordination.k8s.io": "leases",
    "runtimeclasses.node.k8s.io": "leases",
    "roles.rbac.authorization.k8s.io": "rbac",
    "clusterroles.rbac.authorization.k8s.io": "rbac",
    "rolebindings.rbac.authorization.k8s.io": "rbac",
    "clusterrolebindings.rbac.authorization.k8s.io": "rbac",
    "daemonsets.apps": "apps",
    "controllerrevisions.apps": "apps",
    "deployments.apps": "apps",
    "replicasets.apps": "apps",
    "statefulsets.apps": "apps",
    "jobs.batch": "batch",
    "cronjobs.batch": "batch",
    "poddisruptionbudgets.policy": "policy",
    "priorityclasses.scheduling.k8s.io": "policy",
    "horizontalpodautoscalers.autoscaling": "autoscaling",
    "persistentvolumeclaims": "storage",
    "persistentvolumes": "storage",
    "storageclasses.storage.k8s.io": "storage",
    "csidrivers.storage.k8s.io": "csi",
    "csinodes.storage.k8s.io": "csi",
    "csistoragecapacities.storage.k8s.io": "csi",
    "ingresses.networking.k8s.io": "networking",
    "ingressclasses.networking.k8s.io": "networking",
    "networkpolicies.networking.k8s.io": "networking",
    "ipaddresses.networking.k8s.io": "networking",
    "servicecidrs.networking.k8s.io": "networking",
    "volumeattachments.storage.k8s.io": "csi",
    "volumeattributesclasses.storage.k8s.io": "storage",
    "mutatingadmissionpolicies.admissionregistration.k8s.io": "webhooks",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": "webhooks",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": "webhooks",
    "validatingadmissionpolicies.admissionregistration.k8s.io": "webhooks",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": "webhooks",
    "validatingwebhookconfigurations.admissionregistration.k8s.io": "webhooks",
    "selfsubjectreviews.authentication.k8s.io": "reviews",
    "tokenreviews.authentication.k8s.io": "reviews",
    "localsubjectaccessreviews.authorization.k8s.io": "reviews",
    "selfsubjectaccessreviews.authorization.k8s.io": "reviews",
    "selfsubjectrulesreviews.authorization.k8s.io": "reviews",
    "subjectaccessreviews.authorization.k8s.io": "reviews",
    "certificatesigningrequests.certificates.k8s.io": "certificates",
    "flowschemas.flowcontrol.apiserver.k8s.io": "flowcontrol",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "flowcontrol",
    "deviceclasses.resource.k8s.io": "devices",
    "resourceclaims.resource.k8s.io": "devices",
    "resourceclaimtemplates.resource.k8s.io": "devices",
    "resourceslices.resource.k8s.io": "devices",
    "customresourcedefinitions.apiextensions.k8s.io": "definitions",
}


def strategy_for(resource: Resource, definition_of: Callable[[Resource], Object]) -> Strategy:
    """The strategy of a kind: its own, that of custom resources, or the plain one.

    ``definition_of`` gives the CustomResourceDefinition of a custom resource.
    """
    if resource.custom:
        return _custom(resource, definition_of(resource))
    module = _MODULES.get(resource.key)
    if module is None:
        return Strategy(resource)
    own: type[Strategy] = getattr(import_module(f"kubepy.apiserver.strategies.{module}"), f"{resource.kind}Strategy")
    return own(resource)


def _custom(resource: Resource, definition: Object) -> Strategy:
    own = custom.CustomWithStatusStrategy if "status" in resource.subresources else custom.CustomStrategy
    return own(resource, definition)
