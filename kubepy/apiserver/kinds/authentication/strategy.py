"""Reviews of who somebody is (``pkg/registry/authentication``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.errors import BadRequest
from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.kinds.authorization.strategy import ReviewStrategy
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from kubepy.apiserver.authorization import ReviewContext

with lazy_imports():
    from kubepy.apiserver import authorization


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
                spec["token"].strip(), nested_list(spec, "audiences")
            )
        except authorization.TokenError as error:
            problems = [authorization.INVALID_TOKEN, str(error)]
            return {**obj, "status": {"user": {}, "error": authorization.aggregate(problems)}}
        return {**obj, "status": {"authenticated": True, "user": user, "audiences": audiences}}
