"""The source of events: what happens in the cluster, taken into the informers and handed to the
handlers of reconcilers.

There are changes of others, which it reads from the change log when somebody polls and when a batch
begins, and those of a batch's own writes. Where it can go on from no revision it lists everything.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.errors import Expired
from kubepy.api.meta import Object, name_of, namespace_of, uid_of
from kubepy.apiserver.client import CRDS, Batch, Client
from kubepy.runtime.checkpoint import UNWATCHED
from kubepy.runtime.reconcile import (
    EVERY_RESOURCE,
    Handler,
    Informers,
    Key,
    Reconciler,
    WatchEvent,
)

if TYPE_CHECKING:
    from kubepy.storage.view import RecordedView

SHORT_RUN_SECONDS = 1.0  # a run as short as this looks for edits from outside only once


class ListWatch(NamedTuple):
    """The objects that controllers work with, as the store has recorded them.

    ``is_served``: tells of which resources; files of a kind that nothing defines are left alone.
    """

    view: RecordedView
    is_served: Callable[[str], bool] = lambda resource: True


class Freshness:
    """The age that the last look at all files may have: that of a run that began a moment ago.

    :ivar command_begun: when the command that runs the manager began (``time.monotonic``).
    """

    def __init__(self) -> None:
        self.command_begun = -math.inf
        self._since = -math.inf

    def begin_run(self) -> None:
        """Begin with the run; with the command, if that is not long ago."""
        now = time.monotonic()
        if now - self.command_begun < SHORT_RUN_SECONDS:
            self._since = self.command_begun
        else:
            self._since = now

    def expire(self) -> None:
        """Trust no look up to now: somebody has edited a file since."""
        self._since = time.monotonic()

    def max_age(self) -> float:
        """Return how many seconds ago a look is recent enough; 0 (look again) when the run is no
        short one any more."""
        passed = time.monotonic() - self._since
        if passed < SHORT_RUN_SECONDS:
            return passed
        return 0.0


class Revisions(NamedTuple):
    """The revisions up to which a source has come.

    :ivar read: changes up to it have been delivered, or are in the inbox.
    :ivar delivered: changes up to it have been delivered.
    """

    read: int = 0
    delivered: int = 0


class EventSource:
    """Takes events into the informers and hands them to the handlers of reconcilers.

    Between two batches the informers are what the cluster was at ``revisions.delivered``; the inbox
    has what others have changed since, up to ``revisions.read``. Within a batch :meth:`collect` and
    :meth:`deliver` bring both to the batch's beginning, :meth:`observe` to the batch's last write.
    The view from which the informers read what they do not know yet (``kubepy.runtime.informers``)
    goes on when a batch was committed: all that has changed is known then. The torture test
    ``histories`` compares informers with the store.

    :ivar is_stale: the informers cannot be trusted: the next batch lists everything again.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        list_watch: ListWatch,
        reconcilers: Sequence[Reconciler],
    ) -> None:
        self._client = client
        self._informers = informers
        self._view, self._is_served = list_watch
        self.freshness = Freshness()
        self.revisions = Revisions()
        self.is_stale = False
        self.is_loaded = False  # the informers hold the cluster as it was at revisions.delivered
        # of the view when the last batch was committed, and nobody else had written since
        self._committed_revision = 0
        self._inbox: list[WatchEvent] = []
        self._handlers: dict[str, list[Handler]] = {}  # by resource
        for reconciler in reconcilers:
            for resource, handler in reconciler.handlers().items():
                self._handlers.setdefault(resource, []).append(handler)
        self._handlers_of: dict[str, list[Handler]] = {}  # with those of every resource

    # --- between batches

    def resume(self, revision: int) -> None:
        """Go on from the revision of a checkpoint, unless the informers are there already."""
        if not self.is_loaded:
            self.revisions = Revisions(revision, revision)

    def restart(self) -> None:
        """List everything when the next batch begins, unless the informers are there already."""
        if not self.is_loaded:
            self.is_stale = True

    def has_events(self) -> bool:
        return self.is_stale or bool(self._inbox)

    def poll(self, max_age: float = 0.0) -> None:
        """Put the changes since the last poll into the inbox, or find out that everything must be
        listed.

        :param max_age: no look for edits from outside where all files were looked at within
            so many seconds.
        """
        try:
            if self.is_stale and not self.is_loaded:
                raise Expired("nothing was listed yet")
            revision, events = self._client.changes(self.revisions.read, max_age=max_age)
        except Expired:
            self.is_stale = True
            # the next batch lists objects of a newer revision
            self.revisions = self.revisions._replace(read=self._client.revision())
            return
        self._inbox += [event for event in events if event.key.resource not in UNWATCHED]
        delivered = self.revisions.delivered if self._inbox else revision
        self.revisions = Revisions(revision, delivered)

    # --- a batch

    def collect(self, batch: Batch) -> bool:
        """Take the changes that others made since the last batch into the inbox; return whether a
        reconciler may act on any.

        They stay there until the commit, which may fail.
        """
        self._inbox = [*self._inbox, *batch.drain()]
        return any(event.key.resource not in UNWATCHED for event in self._inbox)

    def deliver(self) -> None:
        """Take in what is in the inbox."""
        inbox = self._inbox
        if self.is_stale:
            self._relist(inbox)
        elif not self.is_loaded:
            self._load()
            self._deliver_again(inbox)
        elif self._view.revision != self._committed_revision and any(
            self._informers.is_known_in_part(event.key) for event in inbox
        ):
            self._relist(inbox)  # the view does not show any more what these were
        else:
            self._recall_before(inbox)
            self.observe_others(inbox)

    def observe_others(self, events: Iterable[WatchEvent]) -> None:
        """Take in changes that others made."""
        for event in events:
            if event.key.resource not in UNWATCHED:
                self._observe(event, _nothing)

    def observe(self, events: Iterable[WatchEvent], note: Callable[[WatchEvent], None]) -> None:
        """Take in the writes of a sync.

        :param note: is called with each change that the informers did not know yet.
        """
        for event in events:
            if event.key.resource in UNWATCHED:
                continue
            if event.old is None and not self._informers.is_known(event.key):
                self._informers.assume(event.key, None)  # it is new: nothing needs to be read
            self._observe(event, note)

    def finish(self) -> None:
        """End a batch, within its transaction: all that is in it has been delivered. The revision
        that the commit will lead to is not known yet for certain."""
        revision = self._client.revision()
        self.revisions = Revisions(revision, revision)

    def release(self) -> None:
        """Let go of the view, so that the index can be shortened when it is written."""
        self._view.release()

    def committed(self, revision: int) -> None:
        """Go on from a batch whose transaction was committed, and led to a revision: all that has
        happened up to it is delivered."""
        self.revisions = Revisions(revision, revision)
        self._inbox = []
        self._view.refresh()
        is_own = self._view.is_as_at(revision)
        self._committed_revision = self._view.revision if is_own else revision

    def failed(self, revisions: Revisions) -> None:
        """Go back to the revisions before a batch whose transaction failed. Nothing was written,
        but the informers have observed it: everything is listed again."""
        self.is_stale = True
        self.revisions = revisions

    def reload_if_overgrown(self) -> None:
        """Let the informers begin anew where they know much of what has gone, as another process
        would here."""
        if self._informers.is_overgrown():
            self._load()

    # --- observing

    def _load(self) -> None:
        """Let the informers begin anew, with what is stored now."""
        self._informers.clear()
        self._view.refresh()
        self._informers.follow(self._view, self._is_watched)
        self.is_loaded = True

    def _is_watched(self, resource: str) -> bool:
        """Return whether a reconciler watches a resource that there is."""
        if EVERY_RESOURCE not in self._handlers and resource not in self._handlers:
            return False
        if resource in UNWATCHED:
            return False
        return self._is_served(resource)

    def _recall_before(self, events: Sequence[WatchEvent]) -> None:
        """Let the informers know the objects of events as they were before these, where the view
        does not show that: another process has written between the commit of the last batch and the
        next look."""
        if self._view.revision == self._committed_revision:
            return
        for key, event in {event.key: event for event in reversed(events)}.items():
            self._informers.assume(key, event.old)

    def _observe(self, event: WatchEvent, note: Callable[[WatchEvent], None]) -> None:
        """Take an event into the informers and hand it to the handlers, unless it was observed
        already."""
        for change in _changes_to(self._informers.get(*event.key), event):
            self._informers.observe(change)
            self._handle(change)
            note(change)
            self._deliver_defined(change)

    def _deliver_again(self, events: Sequence[WatchEvent]) -> None:
        """Hand over changes that the informers hold already; the states before them are not known
        any more."""
        latest: dict[Key, WatchEvent] = {}
        for event in events:
            earlier = latest.pop(event.key, None)
            if earlier is not None and earlier.former is not None:
                event = event._replace(former=earlier.former)
            if event.new is not None:
                latest[event.key] = event
            elif event.old is not None and not self._is_there(event.key, event.old):
                self._handle_all(event.steps())
        for key, event in latest.items():
            obj = self._informers.get(*key)
            if obj is not None:
                self._handle_all(event._replace(old=None, new=obj).steps())
                self._deliver_defined(event)

    def _relist(self, inbox: Sequence[WatchEvent]) -> None:
        """List everything and hand all of it over: missing objects as deleted, those that are there
        as added.

        :param inbox: changes that are not handed over yet: they tell of deleted objects that were
            never read.
        """
        before: dict[tuple[Key, str], Object] = {}
        for event in inbox:
            if event.new is None and event.old is not None:
                before[event.key, uid_of(event.old)] = event.old
        for key, obj in self._informers.known():
            before[key, uid_of(obj)] = obj
        self._load()
        self._informers.read_everything()
        self.is_stale = False
        for (key, _), old in before.items():
            if not self._is_there(key, old):
                self._handle(WatchEvent(key, old, None))
        for key, obj in self._informers.known():
            self._handle(WatchEvent(key, None, obj))

    def _is_there(self, key: Key, obj: Object) -> bool:
        known = self._informers.get(*key)
        return known is not None and uid_of(known) == uid_of(obj)

    def _deliver_defined(self, change: WatchEvent) -> None:
        """Hand over the objects of a custom resource that a change defines as added: they could not
        be read before."""
        if not _defines_resource(change):
            return
        resource = change.key.name
        if not self._is_watched(resource):
            return
        for obj in self._client.list_stored(resource):
            event = WatchEvent(Key(resource, namespace_of(obj), name_of(obj)), None, obj)
            self._informers.observe(event)
            self._handle(event)

    def _handle_all(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            self._handle(event)

    def _handle(self, event: WatchEvent) -> None:
        resource = event.key.resource
        handlers = self._handlers_of.get(resource)
        if handlers is None:
            of_every_resource = self._handlers.get(EVERY_RESOURCE, ())
            handlers = [*self._handlers.get(resource, ()), *of_every_resource]
            self._handlers_of[resource] = handlers
        for handler in handlers:
            handler(event)


def _nothing(change: WatchEvent) -> None:
    """Take no notice of a change: it was made by others."""


def _defines_resource(event: WatchEvent) -> bool:
    """Return whether a CustomResourceDefinition, which is named as its resource, is new or has
    another spec."""
    if event.key.resource != CRDS or event.new is None:
        return False
    return event.old is None or event.old["spec"] != event.new["spec"]


def _changes_to(known: Object | None, event: WatchEvent) -> list[WatchEvent]:
    """Return the changes that an event makes to the known object: none for an old event, two for
    another object."""
    key = event.key
    new = event.new
    if new is None:
        return _deletions(known, event)
    if known is None:
        return event._replace(old=None).steps()
    if _version(new) <= _version(known):
        return []
    if uid_of(new) != uid_of(known):
        return [WatchEvent(key, known, None), WatchEvent(key, None, new)]
    return [WatchEvent(key, known, new)]


def _deletions(known: Object | None, event: WatchEvent) -> list[WatchEvent]:
    """Return what a deletion means to the known object.

    An object that was made and deleted between two looks at the change log was never known, and its
    deletion counts nevertheless: what others have noted of it (admission has charged it to a quota)
    is undone by whoever hears of it.
    """
    key = event.key
    deleted = event.old
    if known is None:
        if deleted is None:
            return []
        return event.steps()
    if deleted is None or uid_of(deleted) == uid_of(known):
        return [WatchEvent(key, known, None)]
    if _version(deleted) < _version(known):
        return []  # the known object came after the deleted one
    return [WatchEvent(key, known, None), WatchEvent(key, deleted, None)]


def _version(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)
