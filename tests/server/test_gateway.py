"""The gateway of ``kubepy proxy``: filter, prefixes, static files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubepy.api.values.goregex import compile_go
from kubepy.cli.proxy import ACCEPTED_HOSTS, REJECTED_PATHS
from kubepy.server.gateway import Filter, Gateway, GatewayOptions, host_of
from tests.server.conftest import TOKEN, Answer, Api

PODS = "/api/v1/namespaces/default/pods"
ASKER = [(b"authorization", f"Bearer {TOKEN}".encode())]


def patterns(text: str) -> list[Any]:
    return [compile_go(part) for part in text.split(",")]


DEFAULT = Filter(
    patterns("^.*"), patterns(REJECTED_PATHS), patterns(ACCEPTED_HOSTS), patterns("^$")
)


def ask(
    api: Api, path: str, method: str = "GET", host: str = "localhost:8001", **options: Any
) -> Answer:
    """Send a request without a token through a gateway."""
    chain = api.chain
    gateway_options = GatewayOptions(ASKER, DEFAULT)._replace(**options)
    api.chain = Gateway(chain, gateway_options)  # type: ignore[assignment]
    try:
        return api.request(method, path, None, {"host": host}, token="")
    finally:
        api.chain = chain


def test_request_without_token_is_that_of_the_user(api: Api) -> None:
    answer = ask(api, PODS)
    assert (answer.status, answer.json()["kind"]) == (200, "PodList")


def test_request_with_token_keeps_it(api: Api) -> None:
    gateway_options = GatewayOptions(ASKER, DEFAULT)
    api.chain = Gateway(api.chain, gateway_options)  # type: ignore[assignment]
    headers = {"host": "localhost", "authorization": "Bearer other"}
    assert api.request("GET", PODS, None, headers, token="").status == 401


@pytest.mark.parametrize(
    ("path", "method", "host"),
    [
        (f"{PODS}/p/exec", "POST", "localhost"),
        (f"{PODS}/p/attach?stdin=true", "POST", "localhost"),
        (PODS, "GET", "evil.example.com"),
        (PODS, "GET", "localhost.example.com:8001"),
    ],
)
def test_filter_refuses_streams_and_other_hosts(
    api: Api, path: str, method: str, host: str
) -> None:
    answer = ask(api, path, method, host)
    assert (answer.status, answer.body) == (403, b"Forbidden\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_filter_of_methods_and_paths(api: Api) -> None:
    reading = DEFAULT._replace(reject_methods=patterns("POST,PUT,PATCH"))
    assert ask(api, PODS, "POST", filter=reading).status == 403
    assert ask(api, PODS, filter=reading).status == 200
    only = DEFAULT._replace(accept_paths=patterns("^/version"))
    assert ask(api, PODS, filter=only).status == 403
    assert ask(api, "/version", filter=only).status == 200
    assert ask(api, PODS, host="evil", filter=None).status == 200


def test_prefix_is_taken_off(api: Api) -> None:
    assert ask(api, f"/custom{PODS}", api_prefix="/custom/").json()["kind"] == "PodList"
    answer = ask(api, PODS, api_prefix="/custom/")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    moved = ask(api, "/custom", api_prefix="/custom/")
    assert (moved.status, moved.headers["location"]) == (301, "/custom/")
    assert ask(api, f"/custom{PODS}/p/exec", "POST", api_prefix="/custom/").status == 403


def test_prefix_of_the_api_stays(api: Api) -> None:
    assert ask(api, PODS, api_prefix="/api/").status == 200
    assert ask(api, "/apis/apps/v1", api_prefix="/api/").status == 404


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "sub").mkdir(parents=True)
    (folder / "a & b.txt").write_text("text\n")
    (folder / "raw").write_bytes(b"\0\1")
    (folder / "sub" / "index.html").write_text("<b>sub</b>")
    (tmp_path / "secret").write_text("secret")
    return folder


def test_static_files(api: Api, site: Path) -> None:
    def get(path: str, method: str = "GET") -> Answer:
        return ask(api, path, method, host="any", static_folder=str(site))

    text = get("/static/a & b.txt")
    assert (text.body, text.headers["content-type"]) == (b"text\n", "text/plain; charset=utf-8")
    assert get("/static/raw").headers["content-type"] == "application/octet-stream"
    assert get("/static/sub/").body == b"<b>sub</b>"
    assert get("/static/sub").headers["location"] == "sub/"
    assert b'<a href="a%20%26%20b.txt">a &amp; b.txt</a>\n' in get("/static/").body
    head = get("/static/raw", "HEAD")
    assert (head.body, head.headers["content-length"]) == (b"", "2")
    for path in ("/static/../secret", "/static/none", "/static/raw/x", "/static/a\0"):
        assert get(path).body == b"404 page not found\n"
    assert get("/static/raw", "POST").status == 405
    assert get(PODS).status == 403  # the filter is for the API


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost", "localhost"),
        ("localhost:8001", "localhost"),
        ("[::1]", "[::1]"),
        ("[::1]:8001", "::1"),  # which the default filter refuses, as upstream's does
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_host_of_header(header: str, host: str) -> None:
    assert host_of({"headers": [(b"Host", header.encode())]}) == host
