"""The subject of a fuzz: a cluster, an operator, commands, checks. All of it is plain data, so that
it can be sent to other processes and machines."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.apiserver.fault_settings import FaultSettings
from kubepy.cli.parallel.commandfiles import CommandFiles
from kubepy.cli.runtime.faults import parse_faults_file
from kubepy.clusters import FIRST_MOMENT, Cluster
from kubepy.controlplane import build_manager
from kubepy.controlplane.functions import ControllerFunction, FunctionControllers
from kubepy.controlplane.images import ClusterImage, open_image
from kubepy.fuzz.checks import Check, builtin, parse_checks
from kubepy.fuzz.operators import Operator, OperatorSource, place_in
from kubepy.fuzz.patience import CallTooLong, limited_calls
from kubepy.quoting import printable
from kubepy.storage import FolderError

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

LONGEST_START = 60.0  # seconds of computing that the start of an operator may take
DEFAULT_DURATION = 600.0  # seconds of the cluster's time


class ChecksSource(NamedTuple):
    """Checks as they were given: a file, or the name of a built-in check.

    :ivar text: of the file; None: ``path`` is the name.
    """

    path: str
    text: str | None = None


class FuzzCase(NamedTuple):
    """The beginning of each run, and what happens in it.

    :ivar image: the cluster that runs start on; None: a fresh one.
    :ivar nodes: of a fresh one.
    :ivar commands: the words of command lines, without the program's name.
    :ivar duration: seconds of the cluster's time that a run takes at most.
    :ivar faults: the text of a file of faults, and its path.
    :ivar disturbs_all: the real controllers are disturbed like the operator's.
    :ivar files: those that commands read, where other machines make runs.
    """

    image: ClusterImage | None = None
    nodes: int = 3
    operator: OperatorSource | None = None
    checks: tuple[ChecksSource, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    duration: float = DEFAULT_DURATION
    faults: tuple[str, str] | None = None
    disturbs_all: bool = True
    files: CommandFiles | None = None


class World:
    """A case that was opened in this process: what all its runs have in common.

    Raises FolderError for a file that cannot be read.
    """

    def __init__(self, case: FuzzCase) -> None:
        self.case = case
        self.checks = tuple(checks_of(case.checks))
        self.faults = _parsed_faults(case.faults)
        self.base = _opened(case)
        try:
            with redirect_stdout(io.StringIO()), limited_calls(LONGEST_START):
                self.operator = Operator(case.operator) if case.operator is not None else None
                self.names = self._names()
        except CallTooLong as error:
            assert case.operator is not None
            place = place_in(case.operator.path, error)
            raise FolderError(printable(f"{place}: no end of its start")) from None
        self._prepare()
        self.started = self.base.clock.now()

    def _names(self) -> list[str]:
        """Return the names of the operator's controllers, which it is started once for."""
        if self.operator is None:
            return []
        cluster = Cluster(self.base.fork(is_prediction=True))
        self.operator.start(cluster)
        local = cluster._local
        assert local is not None
        added = local.added
        return added.names() if isinstance(added, FunctionControllers) else []

    def _prepare(self) -> None:
        """Let the controllers do what is due, so that each run goes on from their checkpoint, in
        which those of the operator are known and have nothing to do."""
        self.base.added = FunctionControllers(
            {name: ControllerFunction(name, ("pods",), _nothing) for name in self.names}
        )
        build_manager(self.base).run_until_settled(quiet_for=0.0)
        self.base.added = None

    def settings(self, seed: int) -> dict[str, Any]:
        """Return the settings of the run of a seed that differ from those of the cluster.

        Seed 0 has the cluster's own seed. A cluster without one gets seed 0 in it, too: its random
        names would be others in each process.
        """
        own = self.base.settings.seed
        if own is None:
            return {"seed": seed}
        return {"seed": f"{own}-{seed}"} if seed else {}


def _nothing(client: Any, key: Any) -> None:
    """Stand for a controller that does nothing."""


def checks_of(sources: tuple[ChecksSource, ...]) -> list[Check]:
    """Read checks. Raises FolderError."""
    checks: list[Check] = []
    for source in sources:
        if source.text is None:
            checks.append(builtin(source.path))
        else:
            checks += parse_checks(source.path, source.text)
    return checks


def _parsed_faults(faults: tuple[str, str] | None) -> FaultSettings | None:
    if faults is None:
        return None
    return parse_faults_file(*faults)


def _opened(case: FuzzCase) -> LocalCluster:
    """Return a fork of the cluster of a case, with a time of its own."""
    if case.image is None:
        fresh = Cluster.temporary(nodes=case.nodes, clock=FIRST_MOMENT, seed=1)
        local = fresh._local
        assert local is not None
        local.keeps_timeline = True
        return local
    return open_image(case.image)
