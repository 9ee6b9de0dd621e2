"""The answers of the containers of modelled pods on their ports."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api.meta import name_of
from kubepy.kubelet.behaviours import Behaviour, expanded, schedule_of
from kubepy.kubelet.modelled.programs import program_of
from kubepy.kubelet.network import Listener
from kubepy.kubelet.network.listeners import path_of, ports_of, reason_of, running_containers
from kubepy.shell.files import FileError, FileSystem
from kubepy.shell.surroundings import HttpAnswer, NetworkError, NetworkRequest

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod
    from kubepy.shell.machine import Machine

HTML, PLAIN = "text/html", "text/plain; charset=utf-8"
TYPES = {".html": HTML, ".htm": HTML, ".txt": "text/plain", ".json": "application/json",
         ".css": "text/css", ".js": "application/javascript"}  # fmt: skip
FindMachine = Callable[["Pod", "Container"], "Machine | None"]


class Listeners:
    """Finds what listens on a port of a pod.

    :param behaviour_of: returns what is known of a container of a pod.
    :param machine_of: returns the processes of a container, None where nothing is known of them.
    :param service_ports: returns the ports of a pod to which Services lead.
    """

    def __init__(
        self,
        behaviour_of: Callable[[Pod, Container], Behaviour],
        machine_of: FindMachine = lambda pod, container: None,
        service_ports: Callable[[Pod], Iterable[int]] = lambda pod: (),
    ) -> None:
        self._behaviour_of = behaviour_of
        self._machine_of = machine_of
        self._service_ports = service_ports

    def __call__(self, pod: Pod, port: int) -> Listener | None:
        """Return the first container that listens on a port."""
        for container, started in running_containers(pod):
            behaviour = self._behaviour_of(pod, container)
            if self._listens(
                pod,
                container,
                behaviour,
                port,
            ):
                site = Site(
                    pod,
                    container,
                    behaviour,
                    self._machine_of,
                )
                return Listener(container["name"], site.answering(started))
        return None

    def _listens(self, pod: Pod, container: Container, behaviour: Behaviour, port: int) -> bool:
        """Tell whether a container listens on a port. One whose program is known to the last word
        listens where that says so, whatever ports the manifest declares."""
        ports = ports_of(container, behaviour)
        is_said = port in ports
        is_unknown = not behaviour.is_known and program_of(container, behaviour).is_opaque
        if not ports and is_unknown and behaviour.listens is None:
            return port in self._service_ports(pod)
        if behaviour.listens is not None or program_of(container, behaviour).is_opaque:
            return is_said
        machine = self._machine_of(pod, container)
        if machine is None:
            return False
        return port in machine.ports or (is_said and bool(machine.unknowns))


class Site:
    """The answers of one container to requests over HTTP."""

    def __init__(
        self, pod: Pod, container: Container, behaviour: Behaviour, machine_of: FindMachine
    ) -> None:
        self._pod = pod
        self._container = container
        self._behaviour = behaviour
        self._machine_of = machine_of

    def answering(self, started: datetime) -> Callable[[NetworkRequest, datetime], HttpAnswer]:
        """Return the function that answers for a container which has started then."""

        def answer(request: NetworkRequest, now: datetime) -> HttpAnswer:
            return self._answer(request, started, now)

        return answer

    def _answer(self, request: NetworkRequest, started: datetime, now: datetime) -> HttpAnswer:
        if not request.method:
            return self._answer_nonsense()
        age = (now - started).total_seconds()
        path = path_of(request)
        schedule = schedule_of(self._behaviour, path)
        line = f"{name_of(self._pod)}\n"
        if schedule is not None:
            reply = schedule.at(age)
            body = line
            if reply.body is not None:
                body = expanded(reply.body, {**self._variables(), **_asked(request, now)})
            if reply.body is None and reply.status >= 400:
                body = f"{reason_of(reply.status)}\n"
            return _answer(reply.status, body.encode(), reply.headers)
        if self._behaviour.serves:
            return self._file(path)
        if self._behaviour.http:
            return _answer(404, b"404 page not found\n")
        return _answer(200, line.encode())

    def _answer_nonsense(self) -> HttpAnswer:
        """Answer to what is no HTTP, as a server of HTTP does. Raises NetworkError where none is
        known: what other servers answer is not modelled."""
        if self._behaviour.http or self._behaviour.serves:
            return _answer(400, b"400 Bad Request", (("Connection", "close"),))
        raise NetworkError("reset")

    def _variables(self) -> Mapping[str, str]:
        status = self._pod.get("status") or {}
        return {
            "HOSTNAME": name_of(self._pod),
            "POD_NAME": name_of(self._pod),
            "POD_IP": status.get("podIP") or "",
            "NODE_NAME": self._pod["spec"].get("nodeName") or "",
        }

    def _file(self, path: str) -> HttpAnswer:
        """Return a file of the folder that a web server serves."""
        files = self._files()
        target = posixpath.normpath(f"{self._behaviour.serves}/{path.lstrip('/')}")
        if files.is_dir(target):
            index = f"{target}/index.html"
            if not files.exists(index):
                return _answer(403, _page(403), (("Content-Type", HTML),))
            target = index
        try:
            data = files.read(target)
        except FileError:
            return _answer(404, _page(404), (("Content-Type", HTML),))
        media_type = TYPES.get(posixpath.splitext(target)[1], "application/octet-stream")
        return _answer(200, data, (("Content-Type", media_type),))

    def _files(self) -> FileSystem:
        machine = self._machine_of(self._pod, self._container)
        if machine is not None:
            return machine.files
        from kubepy.shell.files import Tree

        return FileSystem(Tree.of(self._behaviour.files))


def _asked(request: NetworkRequest, now: datetime) -> dict[str, str]:
    """Return the variables of a request."""
    return {
        "CLIENT_ADDRESS": request.client,
        "REQUEST_METHOD": request.method,
        "NOW": f"{now:%Y-%m-%d %H:%M:%S.%f} +0000 UTC",
        "REQUEST_PATH": path_of(request),
        "REQUEST_URL": request.url,
    }


def _page(status: int) -> bytes:
    title = f"{status} {reason_of(status)}"
    return (
        f"<html>\n<head><title>{title}</title></head>\n<body>\n<center><h1>{title}</h1></center>\n"
        "</body>\n</html>\n"
    ).encode()


def _answer(status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> HttpAnswer:
    names = {name.lower() for name, _ in headers}
    own = () if "content-type" in names else (("Content-Type", PLAIN),)
    length = (("Content-Length", str(len(body))),)
    return HttpAnswer(
        status,
        reason_of(status),
        (*own, *headers, *length),
        body,
    )
