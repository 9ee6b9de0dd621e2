"""Pods with random commands: their logs and exit codes are those of a shell of this machine."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.shell.manifestscripts import manifest_script
from tests.shell.shells import FILES, run_real

from .clusters import PodsCluster

SHELLS = {"sh": 60, "bash": 20}  # how many pods


def with_files(script: str) -> str:
    """Return a script that first makes the files that random scripts read, and says nothing on
    stderr: logs have both."""
    lines = ["exec 2>/dev/null", "mkdir -p d"]
    for path, text in FILES.items():
        lines.append(f"printf %s {shlex.quote(text)} > {path}")
    return "\n".join([*lines, script])


@pytest.mark.parametrize("shell", SHELLS)
def test_pods_of_random_manifests_print_and_end_as_in_a_shell(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    scripts = []
    for seed in range(SHELLS[shell]):
        scripts.append(with_files(manifest_script(seed, is_bash=shell == "bash")))
    pods = PodsCluster()
    for number, script in enumerate(scripts):
        container = {
            "name": "c",
            "image": "example/shell",
            "command": [shell, "-c", script.replace("$$", "$$$$")],  # a kubelet takes $$ for $
            "workingDir": "/task",
            "volumeMounts": [{"name": "task", "mountPath": "/task"}],
        }
        pods.create(
            f"p{number}",
            container,
            volumes=[{"name": "task", "emptyDir": {}}],
            restartPolicy="Never",
        )
    pods.advance(600)
    for number, expected in enumerate(run_real(scripts, tmp_path, shell)):
        name = f"p{number}"
        ended = pods.state(name).get("terminated", {})
        outcome = pods.logs(name), ended.get("exitCode")
        assert outcome == (expected.out.decode(), expected.status), f"seed {number}"
