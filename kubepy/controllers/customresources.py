"""Deletes the objects of a CustomResourceDefinition that is being deleted, then lets it go.

Upstream: ``apiextensions-apiserver/pkg/controller/finalizer``. Where upstream looks every 5 s
whether objects are left, here the deletion of the last one wakes the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from kubepy.api.clock import format_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import (
    Object,
    has_finalizer,
    is_being_deleted,
    name_of,
    namespace_of,
    without_finalizer,
)
from kubepy.api.objects.pods import get_condition
from kubepy.apiserver.requests.deletion import CLEANUP, CRDS
from kubepy.runtime.reconcile import (
    EVERY_RESOURCE,
    Context,
    Handler,
    Key,
    WatchEvent,
    enqueue_object,
)

IN_PROGRESS = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
COMPLETED = ("False", "InstanceDeletionCompleted", "removed all instances")
NEVER_ESTABLISHED = ("False", "NeverEstablished", "resource was never established")


class CustomResourceFinalizer:
    """Reconciles CustomResourceDefinitions that are being deleted."""

    name = "crd-finalizer"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {
            CRDS: enqueue_object(self.queue, waits_for_objects),
            EVERY_RESOURCE: self._object_changed,
        }

    def _object_changed(self, event: WatchEvent) -> None:
        """Reconcile the definition of a deleted object; it is named as its resource:
        ``boats.harbour.example.org``."""
        if event.new is None:
            definition = self._informers.get(CRDS, "", event.key.resource)
            if definition is not None and waits_for_objects(definition):
                self.queue.add(Key(CRDS, "", event.key.resource))

    def sync(self, key: Key) -> None:
        definition = self._informers.get(*key)
        if definition is None or not waits_for_objects(definition):
            return
        established = get_condition(definition, "Established")
        if established is None or established["status"] != "True":
            self._remove_finalizer(self._set_terminating(definition, *NEVER_ESTABLISHED))
            return
        for obj in self._client.list(key.name).items:
            if not is_being_deleted(obj):
                with suppress(NotFound):
                    self._client.delete(key.name, name_of(obj), namespace=namespace_of(obj))

        if not self._client.list(key.name).items:
            self._remove_finalizer(self._set_terminating(definition, *COMPLETED))
        else:
            self._set_terminating(definition, *IN_PROGRESS)

    def _set_terminating(
        self, definition: Object, status: str, reason: str, message: str
    ) -> Object:
        old = get_condition(definition, "Terminating")
        is_same_status = old is not None and old["status"] == status
        if old is not None and is_same_status:
            time = old["lastTransitionTime"]
        else:
            time = format_time(self._clock.now())

        condition = {
            "lastTransitionTime": time,
            "message": message,
            "reason": reason,
            "status": status,
            "type": "Terminating",
        }
        if condition == old:
            return definition
        others = [
            other
            for other in definition["status"].get("conditions") or []
            if other["type"] != "Terminating"
        ]
        new = {**definition, "status": {**definition["status"], "conditions": [*others, condition]}}
        return self._client.update(CRDS, new, subresource="status")

    def _remove_finalizer(self, definition: Object) -> None:
        self._client.update(CRDS, without_finalizer(definition, CLEANUP))


def waits_for_objects(definition: Object) -> bool:
    """Tell whether a definition is kept until its objects are deleted."""
    if not is_being_deleted(definition):
        return False
    return has_finalizer(definition, CLEANUP)
