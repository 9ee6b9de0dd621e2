"""``kubepy foo``, where ``foo`` is a plugin on the PATH."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.cli.plugins import PluginCommand, find
from tests.cli.conftest import Done, Kubepy


@pytest.fixture
def plugins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    (folder / "bin").mkdir()
    monkeypatch.setenv("PATH", str(folder / "bin"))
    return folder / "bin"


def program(path: Path) -> str:
    path.write_text('#!/bin/sh\necho "$0" "$@"\nexit 7\n')
    path.chmod(0o755)
    return str(path)


def test_find_prefers_longest_plugin_name(plugins: Path) -> None:
    short, long = program(plugins / "kubepy-foo"), program(plugins / "kubepy-foo-bar_baz")
    assert find(["foo", "bar-baz", "x", "-n", "y"]) == PluginCommand(long, ["x", "-n", "y"])
    assert find(["foo", "-n", "y"]) == PluginCommand(short, ["-n", "y"])
    assert find(["quux"]) is None
    assert find(["foo", "nope"], least=2) is None


def test_plugin_replaces_process(plugins: Path) -> None:
    path = program(plugins / "kubepy-foo")
    command = [sys.executable, "-m", "kubepy.cli.program", "foo", "a", "--flag"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (f"{path} a --flag\n", "", 7)


def test_create_unknown_kind_runs_plugin(plugins: Path) -> None:
    path = program(plugins / "kubepy-create-foo")
    command = [sys.executable, "-m", "kubepy.cli.program", "create", "foo", "x"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=False).stdout == f"{path} x\n"
    )


def test_plugin_list_prints_plugins_and_warnings(bare: Kubepy, plugins: Path) -> None:
    assert bare("plugin", "list") == Done(
        "", "error: unable to find any kubepy plugins in your PATH\n", 1
    )
    foo, get = program(plugins / "kubepy-foo"), program(plugins / "kubepy-get")
    (plugins / "kubepy-get").chmod(0o644)
    assert bare("plugin", "list") == Done(
        f"The following compatible plugins are available:\n\n{foo}\n{get}\n",
        (
            f"  - warning: {get} identified as a kubepy plugin, but it is not executable\n"
            '  - warning: kubepy-get overwrites existing command: "kubepy get"\n'
            "error: 2 plugin warnings were found\n"
        ),
        1,
    )
    assert bare("plugin", "list", "--name-only").out.splitlines()[2:] == [
        "kubepy-foo",
        "kubepy-get",
    ]
