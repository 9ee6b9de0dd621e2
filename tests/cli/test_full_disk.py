"""Commands on a disk without a free page: deletions work until there is room again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.disks import SmallDisk, small_disk

from .conftest import Done, Kubepy

DEPLOYMENTS = ("a", "b", "c")
REPLICAS = 8
CONFIG_MAPS = 30


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
    """A small disk as the working directory."""
    with small_disk(tmp_path / "disk") as made:
        monkeypatch.chdir(made.path)
        yield made
        monkeypatch.chdir(tmp_path)


@pytest.fixture
def on_full_disk(bare: Kubepy, disk: SmallDisk) -> Callable[..., Done]:
    """A function that fills the disk and runs a command there, in a cluster with pods."""
    assert bare("init", "--nodes=2").status == 0
    for name in DEPLOYMENTS:
        bare("create", "deployment", name, "--image=a", f"--replicas={REPLICAS}")
    maps = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\n"
        for number in range(CONFIG_MAPS)
    )
    assert bare("apply", "-f", "-", stdin="---\n".join(maps)).status == 0
    assert bare("controller", "--until-settled").status == 0

    def run(*words: str) -> Done:
        disk.fill()
        return bare(*words)

    return run


def names(run: Kubepy, *words: str) -> list[str]:
    return run("get", *words, "-o", "name").out.split()


def test_deletions_work_on_full_disk_one_after_the_other(on_full_disk: Kubepy) -> None:
    assert on_full_disk("create", "cm", "new").status == 1
    for number in range(CONFIG_MAPS):
        done = on_full_disk("delete", "cm", f"c{number}")
        assert done.status == 0, done.err
    assert names(on_full_disk, "cm") == []
    pods = names(on_full_disk, "pods")
    assert len(pods) == REPLICAS * len(DEPLOYMENTS)
    for pod in pods:
        done = on_full_disk("delete", pod)
        assert done.status == 0, done.err
        assert pod not in names(on_full_disk, "pods")


def test_deletions_of_many_objects_and_their_dependents_work_on_full_disk(
    on_full_disk: Kubepy, bare: Kubepy, disk: SmallDisk
) -> None:
    before = names(on_full_disk, "pods", "-l", "app=a")
    assert len(before) == REPLICAS
    for words in (
        ("delete", "pods", "-l", "app=a"),
        ("delete", "deployment", "b"),
        ("delete", "configmaps", "--all"),
    ):
        done = on_full_disk(*words)
        assert done.status == 0, done.err
    assert not set(before) & set(names(on_full_disk, "pods"))
    assert names(on_full_disk, "pods,rs", "-l", "app=b") == []
    assert names(on_full_disk, "cm") == []
    disk.clear()
    assert bare("controller", "--until-settled").status == 0
    assert len(names(bare, "pods", "-l", "app=a")) == REPLICAS
    assert bare("fsck").status == 0


def test_deletion_of_a_large_object_works_on_full_disk(
    on_full_disk: Kubepy, bare: Kubepy, disk: SmallDisk
) -> None:
    (disk.path / "large").write_text("x" * 500_000)
    assert bare("create", "cm", "large", "--from-file=large").status == 0
    assert on_full_disk("delete", "cm", "large").status == 0
    assert "large" not in on_full_disk("get", "cm").out
    assert bare("fsck").status == 0
