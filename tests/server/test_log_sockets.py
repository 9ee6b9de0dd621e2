"""Logs over WebSockets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from wsproto import events

from kubepy.cli.main import main
from tests.server.streams import ServedFolder, WebSocketClient

LOG = "/api/v1/namespaces/default/pods/web/log"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: c, image: busybox, command: [sh, -c, "echo first; sleep 10000"]}
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedFolder]:
    folder, manifest = tmp_path / "state", tmp_path / "pod.yaml"
    manifest.write_text(POD)
    words = ("--state", str(folder))
    assert main((*words, "init", "--nodes=1")) == 0
    assert main((*words, "apply", "-f", str(manifest))) == 0
    assert main((*words, "controller", "--once", "-q")) == 0
    served = ServedFolder(folder)
    yield served
    served.close()
    assert served.log == []


@pytest.mark.parametrize(("protocols", "chosen", "expected"), [
    ([], None, [b"", b"first\n"]),
    (["binary.k8s.io"], "binary.k8s.io", [b"", b"first\n"]),
    (["other", "base64.binary.k8s.io"], "base64.binary.k8s.io",
     ["", base64.b64encode(b"first\n").decode()]),
])  # fmt: skip
def test_log_is_sent_after_an_empty_message(
    served: ServedFolder, protocols: list[str], chosen: str | None, expected: list[bytes | str]
) -> None:
    client = WebSocketClient(served, f"{LOG}?container=c", protocols)
    assert isinstance(client.opening, events.AcceptConnection)
    assert client.opening.subprotocol == chosen
    received = [client.event() for _ in range(3)]
    assert [event.data for event in received[:2]] == expected
    assert isinstance(received[2], events.CloseConnection)
    assert received[2].code == 1000


def test_log_that_is_followed_goes_on(served: ServedFolder) -> None:
    client = WebSocketClient(served, f"{LOG}?follow=true", ["binary.k8s.io"])
    assert [client.event().data for _ in range(2)] == [b"", b"first\n"]
    script = "echo second > /proc/1/fd/1"
    assert main(("--state", str(served.folder), "exec", "web", "--", "sh", "-c", script)) == 0
    assert client.event().data == b"second\n"
    client.close()


def test_log_in_a_protocol_that_nobody_speaks_is_refused(served: ServedFolder) -> None:
    client = WebSocketClient(served, LOG, ["v4.channel.k8s.io"])
    status, body = client.rejection()
    assert status == 403
    assert "not supported: [v4.channel.k8s.io]" in json.loads(body)["message"]


def test_log_of_a_pod_that_is_not_there_is_refused(served: ServedFolder) -> None:
    client = WebSocketClient(served, LOG.replace("web", "none"), ["binary.k8s.io"])
    assert client.rejection()[0] == 404
