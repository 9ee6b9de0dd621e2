"""Watches: the changes of the objects that a client has chosen, as a stream.

A watch reads from the :mod:`watch cache <kubepy.server.watchcache>`, in which changes are kept for
a while. Watches for the same objects in the same form share a :class:`Channel`, which encodes each
change once, in a thread of the backend. A watcher has no queue: it has a place in the history, and
reads on when its client has read. One that is so slow that the changes after its place are
forgotten loses its connection.

Upstream: ``apiserver/pkg/endpoints/handlers/watch.go``, ``apiserver/pkg/storage/cacher``.
"""

from __future__ import annotations

import asyncio
import random
import time
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.selectors import parse_fields
from kubepy.apiserver.client import CRDS
from kubepy.apiserver.request import ListOptions
from kubepy.apiserver.server import drop
from kubepy.server import tables
from kubepy.server.encodings import (
    Form,
    View,
    encode_bookmark,
    encode_columns,
    encode_deleted,
    encode_records,
    encode_status,
    frame,
    select,
)
from kubepy.server.handlers import ServedRequest
from kubepy.server.lists import CATCH_UP_SECONDS, parse_revision, require_present
from kubepy.server.messages import (
    JSON,
    YAML,
    HandlerContext,
    HttpRequest,
    RequestInfo,
    StreamResponse,
)
from kubepy.server.negotiation import STREAMED
from kubepy.server.parameters import ListParameters, list_parameters
from kubepy.server.streaming import wait_for
from kubepy.server.watchcache import UNKNOWN, CachedEvent, Encodings, Touched
from kubepy.storage.state import ObjectRecord

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application
    from kubepy.server.watchcache import WatchCache

T = TypeVar("T")
MIN_REQUEST_SECONDS = (
    1800.0  # ``MinRequestTimeout``: a watch without timeoutSeconds takes one to two times as long
)
BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0  # before the end
CHUNK_OBJECTS = 125  # of the initial events in one piece
CHUNK_EVENTS = 500
MAX_FRAMES, MAX_FRAME_BYTES = 2_000, 4 << 20  # that a channel keeps
MAX_PIECE = 256 << 10
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"

Frame = tuple[int, bytes]  # the revision of an event, and how it stands in the stream


class WatchStart(NamedTuple):
    """The beginning of a watch.

    :ivar initial: the objects that are there come first, as additions.
    :ivar revision: that the cache must have for them; else the one after which the changes are
        wanted.
    """

    view: View
    parameters: ListParameters
    initial: bool
    revision: int
    headers: tuple[tuple[str, str], ...]


async def watch(
    application: Application, request: HttpRequest, info: RequestInfo, user: Object
) -> StreamResponse:
    """Answer a watch. Raises Status for a request that is not understood; what is wrong with its
    resourceVersion is an event of the stream."""
    asked = time.monotonic()
    warnings: dict[str, None] = {}

    def begin(cluster: LocalCluster) -> WatchStart:
        served = cluster.for_requests_of(user, lambda text: warnings.update({text: None}))
        context = HandlerContext(request, info, served, application)
        return _begin(context, application.watch_cache, asked, warnings)

    def new_context(cluster: LocalCluster) -> HandlerContext:
        return HandlerContext(request, info, cluster.for_requests_of(user, drop), application)

    start = await application.read(begin)
    view = start.view
    watches = Watches.of(application)
    await watches.require_revision(0)
    channel = Channel(watches, view, new_context)
    seconds = float(start.parameters.timeout_seconds or 0) or MIN_REQUEST_SECONDS * (
        1 + random.random()
    )
    content_type = (
        JSON if view.media.media_type == JSON else f"{view.media.media_type};stream=watch"
    )
    watcher = Watcher(watches, channel, start, time.monotonic() + seconds)
    return StreamResponse(
        200,
        watcher.pieces(),
        application.stopping,
        content_type,
        start.headers,
        watcher.is_complete,
    )


def _begin(
    context: HandlerContext, cache: WatchCache, asked: float, warnings: dict[str, None]
) -> WatchStart:
    """Find out what a watch is about. Raises Status.

    :param warnings: those of the context, in which more may come.
    """
    served = ServedRequest.of(context)
    resource, media, info = served.resource, served.media, context.info
    if media.media_type == YAML:
        raise errors.NotAcceptable(
            f"only the following media types are accepted: {', '.join(STREAMED)}"
        )

    parameters = list_parameters(context.request, info)
    options = ListOptions(parameters.label_selector, parameters.field_selector)
    namespace = info.namespace if resource.namespaced else ""
    if "watch" not in resource.verbs:
        raise errors.method_not_supported(resource.key, "watch")
    terms = parse_fields(options.field_selector)
    name = next(
        (term.value for term in terms if term.field == "metadata.name" and not term.negated), ""
    )
    table = (
        tables.table_options(context.request) if media.target is not None else tables.TableOptions()
    )
    definitions = cache.definitions_revision if resource.custom else 0
    view = View(
        resource,
        namespace,
        name,
        options,
        media._replace(pretty=False, stream=""),
        table,
        definitions,
    )
    context.client.choose(view.request, [])  # the selectors, and warnings of the version
    revision = parse_revision(parameters.resource_version)
    initial = parameters.send_initial_events
    if initial is None:
        initial = parameters.resource_version in ("", "0")
    if parameters.resource_version == "":
        revision, _ = cache.look_in(context.cluster, resource.storage_key, namespace, asked)
    return WatchStart(view, parameters, initial, revision, _warning_headers(warnings))


def _warning_headers(warnings: dict[str, None]) -> tuple[tuple[str, str], ...]:
    texts = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    return tuple(("warning", f'299 - "{text}"') for text in texts)


class Watches:
    """All watches of an application."""

    def __init__(self, application: Application) -> None:
        self.read = application.read
        self.cache = application.watch_cache
        self._channels: dict[View, Channel] = {}
        self._counts: dict[str, Counter[Form]] = {}  # of the channels, by resource …
        self._forms: dict[str, frozenset[Form]] = {}  # … and those that there are
        self._loop = asyncio.get_running_loop()
        self.cache.subscribe(self._hear)

    async def require_revision(self, revision: int) -> None:
        """Wait until the cache has a revision. Raises ServiceUnavailable."""
        deadline = self._loop.time() + CATCH_UP_SECONDS
        while self.cache.revision < revision and not self.cache.is_closed:
            if self._loop.time() > deadline:
                raise errors.ServiceUnavailable("the watch cache is not up to date")
            await asyncio.sleep(0.005)

    @staticmethod
    def of(application: Application) -> Watches:
        """Return the watches of an application, which begin with the first one."""
        cache = application.watch_cache
        if cache.watches is None:
            cache.watches = Watches(application)
        watches: Watches = cache.watches
        return watches

    def join(self, channel: Channel) -> Channel:
        """Return the channel of equal watches for a watcher to read, which leaves it in the end:
        another one that is there already, or else this one."""
        equal = self._channels.get(channel.view)
        if equal is None:
            self._channels[channel.view] = channel
            self._count_form(channel.view, 1)
        else:
            channel = equal
        channel.watchers += 1
        channel.wake()  # it may have begun some time ago, unheard
        return channel

    def forget(self, channel: Channel) -> None:
        if self._channels.get(channel.view) is channel:
            del self._channels[channel.view]
            self._count_form(channel.view, -1)

    def _count_form(self, view: View, change: int) -> None:
        """Count the channels in each form of whole objects, and note the forms for other
        threads."""
        if view.media.target is not None:
            return
        resource = view.resource.storage_key
        counts = self._counts.setdefault(resource, Counter())
        counts[view.form] += change
        if not counts[view.form]:
            del counts[view.form]
        self._forms[resource] = frozenset(counts)

    def forms_of(self, resource: str, api_version: str, media_type: str) -> list[Form]:
        """Return the forms in which whole objects of a resource are watched, in a version and a
        media type. Any thread may ask."""
        return [
            form
            for form in self._forms.get(resource, ())
            if (form.api_version, form.media_type) == (api_version, media_type)
        ]

    def _hear(self, touched: Touched | None) -> None:
        """Hear from the thread of the cache that something has changed."""
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            self._loop.call_soon_threadsafe(self._pass_on, touched)

    def _pass_on(self, touched: Touched | None) -> None:
        for channel in list(self._channels.values()):
            resource = channel.view.resource
            if touched is None:
                channel.end(
                    None if self.cache.is_closed else errors.Expired("too old resource version")
                )
            elif resource.storage_key in touched:
                channel.wake()
            if touched and resource.custom and CRDS in touched:
                channel.check_definition()


class Channel:
    """The changes of the objects of one view, encoded, for all that watch it.

    :param new_context: makes a context for the thread in which events are encoded; it drops
        warnings.

    :ivar position: the revision up to which the frames are complete.
    :ivar floor: the revision after which they begin.
    :ivar watchers: how many there are.
    :ivar error: ended the channel.
    """

    def __init__(
        self, watches: Watches, view: View, new_context: Callable[[LocalCluster], HandlerContext]
    ) -> None:
        self.view = view
        self.watchers = 0
        self.is_ended = False
        self.error: errors.Status | None = None
        self.columns: bytes | None = None
        self._watches = watches
        self._new_context = new_context
        self.floor = self.position = watches.cache.revision
        self._frames: list[Frame] = []
        self._size = 0
        self._changed = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None
        self._initial: weakref.ref[InitialEvents] | None = None
        self._jobs: set[asyncio.Task[None]] = set()

    def leave(self) -> None:
        """Take note that a watcher has gone; a channel without any is forgotten."""
        self.watchers -= 1
        if not self.watchers:
            self._watches.forget(self)
            self.is_ended = True

    def end(self, error: errors.Status | None) -> None:
        """Let all watchers end, with an error for their clients or without."""
        self.is_ended, self.error = True, error
        self._watches.forget(self)
        self._announce()

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait until there are more frames, or the channel ends."""
        await wait_for(self._changed, max(seconds, 0.0))

    # --- encoding

    async def run(self, function: Callable[[HandlerContext], T]) -> T:
        """Run a function in a thread of the backend."""
        return await self._watches.read(lambda cluster: function(self._new_context(cluster)))

    async def encode_records(self, records: Sequence[ObjectRecord]) -> bytes:
        """Return objects as additions. Raises Status."""
        view, encodings = self.view, self._watches.cache.encodings

        def run(context: HandlerContext) -> bytes:
            now = context.cluster.clock.now().timestamp()
            alive = [record for record in records if record.is_alive(now)]
            matches = select(context, view, encodings, alive)
            chosen = [record for record, is_chosen in zip(alive, matches, strict=True) if is_chosen]
            return b"".join(
                frame(view, ADDED, encoding)
                for encoding in encode_records(context, view, encodings, chosen)
            )

        return await self.run(run)

    async def _encode_events(self, events: list[CachedEvent]) -> list[Frame]:
        """Return the frames of the events that the view has. Raises Status."""
        events = [event for event in events if self.view.concerns(event.key)]
        if not events:
            return []
        return await self.run(
            lambda context: encode_events(context, self.view, self._watches.cache.encodings, events)
        )

    def wake(self) -> None:
        """Take in what has changed."""
        if self._filling is None or self._filling.done():
            self._filling = asyncio.create_task(self._fill())

    async def _fill(self) -> None:
        cache, key = self._watches.cache, self.view.resource.storage_key
        while not self.is_ended:
            try:
                events, reached = cache.events(key, self.position, CHUNK_EVENTS)
                if reached <= self.position:
                    return
                frames = await self._encode_events(events)
            except errors.Status as error:
                self.end(error)
                return
            except BaseException:  # clients come again, with the last revision that they have
                self.end(None)
                raise
            self.position = reached
            self._add(frames)

    def _add(self, frames: list[Frame]) -> None:
        if not frames:
            return
        self._frames += frames
        self._size += sum(len(encoded) for _, encoded in frames)
        while len(self._frames) > MAX_FRAMES or self._size > MAX_FRAME_BYTES:
            count = max(len(self._frames) // 4, 1)
            while (
                count < len(self._frames) and self._frames[count][0] == self._frames[count - 1][0]
            ):
                count += 1
            self.floor = self._frames[count - 1][0]
            self._size -= sum(len(encoded) for _, encoded in self._frames[:count])
            del self._frames[:count]
        self._announce()

    # --- reading

    async def read(self, position: int) -> tuple[bytes, int]:
        """Return what follows a revision, b"" where nothing does, and the revision that it leads
        to.

        Raises Expired, and the Status of a conversion that fails.
        """
        if position < self.floor:
            events, reached = self._watches.cache.events(
                self.view.resource.storage_key, position, CHUNK_EVENTS
            )
            return b"".join(encoded for _, encoded in await self._encode_events(events)), max(
                reached, position
            )

        start = end = bisect_right(self._frames, position, key=lambda item: item[0])
        size = 0
        while end < len(self._frames) and (
            size < MAX_PIECE or self._frames[end][0] == self._frames[end - 1][0]
        ):
            size += len(self._frames[end][1])
            end += 1

        reached = self.position if end == len(self._frames) else self._frames[end - 1][0]
        return b"".join(encoded for _, encoded in self._frames[start:end]), max(reached, position)

    def is_read(self, position: int) -> bool:
        """Return whether nothing that the cache has follows a position."""
        has_frames = bool(self._frames) and self._frames[-1][0] > position
        return not has_frames and self.latest(self.position) >= self._watches.cache.revision

    def latest(self, position: int) -> int:
        """Return the newest revision up to which nothing follows a position that has all frames."""
        try:
            events, reached = self._watches.cache.events(
                self.view.resource.storage_key, position, 1
            )
        except errors.Expired:
            return position
        return position if events else reached

    def initial_events(self) -> InitialEvents:
        """Return the objects of the view as they are now; watchers that come at the same revision
        share them."""
        cache = self._watches.cache
        initial = self._initial() if self._initial is not None else None
        if initial is None or initial.revision != cache.revision:
            records, revision = cache.snapshot(self.view.resource.storage_key, self.view.namespace)
            records = [record for record in records if self.view.concerns(record.key)]
            initial = InitialEvents(self, records, revision)
            self._initial = weakref.ref(initial)
        return initial

    async def with_columns(self, piece: bytes) -> bytes:
        """Return the first piece of a watcher with the definitions of the columns of its tables."""
        if self.columns is None:
            self.columns = await self.run(lambda context: encode_columns(context, self.view))
        return piece.replace(b'"columnDefinitions":null', b'"columnDefinitions":' + self.columns, 1)

    def check_definition(self) -> None:
        """End the channel if its custom resource is not served any more, or as another one."""
        resource = self.view.resource

        async def check() -> None:
            def find(context: HandlerContext) -> object:
                context.client.forget_custom_kinds()
                current = context.cluster.scheme.get(resource.key)
                return current.at(resource.version) if current is not None else None

            if await self.run(find) != resource:
                self.end(None)

        job = asyncio.create_task(check())
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)


class InitialEvents:
    """The objects of a view at one revision, as additions in pieces that their watchers share."""

    def __init__(self, channel: Channel, records: list[ObjectRecord], revision: int) -> None:
        self.revision = revision
        self._channel = channel
        self._records = records
        self._pieces: dict[int, asyncio.Task[bytes]] = {}

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces. Raises Status."""
        for start in range(0, len(self._records), CHUNK_OBJECTS):
            task = self._pieces.get(start)
            if task is None:
                records = self._records[start : start + CHUNK_OBJECTS]
                task = self._pieces[start] = asyncio.ensure_future(
                    self._channel.encode_records(records)
                )
            yield await asyncio.shield(task)


class Watcher:
    """One watch.

    :param deadline: the moment at which it ends.
    """

    def __init__(
        self, watches: Watches, channel: Channel, start: WatchStart, deadline: float
    ) -> None:
        self._watches = watches
        self._channel = channel
        self._start = start
        self._deadline = deadline
        self._has_columns = not start.view.is_table
        self._position = start.revision
        self._has_sent = False
        self._is_waiting = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the events in pieces, each of whole events."""
        self._channel = self._watches.join(self._channel)
        try:
            async for piece in self._begin():
                yield await self._sent(piece)
            async for piece in self._follow():
                yield await self._sent(piece)
        except errors.Status as error:
            if not self._has_sent or not isinstance(
                error, errors.Expired
            ):  # else it was too slow, and may come again
                yield self._error(error)
        finally:
            self._channel.leave()

    def is_complete(self) -> bool:
        """Return whether the watcher waits for more than the cache has."""
        return self._is_waiting and self._channel.is_read(self._position)

    async def _sent(self, piece: bytes) -> bytes:
        self._has_sent = True
        if self._has_columns:
            return piece
        self._has_columns = True
        return await self._channel.with_columns(piece)

    async def _begin(self) -> AsyncIterator[bytes]:
        """Yield the initial events, where they are wanted. Raises Status."""
        start, cache = self._start, self._watches.cache
        if start.initial or start.parameters.resource_version == "":
            current = await self._channel.run(lambda context: context.cluster.store.revision)
            require_present(start.revision, current)
            await self._watches.require_revision(start.revision)

        if not start.initial:
            if start.parameters.resource_version == "0":
                self._position = cache.revision
            return

        initial = self._channel.initial_events()
        self._position = initial.revision
        async for piece in initial.pieces():
            if piece:
                yield piece
        if start.parameters.allow_watch_bookmarks:
            yield self._bookmark(is_end=True)

    async def _follow(self) -> AsyncIterator[bytes]:
        """Yield changes, and bookmarks in between. Raises Status."""
        bookmarks = self._start.parameters.allow_watch_bookmarks
        bookmark_due = self._next_bookmark()
        while (now := time.monotonic()) < self._deadline:
            channel, before = self._channel, self._position
            piece, self._position = await channel.read(before)
            if piece:
                yield piece
            elif self._position > before:
                continue
            elif channel.is_ended:
                if channel.error is not None:
                    yield self._error(channel.error)
                return
            elif bookmarks and now >= bookmark_due:
                self._position = channel.latest(self._position)
                yield self._bookmark()
                bookmark_due = self._next_bookmark()
            else:
                self._is_waiting = True
                await channel.wait(
                    min(self._deadline, bookmark_due if bookmarks else self._deadline) - now
                )
                self._is_waiting = False

    def _next_bookmark(self) -> float:
        """Return when the next bookmark is due: each minute, and shortly before the end."""
        now = time.monotonic()
        last = self._deadline - LAST_BOOKMARK_SECONDS
        due = min(now + BOOKMARK_SECONDS, last)
        return due if due > now else self._deadline + 1.0

    def _bookmark(self, *, is_end: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(self._position)}
        if is_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        view = self._start.view
        return frame(view, BOOKMARK, encode_bookmark(view, metadata))

    def _error(self, error: errors.Status) -> bytes:
        view = self._start.view
        return frame(view, ERROR, encode_status(view, error.as_object()))


def encode_events(
    context: HandlerContext, view: View, encodings: Encodings, events: list[CachedEvent]
) -> list[Frame]:
    """Return the frames of events: an object that begins to be chosen is added, one that ceases to
    be is deleted.

    Raises Status; Expired where nobody knows any more whether an object was chosen.
    """
    olds = [event.old for event in events if event.old is not None and event.old is not UNKNOWN]
    news = [event.new for event in events if event.new is not None]
    was_chosen = dict(zip(map(id, olds), select(context, view, encodings, olds), strict=True))
    is_chosen = dict(zip(map(id, news), select(context, view, encodings, news), strict=True))
    selects_changing_fields = bool(view.options.label_selector) or view.selects_by_content
    types: list[tuple[CachedEvent, str]] = []
    for event in events:
        if event.old is UNKNOWN and selects_changing_fields:
            raise errors.Expired(f"too old resource version: {event.revision - 1}")
        matches = event.new is not None and is_chosen[id(event.new)]
        matched = (
            matches if event.old is UNKNOWN else event.old is not None and was_chosen[id(event.old)]
        )
        if matches:
            types.append((event, MODIFIED if matched else ADDED))
        elif matched:
            types.append((event, DELETED))

    present = [event.new for event, type_ in types if type_ != DELETED and event.new is not None]
    encoded = iter(encode_records(context, view, encodings, present))
    frames = []
    for event, type_ in types:
        if type_ == DELETED:
            assert event.old is not None
            encoding = encode_deleted(context, view, event.old, event.revision)
        else:
            encoding = next(encoded)
        frames.append((event.revision, frame(view, type_, encoding)))

    return frames
