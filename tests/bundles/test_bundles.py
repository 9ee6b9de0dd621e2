"""Bundles of manifests, of the kinds and sizes that people install, go through their life without a
problem.

They are written for these tests; `make bundles` shows the table of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.run_bundles import Bundle, find_bundles, run_bundle

HERE = Path(__file__).parent
BUNDLES = find_bundles(HERE)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.name)
def test_bundle_lives_and_leaves_without_problem(bundle: Bundle) -> None:
    report = run_bundle(bundle)
    assert (report.problems, report.refused) == ([], [])
    assert report.objects > 10
    assert report.deleted == "all"


def test_bundle_with_pods_of_its_own_lives_in_cluster_with_service_accounts() -> None:
    bundle = next(bundle for bundle in BUNDLES if bundle.name == "granary-storage.yaml")
    report = run_bundle(bundle, bootstrap="full")
    assert (report.problems, report.refused) == ([], [])
    assert any(
        note.startswith("pod/tenant is configured again:") for note in report.notes
    )  # its token volume


def test_bundles_are_many_and_some_are_large() -> None:
    assert len(BUNDLES) >= 12
    lines = {
        bundle.name: sum(path.read_text().count("\n") for path in files_of(bundle))
        for bundle in BUNDLES
    }
    assert sorted(lines.values())[-1] > 10_000
    assert min(lines.values()) > 300


def files_of(bundle: Bundle) -> Iterator[Path]:
    top = HERE / bundle.name.split("/")[0]
    yield from [top] if top.is_file() else (path for path in top.rglob("*") if path.is_file())
