"""A state folder for each test, and the command line run inside this process."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kubepy.cli.main import main


class Done(NamedTuple):
    """Output of a command on both streams, and its exit status."""

    out: str
    err: str
    status: int


Kubepy = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; commands create their cluster in its ``state``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBEPY_STATE", raising=False)
    monkeypatch.delenv("KUBEPY_RECONCILE", raising=False)
    return tmp_path


@pytest.fixture
def bare(folder: Path) -> Kubepy:
    """A function that runs a command in a folder without a cluster."""
    return run


@pytest.fixture
def kubepy(folder: Path) -> Kubepy:
    """A function that runs a command in a folder with an empty cluster:
    ``kubepy("get", "pods")``."""
    assert run("init", "--nodes=0").status == 0
    return run


@pytest.fixture
def simple(kubepy: Kubepy, folder: Path) -> Kubepy:
    """A function like ``kubepy`` whose cluster does not model containers."""
    (folder / "state" / "kubepy.yaml").write_text(
        "formatVersion: 1\nkubelet: {containers: simple}\n"
    )
    return kubepy


def set_kubelet(folder: Path, value: str) -> None:
    """Give the cluster in a folder another setting ``kubelet`` than new ones have."""
    settings = folder / "state" / "kubepy.yaml"
    text = settings.read_text()
    assert "kubelet:\n  containers: modelled\n" in text
    settings.write_text(text.replace("\n  containers: modelled\n", f" {value}\n"))


def run(*words: str, stdin: str = "") -> Done:
    out, err = io.StringIO(), io.StringIO()
    status = main(words, stdin=io.StringIO(stdin), stdout=out, stderr=err)
    return Done(out.getvalue(), err.getvalue(), status)


@pytest.fixture
def paint(kubepy: Kubepy) -> Kubepy:
    """A function like ``kubepy`` whose cluster has a config map."""
    kubepy("create", "cm", "paint", "--from-literal=colour=red")
    return kubepy
