"""A webhook for tests: an HTTP or HTTPS server in a thread that answers reviews as it is told."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Object = dict[str, Any]
Respond = Callable[
    [Object], Object
]  # from the request of a review to its response, without the uid

CERTIFICATES = Path(__file__).parent / "certificates"
CA_BUNDLE = base64.b64encode((CERTIFICATES / "ca.crt").read_bytes()).decode()


class Hook:
    """A server with the reviews that it was sent. ``respond`` may be set anew at any time."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.raw: Callable[[Object], tuple[int, str, bytes]] | None = (
            None  # status, content type, body
        )
        self.reviews: list[Object] = []
        self.paths: list[str] = []
        self.url = ""

    @property
    def requests(self) -> list[Object]:
        return [review["request"] for review in self.reviews]

    def answer(self, path: str, body: bytes) -> tuple[int, str, bytes]:
        review = json.loads(body)
        self.reviews.append(review)
        self.paths.append(path)
        if self.raw is not None:
            return self.raw(review)
        request = review["request"]
        answer = {
            "apiVersion": review["apiVersion"],
            "kind": review["kind"],
            "response": {"uid": request["uid"], **self.respond(request)},
        }
        return 200, "application/json", json.dumps(answer).encode()


@contextmanager
def serving(
    respond: Respond = lambda request: {"allowed": True}, certificate: str = ""
) -> Iterator[Hook]:
    """Run a webhook. ``certificate``: the file of it for HTTPS, without its suffix."""
    hook = Hook(respond)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, content_type, content = hook.answer(self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = (
        False  # closing waits for answers at work: a late one would work in the next test's folder
    )
    server.handle_error = lambda *args: None  # type: ignore[method-assign]
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / f"{certificate}.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    hook.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def json_patch(*operations: Object) -> Object:
    """Make the part of a response that patches the object."""
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
    }


def rule(
    resources: str = "configmaps",
    operations: tuple[str, ...] = ("CREATE", "UPDATE"),
    *,
    group: str = "",
    version: str = "v1",
    **others: Any,
) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resources],
        **others,
    }


def configuration(kind: str, name: str = "hooks", *webhooks: Object, **common: Any) -> Object:
    """Make a configuration; each webhook is completed by what all of them have in common."""
    complete = [
        {
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "name": "hook.example.com",
            "clientConfig": {"service": {"namespace": "default", "name": "hook"}},
            "rules": [rule()],
            **common,
            **webhook,
        }
        for webhook in webhooks or ({},)
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": complete,
    }
