"""The program wget as busybox has it."""

from __future__ import annotations

import posixpath
from typing import NoReturn
from urllib.parse import urljoin

from kubepy.shell.files import FileError
from kubepy.shell.surroundings import HttpAnswer, NetworkError, NetworkRequest
from kubepy.shell.utilities.curl import REDIRECTS, CurlError, UrlTarget, header_of, parse_url
from kubepy.shell.utilities.inputs import absolute
from kubepy.shell.utilities.program import Arguments, Failure, program
from kubepy.shell.utility import Delay, Execution, Unknown

CONNECT_SECONDS = 130.0
BAR = "*" * 32
PROBLEMS = {
    "refused": "Connection refused",
    "unreachable": "No route to host",
    "timeout": "Connection timed out",
}
MOST_REDIRECTS = 5


class _Download:
    """One run of wget."""

    def __init__(self, call: Execution, options: Arguments) -> None:
        self.call = call
        self.options = options
        self.is_quiet = options.has("q")
        self.elapsed = 0.0

    def run(self) -> int:
        if not self.options.operands:
            raise Unknown("wget without a URL")
        for url in self.options.operands:
            self._fetch(url)
        return 0

    def _say(self, text: str) -> None:
        if not self.is_quiet:
            self.call.err(f"{text}\n")

    def _fetch(self, url: str) -> None:
        body = self._body()
        method = "GET"
        if body is not None:
            method = "POST"
        for _ in range(MOST_REDIRECTS):
            target = self._target(url)
            answer = self._exchange(target, method, body or b"")
            location = header_of(answer, "location")
            if answer.status in REDIRECTS and location:
                url = urljoin(target.url, location)
                continue
            if answer.status >= 300 or answer.status < 200:
                message = f"server returned error: HTTP/1.1 {answer.status} {answer.reason}"
                self._fail(message)
            self._save(target, answer)
            return
        self._fail("too many redirections")

    def _target(self, url: str) -> UrlTarget:
        try:
            return parse_url(url)
        except CurlError:
            raise Failure(f"not an http or ftp url: {url}") from None

    def _body(self) -> bytes | None:
        if self.options.has("post-data"):
            return self.options.get("post-data").encode()
        if not self.options.has("post-file"):
            return None
        name = self.options.get("post-file")
        try:
            path = absolute(self.call, name)
            return self.call.files.read(path)
        except FileError as error:
            message = f"can't open '{name}': {error.problem}"
            raise Failure(message) from error

    def _exchange(self, target: UrlTarget, method: str, body: bytes) -> HttpAnswer:
        address = self._address(target)
        self._say(f"Connecting to {target.host_header} ({address}:{target.port})")
        request = NetworkRequest(method, target.url, self._headers(target, body), body)
        try:
            answer = self.call.surroundings.http(request, self.call.now)
        except NetworkError as error:
            self._fail_to_connect(target, address, error)
        if self.options.has("S"):
            self._say(f"  HTTP/1.1 {answer.status} {answer.reason}")
            for name, value in answer.headers:
                self._say(f"  {name}: {value}")
        return answer

    def _address(self, target: UrlTarget) -> str:
        try:
            addresses = self.call.surroundings.resolve(target.host, self.call.now)
        except NetworkError as error:
            self.elapsed += error.seconds
            self._fail(f"bad address '{target.host_header}'")
        if not addresses:
            self._fail(f"bad address '{target.host_header}'")
        return addresses[0]

    def _headers(self, target: UrlTarget, body: bytes) -> tuple[tuple[str, str], ...]:
        headers = {"Host": target.host_header, "User-Agent": self.options.get("U", "Wget")}
        for line in self.options.all("header"):
            name, _, value = line.partition(":")
            headers[name.strip()] = value.strip()
        if body:
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
            headers["Content-Length"] = str(len(body))
        headers["Connection"] = "close"
        return tuple(headers.items())

    def _fail_to_connect(self, target: UrlTarget, address: str, error: NetworkError) -> NoReturn:
        if error.kind == "no such host":
            self._fail(f"bad address '{target.host_header}'")
        if error.kind == "reset":
            self._fail("error getting response: Connection reset by peer")
        limit = float(self.options.get("T", "0"))
        if error.kind == "timeout" and limit and limit < CONNECT_SECONDS:
            self.elapsed += limit
            self._fail("download timed out")
        self.elapsed += CONNECT_SECONDS if error.kind == "timeout" else error.seconds
        problem = PROBLEMS[error.kind]
        message = f"can't connect to remote host ({address}): {problem}"
        self._fail(message)

    def _fail(self, message: str) -> NoReturn:
        """End with a message, at once or after the time that it took."""
        if self.elapsed > 0:
            raise Delay(self.elapsed, 1, err=f"wget: {message}\n".encode())
        raise Failure(message)

    def _save(self, target: UrlTarget, answer: HttpAnswer) -> None:
        if self.options.has("spider"):
            self._say("remote file exists")
            return
        name = self.options.get("O")
        if name == "-":
            self._say("writing to stdout")
            self.call.out(answer.body)
            self._say(_progress("-", len(answer.body)))
            self._say("written to stdout")
            return
        if not name:
            folder = self.options.get("P")
            url_path, _, _ = target.path.partition("?")
            last = posixpath.basename(url_path) or "index.html"
            name = posixpath.join(folder, last)
            path = absolute(self.call, name)
            if self.call.files.exists(path):
                self._fail(f"can't open '{name}': File exists")
        self._say(f"saving to '{name}'")
        try:
            path = absolute(self.call, name)
            self.call.files.write(path, answer.body, now=self.call.now)
        except FileError as error:
            message = f"can't open '{name}': {error.problem}"
            self._fail(message)
        shown = posixpath.basename(name)
        self._say(_progress(shown, len(answer.body)))
        self._say(f"'{name}' saved")


def _progress(name: str, size: int) -> str:
    return f"{name:<20.20s} 100% |{BAR}| {size:5d}  0:00:00 ETA"


@program(
    "-q,--quiet",
    "-O,--output-document=FILE",
    "-P,--directory-prefix=DIR",
    "-S,--server-response",
    "-T,--timeout=SECONDS",
    "-t,--tries=NUM",
    "-U,--user-agent=NAME",
    "--header=LINE",
    "--post-data=DATA",
    "--post-file=FILE",
    "--spider",
    "--no-check-certificate",
    "--no-verbose,-nv",
    "-Y=ON",
)
def wget(call: Execution, options: Arguments) -> int:
    """Download URLs."""
    call.reads_network()
    return _Download(call, options).run()
