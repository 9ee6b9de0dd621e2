"""The containers of a pod that run, their ports, and answers over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from kubepy.api.clock import parse_time
from kubepy.api.meta import AnyObject, nested_list, nested_map, spec_of, status_of
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.kubelet.network.services import protocol_of
from kubepy.shell.surroundings import HttpAnswer, NetworkRequest

TEXT, JSON = "text/plain; charset=utf-8", "application/json"
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
PROBED_BY = ("httpGet", "tcpSocket", "grpc")

AnswerRequest = Callable[[NetworkRequest, datetime], HttpAnswer]


class Listener(NamedTuple):
    """A container, or a process in it, that listens on a port."""

    container: str
    http: AnswerRequest


FindListener = Callable[[Any, int], Listener | None]  # of a pod and the number of a port


class Listening(Protocol):
    """The part of a container's behaviour that says where it listens."""

    @property
    def listens(self) -> tuple[int, ...] | None: ...


def running_containers(pod: AnyObject) -> Iterator[tuple[Any, datetime]]:
    """Yield the containers that run, each with the time of its start: sidecars first."""
    spec = spec_of(pod)
    starts = {}
    for status in _container_statuses(pod):
        start = nested_map(status, "state", "running").get("startedAt")
        if start:
            starts[status["name"]] = parse_time(start)

    sidecars = filter(is_restartable_init_container, nested_list(spec, "initContainers"))
    for container in (*sidecars, *nested_list(spec, "containers")):
        name = container["name"]
        if name in starts:
            yield container, starts[name]


def _container_statuses(pod: AnyObject) -> Iterator[AnyObject]:
    status = status_of(pod)
    yield from nested_list(status, "initContainerStatuses")
    yield from nested_list(status, "containerStatuses")


def ports_of(container: AnyObject, behaviour: Listening) -> Sequence[int]:
    """Return the ports on which a container listens.

    Where neither a rule nor the table of well-known images says it, the manifest is believed: the
    ports that the container declares, or else those that its probes ask.
    """
    if behaviour.listens is not None:
        return behaviour.listens
    declared = []
    for port in nested_list(container, "ports"):
        if protocol_of(port) == "TCP":
            declared.append(port["containerPort"])
    return declared or list(_probed_ports(container))


def _probed_ports(container: AnyObject) -> Iterator[int]:
    for probe in PROBES:
        for handler in PROBED_BY:
            port = nested_map(container, probe, handler).get("port")
            if isinstance(port, int):
                yield port


# --- answers --------------------------------------------------------------------------------------


def text_answer(status: int, body: str, media_type: str = TEXT) -> HttpAnswer:
    data = body.encode()
    length = str(len(data))
    headers = (("Content-Type", media_type), ("Content-Length", length))
    return HttpAnswer(
        status,
        reason_of(status),
        headers,
        data,
    )


def reason_of(status: int) -> str:
    """Return the words of a status; "" for a number that HTTP does not have."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def path_of(request: NetworkRequest) -> str:
    """Return the path of a request's URL, without its query."""
    url = request.url
    if "://" not in url:
        url = f"http://{url}"
    parts = urlsplit(url)
    return parts.path or "/"
