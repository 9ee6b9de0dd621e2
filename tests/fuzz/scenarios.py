"""The scenarios by which the real controllers are disturbed, read from ``scenarios/*.yaml``.

A scenario is a map: ``manifests``, a text, is applied to a fresh cluster, after the commands of
``before``; when the cluster has settled, the runs begin. ``commands`` is the workload. ``checks``
are judged beside those of ``invariants.yaml`` and the built-in ones but ``without``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kubepy.clusters import FIRST_MOMENT, Cluster
from kubepy.controlplane.images import image_of
from kubepy.fuzz.builtin_checks import BUILTINS
from kubepy.fuzz.cases import ChecksSource, FuzzCase
from kubepy.storage import yaml

HERE = Path(__file__).parent
FOLDER = HERE / "scenarios"
INVARIANTS = HERE / "invariants.yaml"
DURATION = 600.0  # seconds of the cluster's time in which controllers are disturbed


class Scenario(NamedTuple):
    """A workload of the real controllers, and what must hold in it.

    :ivar before: commands that set the cluster up.
    :ivar without: the built-in checks that are left out.
    """

    name: str
    before: Sequence[str]
    manifests: str
    commands: Sequence[str]
    checks: Sequence[object]
    without: Sequence[str]

    def case(self) -> FuzzCase:
        """Return what a run does, on the cluster as it has settled."""
        cluster = Cluster.temporary(nodes=3, clock=FIRST_MOMENT, seed=1)
        for command in self.before:
            cluster.run(command, check=True)
        if self.manifests:
            cluster.run("apply -f -", stdin=self.manifests, check=True)
        cluster.settle("5m")
        builtin = [ChecksSource(name) for name in BUILTINS if name not in self.without]
        invariants = ChecksSource(str(INVARIANTS), INVARIANTS.read_text())
        own = ChecksSource(f"{self.name}.yaml", yaml.dump(list(self.checks)))
        with cluster._open() as local:
            image = image_of(local)
        return FuzzCase(
            image=image,
            checks=(own, invariants, *builtin),
            commands=tuple(tuple(shlex.split(command)) for command in self.commands),
            duration=DURATION,
        )


def all_scenarios() -> Iterator[Scenario]:
    """Read the scenarios, in the order of their names."""
    for path in sorted(FOLDER.glob("*.yaml")):
        [document] = yaml.load_all(path.read_text())
        scenario = document.object
        yield Scenario(
            path.stem,
            scenario.get("before", ()),
            scenario.get("manifests", ""),
            scenario["commands"],
            scenario["checks"],
            scenario.get("without", ()),
        )
