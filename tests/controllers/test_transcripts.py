"""Transcripts of upstream's controllers, played with ``controller --once`` and beside ``--watch``.

They are written by hand, for a cluster of two nodes without a StorageClass, in the format of the recorded ones
(``tests/conformance/run.py``).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tests.conformance.test_conformance import KUBEPY, RUNNER

CASES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("watch", ["", f"{KUBEPY} controller --watch"], ids=["once", "watch"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_transcript_holds(case: Path, watch: str) -> None:
    given = argparse.Namespace(
        kubectl=KUBEPY, settle="kubectl controller --once --quiet-for=1.5s", watch=watch, sleep="", exact_hash=False,
        timeout=60, setup=f"{KUBEPY} init --nodes=2 && {KUBEPY} delete storageclass standard")
    _, wrong = RUNNER.run_case(case, given)
    assert not wrong, "\n".join(f"$ {command}\nwanted:\n{want}\nhere:\n{got}" for command, want, got in wrong)
