"""The scenarios of the real controllers, with a few seeds; ``make fuzz`` tries many."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from kubepy.fuzz.cases import World
from kubepy.fuzz.run import run_once
from kubepy.runtime.oracle import RunName
from tests.fuzz.mutations import MUTATIONS, Mutation, mutated
from tests.fuzz.scenarios import Scenario, all_scenarios

# undisturbed; a controller ends at one of its writes; a mixture of disturbances
SEEDS = (0, 3, 6)
SCENARIOS = list(all_scenarios())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario_some_seeds_nothing_is_violated(scenario: Scenario) -> None:
    world = World(scenario.case())

    for seed in SEEDS:
        record = run_once(world, RunName(seed))
        assert record.violation is None, (seed, record.violation)
        if seed == 0:
            assert not record.failed


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_its_modules_have_what_it_replaces(mutation: Mutation) -> None:
    assert set(mutation.scenarios) <= {scenario.name for scenario in SCENARIOS}
    for replacement in mutation.replacements:
        spec = importlib.util.find_spec(replacement.module)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).read_text(encoding="utf-8")
        assert mutated(source, replacement) != source
