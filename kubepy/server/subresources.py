"""To come."""

from __future__ import annotations

from kubepy.server.messages import Handler, RequestInfo


def find_handler(info: RequestInfo) -> Handler | None:
    """Return the handler of a request, None where there is none."""
    return None
