"""The broken cluster of a challenge, in memory; and the steps that are done on one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import timedelta

from kubepy.api.clock import format_exact_time
from kubepy.api.values.goformat import parse_span
from kubepy.apiserver.strict_fields import field_error
from kubepy.clusters import Cluster
from kubepy.demo.scenarios import ADVANCE, COMMAND, MANIFESTS, ChallengeStep, Scenario, ScenarioFile
from kubepy.results import CommandResult

APPLY = "kubepy apply -f -"
# After the setup so much time goes by: what was made in it is older than what a learner makes.
BEFORE = timedelta(minutes=1)


def prepare(file: ScenarioFile, seed: int) -> tuple[Cluster, Scenario]:
    """Make the broken cluster of a challenge in memory, and return it with the values that the
    seed has drawn.

    Raises FolderError, which names the field, for a setting or a step of the setup that fails.
    """
    scenario = file.drawn(seed)
    try:
        cluster = Cluster.temporary(
            nodes=scenario.nodes, seed=seed, settings=dict(scenario.settings)
        )
    except ValueError as error:
        message = str(error).removeprefix("settings: ")
        raise field_error(f"{file.path}: settings", message) from None
    do_steps(cluster, scenario.setup)
    cluster.advance(BEFORE)
    began = format_exact_time(cluster.now)
    return cluster, file.drawn(seed, began)


def do_steps(cluster: Cluster, steps: Iterable[ChallengeStep]) -> None:
    """Do the steps of a setup or of a repair. Raises FolderError, which names the field, for one
    that fails."""
    for step in steps:
        if step.kind == ADVANCE:
            cluster.settle(0)
            cluster.advance(parse_span(step.text))
            continue
        result = _run(cluster, step)
        if not result:
            said = (result.stderr or result.stdout).strip().splitlines()
            message = said[-1] if said else f"exit status {result.status}"
            raise field_error(step.path, f"fails: {message}")
    cluster.settle(0)


def _run(cluster: Cluster, step: ChallengeStep) -> CommandResult:
    if step.kind == MANIFESTS:
        return cluster.run(APPLY, stdin=step.text)
    assert step.kind == COMMAND
    return cluster.run(shlex.split(step.text))
