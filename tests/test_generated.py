"""Generated files equal the output of their tools."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
KUBERNETES = os.environ.get("KUBERNETES_SOURCES", "")


def test_typed_dicts_regenerated_unchanged(tmp_path: Path) -> None:
    written = tmp_path / "typed.py"
    subprocess.run(
        [sys.executable, "tools/generate_typed_dicts.py", str(written)], cwd=PROJECT, check=True
    )
    assert written.read_text() == (PROJECT / "kubepy" / "api" / "typed.py").read_text()


@pytest.mark.skipif(
    not KUBERNETES, reason="KUBERNETES_SOURCES names no checkout of Kubernetes v1.36"
)
def test_tables_of_types_regenerated_unchanged(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "tools/generate_types.py", KUBERNETES, str(tmp_path)],
        cwd=PROJECT,
        check=True,
    )
    tables = PROJECT / "kubepy" / "api" / "types" / "data"
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        file.name: file.read_text() for file in tables.iterdir()
    }
