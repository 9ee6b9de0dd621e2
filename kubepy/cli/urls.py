"""Files at HTTP addresses: ``-f https://…`` and the remote files of kustomizations.

A server that answers with 5xx, or not at all, is asked again as kubectl does. Proxies are those of
the environment. The limits of time and size are ours: kubectl has none. Upstream:
``cli-runtime/pkg/resource/visitor.go`` (URLVisitor), ``net/http``, ``net/url``.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
import zlib
from base64 import b64encode
from http.client import HTTPException, HTTPMessage, IncompleteRead, RemoteDisconnected
from typing import IO, Any, NamedTuple
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote_from_bytes, unquote, urlsplit

from kubepy import __version__, system
from kubepy.api.values import gourls
from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.cli.files import MAX_MANIFESTS, MIB, TooLargeError
from kubepy.quoting import printable, quote

ATTEMPTS = 3
PAUSE = 1.0  # seconds between attempts
SILENCE = 30.0  # seconds without an answer, or without more of it
WHOLE = 300.0  # seconds that an answer may take
MAX_REDIRECTS = 10
_RESERVED = "!#$%&'()*+,/:;=?@[]~"
_BAD_CERTIFICATES = {
    10: "x509: certificate has expired or is not yet valid",
    62: "x509: certificate is not valid for the host's name",
    64: "x509: certificate is not valid for the host's address",
}


class Download(NamedTuple):
    """What a server has answered, whatever its status."""

    status: int
    reason: str
    body: bytes


class ConnectionFailure(UnprefixedError):
    """A server that gave no answer (``url.Error``). ``reason`` is the cause, ``url`` what was asked
    for."""

    def __init__(self, url: str, reason: str, *, again: bool = True) -> None:
        self.url = url
        self.reason = reason
        self.again = again
        host = printable(urlsplit(url).netloc.rpartition("@")[2])
        super().__init__(
            f"The connection to the server {host} was refused - did you specify the right host or "
            f"port?"
            if "connection refused" in reason
            else printable(f"Unable to connect to the server: {reason}")
        )


def read_url(url: str) -> bytes:
    """Return what a server has at an address, asking up to three times. Raises CliError in
    kubectl's words."""
    problem: CliError | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        try:
            response = fetch(url)
        except ConnectionFailure as failure:
            if not failure.again:
                raise
            problem = failure
            continue
        if response.status == 200:
            return response.body
        problem = CliError(
            f"unable to read URL {quote(url)}, server reported {response.status} "
            f"{printable(response.reason)}, status code={response.status}"
        )
        if response.status < 500:
            break

    assert problem is not None
    raise problem


def parse_url(url: str) -> SplitResult:
    """Split an address. Raises GoUrlError with what ``net/url`` says of it, or with the reason for
    which Python's library cannot ask for it."""
    gourls.parse(url)
    try:
        return urlsplit(url)
    except ValueError as error:
        raise gourls.GoUrlError(f"parse {quote(url)}: {error}") from None


def fetch(url: str) -> Download:
    """Ask for an address once, following redirects. Raises ConnectionFailure, TooLargeError,
    CliError."""
    try:
        parts = parse_url(url)
    except gourls.GoUrlError as error:
        raise ConnectionFailure(url, str(error), again=False) from None

    userinfo, _, host = parts.netloc.rpartition("@")
    if not host:
        raise ConnectionFailure(url, "http: no Host in request URL", again=False)
    if (port := re.search(r":(\d+)$", host)) and int(port[1]) > 65535:
        raise ConnectionFailure(url, f"dial tcp: address {port[1]}: invalid port", again=False)
    if not system.HAS_PROCESSES:
        raise ConnectionFailure(url, "there is no network in a browser's tab", again=False)
    asked = request.Request(_escaped(parts._replace(netloc=host, fragment="").geturl()))
    asked.add_header("Accept-Encoding", "gzip")
    asked.add_header("User-Agent", f"kubepy/{__version__}")
    if userinfo:
        asked.add_unredirected_header(
            "Authorization", f"Basic {b64encode(unquote(userinfo).encode()).decode()}"
        )

    try:
        with _opener(host).open(asked, timeout=SILENCE) as answer:
            return Download(answer.status, answer.reason, _body(answer, url))
    except HTTPError as error:
        with error:
            return Download(error.code, str(error.reason), b"")
    except IncompleteRead:
        raise CliError(f"error parsing {printable(url)}: unexpected EOF") from None
    except (OSError, HTTPException) as error:
        raise ConnectionFailure(
            url, _reason(error, host, parts), again=not isinstance(error, TimeoutError)
        ) from None


def _opener(host: str) -> request.OpenerDirector:
    """Return an opener of HTTP alone: no files, no FTP. This machine is never reached by a proxy,
    as in Go."""
    name = re.sub(r":\d*$", "", host).strip("[]")
    is_local = (
        name == "localhost" or name == "::1" or re.fullmatch(r"127(\.\d+){3}", name) is not None
    )
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler({} if is_local else None),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        _Redirects(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)

    return opener


class _Redirects(request.HTTPRedirectHandler):
    """Follows redirects to other HTTP addresses, as many as Go does."""

    max_repeats = max_redirections = MAX_REDIRECTS

    def redirect_request(
        self,
        req: request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> request.Request | None:
        """Return the next request. Raises URLError."""
        if not newurl.lower().startswith(("http://", "https://")):
            raise URLError(f"unsupported protocol scheme {quote(urlsplit(newurl).scheme)}")
        if len(getattr(req, "redirect_dict", {})) >= MAX_REDIRECTS - 1 or newurl == req.full_url:
            raise URLError(f"stopped after {MAX_REDIRECTS} redirects")
        return super().redirect_request(req, fp, code, msg, headers, _escaped(newurl))


def _escaped(url: str) -> str:
    return quote_from_bytes(url.encode(errors="surrogateescape"), safe=_RESERVED)


def _body(answer: Any, url: str) -> bytes:
    """Read an answer in pieces, within the limits."""
    deadline = time.monotonic() + WHOLE
    parts = []
    size = 0
    if answer.headers.get("Content-Encoding") == "gzip":
        unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    else:
        unzip = None

    while piece := answer.read1(MIB):
        try:
            part = unzip.decompress(piece, MAX_MANIFESTS + 1) if unzip else piece
        except zlib.error:
            raise CliError(f"error parsing {printable(url)}: gzip: invalid header") from None
        parts.append(part)
        size += len(part)
        if size > MAX_MANIFESTS:
            raise TooLargeError(url, MAX_MANIFESTS)
        if time.monotonic() > deadline:
            raise TimeoutError

    if answer.length:
        raise IncompleteRead(b"", answer.length)
    return b"".join(parts)


def _reason(error: Exception, host: str, parts: SplitResult) -> str:
    """Return the reason of a failure as Go's ``net`` package words it."""
    cause = error.reason if isinstance(error, URLError) else error
    port = parts.port or (443 if parts.scheme == "https" else 80)
    name = parts.hostname or host
    address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    if isinstance(cause, TimeoutError):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    if isinstance(cause, RemoteDisconnected):
        return "EOF"
    if isinstance(cause, ssl.SSLCertVerificationError):
        problem = _BAD_CERTIFICATES.get(
            cause.verify_code, "x509: certificate signed by unknown authority"
        )
        return f"tls: failed to verify certificate: {problem}"

    if isinstance(cause, ssl.SSLError):
        no_tls = cause.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
        if no_tls:
            return "tls: first record does not look like a TLS handshake"
        return f"tls: {cause.reason}"

    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {name}: no such host"
    if isinstance(cause, ConnectionResetError | BrokenPipeError):
        return f"read tcp: {address}: connection reset by peer"
    if isinstance(cause, OSError) and cause.strerror:
        return f"dial tcp {address}: connect: {cause.strerror.lower()}"
    return str(cause)
