"""The files of a source."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from kubepy.importing.errors import SourceError
from kubepy.importing.files import files_of


def contents(source: Path | str, stdin: str = "") -> dict[str, bytes]:
    return {file.path: file.read() for file in files_of(str(source), io.StringIO(stdin))}


def archive_of(path: Path, **files: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("link.yaml")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    return path


def test_folder_gives_files_of_any_depth_in_order(tmp_path: Path) -> None:
    for name in ("b/c/d.yaml", "a.yaml", ".git/config.yaml", "b/.hidden.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "link.yaml").symlink_to("/etc/passwd")
    assert contents(tmp_path) == {"a.yaml": b"a.yaml", "b/c/d.yaml": b"b/c/d.yaml"}


def test_archive_gives_its_files_and_no_links(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "dump.tar.gz", dump__a="1", dump__b__c="2")
    assert contents(archive) == {"dump/a": b"1", "dump/b/c": b"2"}


def test_archive_in_a_folder_gives_its_files(tmp_path: Path) -> None:
    archive_of(tmp_path / "dump.tgz", a="1")
    assert contents(tmp_path) == {"dump.tgz/a": b"1"}


def test_archive_on_standard_input_gives_its_files(tmp_path: Path) -> None:
    data = archive_of(tmp_path / "dump.tar.gz", a="1").read_bytes()
    stdin = io.TextIOWrapper(io.BytesIO(data))
    assert {file.path: file.read() for file in files_of("-", stdin)} == {"a": b"1"}


def test_compressed_document_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml.gz"
    path.write_bytes(gzip.compress(b"a: 1\n"))
    assert list(contents(path).values()) == [b"a: 1\n"]


def test_compressed_document_is_unpacked_with_all_its_members(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml.gz"
    path.write_bytes(gzip.compress(b"a: 1\n") + gzip.compress(b"---\nb: 2\n"))
    assert list(contents(path).values()) == [b"a: 1\n---\nb: 2\n"]


def test_compressed_document_may_be_as_large_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubepy.importing.files.LARGEST", 4)
    path = tmp_path / "all.yaml.gz"
    path.write_bytes(gzip.compress(b"a: ") + gzip.compress(b"1"))
    monkeypatch.setattr("kubepy.importing.files.read_file", lambda name: path.read_bytes())
    assert list(contents(path).values()) == [b"a: 1"]
    path.write_bytes(gzip.compress(b"a: ") + gzip.compress(b"12"))
    with pytest.raises(SourceError, match="is larger than 0 MiB unpacked"):
        contents(path)


def test_standard_input_is_one_file() -> None:
    assert contents("-", "a: 1\n") == {"standard input": b"a: 1\n"}


@pytest.mark.parametrize(
    "data",
    [b"\x1f\x8b broken", gzip.compress(b"x" * 9000, mtime=0)[:40]],
    ids=["no gzip", "cut short"],
)
def test_broken_archive_is_an_error_with_its_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "dump.tar.gz"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"dump\.tar\.gz: cannot be unpacked"):
        contents(path)


def test_missing_source_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="gone: there is no such file or folder"):
        contents(tmp_path / "gone")


@pytest.mark.parametrize(
    ("begin", "packing"),
    [
        (b"PK\x03\x04", "zip"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"BZh9", "bzip2"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ],
)
def test_packing_that_is_not_read_is_named(tmp_path: Path, begin: bytes, packing: str) -> None:
    path = tmp_path / "dump"
    path.write_bytes(begin + b"rest")
    with pytest.raises(SourceError, match=f"dump: is packed by {packing}, which is not read"):
        contents(path)


def test_archive_of_a_folder_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"PK\x03\x04")
    (tmp_path / "b.yaml").write_text("b")
    files = {file.path: file for file in files_of(str(tmp_path), io.StringIO())}
    problem = files.pop(str(tmp_path / "a.tar")).problem
    assert "is packed by zip" in problem
    assert list(files) == ["b.yaml"]
