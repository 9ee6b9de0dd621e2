"""The kinds of the group rbac.authorization.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.rbac import printers, strategy

KINDS: dict[str, ServedKind] = {
    "clusterrolebindings": ServedKind(
        lambda: strategy.ClusterRoleBindingStrategy, lambda: printers.print_role_binding
    ),
    "clusterroles": ServedKind(lambda: strategy.ClusterRoleStrategy),
    "rolebindings": ServedKind(
        lambda: strategy.RoleBindingStrategy, lambda: printers.print_role_binding
    ),
    "roles": ServedKind(lambda: strategy.RoleStrategy),
}
