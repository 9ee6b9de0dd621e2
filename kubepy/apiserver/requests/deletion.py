"""Deleting an object: at once, or marked and kept while a grace period or finalizers hold it.

:func:`decide` is a pure function that says what happens (``registry/rest/delete.go``:
``BeforeDelete``, ``registry/generic/registry/store.go``: ``Delete``); :func:`delete` does it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.clock import format_time, later, parse_time
from kubepy.api.meta import FOREGROUND, ORPHAN, Object
from kubepy.apiserver.request import DeleteOptions
from kubepy.apiserver.requests import admission
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.apiserver.strategy import Strategy

POLICIES = ("Foreground", "Background", "Orphan")
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = (
    "customresourcecleanup.apiextensions.k8s.io"  # holds a definition until its objects are gone
)
ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to "
    "remove them or set propagationPolicy=Orphan to suppress this warning"
)
_GARBAGE_COLLECTION = (ORPHAN, FOREGROUND)


class Deletion(NamedTuple):
    """The result of a deletion: ``state`` is the object as it is stored or shown afterwards."""

    state: Object
    removed: bool


def delete(scope: RequestScope) -> Object:
    """Delete the object that the request names; returns the last state, or the state that is kept.

    Raises NotFound, Conflict (preconditions), Forbidden, Invalid.
    """
    options, transaction, now = (
        scope.request.delete_options,
        scope.transaction,
        scope.context.clock.now(),
    )
    admission.check_deletion(scope)
    old = scope.require()
    _check_options(scope, old, options)
    if scope.resource.key == "jobs.batch" and options.propagation_policy is None:
        scope.context.warn(ORPHANED_PODS)
    attributes = Attributes(scope, old, is_deletion=True)
    admission.admit(attributes)
    admission.validate(attributes)
    if (
        scope.resource.key == "namespaces"
        and (kept := namespace_kept(old, options, now)) is not None
    ):
        return transaction.update(scope.key, kept, old)

    state = _begin_cleanup(old, now) if scope.resource.key == CRDS else old
    deletion = decide(scope.strategy, state, options, now)
    if deletion.removed:
        last = transaction.delete(scope.key)
        last = {**last, "metadata": dict(last["metadata"])}
        _set_finalizers(last["metadata"], [])  # it may have had one that a new policy takes back
        return deletion.state if scope.resource.key == "pods" else last

    return scope.update(deletion.state, old)


def _check_options(scope: RequestScope, old: Object, options: DeleteOptions) -> None:
    """Check the options of a deletion. Raises Invalid, or Conflict for a precondition that does not
    hold."""
    policy = options.propagation_policy
    if policy is not None and policy not in POLICIES:
        problem = errors.not_supported("propagationPolicy", policy, [*POLICIES, "nil"])
        raise errors.invalid("DeleteOptions.meta.k8s.io", "", [problem])
    check_preconditions(scope.resource.qualified_kind, old, options)


def check_preconditions(kind: str, old: Object, options: DeleteOptions) -> None:
    """Check the uid and resourceVersion that a deletion asks for. Raises Conflict."""
    metadata = old["metadata"]
    for field, expected, recorded, guess in (
        (
            "UID",
            options.uid,
            metadata.get("uid", ""),
            "The object might have been deleted and then recreated",
        ),
        (
            "ResourceVersion",
            options.resource_version,
            metadata.get("resourceVersion", ""),
            "The object might have been modified",
        ),
    ):
        if expected is not None and expected != recorded:
            detail = (
                f"the {field} in the precondition ({expected}) does not match the {field} in "
                f"record ({recorded})"
            )
            raise errors.conflict(kind, metadata["name"], f"{detail}. {guess}")


def decide(strategy: Strategy, old: Object, options: DeleteOptions, now: datetime) -> Deletion:
    """Return what a deletion of ``old`` does now; ``old`` is not changed."""
    state = {**old, "metadata": dict(old["metadata"])}
    metadata = state["metadata"]
    grace = options.grace_period_seconds
    grace = 1 if grace is not None and grace < 0 else grace
    if metadata.get("deletionTimestamp") and (metadata.get("deletionGracePeriodSeconds") or 0) > 0:
        if grace is None or grace >= metadata["deletionGracePeriodSeconds"]:
            return Deletion(old, removed=False)  # a grace period only shrinks
        # The new grace period counts from the beginning of the deletion, but not into the past.
        due = later(
            parse_time(metadata["deletionTimestamp"]),
            grace - metadata["deletionGracePeriodSeconds"],
        )
        if due < now:
            due, grace = now, min(grace, 1)
        metadata["deletionTimestamp"] = format_time(due)
    else:
        if not metadata.get("deletionTimestamp") and metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
        grace = strategy.grace_period_seconds(old, grace)
        end = format_time(later(now, grace))
        metadata["deletionTimestamp"] = min(metadata.get("deletionTimestamp") or end, end)

    metadata["deletionGracePeriodSeconds"] = grace
    _set_finalizers(metadata, _finalizers(strategy, old, options))
    held = bool(metadata.get("finalizers")) or metadata["deletionGracePeriodSeconds"] > 0
    return Deletion(state, removed=not held)


def _set_finalizers(metadata: Object, finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _finalizers(strategy: Strategy, old: Object, options: DeleteOptions) -> list[str]:
    """Return the object's finalizers, with the garbage collector's as the deletion requires them.

    The options decide, then a finalizer that is there, then the kind
    (``deletionFinalizersForGarbageCollection``).
    """
    present = list(old["metadata"].get("finalizers") or [])
    default = strategy.default_propagation()
    collecting = (
        [] if default == "Unsupported" else _collecting_finalizers(present, options, default)
    )
    changed = [*(name for name in present if name not in _GARBAGE_COLLECTION), *collecting]
    return present if set(changed) == set(present) else changed


def _collecting_finalizers(present: list[str], options: DeleteOptions, default: str) -> list[str]:
    """Return the finalizers for the garbage collector: at most one, unless there are more
    already."""
    if options.propagation_policy:
        return {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(options.propagation_policy, [])
    kept = [name for name in present if name in _GARBAGE_COLLECTION]
    return kept or ([ORPHAN] if default == "Orphan" else [])


def namespace_kept(old: Object, options: DeleteOptions, now: datetime) -> Object | None:
    """Return a namespace as a deletion leaves it; None if nothing holds it any more.

    The first deletion only marks it Terminating; it goes when spec.finalizers is empty
    (namespace/storage).
    """
    if old["metadata"].get("deletionTimestamp"):
        return old if old.get("spec", {}).get("finalizers") else None
    metadata = {**old["metadata"], "deletionTimestamp": format_time(now)}
    present = metadata.get("finalizers") or []
    others = [name for name in present if name not in _GARBAGE_COLLECTION]
    _set_finalizers(metadata, [*others, *_collecting_finalizers(present, options, "")])
    return {
        **old,
        "metadata": metadata,
        "status": {**old.get("status", {}), "phase": "Terminating"},
    }


def _begin_cleanup(definition: Object, now: datetime) -> Object:
    """Mark a CustomResourceDefinition for deletion: its objects go first
    (customresourcedefinition/etcd.go)."""
    metadata = definition["metadata"]
    if metadata.get("deletionTimestamp"):
        return definition
    terminating = {
        "lastTransitionTime": format_time(now),
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will "
        "begin soon",
        "reason": "InstanceDeletionPending",
        "status": "True",
        "type": "Terminating",
    }
    status = definition.get("status") or {}
    others = [
        condition
        for condition in status.get("conditions") or []
        if condition["type"] != "Terminating"
    ]
    finalizers = list(dict.fromkeys([*(metadata.get("finalizers") or []), CLEANUP]))
    return {
        **definition,
        "metadata": {**metadata, "finalizers": finalizers},
        "status": {**status, "conditions": [*others, terminating]},
    }
