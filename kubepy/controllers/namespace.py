"""The namespace controller: deletes the content of a namespace that is being deleted, then the
namespace itself.

Pods are deleted before everything else, so that nothing they need is missing. Upstream:
``pkg/controller/namespace``. The work begins 5 s after the deletion, for API servers that have not
heard of it yet. It goes on 5 s after the namespace itself has changed, or when the remaining
content should have been deleted. A run that does not wait for time to pass skips these delays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.clock import format_time, parse_time
from kubepy.api.errors import Status
from kubepy.api.meta import is_being_deleted, name_of
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.api.scheme import Resource
from kubepy.apiserver.request import CollectionOptions, DeleteOptions
from kubepy.runtime.informers import NAMESPACES, PODS, ResourceClient
from kubepy.runtime.reconcile import (
    EVERY_RESOURCE,
    Context,
    Handler,
    Key,
    UnfinishedSync,
    WatchEvent,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Namespace, NamespaceCondition, NamespaceStatus, Pod

FINALIZER = "kubernetes"
GRACE_SECONDS = 5.0  # namespaceDeletionGracePeriod
FINALIZER_ESTIMATE_SECONDS = 15  # the time that objects with finalizers are supposed to take
FIRST_BACKOFF, LONGEST_BACKOFF = 5.0, 60.0  # seconds

DISCOVERY_FAILURE = "NamespaceDeletionDiscoveryFailure"
VERSION_FAILURE = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"


class ConditionUpdate(NamedTuple):
    """The values of a condition; ``good`` is status False, since all these conditions are named
    after a failure."""

    reason: str
    message: str
    good: bool = True


# In upstream's order, with the values when nothing is wrong (``status_condition_utils.go``).
OK_CONDITIONS = {
    DISCOVERY_FAILURE: ConditionUpdate(
        "ResourcesDiscovered", "All resources successfully discovered"
    ),
    VERSION_FAILURE: ConditionUpdate(
        "ParsedGroupVersions", "All legacy kube types successfully parsed"
    ),
    CONTENT_FAILURE: ConditionUpdate(
        "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    ),
    CONTENT_REMAINING: ConditionUpdate("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: ConditionUpdate(
        "ContentHasNoFinalizers", "All content-preserving finalizers finished"
    ),
}


@dataclass
class RemainingContent:
    """The content of a namespace after a round of deletions.

    :ivar estimate: seconds until it should be deleted.
    :ivar is_timed: so long because of the grace periods of its pods, which come to an end.
    """

    remaining: Counter[str] = field(default_factory=Counter)  # "configmaps." → how many
    finalizers: Counter[str] = field(default_factory=Counter)
    estimate: int = 0
    is_timed: bool = False
    errors: list[str] = field(default_factory=list)


class NamespaceController:
    """Reconciles namespaces that are being deleted."""

    name = "namespace-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._namespaces = context.informers.lister(NAMESPACES)
        self._namespace_client = ResourceClient(context.client, NAMESPACES)
        self._clock = context.clock
        self._scheme = context.scheme
        self._unheld = context.client.settings.absent  # what an imported source leaves out
        self.queue = context.new_queue((FIRST_BACKOFF, LONGEST_BACKOFF))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {NAMESPACES: self._namespace_changed, EVERY_RESOURCE: self._content_changed}

    def _namespace_changed(self, event: WatchEvent) -> None:
        namespace = cast("Namespace | None", event.new)
        if namespace is not None and is_being_deleted(namespace):
            if event.old is None:
                passed = seconds_since_deletion(namespace, self._clock.now())
            else:
                passed = 0.0
            self.queue.add_after(event.key, GRACE_SECONDS - passed, skippable=True)
        elif namespace is None:
            self.queue.cancel(event.key)

    def _content_changed(self, event: WatchEvent) -> None:
        """Look at a namespace that is being deleted again after an object of it was deleted."""
        if event.new is None and event.key.namespace:
            namespace = self._namespaces.get("", event.key.namespace)
            if namespace is not None and is_being_deleted(namespace):
                key = Key(NAMESPACES, "", event.key.namespace)
                self.queue.add_after(key, requeue_delay(FINALIZER_ESTIMATE_SECONDS), skippable=True)

    # --- sync

    def sync(self, key: Key) -> None:
        namespace = self._namespaces.get("", key.name)
        if (
            namespace is None
            or not is_being_deleted(namespace)
            or not namespace["spec"].get("finalizers")
        ):
            return

        content = self._delete_content(namespace)
        if self._unheld is not None and self._unheld.remaining_in(namespace):
            # Its status is still true: it tells of objects that the source does not hold.
            if content.estimate:
                self.queue.add_after(key, requeue_delay(content.estimate), repeating=True)
            return
        status: NamespaceStatus = namespace.get("status") or {}
        conditions = updated_conditions(
            status.get("conditions") or [], condition_updates(content), self._clock.now()
        )
        changed: NamespaceStatus = {**status, "phase": "Terminating", "conditions": conditions}
        is_steady = (
            changed == status and not content.is_timed
        )  # the next rounds find the same unless something changes
        if changed != status:
            namespace = self._namespace_client.update_status(namespace, changed)
        if content.errors:
            raise NamespaceContentError("; ".join(content.errors))
        if content.estimate:
            self.queue.add_after(key, requeue_delay(content.estimate), repeating=is_steady)
            return
        kept = [
            finalizer for finalizer in namespace["spec"]["finalizers"] if finalizer != FINALIZER
        ]
        self._client.update(
            NAMESPACES,
            {**namespace, "spec": {**namespace["spec"], "finalizers": kept}},
            subresource="finalize",
        )

    def _delete_content(self, namespace: Namespace) -> RemainingContent:
        """Do one round of deletions (``deleteAllContent``); while pods are left nothing else is
        deleted or reported."""
        name = name_of(namespace)
        content = RemainingContent()
        self._delete_collection(content, self._scheme.by_key(PODS), namespace)
        if content.remaining:
            content.remaining.clear()
            content.finalizers.clear()
            return content

        with_objects = {
            key
            for key in self._informers.resources()
            if key != PODS and self._informers.list(key, name)
        }
        for key in sorted(
            with_objects | {"events"}
        ):  # events are not watched, so they are always tried
            resource = self._scheme.get(key)
            if resource is not None:
                self._delete_collection(content, resource, namespace)

        return content

    def _delete_collection(
        self, content: RemainingContent, resource: Resource, namespace: Namespace
    ) -> None:
        """Delete the objects of one resource (``deleteAllContentForGroupVersionResource``)."""
        name = name_of(namespace)
        # for pods, the longest grace period unless so much time has passed since the deletion
        estimate = 0
        if resource.key == PODS:
            pods = [
                pod
                for pod in self._client.list(PODS, namespace=name).items
                if not is_pod_terminal(cast("Pod", pod))
            ]
            grace = max(
                (pod["spec"].get("terminationGracePeriodSeconds") or 0 for pod in pods), default=0
            )
            if seconds_since_deletion(namespace, self._clock.now()) >= grace:
                estimate = 0
            else:
                estimate = int(grace)

        try:
            self._client.delete_collection(
                resource.key,
                namespace=name,
                options=CollectionOptions(delete=DeleteOptions(propagation_policy="Background")),
            )
        except Status as error:
            content.errors.append(str(error))
            return

        remaining = self._client.list(resource.key, namespace=name).items
        if not remaining:
            return
        finalizers = Counter(
            finalizer for obj in remaining for finalizer in obj["metadata"].get("finalizers") or ()
        )
        if not estimate and not finalizers:
            gvr = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            content.errors.append(
                f"unexpected items still remain in namespace: {name} for gvr: {gvr}"
            )

        content.is_timed |= estimate > 0
        content.estimate = max(
            content.estimate, estimate or (FINALIZER_ESTIMATE_SECONDS if finalizers else 0)
        )
        content.remaining[f"{resource.plural}.{resource.group}"] += len(remaining)
        content.finalizers.update(finalizers)


class NamespaceContentError(UnfinishedSync):
    """Part of the content of a namespace could not be deleted; it is tried again."""


def requeue_delay(estimate: int) -> int:
    """Return after how many seconds to look again at deletions that should take ``estimate``
    seconds."""
    return estimate // 2 + 1


def seconds_since_deletion(namespace: Namespace, now: datetime) -> float:
    return (now - parse_time(namespace["metadata"]["deletionTimestamp"])).total_seconds()


def condition_updates(content: RemainingContent) -> dict[str, ConditionUpdate]:
    """Return the conditions that report something wrong, by type
    (``namespaceConditionUpdater``)."""

    def listed(counts: Mapping[str, int], verb: str) -> str:
        return ", ".join(
            sorted(f"{name} {verb} {count} resource instances" for name, count in counts.items())
        )

    updates: dict[str, ConditionUpdate] = {}
    if content.errors:
        text = ", ".join(sorted(content.errors))
        message = f"Failed to delete all resource types, {len(content.errors)} remaining: {text}"
        updates[CONTENT_FAILURE] = ConditionUpdate("ContentDeletionFailed", message, good=False)

    if content.remaining:
        message = f"Some resources are remaining: {listed(content.remaining, 'has')}"
        updates[CONTENT_REMAINING] = ConditionUpdate("SomeResourcesRemain", message, good=False)
    if content.finalizers:
        message = (
            f"Some content in the namespace has finalizers remaining: "
            f"{listed(content.finalizers, 'in')}"
        )
        updates[FINALIZERS_REMAINING] = ConditionUpdate("SomeFinalizersRemain", message, good=False)

    return updates


def updated_conditions(
    conditions: list[NamespaceCondition], updates: Mapping[str, ConditionUpdate], now: datetime
) -> list[NamespaceCondition]:
    """Return the conditions with the updates, and the good values where there is none
    (``updateConditions``)."""
    result = list(conditions)
    for kind, ok in OK_CONDITIONS.items():
        update = updates.get(kind, ok)
        index = next(
            (index for index, present in enumerate(result) if present["type"] == kind), None
        )
        condition: NamespaceCondition = {
            "lastTransitionTime": format_time(now),
            "message": update.message,
            "reason": update.reason,
            "status": "False" if update.good else "True",
            "type": kind,
        }
        if index is None:
            result.append(condition)
        else:
            if result[index]["status"] == condition["status"]:
                condition["lastTransitionTime"] = result[index]["lastTransitionTime"]
            result[index] = condition

    return result
