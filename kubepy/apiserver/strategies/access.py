"""Roles, certificate requests, and reviews (``pkg/registry/{rbac,certificates,authentication,authorization}``).

Nothing here enforces roles or signs certificates. A review is a question that a create answers, and that is not stored:
everything is allowed, and no token is known.
"""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object
from kubepy.apiserver.strategies import Strategy, restore
from kubepy.apiserver.validation.access import GROUP, validate_binding, validate_binding_update, validate_role
from kubepy.apiserver.validation.fields import go_view
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver.validation import access as validation


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
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=self.resource.namespaced)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validate_binding_update(obj, old, namespaced=self.resource.namespaced)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """A binding of a cluster role in all namespaces."""


# --- certificates --------------------------------------------------------------------------------------------------


_OF_THE_REQUESTER = ("username", "uid", "groups", "extra")
_APPROVALS = ("Approved", "Denied")


class CertificateSigningRequestStrategy(Strategy):
    has_status = True
    selectable = ("spec.signerName",)

    def take_requester(self, obj: Object, requester: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field in _OF_THE_REQUESTER:
            spec.pop(field, None)
        spec |= requester

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        restore(obj, old, "spec")

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keep the approval, which has a subresource of its own."""
        restore(obj, old, "spec")
        status = obj.setdefault("status", {})
        approvals = [condition for condition in (old.get("status") or {}).get("conditions") or ()
                     if condition.get("type") in _APPROVALS]
        others = [condition for condition in status.get("conditions") or ()
                  if condition.get("type") not in _APPROVALS]
        status["conditions"] = [*approvals, *others]

    def prepare_for_subresource_update(self, obj: Object, old: Object, subresource: str) -> None:
        if subresource != "approval":
            super().prepare_for_subresource_update(obj, old, subresource)
            return
        restore(obj, old, "spec")
        conditions = (obj.get("status") or {}).get("conditions") or []
        obj["status"] = {**(old.get("status") or {}), "conditions": conditions}

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_request(obj)


# --- reviews -------------------------------------------------------------------------------------------------------


class ReviewStrategy(Strategy):
    is_answered = True

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_access(obj.get("spec") or {})

    def answer(self, obj: Object, requester: Object, now: str) -> Object:
        return {**obj, "status": {"allowed": True}}


class SelfSubjectAccessReviewStrategy(ReviewStrategy):
    pass


class SubjectAccessReviewStrategy(ReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        wrong = validate_access(spec)
        if not spec.get("user") and not spec.get("groups"):
            wrong.append(invalid_value("spec.user", spec.get("user", ""), "at least one of user or group must be "
                                       "specified"))
        return wrong


class LocalSubjectAccessReviewStrategy(SubjectAccessReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        wrong = super().validate(obj)
        if (obj.get("spec") or {}).get("nonResourceAttributes") is not None:
            shown = go_view("authorization.NonResourceAttributes", obj["spec"]["nonResourceAttributes"])
            wrong.append(invalid_value("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
        return wrong


class SelfSubjectRulesReviewStrategy(ReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def answer(self, obj: Object, requester: Object, now: str) -> Object:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return {**obj, "status": {"resourceRules": [everything],
                                  "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                                  "incomplete": False}}


class SelfSubjectReviewStrategy(ReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def answer(self, obj: Object, requester: Object, now: str) -> Object:
        return {**obj, "metadata": {**obj["metadata"], "creationTimestamp": now}, "status": {"userInfo": requester}}


class TokenReviewStrategy(ReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def answer(self, obj: Object, requester: Object, now: str) -> Object:
        return {**obj, "status": {"user": {}, "error": "invalid bearer token"}}


def validate_access(spec: Object) -> list[FieldError]:
    """Check that a review is about a resource or about a path, not both."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [invalid_value("spec.nonResourceAttributes", path, "cannot be specified in combination with "
                              "resourceAttributes")]
    if resource is None and path is None:
        return [invalid_value("spec.resourceAttributes", None, "exactly one of nonResourceAttributes or "
                              "resourceAttributes must be specified")]
    return []
