"""The namespace controller: what is in a namespace that is being deleted goes first, then the namespace itself.

Pods go before everything else, so that nothing they need is taken from under them. Upstream:
``pkg/controller/namespace``. The work begins 5 s after the deletion, for API servers that have not heard of it yet, and
goes on 5 s after the namespace itself has changed or when what is left is supposed to be gone; nothing that leaves it
makes that sooner. Whoever does not watch time pass need not wait for any of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from kubepy.api.clock import format_time, parse_time
from kubepy.api.errors import Status
from kubepy.api.meta import Object, is_being_deleted, name_of
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.api.scheme import Resource
from kubepy.apiserver.request import CollectionOptions, DeleteOptions
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, WatchEvent

RESOURCE = "namespaces"
FINALIZER = "kubernetes"
GRACE_SECONDS = 5.0  # namespaceDeletionGracePeriod
FINALIZER_ESTIMATE_SECONDS = 15  # how long what has finalizers is supposed to take
FIRST_BACKOFF, LONGEST_BACKOFF = 5.0, 60.0  # seconds

DISCOVERY_FAILURE = "NamespaceDeletionDiscoveryFailure"
VERSION_FAILURE = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"


class Finding(NamedTuple):
    """What a condition says; ``good`` is status False: all these conditions name what is wrong."""

    reason: str
    message: str
    good: bool = True


# In upstream's order, with what each says when nothing is wrong (``status_condition_utils.go``).
ALL_WELL = {
    DISCOVERY_FAILURE: Finding("ResourcesDiscovered", "All resources successfully discovered"),
    VERSION_FAILURE: Finding("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT_FAILURE: Finding("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    CONTENT_REMAINING: Finding("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: Finding("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass
class Content:
    """What is left in a namespace after a round of deletions; ``estimate``: seconds until it is supposed to be gone."""

    remaining: Counter[str] = field(default_factory=Counter)  # "configmaps." → how many
    finalizers: Counter[str] = field(default_factory=Counter)
    estimate: int = 0
    errors: list[str] = field(default_factory=list)


class NamespaceController:
    name = "namespace-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._scheme = context.scheme
        self.queue = context.new_queue((FIRST_BACKOFF, LONGEST_BACKOFF))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {RESOURCE: self._namespace_changed, EVERY_RESOURCE: self._content_changed}

    def _namespace_changed(self, event: WatchEvent) -> None:
        if event.new is not None and is_being_deleted(event.new):
            passed = self._since_deletion(event.new).total_seconds() if event.old is None else 0.0
            self.queue.add_after(event.key, GRACE_SECONDS - passed, skippable=True)
        elif event.new is None:
            self.queue.cancel(event.key)

    def _content_changed(self, event: WatchEvent) -> None:
        """Something has left the namespace, so that looking at it need not wait."""
        if event.new is None and event.key.namespace:
            namespace = self._informers.get(RESOURCE, "", event.key.namespace)
            if namespace is not None and is_being_deleted(namespace):
                key = Key(RESOURCE, "", event.key.namespace)
                self.queue.add_after(key, next_look(FINALIZER_ESTIMATE_SECONDS), skippable=True)

    # --- sync

    def sync(self, key: Key) -> None:
        namespace = self._informers.get(*key)
        if namespace is None or not is_being_deleted(namespace) or not namespace["spec"].get("finalizers"):
            return
        content = self._delete_content(namespace)
        namespace = self._write_status(namespace, findings(content))
        if content.errors:
            raise NamespaceContentError("; ".join(content.errors))
        if content.estimate:
            self.queue.add_after(key, next_look(content.estimate))
            return
        kept = [one for one in namespace["spec"]["finalizers"] if one != FINALIZER]
        self._client.update(RESOURCE, {**namespace, "spec": {**namespace["spec"], "finalizers": kept}},
                            subresource="finalize")

    def _delete_content(self, namespace: Object) -> Content:
        """One round of deletions (``deleteAllContent``). While pods are left it says nothing of the rest."""
        name, content = name_of(namespace), Content()
        self._delete_collection(content, self._scheme.by_key("pods"), namespace)
        if content.remaining:
            content.remaining.clear()
            content.finalizers.clear()
            return content
        for resource in self._resources(name):
            self._delete_collection(content, resource, namespace)
        return content

    def _resources(self, namespace: str) -> list[Resource]:
        """The resources that may have objects there. Events are not watched, so they are always tried."""
        there = [one for one in self._informers.resources() if one != "pods" and self._informers.list(one, namespace)]
        found = map(self._scheme.get, sorted({*there, "events"}))
        return [resource for resource in found if resource is not None]

    def _delete_collection(self, content: Content, resource: Resource, namespace: Object) -> None:
        """``deleteAllContentForGroupVersionResource``."""
        name = name_of(namespace)
        estimate = self._grace_left(namespace) if resource.key == "pods" else 0
        try:
            self._client.delete_collection(resource.key, namespace=name,
                                           options=CollectionOptions(delete=DeleteOptions(propagation_policy="Background")))
        except Status as error:
            content.errors.append(str(error))
            return
        left = self._client.list(resource.key, namespace=name).items
        if not left:
            return
        finalizers = Counter(one for obj in left for one in obj["metadata"].get("finalizers") or ())
        if not estimate and not finalizers:
            gvr = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            content.errors.append(f"unexpected items still remain in namespace: {name} for gvr: {gvr}")
        content.estimate = max(content.estimate, estimate or (FINALIZER_ESTIMATE_SECONDS if finalizers else 0))
        content.remaining[f"{resource.plural}.{resource.group}"] += len(left)
        content.finalizers.update(finalizers)

    def _grace_left(self, namespace: Object) -> int:
        """The longest grace period of its pods, 0 when so much time has passed since the deletion."""
        pods = self._informers.list("pods", name_of(namespace))
        graces = [pod["spec"].get("terminationGracePeriodSeconds") or 0 for pod in pods if not is_pod_terminal(pod)]
        estimate = max(graces, default=0)
        return 0 if self._since_deletion(namespace) >= timedelta(seconds=estimate) else int(estimate)

    def _since_deletion(self, namespace: Object) -> timedelta:
        return self._clock.now() - parse_time(namespace["metadata"]["deletionTimestamp"])

    def _write_status(self, namespace: Object, found: Mapping[str, Finding]) -> Object:
        status = namespace.get("status") or {}
        conditions = updated_conditions(status.get("conditions") or [], found, self._clock.now())
        new = {**status, "phase": "Terminating", "conditions": conditions}
        if new == status:
            return namespace
        return self._client.update(RESOURCE, {**namespace, "status": new}, subresource="status")


class NamespaceContentError(Exception):
    """Something in a namespace could not be deleted; it is tried again."""


def next_look(estimate: int) -> int:
    """Seconds until it is worth looking again at what is supposed to take ``estimate`` seconds."""
    return estimate // 2 + 1


def findings(content: Content) -> dict[str, Finding]:
    """What is wrong, by condition type (``namespaceConditionUpdater``)."""
    found: dict[str, Finding] = {}
    if content.errors:
        text = ", ".join(sorted(content.errors))
        message = f"Failed to delete all resource types, {len(content.errors)} remaining: {text}"
        found[CONTENT_FAILURE] = Finding("ContentDeletionFailed", message, good=False)
    if content.remaining:
        text = _listed(f"{name} has {count} resource instances" for name, count in content.remaining.items())
        found[CONTENT_REMAINING] = Finding("SomeResourcesRemain", f"Some resources are remaining: {text}", good=False)
    if content.finalizers:
        text = _listed(f"{name} in {count} resource instances" for name, count in content.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {text}"
        found[FINALIZERS_REMAINING] = Finding("SomeFinalizersRemain", message, good=False)
    return found


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(sorted(parts))


def updated_conditions(conditions: list[Object], found: Mapping[str, Finding], now: datetime) -> list[Object]:
    """The conditions with what was found, and all well where nothing was (``updateConditions``)."""
    result = list(conditions)
    for kind, well in ALL_WELL.items():
        finding = found.get(kind, well)
        index = next((at for at, one in enumerate(result) if one["type"] == kind), None)
        condition = {
            "lastTransitionTime": format_time(now),
            "message": finding.message,
            "reason": finding.reason,
            "status": "False" if finding.good else "True",
            "type": kind,
        }
        if index is None:
            result.append(condition)
        else:
            if result[index]["status"] == condition["status"]:
                condition["lastTransitionTime"] = result[index]["lastTransitionTime"]
            result[index] = condition
    return result
