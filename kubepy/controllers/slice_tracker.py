"""The EndpointSlices that a controller has written and perhaps not observed yet
(``endpointslice_tracker.go`` in ``k8s.io/endpointslice``).

A controller that goes by informers that lack its own writes would make a slice twice. It waits
until they have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubepy.api.meta import is_being_deleted, labels_of, uid_of
from kubepy.controllers.service_endpoints import SERVICE_NAME
from kubepy.runtime.informers import Informers
from kubepy.runtime.reconcile import Key, UnfinishedSync, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import EndpointSlice

DELETED = -1  # in place of a generation: the controller has deleted the slice


class StaleInformerCacheError(UnfinishedSync):
    """The informers lack a write of the controller."""


class EndpointSliceTracker:
    """The generations of slices by their uids, for each Service, or Endpoints that are mirrored.

    Slices are forgotten when the informers list everything anew: a batch that failed has written
    none of them.

    :param resource: of the Services or Endpoints.
    """

    def __init__(self, informers: Informers, resource: str) -> None:
        self._informers = informers
        self._resource = resource
        self._listings = informers.listings
        self._generations: dict[Key, dict[str, int]] = {}

    def note(self, owner: Key, slice_: EndpointSlice) -> None:
        """Note a slice that was written (``Update``)."""
        self._of(owner)[uid_of(slice_)] = _generation(slice_)

    def note_deletion(self, owner: Key, slice_: EndpointSlice) -> None:
        """Note that a slice was deleted (``ExpectDeletion``)."""
        self._of(owner)[uid_of(slice_)] = DELETED

    def observe(self, event: WatchEvent) -> None:
        """Forget a slice whose deletion the informers have (``HandleDeletion``), and one that is
        being deleted, or has become another Service's."""
        if event.old is None:
            return
        name = labels_of(event.old).get(SERVICE_NAME, "")
        new = event.new
        if new is None or is_being_deleted(new) or labels_of(new).get(SERVICE_NAME) != name:
            owner = Key(self._resource, event.key.namespace, name)
            self._of(owner).pop(uid_of(event.old), None)

    def forget(self, owner: Key) -> None:
        """Forget the slices of a Service that is gone (``DeleteService``)."""
        self._generations.pop(owner, None)

    def check(self, owner: Key, slices: Iterable[EndpointSlice]) -> None:
        """Raise StaleInformerCacheError where the slices of a Service, as the informers have them,
        lack a write (``StaleSlices``)."""
        written = self._of(owner)
        observed = {uid_of(slice_): _generation(slice_) for slice_ in slices}
        for uid, generation in written.items():
            if generation == DELETED:
                is_stale = uid in observed
            else:
                is_stale = observed.get(uid, DELETED) < generation
            if is_stale:
                raise StaleInformerCacheError("EndpointSlice informer cache is out of date")

    def _of(self, owner: Key) -> dict[str, int]:
        if self._listings != self._informers.listings:
            self._listings = self._informers.listings
            self._generations.clear()
        return self._generations.setdefault(owner, {})


def _generation(slice_: EndpointSlice) -> int:
    return slice_["metadata"].get("generation", 0)
