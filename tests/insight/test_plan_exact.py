"""A plan is exact: its steps are those that happen when its command is then run, in the cluster's
own time.

``PLAN_SCENARIOS=1000 pytest tests/insight/test_plan_exact.py`` tries so many generated scenarios,
others with ``PLAN_FIRST=5000``; with ``PLAN_CASES=1`` all recorded cases are played.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api.clock import parse_time
from kubepy.api.values.goformat import parse_span
from kubepy.insight.timeline import read_timeline, timeline_document
from tests.conformance.test_conformance import RUNNER
from tests.insight.rollouts import Scenario, scenario

FIRST = int(os.environ.get("PLAN_FIRST", "0"))
SCENARIOS = range(FIRST, FIRST + int(os.environ.get("PLAN_SCENARIOS", "12")))


def planned(cluster: Cluster, made: Scenario) -> dict[str, Any]:
    """Return the plan of a scenario's command; {} where the command fails."""
    result = cluster.run(["plan", "-o", "json", *made.command], stdin=made.stdin)
    assert (result.status == 1) == (not result.stdout), result.stderr
    plan: dict[str, Any] = json.loads(result.stdout or "{}")
    return plan


def happened(cluster: Cluster, made: Scenario, plan: dict[str, Any]) -> list[Any]:
    """Run the command, let everything settle, and return the steps that happened since the plan's
    beginning.

    A plan goes on to one more try of what has failed again and again; a cluster comes to rest
    before that.
    """
    if made.command:
        cluster.run(made.command, stdin=made.stdin)
    cluster.settle()
    with cluster._open() as local:
        passed = (local.clock.now() - parse_time(plan["startedAt"])).total_seconds()
    if plan["settledAfter"] and (more := parse_span(plan["settledAfter"]) - passed) > 0:
        cluster.advance(more)
    with cluster._open() as local:
        steps: list[Any] = timeline_document(read_timeline(local, parse_time(plan["startedAt"])))[
            "steps"
        ]
        return steps


@pytest.mark.parametrize("number", SCENARIOS)
def test_steps_of_plan_are_those_that_happen(number: int) -> None:
    made = scenario(number)
    cluster = made.cluster()
    cluster.advance(0.37)  # so that nothing before the plan is of its first moment
    plan = planned(cluster, made)
    if plan:
        steps = happened(cluster, made, plan)
        if plan["settledAfter"] is None:  # it ends where what happens repeats itself without end
            steps = steps[: len(plan["steps"])]
        assert plan["steps"] == steps, f"scenario {number}: {made.command}"


# --- the recorded cases ---------------------------------------------------------------------------

CASES = sorted((Path(__file__).parents[1] / "conformance" / "cases").glob("*/*.txt"))
SAMPLE = CASES if os.environ.get("PLAN_CASES") else CASES[::25]
SHELL = re.compile(r"[|;&<>$()`]")
ON_FILES = ("sed", "mkdir", "cat", "rm", "cp")


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_plans_of_recorded_commands_are_exact(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, steps, files = RUNNER.parse(case.read_text())
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    cluster = Cluster.temporary(nodes=0, seed=7)
    for command, _ in steps:
        program = command.split()[0]
        if program == "kubectl" and not SHELL.search(command):
            check_plan(cluster, shlex.split(command))
        elif program == "settle":
            cluster.settle(0)
        elif program == "sleep":
            cluster.advance(f"{command.split()[1]}s")
        elif program in ON_FILES and "kubectl" not in command:
            subprocess.run(["bash", "-c", command], check=False, cwd=tmp_path)


def check_plan(cluster: Cluster, words: list[str]) -> None:
    """Run a command, and compare what happens then on a fork with its plan."""
    cluster.advance(0.001)
    result = cluster.run(["plan", "-o", "json", *words])
    attempt = cluster.fork()
    cluster.run(words)
    if result.status == 1 or (not attempt.run(words) and result.status == 0):
        return
    attempt.settle()
    plan = json.loads(result.stdout)
    with attempt._open() as local:
        timeline = timeline_document(read_timeline(local, parse_time(plan["startedAt"])))
    assert plan["steps"] == timeline["steps"], shlex.join(words)
