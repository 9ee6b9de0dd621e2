"""``GET /kubepy/clock/wait?for=30s``: an answer that comes when so much of the cluster's time has
passed, or with ``until=TIME`` at a moment.

Programs whose clock can be replaced (``k8s.io/utils/clock``, a fake event loop) wait so in the
cluster's time. With ``--time=when-idle`` time stops at each of these moments, as at those of the
controllers, until the client has its answer. No API server has this path.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api import errors
from kubepy.api.clock import format_exact_time, later, parse_time
from kubepy.api.values.goformat import parse_span, quote, to_json
from kubepy.server.messages import HttpRequest, StreamResponse

if TYPE_CHECKING:
    from kubepy.server.application import Application

PATH = "/kubepy/clock/wait"


def wait(application: Application, request: HttpRequest) -> StreamResponse:
    """Answer a request to wait. Raises BadRequest, MethodNotSupported."""
    if request.method != "GET":
        raise errors.method_not_allowed()
    moment = moment_of(request, application.clock.now())

    async def pieces() -> AsyncIterator[bytes]:
        await application.timers.wait(application.clock, moment)
        yield f"{to_json({'now': format_exact_time(application.clock.now())})}\n".encode()

    def is_complete() -> bool:
        return application.clock.now() < moment

    return StreamResponse(200, pieces(), application.stopping, is_complete=is_complete)


def moment_of(request: HttpRequest, now: datetime) -> datetime:
    """Return the moment that a request names. Raises BadRequest."""
    duration, time = request.parameter("for"), request.parameter("until")
    if bool(duration) == bool(time):
        raise errors.BadRequest("one of the parameters for=DURATION and until=TIME is required")
    try:
        return later(now, parse_span(duration)) if duration else parse_time(time)
    except (ValueError, OverflowError):
        kind = "duration such as 30s" if duration else "time such as 2026-11-20T10:13:48Z"
        raise errors.BadRequest(f"{quote(duration or time)} is not a {kind}") from None
