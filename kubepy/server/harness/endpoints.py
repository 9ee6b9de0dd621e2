"""The answers to requests of harnesses, each for members of ``system:masters`` alone."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from kubepy.api import errors
from kubepy.api.clock import CLOCK_YEARS, YEARS_RULE, format_exact_time, later
from kubepy.api.meta import Object
from kubepy.api.values.goformat import parse_span
from kubepy.apiserver.authorization import ALL_AUTHENTICATED, PRIVILEGED_GROUP
from kubepy.apiserver.server import ADMINISTRATOR
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.open import MEMORY, is_in_etcd, restore_cluster, shown
from kubepy.quoting import quote
from kubepy.results import CommandResult
from kubepy.server import authentication
from kubepy.server.application import Application
from kubepy.server.harness.bodies import (
    BodyField,
    is_filled_text,
    is_list_of_texts,
    is_text,
    read_body,
)
from kubepy.server.harness.forks import Fork, Forks, NewChain
from kubepy.server.messages import HttpRequest, RequestInfo, Response

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

T = TypeVar("T")
ROOT = "kubepy"  # the first part of all paths
# The administrator whose token a server has is in another group than system:masters, as kubeadm's.
MAY_ASK = frozenset((PRIVILEGED_GROUP, *ADMINISTRATOR["groups"])) - {ALL_AUTHENTICATED}
THREADS = 2  # plans and diagnoses at the same time
PROGRAMS = ("kubectl", "kubepy")
LENGTH_OF_TIME = BodyField(is_filled_text, 'a length of time, such as "30m"')
FORK_ID = BodyField(is_filled_text, "the id of a fork")
COMMAND = BodyField(
    is_list_of_texts, 'the words of a command, such as ["scale", "deploy/web", "--replicas=3"]'
)
OBJECT = BodyField(is_filled_text, 'an object, such as "deploy/web"')
STDIN = BodyField(is_text, "a text", "")
NAMESPACE = BodyField(is_filled_text, "the name of a namespace", "default")
_SERVER_ERROR = re.compile(r"Error from server \((\w+)\): (.*)", re.DOTALL)
_CODES = {"NotFound": 404, "Forbidden": 403, "Invalid": 422, "Conflict": 409}


class Harness:
    """Answers the requests of harnesses for one application.

    :param new_chain: makes the way of the requests of another application: that of a fork.
    """

    def __init__(self, application: Application, new_chain: NewChain) -> None:
        self._application = application
        self.forks = Forks(application, new_chain)
        self._threads = ThreadPoolExecutor(THREADS, "harness")
        self._mover = ThreadPoolExecutor(1, "harness clock")  # resets and moves follow each other
        self._is_ending = threading.Event()
        application.attached.append(self)

    async def stop(self) -> None:
        """End what goes on for long: the streams of forks, and time that is moved."""
        self._is_ending.set()
        await self.forks.stop()

    def close(self) -> None:
        """Let go of forks and threads."""
        self._is_ending.set()
        for threads in (self._threads, self._mover):
            threads.shutdown(cancel_futures=True)
        self.forks.close()

    def check_user(self, request: HttpRequest, info: RequestInfo, cluster: LocalCluster) -> None:
        """Let nobody but administrators pass. Raises Unauthorized, Forbidden, BadRequest."""
        user = authentication.identify(request, info, self._application, cluster)
        if MAY_ASK.isdisjoint(user.get("groups") or ()):
            attributes = authentication.attributes_of(info, user)
            raise attributes.forbidden(f"only members of {PRIVILEGED_GROUP} may")

    async def answer(
        self, request: HttpRequest, info: RequestInfo, is_over: Callable[[], bool]
    ) -> Response:
        """Answer a request, with its whole body, of a user who may make it. Raises Status,
        StorageError.

        :param is_over: tells whether the client has gone.
        """
        methods: Mapping[str, Method]
        match info.parts[1:]:
            case ("forks",):
                methods = {"GET": self._list_forks, "POST": self._add_fork}
            case ("forks", fork_id):
                methods = {
                    "GET": lambda _: self._show_fork(fork_id),
                    "DELETE": lambda _: self._drop_fork(fork_id),
                }
            case ("reset",):
                methods = {"POST": self._reset}
            case ("clock", "advance"):
                methods = {"POST": lambda request: self._advance(request, is_over)}
            case ("plan",):
                methods = {"POST": self._plan}
            case ("why",):
                methods = {"POST": self._explain}
            case _:
                raise errors.no_such_resource()
        return await _method_of(methods, request)(request)

    # --- forks

    async def _add_fork(self, request: HttpRequest) -> Response:
        read_body(request, "Fork", {})
        fork = await self.forks.add()
        return _json(self._fork_document(fork), 201)

    async def _list_forks(self, request: HttpRequest) -> Response:
        return _json({"forks": [self._fork_document(fork) for fork in self.forks.all()]})

    async def _show_fork(self, fork_id: str) -> Response:
        return _json(self._fork_document(self.forks.get(fork_id)))

    async def _drop_fork(self, fork_id: str) -> Response:
        await self.forks.drop(fork_id)
        details = {"name": fork_id, "kind": "forks"}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _json({**status, "details": details})

    def _fork_document(self, fork: Fork) -> Object:
        return {"id": fork.id, "server": f"{self._application.prefix}{fork.server}"}

    # --- reset, and time

    async def _reset(self, request: HttpRequest) -> Response:
        fork_id = read_body(request, "Reset", {"to": FORK_ID})["to"]
        application = self._application
        if application.place != MEMORY:
            raise errors.status_of(_irresettable(application.place), "MethodNotAllowed", 405)
        try:
            fork = self.forks.get(fork_id)
        except errors.NotFound:
            raise errors.invalid("Reset", "", [errors.field_not_found("to", fork_id)]) from None

        def reset(cluster: LocalCluster) -> Object:
            with application.without_controllers():
                restore_cluster(cluster, fork.cluster)
            return self._time_document(cluster)

        return _json(await self._run(self._mover, reset))

    async def _advance(self, request: HttpRequest, is_over: Callable[[], bool]) -> Response:
        text = read_body(request, "ClockAdvance", {"by": LENGTH_OF_TIME})["by"]
        try:
            seconds = parse_span(text)
        except ValueError as error:
            raise _wrong_length(text, str(error)) from None
        if not seconds >= 0:
            raise _wrong_length(text, "time cannot go back")

        def has_ended() -> bool:
            return is_over() or self._is_ending.is_set()

        def advance(cluster: LocalCluster) -> Object:
            self._move_time(cluster, text, seconds, has_ended)
            return self._time_document(cluster)

        return _json(await self._run(self._mover, advance))

    def _move_time(
        self, cluster: LocalCluster, text: str, seconds: float, has_ended: Callable[[], bool]
    ) -> None:
        """Let the controllers of the server do what falls due within a length of time. Raises
        Status, StorageError."""
        cluster.client.take_over_time()
        if cluster.clock.own is None:
            raise errors.status_of(
                "the time of this cluster is the system's, which cannot be moved",
                "MethodNotAllowed",
                405,
            )
        until = later(cluster.clock.now(), seconds)
        if until.year not in CLOCK_YEARS:
            raise _wrong_length(text, YEARS_RULE)
        application = self._application
        with application.without_controllers(), manager_lock(cluster) as is_lost:
            if is_lost is None:
                raise errors.Conflict("another process runs the controllers of this cluster")
            if not application.options.controllers:
                cluster.client.move_time_to(until)
                return
            manager = build_manager(cluster, application.options.controllers)
            manager.advance(until, stop=lambda: has_ended() or is_lost())

    def _time_document(self, cluster: LocalCluster) -> Object:
        return {"now": format_exact_time(cluster.clock.now())}

    # --- plans and diagnoses

    async def _plan(self, request: HttpRequest) -> Response:
        body = read_body(request, "Plan", {"command": COMMAND, "stdin": STDIN})
        words = body["command"]
        if words[:1] and words[0] in PROGRAMS:
            words = words[1:]
        return await self._run_command(["plan", "-o", "json", "--", *words], body["stdin"])

    async def _explain(self, request: HttpRequest) -> Response:
        body = read_body(request, "Why", {"object": OBJECT, "namespace": NAMESPACE})
        options = ["-o", "json", f"--namespace={body['namespace']}"]
        return await self._run_command(["why", *options, "--", body["object"]], "")

    async def _run_command(self, words: list[str], stdin: str) -> Response:
        """Run a command that tells something on a fork of the cluster; answer with its document.
        Raises the Status of one that fails."""
        run_command = self._application.options.run_command
        if run_command is None:
            raise errors.status_of("this server runs no commands", "MethodNotAllowed", 405)

        def run(cluster: LocalCluster) -> CommandResult:
            fork = cluster.fork()
            try:
                return run_command(fork, words, stdin)
            finally:
                fork.release()

        output = await self._run(self._threads, run)
        if not output.stdout:
            raise _failure(output.stderr)
        return _json(json.loads(output.stdout))

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[LocalCluster], T]) -> T:
        """Do work on the open cluster in a thread that no other request needs."""
        backend = self._application.backend

        def run() -> T:
            return work(backend.cluster().apart())

        return await asyncio.get_running_loop().run_in_executor(threads, run)


Method = Callable[[HttpRequest], Awaitable[Response]]


def is_for_harness(info: RequestInfo) -> bool:
    """Tell whether a request is one of a harness, or for a fork."""
    return info.parts[:1] == (ROOT,)


def _method_of(methods: Mapping[str, Method], request: HttpRequest) -> Method:
    """Return what answers a request of a path. Raises MethodNotAllowed."""
    method = methods.get(request.method)
    if method is None:
        raise errors.method_not_allowed(sorted(methods))
    return method


def _json(document: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(document, ensure_ascii=False).encode() + b"\n")


def _irresettable(place: str) -> str:
    where = shown(place) if is_in_etcd(place) else f"the folder {place}"
    return f"only a cluster in memory can be reset, and this one is in {where}"


def _wrong_length(text: str, detail: str) -> errors.Status:
    return errors.invalid("ClockAdvance", "", [errors.invalid_value("by", text, detail)])


def _failure(message: str) -> errors.Status:
    """Return the error of a command that printed a message and no document."""
    message = message.strip()
    match = _SERVER_ERROR.fullmatch(message)
    if match is None:
        return errors.BadRequest(message.removeprefix("error: ") or quote("no answer"))
    reason, text = match[1], match[2]
    return errors.status_of(text, reason, _CODES.get(reason, 400))
