"""A watch of a range of keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from kubepy.storage.etcd.errors import EtcdCompactedError, EtcdError
from kubepy.storage.etcd.http2 import CallFailed, ConnectionLost, Stream
from kubepy.storage.etcd.notices import WatchBatch, WatchResponse, read_watch, watch_request
from kubepy.storage.etcd.session import TRANSIENT, EtcdSession, error_of

_PATH = "/etcdserverpb.Watch/Watch"
_PAUSE = 0.05  # before a watch that was broken off is begun anew


class WatchedRange(NamedTuple):
    """The range of a watch, and what is to be told of it."""

    start: bytes
    end: bytes
    prev_kv: bool
    progress: bool


class Watch:
    """Events of a range, from a revision on.

    A connection that ends is made anew, and the watch goes on after the last event that it has
    given: nothing is lost or given twice. Raises, for good: EtcdCompactedError; UnreachableError
    when no endpoint answers for as long as the client's timeout. One thread takes the batches; any
    may close the watch.

    :ivar revision: everything up to it has been given.
    """

    def __init__(self, session: EtcdSession, watched: WatchedRange, start_revision: int) -> None:
        self._session = session
        self._watched = watched
        self._is_closed = False
        self.revision = start_revision - 1
        self._stream = self._open(time.monotonic() + session.timeout)

    def next_batch(self, timeout: float | None = None) -> WatchBatch | None:
        """Wait for the next batch; return None when the time is over or the watch was closed."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._is_closed:
            try:
                rest = None if until is None else max(0.0, until - time.monotonic())
                response = self._next_response(self._stream, rest)
            except TimeoutError:
                return None
            except ConnectionLost:
                self._reopen()
                continue
            if response is None:
                return None
            batch = self._batch(response)
            if batch is not None:
                return batch
        return None

    def __iter__(self) -> Iterator[WatchBatch]:
        """Give the batches until the watch is closed."""
        while (batch := self.next_batch()) is not None:
            yield batch

    def close(self) -> None:
        """End the watch, from any thread: who waits for its next batch gets None."""
        self._is_closed = True
        self._stream.cancel()

    @property
    def is_closed(self) -> bool:
        """Tell whether the watch was closed."""
        return self._is_closed

    def _open(self, end: float) -> Stream:
        """Begin the watch on the server, after what was given; wait until it is there."""
        watched = self._watched
        request = watch_request(
            watched.start,
            watched.end,
            self.revision + 1,
            prev_kv=watched.prev_kv,
            progress=watched.progress,
        )
        while True:
            connection = self._session.connection(end)
            # A member that is cut off from the others is to end the watch
            metadata = [("hasleader", "true"), *self._session.metadata(end)]
            try:
                stream = connection.call(_PATH, request, metadata, is_open=True)
                response = self._next_response(stream, max(0.0, end - time.monotonic()))
            except TimeoutError:
                stream.cancel()
                self._session.give_up(connection, "the server does not answer")
                raise self._session.unreachable("a watch is not answered") from None
            except ConnectionLost as lost:
                if time.monotonic() + _PAUSE >= end:
                    raise self._session.unreachable(str(lost)) from None
                time.sleep(_PAUSE)
                continue
            if response is None:
                raise EtcdError("the connection to etcd was closed")
            if self.revision < 0:
                self.revision = response.revision
            return stream

    def _reopen(self) -> None:
        stream = self._open(time.monotonic() + self._session.timeout)
        self._stream = stream
        if self._is_closed:
            stream.cancel()

    def _next_response(self, stream: Stream, timeout: float | None) -> WatchResponse | None:
        """Wait for an answer. Raises TimeoutError, ConnectionLost, and errors for good."""
        try:
            message = stream.message(timeout)
        except CallFailed as failed:
            if failed.code in TRANSIENT:
                # This member cannot: another endpoint
                self._session.give_up(stream.connection, str(failed))
                raise ConnectionLost(str(failed), is_unsent=False) from None
            if self._session.forget_stale_token(failed):
                raise ConnectionLost(str(failed), is_unsent=True) from None
            raise error_of(failed, self._session.address) from None
        if message is None:
            if self._is_closed:
                return None
            raise ConnectionLost("the server ended the watch", is_unsent=False)
        response = read_watch(message)
        if response.canceled:
            stream.cancel()
            raise self._cancelled(response)
        return response

    def _cancelled(self, response: WatchResponse) -> Exception:
        shown = f"etcd at {self._session.address.shown_endpoints}"
        if response.compact_revision:
            return EtcdCompactedError(
                f"{shown}: the revision {self.revision + 1} has been compacted: "
                f"the oldest is {response.compact_revision}",
                response.compact_revision,
            )
        reason = response.cancel_reason.removeprefix("etcdserver: ") or "no reason is given"
        return EtcdError(f"{shown} ended a watch: {reason}")

    def _batch(self, response: WatchResponse) -> WatchBatch | None:
        """Return what an answer gives; None for one that only tells that the watch has begun.

        The revision in the header of an answer with events is the newest of the store, to which
        they need not reach: a watch that catches up gets its events in parts.
        """
        if response.events:
            self.revision = response.events[-1].kv.mod_revision
        elif response.created or response.revision <= self.revision:
            return None
        else:
            self.revision = response.revision
        return WatchBatch(self.revision, response.events)
