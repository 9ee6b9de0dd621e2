"""The challenges of the package: a script repairs each, and no mistake goes unnoticed."""

from __future__ import annotations

import pytest

from kubepy.demo.environment import ChallengeEnvironment
from kubepy.demo.grading import BROKEN, NOT_YET, Grade
from kubepy.demo.scenarios import (
    ADVANCE,
    MANIFESTS,
    ChallengeStep,
    read_shipped,
    shipped_names,
)

NAMES = shipped_names()
SEEDS = (1, 2)


@pytest.fixture(scope="module", params=NAMES)
def environment(request: pytest.FixtureRequest) -> ChallengeEnvironment:
    return ChallengeEnvironment(request.param)


def do(environment: ChallengeEnvironment, steps: tuple[ChallengeStep, ...]) -> Grade:
    """Do steps as an agent would, each a command line; return the last judgement."""
    for step in steps:
        if step.kind == MANIFESTS:
            output, *_, information = environment.step("kubectl apply -f -", step.text)
        elif step.kind == ADVANCE:
            output, *_, information = environment.step(f"kubepy clock advance {step.text}")
        else:
            output, *_, information = environment.step(step.text)
        assert information["status"] == 0, output
    return environment.grade()


def test_there_are_ten_at_least_each_with_hints_and_mistakes() -> None:
    assert len(NAMES) >= 10
    for name in NAMES:
        scenario = read_shipped(name).drawn(1)
        assert scenario.hints
        assert scenario.solution
        assert scenario.mistakes


@pytest.mark.parametrize("seed", SEEDS)
def test_script_repairs_it_and_nothing_else_does(
    environment: ChallengeEnvironment, seed: int
) -> None:
    environment.reset(seed)
    begun = environment.grade()
    assert not begun.repaired
    assert not begun.broken
    assert begun.names(NOT_YET)
    environment.step("kubepy clock advance 5m")
    waited = environment.grade()
    assert not waited.repaired
    assert not waited.broken
    environment.reset(seed)
    repaired = do(environment, environment.scenario.solution)
    assert repaired.repaired, repaired


def test_each_wrong_repair_is_told(environment: ChallengeEnvironment) -> None:
    environment.reset(1)
    for mistake in environment.scenario.mistakes:
        environment.reset(1)
        wrong = do(environment, mistake.steps)
        assert not wrong.repaired
        assert mistake.breaks in wrong.broken
        states = {standing.name: standing.state for standing in wrong.standings}
        assert states[mistake.breaks] == BROKEN


def test_seeds_draw_other_clusters() -> None:
    for name in NAMES:
        file = read_shipped(name)
        stories = {file.drawn(seed).setup for seed in range(12)}
        assert len(stories) > 3, name
