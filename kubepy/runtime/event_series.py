"""Events in the newer form, which the scheduler alone writes (``client-go/tools/events``).

They bear an action and one time, may name a second object, and know no count. An event that comes
again, about an object that has not changed since, makes a series of the first one: that is written
once, as a count of two, and is not written again for as long as the series goes on.
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
from kubepy.runtime.events import EVENTS, StoredEvents, store_event, takes_events
from kubepy.storage import Key

MAX_NOTE = 1024  # the longest message that upstream's API takes
SERIES_END = timedelta(minutes=6)  # an event that comes again after so long a silence is a new one


class _Recorded(NamedTuple):
    """An event of this component that may come again."""

    name: str
    last: datetime
    is_series: bool


class SeriesRecorder:
    """Records the events of one component. ``instance`` tells processes of it apart."""

    def __init__(self, client: Client, component: str, instance: str = "kubepy") -> None:
        self._client = client
        self._component = component
        self._instance = f"{component}-{instance}"
        self._recorded: dict[str, _Recorded] = {}  # by isomorphism; the one that came last is last
        self._stored = StoredEvents()
        self._series: dict[
            str, datetime
        ] = {}  # when each series of another process was last observed
        client.event_memories[component] = self

    def event(
        self,
        regarding: Mapping[str, Any],
        event_type: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Mapping[str, Any] | None = None,
    ) -> None:
        """Record ``note`` about an object, while doing ``action`` with it (and ``related``).

        The event is dropped where the namespace is going or gone, as upstream drops it.
        """
        now = self._client.clock.now()
        namespace = namespace_of(regarding) or "default"
        event: Object = {
            "action": action,
            "apiVersion": "v1",
            "eventTime": format_micro_time(now),
            "firstTimestamp": None,
            "involvedObject": object_reference(regarding),
            "kind": "Event",
            "lastTimestamp": None,
            "message": note if len(note) <= MAX_NOTE else note[: MAX_NOTE - 4] + " ...",
            "metadata": {"namespace": namespace},
            "reason": reason,
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "source": {},
            "type": event_type,
        }
        if related is not None:
            event["related"] = object_reference(related)
        with self._client.transaction() as transaction:
            self._load_stored(transaction, namespace, event["involvedObject"].get("name", ""))
            while (
                self._recorded
                and now - self._recorded[oldest := next(iter(self._recorded))].last > SERIES_END
            ):
                del self._recorded[oldest]
            recorded = self._recorded.pop(key := _isomorphism(event), None)
            if recorded is not None and now - recorded.last > SERIES_END:
                recorded = None
            if takes_events(transaction, namespace):
                write = self._begin if recorded is None else partial(self._continue, recorded)
                self._recorded[key] = write(transaction, event, now)

    def _begin(self, transaction: RequestTransaction, event: Object, now: datetime) -> _Recorded:
        store_event(transaction, event, now, self._client.ids)
        return _Recorded(name_of(event), now, "series" in event)

    def _continue(
        self, recorded: _Recorded, transaction: RequestTransaction, event: Object, now: datetime
    ) -> _Recorded:
        """Turn the stored event into a series when its second comes; the others are not written."""
        if recorded.is_series:
            return recorded._replace(last=now)
        series = {"count": 2, "lastObservedTime": format_micro_time(now)}
        key = Key(EVENTS, namespace_of(event), recorded.name)
        if (stored := transaction.get(key)) is None:  # it was deleted meanwhile
            return self._begin(transaction, {**event, "series": series}, now)
        transaction.update(key, {**stored, "series": series}, stored)
        return recorded._replace(last=now, is_series=True)

    def _load_stored(self, transaction: RequestTransaction, namespace: str, name: str) -> None:
        """Read the events about an object that earlier processes have recorded."""
        stored = self._stored.take(self._client, transaction, namespace, name)
        own = [event for event in stored if event.get("reportingInstance") == self._instance]
        for event in sorted(own, key=_last_time):
            key = _isomorphism(event)
            last = parse_time(_last_time(event))
            latest = max(last, self._series.get(key, last))
            self._recorded[key] = _Recorded(name_of(event), latest, "series" in event)

    def remember(self, now: datetime) -> Any:
        """Return when the series that go on were last observed, as JSON; None for none."""
        series = {
            **self._series,
            **{key: last for key, (_, last, is_series) in self._recorded.items() if is_series},
        }
        return {
            key: last.isoformat() for key, last in series.items() if now - last <= SERIES_END
        } or None

    def recall(self, memory: Any) -> None:
        """Go on from what ``remember`` gave in another process."""
        self._series = {key: parse_time(last) for key, last in (memory or {}).items()}
        self._recorded, self._stored = {}, StoredEvents(is_recalled=True)


def _last_time(event: Object) -> str:
    return str((event.get("series") or {}).get("lastObservedTime") or event["eventTime"])


def _isomorphism(event: Object) -> str:
    """Return a key that is equal for events that only differ in time and note (the reference
    includes the resource version of the object)."""
    fields = (
        "type",
        "action",
        "reason",
        "reportingComponent",
        "reportingInstance",
        "involvedObject",
        "related",
    )
    return repr(
        [
            sorted(value.items()) if isinstance(value := event.get(field), dict) else value
            for field in fields
        ]
    )
