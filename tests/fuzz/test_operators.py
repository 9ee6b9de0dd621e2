"""Small operators with one planted bug each, and their mended twins (tests/fuzz/operators).

The seeds here are the first ones that find the bugs; `tools/measure_fuzz.py` looks for them, and
measures all of it.
"""

from pathlib import Path

import pytest

from kubepy.fuzz.cases import World
from kubepy.fuzz.run import RunRecord, run_once
from kubepy.fuzz.session import FuzzFiles, new_case
from kubepy.runtime.oracle import RunName

FOLDER = Path(__file__).parent / "operators"
VARIANTS = sorted(
    (str(path.parent.relative_to(FOLDER)), path.stem) for path in FOLDER.rglob("*.py")
)
FIRST_SEEDS = {
    "addresses": 2,
    "backup_jobs": 4,
    "buckets": 34,
    "config_rollout": 8,
    "databases": 2,
    "dns_records": 12,
    "ensemble": 6,
    "maintenance": 4,
    "published/cassandra_398": 21,
    "published/kuberay_715": 18,
    "published/kubernetes_56261": 2,
    "published/kubernetes_59848": 33,
    "published/nifikop_49": 28,
    "published/nifikop_79": 10,
    "published/opensearch_1471": 21,
    "published/rabbitmq_782": 2,
    "published/sympozium_223": 2,
    "published/zookeeper_314": 30,
    "restarts": 4,
    "runners": 6,
    "store_restart": 21,
    "worker_pool": 24,
}


def run(name: str, variant: str, seed: int) -> RunRecord:
    """Make one run of an operator, ``bug`` or ``mended``."""
    case = new_case(
        FuzzFiles(str(FOLDER / name / f"{variant}.py"), [str(FOLDER / name / "checks.yaml")]), None
    )
    return run_once(World(case), RunName(seed))


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_operator_undisturbed_holds(name: str, variant: str) -> None:
    record = run(name, variant, 0)
    assert record.violation is None
    assert record.writes > 3
    assert not record.failed


@pytest.mark.parametrize("name", ["conflict_event", "slow_poll"])
@pytest.mark.parametrize("seed", [2, 10, 14, 30])
def test_operators_that_look_guilty_are_not_accused(name: str, seed: int) -> None:
    assert run(f"innocent/{name}", "mended", seed).violation is None


@pytest.mark.parametrize("name", sorted(FIRST_SEEDS))
def test_bug_with_its_first_seed_is_found(name: str) -> None:
    assert run(name, "bug", FIRST_SEEDS[name]).violation is not None


@pytest.mark.parametrize("name", sorted(FIRST_SEEDS))
def test_mended_twin_with_the_same_seed_holds(name: str) -> None:
    assert run(name, "mended", FIRST_SEEDS[name]).violation is None
