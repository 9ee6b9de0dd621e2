"""Posting reviews to webhooks over HTTP and HTTPS, and the words of Go's clients about what can go
wrong.

Upstream: ``apiserver/pkg/util/webhook/client.go``, ``client-go/rest/request.go``; Go's ``net``,
``net/http``, ``crypto/x509``.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from kubepy.api.clock import Clock, Ids, format_time
from kubepy.apiserver.webhookcalls import Answer, Endpoint, WebhookCall
from kubepy.quoting import quote
from kubepy.storage.errors import YamlError
from kubepy.storage.yaml import read_json

TIMED_OUT = "context deadline exceeded"
MAX_RESPONSE = 32 * 1024 * 1024
MAX_SHOWN = 2048  # bytes of a response that is no JSON in an error
MAX_RETRIES = 10
MAX_CALLS_AT_ONCE = 16
_NO_CHECK_TIME = (
    0x200000  # X509_V_FLAG_NO_CHECK_TIME: the time is checked here, for the sake of the words
)
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
)
_WORDS = {
    401: "the server has asked for the client to provide credentials",
    400: "the server rejected our request for an unknown reason",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
}
_SHOWN_STATUSES = (403, 406, 415)  # the answer itself is the message


class CallError(Exception):
    """A call without a review for an answer."""


class ClientConfigError(Exception):
    """A webhook that cannot be called as it is configured."""


def send(calls: Sequence[WebhookCall], ids: Ids) -> dict[WebhookCall, Answer]:
    """Make calls at the same time, and return their answers in the same order."""
    if len(calls) == 1:
        return {calls[0]: _answer(calls[0], ids)}
    with ThreadPoolExecutor(MAX_CALLS_AT_ONCE) as executor:
        return dict(zip(calls, executor.map(lambda call: _answer(call, ids), calls), strict=True))


def _answer(call: WebhookCall, ids: Ids) -> Answer:
    uid = ids.uid(call.caller, call.endpoint.url, call.request, number=0)
    body = (
        f'{{"kind":{json.dumps(call.kind)},"apiVersion":{json.dumps(call.api_version)},'
        f'"request":{{"uid":{json.dumps(uid)},{call.request[1:]}}}'
    )
    endpoint, deadline = call.endpoint, time.monotonic() + call.timeout
    try:
        context = tls_context(endpoint) if endpoint.url.startswith("https:") else None
        if endpoint.problem:
            raise _unreachable(endpoint, endpoint.problem)
        return Answer(
            uid,
            call.api_version,
            decode_review(call, *post(endpoint, body.encode(), deadline, context)),
        )
    except ClientConfigError as error:
        return Answer(uid, call.api_version, {}, str(error), "could not get REST client")
    except CallError as error:
        return Answer(uid, call.api_version, {}, str(error))
    except TimeoutError:
        return Answer(uid, call.api_version, {}, str(_unreachable(endpoint, TIMED_OUT)))


def refused(call: WebhookCall, reason: str) -> Answer:
    """Return the answer to a call that is not made."""
    return Answer(
        "", call.api_version, {}, str(_unreachable(call.endpoint, call.endpoint.problem or reason))
    )


def _unreachable(endpoint: Endpoint, problem: str) -> CallError:
    return CallError(f"Post {quote(endpoint.url)}: {problem}")


# --- HTTP -----------------------------------------------------------------------------------------


def post(
    endpoint: Endpoint, body: bytes, deadline: float, context: ssl.SSLContext | None
) -> tuple[int, str, bytes]:
    """Post a body; returns status, content type and body of the answer. Raises CallError,
    TimeoutError."""
    for attempt in range(MAX_RETRIES + 1):
        connection = connect(endpoint, deadline, context)
        try:
            status, headers, content = exchange(connection, endpoint, body, deadline)
        finally:
            connection.close()
        wait = headers.get("Retry-After", "")
        if not (status == 429 or status >= 500) or not wait.isdigit() or attempt == MAX_RETRIES:
            break
        if time.monotonic() + int(wait) > deadline:
            raise TimeoutError
        time.sleep(int(wait))
    return status, headers.get("Content-Type", ""), content


def exchange(
    connection: http.client.HTTPConnection, endpoint: Endpoint, body: bytes, deadline: float
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Send the request and read the whole answer before the deadline. Raises CallError,
    TimeoutError."""
    parts = urlsplit(endpoint.url)
    path = f"{urlsplit(endpoint.address).path.rstrip('/')}{parts.path}?{parts.query}"
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, */*",
        "Host": parts.netloc,
        "User-Agent": "kube-apiserver-admission",
    }
    sock = connection.sock
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        content = b""
        while not response.isclosed():
            sock.settimeout(_left(deadline))
            chunk = response.read1(65536)
            if not chunk:
                break
            content += chunk
            if len(content) > MAX_RESPONSE:
                raise CallError(f"the response is longer than {MAX_RESPONSE} bytes")
        return response.status, response.headers, content
    except TimeoutError:
        raise
    except http.client.RemoteDisconnected:
        raise _unreachable(endpoint, "EOF") from None
    except http.client.IncompleteRead:
        raise CallError(
            "unexpected error when reading response body. Please retry. Original error: "
            "unexpected EOF"
        ) from None
    except http.client.HTTPException as error:
        raise _unreachable(endpoint, f"malformed HTTP response: {error}") from None
    except OSError as error:
        local, remote = (_address_text(name) for name in _names(sock))
        raise _unreachable(
            endpoint, f"read tcp {local}->{remote}: read: {_reason(error)}"
        ) from None


def _left(deadline: float) -> float:
    """Return the seconds until the deadline. Raises TimeoutError if it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _names(sock: socket.socket) -> list[Any]:
    try:
        return [sock.getsockname(), sock.getpeername()]
    except OSError:
        return ["", ""]


def _address_text(name: Any) -> str:
    if not name:
        return ""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def connect(
    endpoint: Endpoint, deadline: float, context: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    """Open a connection, with TLS for an https address. Raises CallError, TimeoutError."""
    base = urlsplit(endpoint.address)
    host, is_secure = base.hostname or "", base.scheme == "https"
    port = base.port or (443 if is_secure else 80)
    connection = http.client.HTTPConnection(host, port, timeout=_left(deadline))
    try:
        connection.connect()
    except TimeoutError:
        raise
    except socket.gaierror:
        raise _unreachable(endpoint, f"dial tcp: lookup {host}: no such host") from None
    except OSError as error:
        # Go names the first address of those that it has tried.
        where = _address_text(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4])
        raise _unreachable(endpoint, f"dial tcp {where}: connect: {_reason(error)}") from None

    if is_secure and context is not None:
        connection.sock.settimeout(_left(deadline))
        connection.sock = handshake(endpoint, context, connection.sock, host)
    return connection


# --- TLS ------------------------------------------------------------------------------------------


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """Make a context that trusts the caBundle, or without one the system's roots. Raises
    CallError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # name_problem checks it
    strict = int(ssl.VerifyFlags.VERIFY_X509_STRICT)  # Go is not
    # Go trusts each certificate of the bundle, also one that is no CA: the webhook's own, say.
    added = int(ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN) | _NO_CHECK_TIME
    context.verify_flags = ssl.VerifyFlags(int(context.verify_flags) & ~strict | added)
    if not endpoint.ca_bundle:
        context.load_default_certs()
        return context
    try:
        pem = base64.b64decode(endpoint.ca_bundle).decode()
    except (binascii.Error, UnicodeDecodeError):
        pem = ""

    if "-----BEGIN CERTIFICATE-----" not in pem:
        raise ClientConfigError(
            "unable to load root certificates: unable to parse bytes as PEM block"
        )

    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError:
        raise ClientConfigError(
            "unable to load root certificates: failed to parse certificate: x509: malformed "
            "certificate"
        ) from None

    return context


def handshake(
    endpoint: Endpoint, context: ssl.SSLContext, sock: socket.socket, host: str
) -> ssl.SSLSocket:
    """Do the handshake and check the certificate as Go does. Raises CallError, TimeoutError."""

    def refused(detail: str) -> CallError:
        return _unreachable(endpoint, f"tls: failed to verify certificate: x509: {detail}")

    try:
        secured = context.wrap_socket(sock, server_hostname=endpoint.server_name)
    except ssl.SSLCertVerificationError:
        raise refused("certificate signed by unknown authority") from None
    except ssl.SSLError as error:
        if error.reason in _NOT_TLS:
            raise _unreachable(
                endpoint, "http: server gave HTTP response to HTTPS client"
            ) from None
        raise _unreachable(
            endpoint, f"remote error: tls: {(error.reason or str(error)).lower().replace('_', ' ')}"
        ) from None
    except TimeoutError:
        raise
    except OSError as error:
        raise _unreachable(
            endpoint, "EOF" if error.errno in (None, 0) else _reason(error)
        ) from None

    certificate = secured.getpeercert() or {}
    if problem := time_problem(certificate) or name_problem(
        certificate, endpoint.server_name, host
    ):
        secured.close()
        raise refused(problem)

    return secured


def time_problem(certificate: Mapping[str, Any]) -> str:
    now = Clock().now()
    since, until = (
        datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate[field]), UTC)
        for field in ("notBefore", "notAfter")
    )
    words = "certificate has expired or is not yet valid: current time"
    if now < since:
        return f"{words} {format_time(now)} is before {format_time(since)}"
    return f"{words} {format_time(now)} is after {format_time(until)}" if now > until else ""


def name_problem(certificate: Mapping[str, Any], name: str, host: str) -> str:
    """Check the certificate's names for that of the server; the host to which its Service is mapped
    will do as well."""
    names = [
        (kind, value)
        for kind, value in certificate.get("subjectAltName", ())
        if kind in ("DNS", "IP Address")
    ]
    if any(_is_named(names, wanted) for wanted in (name, host)):
        return ""
    addresses = [value for kind, value in names if kind == "IP Address"]
    if _ip(name) is not None:
        if not addresses:
            return f"cannot validate certificate for {name} because it doesn't contain any IP SANs"
        return f"certificate is valid for {', '.join(addresses)}, not {name}"

    domains = [value for kind, value in names if kind == "DNS"]
    if not names:
        return "certificate relies on legacy Common Name field, use SANs instead"
    if not domains:
        return f"certificate is not valid for any names, but wanted to match {name}"
    return f"certificate is valid for {', '.join(domains)}, not {name}"


def _is_named(names: Sequence[tuple[str, str]], wanted: str) -> bool:
    address = _ip(wanted)
    if address is not None:
        return any(kind == "IP Address" and _ip(value) == address for kind, value in names)
    labels = wanted.lower().rstrip(".").split(".")
    for kind, value in names:
        own = value.lower().split(".")
        if (
            kind == "DNS"
            and len(own) == len(labels)
            and own[1:] == labels[1:]
            and own[0] in ("*", labels[0])
        ):
            return True
    return False


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError:
        return None


# --- the answer -----------------------------------------------------------------------------------


def decode_review(
    call: WebhookCall, status: int, content_type: str, content: bytes
) -> Mapping[str, object]:
    """Return the review that is the answer. Raises CallError."""
    media_type = content_type.partition(";")[0].strip().lower()
    text = content.decode(errors="replace")
    if not 200 <= status <= 206:
        raise CallError(status_text(status, text, media_type))
    if not content:
        raise CallError(
            f"0-length response with status code: {status} and content type: {content_type}"
        )

    try:
        review = read_json(text)
    except YamlError as error:
        raise CallError(f"couldn't get version/kind; json parse error: {error.message}") from None

    if not isinstance(review, dict):
        word = {list: "array", str: "string", bool: "bool", type(None): "null"}.get(
            type(review), "number"
        )
        raise CallError(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{word} into Go value of type struct {{ APIVersion string "
            '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )

    check_kind(call, review)
    return review


def status_text(status: int, text: str, media_type: str) -> str:
    """Word an HTTP error as client-go does; the message of a Status is taken from the answer."""
    try:
        answer = read_json(text)
    except YamlError:
        answer = None

    if isinstance(answer, dict) and answer.get("kind") == "Status" and answer.get("message"):
        return str(answer["message"])
    shown = (
        text.encode()[:MAX_SHOWN].decode(errors="replace").strip()
        if media_type.startswith("text/")
        else "unknown"
    )
    if status in _SHOWN_STATUSES:
        return shown
    if status in _WORDS:
        return _WORDS[status]
    if status >= 500:
        return f"an error on the server ({quote(shown)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def check_kind(call: WebhookCall, review: Mapping[str, object]) -> None:
    """Refuse what cannot be decoded as a review of the version that was sent. Raises CallError."""
    version, kind = str(review.get("apiVersion") or ""), str(review.get("kind") or "")
    if not kind or not version:
        return  # taken for what was sent; a v1 review is refused later
    group, sent = call.api_version.split("/")
    known = (f"{group}/v1", f"{group}/v1beta1")
    if kind != call.kind or version not in known:
        raise CallError(
            f"no kind {quote(kind)} is registered for version {quote(version)} in scheme "
            '"pkg/util/webhook/client.go:71"'
        )

    if version != call.api_version:
        raise CallError(
            f"converting ({version.rpartition('/')[2]}.{kind}) to ({sent}.{kind}): unknown "
            f"conversion"
        )
