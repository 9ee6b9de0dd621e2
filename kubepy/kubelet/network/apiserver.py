"""The answers of the API server to requests out of pods: objects are not read through the
simulated network, as if the credentials did not do."""

from __future__ import annotations

import json
from datetime import datetime

from kubepy import KUBERNETES_VERSION
from kubepy.apiserver.bootstrap import API_SERVER_ADDRESS, API_SERVER_PORT
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
    """Return the answer to a request: to one with a token the versions of the API too."""
    if request.url.startswith("http://"):
        return text_answer(400, PLAIN_HTTP)
    path = path_of(request)
    if path in HEALTH:
        return text_answer(200, "ok")
    if path in ("/version", "/version/"):
        document = json.dumps(_version(), indent=2)
        return text_answer(200, document, JSON)
    if path in ("/api", "/api/") and _has_token(request):
        document = json.dumps(_versions(), indent=2)
        return text_answer(200, document, JSON)
    denial = json.dumps(UNAUTHORIZED, indent=2)
    return text_answer(401, f"{denial}\n", JSON)


def _has_token(request: NetworkRequest) -> bool:
    headers = {name.lower(): value for name, value in request.headers}
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and bool(token.strip())


def _versions() -> dict[str, object]:
    address = f"{API_SERVER_ADDRESS}:{API_SERVER_PORT}"
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _version() -> dict[str, str]:
    numbers = KUBERNETES_VERSION.removeprefix("v")
    major, minor, _ = numbers.split(".")
    return {"major": major, "minor": minor, "gitVersion": KUBERNETES_VERSION}
