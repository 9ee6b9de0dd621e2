"""Namespaces that are being deleted, and kept by objects that the source does not hold.

Their conditions tell of these objects, by resource or by finalizer. Without an entry in ``absent``
the namespace controller would find such a namespace empty, and remove it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from kubepy.api.meta import Object, is_being_deleted, nested_list
from kubepy.apiserver.absence import AbsentObject
from kubepy.controllers.namespace import (
    CONTENT_REMAINING,
    DISCOVERY_FAILURE,
    FINALIZER,
    FINALIZERS_REMAINING,
)
from kubepy.storage import Key

# "widgets.example.org has 1 resource instances", "pods. has 2 resource instances"
_RESOURCES = re.compile(r"(\S+) has (\d+) resource instances")
_FINALIZERS = re.compile(r"(\S+) in (\d+) resource instances")
UNKNOWN = "unknown"  # the API server could not tell which resources there are


def absent_contents(objects: Mapping[Key, Object]) -> Iterator[AbsentObject]:
    """Yield an entry for each namespace that is being deleted and has, by its conditions, more
    objects than the source holds."""
    for key, namespace in objects.items():
        if key.resource != "namespaces" or not is_being_deleted(namespace):
            continue
        if FINALIZER not in nested_list(namespace, "spec", "finalizers"):
            continue
        remaining = _missing_contents(key.name, _messages(namespace), objects)
        if remaining:
            yield AbsentObject(
                "v1",
                "Namespace",
                key.name,
                uid=namespace["metadata"].get("uid") or "",
                remaining=", ".join(remaining),
            )


def _messages(namespace: Object) -> dict[str, str]:
    """Return the messages of the conditions that say what is wrong, by their types."""
    return {
        condition["type"]: condition.get("message") or ""
        for condition in nested_list(namespace, "status", "conditions")
        if condition.get("status") == "True"
    }


def _missing_contents(
    name: str, messages: Mapping[str, str], objects: Mapping[Key, Object]
) -> list[str]:
    """Return the resources, else the finalizers, of which a namespace has more objects than the
    source holds."""
    if DISCOVERY_FAILURE in messages:
        return [UNKNOWN]
    content = {key: obj for key, obj in objects.items() if key.namespace == name}
    resources = Counter(key.resource for key in content)
    missing = [
        resource.removesuffix(".")
        for resource, number in _RESOURCES.findall(messages.get(CONTENT_REMAINING, ""))
        if resources[resource.removesuffix(".")] < int(number)
    ]
    if missing:
        return missing
    finalizers = Counter(
        finalizer
        for obj in content.values()
        for finalizer in nested_list(obj, "metadata", "finalizers")
    )
    return [
        f"objects with {finalizer}"
        for finalizer, number in _FINALIZERS.findall(messages.get(FINALIZERS_REMAINING, ""))
        if finalizers[finalizer] < int(number)
    ]
