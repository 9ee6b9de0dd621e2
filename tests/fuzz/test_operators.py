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
ENDS_TOO_SOON = pytest.mark.xfail(
    strict=True, reason="a run ends when its operator has looked twice and written nothing"
)
FIRST_SEEDS = {
    "addresses": 10,
    "backup_jobs": 2,
    "buckets": 4,
    "config_rollout": 18,
    "databases": 3,
    "dns_records": 24,
    "ensemble": 6,
    "maintenance": 2,
    "published/cassandra_398": 24,
    "published/kuberay_715": 10,
    "published/kubernetes_56261": 34,
    "published/kubernetes_59848": 2,
    "published/nifikop_49": 19,
    "published/nifikop_79": 4,
    "published/opensearch_1471": 24,
    "published/rabbitmq_782": 6,
    "published/sympozium_223": 3,
    "restarts": 3,
    "runners": 6,
    "store_restart": 24,
    "worker_pool": 8,
}


def run(name: str, variant: str, seed: int) -> RunRecord:
    """Make one run of an operator, ``bug`` or ``mended``."""
    case = new_case(
        FuzzFiles(str(FOLDER / name / f"{variant}.py"), [str(FOLDER / name / "checks.yaml")]), None
    )
    return run_once(World(case), RunName(seed))


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_operator_undisturbed_holds(
    request: pytest.FixtureRequest, name: str, variant: str
) -> None:
    if name == "innocent/slow_poll":
        request.applymarker(ENDS_TOO_SOON)
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
