"""The health of a server."""

from __future__ import annotations

from kubepy.server.messages import TEXT, Handler, RequestInfo, Response


def find_handler(info: RequestInfo) -> Handler | None:
    """Return the handler of a request, None where there is none."""
    if info.parts in (("healthz",), ("livez",), ("readyz",)):
        return lambda call: Response(200, b"ok", TEXT)
    return None
