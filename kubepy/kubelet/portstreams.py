"""One connection to a port of a pod, as bytes in both directions.

What listens in the model speaks HTTP/1.1, so that the bytes of a client are read as requests, each
of which is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable

import h11

from kubepy.kubelet.inside import PodReply, PodRequest

MAX_HEADERS = 64 * 1024


Exchange = Callable[[PodRequest], PodReply]


class PortStream:
    """The far end of a connection.

    :ivar is_closed: the far end has closed the connection.
    """

    def __init__(self) -> None:
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADERS)
        self._request: h11.Request | None = None
        self._body = bytearray()
        self.is_closed = False

    def receive(self, data: bytes, exchange: Exchange) -> bytes:
        """Take bytes of the client, b"" for its end; return what is sent back.

        :param exchange: answers a request; what it raises is raised here.
        """
        if self.is_closed:
            return b""
        sent = bytearray()
        try:
            self._connection.receive_data(data)
            while not self.is_closed and self._take(self._connection.next_event(), sent, exchange):
                pass
        except h11.RemoteProtocolError:
            sent += self._refusal()
            self.is_closed = True
        return bytes(sent)

    def _take(self, event: object, sent: bytearray, exchange: Exchange) -> bool:
        """Take one event of the client; tell whether there may be more."""
        if isinstance(event, h11.Request):
            self._request = event
            self._body.clear()
            if self._connection.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                sent += self._connection.send(go_on) or b""
            return True
        if isinstance(event, h11.Data):
            self._body += event.data
            return True
        if isinstance(event, h11.EndOfMessage):
            sent += self._reply(exchange)
            return True
        if isinstance(event, h11.ConnectionClosed):
            self.is_closed = True
        return False

    def _reply(self, exchange: Exchange) -> bytes:
        request = self._request
        assert request is not None
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        method = request.method.decode()
        reply = exchange(
            PodRequest(
                method,
                request.target.decode("latin-1"),
                headers,
                bytes(self._body),
            )
        )
        fields = dict(reply.headers)
        names = {name.lower() for name in fields}
        if "content-length" not in names:
            fields["Content-Length"] = str(len(reply.body))
        events: list[h11.Event] = [
            h11.Response(
                status_code=reply.status, headers=list(fields.items()), reason=reply.reason.encode()
            )
        ]
        if method != "HEAD":
            events.append(h11.Data(data=reply.body))
        events.append(h11.EndOfMessage())
        sent = b"".join(self._connection.send(event) or b"" for event in events)
        if self._connection.our_state is h11.MUST_CLOSE:
            self.is_closed = True
        else:
            self._connection.start_next_cycle()
        return sent

    def _refusal(self) -> bytes:
        """Return the answer to what is no HTTP."""
        if self._connection.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return b""
        headers = [("Content-Length", "0"), ("Connection", "close")]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.EndOfMessage(),
        )
        return b"".join(self._connection.send(event) or b"" for event in events)
