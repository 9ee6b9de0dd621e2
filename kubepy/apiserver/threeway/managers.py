"""Three-way merge of managedFields: who manages what is bookkeeping, and never a conflict."""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object
from kubepy.apiserver.managedfields.typed import ABSENT
from kubepy.apiserver.threeway.values import Merge

_IDENTITY = ("manager", "operation", "subresource", "apiVersion")


def merge_managers(base: list[Object], ours: list[Object], theirs: list[Object]) -> list[Object]:
    """Merge entries of the same manager, operation, subresource and version: what either side took over or gave up
    counts, a field that one gave up and the other took over stays, and the time is the later one."""
    merge = Merge(_settle, lambda base, ours, theirs: ours)
    names = dict.fromkeys(_identity(entry) for entry in [*ours, *theirs])
    old, left, right = ({_identity(entry): entry for entry in entries} for entries in (base, ours, theirs))
    merged = (merge.merge(old.get(name, ABSENT), left.get(name, ABSENT), right.get(name, ABSENT), None)
              for name in names)
    return [entry for entry in merged if entry is not ABSENT]


def _identity(entry: Object) -> tuple[str, ...]:
    return tuple(str(entry.get(name, "")) for name in _IDENTITY)


def _settle(path: tuple[str, ...], base: Any, ours: Any, theirs: Any) -> Any:
    if path == ("f:time",):
        return max(str(ours), str(theirs))
    return theirs if ours is ABSENT else ours
