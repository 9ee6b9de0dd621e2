"""Programs that use the network: against a server of this machine, and against a small cluster."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kubepy.shell.surroundings import HttpAnswer, NetworkError, NetworkRequest
from kubepy.shell.utility import Delay, Unknown
from tests.shell.utilities.programs import Outcome, file_system, run_model, run_real

ADDRESSES = {
    "web": ["10.96.0.7"],
    "web.default.svc.cluster.local": ["10.96.0.7"],
    "web.default.svc.cluster.local.": ["10.96.0.7"],
    "pods": ["10.244.0.5", "10.244.0.6"],
    "kube-dns.kube-system.svc.cluster.local.": ["10.96.0.10"],
    "slow": ["10.96.0.8"],
    "closed": ["10.96.0.9"],
    "127.0.0.1": ["127.0.0.1"],
}
RESOLV_CONF = "search default.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\n"
KNOWN = {address: name for name, addresses in ADDRESSES.items() for address in addresses}


def answer_of(method: str, path: str) -> HttpAnswer:
    """Return what both servers answer."""
    headers = [("Content-Type", "text/plain"), ("Content-Length", "6")]
    if path.startswith("/missing"):
        return HttpAnswer(404, "Not Found", tuple(headers), b"gone!\n")
    if path.startswith("/busy"):
        return HttpAnswer(503, "Service Unavailable", tuple(headers), b"later\n")
    if path.startswith("/moved"):
        headers.insert(0, ("Location", "/"))
        return HttpAnswer(302, "Found", tuple(headers), b"moved\n")
    if method == "POST":
        return HttpAnswer(200, "OK", tuple(headers), b"posted"[:6])
    return HttpAnswer(200, "OK", tuple(headers), b"hello\n")


class SmallCluster:
    """Surroundings with a few names; every host answers as the server does."""

    def __init__(self) -> None:
        self.requests: list[NetworkRequest] = []

    def http(self, request: NetworkRequest, now: datetime) -> HttpAnswer:
        parts = urlsplit(request.url)
        self.connect(parts.hostname or "", parts.port or 80, now)
        self.requests.append(request)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        return answer_of(request.method, path)

    def connect(self, host: str, port: int, now: datetime) -> None:
        name = KNOWN.get(host, host)
        if name not in ADDRESSES:
            raise NetworkError("no such host")
        if name == "slow":
            raise NetworkError("timeout")
        if name == "closed" or port == 1:
            raise NetworkError("refused")

    def resolve(self, name: str, now: datetime) -> Sequence[str]:
        if name not in ADDRESSES:
            raise NetworkError("no such host")
        return ADDRESSES[name]


class Handler(BaseHTTPRequestHandler):
    """The same answers over a real connection."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        answer = answer_of(self.command, self.path)
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        """Keep silent."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


CURLS = r"""
curl -s URL/
curl -sS URL/missing
curl -sf URL/missing
curl -sSf URL/missing
curl -sS --fail-with-body URL/missing
curl -sI URL/
curl -si URL/
curl -sv URL/
curl -sv URL/missing
curl -sL URL/moved
curl -s URL/moved
curl -siL URL/moved
curl -sIL URL/moved
curl -sL -o /dev/null -w '%{http_code} %{num_redirects} %{url_effective}\n' URL/moved
curl -s -o body -w '%{http_code}:%{size_download}:%{content_type}:%{method}:%{scheme}\n' URL/
curl -s -o nope/body URL/
curl -sO URL/name
curl -s -X DELETE URL/
curl -sd a=b URL/
curl -sd a=b -d c=d -v URL/
curl -sG -d a=b -w '%{url_effective}' URL/
curl -s --data-urlencode 'q=a b&c' -G -w '%{url_effective}' URL/
curl -s --json '{"a":1}' -v URL/
curl -s -H 'X-A: b' -H 'Accept: text/html' -v URL/
curl -s -A agent -e http://x/ -b a=b -v URL/
curl -s -u me:secret -v URL/
curl -s URL/ URL/missing
curl -s -o one URL/ -o two URL/missing
curl -s --max-time 5 --connect-timeout 2 -k URL/
curl -s -w '%{redirect_url}|%{exitcode}|%{errormsg}|%{num_headers}\n' URL/moved
curl -sS http://127.0.0.1:1/
curl -s http://127.0.0.1:1/
curl -s -w '%{http_code}' http://127.0.0.1:1/
curl -sS --retry 0 http://127.0.0.1:1/
curl -sS foo://x/
curl
curl -sS --max-redirs 0 -L URL/moved
curl -s -r 0-2 -v URL/
curl -s -X POST -L -d x URL/moved
curl -sv -I URL/
curl -sS --cacert /nope https://127.0.0.1:1/
"""


@pytest.mark.parametrize("command", CURLS.strip().splitlines())
def test_curl_prints_what_real_one_prints(command: str, port: int, tmp_path: Path) -> None:
    argv = shlex.split(command.replace("URL", f"http://127.0.0.1:{port}"))
    expected = run_real(argv, tmp_path, files={})
    box = file_system({})
    box.make_dir("/dev", now=datetime.now().astimezone())
    outcome = run_model(argv, files=box, surroundings=SmallCluster())
    assert outcome == expected


def run(command: str, cluster: SmallCluster | None = None) -> Outcome:
    """Run a program of the model in the small cluster."""
    box = file_system({})
    box.make_dir("/etc", now=datetime.now().astimezone())
    box.write("/etc/resolv.conf", RESOLV_CONF.encode(), now=datetime.now().astimezone())
    return run_model(shlex.split(command), files=box, surroundings=cluster or SmallCluster())


@pytest.mark.parametrize(
    ("command", "status", "out", "err"),
    [
        ("curl -sS nope", 6, "", "curl: (6) Could not resolve host: nope\n"),
        ("curl -s nope:8080/x", 6, "", ""),
        (
            "curl -sS closed:8080",
            7,
            "",
            "curl: (7) Failed to connect to closed port 8080 after 0 ms: "
            "Couldn't connect to server\n",
        ),
        ("curl -s --resolve x:80:10.96.0.7 http://x/", 0, "hello\n", ""),
        ("wget -qO- web", 0, "hello\n", ""),
        (
            "wget -q -O - web:8080/missing",
            1,
            "",
            "wget: server returned error: HTTP/1.1 404 Not Found\n",
        ),
        ("wget -qO- nope", 1, "", "wget: bad address 'nope'\n"),
        (
            "wget -O- closed",
            1,
            "",
            "Connecting to closed (10.96.0.9:80)\n"
            "wget: can't connect to remote host (10.96.0.9): Connection refused\n",
        ),
        ("wget --spider web", 0, "", "Connecting to web (10.96.0.7:80)\nremote file exists\n"),
        ("wget -qS -O- web/moved", 0, "hello\n", ""),
        (
            "wget -O- http://web:8080/x",
            0,
            "hello\n",
            "Connecting to web:8080 (10.96.0.7:8080)\nwriting to stdout\n"
            "-                    100% |********************************|     6  0:00:00 ETA\n"
            "written to stdout\n",
        ),
        ("wget -q --post-data=x -O- web", 0, "posted", ""),
        (
            "nslookup web",
            0,
            "Server:    10.96.0.10\n"
            "Address 1: 10.96.0.10 kube-dns.kube-system.svc.cluster.local\n\n"
            "Name:      web\nAddress 1: 10.96.0.7 web.default.svc.cluster.local\n",
            "",
        ),
        (
            "nslookup nope",
            1,
            "Server:    10.96.0.10\n"
            "Address 1: 10.96.0.10 kube-dns.kube-system.svc.cluster.local\n\n",
            "nslookup: can't resolve 'nope'\n",
        ),
        ("getent hosts web", 0, "10.96.0.7       web.default.svc.cluster.local\n", ""),
        ("getent hosts nope", 2, "", ""),
        ("dig +short web.default.svc.cluster.local", 0, "10.96.0.7\n", ""),
        ("dig +short web", 0, "", ""),
        ("dig +search +short web", 0, "10.96.0.7\n", ""),
        ("host pods", 0, "pods has address 10.244.0.5\npods has address 10.244.0.6\n", ""),
        ("host nope", 1, "Host nope not found: 3(NXDOMAIN)\n", ""),
        ("nc -z web 80", 0, "", ""),
        ("nc -zv web 80", 0, "", "web (10.96.0.7:80) open\n"),
        ("nc -zv closed 80", 1, "", "nc: closed (10.96.0.9:80): Connection refused\n"),
        ("nc -z closed 80", 1, "", ""),
        ("nc -zv nope 80", 1, "", "nc: bad address 'nope'\n"),
        (
            "ping -c 1 closed",
            0,
            "PING closed (10.96.0.9): 56 data bytes\n"
            "64 bytes from 10.96.0.9: seq=0 ttl=64 time=0.050 ms\n\n"
            "--- closed ping statistics ---\n"
            "1 packets transmitted, 1 packets received, 0% packet loss\n"
            "round-trip min/avg/max = 0.050/0.050/0.050 ms\n",
            "",
        ),
        ("ping -c 1 nope", 1, "", "ping: bad address 'nope'\n"),
        ("hostname -i", 1, "", "hostname: Name or service not known\n"),
    ],
)
def test_network_program_says_what_it_says_in_a_cluster(
    command: str, status: int, out: str, err: str
) -> None:
    outcome = run(command)
    assert (outcome.status, outcome.out.decode(), outcome.err.decode()) == (status, out, err)


@pytest.mark.parametrize(
    ("command", "seconds", "status", "err"),
    [
        (
            "curl -sS --connect-timeout 3 slow",
            3.0,
            28,
            "curl: (28) Failed to connect to slow port 80 after 3001 ms: Timeout was reached\n",
        ),
        (
            "curl -sS -m 2 slow",
            2.0,
            28,
            "curl: (28) Connection timed out after 2001 milliseconds\n",
        ),
        (
            "curl -sS slow",
            130.0,
            28,
            "curl: (28) Failed to connect to slow port 80 after 130001 ms: "
            "Couldn't connect to server\n",
        ),
        ("curl -s --retry 2 --retry-connrefused closed", 3.0, 7, ""),
        ("curl -s --retry 3 --retry-delay 5 web/busy", 15.0, 0, ""),
        ("wget -q -T 5 -O- slow", 5.0, 1, "wget: download timed out\n"),
        (
            "wget -q -O- slow",
            130.0,
            1,
            "wget: can't connect to remote host (10.96.0.8): Connection timed out\n",
        ),
        ("nc -zv -w 2 slow 80", 2.0, 1, "nc: slow (10.96.0.8:80): Connection timed out\n"),
        ("ping -c 3 web", 2.0, 0, ""),
        ("ping -c 2 -W 1 slow", 2.0, 1, ""),
    ],
)
def test_network_program_takes_time(command: str, seconds: float, status: int, err: str) -> None:
    with pytest.raises(Delay) as raised:
        run(command)
    delay = raised.value
    assert (delay.seconds, delay.status, delay.err.decode()) == (seconds, status, err)


@pytest.mark.parametrize(
    "command",
    [
        "curl ftp://web/",
        "curl -T file web",
        "curl http://{a,b}/",
        "curl -F a=b web",
        "wget -c web",
        "wget",
        "dig web",
        "nslookup -type=srv web",
        "ping web",
        "nc -l 80",
        "getent passwd",
        "host -t SRV web",
    ],
)
def test_unknown_use_of_network_program_is_unknown(command: str) -> None:
    with pytest.raises(Unknown):
        run(command)


def test_curl_sends_headers_method_and_body() -> None:
    cluster = SmallCluster()
    run("curl -s -X PUT -H 'X-A: 1' -d body -u a:b http://web:8080/x?y=z", cluster)
    request = cluster.requests[0]
    headers = dict(request.headers)
    assert request.method == "PUT"
    assert request.url == "http://web:8080/x?y=z"
    assert request.body == b"body"
    assert headers["Host"] == "web:8080"
    assert headers["X-A"] == "1"
    assert headers["Authorization"] == "Basic YTpi"
