"""tar and gzip: what one side packs, the other unpacks."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from kubepy.shell.files import FileSystem
from kubepy.shell.utility import Unknown
from tests.shell.utilities.programs import FOLDER, NOW, file_system, run_model, run_real

FILES: dict[str, bytes | str] = {
    "d/a": "alpha\n",
    "d/sub/b": bytes(range(256)),
    "d/empty/": "",
    "top": "x" * 3000,
}


def folder() -> FileSystem:
    """Return a file system with files of all kinds."""
    box = file_system(FILES)
    box.symlink("a", f"{FOLDER}/d/link", now=NOW)
    box.set_mode(f"{FOLDER}/d/a", 0o750)
    return box


def test_archive_of_model_is_unpacked_by_real_tar(tmp_path: Path) -> None:
    packed = run_model(["tar", "cf", "-", "d", "top"], files=folder())
    assert packed.status == 0
    subprocess.run(["tar", "xf", "-"], input=packed.out, cwd=tmp_path, check=True)
    assert (tmp_path / "d/a").read_text() == "alpha\n"
    assert (tmp_path / "d/a").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "d/sub/b").read_bytes() == bytes(range(256))
    assert (tmp_path / "d/link").readlink() == Path("a")
    assert (tmp_path / "d/empty").is_dir()
    assert (tmp_path / "top").stat().st_mtime == int(NOW.timestamp())


def test_archive_of_real_tar_is_unpacked_by_model(tmp_path: Path) -> None:
    packed = run_real(["tar", "czf", "-", "d", "top"], tmp_path, files=FILES)
    box = file_system({"target/": ""})
    outcome = run_model(["tar", "xmf", "-", "-C", f"{FOLDER}/target"], stdin=packed.out, files=box)
    assert outcome.status == 0
    assert outcome.files["target/d/a"] == b"alpha\n"
    assert outcome.files["target/d/sub/b"] == bytes(range(256))
    assert outcome.files["target/d/empty/"] == b""
    assert box.stat(f"{FOLDER}/target/top").modified == NOW


@pytest.mark.parametrize(
    "argv",
    [
        ["tar", "tf", "-"],
        ["tar", "-t"],
        ["tar", "xvf", "-"],
        ["tar", "xf", "-", "d/a"],
        ["tar", "xf", "-", "nope"],
        ["tar", "xOf", "-", "d/a"],
        ["tar", "-xf", "-", "--strip-components=1"],
        ["tar", "tf", "-", "--exclude", "d/sub"],
        ["tar", "xf", "-", "-C", "nope"],
        ["tar", "xf", "nope"],
    ],
)
def test_unpacking_leaves_what_real_tar_leaves(argv: list[str], tmp_path: Path) -> None:
    source = tmp_path / "source"
    target = tmp_path / "target"
    source.mkdir()
    target.mkdir()
    archive = run_real(["tar", "cf", "-", "d", "top"], source, files=FILES).out
    expected = run_real(argv, target, stdin=archive)
    outcome = run_model(argv, stdin=archive)
    assert outcome._replace(err=b"") == expected._replace(err=b"")


@pytest.mark.parametrize(
    "argv", [["tar", "cf", "-", "nope"], ["tar", "cf", "-"], ["tar", "cvf", "out", "top"]]
)
def test_packing_says_what_real_tar_says(argv: list[str], tmp_path: Path) -> None:
    expected = run_real(argv, tmp_path, files=FILES)
    outcome = run_model(argv, files=FILES)
    assert (outcome.status, outcome.err) == (expected.status, expected.err)


def test_absolute_names_lose_their_slash() -> None:
    outcome = run_model(["tar", "cf", "-", f"{FOLDER}/top"], files=FILES)
    with tarfile.open(fileobj=io.BytesIO(outcome.out)) as archive:
        names = archive.getnames()
    assert names == ["task/top"]
    assert outcome.err == b"tar: Removing leading `/' from member names\n"


def test_member_that_leads_out_of_folder_stays_in_it() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("../../etc/passwd")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    outcome = run_model(["tar", "xf", "-"], stdin=buffer.getvalue())
    assert outcome.files["etc/passwd"] == b"x"


@pytest.mark.parametrize(
    "argv",
    [
        ["gzip", "top"],
        ["gzip", "-k", "top"],
        ["gzip", "-c", "top"],
        ["gzip", "nope"],
        ["gzip", "d"],
    ],
)
def test_gzip_leaves_what_real_one_leaves(argv: list[str], tmp_path: Path) -> None:
    expected = run_real(argv, tmp_path, files=FILES)
    outcome = run_model(argv, files=FILES)
    assert (outcome.status, outcome.err) == (expected.status, expected.err)
    assert set(outcome.files) == set(expected.files)
    packed = outcome.out or outcome.files.get("top.gz", b"")
    if outcome.status == 0:
        assert gzip.decompress(packed) == b"x" * 3000


@pytest.mark.parametrize(
    "argv",
    [
        ["gunzip", "a.gz"],
        ["gunzip", "-c", "a.gz"],
        ["gunzip", "-k", "a.gz"],
        ["gzip", "-d", "a.gz"],
        ["gzip", "-t", "a.gz"],
        ["zcat", "a.gz"],
        ["zcat", "nope.gz"],
        ["zcat"],
        ["gunzip", "bad.gz"],
    ],
)
def test_gunzip_leaves_what_real_one_leaves(argv: list[str], tmp_path: Path) -> None:
    packed = gzip.compress(b"hello\n", mtime=0)
    files: dict[str, bytes | str] = {"a.gz": packed, "bad.gz": "no\n"}
    expected = run_real(argv, tmp_path, stdin=packed, files=files)
    outcome = run_model(argv, stdin=packed, files=files)
    assert outcome == expected


@pytest.mark.parametrize(
    "argv", [["tar", "rf", "x", "top"], ["tar", "cJf", "x", "top"], ["tar", "tvf", "-"]]
)
def test_unknown_use_of_tar_is_unknown(argv: list[str]) -> None:
    archive = run_model(["tar", "cf", "-", "top"], files=FILES).out
    with pytest.raises(Unknown):
        run_model(argv, stdin=archive, files=FILES)
