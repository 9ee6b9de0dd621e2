"""The kinds of the core group (``pkg/registry/core``, ``pkg/apis/core``)."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import (
    CHECK_CLAIM_LIMITS,
    CHECK_LIMITS,
    CHECK_NAMESPACE,
    CHECK_OVERHEAD,
    CHECK_POD,
    CHECK_RESIZE,
    CHECK_SERVICE_ACCOUNT,
    DEFAULT_STORAGE_CLASS,
    DEFAULT_TOLERATIONS,
    KEEP_PRIORITY,
    LIMIT_DEFAULTS,
    PROTECT_CLAIM,
    PROTECT_VOLUME,
    RUNTIME_CLASS,
    SET_PRIORITY,
    SET_SERVICE_ACCOUNT,
    TAINT_NODE,
    WARN_OF_TEMPLATE,
    ServedKind,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core import printers, strategy
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

KINDS: dict[str, ServedKind] = {
    "componentstatuses": ServedKind(printer=lambda: printers.print_component_status),
    "configmaps": ServedKind(lambda: strategy.ConfigMapStrategy, lambda: printers.print_config_map),
    "endpoints": ServedKind(
        lambda: endpoints_strategy.EndpointsStrategy, lambda: endpoints_printers.print_endpoints
    ),
    "events": ServedKind(lambda: strategy.EventStrategy, lambda: printers.print_event),
    "limitranges": ServedKind(lambda: limitranges_strategy.LimitRangeStrategy),
    "namespaces": ServedKind(
        lambda: strategy.NamespaceStrategy,
        lambda: printers.print_namespace,
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
    "secrets": ServedKind(lambda: strategy.SecretStrategy, lambda: printers.print_secret),
    "serviceaccounts": ServedKind(
        lambda: strategy.ServiceAccountStrategy, lambda: printers.print_service_account
    ),
    "services": ServedKind(
        lambda: services_strategy.ServiceStrategy, lambda: services_printers.print_service
    ),
}
