"""The values that a request is on its way to an answer: what came in, what it means, what goes
out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubepy.server.websockets import Upgrade

if TYPE_CHECKING:
    import asyncio

    from kubepy.api.meta import Object
    from kubepy.apiserver.client import Client
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TEXT = "text/plain; charset=utf-8"

Headers = tuple[tuple[str, str], ...]
GZIP_HEADERS: Headers = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))


class HttpRequest(NamedTuple):
    """A request as it came, with its whole body.

    :ivar path: as it was sent, with its percent escapes, without the query.
    :ivar query: each parameter with its values, decoded, in their order.
    :ivar headers: names in lower case; repeated ones are joined by ", ", as HTTP allows.
    :ivar header_lines: the same as they were sent, one by one.
    :ivar certificate_user: the UserInfo that the client's certificate stands for; None without a
        certificate.
    """

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    header_lines: Headers = ()
    certificate_user: Object | None = None

    def parameter(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter, as ``url.Values.Get`` does."""
        return self.query.get(name, [default])[0]

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    @property
    def accepts_gzip(self) -> bool:
        return "gzip" in [token.strip() for token in self.header("accept-encoding").split(",")]

    def header_values(self, name: str) -> list[str]:
        """Return the values of a header that may be repeated, each as it was sent."""
        if self.header_lines:
            return [value for line_name, value in self.header_lines if line_name == name]
        return [self.headers[name]] if name in self.headers else []


class RequestInfo(NamedTuple):
    """What a request is about (``apiserver/pkg/endpoints/request.RequestInfo``).

    :ivar verb: get, list, watch, create, update, patch, delete, deletecollection; for other paths
        the method in lower case.
    :ivar namespace: "" for all of them, or for a resource that has none.
    :ivar subresource_path: what follows the subresource, of a proxy.
    :ivar parts: the decoded parts of the path, all of them.
    """

    is_resource_request: bool
    verb: str
    path: str
    parts: tuple[str, ...] = ()
    api_prefix: str = ""
    api_group: str = ""
    api_version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    subresource_path: str = ""


class Response(NamedTuple):
    """An answer with its whole body."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Headers = ()


class StreamResponse(NamedTuple):
    """An answer whose body comes in pieces, each sent at once: a watch, or a followed log.

    :ivar stopping: is set when the server of the cluster ends, and the answer with it.
    :ivar is_complete: tells whether everything that has happened is in the pieces that were made.
    """

    status: int
    pieces: AsyncIterator[bytes]
    stopping: asyncio.Event
    content_type: str = JSON
    headers: Headers = ()
    is_complete: Callable[[], bool] = lambda: True


class HandlerContext(NamedTuple):
    """One request with everything that answers it. It lives in one thread of the backend.

    :ivar cluster: the cluster with a client for the request's user, which takes its warnings.
    :ivar application: what all requests share: options, keys, caches; None for a command, which
        has its answer without a server.
    """

    request: HttpRequest
    info: RequestInfo
    cluster: LocalCluster
    application: Application | None

    @property
    def client(self) -> Client:
        return self.cluster.client

    @property
    def prefix(self) -> str:
        """The prefix of the paths of all requests, for links: that of a fork."""
        return "" if self.application is None else self.application.prefix


Answer = Response | StreamResponse | Upgrade
Handler = Callable[[HandlerContext], Answer]
