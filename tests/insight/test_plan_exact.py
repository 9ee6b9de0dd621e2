"""A plan is exact: its steps are those that happen when its command is then run, in the cluster's own time.

``PLAN_SCENARIOS=1000 pytest tests/insight/test_plan_exact.py`` tries so many generated scenarios, others with
``PLAN_FIRST=5000``.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api.clock import parse_time
from kubepy.insight.timeline import read_timeline, timeline_document
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
    """Run the command, let everything settle, and return the steps that happened since the plan's beginning."""
    if made.command:
        cluster.run(made.command, stdin=made.stdin)
    cluster.settle()
    with cluster._open() as local:
        steps: list[Any] = timeline_document(read_timeline(local, parse_time(plan["startedAt"])))["steps"]
        return steps


@pytest.mark.parametrize("number", SCENARIOS)
def test_steps_of_plan_are_those_that_happen(number: int) -> None:
    made = scenario(number)
    cluster = made.cluster()
    cluster.advance(0.37)  # so that nothing before the plan is of its first moment
    plan = planned(cluster, made)
    if plan:
        steps = happened(cluster, made, plan)
        assert plan["steps"] == steps, f"scenario {number}: {made.command}"
