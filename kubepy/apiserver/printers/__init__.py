"""Objects as tables: the columns of each kind and the cells of each object, as the API server gives them.

:func:`table` finds a kind's printer in the module that ``_MODULES`` names, imported when it is first needed. A kind
without one shows its name and when it was created; a custom resource shows what its definition asks for. CLI and server
both use this. Upstream: ``pkg/printers/internalversion/printers.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from importlib import import_module

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.printers.tables import Cell, Printer, Table, print_table
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.printers import custom, duration

_MODULES = {
    "workloads": ("daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps",
                  "replicationcontrollers", "controllerrevisions.apps", "jobs.batch", "cronjobs.batch"),
    "pods": ("pods", "podtemplates"),
    "core": ("nodes", "namespaces", "configmaps", "secrets", "serviceaccounts", "events", "events.events.k8s.io",
             "resourcequotas", "componentstatuses", "leases.coordination.k8s.io"),
    "networking": ("services", "endpoints", "endpointslices.discovery.k8s.io", "ingresses.networking.k8s.io",
                   "ingressclasses.networking.k8s.io", "networkpolicies.networking.k8s.io",
                   "ipaddresses.networking.k8s.io", "servicecidrs.networking.k8s.io"),
    "storage": ("persistentvolumes", "persistentvolumeclaims", "storageclasses.storage.k8s.io",
                "volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io",
                "csinodes.storage.k8s.io", "csidrivers.storage.k8s.io", "csistoragecapacities.storage.k8s.io"),
    "scaling": ("horizontalpodautoscalers.autoscaling", "scales.autoscaling", "poddisruptionbudgets.policy",
                "priorityclasses.scheduling.k8s.io", "runtimeclasses.node.k8s.io", "deviceclasses.resource.k8s.io",
                "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io",
                "resourceslices.resource.k8s.io"),
    "access": ("rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
               "certificatesigningrequests.certificates.k8s.io", "apiservices.apiregistration.k8s.io",
               "flowschemas.flowcontrol.apiserver.k8s.io",
               "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
               "mutatingwebhookconfigurations.admissionregistration.k8s.io",
               "validatingwebhookconfigurations.admissionregistration.k8s.io",
               "mutatingadmissionpolicies.admissionregistration.k8s.io",
               "validatingadmissionpolicies.admissionregistration.k8s.io",
               "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
               "validatingadmissionpolicybindings.admissionregistration.k8s.io"),
}
_MODULE_OF = {key: module for module, keys in _MODULES.items() for key in keys}


def table(resource: Resource, objects: Sequence[Object], now: datetime, subresource: str = "") -> Table:
    """The table of objects of one resource, or of a subresource of it."""
    if subresource == "scale":
        return print_table(printer_for("scales.autoscaling"), objects, now)
    if resource.custom:
        return custom.custom_table(resource, objects, now)
    return print_table(printer_for(resource.key), objects, now)


def printer_for(key: str) -> Printer:
    """The printer of a built-in resource."""
    if key not in _MODULE_OF:
        return PLAIN
    printers: dict[str, Printer] = import_module(f"kubepy.apiserver.printers.{_MODULE_OF[key]}").PRINTERS
    return printers[key]


def _plain_row(obj: Object, _now: datetime) -> list[Cell]:
    return [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]


def _bare_row(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"].get("name", ""), duration.age(obj, now)]


BARE = Printer(("Name", "Age"), _bare_row)  # what a client shows that knows nothing of a kind
PLAIN = Printer(("Name", "Created At"), _plain_row)  # rest.NewDefaultTableConvertor: roles, CRDs, limit ranges
