"""Transcripts of the command line's output, to the last blank, in the format of the recorded ones.

They begin in an empty cluster without nodes (``tests/conformance/run.py`` describes the format); commands run inside
this process, and no controller runs. Only output that differs from run to run is masked.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.conftest import Kubepy
from tests.conformance.test_conformance import RUNNER

CASES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
MASKS = [
    *RUNNER.MASKS[:3],  # identifiers, and times in two forms
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC"), "<time>"),
    (re.compile(r"\(lasts \d+s\)"), "(lasts <age>)"),
    (re.compile(r"  \d+s$", re.MULTILINE), "  <age>"),  # in the last column
]


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_transcript_matches_output_exactly(case: Path, bare: Kubepy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEPY_RECONCILE", "never")  # they were recorded without controllers
    _, steps, files = RUNNER.parse(case.read_text())
    for name, content in files.items():
        Path(name).write_text(content)
    bare("init", "--nodes=0")
    for command, wanted in steps:
        assert (command, printed(bare, command)) == (command, masked("\n".join(wanted)))


def printed(kubepy: Kubepy, command: str) -> str:
    return re.sub(r"(\n\s*)+\Z", "", masked("\n".join(RUNNER.render(completed(kubepy, command)))))


def masked(text: str) -> str:
    text = text.replace("kubepy", "kubectl")
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def completed(kubepy: Kubepy, command: str) -> CompletedProcess[str]:
    out, err, status = kubepy(*shlex.split(command)[1:])
    return CompletedProcess(command, status, out, err)
