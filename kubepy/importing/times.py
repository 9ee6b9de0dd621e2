"""The newest time of a source: the moment at which it was recorded, as far as its objects tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from kubepy.api.clock import CLOCK_YEARS, parse_time
from kubepy.api.meta import Object
from kubepy.storage import Key

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})")
# Fields outside of a status that a server or a controller writes as something happens.
_EVENT_FIELDS = ("firstTimestamp", "lastTimestamp", "eventTime")
_LEASE_FIELDS = ("acquireTime", "renewTime")
# In the status of custom resources, of which nothing is known, only these: others may lie ahead.
_CONDITION_FIELDS = ("lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime")


def newest_time(objects: Iterable[tuple[Key, Object]]) -> datetime | None:
    """Return the newest moment at which something has happened to the objects; None where they name
    none.

    Times that lie ahead (a deletion's end, a certificate's expiry) are not among those that are
    looked at.
    """
    newest: datetime | None = None
    newest_text = ""
    for key, obj in objects:
        for text in _times_of(key, obj):
            if text.endswith("Z") and text[:19] < newest_text[:19]:
                continue
            moment = _moment(text)
            if moment is not None and (newest is None or moment > newest):
                newest, newest_text = moment, text if text.endswith("Z") else ""
    return newest


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_time(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    if moment.year not in CLOCK_YEARS:
        return None
    return moment


def _times_of(key: Key, obj: Object) -> Iterator[str]:
    metadata = obj["metadata"]
    yield from _texts(metadata.get("creationTimestamp"))
    for entry in metadata.get("managedFields") or ():
        yield from _texts(entry.get("time"))
    if key.resource == "events":
        for field in _EVENT_FIELDS:
            yield from _texts(obj.get(field))
        yield from _texts((obj.get("series") or {}).get("lastObservedTime"))
    elif key.resource == "leases.coordination.k8s.io":
        for field in _LEASE_FIELDS:
            yield from _texts((obj.get("spec") or {}).get(field))
    elif _is_built_in(key.resource):
        yield from _all_texts(obj.get("status"))
    else:
        yield from _times_of_conditions(obj.get("status"))


def _is_built_in(resource: str) -> bool:
    group = resource.partition(".")[2]
    return "." not in group or group.endswith(".k8s.io")


def _times_of_conditions(status: Any) -> Iterator[str]:
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict):
            for field in _CONDITION_FIELDS:
                yield from _texts(condition.get(field))


def _all_texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value that are times."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _all_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _all_texts(item)
    else:
        yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and _TIME.fullmatch(value):
        yield value
