"""The programs grep, egrep and fgrep."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import (
    absolute,
    from_argument,
    lines_of,
    read_file,
    to_bytes,
    to_text,
)
from kubepy.shell.utilities.patterns import (
    BadPattern,
    Pattern,
    PatternMatch,
    compile_pattern,
    fixed_pattern,
)
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, complain, program
from kubepy.shell.utility import Execution, Unknown

PERL_ONLY = re.compile(r"\\[pPXRKQE]|\(\?[|R&P>]|\[\[:")
WORD = re.compile(r"\w", re.ASCII)

OPTIONS = (
    "-E,--extended-regexp",
    "-F,--fixed-strings",
    "-G,--basic-regexp",
    "-P,--perl-regexp",
    "-e,--regexp=PATTERNS",
    "-f,--file=FILE",
    "-i,-y,--ignore-case",
    "-v,--invert-match",
    "-w,--word-regexp",
    "-x,--line-regexp",
    "-c,--count",
    "-l,--files-with-matches",
    "-L,--files-without-match",
    "-m,--max-count=NUM",
    "-o,--only-matching",
    "-q,--quiet,--silent",
    "-s,--no-messages",
    "-b,--byte-offset",
    "-H,--with-filename",
    "-h,--no-filename",
    "-n,--line-number",
    "-A,--after-context=NUM",
    "-B,--before-context=NUM",
    "-C,--context=NUM",
    "-r,--recursive",
    "-R,--dereference-recursive",
    "-a,--text",
    "-z,--null-data",
    "-Z,--null",
    "--color,--colour[=WHEN]",
    "--line-buffered",
    "--include=GLOB",
    "--exclude=GLOB",
)


class _PerlPattern:
    """An expression of ``grep -P``, as far as Python reads it in the same way."""

    def __init__(self, source: str, *, ignore_case: bool) -> None:
        if PERL_ONLY.search(source):
            raise Unknown(f"grep -P {source}")
        flags = re.ASCII | (re.IGNORECASE if ignore_case else 0)
        try:
            self._compiled = re.compile(source, flags)
        except re.error as error:
            raise Unknown(f"grep -P {source}") from error
        self.groups = self._compiled.groups

    def search(self, text: str, start: int = 0) -> PatternMatch | None:
        match = self._compiled.search(text, start)
        if match:
            return PatternMatch((match.span(),), text)
        return None


class _Selection:
    """The lines that the patterns of one call select."""

    def __init__(self, patterns: list[str], options: Arguments, kind: str) -> None:
        self.is_inverted = options.has("v")
        self.words = options.has("w")
        self.whole_lines = options.has("x")
        self.patterns = _compile(patterns, kind, ignore_case=options.has("i"))

    def selects(self, line: str) -> bool:
        """Tell whether a line is one of those that are asked for."""
        is_matched = any(True for _ in self.found(line))
        return is_matched != self.is_inverted

    def found(self, line: str) -> Iterator[PatternMatch]:
        """Yield the matches in a line, the longest where several patterns match."""
        position = 0
        while position <= len(line):
            candidates = [
                match for pattern in self.patterns if (match := self._next(pattern, line, position))
            ]
            if not candidates:
                return
            best = min(candidates, key=lambda match: (match.start, -match.end))
            yield best
            position = best.end if best.end > best.start else best.end + 1

    def _next(self, pattern: Pattern, line: str, position: int) -> PatternMatch | None:
        while position <= len(line):
            match = pattern.search(line, position)
            if match is None:
                return None
            if self._is_accepted(match, line):
                return match
            position = match.start + 1
        return None

    def _is_accepted(self, match: PatternMatch, line: str) -> bool:
        if self.whole_lines:
            return match.start == 0 and match.end == len(line)
        if not self.words:
            return True
        before = ""
        if match.start:
            before = line[match.start - 1 : match.start]
        after = line[match.end : match.end + 1]
        return not WORD.match(before) and not WORD.match(after)


def _compile(patterns: list[str], kind: str, *, ignore_case: bool) -> list[Pattern]:
    if kind == "P":
        return [_PerlPattern(pattern, ignore_case=ignore_case) for pattern in patterns]
    if kind == "F":
        return [fixed_pattern([pattern], ignore_case=ignore_case) for pattern in patterns]
    try:
        return [
            compile_pattern(pattern, extended=kind == "E", ignore_case=ignore_case)
            for pattern in patterns
        ]
    except BadPattern as error:
        message = str(error)
        if message.startswith("Unmatched ["):
            message = "Invalid regular expression"
        raise Failure(message, 2) from error


class _Search:
    """One run of grep."""

    def __init__(self, call: Execution, options: Arguments, kind: str) -> None:
        self.call = call
        self.options = options
        self.operands = list(options.operands)
        patterns = self._patterns()
        if options.has("x") and kind in "EG":
            grouped = "\\({}\\)"
            if kind == "E":
                grouped = "({})"
            patterns = [grouped.format(pattern) for pattern in patterns]
        self.selection = _Selection(patterns, options, kind)
        self.before = self._context("B")
        self.after = self._context("A")
        self.terminator = "\n"
        if options.has("z"):
            self.terminator = "\0"
        self.name_end = ""
        if options.has("Z"):
            self.name_end = "\0"
        self.is_matched = False
        self.has_failed = False

    def _patterns(self) -> list[str]:
        texts = [from_argument(text) for text in self.options.all("e")]
        for name in self.options.all("f"):
            try:
                content = read_file(self.call, name)
            except FileError as error:
                message = f"{name}: {error.problem}"
                raise Failure(message, 2) from error
            texts += [to_text(line) for line in lines_of(content)]
        if not self.options.has("e", "f"):
            if not self.operands:
                usage = f"Usage: {self.call.name} [OPTION]... PATTERNS [FILE]..."
                message = f"{usage}\nTry '{self.call.name} --help' for more information.\n"
                self.call.err(message)
                raise Failure("", 2)
            texts = [from_argument(self.operands.pop(0))]
        return [pattern for text in texts for pattern in text.split("\n")]

    def _context(self, key: str) -> int:
        text = self.options.get(key) or self.options.get("C") or "0"
        if not text.isdigit():
            raise Failure(f"{text}: invalid context length argument", 2)
        return int(text)

    def run(self) -> int:
        is_recursive = self.options.has("r", "R")
        usual_name = "-"
        if is_recursive:
            usual_name = "."
        names = self.operands or [usual_name]
        shows_names = self.options.last_of("H", "h")
        has_names = is_recursive or len(names) > 1
        if shows_names:
            has_names = shows_names == "H"
        has_context = self.options.has("A", "B", "C")
        self.has_printed_group = False
        for name in names:
            for path, data in self._files(name, is_recursive=is_recursive):
                self._search_file(
                    path,
                    data,
                    has_names=has_names,
                    has_context=has_context,
                )
                if self.is_matched and self.options.has("q"):
                    return 0
        if self.has_failed and not (self.is_matched and self.options.has("q")):
            return 2
        if self.is_matched:
            return 0
        return 1

    def _files(self, name: str, *, is_recursive: bool) -> Iterator[tuple[str, bytes]]:
        path = absolute(self.call, name)
        if is_recursive and name != "-" and self.call.files.is_dir(path):
            is_default = not self.operands
            yield from self._below("" if is_default else name, path)
            return
        try:
            yield name, read_file(self.call, name)
        except FileError as error:
            self._complain(name, error.problem)

    def _below(self, shown: str, path: str) -> Iterator[tuple[str, bytes]]:
        for entry in sorted(self.call.files.list(path)):
            child = posixpath.join(path, entry)
            child_shown = entry
            if shown:
                child_shown = posixpath.join(shown, entry)
            if self.call.files.is_dir(child):
                yield from self._below(child_shown, child)
            elif self._is_included(entry) and self.call.files.is_file(child):
                yield child_shown, self.call.files.read(child)

    def _is_included(self, entry: str) -> bool:
        included = self.options.all("include")
        excluded = self.options.all("exclude")
        if any(fnmatchcase(entry, glob) for glob in excluded):
            return False
        return not included or any(fnmatchcase(entry, glob) for glob in included)

    def _complain(self, name: str, problem: str) -> None:
        self.has_failed = True
        if not self.options.has("s") or problem == "Is a directory":
            message = f"{name}: {problem}"
            complain(self.call, message)

    def _search_file(self, name: str, data: bytes, *, has_names: bool, has_context: bool) -> None:
        shown = name
        if name == "-":
            shown = "(standard input)"
        text = to_text(data)
        lines = text.split(self.terminator)
        if lines[-1] == "":
            lines.pop()
        numbers = self._selected(lines)
        is_found = bool(numbers)
        if self.options.has("L"):
            self.is_matched |= not is_found
        else:
            self.is_matched |= is_found
        if self.options.has("q"):
            return
        if self.options.has("l", "L"):
            wants_found = self.options.last_of("l", "L") == "l"
            if is_found == wants_found:
                end = self.name_end or "\n"
                self.call.out(shown + end)
            return
        if self.options.has("c"):
            prefix = ""
            if has_names:
                prefix = f"{shown}{self.name_end or ':'}"
            line = f"{prefix}{len(numbers)}\n"
            self.call.out(line)
            return
        if is_found and "\0" in text and not self.options.has("a", "z"):
            self.call.out(f"grep: {shown}: binary file matches\n")
            return
        title = ""
        if has_names:
            title = shown
        self._print(lines, numbers, title, has_context=has_context)

    def _selected(self, lines: list[str]) -> list[int]:
        limit = self.options.get("m")
        most = int(limit) if limit else len(lines)
        numbers: list[int] = []
        for number, line in enumerate(lines):
            if len(numbers) >= most:
                break
            if self.selection.selects(line):
                numbers.append(number)
        return numbers

    def _print(self, lines: list[str], numbers: list[int], name: str, *, has_context: bool) -> None:
        offsets = self._offsets(lines) if self.options.has("b") else []
        is_limited = self.options.has("m")
        last_printed = -1
        for number in numbers:
            start = max(number - self.before, last_printed + 1)
            is_apart = last_printed < 0 or start > last_printed + 1
            has_group_before = self.has_printed_group or last_printed >= 0
            if has_context and is_apart and has_group_before:
                self.call.out("--\n")
            self.has_printed_group = True
            for context in range(start, number):
                self._print_line(
                    lines,
                    context,
                    "-",
                    name,
                    offsets,
                )
            self._print_line(
                lines,
                number,
                ":",
                name,
                offsets,
            )
            last_printed = number
            following = self._following(numbers, number, len(lines), is_limited=is_limited)
            for context in range(number + 1, following):
                self._print_line(
                    lines,
                    context,
                    "-",
                    name,
                    offsets,
                )
                last_printed = context

    def _following(self, numbers: list[int], number: int, count: int, *, is_limited: bool) -> int:
        """Return where the context after a line ends, or the next selected line begins."""
        end = min(number + 1 + self.after, count)
        later = [other for other in numbers if other > number]
        if later:
            return min(end, later[0])
        return end

    def _offsets(self, lines: list[str]) -> list[int]:
        offsets = [0]
        for line in lines:
            offsets.append(offsets[-1] + len(line) + 1)
        return offsets

    def _print_line(
        self, lines: list[str], number: int, mark: str, name: str, offsets: list[int]
    ) -> None:
        line = lines[number]
        prefix = ""
        if name:
            prefix = f"{name}{self.name_end or mark}"
        if self.options.has("n"):
            prefix += f"{number + 1}{mark}"
        if not self.options.has("o"):
            if offsets:
                prefix += f"{offsets[number]}{mark}"
            content = to_bytes(line + self.terminator)
            self.call.out(prefix.encode() + content)
            return
        if mark == "-" or self.selection.is_inverted:
            return
        for match in self.selection.found(line):
            if match.end > match.start:
                place = ""
                if offsets:
                    place = f"{offsets[number] + match.start}{mark}"
                lead = prefix + place
                content = to_bytes(match.group(0) + self.terminator)
                self.call.out(lead.encode() + content)


@program(*OPTIONS, style=ArgumentStyle(usage_status=2, old_count="-C"))
def grep(call: Execution, options: Arguments) -> int:
    """Print lines that match patterns."""
    return _Search(call, options, options.last_of("E", "F", "G", "P") or "G").run()


@program(*OPTIONS, style=ArgumentStyle(usage_status=2, old_count="-C"))
def egrep(call: Execution, options: Arguments) -> int:
    """Search as ``grep -E``."""
    return _Search(call, options, "E").run()


@program(*OPTIONS, style=ArgumentStyle(usage_status=2, old_count="-C"))
def fgrep(call: Execution, options: Arguments) -> int:
    """Search as ``grep -F``."""
    return _Search(call, options, "F").run()
