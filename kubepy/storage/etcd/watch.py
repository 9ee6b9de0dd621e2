"""A watch of a range of keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from kubepy.storage.etcd.errors import (
    EtcdCompactedError,
    EtcdError,
    UnreachableError,
    WatchDeniedError,
)
from kubepy.storage.etcd.http2 import CallFailed, ConnectionLost, Stream
from kubepy.storage.etcd.notices import WatchBatch, WatchResponse, read_watch, watch_request
from kubepy.storage.etcd.session import TRANSIENT, EtcdSession, error_of

_PATH = "/etcdserverpb.Watch/Watch"
_DENIED = 7  # gRPC's code
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
        self._closing = threading.Event()
        self.revision = start_revision - 1
        self._patience = time.monotonic() + session.timeout
        self._is_given_up = False
        self._stream: Stream | None = None
        while self._stream is None:
            self._try_to_open(_PAUSE)

    def next_batch(self, timeout: float | None = None) -> WatchBatch | None:
        """Wait for the next batch; return None when the time is over or the watch was closed."""
        until = None if timeout is None else time.monotonic() + timeout
        if self._is_given_up:  # who asks again is as patient as before
            self._is_given_up = False
            self._patience = time.monotonic() + self._session.timeout
        while not self._closing.is_set():
            rest = None if until is None else max(0.0, until - time.monotonic())
            if self._stream is None:
                self._try_to_open(_PAUSE if rest is None else min(rest, _PAUSE))
                if self._stream is None and rest == 0.0:
                    return None
                continue
            try:
                response = self._next_response(self._stream, rest)
            except TimeoutError:
                return None
            except ConnectionLost:
                self._stream = None
                self._patience = time.monotonic() + self._session.timeout
                continue
            batch = None if response is None else self._batch(response)
            if batch is not None:
                return batch
        return None

    def __iter__(self) -> Iterator[WatchBatch]:
        """Give the batches until the watch is closed."""
        while (batch := self.next_batch()) is not None:
            yield batch

    def close(self) -> None:
        """End the watch, from any thread: who waits for its next batch gets None."""
        self._closing.set()
        stream = self._stream
        if stream is not None:
            stream.cancel()

    @property
    def is_closed(self) -> bool:
        """Tell whether the watch was closed."""
        return self._closing.is_set()

    def _try_to_open(self, pause: float) -> None:
        """Try once to begin the watch; wait a little where etcd does not answer.

        Raises UnreachableError when it has not answered for too long, or never has.
        """
        try:
            self._stream = self._open()
        except (ConnectionLost, UnreachableError) as error:
            if self._closing.is_set():
                return
            session = self._session
            may_come_back = session.was_connected and not session.is_closed
            if not may_come_back or time.monotonic() + pause >= self._patience:
                self._is_given_up = True
                if isinstance(error, UnreachableError):
                    raise
                raise session.unreachable(str(error)) from None
            self._closing.wait(pause)
        if self._closing.is_set() and self._stream is not None:
            self._stream.cancel()

    def _open(self) -> Stream:
        """Begin the watch on the server, after what was given; wait until it is there."""
        watched = self._watched
        request = watch_request(
            watched.start,
            watched.end,
            self.revision + 1,
            prev_kv=watched.prev_kv,
            progress=watched.progress,
        )
        connection = self._session.connection(self._patience, is_patient=False)
        # A member that is cut off from the others is to end the watch
        metadata = [("hasleader", "true"), *self._session.metadata()]
        stream = connection.call(_PATH, request, metadata, is_open=True)
        try:
            response = self._next_response(stream, max(0.1, self._patience - time.monotonic()))
        except TimeoutError:
            stream.cancel()
            connection.fail("the server does not answer")
            raise ConnectionLost("a watch is not answered", is_unsent=False) from None
        if response is None:
            raise ConnectionLost("the watch was closed", is_unsent=False)
        if self.revision < 0:
            self.revision = response.revision
        return stream

    def _next_response(self, stream: Stream, timeout: float | None) -> WatchResponse | None:
        """Wait for an answer. Raises TimeoutError, ConnectionLost, and errors for good."""
        try:
            message = stream.message(timeout)
        except CallFailed as failed:
            if failed.code in TRANSIENT:
                # This member cannot: another endpoint
                self._session.leave(stream.connection)
                raise ConnectionLost(str(failed), is_unsent=False) from None
            if self._session.forget_stale_token(failed):
                raise ConnectionLost(str(failed), is_unsent=True) from None
            raise error_of(failed, self._session.address) from None
        if message is None:
            if self._closing.is_set():
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
        if "permission denied" in reason:
            return WatchDeniedError(f"{shown} ended a watch: permission denied", _DENIED)
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
