"""The one Client that everything above the API machinery uses. (Contract; the cluster's author fills it in.)

Resources are named by key (``pods``, ``daemonsets.apps``). Everything takes and gives dicts; what comes out is shared
and read-only. Errors are :class:`kubepy.cluster.errors.Status`. Warnings that the server would send go to
``client.warn`` (a callable; the CLI prints them, controllers drop them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubepy.cluster.meta import Object
from kubepy.cluster.reconcile import WatchEvent


class ObjectList(NamedTuple):
    """A snapshot: objects in (namespace, name) order at one resource version."""

    items: list[Object]
    resource_version: str


@dataclass(frozen=True)
class DeleteOptions:
    """``metav1.DeleteOptions``. ``propagation_policy``: Background, Foreground, Orphan, or None for the kind's own."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Batch:
    """Many requests in one transaction (see :meth:`Client.batch`)."""

    def drain(self) -> list[WatchEvent]:
        """What changed since the last call, in order: edits from outside and other processes' writes when the batch
        began, and the batch's own writes."""
        raise NotImplementedError


class Client:
    warn: Callable[[str], None]

    def get(self, resource: str, name: str, *, namespace: str = "") -> Object:
        """Raises NotFound."""
        raise NotImplementedError

    def list(self, resource: str, *, namespace: str | None = None, label_selector: str = "",
             field_selector: str = "") -> ObjectList:
        """``namespace`` None: all. Raises BadRequest for a selector that cannot be read or a field not selectable."""
        raise NotImplementedError

    def create(self, resource: str, obj: Object, *, namespace: str = "", dry_run: bool = False,
               field_manager: str = "", field_validation: str = "Ignore") -> Object:
        """Create an object; returns it as stored. ``field_validation``: Strict, Warn or Ignore (unknown fields).

        Raises AlreadyExists, Invalid, BadRequest, Forbidden (namespace terminating), NotFound (no such namespace).
        """
        raise NotImplementedError

    def update(self, resource: str, obj: Object, *, namespace: str = "", subresource: str = "", dry_run: bool = False,
               field_manager: str = "", field_validation: str = "Ignore") -> Object:
        """Replace an object, or its ``status``. With metadata.resourceVersion: only that version. Raises Conflict."""
        raise NotImplementedError

    def patch(self, resource: str, name: str, patch: Any, patch_type: str, *, namespace: str = "",
              subresource: str = "", dry_run: bool = False, field_manager: str = "",
              field_validation: str = "Ignore", force: bool = False) -> Object:
        """Apply a patch (parsed JSON). ``force`` is server-side apply's."""
        raise NotImplementedError

    def delete(self, resource: str, name: str, *, namespace: str = "",
               options: DeleteOptions = DeleteOptions()) -> Object:  # noqa: B008 - frozen
        """Delete an object: at once, or by setting deletionTimestamp where a grace period or finalizers hold it.

        Returns the last state, or the state with its deletionTimestamp.
        """
        raise NotImplementedError

    def delete_collection(self, resource: str, *, namespace: str = "", label_selector: str = "",
                          field_selector: str = "", options: DeleteOptions = DeleteOptions()) -> list[Object]:  # noqa: B008
        raise NotImplementedError

    def get_scale(self, resource: str, name: str, *, namespace: str = "") -> Object:
        """The ``autoscaling/v1 Scale`` of an object. Raises the "could not find the requested resource" NotFound."""
        raise NotImplementedError

    def update_scale(self, resource: str, scale: Object, *, namespace: str = "", dry_run: bool = False) -> Object:
        raise NotImplementedError

    def evict(self, name: str, *, namespace: str, options: DeleteOptions = DeleteOptions()) -> None:  # noqa: B008
        """Delete a pod unless a PodDisruptionBudget forbids it. Raises TooManyRequests."""
        raise NotImplementedError

    def bind(self, name: str, node: str, *, namespace: str) -> None:
        """Assign a pod to a node (the ``binding`` subresource); sets PodScheduled."""
        raise NotImplementedError

    def changes(self, since: int) -> tuple[int, list[WatchEvent]]:
        """What changed after a revision, and the revision reached. ``old`` is always None here. Raises Gone (410)."""
        raise NotImplementedError

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """One transaction for all requests of this Client inside the block; an exception undoes them all."""
        raise NotImplementedError
        yield
