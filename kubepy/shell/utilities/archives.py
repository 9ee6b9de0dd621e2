"""Programs that pack: tar, gzip, gunzip, zcat. ``kubectl cp`` runs tar in a container."""

from __future__ import annotations

import gzip as compression
import io
import posixpath
import re
import tarfile
import zlib
from datetime import UTC, datetime
from fnmatch import fnmatch

from kubepy.shell.files import DEVICE, FOLDER, LINK, FileError, FileStat
from kubepy.shell.utilities.inputs import absolute, read_file
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, complain, program
from kubepy.shell.utility import Execution, Unknown

BUNDLE = re.compile(r"[a-zA-Z]+")
WITH_VALUE = "fC"
GZIP_MARK = b"\x1f\x8b"


def _with_dashes(arguments: list[str]) -> list[str]:
    """Write a first word of letters, as in ``tar cf -``, as options."""
    if not arguments or not BUNDLE.fullmatch(arguments[0]):
        return arguments
    letters, *rest = arguments
    words: list[str] = []
    for letter in letters:
        words.append(f"-{letter}")
        if letter in WITH_VALUE and rest:
            words.append(rest.pop(0))
    return words + rest


@program(
    "-c,--create",
    "-x,--extract,--get",
    "-t,--list",
    "-f,--file=ARCHIVE",
    "-C,--directory=DIR",
    "-z,--gzip",
    "-v,--verbose",
    "-m,--touch",
    "-p,--preserve-permissions",
    "-o,--no-same-owner",
    "-O,--to-stdout",
    "-P,--absolute-names",
    "-h,--dereference",
    "-k,--keep-old-files",
    "--no-same-permissions",
    "--overwrite",
    "--exclude=PATTERN",
    "--strip-components=NUM",
    "--warning=KEYWORD",
    style=ArgumentStyle(usage_status=2, rewrite=_with_dashes),
)
def tar(call: Execution, options: Arguments) -> int:
    """Pack and unpack archives."""
    modes = [key for key, _ in options.given if key in ("c", "x", "t")]
    if len(set(modes)) != 1:
        raise Unknown("tar without one of c, x and t")
    if modes[0] == "c":
        return _Packing(call, options).run()
    return _Unpacking(call, options).run()


def _is_excluded(name: str, options: Arguments) -> bool:
    """Tell whether a name, or that of a directory above it, is left out."""
    globs = options.all("exclude")
    parts = name.rstrip("/").split("/")
    for end in range(1, len(parts) + 1):
        for start in range(end):
            part = "/".join(parts[start:end])
            if any(fnmatch(part, glob) for glob in globs):
                return True
    return False


class _Packing:
    """One run of ``tar c``."""

    def __init__(self, call: Execution, options: Arguments) -> None:
        self.call = call
        self.options = options
        self.folder = absolute(call, options.get("C") or ".")
        self.has_stripped = False
        self.status = 0

    def run(self) -> int:
        names = self.options.operands
        if not names:
            self.call.err(
                "tar: Cowardly refusing to create an empty archive\n"
                "Try 'tar --help' or 'tar --usage' for more information.\n"
            )
            return 2
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name in names:
                self._add(archive, name)
        content = buffer.getvalue()
        if self.options.has("z"):
            content = compression.compress(content, mtime=0)
        target = self.options.get("f", "-")
        if target == "-":
            self.call.out(content)
        else:
            _write(self.call, target, content)
        if self.status:
            complain(self.call, "Exiting with failure status due to previous errors")
        return self.status

    def _add(self, archive: tarfile.TarFile, name: str) -> None:
        if _is_excluded(name, self.options):
            return
        path = posixpath.join(self.folder, name)
        try:
            status = self.call.files.stat(path, follow=self.options.has("h"))
        except FileError as error:
            message = f"{name}: Cannot stat: {error.problem}"
            complain(self.call, message)
            self.status = 2
            return
        if status.kind == DEVICE:
            return
        self._add_member(archive, name, path, status)
        if status.kind == FOLDER:
            for child in self.call.files.list(path):
                self._add(archive, posixpath.join(name, child))

    def _add_member(self, archive: tarfile.TarFile, name: str, path: str, status: FileStat) -> None:
        stored = name
        if not self.options.has("P"):
            stored = self._relative(name)
        member = tarfile.TarInfo(stored or ".")
        member.mode = status.mode
        member.mtime = int(status.modified.timestamp())
        member.uid = status.user
        member.gid = status.group
        content = b""
        if status.kind == FOLDER:
            member.type = tarfile.DIRTYPE
        elif status.kind == LINK:
            member.type = tarfile.SYMTYPE
            member.linkname = status.target
        else:
            content = self.call.files.read(path)
            member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
        if self.options.has("v"):
            shown = name
            if status.kind == FOLDER:
                shown = f"{name.rstrip('/')}/"
            self._report(shown)

    def _report(self, name: str) -> None:
        to_stdout = self.options.get("f", "-") == "-"
        if to_stdout:
            self.call.err(f"{name}\n")
        else:
            self.call.out(f"{name}\n")

    def _relative(self, name: str) -> str:
        """Return a name without what leads out of the folder, which is said once."""
        match = re.match(r"/+|(?:.*/)?\.\./", name)
        if match is None:
            return name
        if not self.has_stripped:
            complain(self.call, f"Removing leading `{match[0]}' from member names")
        self.has_stripped = True
        return name[match.end() :]


class _Unpacking:
    """One run of ``tar x`` or ``tar t``."""

    def __init__(self, call: Execution, options: Arguments) -> None:
        self.call = call
        self.options = options
        self.folder = absolute(call, options.get("C") or ".")
        self.wanted = [name.rstrip("/") for name in options.operands]
        self.found: set[str] = set()
        self.status = 0

    def run(self) -> int:
        if not self.call.files.is_dir(self.folder):
            name = self.options.get("C")
            self.call.err(
                f"tar: {name}: Cannot open: No such file or directory\n"
                "tar: Error is not recoverable: exiting now\n"
            )
            return 2
        with self._archive() as archive:
            for member in archive:
                if self._is_wanted(member.name):
                    self._handle(archive, member)
        for name in self.wanted:
            if name not in self.found:
                complain(self.call, f"{name}: Not found in archive")
                self.status = 2
        if self.status:
            complain(self.call, "Exiting with failure status due to previous errors")
        return self.status

    def _archive(self) -> tarfile.TarFile:
        name = self.options.get("f", "-")
        try:
            content = read_file(self.call, name)
        except FileError as error:
            raise Failure(
                f"{name}: Cannot open: {error.problem}\ntar: Error is not recoverable: exiting now",
                2,
            ) from error
        try:
            if content.startswith(GZIP_MARK):
                content = compression.decompress(content)
            return tarfile.open(fileobj=io.BytesIO(content), mode="r:")
        except (tarfile.TarError, OSError, EOFError, zlib.error):
            raise Failure(
                "This does not look like a tar archive\n"
                "tar: Exiting with failure status due to previous errors",
                2,
            ) from None

    def _is_wanted(self, name: str) -> bool:
        if _is_excluded(name, self.options):
            return False
        if not self.wanted:
            return True
        within = [each for each in self.wanted if f"{name}/".startswith(f"{each}/")]
        self.found.update(within)
        return bool(within)

    def _handle(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        shown = f"{member.name}/" if member.isdir() else member.name
        if self.options.has("t"):
            if self.options.has("v"):
                raise Unknown("tar tv")
            self.call.out(f"{shown}\n")
            return
        if self.options.has("v"):
            self.call.out(f"{shown}\n")
        name = self._stripped(member.name)
        if not name:
            return
        try:
            self._extract(archive, member, name)
        except FileError as error:
            message = f"{member.name}: Cannot open: {error.problem}"
            complain(self.call, message)
            self.status = 2

    def _stripped(self, name: str) -> str:
        """Return the name below the folder: nothing leads out of it."""
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        stripped = int(self.options.get("strip-components", "0"))
        return "/".join(parts[stripped:])

    def _extract(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        files = self.call.files
        now = self.call.now
        path = posixpath.join(self.folder, name)
        if member.isdir():
            files.make_dir(path, parents=True, now=now)
            files.set_mode(path, member.mode & 0o777)
            return
        reader = archive.extractfile(member) if member.isreg() else None
        content = b""
        if reader:
            content = reader.read()
        if self.options.has("O"):
            self.call.out(content)
            return
        files.make_dir(posixpath.dirname(path), parents=True, now=now)
        is_file = files.exists(path) and not files.is_dir(path)
        if files.is_link(path) or is_file:
            files.remove(path, now=now)
        if member.issym():
            files.symlink(member.linkname, path, now=now)
            return
        if not member.isreg():
            raise Unknown(f"tar of {member.name}")
        files.write(
            path,
            content,
            now=now,
            mode=member.mode & 0o777,
        )
        if not self.options.has("m"):
            seconds = int(member.mtime)
            modified = datetime.fromtimestamp(seconds, UTC)
            files.set_time(path, modified)


def _write(call: Execution, name: str, content: bytes) -> None:
    try:
        path = absolute(call, name)
        call.files.write(path, content, now=call.now)
    except FileError as error:
        message = f"{name}: Cannot open: {error.problem}"
        raise Failure(message, 2) from error


GZIP_OPTIONS = (
    "-c,--stdout,--to-stdout",
    "-d,--decompress,--uncompress",
    "-f,--force",
    "-k,--keep",
    "-n,--no-name",
    "-q,--quiet",
    "-t,--test",
    *(f"-{level}" for level in range(1, 10)),
)


@program(*GZIP_OPTIONS)
def gzip(call: Execution, options: Arguments) -> int:
    """Compress files or standard input."""
    return _gzip(
        call,
        options,
        unpacks=options.has("d", "t"),
        to_stdout=options.has("c"),
    )


@program(*GZIP_OPTIONS)
def gunzip(call: Execution, options: Arguments) -> int:
    """Decompress files or standard input."""
    return _gzip(
        call,
        options,
        unpacks=True,
        to_stdout=options.has("c"),
    )


@program("-f,--force")
def zcat(call: Execution, options: Arguments) -> int:
    """Print what is in compressed files."""
    return _gzip(
        call,
        options,
        unpacks=True,
        to_stdout=True,
    )


def _gzip(call: Execution, options: Arguments, *, unpacks: bool, to_stdout: bool) -> int:
    status = 0
    for name in options.operands or ["-"]:
        try:
            content = read_file(call, name)
            result = _unpacked(name, content) if unpacks else compression.compress(content, mtime=0)
            if options.has("t"):
                continue
            if to_stdout or name == "-":
                call.out(result)
            else:
                _replace(
                    call,
                    name,
                    result,
                    options,
                    unpacks=unpacks,
                )
        except FileError as error:
            if error.problem == "Is a directory":
                call.err(f"gzip: {name} is a directory -- ignored\n")
            else:
                message = f"gzip: {name}: {error.problem}\n"
                call.err(message)
            status = 1
            if error.problem == "Is a directory":
                status = 2
        except Failure as failure:
            call.err(f"\ngzip: {failure.message}\n")
            status = failure.status
    return status


def _unpacked(name: str, content: bytes) -> bytes:
    shown = name
    if name == "-":
        shown = "stdin"
    if not content.startswith(GZIP_MARK):
        raise Failure(f"{shown}: not in gzip format")
    try:
        return compression.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise Failure(f"{shown}: unexpected end of file") from None


def _replace(
    call: Execution, name: str, content: bytes, options: Arguments, *, unpacks: bool
) -> None:
    """Put the result beside the file, which goes unless it is to be kept."""
    if unpacks and not name.endswith((".gz", ".tgz")):
        raise Unknown(f"gunzip of {name}")
    target = f"{name}.gz"
    if unpacks:
        target = name.removesuffix(".gz").replace(".tgz", ".tar")
    path = absolute(call, target)
    if call.files.exists(path) and not options.has("f"):
        raise Unknown(f"gzip that asks about {target}")
    name_path = absolute(call, name)
    status = call.files.stat(name_path)
    call.files.write(
        path,
        content,
        now=call.now,
        mode=status.mode,
    )
    call.files.set_time(path, status.modified)
    if not options.has("k"):
        call.files.remove(absolute(call, name), now=call.now)
