"""The gateway of ``kubepy proxy``: the API without a token, for one user, and static files.

Requests pass a filter of paths, hosts and methods before the server answers them. Upstream:
``kubectl/pkg/proxy/proxy_server.go``.
"""

from __future__ import annotations

import html
import mimetypes
import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from kubepy.server.chain import HandlerChain, Message, Receive, Scope, Send

TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
READING = ("GET", "HEAD")
INDEX = "index.html"
Header = tuple[bytes, bytes]


class Filter(NamedTuple):
    """The requests that may pass (``FilterServer``): compiled regular expressions."""

    accept_paths: Sequence[Any]
    reject_paths: Sequence[Any]
    accept_hosts: Sequence[Any]
    reject_methods: Sequence[Any]

    def accepts(self, method: str, path: str, host: str) -> bool:
        """Tell whether a request may pass."""
        if _is_matched(path, self.reject_paths) or _is_matched(method, self.reject_methods):
            return False
        return _is_matched(path, self.accept_paths) and _is_matched(host, self.accept_hosts)


def _is_matched(text: str, patterns: Sequence[Any]) -> bool:
    return any(pattern.search(text) for pattern in patterns)


class GatewayOptions(NamedTuple):
    """The options of a gateway.

    :param headers: those that say who asks; a request that says so itself keeps its own.
    :param filter: None: everything passes.
    :param api_prefix: the path below which the API is; like ``static_prefix`` it ends with a slash.
    :param static_folder: the folder of static files; "" for none.
    """

    headers: Sequence[Header]
    filter: Filter | None
    api_prefix: str = "/"
    static_prefix: str = "/static/"
    static_folder: str = ""


class Gateway:
    """The ASGI callable in front of a server's chain."""

    def __init__(self, chain: HandlerChain, options: GatewayOptions) -> None:
        self._chain = chain
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        options = self._options
        path: str = scope["path"]
        if options.static_folder and _is_below(path, options.static_prefix, options.api_prefix):
            answer = _file(options.static_folder, scope, path.removeprefix(options.static_prefix))
            await _send_plain(scope, send, answer)
            return
        prefix = options.api_prefix
        if f"{path}/" == prefix:
            await _send_plain(scope, send, _moved(prefix))
            return
        if not path.startswith(prefix):
            await _send_plain(scope, send, PAGE_NOT_FOUND)
            return
        inner = self.inner_scope(scope)
        method = inner.get("method", "GET")
        if options.filter is not None and not options.filter.accepts(
            method, inner["path"], host_of(scope)
        ):
            await _send_plain(scope, send, FORBIDDEN)
            return
        await self._chain(inner, receive, send)

    def inner_path(self, path: str) -> str:
        """Return the path of the API for one of the gateway. A prefix that is the API's own
        stays."""
        prefix = self._options.api_prefix
        if prefix.startswith("/api"):
            return path
        return f"/{path.removeprefix(prefix)}"

    def inner_scope(self, scope: Scope) -> Scope:
        """Return a request as the server sees it."""
        headers = list(scope["headers"])
        names = {name.lower() for name, _ in headers}
        if b"authorization" not in names:
            headers += self._options.headers
        raw_path = self.inner_path(scope["raw_path"].decode("latin-1"))
        return {
            **scope,
            "path": self.inner_path(scope["path"]),
            "raw_path": raw_path.encode("latin-1"),
            "headers": headers,
        }


def _is_below(path: str, prefix: str, other: str) -> bool:
    """Tell whether a path is one of a prefix, and not of a longer one."""
    if not path.startswith(prefix):
        return False
    return not (path.startswith(other) and len(other) > len(prefix))


def host_of(scope: Scope) -> str:
    """Return the host that a request names, without its port (``extractHost``)."""
    header = ""
    for name, value in scope["headers"]:
        if name.lower() == b"host":
            header = value.decode("latin-1")
    host, colon, port = header.rpartition(":")
    if not colon or not port.isdecimal():
        return header
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1]
    if ":" in host:  # an address without brackets
        return header
    return host


# --- answers --------------------------------------------------------------------------------------


class PlainAnswer(NamedTuple):
    """An answer that is no Status."""

    status: int
    body: bytes
    media_type: str = TEXT
    headers: Mapping[str, str] = {}


NO_SNIFF = {"x-content-type-options": "nosniff"}
PAGE_NOT_FOUND = PlainAnswer(404, b"404 page not found\n", headers=NO_SNIFF)
FORBIDDEN = PlainAnswer(403, b"Forbidden\n", headers=NO_SNIFF)
NOT_ALLOWED = PlainAnswer(405, b"Method Not Allowed\n", headers=NO_SNIFF)


def _moved(location: str) -> PlainAnswer:
    body = f'<a href="{html.escape(location)}">Moved Permanently</a>.\n\n'
    return PlainAnswer(301, body.encode(), HTML, {"location": location})


def _file(folder: str, scope: Scope, path: str) -> PlainAnswer:
    """Return a file, or the list of a folder (``http.FileServer``)."""
    if scope.get("method", "GET") not in READING:
        return NOT_ALLOWED
    inner = posixpath.normpath(f"/{path}").lstrip("/")
    real_path = os.path.join(folder, inner)
    try:
        if not os.path.isdir(real_path):
            return _content(real_path)
        if not scope["path"].endswith("/"):
            return _moved(f"{posixpath.basename(inner)}/")
        index = os.path.join(real_path, INDEX)
        if os.path.isfile(index):
            return _content(index)
        return PlainAnswer(200, _listing(real_path), HTML)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null in the path
        return PAGE_NOT_FOUND
    except PermissionError:
        return PlainAnswer(403, b"403 Forbidden\n", headers=NO_SNIFF)


def _content(path: str) -> PlainAnswer:
    """Read a file. Raises OSError, ValueError."""
    with open(path, "rb") as file:
        data = file.read()
    media_type, _ = mimetypes.guess_type(path)
    if media_type is None:
        media_type = "application/octet-stream"
        if b"\0" not in data[:512]:
            media_type = "text/plain"
    if media_type.startswith("text/"):
        media_type = f"{media_type}; charset=utf-8"
    return PlainAnswer(200, data, media_type)


def _listing(folder: str) -> bytes:
    """Return the names in a folder, as a page."""
    lines = ["<!doctype html>", '<meta name="viewport" content="width=device-width">', "<pre>"]
    for name in sorted(os.listdir(folder)):
        shown = name
        if os.path.isdir(os.path.join(folder, name)):
            shown = f"{name}/"
        lines.append(f'<a href="{quote(shown)}">{html.escape(shown)}</a>')
    lines.append("</pre>\n")
    return "\n".join(lines).encode()


async def _send_plain(scope: Scope, send: Send, answer: PlainAnswer) -> None:
    """Send an answer; to a request for a WebSocket as ASGI wants it."""
    kind = "http"
    if scope["type"] == "websocket":
        kind = "websocket.http"
    headers = {
        "content-type": answer.media_type,
        "content-length": str(len(answer.body)),
        **answer.headers,
    }
    encoded = [
        (name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()
    ]
    start: Message = {
        "type": f"{kind}.response.start",
        "status": answer.status,
        "headers": encoded,
    }
    body = b"" if scope.get("method") == "HEAD" else answer.body
    await send(start)
    await send({"type": f"{kind}.response.body", "body": body})
