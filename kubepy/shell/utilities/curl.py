"""The program curl, over HTTP, as version 7.88 says things; it shows no progress."""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote_plus, urljoin, urlsplit

from kubepy.shell.files import FileError
from kubepy.shell.surroundings import HttpAnswer, NetworkError, NetworkRequest
from kubepy.shell.utilities.inputs import absolute, read_file
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, program
from kubepy.shell.utility import Delay, Execution, Unknown

VERSION = "7.88.1"
JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
PORTS = {"http": 80, "https": 443}
CONNECT_SECONDS = 130.0  # until the system gives up to connect
MOST_REDIRECTS = 50
REDIRECTS = (301, 302, 303, 307, 308)
TRANSIENT = (408, 429, 500, 502, 503, 504)
ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}
REASONS = {"no such host": 6, "refused": 7, "unreachable": 7, "timeout": 28, "reset": 56}


class CurlError(Exception):
    """A transfer that fails.

    :ivar status: curl's exit status.
    :ivar seconds: how long it took.
    """

    def __init__(self, status: int, message: str, seconds: float = 0.0, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.seconds = seconds
        self.kind = kind


class UrlTarget(NamedTuple):
    """The parts of a URL."""

    scheme: str
    host: str
    port: int
    path: str
    user: str

    @property
    def host_header(self) -> str:
        """The host as the request names it: without the scheme's own port."""
        shown = self.host
        if ":" in self.host:
            shown = f"[{self.host}]"
        if self.port == PORTS[self.scheme]:
            return shown
        return f"{shown}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host_header}{self.path}"


@dataclass
class Transfer:
    """One URL and what came of it."""

    url: str
    output: str = ""  # a file; empty: standard output
    answer: HttpAnswer | None = None
    effective: str = ""
    redirects: int = 0
    method: str = "GET"
    seconds: float = 0.0
    address: str = ""
    port: int = 0
    status: int = 0
    message: str = ""
    printed: list[bytes] = field(default_factory=list)


def parse_url(url: str) -> UrlTarget:
    """Read a URL; http is assumed. Raises CurlError."""
    if re.search(r"\{|\}|\[\w+-\w+\]", url):
        raise Unknown(f"curl {url}")
    if not SCHEME.match(url):
        url = f"http://{url}"
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme in ("file", "ftp", "telnet", "gopher", "ldap", "smtp", "ws", "wss"):
        raise Unknown(f"curl {url}")
    if scheme not in PORTS:
        raise CurlError(1, f'Protocol "{scheme}" not supported or disabled in libcurl')
    try:
        port = parts.port or PORTS[scheme]
    except ValueError:
        raise CurlError(3, "URL using bad/illegal format or missing URL") from None
    if not parts.hostname:
        raise CurlError(3, "URL using bad/illegal format or missing URL")
    path = parts.path or "/"
    if parts.query:
        path += f"?{parts.query}"
    user = parts.netloc.rpartition("@")[0]
    return UrlTarget(
        scheme,
        parts.hostname,
        port,
        path,
        user,
    )


class _Curl:
    """One run of curl."""

    def __init__(self, call: Execution, options: Arguments) -> None:
        self.call = call
        self.options = options
        self.out: list[bytes] = []
        self.err: list[str] = []
        self.elapsed = 0.0
        self.body = self._body()
        self.method = self._method()

    def run(self) -> int:
        urls = [*self.options.all("url"), *self.options.operands]
        if not urls:
            self.call.err("curl: try 'curl --help' or 'curl --manual' for more information\n")
            return 2
        status = 0
        outputs = self._outputs(urls)
        for url, output in zip(urls, outputs, strict=True):
            transfer = Transfer(url, output, method=self.method)
            status = self._transfer(transfer)
            if status and self.options.has("fail-early"):
                break
        return self._end(status)

    def _outputs(self, urls: list[str]) -> list[str]:
        """Match the outputs to URLs, in the order in which they were given."""
        names: list[str] = []
        given = []
        for key, value in self.options.given:
            if key in ("o", "O"):
                given.append((key, value))
        for place, url in enumerate(urls):
            if place >= len(given):
                names.append("")
            elif given[place][0] == "o":
                names.append(given[place][1])
            else:
                names.append(posixpath.basename(urlsplit(url).path))
        return names

    def _end(self, status: int) -> int:
        """Print what there is, at once or after the time that it took."""
        out = b"".join(self.out)
        err = "".join(self.err).encode("utf-8", "surrogateescape")
        if self.elapsed > 0:
            raise Delay(self.elapsed, status, out=out, err=err)
        self.call.out(out)
        self.call.err(err)
        return status

    def _method(self) -> str:
        if self.options.has("X"):
            return self.options.get("X")
        if self.options.has("I"):
            return "HEAD"
        has_body = self.body is not None and not self.options.has("G")
        if has_body:
            return "POST"
        return "GET"

    def _body(self) -> bytes | None:
        pieces: list[bytes] = []
        is_given = False
        for key, value in self.options.given:
            if key in ("d", "data-raw", "data-binary", "data-urlencode", "json"):
                is_given = True
                pieces.append(self._piece(key, value))
        separator = b"&"
        if self.options.has("json"):
            separator = b""
        if is_given:
            return separator.join(pieces)
        return None

    def _piece(self, key: str, value: str) -> bytes:
        if key == "data-urlencode":
            name, separator, content = value.partition("=")
            if not separator:
                if "@" in value:
                    raise Unknown("curl --data-urlencode with a file")
                name = ""
                content = value
            encoded = quote_plus(content)
            return (f"{name}={encoded}" if name else encoded).encode()
        if not value.startswith("@") or key == "data-raw":
            return value.encode("utf-8", "surrogateescape")
        try:
            content_bytes = read_file(self.call, value[1:])
        except FileError as error:
            raise Unknown(f"curl {value}") from error
        if key == "d":
            return content_bytes.replace(b"\n", b"").replace(b"\r", b"")
        return content_bytes

    def _transfer(self, transfer: Transfer) -> int:
        """Do one transfer with its retries, print its results, return its status."""
        retries = int(self.options.get("retry", "0"))
        pause = 1.0
        attempt = 0
        while True:
            try:
                self._attempt(transfer)
            except CurlError as error:
                transfer.status = error.status
                transfer.message = error.message
                self.elapsed += error.seconds
                is_transient = self._is_transient_error(error)
            else:
                transfer.status, transfer.message = self._judged(transfer)
                answer = transfer.answer
                is_transient = answer is not None and answer.status in TRANSIENT
            if attempt >= retries or not is_transient:
                break
            attempt += 1
            self._note_failure(transfer)
            self.elapsed += float(self.options.get("retry-delay", "0")) or pause
            pause = min(pause * 2, 600.0)
        self._finish(transfer)
        return transfer.status

    def _is_transient_error(self, error: CurlError) -> bool:
        if self.options.has("retry-all-errors"):
            return True
        if error.kind == "refused":
            return self.options.has("retry-connrefused")
        return error.kind in ("timeout", "no such host")

    def _judged(self, transfer: Transfer) -> tuple[int, str]:
        answer = transfer.answer
        fails = self.options.has("f", "fail-with-body")
        if answer is not None and answer.status >= 400 and fails:
            return 22, f"The requested URL returned error: {answer.status}"
        return 0, ""

    def _attempt(self, transfer: Transfer) -> None:
        url = self._with_query(transfer.url)
        transfer.printed.clear()
        transfer.answer = None
        method = self.method
        body = self.body
        for redirects in range(MOST_REDIRECTS + 1):
            transfer.redirects = redirects
            answer = self._exchange(transfer, url, method, body)
            location = header_of(answer, "location")
            follows = self.options.has("L") and answer.status in REDIRECTS and location
            if not follows:
                return
            limit = int(self.options.get("max-redirs", str(MOST_REDIRECTS)))
            if 0 <= limit <= redirects:
                raise CurlError(47, f"Maximum ({limit}) redirects followed")
            url = urljoin(transfer.effective, location)
            if method == "POST" and answer.status in (301, 302, 303) and not self.options.has("X"):
                method = "GET"
                body = None

    def _with_query(self, url: str) -> str:
        if not self.options.has("G") or not self.body:
            return url
        separator = "?"
        if "?" in url:
            separator = "&"
        return f"{url}{separator}{self.body.decode('utf-8', 'surrogateescape')}"

    def _exchange(
        self, transfer: Transfer, url: str, method: str, body: bytes | None
    ) -> HttpAnswer:
        target = parse_url(url)
        transfer.effective = target.url
        transfer.method = method
        connected = self._resolved(target)
        self._check_certificates(target, connected)
        headers = self._headers(target, body)
        request_body = b""
        if body is not None and not self.options.has("G"):
            request_body = body
        request = NetworkRequest(method, connected.url, headers, request_body)
        self._note_connection(transfer, connected, target)
        try:
            answer = self.call.surroundings.http(request, self.call.now)
        except NetworkError as error:
            raise self._failed(target, connected, error) from error
        self._note_request(target, method, headers, request_body)
        self._note_answer(answer, method, target)
        transfer.answer = answer
        self._print_answer(transfer, answer, method)
        return answer

    def _check_certificates(self, target: UrlTarget, connected: UrlTarget) -> None:
        """Find the files of certificates, which are read once there is a connection."""
        for key in ("cacert", "cert", "key"):
            name = self.options.get(key).partition(":")[0]
            is_needed = target.scheme == "https" and name
            if is_needed and not self.call.files.is_file(absolute(self.call, name)):
                self._connect(target, connected)
                raise CurlError(77, f"error setting certificate file: {name}")

    def _connect(self, target: UrlTarget, connected: UrlTarget) -> None:
        try:
            self.call.surroundings.connect(connected.host, connected.port, self.call.now)
        except NetworkError as error:
            raise self._failed(target, connected, error) from error

    def _resolved(self, target: UrlTarget) -> UrlTarget:
        """Apply ``--resolve`` and ``--connect-to``."""
        for text in self.options.all("resolve"):
            host, port, address = [*text.lstrip("+-").split(":", 2), "", ""][:3]
            if host in (target.host, "*") and port in (str(target.port), "*"):
                return target._replace(host=address.split(",")[0].strip("[]"))
        return target

    def _headers(self, target: UrlTarget, body: bytes | None) -> tuple[tuple[str, str], ...]:
        headers = {"Host": target.host_header}
        if self.options.has("r"):
            headers["Range"] = f"bytes={self.options.get('r')}"
        user = self.options.get("u") or target.user
        if user:
            if ":" not in user:
                raise Unknown("curl that asks for a password")
            token = base64.b64encode(user.encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        headers["User-Agent"] = self.options.get("A", f"curl/{VERSION}")
        is_json = self.options.has("json")
        if is_json:
            headers["Content-Type"] = JSON_TYPE
        headers["Accept"] = JSON_TYPE if is_json else "*/*"
        if self.options.has("e"):
            headers["Referer"] = self.options.get("e")
        if self.options.has("b"):
            headers["Cookie"] = self._cookie()
        if self.options.has("compressed"):
            headers["Accept-Encoding"] = "deflate, gzip, br, zstd"
        if body is not None and not self.options.has("G"):
            headers["Content-Length"] = str(len(body))
            headers.setdefault("Content-Type", FORM_TYPE)
        self._add_own_headers(headers)
        return tuple(headers.items())

    def _cookie(self) -> str:
        cookie = self.options.get("b")
        if "=" not in cookie:
            raise Unknown("curl with a file of cookies")
        return cookie

    def _add_own_headers(self, headers: dict[str, str]) -> None:
        for text in self.options.all("H"):
            if text.startswith("@"):
                raise Unknown("curl with a file of headers")
            name, separator, value = text.partition(":")
            for known in list(headers):
                if known.lower() == name.strip().lower():
                    del headers[known]
            if separator and value.strip():
                headers[name.strip()] = value.strip()
            elif name.endswith(";"):
                headers[name[:-1]] = ""

    def _failed(self, target: UrlTarget, connected: UrlTarget, error: NetworkError) -> CurlError:
        """Return the failure in curl's words."""
        kind = error.kind
        if kind == "no such host":
            message = f"Could not resolve host: {connected.host}"
            return CurlError(6, message, error.seconds, kind)
        if kind == "reset":
            return CurlError(56, "Recv failure: Connection reset by peer", error.seconds, kind)
        place = f"{connected.host} port {connected.port}"
        if kind != "timeout":
            milliseconds = round(error.seconds * 1000)
            message = (
                f"Failed to connect to {place} after {milliseconds} ms: Couldn't connect to server"
            )
            return CurlError(7, message, error.seconds, kind)
        return self._timed_out(place)

    def _timed_out(self, place: str) -> CurlError:
        connect = float(self.options.get("connect-timeout", "0")) or CONNECT_SECONDS
        whole = float(self.options.get("m", "0"))
        if whole and whole <= connect:
            milliseconds = round(whole * 1000) + 1
            message = f"Connection timed out after {milliseconds} milliseconds"
            return CurlError(28, message, whole, "timeout")
        milliseconds = round(connect * 1000) + 1
        reason = "Timeout was reached"
        if not self.options.has("connect-timeout"):
            reason = "Couldn't connect to server"
        message = f"Failed to connect to {place} after {milliseconds} ms: {reason}"
        return CurlError(28, message, connect, "timeout")

    def _is_verbose(self) -> bool:
        return self.options.has("v")

    def _note_connection(self, transfer: Transfer, connected: UrlTarget, target: UrlTarget) -> None:
        """Find the address for ``-v`` and ``-w``; a failure of it comes with the request."""
        needs_address = self._is_verbose() or self.options.has("w")
        transfer.port = connected.port
        if not needs_address:
            return
        self.call.reads_network()
        try:
            addresses = self.call.surroundings.resolve(connected.host, self.call.now)
        except NetworkError:
            addresses = ()
        transfer.address = ""
        if addresses:
            transfer.address = addresses[0]
        if addresses and self._is_verbose():
            self.err.append(f"*   Trying {addresses[0]}:{connected.port}...\n")

    def _note_request(
        self, target: UrlTarget, method: str, headers: tuple[tuple[str, str], ...], body: bytes
    ) -> None:
        if not self._is_verbose():
            return
        host = target.host
        address = self._first_address(host)
        note = f"* Connected to {host} ({address}) port {target.port} (#0)\n"
        self.err.append(note)
        user = self.options.get("u") or target.user
        if user:
            user_name, _, _ = user.partition(":")
            self.err.append(f"* Server auth using Basic with user '{user_name}'\n")
        self.err.append(f"> {method} {target.path} HTTP/1.1\r\n")
        self.err += [f"> {name}: {value}\r\n" for name, value in headers]
        self.err.append("> \r\n")
        if body:
            self.err.append(f"}} [{len(body)} bytes data]\n")

    def _first_address(self, host: str) -> str:
        addresses = self.call.surroundings.resolve(host, self.call.now)
        if addresses:
            return addresses[0]
        return host

    def _note_answer(self, answer: HttpAnswer, method: str, target: UrlTarget) -> None:
        if not self._is_verbose():
            return
        self.err.append(f"< HTTP/1.1 {answer.status} {answer.reason}\r\n")
        self.err += [f"< {name}: {value}\r\n" for name, value in answer.headers]
        self.err.append("< \r\n")
        if answer.body and method != "HEAD":
            length = len(answer.body)
            self.err.append(f"{{ [{length} bytes data]\n")
        self.err.append(f"* Connection #0 to host {target.host} left intact\n")

    def _print_answer(self, transfer: Transfer, answer: HttpAnswer, method: str) -> None:
        options = self.options
        if options.has("i", "I"):
            lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
            lines += [f"{name}: {value}" for name, value in answer.headers]
            head = "".join(f"{line}\r\n" for line in lines)
            transfer.printed.append(f"{head}\r\n".encode())
        if method == "HEAD":
            return
        if answer.status >= 400 and options.has("f"):
            return
        location = header_of(answer, "location")
        if location and answer.status in REDIRECTS and options.has("L"):
            return
        transfer.printed.append(answer.body)

    def _note_failure(self, transfer: Transfer) -> None:
        is_shown = not self.options.has("s") or self.options.has("S")
        if transfer.message and is_shown:
            self.err.append(f"curl: ({transfer.status}) {transfer.message}\n")

    def _finish(self, transfer: Transfer) -> None:
        content = b"".join(transfer.printed)
        if transfer.output and transfer.output != "-":
            if transfer.answer is not None:
                self._save(transfer, content)
        else:
            self.out.append(content)
        self._note_failure(transfer)
        if self.options.has("w"):
            self.out.append(self._written_out(transfer).encode("utf-8", "surrogateescape"))

    def _save(self, transfer: Transfer, content: bytes) -> None:
        path = absolute(self.call, transfer.output)
        try:
            if self.options.has("create-dirs"):
                folder = posixpath.dirname(path)
                self.call.files.make_dir(folder, parents=True, now=self.call.now)
            self.call.files.write(path, content, now=self.call.now)
        except FileError:
            transfer.status = 23
            transfer.message = "Failure writing output to destination"

    def _written_out(self, transfer: Transfer) -> str:
        pattern = self.options.get("w")
        if pattern.startswith("@"):
            raise Unknown("curl -w with a file")
        for escape, character in ESCAPES.items():
            pattern = pattern.replace(escape, character)
        pattern = pattern.replace("%%", "\0")
        text = re.sub(r"%\{([^}]*)\}", lambda match: _variable(match[1], transfer), pattern)
        return text.replace("\0", "%")


def header_of(answer: HttpAnswer, name: str) -> str:
    """Return the first header of a name in lower case, or an empty string."""
    values = []
    for key, value in answer.headers:
        if key.lower() == name:
            values.append(value)
    if values:
        return values[0]
    return ""


def _variable(name: str, transfer: Transfer) -> str:
    """Return a variable of ``-w``. Raises Unknown."""
    answer = transfer.answer
    status = 0
    if answer:
        status = answer.status
    body = b""
    if answer is not None and transfer.method != "HEAD":
        body = answer.body
    values: dict[str, Callable[[], str]] = {
        "content_type": lambda: header_of(answer, "content-type") if answer else "",
        "errormsg": lambda: transfer.message,
        "exitcode": lambda: str(transfer.status),
        "filename_effective": lambda: transfer.output,
        "http_code": lambda: f"{status:03d}",
        "http_version": lambda: "1.1" if answer else "0",
        "method": lambda: transfer.method,
        "num_connects": lambda: "1" if answer else "0",
        "num_headers": lambda: str(len(answer.headers) if answer else 0),
        "num_redirects": lambda: str(transfer.redirects),
        "redirect_url": lambda: _redirect_url(transfer),
        "remote_ip": lambda: transfer.address if answer else "",
        "remote_port": lambda: str(transfer.port if answer else 0),
        "response_code": lambda: f"{status:03d}",
        "scheme": lambda: urlsplit(transfer.effective).scheme.upper(),
        "size_download": lambda: str(len(body)),
        "url": lambda: transfer.url,
        "url_effective": lambda: transfer.effective,
        "urlnum": lambda: "0",
    }
    if name.startswith("time_"):
        if answer:
            return "0.001000"
        return "0.000000"
    if name not in values:
        raise Unknown(f"curl -w %{{{name}}}")
    return values[name]()


def _redirect_url(transfer: Transfer) -> str:
    location = ""
    if transfer.answer:
        location = header_of(transfer.answer, "location")
    if location:
        return urljoin(transfer.effective, location)
    return ""


@program(
    "-s,--silent",
    "-S,--show-error",
    "-f,--fail",
    "--fail-with-body",
    "--fail-early",
    "-k,--insecure",
    "-L,--location",
    "-o,--output=FILE",
    "-O,--remote-name",
    "-w,--write-out=FORMAT",
    "-X,--request=METHOD",
    "-d,--data,--data-ascii=DATA",
    "--data-raw=DATA",
    "--data-binary=DATA",
    "--data-urlencode=DATA",
    "--json=DATA",
    "-G,--get",
    "-H,--header=LINE",
    "-I,--head",
    "-i,--include",
    "-v,--verbose",
    "-m,--max-time=SECONDS",
    "--connect-timeout=SECONDS",
    "--retry=NUM",
    "--retry-delay=SECONDS",
    "--retry-max-time=SECONDS",
    "--retry-connrefused",
    "--retry-all-errors",
    "--max-redirs=NUM",
    "-u,--user=USER:PASSWORD",
    "-A,--user-agent=NAME",
    "-e,--referer=URL",
    "-b,--cookie=DATA",
    "-r,--range=RANGE",
    "--resolve=HOST:PORT:ADDRESS",
    "--cacert=FILE",
    "--cert,-E=FILE",
    "--key=FILE",
    "--noproxy=LIST",
    "--url=URL",
    "--create-dirs",
    "--compressed",
    "--http1.1",
    "--http1.0,-0",
    "--http2",
    "--tlsv1.2",
    "--no-progress-meter",
    "--progress-bar,-#",
    "--no-keepalive",
    "-N,--no-buffer",
    "-4,--ipv4",
    "-6,--ipv6",
    "-q,--disable",
    "-g,--globoff",
    style=ArgumentStyle(usage_status=2),
)
def curl(call: Execution, options: Arguments) -> int:
    """Transfer URLs."""
    call.reads_network()
    for key in ("m", "connect-timeout", "retry", "retry-delay"):
        value = options.get(key, "0")
        if not re.fullmatch(r"\d+(\.\d+)?", value):
            raise Failure(
                f"option {key}: expected a proper numerical parameter\n"
                "curl: try 'curl --help' or 'curl --manual' for more information",
                2,
            )
    return _Curl(call, options).run()
