"""Small operators with one planted bug each, and their mended twins (tests/fuzz/operators).

The seeds here are the first ones that find the bugs; `tools/measure_fuzz.py` looks for them, and
measures all of it.
"""

from pathlib import Path

import pytest
from kubepy.fuzz.cases import World
from kubepy.fuzz.run import RunRecord, run_once
from kubepy.fuzz.session import new_case
from kubepy.runtime.oracle import RunName

FOLDER = Path(__file__).parent / "operators"
NAMES = sorted(str(path.parent.relative_to(FOLDER)) for path in FOLDER.rglob("checks.yaml"))
FIRST_SEEDS: dict[str, int] = {}


def run(name: str, variant: str, seed: int) -> RunRecord:
    """Make one run of an operator, ``bug`` or ``mended``."""
    case = new_case(
        operator=str(FOLDER / name / f"{variant}.py"),
        checks=[str(FOLDER / name / "checks.yaml")],
        commands=[],
        duration=600.0,
        image=None,
        faults="",
        disturb="",
    )
    return run_once(World(case), RunName(seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variant", ["bug", "mended"])
def test_operator_undisturbed_holds(name: str, variant: str) -> None:
    record = run(name, variant, 0)
    assert record.violation is None
    assert record.writes > 3
    assert not record.failed


@pytest.mark.parametrize("name", sorted(FIRST_SEEDS))
def test_bug_with_its_first_seed_is_found(name: str) -> None:
    assert run(name, "bug", FIRST_SEEDS[name]).violation is not None


@pytest.mark.parametrize("name", sorted(FIRST_SEEDS))
def test_mended_twin_with_the_same_seed_holds(name: str) -> None:
    assert run(name, "mended", FIRST_SEEDS[name]).violation is None
