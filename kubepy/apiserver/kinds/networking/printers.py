"""Tables of Ingresses and their classes, NetworkPolicies, IPAddresses and ServiceCIDRs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object, annotations_of, nested_list, nested_map, spec_of
from kubepy.api.selectors import format_label_selector
from kubepy.apiserver.kinds.core.endpoints.printers import MOST
from kubepy.apiserver.kinds.core.services.printers import load_balancer_addresses
from kubepy.apiserver.printers import Cell, age, printer

# --- ingresses ------------------------------------------------------------------------------------


@printer("Name", "Class", "Hosts", "Address", "Ports", "Age")
def print_ingress(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    return [
        obj["metadata"]["name"],
        spec.get("ingressClassName", "<none>"),
        _hosts(nested_list(spec, "rules")),
        ",".join(load_balancer_addresses(obj)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: list[dict[str, Any]]) -> str:
    """Return the hosts of the rules; from the third on, rules without a host count as more, too."""
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == MOST
        if rule.get("host") and not more:
            hosts.append(rule["host"])
    shown = ",".join(hosts) or "*"
    if more:
        return f"{shown} + {len(rules) - MOST} more..."
    return shown


@printer("Name", "Controller", "Parameters", "Age")
def print_ingress_class(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    parameters = spec.get("parameters")
    reference = "<none>"
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        reference = f"{parameters['kind']}{group}/{parameters['name']}"
    default = annotations_of(obj).get("ingressclass.kubernetes.io/is-default-class") == "true"
    return [
        obj["metadata"]["name"] + (" (default)" if default else ""),
        spec.get("controller", ""),
        reference,
        age(obj, now),
    ]


# --- the others -----------------------------------------------------------------------------------


@printer("Name", "Pod-Selector", "Age")
def print_network_policy(obj: Object, now: datetime) -> list[Cell]:
    selector = nested_map(obj, "spec", "podSelector")
    return [obj["metadata"]["name"], format_label_selector(selector), age(obj, now)]


@printer("Name", "ParentRef")
def print_ip_address(obj: Object, _now: datetime) -> list[Cell]:
    parent = spec_of(obj).get("parentRef")
    reference = "<none>"
    if parent:
        resource = ".".join(
            part for part in (parent.get("resource", ""), parent.get("group", "")) if part
        ).lower()
        reference = "/".join(
            [resource, *([parent["namespace"]] if parent.get("namespace") else []), parent["name"]]
        )
    return [obj["metadata"]["name"], reference]


@printer("Name", "CIDRs", "Age")
def print_service_cidr(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        ",".join(nested_list(obj, "spec", "cidrs")),
        age(obj, now),
    ]
