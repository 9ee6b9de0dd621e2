"""What every command gets: the cluster it works on, its streams, and the global flags."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import IO, TYPE_CHECKING

from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.flags import (
    Flag,
    boolean,
    integer,
    parse_flush_frequency,
    parse_modules,
    parse_timeout,
    string,
    string_array,
)
from kubepy.quoting import printable, printable_lines, quote

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from kubepy.api.meta import Object
    from kubepy.api.scheme import Scheme
    from kubepy.apiserver.client import Client
    from kubepy.apiserver.cluster import Cluster
    from kubepy.cli.runtime.command import Invocation
    from kubepy.cli.runtime.driver import Driver
    from kubepy.cli.runtime.kubeconfig import Kubeconfig, Target
    from kubepy.cli.runtime.progress import Progress

OWN_FLAGS: tuple[Flag, ...] = (
    string("state", help="The state folder, whose contexts count. Default: $KUBEPY_STATE, or ./state."),
    string("reconcile", help='"auto" or "never": whether commands that wait run the controllers themselves. '
           'Default: $KUBEPY_RECONCILE, or "auto".'),
)
NOTHING = "Accepted as kubectl does; it means nothing here."
# kubectl's flags for every command. Those that name a server or credentials are accepted, so that a script written for
# kubectl runs, and `kubepy options` only names them (hidden); what is wrong with their values is told as kubectl tells
# it.
GLOBAL_FLAGS: tuple[Flag, ...] = (
    *OWN_FLAGS,
    string("namespace", "n", help="If present, the namespace scope for this request."),
    string("context", help="The context to use: a state folder and a namespace (see kubepy config)."),
    string("cluster", help="The cluster to use in place of the context's: its name, or a state folder."),
    boolean("warnings-as-errors", help="Treat warnings received from the cluster as errors and exit with a non-zero "
            "exit code."),
    string("as", hidden=True),
    string_array("as-group", hidden=True),
    string("as-uid", hidden=True),
    string_array("as-user-extra", hidden=True),
    string("cache-dir", hidden=True),
    string("certificate-authority", hidden=True),
    string("client-certificate", hidden=True),
    string("client-key", hidden=True),
    boolean("disable-compression", hidden=True),
    boolean("insecure-skip-tls-verify", hidden=True),
    string("kubeconfig", hidden=True),
    string("kuberc", hidden=True),
    Flag("log-flush-frequency", "", 5.0, parse_flush_frequency, hidden=True),
    boolean("match-server-version", hidden=True),
    string("password", hidden=True),
    string("profile", default="none", hidden=True),
    string("profile-output", default="profile.pprof", hidden=True),
    string("request-timeout", default="0", help="The length of time after which a watch ends. Zero means never."),
    string("server", "s", hidden=True),
    string("tls-server-name", hidden=True),
    string("token", hidden=True),
    string("user", hidden=True),
    string("username", hidden=True),
    integer("v", "v", bits=32, hidden=True),
    Flag("vmodule", "", "", parse_modules, hidden=True),
)
PROFILES = ("none", "cpu", "heap", "goroutine", "threadcreate", "block", "mutex", "trace")

DEFAULT_NAMESPACE = "default"
YELLOW, PLAIN = "\033[33;1m", "\033[0m"


def check_globals(given: Invocation) -> None:
    """Raise CliError for what kubectl refuses of the flags that mean nothing here."""
    if given.profile not in PROFILES:
        raise CliError(printable(f"unknown profile '{given.profile}'"))
    if (given.as_group or given.as_uid or given.as_user_extra) and not given.flag("as"):
        raise CliError("requesting uid, groups or user-extra for kubepy without impersonating a user")


def _impersonated(given: Invocation) -> Object | None:
    """The UserInfo that --as and the flags beside it describe. Raises CliError for an extra that is none."""
    name = given.flag("as")
    if not name:
        return None
    extra: dict[str, list[str]] = {}
    for one in given.as_user_extra:
        key, _, value = one.partition("=")
        extra.setdefault(key, []).append(value)
    uid = {"uid": given.as_uid} if given.as_uid else {}
    return {"username": name, **uid, "groups": [*given.as_group, "system:authenticated"],
            **({"extra": extra} if extra else {})}


def _timeout(given: Invocation) -> float:
    try:
        return parse_timeout(given.request_timeout)
    except ValueError as error:
        raise CliError(str(error)) from None


class Session:
    """One run of the command line. The cluster is opened when a command first asks for it.

    ``may_create``: the command writes new objects, so a folder that is not there becomes a cluster; in a dry run it
    stays away, and an empty cluster that is thrown away answers in its place.
    """

    def __init__(self, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
                 stderr: IO[str] | None = None) -> None:
        self.stdin = stdin or sys.stdin or io.StringIO()  # a stream that is closed from the start has nothing to say
        self.stdout = stdout or sys.stdout or io.StringIO()
        self.stderr = stderr or sys.stderr or io.StringIO()
        self.may_create = False
        self._rehearses = False
        self.namespace_given = False
        self._namespace = self._context = self._cluster = self._user = ""
        self._state = ""
        self._request_timeout = 0.0
        self._reconcile = ""
        self._warned: dict[str, None] = {}
        self._logged: set[tuple[str, str]] = set()
        self._warnings_as_errors = False
        self._impersonated: Object | None = None
        self._progress: Progress | None = None

    def take(self, given: Invocation, *, may_create: bool) -> None:
        """Take over the global flags of a parsed command line. Raises CliError for wrong ones."""
        check_globals(given)
        self._request_timeout = _timeout(given)
        self.may_create = may_create
        self._namespace, self._context = given.everywhere("namespace"), given.everywhere("context")
        self._cluster, self._user = given.everywhere("cluster"), given.everywhere("user")
        self.namespace_given = bool(self._namespace)
        self._state, self._reconcile = given.state, given.reconcile
        self._warnings_as_errors = given.warnings_as_errors
        self._impersonated = _impersonated(given)

    def rehearse(self) -> None:
        """This is a dry run: nothing may be left behind."""
        self._rehearses = self._rehearses or self.may_create
        self.may_create = False

    # --- the cluster

    @property
    def home(self) -> str:
        """The folder whose contexts count."""
        return self._state or os.environ.get("KUBEPY_STATE") or "state"

    @cached_property
    def kubeconfig(self) -> Kubeconfig:
        """The contexts. Raises CliError for a file that holds none."""
        from kubepy.cli.runtime import kubeconfig

        return kubeconfig.read(self.home)

    @cached_property
    def _target(self) -> Target:
        from kubepy.cli.runtime import kubeconfig

        return kubeconfig.target(self.kubeconfig, self.home, self._context, self._cluster, self._user)

    @property
    def folder(self) -> str:
        """The state folder that commands work on."""
        return self._target.folder

    @property
    def namespace(self) -> str:
        """What -n says, or else the context."""
        return self._namespace or self._target.namespace or DEFAULT_NAMESPACE

    def require_home(self) -> None:
        """Raise CliError unless there is a cluster in the home folder."""
        if not os.path.exists(os.path.join(self.home, "kubepy.yaml")):
            raise self._no_cluster(self.home)

    def require_cluster(self) -> None:
        """Raise CliError unless there is a cluster in the folder."""
        if not self.has_cluster:
            raise self._no_cluster(self.folder)

    def _no_cluster(self, folder: str) -> CliError:
        return CliError(f'no cluster in {quote(folder)}: make one with "kubepy init", or name another folder with '
                        "--state or $KUBEPY_STATE")

    @property
    def has_cluster(self) -> bool:
        return os.path.exists(os.path.join(self.folder, "kubepy.yaml"))

    @cached_property
    def cluster(self) -> Cluster:
        """Raises CliError when there is none and the command only reads."""
        from kubepy.apiserver.cluster import Cluster
        from kubepy.storage.errors import NoClusterError

        try:
            if self._rehearses and not self.has_cluster:
                cluster = Cluster.open(self._scratch.name, create=True)
            else:
                cluster = Cluster.open(self.folder, create=self.may_create)
        except NoClusterError:
            raise self._no_cluster(self.folder) from None
        cluster.client.warn = self.warn
        cluster.store.set_warn(self.warn)
        if self._impersonated:
            cluster.client.requester = self._impersonated
        return cluster

    @cached_property
    def _scratch(self) -> TemporaryDirectory[str]:
        from tempfile import TemporaryDirectory

        return TemporaryDirectory()

    def close(self) -> None:
        """Let go of the cluster, if it was opened, and take away what says how far the work is."""
        if self._progress is not None:
            self._progress.clear()
        if "cluster" in self.__dict__:
            self.cluster.close()
        if "_scratch" in self.__dict__:
            self._scratch.cleanup()

    @property
    def client(self) -> Client:
        return self.cluster.client

    @cached_property
    def scheme(self) -> Scheme:
        """The cluster's resources; without a cluster the built-in ones (what runs on the client needs no folder)."""
        if self.has_cluster:
            return self.cluster.scheme
        from kubepy.api.scheme import Scheme

        return Scheme()

    @property
    def reconciles(self) -> bool:
        """Whether a command that waits may run the controllers."""
        choice = self._reconcile or os.environ.get("KUBEPY_RECONCILE") or "auto"
        if choice not in ("auto", "never"):
            raise CliError(f'invalid --reconcile value {quote(choice)}: must be "auto" or "never"')
        return choice == "auto"

    @cached_property
    def driver(self) -> Driver:
        """Runs the controllers while a command waits (``driver.wait_until``)."""
        from kubepy.cli.runtime.driver import Driver

        return Driver(self.cluster, self.progress, self.say, reconciles=self.reconciles)

    def ticks(self, pause: float) -> Iterator[None]:
        """The rounds of a watch, so many seconds apart, until its request has lasted as long as --request-timeout
        says."""
        clock = self.cluster.clock
        end = clock.monotonic() + (self._request_timeout or float("inf"))
        while True:
            yield
            left = end - clock.monotonic()
            if left <= 0:
                return
            clock.sleep(min(pause, left))

    # --- streams

    @property
    def progress(self) -> Progress:
        """Says how far long work is, on a terminal (``progress.show``)."""
        if self._progress is None:
            from kubepy.cli.runtime.progress import Progress

            self._progress = Progress(self.stderr)
        return self._progress

    def print(self, text: str = "", end: str = "\n") -> None:
        if self._progress is not None:
            self._progress.clear()
        self.stdout.write(text + end)

    def say(self, text: str, prefix: str = "") -> None:
        """Write a message to stderr, after everything printed so far; what would steer a terminal is escaped.

        ``prefix`` stands before it as it is: colours.
        """
        if self._progress is not None:
            self._progress.clear()
        self.stdout.flush()
        self.stderr.write(f"{prefix}{printable_lines(text)}\n")
        self.stderr.flush()

    def warn(self, text: str) -> None:
        """``Warning: …`` on stderr, each only once in a command, as client-go's warning writer does."""
        if text not in self._warned:
            self._warned[text] = None
            self.say(text, f"{YELLOW}Warning:{PLAIN} " if self._shows_colours() else "Warning: ")

    def _shows_colours(self) -> bool:
        """``AllowsColorOutput``: stderr is a terminal that is not dumb, and nobody is against it."""
        return self.stderr.isatty() and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ

    def log(self, place: str, text: str) -> None:
        """A warning on stderr as Go's klog writes it: month, day, time, process, place. Each only once."""
        if (place, text) in self._logged:
            return
        self._logged.add((place, text))
        now = self.cluster.clock.now()
        self.say(f"W{now:%m%d %H:%M:%S.%f} {os.getpid():7} {place}] {text}")

    def finish(self) -> None:
        """After a command that succeeded: fail it when warnings count as errors."""
        if self._warnings_as_errors and self._warned:
            count = len(self._warned)
            self.say(f"error: {count} warning{'s' if count > 1 else ''} received")
            raise SilentExit(1)
