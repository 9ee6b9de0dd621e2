"""Transcripts of upstream's controllers, played in real time beside ``controller --watch``.

They are written by hand, in the format of the recorded ones (``tests/conformance/run.py``).
pytest's plugin plays them too, in a cluster with its own time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tests.conformance.test_conformance import RUNNER
from tests.forkserver import ForkServer

CASES = sorted((Path(__file__).parent / "transcripts").glob("*.kubepy.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.partition(".")[0])
def test_transcript_holds_beside_background_controller(case: Path, fork_server: ForkServer) -> None:
    program = fork_server.program
    given = argparse.Namespace(
        kubectl=program,
        settle="kubectl controller --once --quiet-for=1.5s",
        watch=f"{program} controller --watch",
        sleep="",
        exact_hash=False,
        timeout=60,
        setup=f"{program} init --nodes=2",
        state="",
    )
    _, wrong = RUNNER.run_case(case, given)
    assert not wrong, "\n".join(
        f"$ {command}\nwanted:\n{want}\nhere:\n{got}" for command, want, got in wrong
    )
