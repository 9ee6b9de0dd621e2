"""Generated files equal the output of their tools."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def test_typed_dicts_regenerated_unchanged(tmp_path: Path) -> None:
    written = tmp_path / "typed.py"
    subprocess.run([sys.executable, "tools/generate_typed_dicts.py", str(written)], cwd=PROJECT, check=True)
    assert written.read_text() == (PROJECT / "kubepy" / "api" / "typed.py").read_text()
