"""Roles and their bindings (``pkg/registry/rbac``). Nothing here enforces roles."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.kinds.rbac.validation import (
    GROUP,
    validate_binding,
    validate_binding_update,
    validate_role,
)
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names


class _RbacStrategy(Strategy):
    """Roles and bindings, whose names may hold all that a path segment may."""

    allow_create_on_update = True

    def validate_name(self, name: str) -> list[str]:
        return names.path_segment(name)


class RoleStrategy(_RbacStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validate_role(obj, namespaced=self.resource.namespaced)


class ClusterRoleStrategy(RoleStrategy):
    """A role in all namespaces, and for resources without one."""


class RoleBindingStrategy(_RbacStrategy):
    def default(self, obj: Object) -> None:
        role = obj.setdefault("roleRef", {})
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in nested_list(obj, "subjects"):
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=self.resource.namespaced)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validate_binding_update(obj, old, namespaced=self.resource.namespaced)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """A binding of a cluster role in all namespaces."""
