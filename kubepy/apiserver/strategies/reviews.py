"""Reviews: questions that a create answers, and that are not stored (``pkg/registry/{authentication,authorization}``).

Everything is allowed, since nothing here asks for permissions; and no token is known.
"""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.apiserver.validation.fields import go_view


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
    """A question is about a resource or about a path."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [invalid_value("spec.nonResourceAttributes", path, "cannot be specified in combination with "
                              "resourceAttributes")]
    if resource is None and path is None:
        return [invalid_value("spec.resourceAttributes", None, "exactly one of nonResourceAttributes or "
                              "resourceAttributes must be specified")]
    return []
