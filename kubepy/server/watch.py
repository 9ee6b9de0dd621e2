"""Watches."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.server.application import Application
from kubepy.server.messages import HttpRequest, RequestInfo, StreamResponse


async def watch(application: Application, request: HttpRequest, info: RequestInfo, user: Object) -> StreamResponse:
    """Answer a watch."""
    raise errors.method_not_allowed()
