"""Roles, certificate requests, and reviews
(``pkg/registry/{rbac,certificates,authentication,authorization}``).

Nothing here enforces roles or signs certificates. A review is a question that a create answers, and
that is not stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.errors import BadRequest, FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies import Strategy, restore
from kubepy.apiserver.validation.access import (
    GROUP,
    validate_binding,
    validate_binding_update,
    validate_role,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver import authorization
    from kubepy.apiserver.validation import access as validation

if TYPE_CHECKING:
    from kubepy.apiserver.authorization import Authorizer, ReviewContext


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


# --- certificates ---------------------------------------------------------------------------------


_OF_THE_REQUESTER = ("username", "uid", "groups", "extra")
_APPROVALS = ("Approved", "Denied")


class CertificateSigningRequestStrategy(Strategy):
    has_status = True
    selectable = ("spec.signerName",)

    def validate_name(self, name: str) -> list[str]:
        """Take any path segment (``ValidateCertificateRequestName``)."""
        return []

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
        approvals = [
            condition
            for condition in (old.get("status") or {}).get("conditions") or ()
            if condition.get("type") in _APPROVALS
        ]
        others = [
            condition
            for condition in status.get("conditions") or ()
            if condition.get("type") not in _APPROVALS
        ]
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


# --- reviews --------------------------------------------------------------------------------------


class ReviewStrategy(Strategy):
    """A question that a create answers; nothing is stored."""

    def validate(self, obj: Object) -> list[FieldError]:
        return []


class SelfSubjectAccessReviewStrategy(ReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return [
            *validation.validate_access(obj["spec"]),
            *validation.validate_empty_metadata(obj["metadata"]),
        ]

    def answer(self, obj: Object, context: ReviewContext) -> Object:
        return {**obj, "status": _access(obj["spec"], context.requester, context.authorizer)}


class SubjectAccessReviewStrategy(ReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return [
            *validation.validate_access(obj["spec"], of_subject=True),
            *validation.validate_empty_metadata(obj["metadata"]),
        ]

    def answer(self, obj: Object, context: ReviewContext) -> Object:
        spec = obj["spec"]
        subject = authorization.new_user(
            spec.get("user", ""), spec.get("groups") or (), spec.get("uid", ""), spec.get("extra")
        )
        return {**obj, "status": _access(spec, subject, context.authorizer)}


class LocalSubjectAccessReviewStrategy(SubjectAccessReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return [
            *validation.validate_access(obj["spec"], of_subject=True),
            *validation.validate_local_access(obj),
        ]


class SelfSubjectRulesReviewStrategy(ReviewStrategy):
    def answer(self, obj: Object, context: ReviewContext) -> Object:
        namespace = obj["spec"].get("namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        rules, problems = context.authorizer.rules_for(context.requester, namespace)
        status = {
            "resourceRules": [
                _fields(rule, "verbs", "apiGroups", "resources", "resourceNames")
                for rule in rules
                if rule.get("resources")
            ],
            "nonResourceRules": [
                _fields(rule, "verbs", "nonResourceURLs")
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
            **({"evaluationError": authorization.aggregate(problems)} if problems else {}),
        }
        return {
            "kind": obj["kind"],
            "apiVersion": obj["apiVersion"],
            "metadata": {},
            "spec": {},
            "status": status,
        }


def _fields(rule: Object, *names: str) -> Object:
    return {"verbs": [], **{name: rule[name] for name in names if rule.get(name)}}


class SelfSubjectReviewStrategy(ReviewStrategy):
    def answer(self, obj: Object, context: ReviewContext) -> Object:
        return {
            "kind": obj["kind"],
            "apiVersion": obj["apiVersion"],
            "metadata": {"creationTimestamp": context.now},
            "status": {"userInfo": context.requester},
        }


class TokenReviewStrategy(ReviewStrategy):
    def answer(self, obj: Object, context: ReviewContext) -> Object:
        spec = obj["spec"]
        if not spec.get("token"):
            raise BadRequest("token is required for TokenReview in authentication")
        try:
            user, audiences = context.authenticate(
                spec["token"].strip(), spec.get("audiences") or ()
            )
        except authorization.TokenError as error:
            problems = [authorization.INVALID_TOKEN, str(error)]
            return {**obj, "status": {"user": {}, "error": authorization.aggregate(problems)}}
        return {**obj, "status": {"authenticated": True, "user": user, "audiences": audiences}}


def _access(spec: Object, user: Object, authorizer: Authorizer) -> Object:
    """Return the status of a review about the access of a user."""
    asked = spec.get("resourceAttributes")
    if asked is None:
        path = spec["nonResourceAttributes"]
        attributes = authorization.AttributesRecord(
            user, path.get("verb", ""), path=path.get("path", ""), is_resource_request=False
        )
        problems = []
    else:
        attributes = authorization.AttributesRecord(
            user,
            *(
                asked.get(field, "")
                for field in ("verb", "group", "resource", "subresource", "namespace", "name")
            ),
        )
        problems = [
            f"spec.resourceAttributes.{kind} {how} due to parse error"
            for kind, how in validation.ignored_selectors(asked)
        ]
    decision = authorizer.authorize(attributes)
    return {
        "allowed": decision.allowed,
        **({"reason": decision.reason} if decision.reason else {}),
        **({"evaluationError": "; ".join(problems)} if problems else {}),
    }
