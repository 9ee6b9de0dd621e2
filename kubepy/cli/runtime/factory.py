"""The Factory that every command gets: the cluster it works on, its streams, and the global flags.

Upstream: ``kubectl/pkg/cmd/util/factory.go``, ``cli-runtime/pkg/genericiooptions``.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from typing import IO, TYPE_CHECKING

from kubepy import KUBERNETES_VERSION, system
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.names import KUBECTL, KUBEPY, renamed
from kubepy.cli.runtime.options import DEFAULT_NAMESPACE, NONE, DryRunOptions, GlobalOptions
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, printable_lines, quote

with lazy_imports():
    from kubepy import klog, terminal
    from kubepy.api import errors
    from kubepy.api import scheme as schemes
    from kubepy.apiserver import client as clients
    from kubepy.apiserver import cluster as clusters
    from kubepy.apiserver import roundtrips
    from kubepy.apiserver import settings as cluster_settings
    from kubepy.cli.runtime import container_notes, faults, notes
    from kubepy.cli.runtime import driver as drivers
    from kubepy.cli.runtime import kubeconfig as kubeconfigs
    from kubepy.cli.runtime import progress as progresses
    from kubepy.controlplane import checkouts, furnishing
    from kubepy.controlplane import open as openings
    from kubepy.runtime import checkpoint as checkpoints
    from kubepy.storage import errors as storage_errors
    from kubepy.storage import homes

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from kubepy.api.meta import Object
    from kubepy.storage import Key
    from kubepy.storage.store import Store
    from kubepy.storage.worktree import WorkTree

MAX_FILES = 20  # of which one command warns

HAVE_PODS = frozenset(
    {
        "cronjobs.batch", "daemonsets.apps", "deployments.apps", "jobs.batch", "pods",
        "replicasets.apps", "replicationcontrollers", "statefulsets.apps",
    }
)  # fmt: skip
FOLDERS = ("cluster", "namespaces")  # of a state folder: its objects
IN_MEMORY = "memory:"  # a place that programs alone open (``kubepy.controlplane.open``)


class Factory:
    """One run of the command line. The cluster is opened when a command first reads it.

    ``may_create``: the command writes new objects, so a folder that is missing becomes a cluster;
    in a dry run no folder is made, and an empty temporary cluster answers in its place.

    :ivar program: the name that the program was called by.
    :ivar open_cluster: the cluster to work on, which a Python program has opened and goes on with.
    :ivar root: the Command that is ``kubepy`` itself.
    :ivar main: runs another command line (``kubepy.cli.main.main``), for a command that tries some
        on a fork.
    """

    program = KUBEPY
    root: object = None
    main: Callable[..., int]
    chunk_size = 0  # --chunk-size of the command
    may_be_in_memory = False  # "--state memory:" means something to the command
    # Shown by -v=7 and above.
    request_headers: Mapping[str, str] = {"Accept": "application/json"}
    request_parameters: Mapping[str, str] = {}

    def __init__(
        self,
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
        open_cluster: clusters.LocalCluster | None = None,
    ) -> None:
        self.stdin = stdin or sys.stdin or io.StringIO()  # a closed stream is None
        self.stdout = guarded(stdout or sys.stdout or io.StringIO())
        self.stderr = guarded(stderr or sys.stderr or io.StringIO())
        self.open_cluster = open_cluster
        self.options = GlobalOptions()
        self.may_create = False
        self.adds_node = (
            True  # to a cluster that the command has made; False: the command chooses the nodes
        )
        self.catches_up = True  # False for commands that never write, such as diff
        self._has_looked = False  # for edits of files, before the command read anything
        self.reads = False  # the command shows what is there, and writes nothing itself
        self.passes_time = (
            False  # it is one with which time goes on in a cluster whose kubepy.yaml says so
        )
        self.tells_problems = (
            True  # False for commands that list all files with problems themselves
        )
        self.brings_containers = False  # the command may give pods containers
        self._pods_written: list[Object] = []  # and workloads, by a command that does so
        self._is_dry_run = False
        self._warned: dict[str, None] = {}
        self._logged: set[tuple[str, str]] = set()
        self._progress: progresses.Progress | None = None
        self.words: Sequence[str] = ()  # the command line
        self._begun = time.monotonic()
        self.fault_run: faults.FaultRun | None = None  # where the cluster has faults

    def use(self, options: GlobalOptions, *, may_create: bool) -> None:
        """Work with the global flags of a command line from now on. Raises CliError for wrong
        ones."""
        options.validate()
        options.timeout_seconds()
        if self.open_cluster and options.state:
            raise CliError(
                "--state cannot be given: this command line works on a cluster that is open already"
            )
        self.options = options
        if self.home == IN_MEMORY and not self.may_be_in_memory:
            raise CliError(
                f'"{IN_MEMORY}" is no state folder: a cluster in memory would be gone with the '
                f"command (./{IN_MEMORY} is a folder of that name)"
            )
        must_exist = options.must_exist or os.environ.get("KUBEPY_MUST_EXIST", "") not in (
            "",
            "0",
            "false",
        )
        self.may_create = may_create and not must_exist

    def has_preferences(self, words: Sequence[str]) -> bool:
        """Return whether a file of preferences (kuberc) is read for a command line.

        It is the one that --kuberc or $KUBERC names, or the user's own, which counts under the name
        of kubectl.
        """
        if os.environ.get("KUBECTL_KUBERC", "").lower() == "false":
            return False
        return any(word.startswith("--kuberc") for word in words) or (
            not self.open_cluster
            and bool(
                os.environ.get("KUBERC")
                or (
                    self.program == KUBECTL and os.path.exists(os.path.expanduser("~/.kube/kuberc"))
                )
            )
        )

    def dry_run_strategy(self, options: DryRunOptions) -> str:
        """Return ``none``, ``client`` or ``server``; the old boolean values warn. In a dry run no
        folder is made."""
        strategy, warning, place = options.dry_run_value()
        self.config_access.require_file()  # also for what asks no cluster
        if strategy != NONE:
            self.catches_up = False
            self._is_dry_run = self._is_dry_run or self.may_create
            self.may_create = False
        if warning:
            self.log(place, warning)
        return strategy

    # --- the cluster

    @property
    def home(self) -> str:
        """The place whose contexts count: a folder, or an address of etcd; "" for a cluster that is
        open already and has no folder."""
        if self.open_cluster:
            return self.open_cluster.folder
        home = self.options.state or os.environ.get("KUBEPY_STATE") or "state"
        scheme, _, path = home.partition(":")
        if path.startswith("/") and scheme.isalpha() and not openings.is_in_etcd(home):
            raise CliError(
                f"{printable(home)}: the state is a folder, or in etcd: etcd://HOST:PORT/PREFIX"
            )
        return home

    @property
    def home_server(self) -> str:
        """The home as the URL of a server."""
        return self._server_of(self.home)

    def _server_of(self, place: str) -> str:
        if openings.is_in_etcd(place):
            return openings.shown(place)
        return f"file://{os.path.abspath(place)}" if place else "memory"

    @property
    def _store_of_place(self) -> Store | None:
        """The store that keeps the contexts, where the command works on the same one."""
        is_home = not self.open_cluster and self.place == self.home
        return self._contexts_store if is_home else None

    @cached_property
    def _contexts_store(self) -> Store | None:
        """The store that keeps the contexts, where no folder does."""
        if self.open_cluster:
            return None if self.home else self.open_cluster.store
        return openings.open_values(self.home) if openings.is_in_etcd(self.home) else None

    @cached_property
    def kubeconfig(self) -> kubeconfigs.Kubeconfig:
        """The contexts. Raises CliError for a file that holds none."""
        if not openings.is_in_etcd(self.home):
            if self.options.trust and self.home:
                homes.trust_in_this_process(self.home)
            if not self.open_cluster and (line := homes.examine(self.home)):
                self.warn(line)
        return self.config_access.read()

    @property
    def config_access(self) -> kubeconfigs.ConfigAccess:
        """The file of contexts; a cluster without a folder keeps them itself."""
        explicit = self.options.kubeconfig
        store = None if explicit else self._contexts_store
        return kubeconfigs.ConfigAccess(self.home, explicit, store, self.warn)

    @cached_property
    def _target(self) -> kubeconfigs.Target:
        options = self.options
        self.config_access.require_file()
        target = kubeconfigs.target(
            self.kubeconfig, self.home, options.context, options.cluster, options.user
        )
        if options.trust and target.place and not openings.is_in_etcd(target.place):
            homes.trust_in_this_process(target.place)
        return target

    @property
    def place(self) -> str:
        """The cluster that commands work on: a state folder, or an address of etcd."""
        return self._target.place

    @property
    def folder(self) -> str:
        """The state folder that commands work on; "" for a cluster that has none."""
        place = self.place
        return "" if openings.is_in_etcd(place) else place

    @property
    def server(self) -> str:
        """The cluster that commands work on as the URL of a server."""
        return self._server_of(self.place)

    @property
    def private_folder(self) -> str:
        """The folder for files of this machine's own (``kubepy.controlplane.open``); "" for a
        cluster that has no place. Raises CliError."""
        try:
            return openings.private_folder(self.place) if self.place else ""
        except OSError as error:
            raise CliError(f"{printable(error.filename)}: {error.strerror}") from None

    @property
    def shown_place(self) -> str:
        """The place as messages name it: without the password of etcd."""
        return openings.shown(self.place)

    @property
    def namespace(self) -> str:
        """The namespace of -n, or else of the context."""
        return self.options.namespace or self.context_namespace

    @property
    def context_namespace(self) -> str:
        """The namespace of the context, in which a command line without -n works."""
        return self._target.namespace or DEFAULT_NAMESPACE

    @property
    def namespace_given(self) -> bool:
        """True if -n is on the line (``enforceNamespace``)."""
        return bool(self.options.namespace)

    def require_home(self) -> None:
        """Raise CliError unless there is a cluster in the home folder."""
        if not self.open_cluster and not openings.has_cluster(self.home):
            raise self._no_cluster(self.home)

    def require_folder(self) -> None:
        """Raise CliError unless the cluster is a folder that exists."""
        if not self.folder:
            raise self.has_no_folder(self.place)
        self.require_cluster()

    def has_no_folder(self, place: str) -> CliError:
        """Return the error of a command about files for a cluster that has none."""
        if place:
            return CliError(f"{openings.shown(place)}: this cluster is in etcd: it has no folder")
        return CliError("this cluster is in memory: it has no folder")

    def require_cluster(self) -> None:
        """Raise CliError unless there is a cluster in the folder."""
        if not self.has_cluster:
            raise self._no_cluster(self.place)

    def _no_cluster(self, place: str) -> CliError:
        another = "prefix" if openings.is_in_etcd(place) else "folder"
        return CliError(
            f'no cluster in {quote(openings.shown(place))}: make one with "kubepy init", or name '
            f"another {another} with --state or $KUBEPY_STATE"
        )

    @property
    def has_cluster(self) -> bool:
        if self.open_cluster or "cluster" in self.__dict__:
            return True
        if self.folder:
            return os.path.exists(os.path.join(self.folder, "kubepy.yaml"))
        return openings.has_cluster(self.place, self._store_of_place)

    @cached_property
    def cluster(self) -> clusters.LocalCluster:
        """The opened cluster. Raises CliError when there is none and the command only reads."""
        try:
            if self.open_cluster:
                cluster = self.open_cluster.share()
                if self.place != self.home and not (
                    self.home and self.folder and os.path.samefile(self.folder, self.home)
                ):
                    raise CliError(
                        f"the context is one of another cluster, {quote(self.shown_place)}: this "
                        "command line works on a cluster that is open already"
                    )
            elif self._is_dry_run and not self.has_cluster:
                cluster = self.new_cluster_elsewhere()
            else:
                cluster = openings.open_cluster(
                    self.place, create=self.may_create, store=self._store_of_place
                )
        except storage_errors.NoClusterError:
            raise self._no_cluster(self.place) from None

        client = cluster.client.with_warn(self.warn)
        if user := self.options.impersonated_user(self._target.user_name, self._target.user):
            client = client.as_user(user)
        cluster.client = cluster.controller_client = client
        if cluster.worktree is not None:
            cluster.worktree.set_warn(self.warn)
        if self.options.faults or cluster.settings.faults is not None:
            settings = cluster.settings.faults
            if self.options.faults:
                settings = faults.read_faults(self.options.faults)
            cluster = cluster.with_faults(settings)
            self.fault_run = faults.FaultRun(cluster, self.folder, self.words, self.say)
            self.fault_run.begin(cluster.drawn_seed)

        if self.options.v or self.options.vmodule:
            logger = klog.Logger(
                self.options.v, self.say, cluster.clock, self.options.module_levels()
            )
            if logger.highest >= 2:
                cluster.logger = logger
            if logger.highest >= 6:
                cluster.client = logging = roundtrips.LoggingClient(cluster.client, logger)
                logging.limit = self.chunk_size
                logging.headers = self.request_headers
                logging.parameters = self.request_parameters
                logging.disable_compression = self.options.disable_compression
                if self.program == KUBECTL:
                    logging.user_agent = f"kubectl/{KUBERNETES_VERSION}"

        if self.brings_containers:
            cluster.client = cluster.client.observed(self._note_written)
        return cluster

    def _note_written(self, key: Key, obj: Object | None, user: Object) -> None:
        """Remember the pods and workloads that the command writes."""
        if obj is not None and key.resource in HAVE_PODS:
            self._pods_written.append(obj)

    def tell_unknowns(self) -> None:
        """Say what is not known of the containers that the command has brought in so far."""
        objects = self._pods_written
        self._pods_written = []
        if not objects or not self.brings_containers:
            return
        for note in container_notes.notes_on(self.client, objects, self.stderr):
            self.say(note)

    def new_cluster_elsewhere(self) -> clusters.LocalCluster:
        """Make the cluster that this command would make, around the same files, in a folder that is
        removed in the end."""
        from shutil import copytree

        for name in self.loose_files():
            copytree(os.path.join(self.folder, name), os.path.join(self._scratch.name, name))
        return openings.open_cluster(self._scratch.name, create=True)

    def loose_files(self) -> list[str]:
        """Return the folders of objects around which a command would make a cluster."""
        if not self.folder:
            return []
        return [name for name in FOLDERS if os.path.isdir(os.path.join(self.folder, name))]

    @cached_property
    def _scratch(self) -> TemporaryDirectory[str]:
        from tempfile import TemporaryDirectory

        return TemporaryDirectory()

    def close(self) -> None:
        """Close the cluster, if this run opened it; clear the line that shows progress."""
        if self._progress is not None:
            self._progress.clear()
        if "cluster" in self.__dict__:
            cluster = self.cluster
            self.tell_unknowns()
            self._look_for_files()
            self.warn_of_files()
            if not self.open_cluster:
                with closing(cluster):
                    self._furnish(cluster)
                    self.believe_checkouts()  # what the command met when it wrote

        if not self.open_cluster and (store := self.__dict__.get("_contexts_store")) is not None:
            store.close()
        if "_scratch" in self.__dict__:
            self._scratch.cleanup()

    def _furnish(self, cluster: clusters.LocalCluster) -> None:
        """Give a cluster that this command has made a node, unless the command has brought its own.

        One that a command made which was killed gets it from the next that may make objects.
        """
        if not (self.may_create and self.adds_node and cluster.is_unfinished()):
            return
        node = furnishing.add_first_node(cluster.controller_client)
        cluster.finish()
        if node:
            self.say(
                f"note: made a cluster in {self.shown_place} with one node, {node}, as kubepy init "
                "does"
            )

    @property
    def worktree(self) -> WorkTree:
        """The files of the cluster. Raises CliError for a cluster that keeps none."""
        self.require_folder()
        worktree = self.cluster.worktree
        assert worktree is not None
        return worktree

    @property
    def client(self) -> clients.Client:
        return self.cluster.client

    @cached_property
    def scheme(self) -> schemes.Scheme:
        """The cluster's resources; without a cluster the built-in ones (what runs on the client
        needs no folder)."""
        if self.has_cluster:
            return self.cluster.scheme
        return schemes.Scheme()

    @property
    def reconciles(self) -> bool:
        """True if commands that read or wait may run the controllers. Raises CliError."""
        choice = (
            self.options.reconcile
            or os.environ.get("KUBEPY_RECONCILE")
            or self.cluster.settings.reconcile
        )
        if choice not in ("auto", "never"):
            raise CliError(f'invalid --reconcile value {quote(choice)}: must be "auto" or "never"')
        return choice == "auto"

    @cached_property
    def driver(self) -> drivers.Driver:
        """The driver that runs the controllers before a command reads, and while it waits."""
        driver = drivers.Driver(
            self.cluster,
            self.folder,
            self.progress,
            self.notes,
            reconciles=self.reconciles,
            begun=self._begun,
        )
        if self.fault_run is not None:
            driver.before_time_passes = self.fault_run.keep
        return driver

    @cached_property
    def notes(self) -> notes.Notes:
        """Writes notes to the user, with commands for this cluster."""
        import shlex

        given = (("--state", self.options.state), ("--context", self.options.context))
        words = [f"{flag} {shlex.quote(value)}" for flag, value in given if value]
        return notes.Notes(self.say, " ".join(["kubepy", *words]))

    def catch_up(self, reads: Iterable[Key] | None = None) -> bool:
        """Let the controllers do what is due, before a command reads the cluster for the first
        time.

        Returns whether they did: what was read before may be stale. Where an earlier command had to
        leave work to others, a command that writes does so first. In a cluster with ``tick: reads``
        time goes on with a command that reads.

        :param reads: the objects that the command reads, if it is about some alone.
        """
        if not self.catches_up or not self.has_cluster:
            return False
        self.catches_up = False
        self._has_looked = True
        has_changed = self._react(reads)
        self.warn_of_files()
        return has_changed

    def _react(self, reads: Iterable[Key] | None) -> bool:
        """Look for edits of files, and let the controllers do what is due; return whether they did
        anything."""
        client = self.client
        if (
            self.reconciles
            and self.passes_time
            and self.cluster.settings.tick == cluster_settings.READS
        ):
            return self.driver.tick()

        if (
            self.cluster.store.holder(checkpoints.MANAGER_LOCK) is not None
        ):  # that process sees all edits by itself
            client.take_over_time()
            return False

        if not self.reconciles:
            return self.look_for_checkouts(reads)
        if checkpoints.settled_checkpoint(self.cluster, reads=reads):
            return False
        if not self.reads and checkpoints.was_cut(self.cluster.store):
            return False
        self.believe_checkouts()
        return self.driver.react()

    def look_for_checkouts(self, reads: Iterable[Key] | None = None) -> bool:
        """Look for edits, and take a state that git has checked out for settled if it is.

        Returns whether objects have changed by that.

        :param reads: the objects that the command reads, if it is about some alone.
        """
        self.client.changes(self.client.revision(), reads=reads)
        return self.believe_checkouts()

    def believe_checkouts(self) -> bool:
        """Find out which edits git's checkouts are, unless a process that runs the controllers has
        taken them in."""
        if (
            not self.cluster.claims
            or self.cluster.store.holder(checkpoints.MANAGER_LOCK) is not None
        ):
            return False
        return checkouts.believe_checkouts(self.cluster)

    def note_subjects(self, keys: Iterable[Key]) -> None:
        """Hear which objects the command works on, whether it writes them or not: a plan of it is
        about them."""

    def ticks(self, pause: float) -> Iterator[None]:
        """Yield for each round of a watch, ``pause`` seconds apart, until --request-timeout has
        passed."""
        clock = self.cluster.clock
        end = clock.real_monotonic() + (self.options.timeout_seconds() or float("inf"))
        while True:
            yield
            left = end - clock.real_monotonic()
            if left <= 0:
                if logger := self.cluster.logger:
                    error = (
                        "context deadline exceeded (Client.Timeout or context cancellation "
                        "while reading body)"
                    )
                    place = klog.place_of(Factory.ticks.__code__)
                    logger.info(
                        5, place, "Unable to decode an event from the watch stream", {"err": error}
                    )
                return
            clock.sleep(min(pause, left))
            if self._has_lost_reader():
                raise BrokenPipeError

    def _has_lost_reader(self) -> bool:
        """Return whether the reader of stdout is gone (``grep -m1``): a watch may never write to it
        again."""
        try:
            descriptor = self.stdout.fileno()
        except (OSError, ValueError):  # stdout is no file
            return False
        return system.has_lost_reader(descriptor)

    # --- streams

    @property
    def progress(self) -> progresses.Progress:
        """The line on a terminal that shows how far long work is (``progress.show``)."""
        if self._progress is None:
            self._progress = progresses.Progress(self.stderr)
        return self._progress

    def print(self, text: str = "", end: str = "\n") -> None:
        if self._progress is not None:
            self._progress.clear()
        self.stdout.write(text + end)

    def say(self, text: str, prefix: str = "") -> None:
        """Write a message to stderr, after everything printed so far; terminal controls in it are
        escaped.

        The program's name in it becomes the one that the program was called by.

        :param prefix: printed before it, unescaped: colours.
        """
        if self._progress is not None:
            self._progress.clear()
        self.stdout.flush()
        self.stderr.write(f"{prefix}{printable_lines(renamed(text, self.program))}\n")
        self.stderr.flush()

    def warn(self, text: str) -> None:
        """``Warning: …`` on stderr, each only once in a command, as client-go's warning writer
        does."""
        if text not in self._warned:
            self._warned[text] = None
            self.warn_again(text)

    def warn_again(self, text: str) -> None:
        """``Warning: …`` on stderr, whether or not it was written before."""
        head = "Warning:"
        if self.stderr.isatty():
            head = terminal.Painter(self.stderr)(head, terminal.Colour.YELLOW, terminal.Colour.BOLD)
        self.say(text, f"{head} ")

    def log(self, place: str, text: str) -> None:
        """A warning on stderr as Go's klog writes it: month, day, time, process, place. Each only
        once."""
        if (place, text) in self._logged:
            return
        self._logged.add((place, text))
        self.say(f"{klog.header('W', self.cluster.clock, place)} {text}")

    def warn_of_files(self) -> None:
        """Warn of the files of the cluster that are known not to be objects, if the command has
        opened it."""
        if not self.tells_problems or "cluster" not in self.__dict__:
            return
        with suppress(storage_errors.StorageError):  # of which the command says more
            for text in self.cluster.edit_warnings():
                self.warn(text)
            lines = list(self.cluster.known_problems().values())
            for text in lines[:MAX_FILES]:
                self.warn(text)
            more = len(lines) - MAX_FILES
            if more > 0 and self.folder:
                self.warn(
                    f'{self.folder}: {more} more files have problems: "kubepy fsck" lists them'
                )
            elif more > 0:
                self.warn(f"{self.shown_place}: {more} more values cannot be read")

    def note_look(self) -> None:
        """Say that the command has looked at all files, and need not do so at its end."""
        self._has_looked = True

    def _look_for_files(self) -> None:
        """Look for files that are new, replaced or no object's, after a command that has read no
        other object than it wrote, such as ``create``."""
        if self._has_looked or not self.tells_problems or "cluster" not in self.__dict__:
            return
        self._has_looked = True
        store = self.cluster.store
        # The command says more of trouble with the store. Expired: the look has found the index
        # damaged, and the one in its place knows nothing of the revision.
        with suppress(storage_errors.StorageError, errors.Expired):
            if self.cluster.folder and store.holder(checkpoints.MANAGER_LOCK) is None:
                self.client.changes(self.client.revision(), reads=())

    def finish(self) -> None:
        """Warn of files; fail a command that succeeded with warnings, when warnings count as
        errors."""
        self.tell_unknowns()
        self._look_for_files()
        self.warn_of_files()
        self.tells_problems = False
        if self.options.warnings_as_errors and self._warned:
            count = len(self._warned)
            self.say(f"error: {count} warning{'s' if count > 1 else ''} received")
            raise SilentExit(1)


def guarded(stream: IO[str]) -> IO[str]:
    """Return a stream for what a command prints: that of a terminal passes on nothing that would
    steer it."""
    if stream.isatty():
        return terminal.guard(stream)
    return stream
