"""kubepy on a system that lacks what Windows and macOS lack (``lesser_system``): every module can
be imported, and a lesson gives the same output and the same files as here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODES = {"here": "sys.exit(s.run_lines())", "lesser": "sys.exit(s.main(['--lines']))"}
LESSON = """\
init --nodes=3 --seed=5 --clock=2026-01-01T00:00:00Z
apply -f web.yaml
controller --once
get pods -o wide
set image deployment/web *=web:2
rollout status deployment/web
rollout undo deployment/web
rollout history deployment/web
get configmaps
plan --runs=2 --jobs=2 -- set image deployment/web *=web:3
fork {fork}
--state={fork} get pods
fsck
"""
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: con}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "Team:nul."}
"""


def run(code: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run code with ``lesser_system`` as ``s``, with a folder's cluster."""
    environment = {**os.environ, "KUBEPY_STATE": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys\nfrom tests.platforms import lesser_system as s\n{code}",
        ],
        input=stdin,
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_every_module_without_unix_modules_is_imported(tmp_path: Path) -> None:
    result = run("sys.exit(s.main(['--import-all']))", tmp_path)

    assert result.stdout.strip() == "", result.stdout + result.stderr


def test_lesson_without_unix_modules_gives_same_output_and_files(tmp_path: Path) -> None:
    here, lesser = (play(code, tmp_path / name) for name, code in CODES.items())

    assert lesser == here
    assert "namespaces/default/configmaps/%63on.yaml" in here[1]
    assert "cluster/clusterroles.rbac.authorization.k8s.io/%54eam%3Anul%2E.yaml" in here[1]


def play(code: str, folder: Path) -> tuple[str, dict[str, str]]:
    """Run the lesson; return what it prints, and the files of its clusters."""
    folder.mkdir()
    (folder / "web.yaml").write_text(MANIFEST, encoding="utf-8")
    fork = folder / "fork"
    result = run(code, folder, LESSON.format(fork=fork))
    assert result.returncode == 0, result.stdout + result.stderr
    printed = result.stdout.replace(str(folder), "FOLDER")
    files = {
        str(path.relative_to(state)): path.read_text(encoding="utf-8")
        for state in (folder / "state", fork)
        for path in sorted(state.rglob("*.yaml"))
    }
    return printed, files


def test_no_module_imports_what_some_systems_lack() -> None:
    pattern = re.compile(r"^\s*(?:import|from) (fcntl|resource|termios|pwd|grp|pty|tty)\b", re.M)
    here = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "kubepy").rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    }

    assert here == set()


@pytest.mark.parametrize("name", ["fcntl", "resource"])
def test_lesser_system_without_a_module_refuses_it(name: str) -> None:
    code = f"from tests.platforms import lesser_system as s; s.take_away(); import {name}"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=False
    )

    assert f"No module named '{name}'" in result.stderr
