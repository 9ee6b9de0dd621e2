"""What could come next on an unfinished line."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from kubepy.cli.completion import SCRIPTS
from tests.cli.conftest import Kubepy


def candidates(kubepy: Kubepy, line: str) -> list[str]:
    done = kubepy("__complete", line)
    assert (done.err, done.status) == ("", 0)
    return done.out.split()


@pytest.mark.parametrize(("line", "wanted"), [
    ("kubepy desc", ["describe"]),
    ("kubepy rollout re", ["restart", "resume"]),
    ("kubepy create secret ", ["docker-registry", "generic", "tls"]),
    ("kubepy get daem", ["daemonsets"]),
    ("kubepy get nodes ", ["node-1", "node-2"]),
    ("kubepy get no node-1 node-2", ["node-2"]),
    ("kubepy describe node/", ["node/node-1", "node/node-2"]),
    ("kubepy cordon ", ["node-1", "node-2"]),
    ("kubepy get cm -n kube-s", ["kube-system"]),
    ("kubepy -n kube-s", ["kube-system"]),
    ("kubepy delete --cascade=o", ["--cascade=orphan"]),
    ("kubepy get --show-l", ["--show-labels"]),
    ("kubepy completion f", ["fish"]),
    ("kubepy get pods 'unfinished", []),
    ("kubepy nonsense x ", []),
])
def test_candidates(bare: Kubepy, line: str, wanted: list[str]) -> None:
    bare("init", "--nodes=2")
    assert candidates(bare, line) == wanted


def test_nothing_is_completed_from_a_folder_that_is_not_there(bare: Kubepy) -> None:
    assert candidates(bare, "kubepy get nodes ") == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_takes_its_script(bare: Kubepy, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = bare("completion", shell).out
    done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


def test_bash_completes_behind_a_slash(bare: Kubepy) -> None:
    answers = "kubepy() { echo node/node-1; echo node/node-2; }\n"
    typed = "COMP_LINE='kubepy get node/'; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(kubepy get node/); COMP_CWORD=2\n"
    script = answers + bare("completion", "bash").out + typed + '_kubepy; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True)
    assert done.stdout == "node/node-1 node/node-2\n"
