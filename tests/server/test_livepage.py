"""The live page of the timeline: what it is, who sees what, and how it follows."""

from __future__ import annotations

import gzip
import re
import signal
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import pytest

from kubepy.insight import Rollout, Timeline
from kubepy.insight.picture import html
from kubepy.server import chain
from kubepy.server.livepage import visible
from kubepy.storage import Key
from tests.insight.browser import ARTEFACTS, CHROMIUM, Browser
from tests.server.conftest import Api, ServerProcess
from tests.server.test_authentication import as_user, grant

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
SOON = 5.0  # seconds, on a machine that has much else to do; it is less than one otherwise
NEEDS_CHROMIUM = pytest.mark.skipif(not CHROMIUM, reason="no Chromium here")
STEPS = (
    "[...document.querySelectorAll('#steps tbody tr')].map(row => row.cells[2].textContent + ' ' + "
    "row.cells[3].textContent)"
)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "web", "image": "web:1"}], **spec},
    }


def create_pod(api: Api | ServerProcess, name: str, namespace: str = "default") -> None:
    answer = api.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod(name))
    assert answer.status == 201, answer.body


def names(document: Any) -> list[str]:
    """Return the pods of a document, in the order of their steps."""
    data = document["data"]
    objects = list(zip(accumulate(data["objects"][::3]), data["objects"][1::3], strict=True))
    names = [objects[place] for place in accumulate(data["steps"][1::2])]
    return [
        data["words"][name]
        for name, kind in names
        if data["words"][data["kinds"][kind][0]] == "pods"
    ]


# --- the page


@pytest.mark.parametrize("authorization", ["AlwaysAllow", "RBAC"])
def test_page_is_for_browsers_without_token_and_has_no_data(
    new_api: Callable[..., Api], authorization: str
) -> None:
    api = new_api(authorization=authorization)
    create_pod(api, "secret-name")
    answer = api.get("/", BROWSER, token="")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"secret-name" not in answer.body
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(rb"(src|href)=\"?(?!data:)[a-z/]", answer.body)


@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
def test_list_of_paths_is_for_other_clients_with_a_token(api: Api, accept: str) -> None:
    assert "/api/v1" in api.get("/", {"Accept": accept}).json()["paths"]
    assert api.get("/", {"Accept": accept}, token="").status == 401


def test_page_is_only_at_the_root(api: Api) -> None:
    assert api.get("/version", BROWSER, token="").status == 401
    assert api.request("POST", "/", {}, BROWSER, token="").status == 401


# --- who sees what


def test_timeline_needs_a_token_and_get(api: Api) -> None:
    assert api.get("/timeline", token="").status == 401
    assert api.get("/timeline", token="wrong").status == 401
    assert api.post("/timeline", {}).status == 405


@pytest.mark.parametrize(
    ("since", "message"),
    [
        (
            "yesterday",
            "since=yesterday is neither a time such as 2026-01-01T12:00:00Z nor a duration such "
            "as 30m or 2d",
        ),
        ("-1h", "since must not be negative: -1h"),
    ],
)
def test_timeline_refuses_wrong_since(api: Api, since: str, message: str) -> None:
    answer = api.get(f"/timeline?since={since}")
    assert (answer.status, answer.json()["message"]) == (400, message)


def test_timeline_since_is_a_time_or_how_long_ago(api: Api) -> None:
    create_pod(api, "web")
    assert names(api.get("/timeline?since=2020-01-01T00:00:00Z").json()) == ["web"]
    assert names(api.get("/timeline?since=1h").json()) == ["web"]
    assert names(api.get("/timeline?since=2200-01-01T00:00:00Z").json()) == []


def test_timeline_shows_everything_to_the_administrator(new_api: Callable[..., Api]) -> None:
    api = new_api(authorization="RBAC")
    create_pod(api, "web")
    document = api.get("/timeline").json()
    assert names(document) == ["web"]
    assert "namespaces" in document["data"]["words"]


def test_timeline_of_user_who_may_list_no_pods_is_forbidden_as_their_list(
    new_api: Callable[..., Api],
) -> None:
    api = new_api(authorization="RBAC")
    create_pod(api, "web")
    grant(api, "ann", "list", "configmaps")
    answer = api.get("/timeline?watch=1", as_user("ann"))
    assert (answer.status, answer.json()["message"]) == (
        403,
        api.get("/api/v1/pods", as_user("ann")).json()["message"],
    )


def test_timeline_of_user_with_one_namespace_has_only_what_is_listed_there(
    new_api: Callable[..., Api],
) -> None:
    api = new_api(authorization="RBAC")
    assert (
        api.post(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        ).status
        == 201
    )
    create_pod(api, "unseen")
    create_pod(api, "till", "shop")
    grant(api, "ann", "list", "pods", namespace="shop")
    document = api.get("/timeline", as_user("ann")).json()
    assert names(document) == ["till"]
    assert "namespaces" not in document["data"]["words"]
    assert "unseen" not in str(document)
    assert "unseen" not in str(api.get("/timeline?since=0s", as_user("ann")).json())


def test_images_of_workloads_are_for_those_who_may_list_them() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rollout = Rollout(Key("deployments.apps", "default", "web"), "5d4c4ff75b", "web:1")
    whole = Timeline(at, at, (), (), (), (rollout,))
    assert visible(whole, lambda resource, _: resource == "pods").rollouts == ()
    assert visible(whole, lambda resource, _: resource == "deployments.apps").rollouts == (rollout,)


def test_timeline_names_what_revisions_brought(api: Api) -> None:
    labels = {"app": "web", "pod-template-hash": "h1"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "web", "image": "shop/web:1"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}

    def create(path: str, name: str, owners: list[dict[str, Any]], spec: Any) -> dict[str, Any]:
        """Create an object; returns the reference to it as a controller."""
        metadata = {"name": name, "labels": labels, "ownerReferences": owners}
        answer = api.post(path, {"metadata": metadata, "spec": spec})
        assert answer.status == 201, answer.json()
        made = answer.json()
        reference = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": name}
        return {**reference, "uid": made["metadata"]["uid"], "controller": True}

    apps = "/apis/apps/v1/namespaces/default"
    deployment = create(f"{apps}/deployments", "web", [], spec)
    replica_set = create(f"{apps}/replicasets", "web-h1", [deployment], spec)
    create("/api/v1/namespaces/default/pods", "web-h1-a", [replica_set], template["spec"])
    assert ">web:1 h1<" in api.get("/timeline").json()["content"]


def test_timeline_ends_when_the_right_is_taken_away(new_api: Callable[..., Api]) -> None:
    api = new_api(authorization="RBAC")
    grant(api, "ann", "list", "pods", namespace="default")
    stream = api.stream("/timeline?watch=1", as_user("ann"))
    assert names(stream.event()) == []
    api.delete("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/ann-list-pods")
    create_pod(api, "later")
    assert all(piece == b"\n" for piece in stream)
    assert api.log == []


# --- what comes


def test_timeline_stream_has_new_steps_soon(api: Api) -> None:
    stream = api.stream("/timeline?watch=1")
    stream.event()
    create_pod(api, "web")
    assert names(stream.event(SOON)) == ["web"]
    stream.close()


def test_timeline_stream_has_what_another_process_did(api: Api) -> None:
    stream = api.stream("/timeline?watch=1")
    stream.event()
    api.cluster.client.create(
        "pods", {**pod("outside"), "metadata": {"name": "outside", "namespace": "default"}}
    )
    assert names(stream.event(SOON)) == ["outside"]
    stream.close()


def test_timeline_is_compressed_for_clients_that_accept_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "GZIP_BYTES", 1000)
    for number in range(20):
        api.cluster.client.create(
            "pods", {**pod("x"), "metadata": {"name": f"web-{number}", "namespace": "default"}}
        )
    plain, answer = (
        api.get("/timeline"),
        api.get("/timeline", {"Accept-Encoding": "gzip, deflate, br"}),
    )
    assert (answer.headers["content-encoding"], gzip.decompress(answer.body)) == (
        "gzip",
        plain.body,
    )
    assert len(answer.body) < len(plain.body) / 2
    stream = api.stream("/timeline?watch=1", {"Accept-Encoding": "gzip"})
    assert stream.headers["content-encoding"] == "gzip"
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
    assert decompressor.decompress(stream.next() or b"") == plain.body
    create_pod(api, "later")
    assert b"later" in decompressor.decompress(stream.next(SOON) or b"")
    stream.close()


def test_timeline_is_drawn_once_for_all_who_see_the_same(
    new_api: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = new_api(authorization="RBAC")
    drawn, draw = [], html.live_document
    monkeypatch.setattr(html, "live_document", lambda shown: drawn.append(shown) or draw(shown))
    create_pod(api, "web")
    for user in ("ann", "bob"):
        grant(api, user, "list", "pods", namespace="default")
    streams = [api.stream("/timeline?watch=1") for _ in range(3)]
    documents = [stream.event() for stream in streams]
    assert documents[0] == documents[1] == documents[2] == api.get("/timeline").json()
    assert len(drawn) == 1
    assert (
        api.get("/timeline", as_user("ann")).json()
        == api.get("/timeline", as_user("bob")).json()
        != documents[0]
    )
    assert len(drawn) == 2
    api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "no-step"}})
    assert api.get("/timeline").json() == documents[0]
    assert len(drawn) == 2
    create_pod(api, "later")
    assert len({str(stream.event(SOON)) for stream in streams}) == 1
    assert len(drawn) == 3


# --- in a browser


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"), "--ignore-certificate-errors")
    yield browser
    browser.close()


@NEEDS_CHROMIUM
def test_live_page_follows_the_cluster_and_reconnects(
    browser: Browser, new_server: Callable[..., ServerProcess]
) -> None:
    server = new_server("--controllers=off")
    browser.resize(1000, 700)
    browser.open(f"{server.url}/#token={server.token}")
    browser.wait("!document.getElementById('listing').hidden")
    assert browser.run("location.href") == f"{server.url}/"
    assert browser.run("document.getElementById('message').hidden") is True
    create_pod(server, "web")
    browser.wait(f"{STEPS}.includes('created pods/web')", SOON)
    assert browser.problems == []
    assert {url.partition("?")[0] for url in browser.requests if not url.startswith("data:")} == {
        f"{server.url}/#token={server.token}".partition("#")[0],
        f"{server.url}/timeline",
    }
    browser.screenshot(ARTEFACTS / "live-page.png")
    port = server.address[1]
    server.stop(signal.SIGKILL)
    browser.wait(
        "document.getElementById('message').textContent.startsWith('The connection is lost')"
    )
    again = new_server("--controllers=off", f"--port={port}", folder=server.folder)
    create_pod(again, "after")
    browser.wait(f"{STEPS}.includes('created pods/after')")
    assert browser.run("document.getElementById('message').hidden") is True


@NEEDS_CHROMIUM
def test_live_page_without_good_token_asks_for_one(
    browser: Browser, new_server: Callable[..., ServerProcess]
) -> None:
    server = new_server("--controllers=off")
    browser.open(f"{server.url}/#token=wrong")
    browser.wait(
        "document.getElementById('message').textContent === 'The server does not accept this "
        "token.'"
    )
    browser.run(
        f"document.getElementById('token').value = {server.token!r};"
        "document.getElementById('login').requestSubmit()"
    )
    browser.wait(
        "!document.getElementById('listing').hidden && document.getElementById('login').hidden"
    )
    browser.open(f"{server.url}/?since=foo")
    browser.wait(
        "document.getElementById('message').textContent.startsWith('since=foo is neither a time')"
    )
    assert (
        browser.run("document.getElementById('login').hidden") is True
    )  # another token would not help
