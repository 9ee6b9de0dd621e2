"""The kinds of the group authentication.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.authentication import strategy

KINDS: dict[str, ServedKind] = {
    "selfsubjectreviews": ServedKind(lambda: strategy.SelfSubjectReviewStrategy),
    "tokenreviews": ServedKind(lambda: strategy.TokenReviewStrategy),
}
