"""Watches over WebSockets, as browsers make them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wsproto import events

from kubepy.cli.main import main
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.server.watchsockets import binary_messages, text_messages
from tests.server.streams import ServedFolder, WebSocketClient

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TOKEN_PREFIX = "base64url.bearer.authorization.k8s.io."


class WatchClient(WebSocketClient):
    """A WebSocket that a page of a console has asked for."""

    def __init__(
        self,
        served: ServedFolder,
        target: str,
        protocols: tuple[str, ...] = (),
        token: str | None = None,
        **headers: str,
    ) -> None:
        origin = {"origin": "https://console.example.com"}
        super().__init__(served, target, protocols, token, **{**origin, **headers})

    def message(self) -> Any:
        """Return the next whole message: text or bytes."""
        event = self.event()
        data = event.data
        while not event.message_finished:
            event = self.event()
            data += event.data
        return data

    def json(self) -> Any:
        text = self.message()
        assert isinstance(text, str)
        assert text.endswith("}\n")
        return json.loads(text)

    def refusal(self) -> tuple[int, Any]:
        """Return the status and the body of an answer that is no WebSocket."""
        status, body = self.rejection()
        return status, json.loads(body)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedFolder]:
    folder = tmp_path / "state"
    make_cluster(folder, {}).close()
    served = ServedFolder(folder, "RBAC")
    yield served
    served.close()
    assert served.log == []


def create(served: ServedFolder, *names: str) -> None:
    for name in names:
        assert main(["--state", str(served.folder), "create", "configmap", name]) == 0


def test_each_event_is_a_text(served: ServedFolder) -> None:
    create(served, "first", "second")
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1")
    assert isinstance(client.opening, events.AcceptConnection)
    assert client.opening.subprotocol is None
    initial = [client.json() for _ in range(2)]
    assert [event["object"]["metadata"]["name"] for event in initial] == ["first", "second"]
    create(served, "third")
    event = client.json()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "third")
    client.close()


def test_what_a_client_sends_is_ignored(served: ServedFolder) -> None:
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1")
    client.send("hello")
    create(served, "after")
    assert client.json()["object"]["metadata"]["name"] == "after"
    client.close()


def test_protobuf_events_are_binary_without_their_lengths(served: ServedFolder) -> None:
    create(served, "first")
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1", accept=PROTOBUF)
    message = client.message()
    assert isinstance(message, (bytes, bytearray))
    assert bytes(message).startswith(b"\n\x05ADDED\x12")
    assert b"first" in message
    client.close()


def test_watch_ends_with_a_bookmark_after_timeout_seconds(served: ServedFolder) -> None:
    begin = time.monotonic()
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3")
    assert [client.json()["type"] for _ in range(2)] == ["BOOKMARK", "BOOKMARK"]
    closed = client.event()
    assert isinstance(closed, events.CloseConnection)
    assert closed.code == 1000
    assert time.monotonic() - begin > 2.5
    client.close()


def test_watch_from_a_version_to_come_closes_without_an_event(served: ServedFolder) -> None:
    client = WatchClient(
        served, f"{CONFIG_MAPS}?watch=1&resourceVersion=999999999&timeoutSeconds=1"
    )
    event = client.event()
    assert isinstance(event, events.CloseConnection)
    client.close()


def test_error_is_the_last_event(served: ServedFolder) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    client = WatchClient(served, f"{CONFIG_MAPS}?{query}&resourceVersion=99999999")
    event = client.json()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
    assert isinstance(client.event(), events.CloseConnection)
    client.close()


def test_version_that_is_no_number_is_refused(served: ServedFolder) -> None:
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1&resourceVersion=abc")
    status, body = client.refusal()
    assert (status, body["reason"]) == (400, "BadRequest")


def test_one_protocol_is_spoken_whatever_it_is(served: ServedFolder) -> None:
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1", protocols=("chat",))
    assert client.opening.subprotocol == "chat"
    client.close()


def test_several_protocols_are_refused(served: ServedFolder) -> None:
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1", protocols=("chat", "superchat"))
    assert client.refusal()[0] == 400


def test_client_without_an_origin_is_refused(served: ServedFolder) -> None:
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1", origin="")
    status, body = client.refusal()
    assert status == 403
    assert "null origin" in body["message"]


def test_token_comes_as_a_protocol(served: ServedFolder) -> None:
    create(served, "first")
    encoded = base64.urlsafe_b64encode(served.keys.token.encode()).decode().rstrip("=")
    client = WatchClient(
        served, f"{CONFIG_MAPS}?watch=1", protocols=(f"{TOKEN_PREFIX}{encoded}", "chat"), token=""
    )
    assert client.opening.subprotocol == "chat"
    assert client.json()["object"]["metadata"]["name"] == "first"
    client.close()


@pytest.mark.parametrize(
    "protocols",
    [
        (),
        ("chat",),
        (f"{TOKEN_PREFIX}bm90aGluZw", "chat"),
        (f"{TOKEN_PREFIX}not=base64", "chat"),
        (f"{TOKEN_PREFIX}bm90aGluZw",),
    ],
)
def test_no_good_token_is_unauthorized(served: ServedFolder, protocols: tuple[str, ...]) -> None:
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1", protocols=protocols, token="")
    assert client.refusal()[0] == 401


def test_good_token_needs_a_protocol_beside_it(served: ServedFolder) -> None:
    encoded = base64.urlsafe_b64encode(served.keys.token.encode()).decode().rstrip("=")
    protocols = (f"{TOKEN_PREFIX}{encoded}",)
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1", protocols=protocols, token="")
    assert client.refusal()[0] == 401


def test_roles_decide_as_for_a_plain_watch(served: ServedFolder) -> None:
    cluster = open_cluster(served.folder)
    cluster.client.create("serviceaccounts", {"metadata": {"name": "robot"}}, namespace="default")
    cluster.close()
    user = {"impersonate-user": "system:serviceaccount:default:robot"}
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1", **user)
    status, body = client.refusal()
    assert status == 403
    assert 'cannot watch resource "configmaps"' in body["message"]


def test_list_is_answered_as_if_no_websocket_was_asked_for(served: ServedFolder) -> None:
    client = WatchClient(served, CONFIG_MAPS)
    status, body = client.refusal()
    assert (status, body["kind"]) == (200, "ConfigMapList")


def test_end_of_the_server_closes_the_watch(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    make_cluster(folder, {}).close()
    served = ServedFolder(folder)
    client = WatchClient(served, f"{CONFIG_MAPS}?watch=1")
    served.close()
    assert isinstance(client.event(), events.CloseConnection)
    client.close()
    assert served.log == []


def test_pieces_are_split_into_events() -> None:
    assert list(text_messages(b'{"a":1}\n{"b":"\xe2\x82\xac"}\n')) == ['{"a":1}\n', '{"b":"€"}\n']
    assert list(binary_messages(b"\0\0\0\x02ab\0\0\0\0\0\0\0\x01c")) == [b"ab", b"", b"c"]
