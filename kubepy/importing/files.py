"""The files of a source: a file, standard input, a folder of any depth, or an archive (tar, tar.gz)
of any of these.

Nothing is written while a source is read, and no link in a folder or an archive is followed.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import IO, NamedTuple

from kubepy.importing.errors import SourceError

STDIN = "-"
ARCHIVES = (".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip")
LARGEST = 512 * 1024 * 1024  # bytes of one file, unpacked
LARGEST_ARCHIVE = 4 * 1024 * 1024 * 1024  # bytes of all its files, unpacked
GZIP = b"\x1f\x8b"
TAR_MAGIC = (257, b"ustar")  # where it is, and what
# How files begin that are packed in ways which are not read.
OTHER_PACKINGS = {
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
}


class SourceFile(NamedTuple):
    """A file of a source.

    :ivar path: its path within the source, with slashes.
    :ivar shown: its path as messages name it.
    :ivar is_named: the user has named this very file, so that it must hold objects.
    :ivar problem: the reason why a folder or an archive within the source, or a resource of a
        running cluster, cannot be read; "" for a file.
    :ivar resource: the resource of a running cluster that it is the list of; "" for a file, which
        may hold anything.
    """

    path: str
    shown: str
    read: Callable[[], bytes]
    is_named: bool = False
    problem: str = ""
    resource: str = ""


def files_of(source: str, stdin: IO[str]) -> Iterator[SourceFile]:
    """Yield the files of a source. Raises SourceError for one that is not there or cannot be
    read."""
    if source == STDIN:
        data = _standard_input(stdin)
        yield from _files_in(data, "standard input")
        return
    if not os.path.lexists(source):
        raise SourceError(f"{source}: there is no such file or folder")
    if os.path.isdir(source):
        yield from _files_of_folder(source)
        return
    data = read_file(source)
    yield from _files_in(data, source)


def read_file(path: str) -> bytes:
    """Return the content of a file. Raises SourceError."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    if len(data) > LARGEST:
        raise SourceError(f"{path}: is larger than {LARGEST >> 20} MiB")
    return data


def _standard_input(stdin: IO[str]) -> bytes:
    buffer: IO[bytes] | None = getattr(stdin, "buffer", None)
    if buffer is None:
        return stdin.read().encode("utf-8", "surrogateescape")
    return buffer.read()


def _files_in(data: bytes, shown: str) -> Iterator[SourceFile]:
    """Yield the files of an archive, or a file that is none. Raises SourceError."""
    for magic, packing in OTHER_PACKINGS.items():
        if data.startswith(magic):
            raise SourceError(
                f"{shown}: is packed by {packing}, which is not read: unpack it first"
            )
    position, magic = TAR_MAGIC
    is_tar = data[position : position + len(magic)] == magic
    if not is_tar and not data.startswith(GZIP):
        name = shown.replace(os.sep, "/")
        yield SourceFile(
            name,
            shown,
            lambda: data,
            is_named=True,
        )
        return
    try:
        if data.startswith(GZIP) and not _holds_tar(data):
            text = _unpacked(data, shown)
            yield SourceFile(
                shown.removesuffix(".gz"),
                shown,
                lambda: text,
                is_named=True,
            )
            return
        yield from _files_of_archive(data, shown)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise SourceError(f"{shown}: cannot be unpacked: {error}") from None


def _unpacked(data: bytes, shown: str) -> bytes:
    """Return what was compressed. Raises SourceError for more than a file may have."""
    with gzip.GzipFile(fileobj=BytesIO(data)) as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise SourceError(f"{shown}: is larger than {LARGEST >> 20} MiB unpacked")
    return text


def _holds_tar(data: bytes) -> bool:
    """Tell whether what was compressed is an archive."""
    with gzip.GzipFile(fileobj=BytesIO(data)) as file:
        begin = file.read(1024)
    position, magic = TAR_MAGIC
    return begin[position : position + len(magic)] == magic


def _files_of_archive(data: bytes, shown: str) -> Iterator[SourceFile]:
    total = 0
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        for member in archive:
            if not member.isfile():
                continue
            total += member.size
            if member.size > LARGEST or total > LARGEST_ARCHIVE:
                raise SourceError(f"{shown}: {member.name}: is too large unpacked")
            content = archive.extractfile(member)
            if content is None:
                continue
            text = content.read()
            path = member.name.removeprefix("./")
            if _is_hidden(path):
                continue
            yield SourceFile(path, f"{shown}: {path}", _reader_of(text))


def _reader_of(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _files_of_folder(root: str) -> Iterator[SourceFile]:
    """Yield the files of a folder. Raises SourceError where the folder itself cannot be read; what
    cannot be read within it is a file with a problem."""
    failed: list[SourceFile] = []

    def fail(error: OSError) -> None:
        path = error.filename or root
        if path == root:
            raise SourceError(f"{path}: {error.strerror}")
        failed.append(_unreadable(path, f"{path}: {error.strerror}"))

    for folder, folders, names in os.walk(root, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.startswith(".") or os.path.islink(path) or not os.path.isfile(path):
                continue
            relative = os.path.relpath(path, root).replace(os.sep, "/")
            if name.endswith(ARCHIVES):
                yield from _files_of_inner_archive(path, relative)
                continue
            yield SourceFile(relative, path, _file_reader(path))
    yield from failed


def _files_of_inner_archive(path: str, relative: str) -> Iterator[SourceFile]:
    """Yield the files of an archive in a folder."""
    try:
        for file in _files_in(read_file(path), path):
            yield file._replace(path=f"{relative}/{file.path}", is_named=False)
    except SourceError as error:
        yield _unreadable(path, str(error))


def _unreadable(path: str, problem: str) -> SourceFile:
    return SourceFile(
        path,
        path,
        lambda: b"",
        problem=problem,
    )


def _file_reader(path: str) -> Callable[[], bytes]:
    return lambda: read_file(path)
