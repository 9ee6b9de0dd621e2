"""The calls of webhooks as values: where one answers, what it is asked, what it has answered.

Upstream: ``apiserver/pkg/util/webhook/client.go``, ``apiserver/pkg/util/proxy``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kubepy.api.meta import Object
from kubepy.apiserver.settings import ALLOWS
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage import Key

with lazy_imports():  # only webhooks with URLs need them
    from kubepy.api.values import gourls

LAST_PORT = 65535


class Endpoint(NamedTuple):
    """The place where a webhook answers.

    ``url`` is what messages show; ``address`` is the base URL to connect to, that of ``url`` or of
    the mapped Service. ``server_name`` is the name that its certificate must have. ``problem`` is
    set where no call is possible.
    """

    url: str
    address: str = ""
    server_name: str = ""
    ca_bundle: str = ""
    problem: str = ""


def resolve(
    client_config: Object,
    timeout: int,
    services: Mapping[str, str],
    get: Callable[[Key], Object | None],
) -> Endpoint:
    """Find the place where a webhook answers: its URL, or the one to which ``services`` maps its
    Service.

    No pod here answers requests. So a Service that is not mapped has no endpoints, whatever its
    pods.
    """
    ca_bundle = (client_config.get("caBundle") or "").strip()
    if (service := client_config.get("service")) is None:
        url = gourls.parse(client_config["url"])
        base = f"{url.scheme}://{url.host}"
        shown = f"{base}{_joined(url.raw_path)}?timeout={timeout}s"
        if problem := _undialable(url):
            return Endpoint(shown, ca_bundle=ca_bundle, problem=problem)
        return Endpoint(shown, base, url.hostname, ca_bundle)

    name, namespace, port = (
        service.get("name", ""),
        service.get("namespace", ""),
        service.get("port") or 443,
    )
    server_name = f"{name}.{namespace}.svc"
    shown = f"https://{server_name}:{port}{_joined(service.get('path') or '')}?timeout={timeout}s"
    address = _mapped(services, namespace, name, port)
    if address and address != ALLOWS:
        return Endpoint(shown, address, server_name, ca_bundle)
    reason = unreachable_reason(get(Key("services", namespace, name)), name, port)
    return Endpoint(shown, ca_bundle=ca_bundle, problem=reason)


def allows_everything(
    client_config: Object,
    services: Mapping[str, str],
    get: Callable[[Key], Object | None],
) -> bool:
    """Tell whether a webhook allows everything and changes nothing, because ``services`` says so of
    its Service or its URL. A Service must have an endpoint that is ready for it."""
    service = client_config.get("service")
    if service is None:
        url = gourls.parse(client_config["url"])
        return services.get(f"{url.scheme}://{url.host}") == ALLOWS
    namespace = service.get("namespace", "")
    name = service.get("name", "")
    port = service.get("port") or 443
    if _mapped(services, namespace, name, port) != ALLOWS:
        return False
    endpoints = get(Key("endpoints", namespace, name)) or {}
    return any(subset.get("addresses") for subset in endpoints.get("subsets") or ())


def _undialable(url: gourls.GoUrl) -> str:
    """Say why there can be no connection to the host of a URL, which is valid; "" where there may
    be."""
    if url.port and int(url.port) > LAST_PORT:
        return f"dial tcp: address {url.port}: invalid port"
    try:
        urlsplit(f"{url.scheme}://{url.host}")
        url.hostname.encode("idna")
    except ValueError:  # of names that cannot be looked up
        return f"dial tcp: lookup {url.hostname}: no such host"
    return ""


def _mapped(services: Mapping[str, str], namespace: str, name: str, port: int) -> str | None:
    """Return what a port of a Service is mapped to, or else the whole Service; None: nothing."""
    return services.get(f"{namespace}/{name}:{port}") or services.get(f"{namespace}/{name}")


def _joined(path: str) -> str:
    return posixpath.normpath(f"/{path.lstrip('/')}")


def unreachable_reason(service: Object | None, name: str, port: int) -> str:
    """Say why a Service cannot be called (``apiserver/pkg/util/proxy``, ``ResolveEndpoint``)."""
    if service is None:
        return f"service {quote(name)} not found"
    spec = service.get("spec") or {}
    if spec.get("type") not in ("ClusterIP", "LoadBalancer", "NodePort"):
        return f"unsupported service type {quote(spec.get('type', ''))}"
    if all(service_port.get("port") != port for service_port in spec.get("ports") or ()):
        return f"no service port {port} found for service {quote(name)}"
    return f"no endpoints available for service {quote(name)}"


class WebhookCall(NamedTuple):
    """A review that is to be posted.

    ``caller`` tells webhooks that have the same endpoint from each other; ``request`` is the
    content as the JSON of an object, without the uid.
    """

    caller: str
    endpoint: Endpoint
    timeout: int
    api_version: str
    kind: str
    request: str


class Answer(NamedTuple):
    """The answer to a call: the review, or else a ``problem`` in Go's words, and at what it came
    up.

    ``uid`` and ``sent_as`` are the uid and apiVersion of the review that was sent.
    """

    uid: str
    sent_as: str
    review: Mapping[str, Any]
    problem: str = ""
    stage: str = "failed to call webhook"
