"""Events of controllers, scheduler and kubelets about objects (``client-go/tools/record``).

A :class:`Recorder` belongs to one component. As upstream it counts an event that comes again
instead of storing it twice, puts many similar ones into one, and drops events about an object that
has had too many.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from kubepy.api.clock import EPOCH, Ids, format_time, parse_time
from kubepy.api.errors import AlreadyExists
from kubepy.api.meta import Object, name_of, namespace_of, object_reference
from kubepy.api.values.names import dns1123_subdomain
from kubepy.apiserver.client import Client
from kubepy.apiserver.transaction import RequestTransaction
from kubepy.storage import Key

EVENTS = "events"
MAX_SIMILAR = 10  # from so many different messages with one reason on they become one event,
SIMILAR_WITHIN = 600.0  # if they are not further apart than these seconds
BURST = 25  # events of one type about one object that are let through at once,
PER_SECOND = 1 / 300  # and as many more with time
EVENTS_LAST = timedelta(hours=1)  # an event is kept for so long after it was last written
FOUND_SINGLY = 16  # objects whose stored events are each looked up
COMBINED = "(combined from similar events): "


class EventParts(Protocol):
    """An event of an object about which much is said at once.

    :ivar type: Normal or Warning.
    :ivar field_path: the part of the object that the event is about.
    """

    @property
    def type(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def field_path(self) -> str: ...


class _Parts(NamedTuple):
    type: str
    reason: str
    message: str
    field_path: str


class Recorder:
    """Records events of one component (``daemonset-controller``) with the cluster's clock."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._clock = client.clock
        self._ids = client.ids
        self._component = component
        self._correlator: Correlator = client.event_memories.setdefault(component, Correlator())

    def event(
        self,
        obj: Mapping[str, Any],
        event_type: str,
        reason: str,
        message: str,
        *,
        field_path: str = "",
        host: str = "",
    ) -> None:
        """Record an event about an object; about one without a namespace it is in ``default``.

        An event that cannot be stored, because its namespace is going or gone, is dropped as
        upstream drops it.

        :param event_type: Normal or Warning.
        :param field_path: the part of the object that the event is about.
        :param host: the node that the component runs on.
        """
        self.events(obj, (_Parts(event_type, reason, message, field_path),), host=host)

    def events(
        self, obj: Mapping[str, Any], events: Sequence[EventParts], *, host: str = ""
    ) -> None:
        """Record events about an object that have come one after the other at the same moment, as
        :meth:`event` records one."""
        now = self._clock.now()
        namespace = namespace_of(obj) or "default"
        time = format_time(now)
        reference = object_reference(obj)
        source = {"component": self._component}
        if host:
            source["host"] = host
        with self._client.transaction() as transaction:
            self._load_stored(transaction, namespace, reference.get("name", ""))
            is_taken = takes_events(transaction, namespace)
            number = 0
            for parts in events:
                about = reference
                if parts.field_path:
                    about = {**reference, "fieldPath": parts.field_path}
                event = {
                    "apiVersion": "v1",
                    "count": 1,
                    "eventTime": None,
                    "firstTimestamp": time,
                    "involvedObject": about,
                    "kind": "Event",
                    "lastTimestamp": time,
                    "message": parts.message,
                    "metadata": {"namespace": namespace},
                    "reason": parts.reason,
                    "reportingComponent": self._component,
                    "reportingInstance": host,
                    "source": source,
                    "type": parts.type,
                }
                decision = self._correlator.correlate(event, now)
                if decision is not None and is_taken:
                    number = self._write(transaction, decision, now, number)

    def silent_rounds(self, obj: Mapping[str, Any], event_type: str, period: float) -> int:
        """Return in how many rounds, each so many seconds after the one before, no event of a type
        about an object would be let through."""
        return len(self._correlator.drops(_subject(_event_about(obj, event_type)), period))

    def drop(
        self,
        obj: Mapping[str, Any],
        event_type: str,
        events: Sequence[tuple[str, str]],
        times: int,
        period: float,
    ) -> None:
        """Count the events of so many silent rounds, in each of which the same ones came.

        :param events: the reason and the message of each.
        """
        event = _event_about(obj, event_type)
        with self._client.transaction() as transaction:
            self._load_stored(transaction, namespace_of(event), name_of(obj))
        drops = self._correlator.drops(_subject(event), period)[:times]
        for reason, message in events:
            self._correlator.drop({**event, "reason": reason, "message": message}, drops)

    def _load_stored(self, transaction: RequestTransaction, namespace: str, name: str) -> None:
        """Read the events about an object that earlier processes have recorded."""
        for old in self._correlator.stored.take(self._client, transaction, namespace, name):
            if old.get("source", {}).get("component") == self._component:
                self._correlator.add_stored(old)

    def _write(
        self,
        transaction: RequestTransaction,
        decision: EventDecision,
        now: datetime,
        number: int,
    ) -> int:
        """Write an event under the first free name from a number on; return the number from which
        the next one is free."""
        event, before = decision
        if before is not None:
            key = Key(EVENTS, namespace_of(event), before)
            old = transaction.get(key)
            if old is not None:
                metadata = dict(old["metadata"])
                transaction.update(key, {**event, "metadata": metadata}, old)
                self._correlator.set_written()
                return number
            event |= {
                "count": 1,
                "firstTimestamp": event["lastTimestamp"],
            }  # it was deleted, or is over

        number = store_event(transaction, event, now, self._ids, number)
        self._correlator.set_name(event, now)
        return number + 1


def store_event(
    transaction: RequestTransaction, event: Object, now: datetime, ids: Ids, number: int = 0
) -> int:
    """Store a new event, named ``<object>.<time in nanoseconds, in hex>``, and return the number in
    its name.

    Where time stands, or another component records at the same moment, the next name that is free
    is taken.

    :param number: the first number whose name may be free, if the time is not later.
    """
    metadata = event["metadata"]
    about = event["involvedObject"].get("name", "")
    nanoseconds = max((now - EPOCH) // timedelta(microseconds=1) * 1000, number)
    metadata["creationTimestamp"] = format_time(now)
    while True:
        key = Key(EVENTS, metadata["namespace"], _event_name(about, nanoseconds))
        if not begins_names(about):
            key = key._replace(name=transaction.recorded_uid(ids, key, "name"))
        metadata["name"] = key.name
        metadata["uid"] = transaction.recorded_uid(ids, key, "uid")
        try:
            transaction.create(key, event, is_plain=True)
        except AlreadyExists:
            nanoseconds += 1
        else:
            return nanoseconds


@lru_cache(maxsize=1024)
def begins_names(about: str) -> bool:
    """Tell whether the names of events about an object of a name begin with that."""
    return not dns1123_subdomain(_event_name(about, 2**64 - 1))


def _event_name(about: str, nanoseconds: int) -> str:
    return f"{about}.{nanoseconds & 2**64 - 1:x}"


def _event_about(obj: Mapping[str, Any], event_type: str) -> Object:
    """Return what of an event tells which others count with it."""
    return {
        "involvedObject": object_reference(obj),
        "metadata": {"namespace": namespace_of(obj) or "default"},
        "type": event_type,
    }


class StoredEvents:
    """The events that earlier processes have recorded.

    After a checkpoint, which holds the rest, those about the object of a new event are enough;
    names begin with that of the object. They are looked up for one object at a time; from some
    objects on the names of all are read at once.

    :ivar is_recalled: the recorder goes on from a checkpoint.
    """

    def __init__(self, *, is_recalled: bool = False) -> None:
        self.is_recalled = is_recalled
        self._namespaces: set[str] = set()  # whose events have all been taken
        self._taken: set[tuple[str, str]] = set()  # the objects by namespace and name
        self._unread: dict[
            str, dict[str, list[str]]
        ] = {}  # names of all events, by namespace and object

    def take(
        self, client: Client, transaction: RequestTransaction, namespace: str, name: str
    ) -> list[Object]:
        """Return the events that must be known before one about an object is recorded, each event
        once.

        Events about objects that were asked for before are left out: what the recorder knows of
        them may be newer.
        """
        if namespace in self._namespaces or (namespace, name) in self._taken:
            return []
        if not self.is_recalled or not begins_names(name):
            self._namespaces.add(namespace)
            return [
                event
                for event in transaction.list(EVENTS, namespace)
                if (namespace, name_of(event).rpartition(".")[0]) not in self._taken
            ]

        if namespace not in self._unread:
            is_single = len(self._taken) < FOUND_SINGLY
            names: dict[str, list[str]] = {}
            for stored_name in client.names_recorded(
                EVENTS, namespace, f"{name}." if is_single else ""
            ):
                names.setdefault(stored_name.rpartition(".")[0], []).append(stored_name)
            if not is_single:
                self._unread[namespace] = names
        else:
            names = self._unread[namespace]

        self._taken.add((namespace, name))
        stored = (
            transaction.get(Key(EVENTS, namespace, stored_name))
            for stored_name in names.pop(name, ())
        )
        return [event for event in stored if event is not None]

    def keep(self, objects: Collection[tuple[str, str]]) -> None:
        """Keep in mind of which of some objects, by namespace and name, the events were taken; of
        no others there are any."""
        self._taken.intersection_update(objects)


def takes_events(transaction: RequestTransaction, namespace: str) -> bool:
    """Return whether the namespace is there and not terminating."""
    stored = transaction.get(Key("namespaces", "", namespace))
    if stored is None:
        return False
    return bool(stored.get("status", {}).get("phase") != "Terminating")


# --- correlation ----------------------------------------------------------------------------------


class EventDecision(NamedTuple):
    """An event to write, and the name of the stored one that it replaces, or None for a new one."""

    event: Object
    name: str | None


class _Log(NamedTuple):
    """The last state of an event that may come again; ``is_behind``: it is stored with a lower
    count."""

    name: str
    times: int
    first: str
    last: datetime
    is_behind: bool = False


class _Similar(NamedTuple):
    """The different messages about one object with one reason, of late."""

    messages: dict[str, None]
    last: datetime


class _Allowance(NamedTuple):
    """A token bucket for the events about one object, as it was when the last event came."""

    tokens: float
    last: datetime

    def tokens_at(self, now: datetime) -> float:
        return min(float(BURST), self.tokens + (now - self.last).total_seconds() * PER_SECOND)


EventKey = tuple[str, ...]


class Correlator:
    """Decides whether an event is new, counted, put into one with others, or dropped
    (``EventCorrelator``).

    Reads no clock and writes nothing. Where there is a checkpoint it goes on in the next process as
    in this one.

    :ivar stored: the stored events that it has not seen yet.
    """

    def __init__(self) -> None:
        self._logs: dict[EventKey, _Log] = {}
        self._similar: dict[EventKey, _Similar] = {}
        self._allowances: dict[EventKey, _Allowance] = {}
        # How often events have come that another process stored with a lower count, and when the
        # last time was.
        self._counts: dict[EventKey, tuple[int, datetime]] = {}
        self.stored = StoredEvents()
        self._key: EventKey = ()

    def correlate(self, event: Object, now: datetime) -> EventDecision | None:
        """Decide what to write; None drops the event."""
        subject = _subject(event)
        event, self._key = self._aggregate(event, subject, now)
        name = self._observe(event, now)
        allowance = self._allowances.get(subject, _Allowance(BURST, now))
        tokens = allowance.tokens_at(now)
        if tokens < 1:
            self._allowances[subject] = _Allowance(tokens, now)
            return None
        self._allowances[subject] = _Allowance(tokens - 1, now)
        return EventDecision(event, name)

    def drops(self, subject: EventKey, period: float) -> list[_Allowance]:
        """Return the allowances of a subject in the coming rounds in which all its events are
        dropped."""
        allowance = self._allowances.get(subject)
        drops: list[_Allowance] = []
        while allowance is not None:
            now = allowance.last + timedelta(seconds=period)
            allowance = _Allowance(allowance.tokens_at(now), now)
            if allowance.tokens >= 1:
                break
            drops.append(allowance)
        return drops

    def drop(self, event: Object, drops: Sequence[_Allowance]) -> None:
        """Count an event that has come, and was dropped, with each of some allowances."""
        subject = _subject(event)
        for allowance in drops:
            event, self._key = self._aggregate(event, subject, allowance.last)
            self._observe(event, allowance.last)
            self._allowances[subject] = allowance

    def set_name(self, event: Object, now: datetime) -> None:
        """Note the name under which the event of the last decision was stored."""
        last = now.replace(microsecond=0)
        self._logs[self._key] = _Log(name_of(event), event["count"], event["firstTimestamp"], last)

    def set_written(self) -> None:
        """Note that the event of the last decision was stored with its count."""
        self._logs[self._key] = self._logs[self._key]._replace(is_behind=False)

    def add_stored(self, event: Object) -> None:
        """Add an event that is stored already."""
        similar = (*_subject(event), event["reason"])
        is_combined = event["message"].startswith(COMBINED)
        key = similar if is_combined else _event_key(similar, event)
        count = event.get("count", 1)
        last = parse_time(event["lastTimestamp"])
        times, observed = self._counts.pop(key, (count, last))
        self._logs[key] = _Log(
            name_of(event), max(times, count), event["firstTimestamp"], observed, times > count
        )
        if not is_combined and not self.stored.is_recalled:
            messages, latest = self._similar.get(similar, _Similar({}, last))
            self._similar[similar] = _Similar(
                {**messages, event["message"]: None}, max(latest, last)
            )

    def remember(self, now: datetime) -> Any:
        """Return what cannot be read off the stored events, as JSON; None for nothing. Forget what
        is over."""
        self._forget_expired(now)
        for similar in [
            similar for similar, record in self._similar.items() if _is_over(record, now)
        ]:
            del self._similar[similar]

        for subject in [
            key for key, allowance in self._allowances.items() if allowance.tokens_at(now) >= BURST
        ]:
            del self._allowances[subject]

        counts = {
            **self._counts,
            **{key: (log.times, log.last) for key, log in self._logs.items() if log.is_behind},
        }
        memory = (
            [
                [key, list(messages), last.isoformat()]
                for key, (messages, last) in self._similar.items()
            ],
            [[key, tokens, last.isoformat()] for key, (tokens, last) in self._allowances.items()],
            [
                [key, times, last.isoformat()]
                for key, (times, last) in counts.items()
                if now - last < EVENTS_LAST
            ],
        )
        if any(memory):
            return memory
        return None

    def recall(self, memory: Any) -> None:
        """Go on from what ``remember`` gave in another process."""
        similar, allowances, counts = memory or ((), (), ())
        self._similar = {
            tuple(key): _Similar(dict.fromkeys(messages), parse_time(last))
            for key, messages, last in similar
        }
        self._allowances = {
            tuple(key): _Allowance(tokens, parse_time(last)) for key, tokens, last in allowances
        }
        self._counts = {tuple(key): (times, parse_time(last)) for key, times, last in counts}
        self.stored = StoredEvents(is_recalled=True)
        self._logs = {}

    def _forget_expired(self, now: datetime) -> None:
        """Forget the events that are not stored any more; when one of them comes again it is a new
        one."""
        expired = [key for key, log in self._logs.items() if now - log.last > EVENTS_LAST]
        for key in expired:
            del self._logs[key]
        if expired:
            self.stored.keep(
                {(namespace or "default", name) for _, namespace, name, *_ in self._logs}
            )

    def _aggregate(
        self, event: Object, subject: EventKey, now: datetime
    ) -> tuple[Object, EventKey]:
        """Return the event and its key, or one in place of many similar ones
        (``EventAggregate``)."""
        key = (*subject, event["reason"])
        message = event["message"]
        record = self._similar.get(key)
        messages = {} if record is None or _is_over(record, now) else record.messages
        messages[message] = None
        self._similar[key] = _Similar(messages, now)
        if len(messages) < MAX_SIMILAR:
            return event, _event_key(key, event)
        messages.pop(next(iter(messages)))  # upstream drops any one
        return {**event, "message": COMBINED + message}, key

    def _observe(self, event: Object, now: datetime) -> str | None:
        """Count an event that has been there before, and return its name then
        (``eventObserve``)."""
        log = self._logs.get(self._key)
        if log is None:
            return None
        times = log.times + 1
        event["count"] = times
        event["firstTimestamp"] = log.first
        self._logs[self._key] = log._replace(times=times, last=now, is_behind=True)
        return log.name


def _is_over(record: _Similar, now: datetime) -> bool:
    return (now - record.last).total_seconds() > SIMILAR_WITHIN


def _subject(event: Object) -> EventKey:
    """Return what tells the events of one type about one object from all others."""
    reference = event["involvedObject"]
    return (
        reference.get("kind", ""),
        reference.get("namespace", ""),
        reference.get("name", ""),
        reference.get("uid", ""),
        reference.get("apiVersion", ""),
        event["type"],
    )


def _event_key(similar: EventKey, event: Object) -> EventKey:
    """Return what tells an event apart from others about its object: its message and the part of
    the object, if it names one (``getEventKey``)."""
    field_path = event["involvedObject"].get("fieldPath")
    if field_path:
        return (*similar, event["message"], field_path)
    return (*similar, event["message"])
