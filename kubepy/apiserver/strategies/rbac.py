"""Roles and what binds them (``pkg/registry/rbac``). Nothing enforces them here."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.apiserver.validation.access import GROUP, validate_binding, validate_binding_update, validate_role


class _RbacStrategy(Strategy):
    """Names may hold all that a path segment may."""

    allow_create_on_update = True

    def validate_name(self, name: str) -> list[str]:
        from kubepy.api.values.names import path_segment

        return path_segment(name)


class RoleStrategy(_RbacStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validate_role(obj, namespaced=self.resource.namespaced)


class ClusterRoleStrategy(RoleStrategy):
    """A role of all namespaces, and of what has none."""


class RoleBindingStrategy(_RbacStrategy):
    def default(self, obj: Object) -> None:
        role = obj.setdefault("roleRef", {})
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=self.resource.namespaced)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validate_binding_update(obj, old, namespaced=self.resource.namespaced)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """Binds cluster roles everywhere."""
