"""The kinds of the group authorization.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.authorization import strategy

KINDS: dict[str, ServedKind] = {
    "localsubjectaccessreviews": ServedKind(lambda: strategy.LocalSubjectAccessReviewStrategy),
    "selfsubjectaccessreviews": ServedKind(lambda: strategy.SelfSubjectAccessReviewStrategy),
    "selfsubjectrulesreviews": ServedKind(lambda: strategy.SelfSubjectRulesReviewStrategy),
    "subjectaccessreviews": ServedKind(lambda: strategy.SubjectAccessReviewStrategy),
}
