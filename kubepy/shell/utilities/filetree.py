"""Programs that change files and directories: touch, mkdir, rm, cp, mv, ln, chmod and others."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from kubepy.shell.files import FOLDER, LINK, MISSING, NOT_DIRECTORY, FileError
from kubepy.shell.utilities.inputs import absolute
from kubepy.shell.utilities.program import (
    Arguments,
    ArgumentStyle,
    Failure,
    complain,
    program,
    usage_error,
)
from kubepy.shell.utilities.times import read_time
from kubepy.shell.utility import Execution, Unknown

CLAUSE = re.compile(r"([ugoa]*)((?:[-+=][rwxXst]*|[-+=][ugo])+)")
CHANGE = re.compile(r"([-+=])([rwxXst]*|[ugo])")
SIZE = re.compile(r"([-+<>/%]?)(\d+)([KMGTkB]*)")
UNITS = {
    "": 1,
    "K": 1024,
    "k": 1024,
    "M": 1024**2,
    "G": 1024**3,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?(?: ?(?:Z|UTC))?")
STAMP = re.compile(r"(\d\d)?(\d\d)?(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d\d))?")


def needs_operand(call: Execution, options: Arguments) -> None:
    """Check that there is an operand. Raises Failure."""
    if not options.operands:
        raise usage_error(call.name, "missing operand")


def entries_below(call: Execution, path: str) -> Iterator[str]:
    """Yield the paths of all that is below a directory, what is in it after itself."""
    for name in sorted(call.files.list(path)):
        child = posixpath.join(path, name)
        yield child
        if call.files.is_dir(child) and not call.files.is_link(child):
            yield from entries_below(call, child)


@program(
    "-a",
    "-c,--no-create",
    "-m",
    "-d,--date=STRING",
    "-t=STAMP",
    "-r,--reference=FILE",
    "-h,--no-dereference",
)
def touch(call: Execution, options: Arguments) -> int:
    """Make files, or set their times."""
    if not options.operands:
        raise usage_error(call.name, "missing file operand")
    time = _touched_time(call, options)
    status = 0
    for name in options.operands:
        path = absolute(call, name)
        if options.has("c") and not call.files.exists(path):
            continue
        try:
            call.files.touch(path, now=call.now)
            call.files.set_time(path, time)
        except FileError as error:
            message = f"cannot touch '{name}': {error.problem}"
            complain(call, message)
            status = 1
    return status


def _touched_time(call: Execution, options: Arguments) -> datetime:
    if options.has("r"):
        reference = options.get("r")
        try:
            path = absolute(call, reference)
            return call.files.stat(path).modified
        except FileError as error:
            message = f"failed to get attributes of '{reference}': {error.problem}"
            raise Failure(message) from error
    if options.has("d"):
        return read_time(options.get("d"), call.now)
    if options.has("t"):
        return _stamp(options.get("t"), call.now)
    return call.now


def _stamp(text: str, now: datetime) -> datetime:
    match = STAMP.fullmatch(text)
    if match is None:
        raise Failure(f"invalid date format '{text}'")
    century, year, *rest, seconds = match.groups()
    if century and not year:
        year = century
        century = "19"
        if int(year) < 69:
            century = "20"
    full_year = now.year
    if century:
        full_year = int(century + year)
    month, day, hour, minute = (int(part) for part in rest)
    return datetime(
        full_year,
        month,
        day,
        hour,
        minute,
        int(seconds or 0),
        tzinfo=UTC,
    )


@program("-p,--parents", "-m,--mode=MODE", "-v,--verbose")
def mkdir(call: Execution, options: Arguments) -> int:
    """Make directories."""
    needs_operand(call, options)
    status = 0
    for name in options.operands:
        names = _with_parents(name) if options.has("p") else [name]
        for directory in names:
            try:
                _make_directory(call, directory, options, is_last=directory == name)
            except FileError as error:
                message = f"cannot create directory '{directory}': {error.problem}"
                complain(call, message)
                status = 1
                break
    return status


def _with_parents(name: str) -> list[str]:
    names = [name]
    while parent := posixpath.dirname(names[0].rstrip("/")).rstrip("/"):
        names.insert(0, parent)
    return names


def _make_directory(call: Execution, name: str, options: Arguments, *, is_last: bool) -> None:
    path = absolute(call, name)
    if options.has("p") and call.files.is_dir(path):
        return
    if options.has("p") and not is_last and call.files.exists(path):
        raise FileError(NOT_DIRECTORY)
    call.files.make_dir(path, now=call.now)
    if options.has("m") and is_last:
        mode = parse_mode(options.get("m"), 0o755, is_dir=True)
        call.files.set_mode(path, mode)
    if options.has("v"):
        line = f"{call.name}: created directory '{name}'\n"
        call.out(line)


@program("-p,--parents", "-v,--verbose", "--ignore-fail-on-non-empty")
def rmdir(call: Execution, options: Arguments) -> int:
    """Remove empty directories."""
    needs_operand(call, options)
    status = 0
    for name in options.operands:
        names = [name]
        if options.has("p"):
            while parent := posixpath.dirname(names[-1].rstrip("/")).rstrip("/"):
                names.append(parent)
        for place, directory in enumerate(names):
            if options.has("v"):
                line = f"{call.name}: removing directory, '{directory}'\n"
                call.out(line)
            try:
                path = absolute(call, directory)
                call.files.remove_dir(path, now=call.now)
            except FileError as error:
                is_ignored = error.problem == "Directory not empty"
                if not (is_ignored and options.has("ignore-fail-on-non-empty")):
                    what = "failed to remove"
                    if place:
                        what = "failed to remove directory"
                    message = f"{what} '{directory}': {error.problem}"
                    complain(call, message)
                    status = 1
                break
    return status


@program("-f,--force", "-r,-R,--recursive", "-d,--dir", "-v,--verbose")
def rm(call: Execution, options: Arguments) -> int:
    """Remove files, and directories with ``-r``."""
    if not options.operands and not options.has("f"):
        needs_operand(call, options)
    status = 0
    for name in options.operands:
        try:
            _remove(call, name, options)
        except FileError as error:
            if error.problem in (MISSING, "Not a directory") and options.has("f"):
                continue
            message = f"cannot remove '{name}': {error.problem}"
            complain(call, message)
            status = 1
        except Failure as failure:
            complain(call, failure.message)
            status = 1
    return status


def _remove(call: Execution, name: str, options: Arguments) -> None:
    last = posixpath.basename(name.rstrip("/"))
    if last in (".", "..") and options.has("r"):
        raise Failure(f"refusing to remove '.' or '..' directory: skipping '{name}'")
    path = absolute(call, name)
    if options.has("r") and posixpath.normpath(path) == "/":
        raise Failure(
            "it is dangerous to operate recursively on '/'\n"
            "rm: use --no-preserve-root to override this failsafe"
        )
    link_path = path.rstrip("/") or "/"
    if not call.files.is_dir(path) or call.files.is_link(link_path):
        call.files.remove(path, now=call.now)
        _say_removed(call, name, options, kind="")
        return
    if not options.has("r", "d"):
        raise FileError("Is a directory")
    if options.has("r"):
        for child in sorted(call.files.list(path)):
            child_name = posixpath.join(name, child)
            _remove_child(call, child_name, options)
    call.files.remove_dir(path, now=call.now)
    _say_removed(call, name, options, kind="directory ")


def _remove_child(call: Execution, name: str, options: Arguments) -> None:
    """Remove what is in a directory. Raises Failure, which names the child."""
    try:
        _remove(call, name, options)
    except FileError as error:
        message = f"cannot remove '{name}': {error.problem}"
        raise Failure(message) from error


def _say_removed(call: Execution, name: str, options: Arguments, *, kind: str) -> None:
    if options.has("v"):
        line = f"removed {kind}'{name}'\n"
        call.out(line)


class _Copying:
    """One run of cp, mv or ln: several sources, one destination."""

    def __init__(self, call: Execution, options: Arguments) -> None:
        self.call = call
        self.options = options
        self.sources, self.destination = self._operands()
        self.status = 0

    def _operands(self) -> tuple[list[str], str]:
        operands = list(self.options.operands)
        name = self.call.name
        target = self.options.get("t")
        if not operands:
            raise usage_error(name, "missing file operand")
        if target:
            return operands, target
        if len(operands) == 1:
            raise usage_error(name, f"missing destination file operand after '{operands[0]}'")
        destination = operands.pop()
        path = absolute(self.call, destination)
        is_dir = self.call.files.is_dir(path)
        if len(operands) > 1 and (not is_dir or self.options.has("T")):
            if self.options.has("T"):
                raise usage_error(name, f"extra operand '{operands[1]}'")
            message = f"target '{destination}': {self._why_no_directory(destination)}"
            raise Failure(message)
        return operands, destination

    def _why_no_directory(self, name: str) -> str:
        path = absolute(self.call, name)
        exists = self.call.files.exists(path)
        if exists:
            return "Not a directory"
        return MISSING

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each source with the name that it gets."""
        path = absolute(self.call, self.destination)
        is_into = self.options.has("t") or (
            self.call.files.is_dir(path) and not self.options.has("T")
        )
        for source in self.sources:
            if is_into:
                last = posixpath.basename(source.rstrip("/")) or source
                yield source, posixpath.join(self.destination, last)
            else:
                yield source, self.destination

    def fail(self, message: str) -> None:
        """Report what could not be done, and go on."""
        complain(self.call, message)
        self.status = 1


@program(
    "-a,--archive",
    "-f,--force",
    "-L,--dereference",
    "-P,--no-dereference",
    "-d",
    "-n,--no-clobber",
    "-p",
    "-r,-R,--recursive",
    "-t,--target-directory=DIRECTORY",
    "-T,--no-target-directory",
    "-u,--update",
    "-v,--verbose",
    "--preserve[=ATTRIBUTES]",
)
def cp(call: Execution, options: Arguments) -> int:
    """Copy files, and directories with ``-r``."""
    copying = _Copying(call, options)
    for source, target in copying.pairs():
        _copy(copying, source, target)
    return copying.status


def _copy(copying: _Copying, source: str, target: str) -> None:
    call = copying.call
    options = copying.options
    source_path = absolute(call, source)
    target_path = absolute(call, target)
    files = call.files
    keeps_links = options.has("a", "P", "d", "r") and not options.has("L")
    if keeps_links and call.files.is_link(source_path):
        _copy_link(copying, source_path, target_path)
        return
    if not files.exists(source_path):
        message = f"cannot stat '{source}': {_stat_problem(call, source_path)}"
        copying.fail(message)
        return
    if files.is_dir(source_path):
        _copy_directory(copying, source, target)
        return
    if files.is_dir(target_path):
        message = f"cannot overwrite directory '{target}' with non-directory '{source}'"
        if target.endswith("/"):
            message = f"cannot create regular file '{target}': Not a directory"
        copying.fail(message)
        return
    if options.has("n") and files.exists(target_path):
        return
    if _is_same(call, source_path, target_path):
        message = f"'{source}' and '{target}' are the same file"
        copying.fail(message)
        return
    if options.has("u") and _is_newer(call, target_path, source_path):
        return
    _copy_content(copying, source, target)


def _stat_problem(call: Execution, path: str) -> str:
    try:
        call.files.stat(path)
    except FileError as error:
        return error.problem
    return MISSING


def _is_same(call: Execution, source: str, target: str) -> bool:
    if not call.files.exists(target):
        return False
    real_source = call.files.real_path(source)
    real_target = call.files.real_path(target)
    return bool(real_source == real_target)


def _is_newer(call: Execution, path: str, other: str) -> bool:
    if not call.files.exists(path):
        return False
    return bool(call.files.stat(path).modified >= call.files.stat(other).modified)


def _copy_content(copying: _Copying, source: str, target: str) -> None:
    call = copying.call
    options = copying.options
    source_path = absolute(call, source)
    target_path = absolute(call, target)
    try:
        content = call.files.read(source_path)
    except FileError as error:
        message = f"cannot open '{source}' for reading: {error.problem}"
        copying.fail(message)
        return
    is_new = not call.files.exists(target_path)
    status = call.files.stat(source_path)
    try:
        call.files.write(target_path, content, now=call.now)
        if is_new or options.has("a", "p"):
            call.files.set_mode(target_path, status.mode)
        if options.has("a", "p"):
            call.files.set_time(target_path, status.modified)
    except FileError as error:
        what = "open"
        if is_new:
            what = "create regular file"
        message = f"cannot {what} '{target}': {error.problem}"
        copying.fail(message)
        return
    if options.has("v"):
        line = f"'{source}' -> '{target}'\n"
        call.out(line)


def _copy_link(copying: _Copying, source: str, target: str) -> None:
    call = copying.call
    if call.files.exists(target) or call.files.is_link(target):
        call.files.remove(target, now=call.now)
    status = call.files.stat(source, follow=False)
    call.files.symlink(status.target, target, now=call.now)


def _copy_directory(copying: _Copying, source: str, target: str) -> None:
    call = copying.call
    options = copying.options
    if not options.has("r", "a"):
        copying.fail(f"-r not specified; omitting directory '{source}'")
        return
    source_path = absolute(call, source)
    target_path = absolute(call, target)
    if _is_within(call, source_path, target_path):
        message = f"cannot copy a directory, '{source}', into itself, '{target}'"
        copying.fail(message)
        return
    if call.files.exists(target_path) and not call.files.is_dir(target_path):
        message = f"cannot overwrite non-directory '{target}' with directory '{source}'"
        copying.fail(message)
        return
    try:
        if not call.files.exists(target_path):
            call.files.make_dir(target_path, now=call.now)
            status = call.files.stat(source_path)
            call.files.set_mode(target_path, status.mode)
    except FileError as error:
        message = f"cannot create directory '{target}': {error.problem}"
        copying.fail(message)
        return
    if options.has("v"):
        line = f"'{source}' -> '{target}'\n"
        call.out(line)
    for name in sorted(call.files.list(source_path)):
        child_source = posixpath.join(source, name)
        child_target = posixpath.join(target, name)
        _copy(copying, child_source, child_target)


@program(
    "-f,--force",
    "-n,--no-clobber",
    "-t,--target-directory=DIRECTORY",
    "-T,--no-target-directory",
    "-u,--update",
    "-v,--verbose",
)
def mv(call: Execution, options: Arguments) -> int:
    """Rename files and directories."""
    copying = _Copying(call, options)
    for source, target in copying.pairs():
        _move(copying, source, target)
    return copying.status


def _move(copying: _Copying, source: str, target: str) -> None:
    call = copying.call
    options = copying.options
    source_path = absolute(call, source)
    target_path = absolute(call, target)
    files = call.files
    if not files.exists(source_path) and not call.files.is_link(source_path):
        message = f"cannot stat '{source}': {_stat_problem(call, source_path)}"
        copying.fail(message)
        return
    if files.exists(target_path):
        if options.has("n"):
            return
        if options.has("u") and _is_newer(call, target_path, source_path):
            return
        problem = _move_problem(call, source, target)
        if problem:
            copying.fail(problem)
            return
    if files.is_dir(source_path) and _is_within(call, source_path, target_path):
        message = f"cannot move '{source}' to a subdirectory of itself, '{target}'"
        copying.fail(message)
        return
    try:
        files.rename(source_path, target_path, now=call.now)
    except FileError as error:
        if error.problem == "Invalid cross-device link":
            raise Unknown("mv to another file system") from error
        message = f"cannot move '{source}' to '{target}': {error.problem}"
        copying.fail(message)
        return
    if options.has("v"):
        line = f"renamed '{source}' -> '{target}'\n"
        call.out(line)


def _is_within(call: Execution, directory: str, path: str) -> bool:
    real_path = call.files.real_path(path)
    real_directory = call.files.real_path(directory)
    return f"{real_path}/".startswith(f"{real_directory}/")


def _move_problem(call: Execution, source: str, target: str) -> str:
    source_path = absolute(call, source)
    target_path = absolute(call, target)
    if _is_same(call, source_path, target_path):
        return f"'{source}' and '{target}' are the same file"
    is_source_dir, is_target_dir = (
        call.files.is_dir(path) and not call.files.is_link(path)
        for path in (source_path, target_path)
    )
    if is_target_dir and not is_source_dir:
        return f"cannot overwrite directory '{target}' with non-directory"
    if is_source_dir and not is_target_dir:
        return f"cannot overwrite non-directory '{target}' with directory '{source}'"
    return ""


@program(
    "-f,--force",
    "-n,--no-dereference",
    "-s,--symbolic",
    "-v,--verbose",
    "-T,--no-target-directory",
    "-t,--target-directory=DIRECTORY",
)
def ln(call: Execution, options: Arguments) -> int:
    """Make symbolic links; hard links are not known."""
    if not options.has("s"):
        raise Unknown("ln without -s")
    if len(options.operands) == 1:
        options.operands.append(".")
    copying = _Copying(call, options)
    for source, target in copying.pairs():
        if options.has("n") and call.files.is_link(absolute(call, copying.destination)):
            target = copying.destination
        _link(copying, source, target)
    return copying.status


def _link(copying: _Copying, source: str, target: str) -> None:
    call = copying.call
    path = absolute(call, target)
    try:
        if copying.options.has("f") and (call.files.exists(path) or call.files.is_link(path)):
            call.files.remove(path, now=call.now)
        call.files.symlink(source, path, now=call.now)
    except FileError as error:
        message = f"failed to create symbolic link '{target}': {error.problem}"
        copying.fail(message)
        return
    if copying.options.has("v"):
        line = f"'{target}' -> '{source}'\n"
        call.out(line)


def parse_mode(text: str, mode: int, *, is_dir: bool) -> int:
    """Apply ``0644`` or ``u+x,g=r`` to a mode. Raises Failure."""
    if re.fullmatch(r"[0-7]{1,4}", text):
        return int(text, 8)
    for clause in text.split(","):
        match = CLAUSE.fullmatch(clause)
        if match is None:
            raise Failure(f"invalid mode: '{text}'")
        who = match[1] or "a"
        for operator, letters in CHANGE.findall(match[2]):
            mode = _changed_mode(
                mode, who, operator, letters, is_dir=is_dir, has_umask=not match[1]
            )
    return mode


def _changed_mode(
    mode: int, who: str, operator: str, letters: str, *, is_dir: bool, has_umask: bool
) -> int:
    if set(letters) & set("stugo"):
        raise Unknown(f"mode {who}{operator}{letters}")
    shifts = {
        "u": 6,
        "g": 3,
        "o": 0,
    }
    chosen = [shifts[letter] for letter in "ugo" if letter in who or "a" in who]
    bits = 0
    for letter in letters:
        if letter == "X" and not (is_dir or mode & 0o111):
            continue
        bits |= {"r": 4, "w": 2, "x": 1, "X": 1}[letter]
    for shift in chosen:
        change = bits << shift
        if has_umask:
            change &= ~0o022
        if operator == "+":
            mode |= change
        elif operator == "-":
            mode &= ~change
        else:
            mode = mode & ~(7 << shift) | change
    return mode


def _with_mode(arguments: list[str]) -> list[str]:
    """End the options before a mode such as ``-x``."""
    for place, argument in enumerate(arguments):
        if re.fullmatch(r"-[rwxXst]+", argument):
            return [*arguments[:place], "--", *arguments[place:]]
        if not argument.startswith("-"):
            break
    return arguments


@program("-R,--recursive", "-f,--silent,--quiet", style=ArgumentStyle(rewrite=_with_mode))
def chmod(call: Execution, options: Arguments) -> int:
    """Change modes."""
    operands = options.operands
    if not operands:
        raise usage_error(call.name, "missing operand")
    if len(operands) == 1:
        raise usage_error(call.name, f"missing operand after '{operands[0]}'")
    text, *names = operands
    try:
        parse_mode(text, 0, is_dir=False)
    except Failure as failure:
        raise usage_error(call.name, failure.message) from None
    status = 0
    for name in names:
        path = absolute(call, name)
        try:
            _set_mode(call, path, text)
            if options.has("R") and call.files.is_dir(path):
                for child in list(entries_below(call, path)):
                    if not call.files.is_link(child):
                        _set_mode(call, child, text)
        except FileError as error:
            message = f"cannot access '{name}': {error.problem}"
            complain(call, message)
            status = 1
    return status


def _set_mode(call: Execution, path: str, text: str) -> None:
    status = call.files.stat(path)
    mode = parse_mode(text, status.mode, is_dir=status.kind == FOLDER)
    call.files.set_mode(path, mode)


@program("-R,--recursive", "-h,--no-dereference", "-f,--silent,--quiet")
def chown(call: Execution, options: Arguments) -> int:
    """Give files to other users and groups."""
    operands = options.operands
    if not operands:
        raise usage_error(call.name, "missing operand")
    if len(operands) == 1:
        raise usage_error(call.name, f"missing operand after '{operands[0]}'")
    if call.user:
        raise Unknown(f"{call.name} by a user that is not root")
    status = 0
    for name in operands[1:]:
        path = absolute(call, name)
        if not call.files.exists(path):
            message = f"cannot access '{name}': {MISSING}"
            complain(call, message)
            status = 1
            continue
        paths = [path]
        if options.has("R") and call.files.is_dir(path):
            paths += [child for child in entries_below(call, path) if call.files.exists(child)]
        for each in paths:
            _set_owner(call, each, operands[0])
    return status


def _set_owner(call: Execution, path: str, text: str) -> None:
    """Give a file to ``USER``, ``USER:GROUP``, ``:GROUP``, or with ``chgrp`` to ``GROUP``."""
    user, _, group = text.partition(":")
    if call.name == "chgrp":
        user, group = "", text
    status = call.files.stat(path)
    call.files.set_owner(
        path,
        _number_of(user, status.user),
        _number_of(group, status.group),
    )


def _number_of(name: str, usual: int) -> int:
    """Return the number of a user or group; other names than root are the image's, and change
    nothing."""
    if name == "root":
        return 0
    if name.isdigit():
        return int(name)
    return usual


@program(
    "-d,--directory", "-p,--tmpdir[=DIR]", "-t", "-u,--dry-run", "-q,--quiet", "--suffix=SUFFIX"
)
def mktemp(call: Execution, options: Arguments) -> int:
    """Make a file or directory with a name of its own."""
    if len(options.operands) > 1:
        raise usage_error(call.name, "too many templates")
    template = "tmp.XXXXXXXXXX"
    if options.operands:
        template = options.operands[0]
    is_default = not options.operands or options.has("p", "t")
    directory = options.get("p") or call.env.get("TMPDIR") or "/tmp"
    body, marks, rest = _template(template)
    if rest and options.has("suffix"):
        raise Unknown("mktemp with two suffixes")
    suffix = rest + options.get("suffix")
    if len(marks) < 3:
        raise Failure(f"too few X's in template '{template}'")
    letters = ""
    for _ in marks:
        place = int(call.random() * len(LETTERS))
        letters += LETTERS[place]
    name = body + letters + suffix
    if is_default:
        name = posixpath.join(directory, name)
    kind = "file"
    if options.has("d"):
        kind = "directory"
    try:
        _make_temporary(call, name, options)
    except FileError as error:
        shown = template
        if is_default:
            shown = posixpath.join(directory, template)
        if options.has("q"):
            return 1
        message = f"failed to create {kind} via template '{shown}': {error.problem}"
        raise Failure(message) from error
    call.out(f"{name}\n")
    return 0


def _template(template: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"(.*?)(X*)([^X/]*)", template, re.DOTALL)
    assert match is not None
    return match[1], match[2], match[3]


def _make_temporary(call: Execution, name: str, options: Arguments) -> None:
    path = absolute(call, name)
    if options.has("u"):
        return
    if options.has("d"):
        call.files.make_dir(path, now=call.now)
        call.files.set_mode(path, 0o700)
    else:
        call.files.write(path, b"", now=call.now)
        call.files.set_mode(path, 0o600)


@program("-c,--no-create", "-s,--size=SIZE")
def truncate(call: Execution, options: Arguments) -> int:
    """Cut or extend files to a size."""
    if not options.operands:
        raise usage_error(call.name, "missing file operand")
    if not options.has("s"):
        raise usage_error(call.name, "you must specify either '--size' or '--reference'")
    text = options.get("s")
    match = SIZE.fullmatch(text)
    if match is None or match[3] not in UNITS:
        raise Failure(f"Invalid number: '{text}'")
    sign = match[1]
    number = int(match[2]) * UNITS[match[3]]
    if sign not in ("", "+", "-"):
        raise Unknown(f"truncate -s {sign}")
    for name in options.operands:
        path = absolute(call, name)
        is_there = call.files.exists(path)
        if not is_there and options.has("c"):
            continue
        try:
            content = b""
            if is_there:
                content = call.files.read(path)
            size = _new_size(len(content), sign, number)
            content = content[:size].ljust(size, b"\0")
            call.files.write(path, content, now=call.now)
        except FileError as error:
            message = f"cannot open '{name}' for writing: {error.problem}"
            raise Failure(message) from error
    return 0


def _new_size(size: int, sign: str, number: int) -> int:
    if sign == "+":
        return size + number
    if sign == "-":
        return max(size - number, 0)
    return number


@program(
    "-f,--canonicalize",
    "-e,--canonicalize-existing",
    "-m,--canonicalize-missing",
    "-n,--no-newline",
    "-q,--quiet,-s,--silent",
    "-v,--verbose",
)
def readlink(call: Execution, options: Arguments) -> int:
    """Print the targets of symbolic links, or canonical paths."""
    needs_operand(call, options)
    status = 0
    for name in options.operands:
        path = absolute(call, name)
        try:
            if options.has("f", "e", "m"):
                text = _canonical(call, path, options)
            else:
                text = _target(call, path)
        except FileError as error:
            status = 1
            if options.has("v"):
                message = f"{name}: {error.problem}"
                complain(call, message)
            continue
        is_single = options.has("n") and len(options.operands) == 1
        call.out(text if is_single else f"{text}\n")
    return status


def _target(call: Execution, path: str) -> str:
    status = call.files.stat(path, follow=False)
    if status.kind != LINK:
        raise FileError("Invalid argument")
    return str(status.target)


def _canonical(call: Execution, path: str, options: Arguments) -> str:
    if not path:
        raise FileError(MISSING)
    canonical = call.files.real_path(path)
    needed = canonical
    if not options.has("e"):
        needed = posixpath.dirname(canonical)
    if not options.has("m") and not call.files.exists(needed):
        raise FileError(MISSING)
    if not options.has("m") and not options.has("e") and not call.files.is_dir(needed):
        raise FileError("Not a directory")
    return canonical


@program(
    "-e,--canonicalize-existing",
    "-m,--canonicalize-missing",
    "-q,--quiet",
)
def realpath(call: Execution, options: Arguments) -> int:
    """Print canonical paths."""
    needs_operand(call, options)
    status = 0
    for name in options.operands:
        try:
            path = absolute(call, name)
            call.out(_canonical(call, path, options) + "\n")
        except FileError as error:
            status = 1
            if not options.has("q"):
                message = f"{name or repr(name)}: {error.problem}"
                complain(call, message)
    return status
