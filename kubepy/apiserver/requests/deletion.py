"""Deleting an object: at once, or marked and kept while a grace period or finalizers hold it.

What happens is decided by :func:`decide`, a pure function (``registry/rest/delete.go``: ``BeforeDelete``,
``registry/generic/registry/store.go``: ``Delete``); :func:`delete` carries it out.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.clock import format_time, later, parse_time
from kubepy.api.meta import FOREGROUND, ORPHAN, Object
from kubepy.apiserver import admission
from kubepy.apiserver.requests.options import DeleteOptions
from kubepy.apiserver.requests.server import Server, Target
from kubepy.apiserver.requests.sessions import Session
from kubepy.apiserver.strategies.strategy import Strategy

POLICIES = ("Foreground", "Background", "Orphan")
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"  # holds a definition until its objects are gone


class Deletion(NamedTuple):
    """What a deletion does: ``state`` is the object as it is stored or shown afterwards."""

    state: Object
    removed: bool


def delete(server: Server, session: Session, target: Target, options: DeleteOptions) -> Object:
    """Carry out a deletion; returns the last state, or the state that is kept.

    Raises NotFound, Conflict (preconditions), Forbidden, Invalid.
    """
    admission.admit_deletion(target)
    old = session.require(target.key)
    _validate(target, old, options)
    admission.validate_deletion(server, session, target, old)
    if target.resource.key == "namespaces" and (kept := namespace_kept(old, options, server.clock.now())) is not None:
        return session.update(target.key, kept, old)
    state = _definition_to_clean_up(old, server.clock.now()) if target.resource.key == CRDS else old
    deletion = decide(server.strategy(target.resource), state, options, server.clock.now())
    if deletion.removed:
        return session.delete(target.key)
    return session.update(target.key, deletion.state, old)


def decide(strategy: Strategy, old: Object, options: DeleteOptions, now: datetime) -> Deletion:
    """What a deletion of ``old`` does now. ``old`` is not changed."""
    state = {**old, "metadata": dict(old["metadata"])}
    metadata = state["metadata"]
    asked = options.grace_period_seconds
    asked = 1 if asked is not None and asked < 0 else asked
    if metadata.get("deletionTimestamp") and (metadata.get("deletionGracePeriodSeconds") or 0) > 0:
        if asked is None or asked >= metadata["deletionGracePeriodSeconds"]:
            return Deletion(old, removed=False)  # a grace period only shrinks
        _shorten(metadata, asked, now)
    else:
        _mark(metadata, strategy.grace_period_seconds(old, asked), now)
    _set_finalizers(metadata, _finalizers(strategy, old, options))
    held = bool(metadata.get("finalizers")) or metadata["deletionGracePeriodSeconds"] > 0
    return Deletion(state, removed=not held)


def _mark(metadata: Object, grace: int, now: datetime) -> None:
    if not metadata.get("deletionTimestamp") and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    due = format_time(later(now, grace))
    metadata["deletionTimestamp"] = min(metadata.get("deletionTimestamp") or due, due)
    metadata["deletionGracePeriodSeconds"] = grace


def _shorten(metadata: Object, asked: int, now: datetime) -> None:
    """Count the new grace period from when the deletion began, but not into the past."""
    began = later(parse_time(metadata["deletionTimestamp"]), -metadata["deletionGracePeriodSeconds"])
    due = later(began, asked)
    if due < now:
        due, asked = now, min(asked, 1)
    metadata["deletionTimestamp"] = format_time(due)
    metadata["deletionGracePeriodSeconds"] = asked


def _set_finalizers(metadata: Object, finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _finalizers(strategy: Strategy, old: Object, options: DeleteOptions) -> list[str]:
    """The object's finalizers with the garbage collector's as the deletion wants them.

    The options decide, then a finalizer that is there, then the kind (``deletionFinalizersForGarbageCollection``).
    """
    present = list(old["metadata"].get("finalizers") or [])
    default = strategy.default_propagation()
    wanted = [] if default == "Unsupported" else _wanted_finalizer(present, options.propagation_policy or "", default)
    others = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    changed = [*others, *wanted]
    return present if set(changed) == set(present) else changed


def _wanted_finalizer(present: list[str], policy: str, default: str) -> list[str]:
    if policy:
        return {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    there = [name for name in present if name in (ORPHAN, FOREGROUND)]
    return there or ([ORPHAN] if default == "Orphan" else [])


def namespace_kept(old: Object, options: DeleteOptions, now: datetime) -> Object | None:
    """A namespace as a deletion leaves it, or None if nothing holds it any more.

    The first deletion only marks it Terminating; it goes when spec.finalizers is empty (namespace/storage).
    """
    if old["metadata"].get("deletionTimestamp"):
        return old if old.get("spec", {}).get("finalizers") else None
    metadata = {**old["metadata"], "deletionTimestamp": format_time(now)}
    present = metadata.get("finalizers") or []
    others = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    _set_finalizers(metadata, [*others, *_wanted_finalizer(present, options.propagation_policy or "", "")])
    return {**old, "metadata": metadata, "status": {**old.get("status", {}), "phase": "Terminating"}}


def _definition_to_clean_up(old: Object, now: datetime) -> Object:
    """A CustomResourceDefinition as its deletion begins: its objects go first (customresourcedefinition/etcd.go)."""
    metadata = old["metadata"]
    if metadata.get("deletionTimestamp"):
        return old
    condition = {
        "lastTransitionTime": format_time(now),
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "reason": "InstanceDeletionPending",
        "status": "True",
        "type": "Terminating",
    }
    status = old.get("status") or {}
    others = [one for one in status.get("conditions") or [] if one["type"] != "Terminating"]
    finalizers = list(dict.fromkeys([*(metadata.get("finalizers") or []), CLEANUP]))
    return {**old, "metadata": {**metadata, "finalizers": finalizers},
            "status": {**status, "conditions": [*others, condition]}}


def _validate(target: Target, old: Object, options: DeleteOptions) -> None:
    policy = options.propagation_policy
    if policy is not None and policy not in POLICIES:
        wrong = errors.not_supported("propagationPolicy", policy, [*POLICIES, "nil"])
        raise errors.invalid("DeleteOptions.meta.k8s.io", "", [wrong])
    metadata = old["metadata"]
    if options.uid is not None and options.uid != metadata.get("uid"):
        raise _precondition(target, "UID", options.uid, metadata.get("uid", ""),
                            "The object might have been deleted and then recreated")
    if options.resource_version is not None and options.resource_version != metadata.get("resourceVersion"):
        raise _precondition(target, "ResourceVersion", options.resource_version, metadata.get("resourceVersion", ""),
                            "The object might have been modified")


def _precondition(target: Target, what: str, wanted: str, found: str, guess: str) -> errors.Status:
    why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {guess}"
    return errors.conflict(target.resource.qualified_kind, target.name, why)
