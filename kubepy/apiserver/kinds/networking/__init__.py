"""The kinds of the group networking.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import DEFAULT_INGRESS_CLASS, ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.networking import printers, strategy

KINDS: dict[str, ServedKind] = {
    "ingressclasses": ServedKind(
        lambda: strategy.IngressClassStrategy,
        lambda: printers.print_ingress_class,
    ),
    "ingresses": ServedKind(
        lambda: strategy.IngressStrategy,
        lambda: printers.print_ingress,
        mutating=(DEFAULT_INGRESS_CLASS,),
    ),
    "ipaddresses": ServedKind(
        lambda: strategy.IPAddressStrategy, lambda: printers.print_ip_address
    ),
    "networkpolicies": ServedKind(
        lambda: strategy.NetworkPolicyStrategy,
        lambda: printers.print_network_policy,
    ),
    "servicecidrs": ServedKind(
        lambda: strategy.ServiceCIDRStrategy,
        lambda: printers.print_service_cidr,
    ),
}
