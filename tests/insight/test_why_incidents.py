"""The compound incidents, with the remedies of ``why`` carried out for real, on the cluster
itself."""

from __future__ import annotations

import json

import pytest

from kubepy import Cluster
from kubepy.api.values.goformat import format_duration
from kubepy.insight import stdin_of
from kubepy.insight.why import DONE, STUCK, RemedySequence

from .incidents import INCIDENTS, begun

FEWEST = 40


def state_of(cluster: Cluster, asked: str) -> str:
    """Return how an object stands, "gone" where it does not exist."""
    result = cluster.run(f"why {asked} -o json")
    return "gone" if "NotFound" in result.stderr else str(json.loads(result.stdout)["state"])


def carry_out(cluster: Cluster, sequence: RemedySequence) -> None:
    """Run the commands of a sequence at their times, which are counted from its beginning."""
    passed = 0.0
    for step in sequence.steps:
        if step.after > passed:
            cluster.advance(format_duration(step.after - passed))
            passed = step.after
        cluster.run(step.command, stdin=stdin_of(step.command), check=True)


@pytest.mark.parametrize("name", INCIDENTS)
def test_sequence_carried_out_brings_the_incident_to_done(name: str) -> None:
    incident = INCIDENTS[name]
    cluster = begun(incident)
    answer = cluster.why(incident.asks)
    assert answer.state == STUCK
    assert answer.sequence is not None
    carry_out(cluster, answer.sequence)
    cluster.settle("2h")
    assert state_of(cluster, incident.asks) in (DONE, "gone")


def test_incidents_are_many_enough_to_tell() -> None:
    assert len(INCIDENTS) >= FEWEST
