"""What every command gets: the cluster it works on, its streams, and the global flags."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import IO, TYPE_CHECKING

from kubepy.cli.runtime.errors import CliError, SilentExit
from kubepy.cli.runtime.flags import Flag, boolean, integer, string, string_array

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from kubepy.cli.driver import Driver
    from kubepy.cli.runtime.command import Invocation
    from kubepy.cluster.client import Client
    from kubepy.cluster.cluster import Cluster
    from kubepy.cluster.scheme import Scheme

# kubectl's flags for every command. Those that name a server or credentials are accepted and mean nothing here, so
# that a script written for kubectl runs; `hidden` ones are left out of `kubepy options`.
OWN_FLAGS: tuple[Flag, ...] = (
    string("state", help="The state folder. Default: $KUBEPY_STATE, or ./state."),
    string("reconcile", help='"auto" or "never": whether commands that wait run the controllers themselves. '
           'Default: $KUBEPY_RECONCILE, or "auto".'),
)
GLOBAL_FLAGS: tuple[Flag, ...] = (
    *OWN_FLAGS,
    string("namespace", "n", help="If present, the namespace scope for this request."),
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
    string("cluster", hidden=True),
    string("context", hidden=True),
    boolean("disable-compression", hidden=True),
    boolean("insecure-skip-tls-verify", hidden=True),
    string("kubeconfig", hidden=True),
    string("kuberc", hidden=True),
    string("log-flush-frequency", hidden=True),
    boolean("match-server-version", hidden=True),
    string("password", hidden=True),
    string("profile", hidden=True),
    string("profile-output", hidden=True),
    string("request-timeout", hidden=True),
    string("server", "s", hidden=True),
    string("tls-server-name", hidden=True),
    string("token", hidden=True),
    string("user", hidden=True),
    string("username", hidden=True),
    integer("v", "v", hidden=True),
    string("vmodule", hidden=True),
)

DEFAULT_NAMESPACE = "default"


class Session:
    """One run of the command line. The cluster is opened when a command first asks for it.

    ``may_create``: the command writes new objects, so a folder that is not there becomes a cluster; in a dry run it
    stays away, and an empty cluster that is thrown away answers in its place.
    """

    def __init__(self, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
                 stderr: IO[str] | None = None) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.may_create = False
        self._rehearses = False
        self.namespace_given = False
        self._namespace = self._context = ""
        self._state = ""
        self._reconcile = ""
        self._warned: dict[str, None] = {}
        self._warnings_as_errors = False

    def take(self, given: Invocation, *, may_create: bool) -> None:
        """Take over the global flags of a parsed command line."""
        self.may_create = may_create
        self.namespace_given = bool(given.namespace)
        self._namespace, self._context = given.namespace, given.context
        self._state, self._reconcile = given.state, given.reconcile
        self._warnings_as_errors = given.warnings_as_errors

    def rehearse(self) -> None:
        """This is a dry run: nothing may be left behind."""
        self._rehearses = self._rehearses or self.may_create
        self.may_create = False

    # --- the cluster

    @property
    def folder(self) -> str:
        return self._state or os.environ.get("KUBEPY_STATE") or "state"

    @cached_property
    def namespace(self) -> str:
        """What -n says, or else the context. A --context of kubectl's that is not there means nothing."""
        if self._namespace:
            return self._namespace
        from kubepy.cli.config import contexts

        return contexts.read(self.folder).namespace(self._context) or DEFAULT_NAMESPACE

    @property
    def cluster_folder(self) -> str:
        """The folder of a cluster that is there. Raises CliError."""
        if not self.has_cluster:
            raise self._no_cluster()
        return self.folder

    def _no_cluster(self) -> CliError:
        return CliError(f'no cluster in "{self.folder}": make one with "kubepy init", or name another folder with '
                        "--state or $KUBEPY_STATE")

    @property
    def has_cluster(self) -> bool:
        return os.path.exists(os.path.join(self.folder, "kubepy.yaml"))

    @cached_property
    def cluster(self) -> Cluster:
        """Raises CliError when there is none and the command only reads."""
        from kubepy.cluster.cluster import Cluster
        from kubepy.storage.errors import NoClusterError

        try:
            if self._rehearses and not self.has_cluster:
                cluster = Cluster.open(self._scratch.name, create=True)
            else:
                cluster = Cluster.open(self.folder, create=self.may_create)
        except NoClusterError:
            raise self._no_cluster() from None
        cluster.client.warn = self.warn
        return cluster

    @cached_property
    def _scratch(self) -> TemporaryDirectory[str]:
        from tempfile import TemporaryDirectory

        return TemporaryDirectory()

    def close(self) -> None:
        """Let go of the cluster, if it was opened."""
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
        from kubepy.cluster.scheme import Scheme

        return Scheme()

    @property
    def reconciles(self) -> bool:
        """Whether a command that waits may run the controllers."""
        choice = self._reconcile or os.environ.get("KUBEPY_RECONCILE") or "auto"
        if choice not in ("auto", "never"):
            raise CliError(f'invalid --reconcile value "{choice}": must be "auto" or "never"')
        return choice == "auto"

    @cached_property
    def driver(self) -> Driver:
        """Runs the controllers while a command waits (``driver.wait_until``)."""
        from kubepy.cli.driver import Driver

        return Driver(self)

    # --- streams

    def print(self, text: str = "", end: str = "\n") -> None:
        self.stdout.write(text + end)

    def say(self, text: str) -> None:
        """A line on stderr, after everything printed so far."""
        self.stdout.flush()
        self.stderr.write(text + "\n")
        self.stderr.flush()

    def warn(self, text: str) -> None:
        """``Warning: …`` on stderr, each only once in a command, as client-go's warning writer does."""
        if text not in self._warned:
            self._warned[text] = None
            self.say(f"Warning: {text}")

    def finish(self) -> None:
        """After a command that succeeded: fail it when warnings count as errors."""
        if self._warnings_as_errors and self._warned:
            count = len(self._warned)
            self.say(f"error: {count} warning{'s' if count > 1 else ''} received")
            raise SilentExit(1)
