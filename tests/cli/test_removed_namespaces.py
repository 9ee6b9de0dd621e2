"""A namespace whose file is removed while its folder stays, and a folder without a namespace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kubepy.storage.folder.locks import Lock
from tests.cli.conftest import Kubepy


@pytest.fixture
def shop(kubepy: Kubepy, folder: Path) -> Path:
    """The file of a namespace that has objects."""
    kubepy("create", "namespace", "shop")
    kubepy("create", "configmap", "a", "-n", "shop", "--from-literal=x=1")
    kubepy("create", "deployment", "web", "-n", "shop", "--image=app:1")
    kubepy("controller", "--once", "-q")
    return folder / "state/cluster/namespaces/shop.yaml"


def phase(kubepy: Kubepy, name: str = "shop") -> str:
    return kubepy(
        "get", "namespace", name, "-o", "jsonpath={.status.phase}", "--ignore-not-found"
    ).out


def test_removed_file_deletes_namespace_with_what_is_in_it(
    kubepy: Kubepy, folder: Path, shop: Path
) -> None:
    shop.unlink()
    assert phase(kubepy) == "Terminating"
    assert "deletionTimestamp" in shop.read_text()
    assert kubepy("fsck").out == "state: no problems\n"
    refused = kubepy("create", "configmap", "b", "-n", "shop")
    assert "because it is being terminated" in refused.err
    assert kubepy("controller", "--once", "-q").status == 0
    assert kubepy("get", "all,configmaps", "-n", "shop").out == ""
    assert phase(kubepy) == ""
    assert not shop.exists()
    assert not (folder / "state/namespaces/shop").exists()


def test_file_that_is_back_before_controllers_run_keeps_everything(
    kubepy: Kubepy, shop: Path
) -> None:
    text = shop.read_text()
    shop.unlink()
    assert phase(kubepy) == "Terminating"
    shop.write_text(text)
    assert phase(kubepy) == "Active"
    assert kubepy("controller", "--once").out == ""
    assert kubepy("get", "configmaps", "-n", "shop", "-o", "name").out == "configmap/a\n"
    assert kubepy("fsck").out == "state: no problems\n"


def test_namespace_removed_with_its_folder_is_gone_at_once(
    kubepy: Kubepy, folder: Path, shop: Path
) -> None:
    shop.unlink()
    shutil.rmtree(folder / "state/namespaces/shop")
    assert phase(kubepy) == ""
    assert not shop.exists()
    assert kubepy("fsck").out == "state: no problems\n"


def test_checkout_of_commit_without_namespace_leaves_tree_clean(
    kubepy: Kubepy, folder: Path
) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.check_output(["git", *identity, *words], cwd=folder, text=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    kubepy("create", "namespace", "shop")
    kubepy("create", "configmap", "a", "-n", "shop")
    git("add", "-A")
    git("commit", "-qm", "two")
    git("checkout", "-q", "HEAD~")
    assert phase(kubepy) == ""
    assert kubepy("fsck").out == "state: no problems\n"
    assert git("status", "--porcelain") == ""


def test_namespace_that_may_not_be_deleted_comes_back(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "configmap", "a")
    file = folder / "state/cluster/namespaces/default.yaml"
    text = file.read_text()
    file.unlink()
    assert phase(kubepy, "default") == "Active"
    assert file.read_text() == text
    assert kubepy("fsck").out == "state: no problems\n"


def test_reader_beside_writer_shows_namespace_terminating(
    kubepy: Kubepy, folder: Path, shop: Path
) -> None:
    lock = Lock(str(folder / "state/.kubepy/lock"))
    lock.acquire(1)
    try:
        shop.unlink()
        assert phase(kubepy) == "Terminating"
        assert kubepy("get", "namespaces", "-o", "name").out.split()[-1] == "namespace/shop"
        assert not shop.exists()
    finally:
        lock.release()
    assert phase(kubepy) == "Terminating"
    assert shop.exists()


def test_folder_without_its_namespace_in_clone_is_told_by_fsck(
    kubepy: Kubepy, folder: Path, shop: Path
) -> None:
    shop.unlink()
    shutil.rmtree(folder / "state/.kubepy")
    assert kubepy("get", "configmaps", "-n", "shop", "-o", "name").out == "configmap/a\n"
    found = kubepy("fsck")
    assert found.status == 1
    assert found.out == (
        'namespaces/shop: holds objects, but there is no namespace "shop": run '
        "'kubepy create namespace shop', bring its file back, or remove this folder\n"
    )
    kubepy("create", "namespace", "shop")
    assert kubepy("fsck").out == "state: no problems\n"


def test_folder_of_namespace_whose_file_is_broken_is_told_once(kubepy: Kubepy, shop: Path) -> None:
    shop.write_text("{")
    assert kubepy("fsck").out.startswith("cluster/namespaces/shop.yaml:1: ")
    assert kubepy("fsck").out.count("\n") == 1
