"""Reviews of access (``pkg/registry/authorization``): questions that a create answers, and that are
not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.errors import BadRequest, FieldError
from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from kubepy.apiserver.authorization import Authorizer, ReviewContext

with lazy_imports():
    from kubepy.apiserver import authorization
    from kubepy.apiserver.kinds.authorization import validation


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
            spec.get("user", ""),
            nested_list(spec, "groups"),
            spec.get("uid", ""),
            spec.get("extra"),
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
