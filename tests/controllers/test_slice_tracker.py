"""The tracker of EndpointSlices that were written and perhaps not observed yet."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.controllers.slice_tracker import EndpointSliceTracker, StaleInformerCacheError
from kubepy.runtime.informers import ENDPOINT_SLICES, SERVICES, Informers
from kubepy.runtime.reconcile import Key, WatchEvent

SERVICE = Key(SERVICES, "default", "web")


def new_slice(generation: int) -> Any:
    labels = {"kubernetes.io/service-name": "web"}
    return {"metadata": {"name": "web-1", "uid": "1", "generation": generation, "labels": labels}}


def test_check_created_slice_not_observed_is_stale() -> None:
    tracker = EndpointSliceTracker(Informers(), SERVICES)
    tracker.note(SERVICE, new_slice(1))

    with pytest.raises(StaleInformerCacheError):
        tracker.check(SERVICE, [])
    tracker.check(SERVICE, [new_slice(1)])


def test_check_older_generation_is_stale() -> None:
    tracker = EndpointSliceTracker(Informers(), SERVICES)
    tracker.note(SERVICE, new_slice(2))

    with pytest.raises(StaleInformerCacheError):
        tracker.check(SERVICE, [new_slice(1)])
    tracker.check(SERVICE, [new_slice(3)])


def test_check_deleted_slice_still_observed_is_stale() -> None:
    tracker = EndpointSliceTracker(Informers(), SERVICES)
    tracker.note_deletion(SERVICE, new_slice(1))

    with pytest.raises(StaleInformerCacheError):
        tracker.check(SERVICE, [new_slice(1)])
    tracker.check(SERVICE, [])


def test_observe_deletion_by_others_is_not_waited_for() -> None:
    tracker = EndpointSliceTracker(Informers(), SERVICES)
    tracker.note(SERVICE, new_slice(1))

    key = Key(ENDPOINT_SLICES, "default", "web-1")
    tracker.observe(WatchEvent(key, new_slice(1), None))

    tracker.check(SERVICE, [])


def test_check_after_new_listing_nothing_is_stale() -> None:
    informers = Informers()
    tracker = EndpointSliceTracker(informers, SERVICES)
    tracker.note(SERVICE, new_slice(1))

    informers.clear()

    tracker.check(SERVICE, [])
