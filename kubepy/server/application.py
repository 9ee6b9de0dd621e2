"""The server of one cluster: what all its requests share."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kubepy.api import errors
from kubepy.api.clock import Clock
from kubepy.api.meta import Object
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.nodeleases import RENEW_SECONDS
from kubepy.apiserver.server import ADMINISTRATOR
from kubepy.apiserver.tokens import SigningKey, VerifyingKey
from kubepy.controlplane.groups import EVERY, GROUPS, KUBELET, SIGNING
from kubepy.controlplane.open import MEMORY, open_shared
from kubepy.lazy import lazy_imports
from kubepy.results import AnsweredRequest, CommandResult
from kubepy.server.backend import Backend
from kubepy.server.controllers import (
    WAITING,
    WRITTEN,
    ControllerProcess,
    Controllers,
    ControllerThread,
)
from kubepy.server.timers import Timers
from kubepy.server.watchcache import WatchCache
from kubepy.storage import StorageError

with lazy_imports():
    from kubepy.kubelet import heartbeats
    from kubepy.server import idletime

if TYPE_CHECKING:
    from kubepy.server.activity import Activity
    from kubepy.server.idletime import IdlePace
    from kubepy.server.signing import CertificateSigner

T = TypeVar("T")
REQUESTS = "certificatesigningrequests.certificates.k8s.io"


RunCommand = Callable[[LocalCluster, Sequence[str], str], CommandResult]


class Attached(Protocol):
    """A part of a server that ends with it."""

    async def stop(self) -> None:
        """End all streams in order."""

    def close(self) -> None:
        """Let go of everything, after the requests that have begun."""


class ServeOptions(NamedTuple):
    """The options of a server.

    :ivar authorization: ``AlwaysAllow``, or ``RBAC``: the roles of the cluster are enforced.
    :ivar controllers: the names of the reconcilers that run beside
        (:mod:`kubepy.controlplane.groups`); without any somebody else runs them.
    :ivar verbosity: the value of ``-v``.
    :ivar user: the user whose token the application has; None: the administrator.
    :ivar settings: those of a cluster in memory, which is made.
    :ivar pace: how the cluster's own time goes on while clients wait; None: it is moved by others
        alone.
    :ivar run_command: runs a command line, with a standard input, on a cluster; None: nobody does.
    """

    authorization: str = "AlwaysAllow"
    controllers: frozenset[str] = EVERY
    verbosity: int = 0
    user: Object | None = None
    settings: Mapping[str, Any] = MappingProxyType({})
    pace: IdlePace | None = None
    run_command: RunCommand | None = None

    @property
    def runs_kubelets(self) -> bool:
        """Whether the reconcilers beside include the simulated kubelets, or those of somebody
        else do."""
        return not self.controllers or self.controllers.issuperset(GROUPS[KUBELET])


class CredentialOptions(NamedTuple):
    """How tokens of ServiceAccounts are issued and checked, and certificates signed.

    :ivar other_keys: keys by which tokens may be signed, besides the one that signs new ones.
    :ivar issuers: who may have issued a token; the first one issues them here. Empty: the usual
        one.
    :ivar audiences: those of the server itself; empty: the issuers.
    :ivar signer: signs the requests for certificates, where its controller is among those that
        run; None: nobody does.
    """

    other_keys: Sequence[VerifyingKey] = ()
    issuers: Sequence[str] = ()
    audiences: Sequence[str] = ()
    signer: CertificateSigner | None = None


class UsersBefore(NamedTuple):
    """The users that an open cluster knows before a server takes it over.

    :ivar authorization: as of ServeOptions.
    """

    authorization: str
    key: SigningKey | None
    other_keys: Sequence[VerifyingKey]
    issuers: Sequence[str]
    audiences: Sequence[str]

    @classmethod
    def of(cls, cluster: LocalCluster) -> UsersBefore:
        """Return what a cluster knows now."""
        tokens = cluster.client.tokens
        return cls(
            cluster.client.authorizer.mode,
            tokens.key,
            tokens.other_keys,
            tokens.issuers,
            tokens.audiences,
        )

    def put_back(self, cluster: LocalCluster) -> None:
        """Let the cluster know no more than before."""
        cluster.client.use_authorization(self.authorization)
        tokens = cluster.client.tokens
        tokens.key = self.key
        tokens.other_keys = self.other_keys
        tokens.issuers = self.issuers
        tokens.audiences = self.audiences


DEFAULTS, USUAL_CREDENTIALS = ServeOptions(), CredentialOptions()


class Application:
    """The server of one cluster.

    :param place: a state folder, an address of etcd, ``memory:``, or an open cluster in memory,
        which stays open.
    :param token: the administrator's bearer token.
    :param signing_key: signs the tokens of ServiceAccounts, in PEM; without it there are none.
    :param credentials: how they are issued and checked besides, and who signs certificates.
    :param log: takes a line for the operator of the server.
    :ivar stopping: is set when the server ends: streams are to end.
    :ivar clock: the time of the cluster, once it is open.
    :ivar timers: the moments of it for which clients wait.
    :ivar activity: what clients do, where that decides how time goes on.
    :ivar prefix: of the paths of all its requests, for what links to others: that of a fork.
    :ivar attached: what ends with it.
    :ivar hear_request: takes each request that was answered; None: nobody does.
    """

    def __init__(
        self,
        place: str | LocalCluster,
        options: ServeOptions = DEFAULTS,
        *,
        token: str = "",
        signing_key: bytes = b"",
        credentials: CredentialOptions = USUAL_CREDENTIALS,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._given = None if isinstance(place, str) else place
        self._before: UsersBefore | None = None
        self.place = place if isinstance(place, str) else MEMORY
        self.options = options
        self.prefix = ""
        self.attached: list[Attached] = []
        self.hear_request: Callable[[AnsweredRequest], None] | None = None
        self.token = token
        self.signing_key = signing_key
        self.credentials = credentials
        self._signer = credentials.signer if SIGNING in options.controllers else None
        self.impersonation_modes: dict[str, str] = {}  # that were allowed last, by requester
        self.log = log
        self.backend = Backend(
            self._open_cluster,
            has_noticed=lambda revision: self.watch_cache.has_noticed(revision),
            is_alone=self.place == MEMORY,
        )
        self.controllers = self._new_controllers() if options.controllers else None
        self._controllers_lock = Lock()
        self._holders = 0  # how many blocks keep the controllers from working
        self._is_closed = False
        self.watch_cache = WatchCache(lambda: self.backend.cluster().apart(), log)
        self.requests: Counter[tuple[str, ...]] = (
            Counter()
        )  # that were answered, by the labels of their metric
        self.stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []  # that end with the server
        self.clock = Clock()
        self.timers = Timers()
        self.activity: Activity | None = None

    def _new_controllers(self) -> Controllers:
        options = self.options
        if self.place != MEMORY:
            return ControllerProcess(self.place, options.verbosity, options.controllers, self.log)

        def cluster() -> LocalCluster:
            return self.backend.cluster().apart()

        return ControllerThread(cluster, options.verbosity, options.controllers, self.log)

    def _open_cluster(self) -> LocalCluster:
        cluster = self._given or open_shared(self.place, self.options.settings)
        if cluster.worktree is not None:
            cluster.worktree.set_warn(lambda text: self.log(f"Warning: {text}"))
        self.clock = cluster.clock
        if self._given is not None:
            self._before = UsersBefore.of(cluster)
        cluster.client.use_authorization(self.options.authorization)
        self.watch_cache.attach(cluster)
        if self.token:
            cluster.client.tokens.known[self.token] = self.options.user or ADMINISTRATOR
        if self.signing_key:
            tokens = cluster.client.tokens
            tokens.key = SigningKey(self.signing_key)
            tokens.other_keys = self.credentials.other_keys
            tokens.issuers = self.credentials.issuers or tokens.issuers
            tokens.audiences = self.credentials.audiences or tokens.issuers
        return cluster

    async def start(self) -> None:
        """Open the cluster, and do what an API server does once. Raises NoClusterError,
        FolderError."""
        if self.options.pace is not None:
            await self._begin_idle_time(self.options.pace)
        await self.backend.write(lambda cluster: cluster.start())
        self.watch_cache.start()
        if self._signer is not None:
            self._begin(self._sign_requests(self._signer))
        if self.options.runs_kubelets:
            self._begin(self._keep_leases())
        if self.controllers is not None:
            self.controllers.start()
        if self._given is not None:
            self.watch_cache.subscribe(lambda resources: self._tell(WRITTEN))  # beside the server

    def _begin(self, job: Coroutine[Any, Any, None]) -> None:
        """Let a job go on until the server ends."""
        self._tasks.append(asyncio.create_task(job))

    def _tell(self, message: bytes) -> None:
        """Tell the controllers, if there are any, that a writer is WAITING or has WRITTEN."""
        if self.controllers is not None:
            self.controllers.tell(message)

    async def _begin_idle_time(self, pace: IdlePace) -> None:
        """Let the cluster's own time go on while clients wait. Raises NoOwnTimeError."""
        await self.backend.read(idletime.IdleTime.check)
        moved = partial(self._tell, WRITTEN)
        idle_time = idletime.IdleTime(
            pace, self.backend, self.watch_cache, moved, self.log, self.timers
        )
        self.activity = idle_time.activity
        self._begin(idle_time.run())

    async def read(self, function: Callable[[LocalCluster], T]) -> T:
        """Run a function that only reads."""
        return await self.backend.read(function)

    async def write(self, function: Callable[[LocalCluster], T]) -> T:
        """Run a function that may write; the controllers let it in, and hear of it at once."""
        self._tell(WAITING)
        try:
            return await self.backend.write(function)
        finally:
            self._tell(WRITTEN)

    @contextmanager
    def without_controllers(self) -> Iterator[None]:
        """Let the controllers rest for the length of a block, which may run them itself: what they
        have begun is finished first. Several threads may want that at the same time."""
        with self._controllers_lock:
            self._holders += 1
            if self.controllers is not None and self._holders == 1:
                self.controllers.stop()
        try:
            yield
        finally:
            with self._controllers_lock:
                self._holders -= 1
                if self.controllers is not None and not self._holders and not self._is_closed:
                    self.controllers = self._new_controllers()
                    self.controllers.start()

    def check(self) -> None:
        """Look after what others may have removed: called every second."""
        if self.controllers is not None:
            self.controllers.check()

    def log_defect(self, subject: str, error: Exception) -> None:
        """Log an exception that nothing expects, with its traceback at -v."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        self.log(f"internal error: {subject}: {type(error).__name__}: {error} ({place})")
        if self.options.verbosity > 0:
            self.log("".join(traceback.format_exception(error)).rstrip("\n"))

    async def stop(self) -> None:
        """End all streams in order."""
        self.stopping.set()
        for attached in self.attached:
            await attached.stop()
        for task in self._tasks:
            task.cancel()

    async def _sign_requests(self, signer: CertificateSigner) -> None:
        """Sign the approved requests for certificates, now and whenever one has changed."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        changed.set()  # some may have been approved without a server

        def hear(resources: frozenset[str] | None) -> None:
            is_over = resources is None and self.watch_cache.is_closed
            if not is_over and (resources is None or REQUESTS in resources):
                with suppress(RuntimeError):  # the loop is closed: the server has ended
                    loop.call_soon_threadsafe(changed.set)

        self.watch_cache.subscribe(hear)
        while True:
            await changed.wait()
            changed.clear()
            try:
                await self.write(signer.sign_approved)
            except (StorageError, errors.Status) as error:
                self.log(f"error: signing requests for certificates: {error}")
            except Exception as error:  # a defect must not keep later requests from being signed
                self.log_defect("signing requests for certificates", error)

    async def _keep_leases(self) -> None:
        """Let the simulated kubelets renew their leases, whoever runs the controllers.

        Those of others take a node for lost by the machine's time, even where the cluster's own
        stands still.
        """

        is_own_judge = self.options.controllers.issuperset(GROUPS["node"])

        def renew(cluster: LocalCluster) -> None:
            heartbeats.renew_leases(
                cluster.client, (cluster.clock if is_own_judge else Clock()).now()
            )

        while True:
            try:
                await self.backend.write(renew)
            except (StorageError, errors.Status) as error:  # the next time will do as well
                self.log(f"error: renewing the leases of nodes: {error}")
            await asyncio.sleep(RENEW_SECONDS)

    def close(self) -> None:
        """Let go of the cluster, after the requests that have begun."""
        for attached in self.attached:
            attached.close()
        with self._controllers_lock:
            self._is_closed = True
            if self.controllers is not None:
                self.controllers.stop()
        self.watch_cache.close()
        self.backend.close()
        if self._given is not None:
            self._leave(self._given)

    def _leave(self, cluster: LocalCluster) -> None:
        """Let go of a cluster that stays open."""
        cluster.store.watch(lambda changes: None)
        cluster.client.tokens.known.pop(self.token, None)
        if self._before is not None:
            self._before.put_back(cluster)
