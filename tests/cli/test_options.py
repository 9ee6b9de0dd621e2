"""Options of commands are typed: a type checker finds a mistyped flag."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
COMMAND = PROJECT / "kubepy" / "cli" / "replace.py"


def test_mistyped_flag_in_command_fails_type_check(tmp_path: Path) -> None:
    source = COMMAND.read_text()
    assert "options.subresource" in source
    mistyped = tmp_path / "mistyped.py"
    mistyped.write_text(source.replace("options.subresource", "options.subresuorce"))
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--config-file=",
            f"--cache-dir={PROJECT / '.mypy_cache' / 'test_types'}",
            str(mistyped),
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, checked.stdout
    assert '"ReplaceOptions" has no attribute "subresuorce"' in errors[0]
