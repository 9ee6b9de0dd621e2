"""The cluster for Python programs: ``from kubepy import Cluster``. docs/python.md describes it.

What that page names is stable; everything else in the package is private and may change with any
version.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from threading import Condition, RLock, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict, Unpack, cast

from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.arguments import checked
from kubepy.cli.errors import CliError
from kubepy.cli.names import KUBECTL, KUBEPY
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.results import CommandResult, ScriptResult
from kubepy.runtime.objectrequests import (
    DEFAULT_NAMESPACE,
    ObjectRequests,
    own_copy,
    plain,
    resource_of,
    selector_of,
)

if TYPE_CHECKING:
    from kubepy.api.scheme import Resource
    from kubepy.apiserver.cluster import AddedControllers, LocalCluster
    from kubepy.cli.runtime.infos import Scope
    from kubepy.cli.watch import Event
    from kubepy.serving import ClusterServer

with lazy_imports():
    from concurrent import futures

    from kubepy import controlplane, insight, scripting, serving, storage
    from kubepy.api import clock as clocks
    from kubepy.api import errors
    from kubepy.api.values import goformat
    from kubepy.apiserver import settings as cluster_settings
    from kubepy.cli import inner_commands, plan_processes
    from kubepy.cli import main as command_line
    from kubepy.cli import watch as watches
    from kubepy.cli.runtime import factory as factories
    from kubepy.cli.runtime import infos
    from kubepy.controlplane import functions, furnishing
    from kubepy.controlplane import open as opening
    from kubepy.insight import timeline
    from kubepy.insight import why as explanations
    from kubepy.insight.why import verdict

# Aliases, because the method ``ObjectClient.list`` hides the builtin inside its class.
Objects = list[Object]
if TYPE_CHECKING:
    Events = list[Event]

FIRST_MOMENT = "2026-01-01T00:00:00Z"  # at which a temporary cluster's own time begins
FIELD_MANAGER = "kubepy-python"
POLL_SECONDS = 0.02
OTHERS_SECONDS = 2.0  # how long a command of another thread may keep the controllers to itself
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # statuses of a process asked to stop


class CommandError(Exception):
    """A command line failed that was run with ``check=True``.

    :ivar command: the command line.
    :ivar result: its output and exit status.
    """

    def __init__(self, command: str, result: CommandResult) -> None:
        super().__init__(command, result)
        self.command = command
        self.result = result

    def __str__(self) -> str:
        result = self.result
        message = result.stderr or result.stdout
        text = f"{self.command}: exit status {result.status}\n{message}"
        return text.rstrip()


class RunsSettings(TypedDict, total=False):
    """The settings of :meth:`Cluster.plan` for several runs."""

    runs: int
    jobs: int
    executor: futures.Executor


class PlannedChange(NamedTuple):
    """What a command would do; true if all of it finishes.

    :ivar document: the plan as ``kubepy plan -o json`` prints it.
    """

    document: Object

    def __bool__(self) -> bool:
        return self.finishes

    @property
    def finishes(self) -> bool:
        """Whether the command comes to an end, and every workload that it concerns gets where it
        should be."""
        return bool(self.document["finishes"])

    @property
    def settled_after(self) -> timedelta | None:
        """The cluster's time until nothing is due but what repeats for ever; None: that is beyond
        the limit."""
        text = self.document["settledAfter"]
        if text is None:
            return None
        seconds = goformat.parse_span(text)
        return timedelta(seconds=seconds)

    @property
    def runs(self) -> Object | None:
        """The spread of several runs: ``count``, ``finished``, ``failed``, ``worst``,
        ``finishedAfter``; None where it was tried once."""
        return self.document.get("runs")

    @property
    def workloads(self) -> Objects:
        """The workloads that the command concerns, with their numbers and bounds."""
        return list(self.document["workloads"])

    @property
    def harm(self) -> Objects:
        """What it does to objects that were better before: ``kind``, ``object``, ``before``,
        ``after``, ``at``, ``for``."""
        return list(self.document["harm"])

    @property
    def steps(self) -> Objects:
        """What each object does, in order."""
        return list(self.document["steps"])


class ClosedError(CliError, ValueError):
    """The cluster is closed; a command line ends with this error."""


class Cluster:
    """A cluster: a state folder, one in etcd, or one in memory.

    Make one with :meth:`open`, :meth:`create`, :meth:`temporary` or :meth:`fork`. It may be used
    from several threads: they take turns. As a context manager it closes itself.
    """

    def __init__(self, local: LocalCluster, place: str = "") -> None:
        """Private: use :meth:`open`, :meth:`create` or :meth:`temporary`."""
        self._lock = Condition(RLock())
        self._place = place
        self._local: LocalCluster | None = None
        self._is_closed = False
        self._waiting = 0  # commands that let others use the cluster until they look again
        self._working = False  # the controllers, for settle or advance
        self._before_pause: Callable[[], object] = lambda: None
        self._observed: Callable[[LocalCluster], LocalCluster] = lambda local: local
        self._owner = 0  # the thread whose turn it is
        self._server: ClusterServer | None = None
        self._added: AddedControllers | None = None
        self.client = ObjectClient(self)
        self._use(local)

    # --- clusters ---------------------------------------------------------------------------------

    @classmethod
    @checked
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the cluster of a state folder, or one in etcd (``etcd://HOST:PORT/PREFIX``). Raises
        NoClusterError, StorageError."""
        place = _place_of(path)
        return cls(opening.open_cluster(place), place)

    @classmethod
    @checked
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        nodes: int = 1,
        clock: datetime | str | None = None,
        seed: int | str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make a cluster in a folder or in etcd, as ``kubepy init`` does, and open it.

        :param nodes: how many Ready nodes to make: node-1, node-2 …
        :param clock: the moment at which the cluster's own time begins; None: its time is the
            system's.
        :param seed: what everything random is a function of; None: it is random.
        :param settings: other settings for ``kubepy.yaml``.

        Raises ValueError for a wrong setting, FolderError where there is a cluster already or the
        folder cannot be written.
        """
        place = _place_of(path)
        if opening.has_cluster(place):
            raise storage.FolderError(
                f"there is a cluster in {quote(opening.shown(place))} already"
            )
        _check_nodes(nodes)
        folder = "" if opening.is_in_etcd(place) else place
        opening.begin_cluster(place, _settings(clock, seed, settings, folder))
        local = opening.open_cluster(place, create=True)
        local = local.with_faults(local.settings.faults)
        furnishing.furnish(local, nodes)
        local.finish()
        return cls(local, place)

    @classmethod
    @checked
    def temporary(
        cls,
        *,
        nodes: int = 1,
        clock: datetime | str | None = FIRST_MOMENT,
        seed: int | str | None = 1,
        settings: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make a cluster in memory, which is gone with its last reference.

        Unlike those of :meth:`create`, its time is its own unless ``clock`` is None, and begins at
        2026-01-01T00:00:00Z; nothing in it is random unless ``seed`` is None.
        """
        _check_nodes(nodes)
        settings_file = _settings(clock, seed, settings)
        local = _new_in_memory(nodes, settings_file)
        return cls(local)

    def fork(self) -> Cluster:
        """Return a copy of the cluster in memory; neither sees what is written to the other from
        then on."""
        with self._open() as local:
            return Cluster(local.fork())

    def close(self) -> None:
        """Let go of the cluster. Commands that wait in other threads end. Closing it again does
        nothing."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
            self._lock.wait_for(lambda: not self._waiting, OTHERS_SECONDS)
            if self._local is not None:
                self._local.close()
            self._local = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        local = self._local
        place = repr(opening.shown(self._place)) if self._place else "in memory"
        state = "closed" if local is None else f"at {clocks.format_time(local.clock.now())}"
        return f"<kubepy.Cluster {place}, {state}>"

    @property
    def folder(self) -> str:
        """The absolute path of the state folder; "" for a cluster in memory or in etcd."""
        return "" if opening.is_in_etcd(self._place) else self._place

    @property
    def seed(self) -> int | str | None:
        """The seed of everything random; None where that is random."""
        with self._open() as local:
            return local.settings.seed

    # --- command lines ----------------------------------------------------------------------------

    @checked
    def run(
        self, command: str | Sequence[str], *, stdin: str = "", check: bool = False
    ) -> CommandResult:
        """Run a command line of kubepy in this process, on this cluster.

        :param command: the command line, in which words are quoted as for a POSIX shell, or its
            words. It may begin with ``kubepy`` or ``kubectl``: the program calls itself so then.
        :param stdin: the standard input; "": that of a remedy of :meth:`why`, where it has one.
        :param check: raise CommandError if the exit status is not 0.

        Raises ValueError for a quote that is not closed.
        """
        words = shlex.split(command) if isinstance(command, str) else list(command)
        stdin = stdin or insight.stdin_of(command)
        return self._run(words, stdin, io.StringIO(), io.StringIO(), check=check)

    def _run(
        self,
        words: list[str],
        stdin: str,
        stdout: io.StringIO,
        stderr: io.StringIO,
        *,
        check: bool = False,
    ) -> CommandResult:
        program = words.pop(0) if words[:1] in ([KUBEPY], [KUBECTL]) else KUBEPY
        with self._without_server_controllers(), self._open() as local:
            status = command_line.main(
                words,
                program=program,
                stdin=io.StringIO(stdin, newline=None),
                stdout=stdout,
                stderr=stderr,
                open_cluster=self._observed(local),
            )
        if status in STOPPED:  # the process was asked to stop, not the command
            signal.raise_signal(status - 128)
        result = CommandResult(stdout.getvalue(), stderr.getvalue(), status)
        if check and not result:
            raise CommandError(shlex.join([program, *words]), result)
        return result

    @checked
    def shell(
        self,
        script: str,
        *,
        folder: str | os.PathLike[str] = "",
        timeout: timedelta | str | float = "2m",
        check: bool = False,
    ) -> ScriptResult:
        """Run a script, or any lines for bash, on this cluster: ``shell("./deploy.sh")``.

        ``kubectl`` and ``kubepy`` are the command lines of :meth:`run`, ``sleep`` and ``settle``
        let the cluster's time go on, and ``KUBECONFIG`` is for all other clients: the cluster is
        served meanwhile, unless it is already. It needs the extra ``serve``.

        :param folder: the working directory; "": that of this process.
        :param timeout: how long it may take, in real time.
        :param check: raise CommandError if the exit status is not 0.

        Raises TimeoutError.
        """
        with self.serve() if self._server is None else nullcontext(self._server) as server:
            result = scripting.run_script(
                self, server, script, os.path.abspath(folder or "."), goformat.seconds_of(timeout)
            )
        if check and not result:
            outcome = CommandResult(result.stdout, result.stderr, result.returncode)
            raise CommandError(script, outcome)
        return result

    # --- other clients ----------------------------------------------------------------------------

    @contextmanager
    def serve(
        self, *, controllers: str = "on", authorization: str = "AlwaysAllow"
    ) -> Iterator[ClusterServer]:
        """Serve this cluster over HTTPS for the length of a block, in threads of this process; the
        block gets the server: ``server.kubeconfig``, ``server.url``, ``server.requests``.

        The controllers work beside; a command line, :meth:`settle` and :meth:`advance` let them
        rest for their length. It needs the extra ``serve``.

        :param controllers: ``on``, ``off`` or names of groups, as ``kubepy serve`` takes them.
        :param authorization: ``RBAC`` enforces the roles of the cluster.

        Raises ValueError for a wrong value, or where the cluster is served already.
        """
        with self._open() as local:
            if self._server is not None:
                raise ValueError(f"this cluster is served already, at {self._server.url}")
            self._server = server = serving.ClusterServer(
                local, self._place, controllers=controllers, authorization=authorization
            )
        try:
            yield server
        finally:
            self._server = None
            server.close()

    def _without_server_controllers(self) -> AbstractContextManager[None]:
        """Keep the controllers of the server from working for the length of a block."""
        server = self._server
        return nullcontext() if server is None else server.application.without_controllers()

    # --- time -------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The cluster's time, in UTC."""
        with self._open() as local:
            return local.clock.now()

    @property
    def clock(self) -> datetime | None:
        """The moment at which the cluster's own time stands; None: its time is the system's."""
        with self._open() as local:
            return local.clock.own

    @checked
    def settle(self, limit: timedelta | str | float = "24h") -> bool:
        """Let the controllers work, and time go on, until nothing is due but what repeats for ever.

        Return whether they got there within the limit; otherwise the clock stands at the limit.

        :param limit: of cluster time: ``"30m"``, a timedelta, or seconds. With 0 only what is due
            now is done.

        With the system's time it waits for what is due. Raises LockTimeoutError where another
        process runs the controllers.
        """
        seconds = goformat.seconds_of(limit)
        return self._work(seconds, settled=True)

    @checked
    def advance(self, by: timedelta | str | float) -> None:
        """Let the cluster's own time go on: everything that falls due on the way happens at its own
        moment.

        :param by: ``"30m"``, ``"7d"``, a timedelta, or seconds.

        Raises ValueError if the cluster's time is the system's, or would leave the years that a
        clock can show; LockTimeoutError where another process runs the controllers.
        """
        if self.clock is None:
            raise ValueError(
                "the cluster's time is the system's, which cannot be moved: give the cluster a "
                "clock"
            )
        self._work(goformat.seconds_of(by), settled=False)

    def _work(self, seconds: float, *, settled: bool) -> bool:
        with self._without_server_controllers(), self._open() as local:
            until = clocks.later(local.clock.now(), seconds)
            if local.clock.own and until.year not in clocks.CLOCK_YEARS:
                raise ValueError(f"{clocks.YEARS_RULE}, and that would be the year {until.year}")
            patience = time.monotonic() + OTHERS_SECONDS
            while True:
                with controlplane.manager_lock(local) as is_lost:
                    if is_lost is not None:
                        self._working = True
                        try:
                            manager = controlplane.build_manager(local)
                            manager.advance(until, settled=settled)
                            return manager.is_settled()
                        finally:
                            self._working = False
                if not self._working and (not self._waiting or time.monotonic() > patience):
                    raise storage.LockTimeoutError(
                        "another process runs the controllers of this cluster"
                    )
                self._pause(POLL_SECONDS)

    # --- controllers of one's own -----------------------------------------------------------------

    @checked
    def controller(
        self, name: str, *, watches: Sequence[str]
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that adds a function to the cluster as a controller, which runs beside
        the real ones: in :meth:`settle`, :meth:`advance` and :meth:`plan`, in forks and for
        commands that wait.

        The function is called with a client and a key (``key.resource``, ``key.namespace``,
        ``key.name``) when an object of ``watches`` has changed, and with all of them at first. The
        client is like :attr:`client`, but reads what the controller's informers have seen, and
        writes as a user of its own, ``system:serviceaccount:default:NAME``. What the function
        returns says when the key is to come again: ``"2s"``, a timedelta, seconds; None: when
        something changes. An exception lets it come again after a back-off, and is logged.

        :param watches: resources, named as on the command line: ``["configmaps", "pods"]``.

        Raises ValueError for a name that is taken, or cannot be one.
        """

        def add(reconcile: Callable[..., Any]) -> Callable[..., Any]:
            with self._open() as local:
                if local.added is None:
                    local.added = self._added = functions.FunctionControllers()
                added = cast("functions.FunctionControllers", local.added)
                added.add(functions.ControllerFunction(name, tuple(watches), reconcile))
            return reconcile

        return add

    # --- insight ----------------------------------------------------------------------------------

    @checked
    def why(
        self, kind: str, name: str = "", *, namespace: str = DEFAULT_NAMESPACE
    ) -> explanations.Why:
        """Say whether an object is done, on its way or stuck, and what is to blame:
        ``why("deploy/web")``.

        The controllers do what is due now, as before any command that reads; then nothing is
        changed. What happens later, and which commands would help, is tried on forks. Raises
        NotFound.
        """
        with self.client._request(kind, name) as (_, resource, name):
            local = self._catch_up()
            key = _key_of(resource, name, namespace)
            is_auto = local.settings.reconcile == cluster_settings.AUTO
            return verdict.explain(verdict.Question(local, key, _run_on_fork, is_auto))

    @checked
    def timeline(
        self,
        kind: str = "",
        name: str = "",
        *,
        since: datetime | timedelta | str | float | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Object:
        """Return what has happened, as the document of ``kubepy timeline -o json``:
        ``timeline("deploy/web")``.

        The controllers do what is due now, as before any command that reads; then nothing is
        changed.

        :param kind: with ``name``, or as ``deploy/web``: only this object, present or gone, and
            what it owns; of a node its pods, of a namespace all that was in it. "": all of the
            cluster.
        :param since: a moment (``"2026-01-01T12:00:00Z"`` or a datetime), or how long ago
            (``"30m"``, a timedelta, seconds). None: as far as it is kept.

        Raises NotFound for an object that is not there, and was not.
        """
        key = None
        if kind or name:
            with self.client._request(kind, name) as (_, resource, name):
                key = _key_of(resource, name, namespace)
        with self._open():
            local = self._catch_up()
            start = None if since is None else _start(since, local.clock.now())
            read = timeline.read_timeline(local, start, subject=key)
            if key is not None and not read.steps:
                local.client.get(
                    key.resource, key.name, namespace=key.namespace
                )  # NotFound, if it never was there
            return timeline.timeline_document(read)

    def _catch_up(self) -> LocalCluster:
        """Let the controllers do what is due now, unless they are left to others; return the open
        cluster."""
        assert self._local is not None
        if self._local.settings.reconcile == cluster_settings.AUTO:
            with suppress(storage.LockTimeoutError):  # another process runs the controllers
                self.settle(0)
        return self._local  # settle may have opened the folder anew

    @checked
    def plan(
        self,
        command: str | Sequence[str] = (),
        *,
        stdin: str = "",
        limit: timedelta | str | float = "24h",
        ready_after: str = "",
        stops_after: str = "",
        **settings: Unpack[RunsSettings],
    ) -> PlannedChange:
        """Say what a command line would do, tried on a fork:
        ``plan("set image deploy/web web=web:2")``.

        The controllers do what is due now, as before any command that reads; then nothing is
        changed.

        :param command: as for :meth:`run`; without one, the plan is about what is under way.
        :param limit: how far to look ahead: ``"30m"``, a timedelta, or seconds.
        :param ready_after: the time from a container's start to Ready where no annotation says it:
            ``"5s..20s"``.
        :param stops_after: how long a deleted pod terminates, likewise.
        :param settings: ``runs``: how often it is tried, each time with another seed; ``jobs``:
            how many processes share them; ``executor``: makes them, in place of this process. The
            plan is that of the worst run.

        Raises CommandError if the command fails.
        """
        words = shlex.split(command) if isinstance(command, str) else list(command)
        seconds = goformat.seconds_of(limit)
        flags = ["-o", "json", f"--for={seconds:f}s"]
        times = {"ready-after": ready_after, "stops-after": stops_after}
        for name, text in times.items():
            if text:
                flags.append(f"--{name}={text}")
        counts = {"runs": settings.get("runs"), "jobs": settings.get("jobs")}
        for name, count in counts.items():
            if count is not None:
                flags.append(f"--{name}={count}")
        line = ["plan", *flags, "--", *words]
        with plan_processes.made_by(settings.get("executor")):
            result = self._run(line, stdin, io.StringIO(), io.StringIO())
        if not result.stdout:
            failed = shlex.join(["kubepy", "plan", *words])
            raise CommandError(failed, result)
        document = json.loads(result.stdout)
        return PlannedChange(document)

    # --- the open cluster -------------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[LocalCluster]:
        """Take this thread's turn, with the open cluster as it is now, whoever has changed its
        folder meanwhile."""
        with self._lock:
            if self._local is None or self._is_closed:
                raise ClosedError("this cluster is closed")
            if self._place and not self._is_current(self._local):
                if not self._waiting:  # commands that wait go on with the one that they began with
                    self._local.close()
                self._local = None  # unless it can be opened again
                self._use(opening.open_cluster(self._place))
            assert self._local is not None
            before, self._owner = self._owner, get_ident()
            try:
                yield self._local
            finally:
                self._owner = before

    def _use(self, local: LocalCluster) -> None:
        """Work with an open cluster from now on."""
        local = local.with_faults(local.settings.faults)
        local.clock.pause = self._pause
        if local.added is None:
            local.added = self._added
        self._added = local.added
        self._settings = self._identity_of_settings(local)
        self._revision = local.client.revision()  # custom kinds are known as they were then
        self._local = local

    def _pause(self, seconds: float) -> None:
        """Let other threads have their turns while a command waits. Raises ClosedError."""
        if self._owner != get_ident():  # a thread of the server, which has the same clock
            time.sleep(seconds)
            return
        self._waiting += 1
        try:
            self._before_pause()
            if not self._is_closed:
                self._lock.wait(seconds)
        finally:
            self._owner = get_ident()
            self._waiting -= 1
            self._lock.notify_all()
        if self._is_closed:
            raise ClosedError("this cluster is closed")

    def _identity_of_settings(self, local: LocalCluster) -> object:
        """Return what tells one version of the settings from another."""
        if not opening.is_in_etcd(self._place):
            rules = local.settings.kubelet.rules
            name = rules.file if rules is not None else ""
            return (_identity_of_file(self.folder), _identity_of_file(self.folder, name))
        settings = local.store.settings()
        settings.pop("clock", None)  # requests notice that time has moved
        return settings

    def _is_current(self, local: LocalCluster) -> bool:
        """Return whether the open cluster knows all that others have changed: settings, and custom
        kinds."""
        if self._identity_of_settings(local) != self._settings:
            return False
        try:  # the client forgets custom kinds that have changed
            self._revision, _ = local.client.changes(self._revision)
        except errors.Expired:
            return False
        return True


class ObjectClient(ObjectRequests):
    """The objects of a cluster: ``cluster.client``.

    A kind is named as on the command line: ``deployments``, ``deploy``, ``Deployment``,
    ``deployments.apps``; an object by its kind and name, or as ``deploy/web``. Objects are plain
    dicts, shaped as the JSON of the API, without managedFields; each is the caller's own. The API's
    errors are raised: NotFound, AlreadyExists, Conflict, Invalid …

    No controller runs: :meth:`Cluster.settle`, :meth:`Cluster.advance` and command lines let them
    work.
    """

    _field_manager = FIELD_MANAGER

    def __init__(self, cluster: Cluster) -> None:
        """Private: it is ``cluster.client``."""
        self._cluster = cluster

    def _open(self) -> AbstractContextManager[LocalCluster]:
        return self._cluster._open()

    @checked
    def watch(
        self,
        kind: str,
        *,
        namespace: str | None = DEFAULT_NAMESPACE,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
        timeout: float | None = 0.0,
    ) -> ObjectWatch:
        """Return a watch of the changes from now on; each iteration over it yields those since the
        last one.

        The parameters are those of :meth:`list`.

        :param timeout: seconds of real time for which an iteration waits for a further change;
            None: for ever. Without it the iteration ends at once when there is none, which suits a
            program that changes the cluster itself.
        """
        with self._open() as local:
            resource = resource_of(local.scheme, kind)
            scope = infos.Scope(
                resource,
                (namespace or None) if resource.namespaced else "",
                selector_of(labels),
                selector_of(fields),
            )
            known = {
                (namespace_of(obj), name_of(obj)): obj
                for obj in local.client.list(
                    resource.gvr,
                    namespace=scope.namespace if resource.namespaced else None,
                    label_selector=scope.selector,
                    field_selector=scope.field_selector,
                ).items
            }
            return ObjectWatch(self._cluster, scope, local.client.revision(), known, timeout)


class ObjectWatch:
    """A watch of objects. An iteration yields events: ``type`` is ADDED, MODIFIED or DELETED,
    ``object`` the object."""

    def __init__(
        self,
        cluster: Cluster,
        scope: Scope,
        revision: int,
        known: dict[tuple[str, str], Object],
        timeout: float | None,
    ) -> None:
        """Private: use :meth:`ObjectClient.watch`."""
        self._cluster = cluster
        self._scope = scope
        self._revision = revision
        self._known = known
        self._timeout = timeout

    def __iter__(self) -> Iterator[Event]:
        while True:
            end = None if self._timeout is None else time.monotonic() + self._timeout
            while not (events := self._read()):
                if end is not None and time.monotonic() >= end:
                    return
                time.sleep(POLL_SECONDS)
            for event in events:
                yield event._replace(object=own_copy(event.object))

    def _read(self) -> Events:
        with self._cluster._open() as local:
            factory = factories.Factory(open_cluster=local)
            self._revision, events = watches.changes_since(
                factory, self._scope, self._revision, self._known
            )
            return events


# --- values ---------------------------------------------------------------------------------------


def _settings(
    clock: datetime | str | None,
    seed: int | str | None,
    others: Mapping[str, Any] | None,
    folder: str = "",
) -> dict[str, Any]:
    """Return the settings for ``kubepy.yaml``. Raises ValueError for wrong ones.

    :param folder: the state folder in which a file of rules is looked up.
    """
    settings: dict[str, Any] = plain(others or {})
    if "formatVersion" in settings:
        raise ValueError("settings: formatVersion: kubepy sets it")
    for name in ("clock", "seed"):
        if name in settings:
            raise ValueError(f"settings: {name}: must be given as {name}=")
    if clock is not None:
        try:
            moment = clocks.parse_time(clock) if isinstance(clock, str) else clock
        except ValueError:
            raise ValueError(f"clock={clock!r}: must be a time such as {FIRST_MOMENT}") from None
        if isinstance(clock, str) and cluster_settings.is_too_exact(clock):
            raise ValueError(f"clock={clock!r}: {cluster_settings.FINEST}")
        if moment.tzinfo is None:
            raise ValueError(f"the clock {moment.isoformat()} has no time zone")
        settings["clock"] = clocks.format_exact_time(moment)
    if seed is not None:
        settings["seed"] = seed
    try:
        cluster_settings.parse_settings(settings, folder)
    except storage.FolderError as error:
        message = str(error).removeprefix("kubepy.yaml: ")
        if not message.startswith(("clock:", "seed:")):
            message = f"settings: {message}"
        raise ValueError(message) from None
    return settings


def _check_nodes(nodes: int) -> None:
    if nodes < 0:
        raise ValueError(f"nodes={nodes}: must be greater than or equal to 0")


def _run_on_fork(fork: LocalCluster, words: Sequence[str]) -> int:
    """Run a command line that is tried; what it prints is dropped."""
    run = inner_commands.runner(command_line.main)
    return run(fork, words, insight.stdin_of(words)).status


def _start(since: datetime | timedelta | str | float, now: datetime) -> datetime:
    """Return the moment at which a timeline is to begin. Raises ValueError."""
    if isinstance(since, str):
        return timeline.start_of(since, now)
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise ValueError(f"since={since!r}: a datetime needs a time zone")
        return since
    return max(clocks.later(now, -goformat.seconds_of(since)), clocks.EPOCH)


def _key_of(resource: Resource, name: str, namespace: str) -> storage.Key:
    """Return the key of an object; that of a cluster-wide resource has no namespace."""
    if not resource.namespaced:
        namespace = ""
    return storage.Key(resource.storage_key, namespace, name)


# --- clusters in memory ---------------------------------------------------------------------------

# New clusters by their settings, to be forked; nothing ever changes them.
_templates: dict[str, LocalCluster] = {}
_templates_lock = RLock()


def _place_of(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a folder, or an address of etcd as it is."""
    place = os.fspath(path)
    return place if opening.is_in_etcd(place) else os.path.abspath(place)


def _identity_of_file(folder: str, name: str = "kubepy.yaml") -> tuple[int, ...]:
    """Return what tells one version of a file in a folder from another."""
    if not folder or not name:
        return ()
    try:
        status = os.stat(os.path.join(folder, name))
    except OSError:
        return ()
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _new_in_memory(nodes: int, settings: dict[str, Any]) -> LocalCluster:
    """Make a cluster in memory: a fork of one that was made before with the same settings and own
    time."""
    settings = cluster_settings.new_cluster_settings(settings)
    with _templates_lock:
        key = json.dumps([nodes, settings], sort_keys=True, default=str)
        template = _templates.get(key)
        if template is None:  # the first of its kind also imports all that a cluster needs
            template = opening.make_cluster("memory:", settings)
            template = template.with_faults(template.settings.faults)
            furnishing.furnish(template, nodes)
            if "clock" not in settings:
                return template  # its nodes would be older than the next cluster
            _templates[key] = template
        return template.fork()
