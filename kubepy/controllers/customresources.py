"""Deletes the objects of a CustomResourceDefinition that is being deleted, then lets it go.

Upstream: ``apiextensions-apiserver/pkg/controller/finalizer``. Where upstream asks every 5 s whether they are gone,
here the last one to go wakes the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from kubepy.api.clock import format_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import Object, has_finalizer, is_being_deleted, name_of, namespace_of
from kubepy.api.objects.pods import get_condition
from kubepy.apiserver.requests.deletion import CLEANUP, CRDS
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, WatchEvent

IN_PROGRESS = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
COMPLETED = ("False", "InstanceDeletionCompleted", "removed all instances")
NEVER_ESTABLISHED = ("False", "NeverEstablished", "resource was never established")


class CustomResourceFinalizer:
    name = "crd-finalizer"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {CRDS: self._definition_changed, EVERY_RESOURCE: self._object_changed}

    def _definition_changed(self, event: WatchEvent) -> None:
        if event.new is not None and waits_for_objects(event.new):
            self.queue.add(event.key)

    def _object_changed(self, event: WatchEvent) -> None:
        """A definition is named as its resource: ``boats.harbour.example.org``."""
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
            self._release(self._say(definition, *NEVER_ESTABLISHED))
        elif self._delete_objects(key.name):
            self._release(self._say(definition, *COMPLETED))
        else:
            self._say(definition, *IN_PROGRESS)

    def _delete_objects(self, resource: str) -> bool:
        """Delete all there are; whether none is left. Raises Status."""
        for obj in self._client.list(resource).items:
            if is_being_deleted(obj):
                continue
            with suppress(NotFound):
                self._client.delete(resource, name_of(obj), namespace=namespace_of(obj))
        return not self._client.list(resource).items

    def _say(self, definition: Object, status: str, reason: str, message: str) -> Object:
        old = get_condition(definition, "Terminating")
        same = old is not None and old["status"] == status
        time = old["lastTransitionTime"] if old is not None and same else format_time(self._clock.now())
        condition = {"lastTransitionTime": time, "message": message, "reason": reason, "status": status,
                     "type": "Terminating"}
        if condition == old:
            return definition
        others = [one for one in definition["status"].get("conditions") or [] if one["type"] != "Terminating"]
        new = {**definition, "status": {**definition["status"], "conditions": [*others, condition]}}
        return self._client.update(CRDS, new, subresource="status")

    def _release(self, definition: Object) -> None:
        metadata = definition["metadata"]
        kept = [one for one in metadata["finalizers"] if one != CLEANUP]
        self._client.update(CRDS, {**definition, "metadata": {**metadata, "finalizers": kept}})


def waits_for_objects(definition: Object) -> bool:
    return is_being_deleted(definition) and has_finalizer(definition, CLEANUP)
