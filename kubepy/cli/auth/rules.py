"""Rules of roles: which of them cover which, and how Go prints them.

Upstream: ``component-helpers/auth/rbac/validation/policy_comparator.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_value

LISTS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def uncovered(owners: Sequence[Object], servants: Iterable[Object]) -> list[Object]:
    """What the servants' rules allow and none of the owners' does, broken down."""
    return [part for rule in servants for part in broken_down(rule) if not any(_covers(one, part) for one in owners)]


def broken_down(rule: Object) -> Iterator[Object]:
    """Rules of one verb and one resource, name or URL each."""
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                for name in rule.get("resourceNames") or [None]:
                    yield {"verbs": [verb], "apiGroups": [group], "resources": [resource],
                           **({"resourceNames": [name]} if name is not None else {})}
    for url in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"verbs": [verb], "nonResourceURLs": [url]}


def _covers(owner: Object, part: Object) -> bool:
    return (_includes(owner, part, "verbs") and _includes(owner, part, "apiGroups")
            and all(_covers_resource(owner.get("resources") or (), one) for one in part.get("resources") or ())
            and _covers_names(owner, part)
            and all(any(_covers_url(own, url) for own in owner.get("nonResourceURLs") or ())
                    for url in part.get("nonResourceURLs") or ()))


def _includes(owner: Object, part: Object, field: str) -> bool:
    owned = owner.get(field) or ()
    return "*" in owned or set(part.get(field) or ()) <= set(owned)


def _covers_resource(owned: Sequence[str], resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return "*" in owned or resource in owned or bool(slash and f"*/{subresource}" in owned)


def _covers_names(owner: Object, part: Object) -> bool:
    owned, names = owner.get("resourceNames") or (), part.get("resourceNames") or ()
    return not owned or (bool(names) and set(names) <= set(owned))


def _covers_url(owned: str, url: str) -> bool:
    return owned == url or (owned.endswith("*") and url.startswith(owned.rstrip("*")))


def rule_text(rule: Object) -> str:
    """``%+v`` of a PolicyRule."""
    return "{" + " ".join(f"{_go_name(field)}:{format_value(rule.get(field) or [])}" for field in LISTS) + "}"


def subject_text(subject: Object) -> str:
    """``%+v`` of a Subject."""
    fields = ("kind", "apiGroup", "name", "namespace")
    return "{" + " ".join(f"{_go_name(field)}:{subject.get(field, '')}" for field in fields) + "}"


def _go_name(field: str) -> str:
    return {"apiGroups": "APIGroups", "apiGroup": "APIGroup"}.get(field, field[0].upper() + field[1:])
