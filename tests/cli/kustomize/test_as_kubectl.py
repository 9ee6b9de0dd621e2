"""Kustomizations, built as kubectl builds them; skipped without kubectl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Kubepy
from tests.cli.kustomize.cases import CASES, Files

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")


def write(folder: Path, files: Files) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


@pytest.mark.parametrize("name", CASES)
def test_output_equals_kubectls(bare: Kubepy, folder: Path, name: str) -> None:
    write(folder, CASES[name])
    kubectl = subprocess.run(
        ["kubectl", "kustomize", "over"], capture_output=True, text=True, check=False
    )
    assert kubectl.returncode == 0, kubectl.stderr
    done = bare("kustomize", "over")
    assert (done.out, done.status) == (kubectl.stdout, 0)
