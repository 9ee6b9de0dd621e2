"""Programs that show what files there are: ls, stat, du, find."""

from __future__ import annotations

import posixpath
import re
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import NamedTuple

from kubepy.shell.files import DEVICE, FOLDER, LINK, REGULAR, FileError, FileStat
from kubepy.shell.utilities.inputs import absolute
from kubepy.shell.utilities.program import (
    Arguments,
    ArgumentStyle,
    Failure,
    complain,
    program,
    usage_error,
)
from kubepy.shell.utilities.running import run_program
from kubepy.shell.utilities.times import format_time
from kubepy.shell.utility import Execution, Unknown

BLOCK = 4096
LINKS_COLUMN = 1
TYPES = {
    REGULAR: "regular file",
    FOLDER: "directory",
    LINK: "symbolic link",
    DEVICE: "character special file",
}
LETTERS = {REGULAR: "-", FOLDER: "d", LINK: "l", DEVICE: "c"}
HALF_YEAR = timedelta(seconds=31556952 // 2)


class ListedFile(NamedTuple):
    """A name with what ``stat`` says of it."""

    name: str
    path: str
    status: FileStat


def permissions(kind: str, mode: int) -> str:
    """Return a mode as ``ls -l`` shows it."""
    bits = ""
    for place, letter in enumerate("rwxrwxrwx"):
        bit = 1 << (8 - place)
        if mode & bit:
            bits += letter
        else:
            bits += "-"
    for place, bit, letter in ((2, 0o4000, "s"), (5, 0o2000, "s"), (8, 0o1000, "t")):
        if mode & bit:
            is_executable = bits[place] == "x"
            shown = letter if is_executable else letter.upper()
            bits = f"{bits[:place]}{shown}{bits[place + 1 :]}"
    return LETTERS[kind] + bits


def human_size(size: int) -> str:
    """Return a size as ``-h`` shows it: rounded up, one digit below ten."""
    if size < 1024:
        return str(size)
    for place, unit in enumerate("KMGTP", 1):
        divisor = 1024**place
        tenths = -(-size * 10 // divisor)
        if tenths < 100:
            return f"{tenths / 10:.1f}{unit}"
        whole = -(-size // divisor)
        if whole < 1024:
            return f"{whole}{unit}"
    raise Unknown("a file of an exbibyte")


def owner(number: int) -> str:
    """Return the name of a user of a container."""
    if number == 0:
        return "root"
    return str(number)


@program(
    "-1",
    "-a,--all",
    "-A,--almost-all",
    "-d,--directory",
    "-F,--classify",
    "-h,--human-readable",
    "-l",
    "-n,--numeric-uid-gid",
    "-p",
    "-r,--reverse",
    "-R,--recursive",
    "-S",
    "-t",
    "-L,--dereference",
    "-o",
    "-g",
    "-G,--no-group",
    "-Q,--quote-name",
    "--color[=WHEN]",
    "--full-time",
    "--time-style=STYLE",
    "--group-directories-first",
    style=ArgumentStyle(usage_status=2),
)
def ls(call: Execution, options: Arguments) -> int:
    """List directories and files."""
    return _Listing(call, options).run()


class _Listing:
    """One run of ls."""

    def __init__(self, call: Execution, options: Arguments) -> None:
        self.call = call
        self.options = options
        self.is_long = options.has("l", "n", "o", "g", "full-time")
        self.status = 0

    def run(self) -> int:
        names = sorted(self.options.operands or ["."])
        entries = [entry for name in names if (entry := self._entry(name))]
        directories = [entry for entry in entries if self._is_listed(entry)]
        plain = [entry for entry in entries if entry not in directories]
        self._print(self._sorted(plain))
        has_titles = len(names) > 1 or self.options.has("R")
        is_first = not plain
        for entry in self._sorted(directories):
            is_first = self._print_directory(entry, has_title=has_titles, is_first=is_first)
        return self.status

    def _entry(self, name: str) -> ListedFile | None:
        path = absolute(self.call, name)
        shows_target = not self.is_long and not self.options.has("d", "F")
        is_asked = self.options.has("L")
        follows = shows_target or name.endswith("/") or is_asked
        try:
            status = self._stat(path, follows=follows)
        except FileError as error:
            message = f"cannot access '{name}': {error.problem}"
            complain(self.call, message)
            self.status = 2
            return None
        return ListedFile(name, path, status)

    def _stat(self, path: str, *, follows: bool) -> FileStat:
        if not follows:
            return self.call.files.stat(path, follow=False)
        try:
            return self.call.files.stat(path)
        except FileError:
            return self.call.files.stat(path, follow=False)

    def _is_listed(self, entry: ListedFile) -> bool:
        return not self.options.has("d") and entry.status.kind == FOLDER

    def _sorted(self, entries: list[ListedFile]) -> list[ListedFile]:
        order = self.options.last_of("S", "t")
        by_name = sorted(entries, key=lambda entry: entry.name)
        if order == "S":
            by_name.sort(key=lambda entry: -self._size(entry))
        elif order == "t":
            by_name.sort(key=lambda entry: entry.status.modified, reverse=True)
        if self.options.has("r"):
            by_name.reverse()
        if self.options.has("group-directories-first"):
            by_name.sort(key=lambda entry: entry.status.kind != FOLDER)
        return by_name

    def _size(self, entry: ListedFile) -> int:
        if entry.status.kind == FOLDER:
            return BLOCK
        return int(entry.status.size)

    def _print_directory(self, entry: ListedFile, *, has_title: bool, is_first: bool) -> bool:
        if has_title:
            if not is_first:
                self.call.out("\n")
            self.call.out(f"{entry.name}:\n")
        entries = self._children(entry)
        if self.is_long:
            half_kilobytes = sum(_blocks(child.status) for child in entries)
            blocks = half_kilobytes // 2
            total = str(blocks)
            if self.options.has("h"):
                total = human_size(blocks * 1024)
            self.call.out(f"total {total}\n")
        self._print(entries)
        if self.options.has("R"):
            for child in entries:
                is_below = child.name not in (".", "..")
                if is_below and child.status.kind == FOLDER:
                    name = posixpath.join(entry.name, child.name)
                    directory = ListedFile(name, child.path, child.status)
                    self._print_directory(directory, has_title=True, is_first=False)
        return False

    def _children(self, entry: ListedFile) -> list[ListedFile]:
        try:
            names = list(self.call.files.list(entry.path))
        except FileError as error:
            message = f"cannot open directory '{entry.name}': {error.problem}"
            complain(self.call, message)
            self.status = 2
            return []
        if not self.options.has("a", "A"):
            names = [name for name in names if not name.startswith(".")]
        if self.options.last_of("a", "A") == "a":
            names += [".", ".."]
        follows = self.options.has("L")
        entries = []
        for name in names:
            joined = posixpath.join(entry.path, name)
            path = posixpath.normpath(joined)
            status = self._stat(path, follows=follows)
            entries.append(ListedFile(name, path, status))
        return self._sorted(entries)

    def _print(self, entries: list[ListedFile]) -> None:
        if not entries:
            return
        if self.is_long:
            self._print_long(entries)
            return
        for entry in entries:
            self.call.out(self._name(entry) + "\n")

    def _name(self, entry: ListedFile) -> str:
        name = entry.name
        if self.options.has("Q"):
            name = f'"{entry.name}"'
        kind = entry.status.kind
        if self.options.has("F", "p") and kind == FOLDER:
            return f"{name}/"
        if self.options.has("F") and kind == LINK and not self.is_long:
            return f"{name}@"
        if self.options.has("F") and kind == REGULAR and entry.status.mode & 0o111:
            return f"{name}*"
        return name

    def _print_long(self, entries: list[ListedFile]) -> None:
        rows = [self._row(entry) for entry in entries]
        columns = list(zip(*rows, strict=True))
        widths = [max(len(cell) for cell in column) for column in columns]
        size_column = len(columns) - 3
        for row in rows:
            cells: list[str] = []
            for column, cell in enumerate(row[:-2]):
                width = widths[column]
                is_number = column in (LINKS_COLUMN, size_column)
                if is_number:
                    cells.append(cell.rjust(width))
                else:
                    cells.append(cell.ljust(width))
            cells += row[-2:]
            line = " ".join(cells)
            self.call.out(f"{line}\n")

    def _row(self, entry: ListedFile) -> list[str]:
        status = entry.status
        user = owner(status.user)
        group = owner(status.group)
        if self.options.has("n"):
            user = str(status.user)
            group = str(status.group)
        size = self._size(entry)
        owners = []
        if not self.options.has("g"):
            owners.append(user)
        if not self.options.has("o", "G"):
            owners.append(group)
        name = self._name(entry)
        if status.kind == LINK:
            name += f" -> {status.target}"
        return [
            permissions(status.kind, status.mode),
            str(self._links(entry)),
            *owners,
            human_size(size) if self.options.has("h") else str(size),
            self._time(status),
            name,
        ]

    def _links(self, entry: ListedFile) -> int:
        if entry.status.kind != FOLDER:
            return 1
        names = self.call.files.list(entry.path)
        children = [posixpath.join(entry.path, name) for name in names]
        return 2 + sum(
            self.call.files.is_dir(child) and not self.call.files.is_link(child)
            for child in children
        )

    def _time(self, status: FileStat) -> str:
        style = self.options.get("time-style")
        if self.options.has("full-time") or style == "full-iso":
            nanoseconds = f"{status.modified.microsecond:06d}000"
            return format_time(status.modified, f"%F %T.{nanoseconds} %z")
        if style == "long-iso":
            return format_time(status.modified, "%F %R")
        if style.startswith("+"):
            return format_time(status.modified, style[1:])
        if style:
            raise Unknown(f"ls --time-style={style}")
        self.call.reads_clock()
        age = self.call.now - status.modified
        is_recent = timedelta() <= age < HALF_YEAR
        return format_time(status.modified, "%b %e %H:%M" if is_recent else "%b %e  %Y")


def _blocks(status: FileStat) -> int:
    """Return how many blocks of 512 bytes a file takes."""
    if status.kind == FOLDER:
        return BLOCK // 512
    if status.kind == REGULAR:
        return -(-int(status.size) // BLOCK) * (BLOCK // 512)
    return 0


STAT_DIRECTIVE = re.compile(r"%([-0#]?\d*)([a-zA-Z%])")


@program("-c,--format=FORMAT", "-L,--dereference", "--printf=FORMAT")
def stat(call: Execution, options: Arguments) -> int:
    """Print what is known of files."""
    if not options.operands:
        raise usage_error(call.name, "missing operand")
    if not options.has("c", "printf"):
        raise Unknown("stat without a format")
    status = 0
    for name in options.operands:
        path = absolute(call, name)
        try:
            entry = ListedFile(name, path, call.files.stat(path, follow=options.has("L")))
        except FileError as error:
            message = f"cannot statx '{name}': {error.problem}"
            complain(call, message)
            status = 1
            continue
        if options.has("printf"):
            pattern = options.get("printf").replace("\\n", "\n").replace("\\t", "\t")
            call.out(_stat_text(entry, pattern))
        else:
            call.out(_stat_text(entry, options.get("c")) + "\n")
    return status


def _stat_text(entry: ListedFile, pattern: str) -> str:
    return STAT_DIRECTIVE.sub(lambda match: _stat_value(entry, match), pattern)


def _stat_value(entry: ListedFile, match: re.Match[str]) -> str:
    layout, letter = match.groups()
    status = entry.status
    is_empty = status.kind == REGULAR and status.size == 0
    seconds = int(status.modified.timestamp())
    nanoseconds = f"{status.modified.microsecond:06d}000"
    moment = format_time(status.modified, f"%F %T.{nanoseconds} %z")
    link = ""
    if status.kind == LINK:
        link = f" -> '{status.target}'"
    values = {
        "%": "%",
        "a": f"{status.mode:o}",
        "A": permissions(status.kind, status.mode),
        "b": str(_blocks(status)),
        "B": "512",
        "F": "regular empty file" if is_empty else TYPES[status.kind],
        "g": str(status.group),
        "G": owner(status.group),
        "n": entry.name,
        "N": f"'{entry.name}'{link}",
        "s": str(BLOCK if status.kind == FOLDER else status.size),
        "u": str(status.user),
        "U": owner(status.user),
        "x": moment,
        "X": str(seconds),
        "y": moment,
        "Y": str(seconds),
        "z": moment,
        "Z": str(seconds),
    }
    if letter not in values or (layout and not layout.lstrip("-").isdigit()):
        raise Unknown(f"stat %{layout}{letter}")
    width = int(layout.lstrip("-") or 0)
    if layout.startswith("-"):
        return values[letter].ljust(width)
    return values[letter].rjust(width)


@program(
    "-a,--all",
    "-b,--bytes",
    "-c,--total",
    "-d,--max-depth=N",
    "-h,--human-readable",
    "-k",
    "-m",
    "-s,--summarize",
    "--apparent-size",
)
def du(call: Execution, options: Arguments) -> int:
    """Sum up what directories take."""
    return _Usage(call, options).run()


class _Usage:
    """One run of du."""

    def __init__(self, call: Execution, options: Arguments) -> None:
        self.call = call
        self.options = options
        self.status = 0
        text = options.get("d", "-1")
        self.depth = 0
        if not options.has("s"):
            self.depth = int(text)

    def run(self) -> int:
        total = 0
        for name in self.options.operands or ["."]:
            try:
                total += self._measure(name, 0)
            except FileError as error:
                message = f"cannot access '{name}': {error.problem}"
                complain(self.call, message)
                self.status = 1
        if self.options.has("c"):
            self._print(total, "total")
        return self.status

    def _measure(self, name: str, depth: int) -> int:
        files = self.call.files
        path = absolute(self.call, name)
        status = files.stat(path, follow=False)
        is_folder = status.kind == FOLDER
        size = self._own_size(status)
        children = files.list(path) if is_folder else []
        for child in children:
            child_name = posixpath.join(name, child)
            size += self._measure(child_name, depth + 1)
        is_named = depth == 0
        is_shown = is_folder or is_named or self.options.has("a")
        is_too_deep = 0 <= self.depth < depth
        if is_shown and not is_too_deep:
            self._print(size, name)
        return size

    def _own_size(self, status: FileStat) -> int:
        if self.options.has("b", "apparent-size"):
            if status.kind == FOLDER:
                return BLOCK
            return int(status.size)
        return _blocks(status) * 512

    def _print(self, size: int, name: str) -> None:
        if self.options.has("h"):
            text = human_size(size)
        elif self.options.has("b"):
            text = str(size)
        else:
            unit = 1024
            if self.options.has("m"):
                unit = 1024**2
            text = str(-(-size // unit))
        line = f"{text}\t{name}\n"
        self.call.out(line)


class _Node(NamedTuple):
    """A part of an expression of find."""

    kind: str
    arguments: tuple[str, ...] = ()
    parts: tuple[_Node, ...] = ()


ONE_ARGUMENT = frozenset(
    [
        "name",
        "iname",
        "path",
        "ipath",
        "wholename",
        "type",
        "size",
        "mtime",
        "mmin",
        "newer",
        "perm",
        "printf",
        "maxdepth",
        "mindepth",
        "user",
        "regex",
    ]
)
NO_ARGUMENT = frozenset(
    ["print", "print0", "delete", "empty", "prune", "true", "false", "depth", "quit"]
)
ACTIONS = frozenset(["print", "print0", "delete", "exec", "exec together", "printf", "quit"])


class _FindParser:
    """The reading of the expression of find."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.limits = {"maxdepth": 1_000_000, "mindepth": 0}
        self.has_action = False
        self.is_depth_first = False

    def parse(self) -> _Node:
        if not self.tokens:
            return _Node("true")
        node = self._either()
        if self.tokens:
            raise Unknown(f"find {self.tokens[0]}")
        return node

    def _either(self) -> _Node:
        parts = [self._both()]
        while self.tokens and self.tokens[0] in ("-o", "-or"):
            self.tokens.pop(0)
            parts.append(self._both())
        if len(parts) == 1:
            return parts[0]
        return _Node("or", parts=tuple(parts))

    def _both(self) -> _Node:
        parts = [self._single()]
        while self.tokens and self.tokens[0] not in ("-o", "-or", ")"):
            if self.tokens[0] in ("-a", "-and"):
                self.tokens.pop(0)
            parts.append(self._single())
        if len(parts) == 1:
            return parts[0]
        return _Node("and", parts=tuple(parts))

    def _single(self) -> _Node:
        if not self.tokens:
            raise Unknown("find expression that is not ended")
        token = self.tokens.pop(0)
        if token in ("!", "-not"):
            return _Node("not", parts=(self._single(),))
        if token == "(":
            node = self._either()
            if self.tokens[:1] != [")"]:
                raise Unknown("find without )")
            self.tokens.pop(0)
            return node
        name = token[1:]
        if name == "exec":
            return self._command()
        if not token.startswith("-") or name not in ONE_ARGUMENT | NO_ARGUMENT:
            raise Unknown(f"find {token}")
        self.has_action |= name in ACTIONS
        self.is_depth_first |= name in ("depth", "delete")
        if name not in ONE_ARGUMENT:
            return _Node("true" if name == "depth" else name)
        if not self.tokens:
            raise Failure(f"missing argument to `{token}'")
        argument = self.tokens.pop(0)
        if name in self.limits:
            self.limits[name] = int(argument)
            return _Node("true")
        return _Node(name, (argument,))

    def _command(self) -> _Node:
        """Read the words of ``-exec`` to their end."""
        ends = [place for place, word in enumerate(self.tokens) if self._ends_command(place, word)]
        if not ends:
            raise Failure("missing argument to `-exec'")
        self.has_action = True
        end = ends[0]
        words = tuple(self.tokens[:end])
        kind = "exec together"
        if self.tokens[end] == ";":
            kind = "exec"
        del self.tokens[: end + 1]
        return _Node(kind, words[:-1] if kind != "exec" else words)

    def _ends_command(self, place: int, word: str) -> bool:
        return word == ";" or (word == "+" and self.tokens[place - 1 : place] == ["{}"])


class _Find:
    """One run of find."""

    def __init__(self, call: Execution, parser: _FindParser, expression: _Node) -> None:
        self.call = call
        self.parser = parser
        self.expression = expression
        self.status = 0
        self.is_pruned = False
        self.has_quit = False
        self.together: dict[tuple[str, ...], list[str]] = {}

    def run(self, starts: list[str]) -> int:
        for start in starts:
            path = absolute(self.call, start)
            try:
                status = self.call.files.stat(path, follow=False)
            except FileError as error:
                message = f"'{start}': {error.problem}"
                complain(self.call, message)
                self.status = 1
                continue
            self._visit(ListedFile(start, path, status), 0)
        for words, names in self.together.items():
            if run_program(self.call, [*words, *names], b""):
                self.status = 1
        return self.status

    def _visit(self, entry: ListedFile, depth: int) -> None:
        if self.has_quit:
            return
        self.is_pruned = False
        limits = self.parser.limits
        is_depth_first = self.parser.is_depth_first
        is_tested = depth >= limits["mindepth"]
        if is_tested and not is_depth_first:
            self._test(entry)
        is_entered = depth < limits["maxdepth"] and not self.is_pruned
        if is_entered and entry.status.kind == FOLDER:
            for name in self.call.files.list(entry.path):
                child = self._child(entry, name)
                self._visit(child, depth + 1)
        if is_tested and is_depth_first:
            self._test(entry)

    def _child(self, entry: ListedFile, name: str) -> ListedFile:
        path = posixpath.join(entry.path, name)
        shown = posixpath.join(entry.name, name)
        status = self.call.files.stat(path, follow=False)
        return ListedFile(shown, path, status)

    def _test(self, entry: ListedFile) -> None:
        if self._holds(self.expression, entry) and not self.parser.has_action:
            self.call.out(entry.name + "\n")

    def _holds(self, node: _Node, entry: ListedFile) -> bool:
        if node.kind == "and":
            return all(self._holds(part, entry) for part in node.parts)
        if node.kind == "or":
            return any(self._holds(part, entry) for part in node.parts)
        if node.kind == "not":
            return not self._holds(node.parts[0], entry)
        if node.kind in ACTIONS or node.kind in ("true", "false", "prune"):
            return self._act(node, entry)
        return self._matches(node.kind, node.arguments, entry)

    def _act(self, node: _Node, entry: ListedFile) -> bool:
        if node.kind == "print":
            self.call.out(entry.name + "\n")
        elif node.kind == "print0":
            self.call.out(entry.name + "\0")
        elif node.kind == "printf":
            self.call.out(self._formatted(node.arguments[0], entry))
        elif node.kind == "prune":
            self.is_pruned = True
        elif node.kind == "quit":
            self.has_quit = True
        elif node.kind == "delete":
            return self._delete(entry)
        elif node.kind == "exec":
            words = [word.replace("{}", entry.name) for word in node.arguments]
            return run_program(self.call, words, b"") == 0
        elif node.kind == "exec together":
            self.together.setdefault(node.arguments, []).append(entry.name)
        return node.kind != "false"

    def _delete(self, entry: ListedFile) -> bool:
        if entry.name in (".", ".."):
            return True
        try:
            if entry.status.kind == FOLDER:
                self.call.files.remove_dir(entry.path, now=self.call.now)
            else:
                self.call.files.remove(entry.path, now=self.call.now)
        except FileError as error:
            message = f"cannot delete '{entry.name}': {error.problem}"
            complain(self.call, message)
            self.status = 1
            return False
        return True

    def _formatted(self, pattern: str, entry: ListedFile) -> str:
        status = entry.status
        values = {
            "%": "%",
            "p": entry.name,
            "f": posixpath.basename(entry.name) or entry.name,
            "h": posixpath.dirname(entry.name) or ".",
            "s": str(BLOCK if status.kind == FOLDER else status.size),
            "m": f"{status.mode:o}",
            "M": permissions(status.kind, status.mode),
            "y": status.kind,
            "l": status.target if status.kind == LINK else "",
        }

        def value(match: re.Match[str]) -> str:
            if match[1] in ("\\n", "\\t", "\\0"):
                return {"\\n": "\n", "\\t": "\t", "\\0": "\0"}[match[1]]
            letter = match[1][1:]
            if letter not in values:
                raise Unknown(f"find -printf {match[1]}")
            return values[letter]

        return re.sub(r"(%.|\\.)", value, pattern)

    def _matches(self, kind: str, arguments: tuple[str, ...], entry: ListedFile) -> bool:
        argument = ""
        if arguments:
            argument = arguments[0]
        shown = entry.name.rstrip("/")
        base = posixpath.basename(shown) or entry.name
        if kind in ("name", "iname"):
            return _is_glob_match(base, argument, ignores_case=kind == "iname")
        if kind in ("path", "ipath", "wholename"):
            return _is_glob_match(entry.name, argument, ignores_case=kind == "ipath")
        if kind == "type":
            return entry.status.kind in argument.split(",")
        if kind == "empty":
            return self._is_empty(entry)
        if kind == "size":
            return _is_size(entry, argument)
        if kind == "newer":
            path = absolute(self.call, argument)
            other = self.call.files.stat(path)
            return bool(entry.status.modified > other.modified)
        if kind in ("mtime", "mmin"):
            return self._is_age(entry, kind, argument)
        if kind == "perm" and re.fullmatch(r"-?[0-7]+", argument):
            wanted = int(argument.lstrip("-"), 8)
            mode = int(entry.status.mode)
            if argument.startswith("-"):
                return mode & wanted == wanted
            return mode == wanted
        if kind == "user" and argument in ("root", "0"):
            return True
        raise Unknown(f"find -{kind} {argument}")

    def _is_empty(self, entry: ListedFile) -> bool:
        if entry.status.kind == FOLDER:
            return not self.call.files.list(entry.path)
        return bool(entry.status.kind == REGULAR and entry.status.size == 0)

    def _is_age(self, entry: ListedFile, kind: str, argument: str) -> bool:
        self.call.reads_clock()
        age = (self.call.now - entry.status.modified).total_seconds()
        if kind == "mtime":
            return _compares(int(age // 86400), argument)
        if argument.startswith("+"):
            seconds = int(argument[1:]) * 60
            return age > seconds
        if argument.startswith("-"):
            seconds = int(argument[1:]) * 60
            return age < seconds
        minutes = -(-age // 60)
        return minutes == int(argument)


def _is_glob_match(text: str, glob: str, *, ignores_case: bool) -> bool:
    if ignores_case:
        text = text.lower()
        glob = glob.lower()
    return fnmatchcase(text, glob.replace("[^", "[!"))


def _is_size(entry: ListedFile, argument: str) -> bool:
    match = re.fullmatch(r"([-+]?\d+)([cwbkMG]?)", argument)
    if match is None:
        raise Failure(f"Invalid argument `{argument}' to -size")
    units = {
        "c": 1,
        "w": 2,
        "": 512,
        "b": 512,
        "k": 1024,
        "M": 1024**2,
        "G": 1024**3,
    }
    size = BLOCK
    if entry.status.kind != FOLDER:
        size = int(entry.status.size)
    return _compares(-(-size // units[match[2]]), match[1])


def _compares(number: int, argument: str) -> bool:
    if argument.startswith("+"):
        return number > int(argument[1:])
    if argument.startswith("-"):
        return number < int(argument[1:])
    return number == int(argument)


@program(
    *(f"-{name}=ARGUMENT" for name in sorted(ONE_ARGUMENT - {"user", "regex"})),
    *(f"-{name}" for name in sorted(NO_ARGUMENT)),
    "-user=root",
    "-exec=COMMAND ;",
    "-exec=COMMAND {} +",
    "! -not",
    "-a -and",
    "-o -or",
    "( )",
    style=ArgumentStyle(is_raw=True),
)
def find(call: Execution, options: Arguments) -> int:
    """Search for files below directories."""
    words = options.operands
    starts: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        starts.append(words.pop(0))
    parser = _FindParser(words)
    expression = parser.parse()
    return _Find(call, parser, expression).run(starts or ["."])
