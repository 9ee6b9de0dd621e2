"""The kinds of the group apiextensions.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.apiextensions import strategy

KINDS: dict[str, ServedKind] = {
    "customresourcedefinitions": ServedKind(lambda: strategy.CustomResourceDefinitionStrategy),
}
