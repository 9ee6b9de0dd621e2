"""Where the key of a cluster's ServiceAccounts comes from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubepy.apiserver.accountkeys import AccountKeys, no_folder
from kubepy.controlplane.open import make_cluster
from kubepy.storage import FolderError


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """The folder of a cluster."""
    place = str(tmp_path / "state")
    make_cluster(place).close()
    return place


def key_file(folder: str) -> str:
    return os.path.join(folder, ".kubepy", "sa.key")


def keys_of(folder: str, seed: int | None = 1) -> AccountKeys:
    return AccountKeys(lambda: folder, seed)


def drop(line: str) -> None:
    """Take a line that nobody reads."""


def test_key_of_a_folder_is_made_when_it_is_needed_and_lasts(folder: str) -> None:
    keys = keys_of(folder)
    assert (keys.known(), os.path.exists(key_file(folder))) == (b"", False)
    made = keys.made(drop)
    assert made.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert os.stat(key_file(folder)).st_mode & 0o777 == 0o600
    assert keys_of(folder).known() == keys_of(folder).made(drop) == made


def test_key_that_others_have_put_there_is_made_anew(folder: str) -> None:
    other = AccountKeys(no_folder, 7).known()
    keys_of(folder).made(drop)
    Path(key_file(folder)).write_bytes(other)
    lines: list[str] = []
    assert keys_of(folder).known() == b""
    assert keys_of(folder).made(lines.append) != other
    assert lines == [f"{key_file(folder)} was not written by kubepy: made anew"]


def test_fork_has_the_key_of_its_folder_and_makes_none(folder: str) -> None:
    early = keys_of(folder).of_fork(5)
    assert early.made(drop) == AccountKeys(no_folder, 5).known()
    assert not os.path.exists(key_file(folder))
    made = keys_of(folder).made(drop)
    assert keys_of(folder).of_fork(5).made(drop) == made
    assert keys_of(folder).of_fork(5).of_fork(6).known() == made


def test_fork_of_a_folder_whose_key_cannot_be_read_has_one_of_its_seed(folder: str) -> None:
    os.mkdir(key_file(folder))
    assert keys_of(folder).of_fork(5).known() == AccountKeys(no_folder, 5).known()
    with pytest.raises(FolderError, match=r"sa\.key: cannot be read"):
        keys_of(folder).known()


def test_seed_decides_the_key_of_a_cluster_in_memory() -> None:
    assert AccountKeys(no_folder, 1).known() == AccountKeys(no_folder, 1).made(drop)
    assert AccountKeys(no_folder, 1).known() != AccountKeys(no_folder, 2).known()


def test_key_without_a_seed_is_drawn_once() -> None:
    keys = AccountKeys(no_folder, None)
    assert keys.known() == keys.made(drop)
    assert keys.known() != AccountKeys(no_folder, None).known()
