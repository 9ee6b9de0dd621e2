"""Two runs of a script in clusters with a clock and a seed give the same bytes: what is printed,
and the folder."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "same_bytes"
SCRIPTS = sorted((HERE / "scripts").glob("*.txt"))
SHOWN = 60  # lines of a difference


@cache
def pythons() -> list[str]:
    """Return this Python and the others that have kubepy's dependencies (``make pythons`` installs
    them)."""
    return [sys.executable, *map(str, sorted((ROOT / ".venv").glob("python-*/bin/python")))]


def played(
    script: Path, place: Path, python: str, *variant: str, **variables: str
) -> tuple[str, dict[str, bytes]]:
    """Play a script in a new folder; return what it printed, and the files of the state folder."""
    place.mkdir(parents=True)
    env = {
        "HOME": str(place),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    done = subprocess.run(
        [python, HERE / "player.py", script, *variant],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    files = {
        str(path.relative_to(place / "state")): path
        for path in place.glob("state/**/*")
        if path.is_file()
    }
    return done.stdout + done.stderr, {
        name: path.read_bytes() for name, path in files.items() if not name.startswith(".kubepy/")
    }


def difference(first: tuple[str, dict[str, bytes]], second: tuple[str, dict[str, bytes]]) -> str:
    """Return where two runs differ, "" if they don't: each part as a unified diff."""
    texts = [
        ({"output": out} | {name: data.decode(errors="replace") for name, data in files.items()})
        for out, files in (first, second)
    ]
    lines: list[str] = []
    for name in sorted(
        texts[0].keys() | texts[1].keys(), key=lambda name: (name != "output", name)
    ):
        before, after = (text.get(name, "").splitlines() for text in texts)
        lines += difflib.unified_diff(
            before, after, f"{name} (plain)", f"{name} (strange)", lineterm=""
        )
    return "\n".join(lines[:SHOWN]) + (
        f"\n… and {len(lines) - SHOWN} lines more" if len(lines) > SHOWN else ""
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_gives_same_bytes_on_another_machine(script: Path, tmp_path: Path) -> None:
    other = pythons()[1:] or pythons()
    plain = played(
        script, tmp_path / "a", sys.executable, PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C.UTF-8"
    )
    strange = played(
        script,
        tmp_path / "another" / "place",
        other[SCRIPTS.index(script) % len(other)],
        "strange",
        PYTHONHASHSEED="99",
        TZ="Pacific/Chatham",
        LC_ALL="C",
        COLUMNS="40",
    )
    assert not (found := difference(plain, strange)), found
