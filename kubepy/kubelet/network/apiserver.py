"""The answers of the API server to requests out of pods: as to one without credentials."""

from __future__ import annotations

import json
from datetime import datetime

from kubepy import KUBERNETES_VERSION
from kubepy.kubelet.network.listeners import JSON, path_of, text_answer
from kubepy.shell.surroundings import HttpAnswer, NetworkRequest

HEALTH = ("/healthz", "/livez", "/readyz")
PLAIN_HTTP = "Client sent an HTTP request to an HTTPS server.\n"
UNAUTHORIZED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}


def answer(request: NetworkRequest, now: datetime) -> HttpAnswer:
    """Return the answer to a request; objects are not read through the simulated network."""
    if request.url.startswith("http://"):
        return text_answer(400, PLAIN_HTTP)
    path = path_of(request)
    if path in HEALTH:
        return text_answer(200, "ok")
    if path in ("/version", "/version/"):
        document = json.dumps(_version(), indent=2)
        return text_answer(200, document, JSON)
    denial = json.dumps(UNAUTHORIZED, indent=2)
    return text_answer(401, f"{denial}\n", JSON)


def _version() -> dict[str, str]:
    numbers = KUBERNETES_VERSION.removeprefix("v")
    major, minor, _ = numbers.split(".")
    return {"major": major, "minor": minor, "gitVersion": KUBERNETES_VERSION}
