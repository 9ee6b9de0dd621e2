"""Closed or full streams, and a state folder that is not one: one line at most, never a
traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Kubepy


@pytest.mark.parametrize(
    ("redirection", "said", "status"),
    [
        (">/dev/full", "error: no space left on device\n", 1),
        (">&-", "", 0),
        ("2>&-", "", 0),
        ("<&-", "", 0),
        (">&- 2>&- <&-", "", 0),
        ("2>/dev/full", "", 0),
    ],
)
def test_streams_that_nothing_can_be_written_to(
    kubepy: Kubepy, redirection: str, said: str, status: int
) -> None:
    script = f"{sys.executable} -m kubepy.cli.program get ns {redirection}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == (said, status)


def test_streams_are_utf_8_in_any_locale(kubepy: Kubepy) -> None:
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    def plainly(*words: str, stdin: str = "") -> tuple[bytes, bytes]:
        done = subprocess.run(
            [sys.executable, "-m", "kubepy.cli.program", *words],
            env=ascii_only,
            check=False,
            input=stdin.encode(),
            capture_output=True,
        )
        return done.stdout, done.stderr

    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: é☃}}"
    assert plainly("apply", "-f", "-", stdin=manifest) == (b"configmap/x created\n", b"")
    assert plainly("get", "cm", "x", "-o", "jsonpath={.data.a}") == ("é☃".encode(), b"")
    assert plainly("get", "cm", "é") == (
        b"",
        'Error from server (NotFound): configmaps "é" not found\n'.encode(),
    )


@pytest.mark.parametrize(
    "words", ["apply -f -", "create -f -", "set env ds/x -", "auth reconcile -f -"]
)
def test_closed_standard_input_is_empty_one(kubepy: Kubepy, words: str) -> None:
    script = f"{sys.executable} -m kubepy.cli.program {words} <&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    empty = subprocess.run(
        ["bash", "-c", script.replace("<&-", "</dev/null")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (
        empty.stdout,
        empty.stderr,
        empty.returncode,
    )
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


@pytest.mark.parametrize(
    "words",
    ["get ns", "create cm x", "apply -f -", "config view", "init", "controller --once", "fsck"],
)
def test_state_folder_that_is_file(bare: Kubepy, folder: Path, words: str) -> None:
    (folder / "state").write_text("x")
    done = bare(*words.split(), stdin="{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    assert done.status == (0 if words == "config view" else 1)
    assert "internal error" not in done.err
    assert words.startswith("apply") or done.err.count("\n") <= 1
    assert (folder / "state").read_text() == "x"


def test_what_is_registered_for_the_end_of_the_process_happens(kubepy: Kubepy) -> None:
    code = (
        "import atexit, sys; from kubepy.cli.program import run; atexit.register(print, 'at exit');"
        "sys.argv[1:] = ['get', 'ns', 'default', '-o', 'name']; sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("namespace/default\nat exit\n", "", 0)


def test_process_ends_after_its_threads(kubepy: Kubepy) -> None:
    code = (
        "import sys, threading, time; from kubepy.cli.program import run;"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start();"
        "sys.argv[1:] = ['get', 'ns', 'none']; sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("thread\n", 1)
