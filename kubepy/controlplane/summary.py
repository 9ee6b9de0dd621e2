"""What a run of the manager did, and what is left for later."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import uid_of
from kubepy.runtime.reconcile import Key, WatchEvent


class SyncFailure(NamedTuple):
    """A sync that raised; its key is tried again after its back-off."""

    reconciler: str
    key: Key
    why: str


class Due(NamedTuple):
    """A key that is to be looked at again at a time."""

    time: datetime
    reconciler: str
    key: Key


class Change(NamedTuple):
    """``verb``: created, configured, deleted. ``kind``: the object's own; its resource may be gone with its definition.
    """

    key: Key
    verb: str
    kind: str

    @property
    def printed_name(self) -> str:
        """The object as kubectl names it: ``daemonset.apps/agent``."""
        plural, dot, group = self.key.resource.partition(".")
        return f"{self.kind.lower() or plural}{dot}{group}/{self.key.name}"


class Summary:
    """What changed over a run, net: an object that was made and removed again does not show."""

    def __init__(self) -> None:
        self.failures: list[SyncFailure] = []
        self.due: list[Due] = []  # what remains, earliest first
        self._before: dict[Key, str] = {}  # uid before the run, "" where there was none
        self._after: dict[Key, str] = {}
        self._kinds: dict[Key, str] = {}

    def record(self, event: WatchEvent) -> None:
        self._before.setdefault(event.key, uid_of(event.old) if event.old else "")
        self._after[event.key] = uid_of(event.new) if event.new else ""
        self._kinds[event.key] = (event.new or event.old or {}).get("kind", "")

    def touched(self) -> int:
        """How many objects were changed, those included that are as they were before by now."""
        return len(self._after)

    def changes(self) -> list[Change]:
        """In the order in which objects were first changed."""
        found = []
        for key, before in self._before.items():
            after = self._after[key]
            if before or after:
                verb = "configured" if before == after else "created" if after else "deleted"
                found.append(Change(key, verb, self._kinds[key]))
        return found
