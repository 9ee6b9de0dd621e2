"""The pytest plugin: the fixtures ``kubepy`` and ``kubepy_server``, transcripts ``*.kubepy.txt`` as
tests, and reports of what changed.

docs/python.md describes it. pytest imports this module in every project in whose environment kubepy
is installed, so functions import everything else when a test uses it. (pytest reads every attribute
of a plugin, which would import lazy modules at once.)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import chain
from os import urandom
from os.path import relpath
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kubepy.clusters import Cluster
    from kubepy.results import CommandResult
    from kubepy.scripting import Shell
    from kubepy.serving import ClusterServer
    from kubepy.testing.transcripts import StepDifference

SUFFIX = ".kubepy.txt"
FUZZ_FILE = re.compile(r"--(?:operator|check|faults)[= ]([^\s'\"]+)")
SCRIPT = re.compile(r"(?:^|(?<=[\s;&|(=]))\./([\w.-]+)")
INI_OPTIONS = {
    "nodes": ("1", "kubepy: how many Ready nodes a test's cluster has (default: 1)"),
    "clock": (
        "2026-01-01T00:00:00Z",
        "kubepy: when the time of a test's cluster begins, or 'system' for the system's "
        "time (default: 2026-01-01T00:00:00Z)",
    ),
    "seed": (
        "1",
        "kubepy: what everything random in a test's cluster is a function of, or 'random' for "
        "another one "
        "in each run (default: 1)",
    ),
}
MEMORY = "memory:"
STATE_HELP = (
    "where the tests' clusters are: 'memory:', or an etcd (etcd://HOST:PORT/PREFIX), below whose "
    "prefix each test has one of its own, which is removed after it"
)
MARKER = (
    "kubepy(nodes=1, clock='2026-01-01T00:00:00Z', seed=1, folder=False, settings=None, "
    "state='memory:'): the cluster of the fixture kubepy; with folder=True it is a state folder "
    "in tmp_path"
)
UPDATED = "kubepy_updated_transcript"  # a test's user property
WORKER_SEED = "kubepy_seed"  # in the input of a worker of xdist


class ClusterUse:
    """The cluster of a test, and a fork of it as it was when the test began."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.seed = cluster.seed
        self.began = cluster.now
        self.before = cluster.fork()

    def describe(self) -> str:
        """Return the cluster's time, what happened in it, and what has changed."""
        from kubepy.api.clock import format_time
        from kubepy.testing.changes import describe_changes, describe_timeline

        time = began = format_time(self.began)
        now = format_time(self.cluster.now)
        if now != began:
            time = f"{began} to {now}"
        with self.before._open() as before, self.cluster._open() as after:
            revision = before.client.revision()
            timeline = describe_timeline(after, self.began, revision)
            changes = describe_changes(before, after)
        return f"time: {time}, seed: {self.seed}\n{timeline}{changes}"

    def close(self) -> None:
        """Let go of both. What is in etcd is removed."""
        place = self.cluster._place
        self.cluster.close()
        self.before.close()
        remove_from_etcd(place)


PACKAGE = Path(__file__).parent.parent
USE = pytest.StashKey[ClusterUse]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kubepy")
    group.addoption(
        "--kubepy-seed",
        metavar="SEED",
        default=None,
        help="the seed of the tests' clusters, in place of the ini option's: repeats a run; "
        "'random' "
        "draws one",
    )
    group.addoption(
        "--kubepy-state",
        metavar="STATE",
        default=None,
        help=f"{STATE_HELP}; in place of the ini option's",
    )
    group.addoption(
        "--kubepy-update",
        action="store_true",
        default=False,
        help=f"let transcripts (*{SUFFIX}) expect what their commands print now",
    )
    for name, (default, text) in INI_OPTIONS.items():
        parser.addini(f"kubepy_{name}", text, default=default)
    parser.addini("kubepy_state", f"kubepy: {STATE_HELP} (default: {MEMORY})", default=MEMORY)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    of_worker = getattr(config, "workerinput", {})
    if of_worker.get(WORKER_SEED) is not None:
        config.option.kubepy_seed = of_worker[WORKER_SEED]
        return
    seed = config.getoption("kubepy_seed") or config.getini("kubepy_seed")
    if seed == "random":
        from random import SystemRandom

        drawn = SystemRandom().randrange(10**6)
        config.option.kubepy_seed = str(drawn)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist the seed of the run."""
    seed = node.config.getoption("kubepy_seed")
    node.workerinput[WORKER_SEED] = seed


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("kubepy_seed")
    if not seed:
        return None
    return f"kubepy: --kubepy-seed={shlex.quote(seed)}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name.endswith(SUFFIX):
        return TranscriptFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    hide_insides(item, call)
    report = yield
    use = item.stash.get(USE, None)
    if report.failed and call.when in ("setup", "call") and use is not None:
        try:
            text = use.describe()
        except Exception as error:  # a test may have closed the cluster, or damaged its folder
            text = f"what changed cannot be shown: {error}"
        report.sections.append(
            ("kubepy: the cluster", f"{text}\nrepeat with: {repeat_command(item, use)}")
        )
    return report


def hide_insides(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Cut a traceback where a test calls the package, unless the exception is none of those that
    the package raises on purpose."""
    error = call.excinfo
    if (
        error is None
        or item.config.getoption("fulltrace")
        or not (
            isinstance(error.value, TypeError | ValueError)
            or type(error.value).__module__.startswith("kubepy.")
        )
    ):
        return

    entry = error.tb
    while entry.tb_next is not None:
        code = entry.tb_next.tb_frame.f_code
        if Path(code.co_filename).parent == PACKAGE:
            entry.tb_next = None
            return
        entry = entry.tb_next


def pytest_terminal_summary(terminalreporter: Any) -> None:
    updated = set()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        for name, value in getattr(report, "user_properties", ()):
            if name == UPDATED:
                updated.add(value)
    for path in sorted(updated):
        terminalreporter.write_line(f"kubepy: updated {path}")


@pytest.fixture
def kubepy(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A new cluster for each test, in memory unless something else is said: a ``kubepy.Cluster``.

    ``@pytest.mark.kubepy(nodes=3, clock=…, seed=…, folder=True, settings={…}, state=…)`` decides
    about it, where the ini options kubepy_nodes, kubepy_clock, kubepy_seed and kubepy_state do not.
    """
    options: dict[str, Any] = {}
    for marker in request.node.iter_markers("kubepy"):  # the closest first
        unknown = marker.kwargs.keys() - {*INI_OPTIONS, "folder", "settings", "state"}
        if marker.args or unknown:
            usage = MARKER.partition(": ")[0]
            pytest.fail(f"wrong marker: must be {usage}", pytrace=False)
        options = {**marker.kwargs, **options}
    in_folder = options.pop("folder", False)
    if not isinstance(in_folder, bool):
        pytest.fail(f"wrong marker: folder={in_folder!r}: must be True or False", pytrace=False)
    folder = None
    if in_folder:
        folder = request.getfixturevalue("tmp_path") / "state"
    cluster = new_cluster(request.config, options, folder)
    use = ClusterUse(cluster)
    request.node.stash[USE] = use
    yield cluster
    use.close()


@pytest.fixture
def kubepy_server(kubepy: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterServer]:
    """The server of the fixture ``kubepy``, for other clients; ``KUBECONFIG`` names its
    kubeconfig."""
    with kubepy.serve() as server:
        monkeypatch.setenv("KUBECONFIG", server.kubeconfig)
        yield server


def new_cluster(config: pytest.Config, options: dict[str, Any], folder: Path | None) -> Cluster:
    """Make a cluster for a test.

    :param options: go before the ini options; each may be a text, as those are.
    :param folder: where the cluster is to be, wherever those of other tests are.
    """
    from kubepy.api.clock import draw_seed
    from kubepy.clusters import Cluster
    from kubepy.storage import StorageError
    from kubepy.testing.transcripts import cluster_settings

    defaults = {name: config.getini(f"kubepy_{name}") for name in INI_OPTIONS}
    if seed := config.getoption("kubepy_seed"):
        defaults["seed"] = seed
    place = ""
    try:
        state = options.pop("state", None) or state_of(config)
        settings = cluster_settings({**defaults, **options})
        if settings["seed"] is None:  # that of the command line repeats what was drawn before
            of_line = cluster_settings({"seed": defaults["seed"]})
            settings["seed"] = of_line["seed"] if seed else draw_seed()
        if folder is not None:
            return Cluster.create(folder, **settings)
        if state == MEMORY:
            return Cluster.temporary(**settings)
        place = place_in_etcd(state)
        return Cluster.create(place, **settings)
    except (TypeError, ValueError, StorageError) as error:
        problem = str(error)

    with suppress(StorageError):  # what is there of it; etcd may be what the problem is
        remove_from_etcd(place)
    pytest.fail(f"the cluster of this test cannot be made: {problem}", pytrace=False)


def state_of(config: pytest.Config) -> str:
    """Return where the clusters of the tests are: as the command line says, or the ini option."""
    state: str = config.getoption("kubepy_state") or config.getini("kubepy_state")
    return state


def place_in_etcd(state: str) -> str:
    """Return the address of a new cluster below the prefix of another address. Raises
    ValueError."""
    from kubepy.controlplane.open import is_in_etcd

    if not is_in_etcd(state):
        raise ValueError(f"state={state!r}: must be {MEMORY} or etcd://HOST:PORT/PREFIX")
    location, question_mark, options = state.partition("?")
    name = f"pytest-{urandom(8).hex()}"
    return f"{location.rstrip('/')}/{name}{question_mark}{options}"


def remove_from_etcd(place: str) -> None:
    """Remove the cluster of a test, if it is in etcd. Raises StorageError."""
    from kubepy.controlplane.open import is_in_etcd, remove_cluster

    if is_in_etcd(place):
        remove_cluster(place)


def repeat_command(item: pytest.Item, use: ClusterUse) -> str:
    """Return the command that runs a test again, in the same folder and on the same cluster."""
    from kubepy.controlplane.open import shown

    config = item.config
    options = []
    for override in config.getoption("override_ini") or ():
        if override.startswith("kubepy_"):
            options += ["-o", override]
    seed = config.getoption("kubepy_seed")
    if not seed and str(use.seed) != config.getini("kubepy_seed"):
        seed = use.seed
    if seed not in ("", None):
        options.append(f"--kubepy-seed={seed}")
    state = config.getoption("kubepy_state")
    if state:
        options.append(f"--kubepy-state={shown(state)}")
    path, separator, name = item.nodeid.partition("::")
    path = relpath(config.rootpath / path, config.invocation_params.dir)
    return shlex.join(["pytest", *options, f"{path}{separator}{name}"])


def link_to(source: str, target: str) -> None:
    """Make a link in place of a copy of a file."""
    Path(target).symlink_to(source)


def scripts_of(command: str) -> list[str]:
    """Return the names of the files that a command runs as ``./NAME``, perhaps."""
    return SCRIPT.findall(command)


class TranscriptFile(pytest.File):
    """A file with one transcript."""

    def collect(self) -> Iterator[pytest.Item]:
        from kubepy.testing.transcripts import TranscriptError, cluster_settings, read

        try:
            cluster_settings(read(self.path).settings)
        except TranscriptError as error:
            raise self.CollectError(str(error)) from None
        except (ValueError, OSError) as error:
            raise self.CollectError(f"{self.path}: {error}") from None
        yield TranscriptItem.from_parent(self, name=self.path.name.removesuffix(SUFFIX))


class TranscriptFailure(Exception):
    """Commands of a transcript print something else than it says."""


class TranscriptItem(pytest.Item):
    """Runs a transcript: every command, also behind one that prints something else."""

    def setup(self) -> None:
        from kubepy.testing.transcripts import read

        self.transcript = read(self.path)
        self._folder = TemporaryDirectory(prefix="kubepy-")
        folder = Path(self._folder.name)
        settings: dict[str, Any] = dict(self.transcript.settings)
        for name, content in self.transcript.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            if content.startswith("#!"):
                path.chmod(0o700)
        self._link_scripts(folder)
        self._link_files(folder)
        is_in_folder = settings.pop("folder", None) is not None
        state = folder / "state" if is_in_folder else None
        cluster = new_cluster(self.config, settings, state)
        self.stash[USE] = ClusterUse(cluster)

    def _link_scripts(self, folder: Path) -> None:
        """Bring what is beside the transcript into its folder, where one of its commands runs a
        script from there."""
        beside = self.path.parent
        names = {name for step in self.transcript.steps for name in scripts_of(step.command)}
        if not any((beside / name).is_file() for name in names - self.transcript.files.keys()):
            return
        hidden = ignore_patterns(".*", "__pycache__")
        own = {*self.transcript.files, *hidden("", [path.name for path in beside.iterdir()])}
        for source in beside.iterdir():
            target = folder / source.name
            if source.name in own or target.exists():
                continue
            if source.is_dir():  # clients do not follow a link to a folder of manifests
                copytree(source, target, symlinks=True, ignore=hidden, copy_function=link_to)
            else:
                target.symlink_to(source)

    def _link_files(self, folder: Path) -> None:
        """Bring the files that commands of ``fuzz`` name into the folder, from beside the
        transcript."""
        for step in self.transcript.steps:
            for name in FUZZ_FILE.findall(step.command):
                source, target = self.path.parent / name, folder / name
                is_inside = target.resolve().is_relative_to(folder.resolve())
                if source.is_file() and is_inside and not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.symlink_to(source.resolve())

    def _run_step(self, runner: Shell, command: str) -> CommandResult:
        """Run the command of a step; for a script the cluster is served meanwhile."""
        folder = Path(self._folder.name)
        if not any((folder / name).is_file() for name in scripts_of(command)):
            return runner.run(command)
        with self.stash[USE].cluster.serve() as server:
            runner.environment["KUBECONFIG"] = server.kubeconfig
            try:
                return runner.run(command)
            finally:
                del runner.environment["KUBECONFIG"]

    def teardown(self) -> None:
        use = self.stash.get(USE, None)
        if use is not None:
            use.close()
        self._folder.cleanup()

    def runtest(self) -> None:
        from kubepy import scripting as shell
        from kubepy.testing import transcripts

        transcript = self.transcript
        path = self.nodeid.rpartition("::")[0]
        runner = shell.Shell(self.stash[USE].cluster, Path(self._folder.name))
        differences: list[StepDifference] = []
        for step in transcript.steps:
            try:
                result = self._run_step(runner, step.command)
            except shell.StepTimeoutError:
                place = f"{path}:{step.line}"
                message = f"no end within {shell.STEP_SECONDS:g} s"
                raise TranscriptFailure(f"{place}: $ {step.command}\n{message}") from None
            printed = transcripts.rendered(result.stdout, result.stderr, result.status)
            if not transcripts.is_as_expected(step, printed):
                differences.append(transcripts.StepDifference(step, printed))

        if differences and self.config.getoption("kubepy_update"):
            try:
                transcripts.replace(self.path, transcripts.updated(transcript, differences))
            except OSError as error:
                raise TranscriptFailure(f"{path} cannot be updated: {error}") from None
            self.user_properties.append((UPDATED, path))
        elif differences:
            raise TranscriptFailure(transcripts.report(transcript, differences, path))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, TranscriptFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name
