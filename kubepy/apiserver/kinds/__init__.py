"""The kinds that the API server serves, by API group.

Each group has a package here, with the strategies, defaults, validation and printers of its kinds;
in ``core`` each larger kind has one. ``KINDS`` of the package has one entry a kind
(:class:`~kubepy.apiserver.kinds.served.ServedKind`): its strategy, its columns, its admission
plugins. The names, verbs and categories of the kinds are in :data:`kubepy.api.scheme.BUILT_IN`.

Everything is imported when it is first needed: a group when one of its kinds is asked for, a module
of it when that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.kinds.served import ServedKind
from kubepy.apiserver.printers import Table, print_table
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.customresources import printers as custom_printers
    from kubepy.apiserver.customresources import strategy as custom_strategy
    from kubepy.apiserver.kinds import (
        admissionregistration,
        apiextensions,
        apiregistration,
        apps,
        authentication,
        authorization,
        autoscaling,
        batch,
        certificates,
        coordination,
        core,
        discovery,
        events,
        flowcontrol,
        metrics,
        networking,
        node,
        policy,
        rbac,
        resource,
        scheduling,
        storage,
    )

if TYPE_CHECKING:
    from kubepy.apiserver.strategy import Strategy

GROUPS: Mapping[str, Callable[[], Mapping[str, ServedKind]]] = {
    "": lambda: core.KINDS,
    "admissionregistration.k8s.io": lambda: admissionregistration.KINDS,
    "apiextensions.k8s.io": lambda: apiextensions.KINDS,
    "apiregistration.k8s.io": lambda: apiregistration.KINDS,
    "apps": lambda: apps.KINDS,
    "authentication.k8s.io": lambda: authentication.KINDS,
    "authorization.k8s.io": lambda: authorization.KINDS,
    "autoscaling": lambda: autoscaling.KINDS,
    "batch": lambda: batch.KINDS,
    "certificates.k8s.io": lambda: certificates.KINDS,
    "coordination.k8s.io": lambda: coordination.KINDS,
    "discovery.k8s.io": lambda: discovery.KINDS,
    "events.k8s.io": lambda: events.KINDS,
    "flowcontrol.apiserver.k8s.io": lambda: flowcontrol.KINDS,
    "metrics.k8s.io": lambda: metrics.KINDS,
    "networking.k8s.io": lambda: networking.KINDS,
    "node.k8s.io": lambda: node.KINDS,
    "policy": lambda: policy.KINDS,
    "rbac.authorization.k8s.io": lambda: rbac.KINDS,
    "resource.k8s.io": lambda: resource.KINDS,
    "scheduling.k8s.io": lambda: scheduling.KINDS,
    "storage.k8s.io": lambda: storage.KINDS,
}
PLAIN = ServedKind()  # of a kind without an entry: its objects are stored and served as they are


def kind_of(resource: Resource) -> ServedKind:
    """Return the entry of a kind."""
    kinds_of_group = GROUPS.get(resource.group)
    if kinds_of_group is None:
        return PLAIN
    return kinds_of_group().get(resource.plural, PLAIN)


def new_strategy(resource: Resource, definition_of: Callable[[Resource], Object]) -> Strategy:
    """Make the strategy of a kind.

    :param definition_of: returns the CustomResourceDefinition of a custom resource.
    """
    if not resource.custom:
        return kind_of(resource).strategy()(resource)
    definition = definition_of(resource)
    if "status" in resource.subresources:
        return custom_strategy.CustomWithStatusStrategy(resource, definition)
    return custom_strategy.CustomStrategy(resource, definition)


def table(
    resource: Resource, objects: Sequence[Object], now: datetime, subresource: str = ""
) -> Table:
    """Return the table of objects of one resource, or of a subresource of it, for the CLI and for
    servers."""
    if subresource == "scale":
        return print_table(autoscaling.KINDS["scales"].printer(), objects, now)
    if resource.custom:
        return custom_printers.custom_table(resource, objects, now)
    return print_table(kind_of(resource).printer(), objects, now)
