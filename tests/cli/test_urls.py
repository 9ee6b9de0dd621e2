"""Manifests at HTTP addresses: ``-f http://…``, answers, redirects, attempts, limits."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from kubepy.cli import urls
from tests.cli.conftest import Done, Kubepy

CONFIG_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
TWO = CONFIG_MAP % b"a" + b"---\n" + CONFIG_MAP % b"b"
FILES = {
    "/cm.yaml": CONFIG_MAP % b"a",
    "/two.yaml": TWO,
    "/bad": b"a: [",
    "/odd%20name.yaml": CONFIG_MAP % b"odd",
}
REDIRECTS = {"/moved": "/cm.yaml", "/loop": "/loop", "/ftp": "ftp://x/y"}


class Server(ThreadingHTTPServer):
    """A server of FILES that counts requests; what starts with /N answers with status N."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.failures = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path in REDIRECTS or self.path.startswith("/count"):
            left = int(self.path[6:]) if self.path.startswith("/count") else 0
            self.send_response(302)
            self.send_header(
                "Location",
                REDIRECTS.get(self.path) or (f"/count{left - 1}" if left else "/cm.yaml"),
            )
            self.end_headers()
        elif self.path[1:4].isdigit():
            self.send_error(int(self.path[1:4]))
        elif self.path == "/flaky" and self.server.failures < 2:
            self.server.failures += 1
            self.send_error(503)
        elif self.path == "/closed":
            self.connection.close()
        elif self.path == "/secret" and self.headers.get("Authorization") != "Basic dTpw":
            self.send_error(401)
        else:
            content = FILES.get(self.path, FILES["/cm.yaml"])
            self.send_response(200)
            self.send_header(
                "Content-Length", str(len(content) + (9 if self.path == "/short" else 0))
            )
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(urls, "PAUSE", 0.0)
    with Server() as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def test_manifest_at_url_is_applied_read_compared_and_deleted(
    kubepy: Kubepy, server: Server
) -> None:
    url = f"{server.url}/two.yaml"
    assert kubepy("apply", "-f", url) == Done("configmap/a created\nconfigmap/b created\n", "", 0)
    assert kubepy("get", "-f", url, "-o", "name") == Done("configmap/a\nconfigmap/b\n", "", 0)
    assert kubepy("diff", "-f", url) == Done("", "", 0)
    assert kubepy("replace", "-f", url) == Done(
        "configmap/a replaced\nconfigmap/b replaced\n", "", 0
    )
    assert kubepy("label", "-f", url, "x=y") == Done(
        "configmap/a labeled\nconfigmap/b labeled\n", "", 0
    )
    assert kubepy("delete", "-f", url).out == (
        'configmap "a" deleted from default namespace\nconfigmap "b" deleted from default '
        "namespace\n"
    )


def test_urls_and_files_are_read_in_the_order_of_flags(
    kubepy: Kubepy, server: Server, folder: Path
) -> None:
    (folder / "c.yaml").write_bytes(CONFIG_MAP % b"c")
    done = kubepy(
        "create", "-f", f"{server.url}/cm.yaml", "-f", "c.yaml", "--dry-run=client", "-o", "name"
    )
    assert done == Done("configmap/a\nconfigmap/c\n", "", 0)


@pytest.mark.parametrize(
    ("path", "error", "attempts"),
    [
        (
            "/404",
            'error: unable to read URL "URL/404", server reported 404 Not Found, status code=404',
            1,
        ),
        (
            "/500",
            'error: unable to read URL "URL/500", server reported 500 Internal Server Error, '
            "status code=500",
            3,
        ),
        (
            "/204",
            'error: unable to read URL "URL/204", server reported 204 No Content, status code=204',
            1,
        ),
        (
            "/bad",
            "error: error parsing URL/bad: error converting YAML to JSON: yaml: line 1: did not "
            "find expected node "
            "content",
            1,
        ),
        ("/short", "error: error parsing URL/short: unexpected EOF", 1),
        ("/ftp", 'Unable to connect to the server: unsupported protocol scheme "ftp"', 3),
        ("/closed", "Unable to connect to the server: EOF", 3),
    ],
)
def test_answer_that_is_no_manifest_is_an_error(
    kubepy: Kubepy, server: Server, path: str, error: str, attempts: int
) -> None:
    done = kubepy("create", "-f", server.url + path)
    assert done == Done("", error.replace("URL/", f"{server.url}/") + "\n", 1)
    assert server.asked == [path] * attempts


def test_failing_server_is_asked_three_times(kubepy: Kubepy, server: Server) -> None:
    assert kubepy("create", "-f", f"{server.url}/flaky").out == "configmap/a created\n"
    assert server.asked == ["/flaky"] * 3


@pytest.mark.parametrize(
    ("path", "is_followed"),
    [("/moved", True), ("/count8", True), ("/count9", False), ("/loop", False)],
)
def test_nine_redirects_are_followed(
    kubepy: Kubepy, server: Server, path: str, is_followed: bool
) -> None:
    done = kubepy("create", "-f", server.url + path)
    assert done == (
        Done("configmap/a created\n", "", 0)
        if is_followed
        else Done("", "Unable to connect to the server: stopped after 10 redirects\n", 1)
    )


@pytest.mark.parametrize(
    ("url", "error"),
    [
        (
            "http://127.0.0.1:9/x",
            "The connection to the server 127.0.0.1:9 was refused - did you specify the right "
            "host or port?",
        ),
        (
            "http://u:p@127.0.0.1:9/x",
            "The connection to the server 127.0.0.1:9 was refused - did you specify the right "
            "host or port?",
        ),
        ("http://", "Unable to connect to the server: http: no Host in request URL"),
        (
            "http://127.0.0.1:99999/x",
            "Unable to connect to the server: dial tcp: address 99999: invalid port",
        ),
        (
            "http://a b/",
            'error: the URL passed to filename "http://a b/" is not valid: parse "http://a b/": '
            "invalid "
            'character " " in host name',
        ),
        (
            "http://a/%zz",
            'error: the URL passed to filename "http://a/%zz" is not valid: parse "http://a/%zz": '
            "invalid URL "
            'escape "%zz"',
        ),
    ],
)
def test_server_that_cannot_be_reached_is_an_error(
    kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch, url: str, error: str
) -> None:
    monkeypatch.setattr(urls, "PAUSE", 0.0)
    assert kubepy("apply", "-f", url) == Done("", f"{error}\n", 1)


def test_plain_server_at_https_address_is_an_error(kubepy: Kubepy, server: Server) -> None:
    done = kubepy("apply", "-f", server.url.replace("http", "https"))
    assert (
        done.err
        == "Unable to connect to the server: tls: first record does not look like a TLS handshake\n"
    )


def test_user_and_password_of_url_are_sent(kubepy: Kubepy, server: Server) -> None:
    assert (
        kubepy("create", "-f", server.url.replace("//", "//u:p@") + "/secret").out
        == "configmap/a created\n"
    )


def test_spaces_in_url_are_escaped(kubepy: Kubepy, server: Server) -> None:
    assert kubepy("create", "-f", f"{server.url}/odd name.yaml").out == "configmap/odd created\n"


def test_too_large_answer_is_refused(
    kubepy: Kubepy, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FILES, "/large", b"# " + b"x" * 65 * 1024 * 1024)
    assert kubepy("apply", "-f", f"{server.url}/large").err == (
        f"error: read {server.url}/large: is larger than 64 MiB: give its objects in several "
        f"files\n"
    )


def test_silent_server_is_given_up(kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(urls, "SILENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = kubepy("apply", "-f", f"http://127.0.0.1:{silent.getsockname()[1]}/x")
    assert done.err == (
        "Unable to connect to the server: context deadline exceeded (Client.Timeout exceeded while "
        "awaiting headers)\n"
    )


def test_proxy_of_environment_is_asked_for_other_hosts_only(
    kubepy: Kubepy, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    assert kubepy("create", "-f", "http://files.example/cm.yaml").out == "configmap/a created\n"
    assert kubepy("create", "-f", f"{server.url}/two.yaml", "--dry-run=client").status == 0
    assert server.asked == ["http://files.example/cm.yaml", "/two.yaml"]
