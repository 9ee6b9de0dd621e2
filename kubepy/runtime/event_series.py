"""Events in the newer form, which the scheduler alone writes (``client-go/tools/events``).

They bear an action and one time, may name a second object, and know no count. What is said again about an object that
has not changed since makes a series of the first event: that is written once, as a count of two, and is not written
again for as long as the series goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.meta import Object, name_of, namespace_of, object_reference
from kubepy.apiserver.client import Client
from kubepy.apiserver.transaction import RequestTransaction
from kubepy.runtime.events import EVENTS, store_event, takes_events
from kubepy.storage import Key

MAX_NOTE = 1024  # bytes of a message upstream's API takes
SERIES_END = timedelta(minutes=6)  # what is said again after so long a silence is a new event


class _Seen(NamedTuple):
    name: str
    last: datetime
    is_series: bool


class SeriesRecorder:
    """Records the events of one component. ``instance`` tells processes of it apart."""

    def __init__(self, client: Client, component: str, instance: str = "kubepy") -> None:
        self._client = client
        self._component, self._instance = component, f"{component}-{instance}"
        self._seen: dict[str, _Seen] = {}  # by what makes two events isomorphic; the one that came last is last
        self._known: set[str] = set()  # namespaces whose stored events have been looked at
        self._last_name = 0

    def event(self, regarding: Mapping[str, Any], event_type: str, reason: str, action: str, note: str, *,
              related: Mapping[str, Any] | None = None) -> None:
        """Say ``note`` about an object, while doing ``action`` with it (and ``related``).

        Dropped where the namespace is going or gone, as upstream drops it.
        """
        now = self._client.clock.now()
        event = self._new_event(regarding, event_type, reason, action, note, related, now)
        namespace = namespace_of(event)
        with self._client.transaction() as transaction:
            self._learn(transaction, namespace)
            self._forget_ended(now)
            seen = self._seen.pop(key := _isomorphism(event), None)
            if takes_events(transaction, namespace):
                write = self._begin if seen is None else partial(self._continue, seen)
                self._seen[key] = write(transaction, event, now)

    def _new_event(self, regarding: Mapping[str, Any], event_type: str, reason: str, action: str, note: str,
                   related: Mapping[str, Any] | None, now: datetime) -> Object:
        event: Object = {
            "action": action,
            "apiVersion": "v1",
            "eventTime": format_micro_time(now),
            "firstTimestamp": None,
            "involvedObject": object_reference(regarding),
            "kind": "Event",
            "lastTimestamp": None,
            "message": shortened(note),
            "metadata": {"namespace": namespace_of(regarding) or "default"},
            "reason": reason,
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "source": {},
            "type": event_type,
        }
        return event if related is None else {**event, "related": object_reference(related)}

    def _begin(self, transaction: RequestTransaction, event: Object, now: datetime) -> _Seen:
        self._last_name = store_event(transaction, event, now, self._client.ids, self._last_name)
        return _Seen(name_of(event), now, "series" in event)

    def _continue(self, seen: _Seen, transaction: RequestTransaction, event: Object, now: datetime) -> _Seen:
        """The second of its kind turns the stored event into a series; the others are not written."""
        if seen.is_series:
            return seen._replace(last=now)
        series = {"count": 2, "lastObservedTime": format_micro_time(now)}
        key = Key(EVENTS, namespace_of(event), seen.name)
        if (stored := transaction.get(key)) is None:  # somebody deleted it
            return self._begin(transaction, {**event, "series": series}, now)
        transaction.update(key, {**stored, "series": series}, stored)
        return seen._replace(last=now, is_series=True)

    def _learn(self, transaction: RequestTransaction, namespace: str) -> None:
        """Go on from what processes before this one have recorded."""
        if namespace in self._known:
            return
        self._known.add(namespace)
        own = [one for one in transaction.list(EVENTS, namespace) if one.get("reportingInstance") == self._instance]
        for event in sorted(own, key=_last_time):
            self._seen[_isomorphism(event)] = _Seen(name_of(event), parse_time(_last_time(event)), "series" in event)

    def _forget_ended(self, now: datetime) -> None:
        while self._seen and now - self._seen[key := next(iter(self._seen))].last > SERIES_END:
            del self._seen[key]


def _last_time(event: Object) -> str:
    return str((event.get("series") or {}).get("lastObservedTime") or event["eventTime"])


def _isomorphism(event: Object) -> str:
    """The same for events that only differ in time and words; ``regarding`` includes the resource version."""
    fields = ("type", "action", "reason", "reportingComponent", "reportingInstance", "involvedObject", "related")
    return repr([sorted(value.items()) if isinstance(value := event.get(field), dict) else value for field in fields])


def shortened(note: str) -> str:
    """A note that the API takes: of one that is too long the beginning."""
    return note if len(note) <= MAX_NOTE else note[: MAX_NOTE - 4] + " ..."
