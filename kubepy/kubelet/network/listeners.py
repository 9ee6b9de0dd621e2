"""The listeners on the ports of a pod, and their answers.

A container that listens answers 200 with the pod's name, unless its behaviour has paths of its own
(``http``): those have their schedules, and other paths are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from kubepy.api.clock import parse_time
from kubepy.api.meta import AnyObject, name_of, nested_list, nested_map, spec_of, status_of
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.kubelet.network.services import protocol_of
from kubepy.shell.surroundings import Headers, HttpAnswer, NetworkRequest

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

TEXT, JSON = "text/plain; charset=utf-8", "application/json"
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
PROBED_BY = ("httpGet", "tcpSocket", "grpc")

AnswerRequest = Callable[[NetworkRequest, datetime], HttpAnswer]


class Listener(NamedTuple):
    """A container, or a process in it, that listens on a port."""

    container: str
    http: AnswerRequest


FindListener = Callable[[Any, int], Listener | None]  # of a pod and the number of a port


class Reply(Protocol):
    """An answer to a request. ``body``: None for the line that names the pod."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> str | None: ...

    @property
    def headers(self) -> Headers: ...


class ReplySchedule(Protocol):
    """The answers to requests of one path, one after the other."""

    def at(self, seconds: float) -> Reply:
        """Return the answer so many seconds after the container's start."""


class Listening(Protocol):
    """The part of a container's behaviour that the network reads."""

    @property
    def listens(self) -> tuple[int, ...] | None: ...

    @property
    def http(self) -> tuple[tuple[str, ReplySchedule], ...]: ...


FindSchedule = Callable[[Any, str], ReplySchedule | None]  # of a behaviour and a path


def exact_schedule(behaviour: Listening, path: str) -> ReplySchedule | None:
    """Return the answers to requests of that very path."""
    schedules = dict(behaviour.http)
    return schedules.get(path)


class DeclaredListeners:
    """Finds the container that listens on a port as its behaviour and its manifest say.

    :param behaviour_of: returns the behaviour of a container of a pod.
    :param schedule_of: returns the answers of a behaviour to a path; it may know patterns.
    """

    def __init__(
        self,
        behaviour_of: Callable[[Any, Any], Listening],
        schedule_of: FindSchedule = exact_schedule,
    ) -> None:
        self._behaviour_of = behaviour_of
        self._schedule_of = schedule_of

    def __call__(self, pod: Pod, port: int) -> Listener | None:
        for container, started in running_containers(pod):
            behaviour = self._behaviour_of(pod, container)
            ports = ports_of(container, behaviour)
            if port in ports:
                find = partial(self._schedule_of, behaviour) if behaviour.http else None
                answer = answer_of(pod, started, find)
                return Listener(container["name"], answer)
        return None


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


def answer_of(
    pod: AnyObject, started: datetime, find: Callable[[str], ReplySchedule | None] | None
) -> AnswerRequest:
    """Return what a container answers that started then.

    :param find: returns the answers to a path; None: every path is answered alike.
    """
    line = f"{name_of(pod)}\n"

    def answer(request: NetworkRequest, now: datetime) -> HttpAnswer:
        if find is None:
            return text_answer(200, line)
        schedule = find(path_of(request))
        if schedule is None:
            return text_answer(404, "404 page not found\n")
        age = now - started
        reply = schedule.at(age.total_seconds())
        return _answer_with(reply, line)

    return answer


def _answer_with(reply: Reply, line: str) -> HttpAnswer:
    body = reply.body
    if body is None:
        body = line
        if reply.status >= 400:
            body = f"{reason_of(reply.status)}\n"
    answer = text_answer(reply.status, body)
    if not reply.headers:
        return answer
    return answer._replace(headers=(*reply.headers, *answer.headers))


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
