"""Console blocks of the documentation print the output shown there, played one after another from
the project's root."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conformance.test_conformance import RUNNER
from tests.forkserver import ForkServer

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


OWN_TIME = ("--clock=2026-01-01T00:00:00Z", "--seed=7")


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("bootstrap", ()),
        ("canary", ()),
        ("containers", OWN_TIME),
        ("faults", OWN_TIME),
        ("fuzz", OWN_TIME),
        ("kubelet", OWN_TIME),
        ("plan", OWN_TIME),
        ("plan-output", OWN_TIME),
        ("probes-demo", OWN_TIME),
        ("rollout", OWN_TIME),
        ("rules", OWN_TIME),
        ("storage", ()),
        ("time", OWN_TIME),
        ("timeline", OWN_TIME),
    ],
)
def test_page_tells_what_happens(
    page: str, options: tuple[str, ...], tmp_path: Path, fork_server: ForkServer
) -> None:
    env = {
        **os.environ,
        "KUBEPY_STATE": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PATH": f"{fork_server.folder}:{os.environ['PATH']}",
    }
    subprocess.run(
        [fork_server.program, "init", "--nodes=3", *options],
        env=env,
        check=True,
        capture_output=True,
    )
    blocks = BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text())
    assert blocks
    for block in blocks:
        _, steps, _ = RUNNER.parse(block)
        for command, wanted in steps:
            done = subprocess.run(
                ["bash", "-c", command], cwd=ROOT, env=env, text=True, capture_output=True
            )
            said, wanted = (RUNNER.mask(lines) for lines in (done.stdout.splitlines(), wanted))
            if "rollout status" in command:  # its progress lines depend on the machine's speed
                said, wanted = said[-1:], wanted[-1:]
            assert said == wanted, command
