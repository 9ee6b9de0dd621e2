"""Challenges for programs: ``reset``, ``step``, ``grade``, as environments of Gymnasium have them.

Each episode is a fork, in memory, of a broken cluster that was made once for its seed.
"""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from kubepy.api.clock import ClockLimit, later
from kubepy.cli import main as command_line
from kubepy.cli.errors import CliError
from kubepy.cli.main import Root
from kubepy.cli.mcp.permitted import permit, words_of
from kubepy.clusters import Cluster
from kubepy.demo.grading import Grade, grade
from kubepy.demo.preparation import prepare
from kubepy.demo.scenarios import (
    PERMITTED,
    Scenario,
    ScenarioFile,
    read_scenario,
    read_shipped,
)
from kubepy.fuzz.patience import CallTooLong, limited_calls
from kubepy.quoting import printable

MOST_KEPT = 64  # broken clusters that are kept, to be forked
MOST_STEPS = 30
LONGEST_STEP = 10.0  # seconds of computing
LONGEST = 30 * 24 * 3600.0  # seconds of the cluster's time that an episode takes at most
REPAIRED, OTHERWISE = 1.0, 0.0  # rewards

Information: TypeAlias = "dict[str, Any]"


class Beginning(NamedTuple):
    """The beginning of an episode: a broken cluster, which is never changed, what is asked of it,
    and how it is judged."""

    cluster: Cluster
    scenario: Scenario
    judged: Judged


class Judged(NamedTuple):
    """A judgement.

    :ivar state: of the cluster: its revision and its time.
    """

    state: tuple[int, datetime]
    grade: Grade


class ChallengeEnvironment:
    """A challenge in memory, which a program repairs by command lines of kubepy or kubectl.

    :param challenge: the name of one that comes with kubepy (``quota``).
    :param path: a file, in place of a name.
    :param most_steps: after so many steps an episode is truncated.

    An environment is for one thread. Raises FolderError for a challenge that cannot be read.
    """

    def __init__(
        self,
        challenge: str = "",
        *,
        path: str | os.PathLike[str] = "",
        most_steps: int = MOST_STEPS,
    ) -> None:
        if bool(challenge) is bool(path):
            raise ValueError("name a challenge, or the path of a file")
        if most_steps < 1:
            raise ValueError(f"most_steps={most_steps}: must be at least 1")
        self._file: ScenarioFile = (
            read_shipped(challenge) if challenge else read_scenario(os.fspath(path))
        )
        self._most_steps = most_steps
        self._beginnings: OrderedDict[int, Beginning] = OrderedDict()
        self._root = Root()
        self._seed = 0
        self._scenario: Scenario | None = None
        self._cluster: Cluster | None = None
        self._steps = 0
        self._judged: Judged | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster of the episode. Raises RuntimeError before the first reset."""
        if self._cluster is None:
            raise RuntimeError("reset begins an episode")
        return self._cluster

    @property
    def scenario(self) -> Scenario:
        """The challenge with the values that the seed has drawn: ``title``, ``story``, ``hints``,
        ``solution``. Raises RuntimeError before the first reset."""
        if self._scenario is None:
            raise RuntimeError("reset begins an episode")
        return self._scenario

    def reset(self, seed: int | None = None, options: object = None) -> tuple[str, Information]:
        """Begin an episode. Returns the story, and information: ``name``, ``seed``, ``title``.

        :param seed: decides what is broken, and how; None: the one after that of the last episode.
        :param options: not used; it is there because Gymnasium's ``reset`` has it.

        Raises FolderError for a file whose setup fails.
        """
        self._seed = self._seed + 1 if seed is None else seed
        beginning = self._beginning(self._seed)
        self._scenario = beginning.scenario
        self._cluster = beginning.cluster.fork()
        self._steps = 0
        self._judged = beginning.judged
        with self._cluster._open() as local:
            local.clock.limit = later(local.clock.now(), LONGEST)
        scenario = beginning.scenario
        information = {"name": scenario.name, "seed": self._seed, "title": scenario.title}
        return scenario.story, information

    def _beginning(self, seed: int) -> Beginning:
        """Return the broken cluster of a seed, made now or kept."""
        kept = self._beginnings.pop(seed, None)
        if kept is None:
            cluster, scenario = prepare(self._file, seed)
            kept = Beginning(cluster, scenario, _judge(cluster, scenario))
        self._beginnings[seed] = kept
        if len(self._beginnings) > MOST_KEPT:
            self._beginnings.popitem(last=False)
        return kept

    def step(self, command: str, stdin: str = "") -> tuple[str, float, bool, bool, Information]:
        """Run a command line. Returns what it has printed, the reward, whether the cluster is
        repaired, whether the episode is truncated, and information.

        The reward is 1.0 when the cluster is repaired, else 0.0. The information has the exit
        ``status`` and the ``grade``. A command that concerns this machine (files, ports, programs,
        other clusters), or would not come to an end, is refused: it prints an error, and exits
        with 1. One that computes for more than 10 seconds is undone, and truncates the episode (in
        the main thread; others cannot be interrupted).

        :param command: words are quoted as for a shell; no shell reads it.
        :param stdin: for ``apply -f -``.
        """
        cluster = self.cluster
        self._steps += 1
        is_over = False
        status, output = 1, ""
        before = cluster.fork()
        try:
            permit(self._root, command, PERMITTED, ())
            with limited_calls(LONGEST_STEP):
                status, output = self._run(cluster, command, stdin)
        except CliError as error:
            output = f"error: {printable(str(error))}\n"
        except ClockLimit:
            is_over = True
            output = "error: the time of the episode is over\n"
        except CallTooLong:
            is_over = True
            output = f"error: no end after {LONGEST_STEP:.0f}s of computing\n"
            self._cluster = before  # the other one was left in the middle of something
        judged = self.grade()
        repaired = judged.repaired
        truncated = not repaired and (is_over or self._steps >= self._most_steps)
        information = {"status": status, "grade": judged}
        reward = REPAIRED if repaired else OTHERWISE
        return output, reward, repaired, truncated, information

    def _run(self, cluster: Cluster, command: str, stdin: str) -> tuple[int, str]:
        """Run a command line that is permitted; returns its exit status, and what it prints on
        both streams."""
        output = io.StringIO()
        with cluster._open() as local:
            status = command_line.main(
                words_of(command),
                stdin=io.StringIO(stdin),
                stdout=output,
                stderr=output,
                open_cluster=local,
            )
        return status, output.getvalue()

    def grade(self) -> Grade:
        """Judge the cluster as it is now; nothing is changed in it. Raises RuntimeError before the
        first reset."""
        self._judged = _judge(self.cluster, self.scenario, self._judged)
        return self._judged.grade


def _judge(cluster: Cluster, scenario: Scenario, last: Judged | None = None) -> Judged:
    """Judge a cluster, unless it is as it was when it was judged last."""
    with cluster._open() as local:
        state = (local.client.revision(), local.clock.now())
        if last is not None and last.state == state:
            return last
        return Judged(state, grade(local, scenario))
