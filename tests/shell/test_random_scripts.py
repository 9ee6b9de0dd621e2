"""Random scripts: the model prints what the shells of this machine print, and ends as they do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kubepy.shell import machine
from tests.shell.manifestscripts import manifest_script
from tests.shell.scripts import write_script
from tests.shell.shells import run_in_pieces, run_model, run_real

GROUPS = 10
GROUP_SIZE = 40


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_script_of_dash_comes_out_as_in_dash(group: int, tmp_path: Path) -> None:
    seeds = range(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
    scripts = [write_script(seed) for seed in seeds]
    for seed, script, expected in zip(seeds, scripts, run_real(scripts, tmp_path), strict=True):
        outcome = run_model(script)
        assert outcome[:2] == expected[:2], f"seed {seed}:\n{script}"


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_script_of_bash_comes_out_as_in_bash(group: int, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash on this machine")
    seeds = range(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
    scripts = [write_script(seed, is_bash=True) for seed in seeds]
    outcomes = run_real(scripts, tmp_path, "bash")
    for seed, script, expected in zip(seeds, scripts, outcomes, strict=True):
        outcome = run_model(script, "bash")
        assert outcome[:2] == expected[:2], f"seed {seed}:\n{script}"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("group", range(3))
def test_random_script_of_a_manifest_comes_out_as_in_a_shell(
    shell: str, group: int, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    seeds = range(1000 + group * GROUP_SIZE, 1000 + (group + 1) * GROUP_SIZE)
    scripts = [manifest_script(seed, is_bash=shell == "bash") for seed in seeds]
    outcomes = run_real(scripts, tmp_path, shell)
    for seed, script, expected in zip(seeds, scripts, outcomes, strict=True):
        outcome = run_model(script, shell)
        assert outcome[:2] == expected[:2], f"seed {seed}:\n{script}"


def test_random_script_that_is_put_down_between_steps_comes_out_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Write machine and files to JSON every few steps of a script, and go on from there."""
    monkeypatch.setattr(machine, "QUANTUM", 7)
    for seed in range(60):
        script = write_script(seed)
        expected = run_model(script)
        outcome = run_in_pieces(script)
        assert outcome == expected, f"seed {seed}:\n{script}"
