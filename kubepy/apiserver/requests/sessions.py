"""One transaction as the request pipeline sees it: reads, writes, what was written, dry runs.

A :class:`Session` turns storage's errors into the API's and remembers each write with the state before it, so that
the controllers hear of their own batch without reading the change log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.watch import WatchEvent
from kubepy.storage import ConflictError, ExistsError, Key, MissingError

if TYPE_CHECKING:
    from kubepy.storage import Transaction


class Session:
    """Requests inside one transaction. With ``dry_run`` nothing is written; answers are as if it were."""

    def __init__(self, transaction: Transaction, events: list[WatchEvent], *, dry_run: bool = False) -> None:
        self._transaction = transaction
        self._events = events
        self.dry_run = dry_run

    def get(self, key: Key) -> Object | None:
        return self._transaction.get(key)

    def require(self, key: Key) -> Object:
        """Raises NotFound."""
        found = self._transaction.get(key)
        if found is None:
            raise errors.not_found(key.resource, key.name)
        return found

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        return self._transaction.list(resource, namespace)

    def create(self, key: Key, obj: Object) -> Object:
        """Raises AlreadyExists, in other words if the object that exists is being deleted."""
        if self.dry_run:
            if (found := self.get(key)) is not None:
                raise _exists(key, found)
            return obj
        try:
            stored = self._transaction.create(key, obj)
        except ExistsError:
            raise _exists(key, self.require(key)) from None
        self._events.append(WatchEvent(key, None, stored))
        return stored

    def update(self, key: Key, obj: Object, old: Object) -> Object:
        """Replace ``old``, which is the object as this session read it. Raises NotFound, Conflict."""
        if obj == old or self.dry_run:
            return obj
        if obj["metadata"] is old["metadata"]:  # storage writes the new version into it, and the old one is shared
            obj = {**obj, "metadata": dict(obj["metadata"])}
        try:
            stored = self._transaction.update(key, obj)
        except MissingError:
            raise errors.not_found(key.resource, key.name) from None
        except ConflictError:
            raise errors.conflict(key.resource, key.name, errors.MODIFIED) from None
        if stored is not old:
            self._events.append(WatchEvent(key, old, stored))
        return stored

    def charge(self, charges: Iterable[tuple[Object, Object]]) -> None:
        """Write quotas, before and after a request used of them; a dry run uses nothing."""
        for old, new in charges:
            metadata = new["metadata"]
            self.update(Key("resourcequotas", metadata["namespace"], metadata["name"]), new, old)

    def delete(self, key: Key) -> Object:
        """Remove an object; returns its last state. Raises NotFound."""
        if self.dry_run:
            return self.require(key)
        try:
            gone = self._transaction.delete(key)
        except MissingError:
            raise errors.not_found(key.resource, key.name) from None
        self._events.append(WatchEvent(key, gone, None))
        return gone


def _exists(key: Key, found: Object) -> errors.Status:
    status = errors.already_exists(key.resource, key.name)
    if found["metadata"].get("deletionTimestamp"):
        status.message = f"object is being deleted: {status.message}"
    return status
