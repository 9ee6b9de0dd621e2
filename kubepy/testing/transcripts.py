"""The format of transcripts (``*.kubepy.txt``), their comparison with what commands print, and
their update.

A transcript holds what a terminal showed, and the files that its commands read::

    # Undo a rollout.                     a comment; also before a later command, behind an empty line
    # kubepy: nodes=3 seed=7              settings of the cluster
    $ kubectl apply -f web.yaml           a command; lines that begin with "> " continue it
    deployment.apps/web created           what it prints on standard output
    ! Warning: …                          what it prints on standard error
    [1]                                   its exit status, where it is not 0
    -- web.yaml --                        a file, up to the next such line or the end

``...`` in an expected line stands for any text, a line of nothing else for any number of lines, but
not of standard error or for an exit status; ``<age>``, ``<time>``, ``<uid>``, ``<ip>``, ``<hash>``
and ``<rand>`` for one value of that form. A backslash before ``$ ``, ``# ``, ``> `` and ``-- `` at
the beginning of an expected line makes it output.
"""  # noqa: E501

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

ANY_LINES = "..."
PLACEHOLDERS = {
    "...": ".*",
    "<age>": r"(?:\d+(?:ms|[smhdy]))+",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
    r"|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
    "<uid>": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "<ip>": r"\d{1,3}(?:\.\d{1,3}){3}",
    "<hash>": "[456789bcdf]{6,10}",
    "<rand>": "[bcdfghjklmnpqrstvwxz2456789]{5}",
}
_PLACEHOLDER = re.compile("|".join(map(re.escape, PLACEHOLDERS)))
_ESCAPED = re.compile(r"\\+(?=(?:[$#>]|--) )")
_FILE = re.compile(r"-- (\S.*?) --")
_SPECIAL = re.compile(
    r"! |\[\d+\]$"
)  # standard error and the exit status, for which a line of ... does not stand
_SETTINGS = "# kubepy:"
OPTIONS = ("nodes", "clock", "seed")
FILE_SETTINGS = ("bootstrap", "reconcile")  # those of kubepy.yaml that are one word
CONTAINERS = "containers"  # the one of them that is within another: of kubelet
FOLDER = "folder"
_WITH_VALUES = (*OPTIONS, *FILE_SETTINGS, CONTAINERS)


class TranscriptError(Exception):
    """A transcript cannot be read. The message names the file and the line."""


class TranscriptStep(NamedTuple):
    """A command of a transcript, and the lines expected from it.

    :ivar line: the number of the command's line, from 1.
    :ivar start: the index of the first expected line in the file.
    """

    command: str
    line: int
    start: int
    expected: tuple[str, ...]


class Transcript(NamedTuple):
    """A transcript that was read: its lines as they are, and their meaning."""

    path: Path
    lines: Sequence[str]
    settings: Mapping[str, str]
    steps: Sequence[TranscriptStep]
    files: Mapping[str, str]


class StepDifference(NamedTuple):
    """A step that printed something else: the lines that it printed."""

    step: TranscriptStep
    printed: Sequence[str]


# --- reading --------------------------------------------------------------------------------------


def read(path: Path) -> Transcript:
    """Read a transcript. Raises TranscriptError."""
    content = path.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong_byte = content[error.start]
        message = f"{path}:{line}: not UTF-8: byte 0x{wrong_byte:02x}"
        raise TranscriptError(message) from None
    lines = text.removesuffix("\n").split("\n")
    reader = _Reader(path, [line.removesuffix("\r") for line in lines])
    reader.read()
    return Transcript(path, lines, reader.settings, reader.steps, reader.files)


class _Reader:
    """Reads the lines of a transcript one after another."""

    def __init__(self, path: Path, lines: Sequence[str]) -> None:
        self._path = path
        self._lines = lines
        self.settings: dict[str, str] = {}
        self.steps: list[TranscriptStep] = []
        self.files: dict[str, str] = {}

    def read(self) -> None:
        """Read settings, steps and files. Raises TranscriptError."""
        end_of_steps = self._start_of_files()
        starts = []
        for index in range(end_of_steps):
            if self._lines[index].startswith("$ "):
                starts.append(index)
            elif not starts:
                self._read_heading(index)

        if not starts:
            raise self._error(len(self._lines) - 1, "there is no command ($ …)")
        ends = [*starts[1:], end_of_steps]
        for start, end in zip(starts, ends, strict=True):
            self._read_step(start, end)
        self._read_files(end_of_steps)

    def _start_of_files(self) -> int:
        """Return the index of the first line that begins a file, or that of the end."""
        for index, line in enumerate(self._lines):
            if _FILE.fullmatch(line):
                return index
        return len(self._lines)

    def _read_heading(self, index: int) -> None:
        """Read a line before the first command: settings, a comment, or an empty one."""
        line = self._lines[index]
        if line.startswith(_SETTINGS):
            self._read_settings(index)
        elif line.strip() and not line.startswith("#"):
            raise self._error(index, "a command ($ …) or a comment (# …) must come first")

    def _read_settings(self, index: int) -> None:
        try:
            words = shlex.split(self._lines[index].removeprefix(_SETTINGS))
        except ValueError as error:
            raise self._error(index, f"{_SETTINGS} {str(error).lower()}") from None
        for word in words:
            name, equals, value = word.partition("=")
            known = (FOLDER,) if not equals else _WITH_VALUES
            if name not in known:
                settings = [f"{setting}=" for setting in _WITH_VALUES]
                settings.append(FOLDER)
                message = f"unknown setting {word!r}: must be one of {', '.join(settings)}"
                raise self._error(index, message)
            self.settings[name] = value

    def _read_step(self, start: int, end: int) -> None:
        first = start + 1
        while first < end and self._lines[first].startswith("> "):
            first += 1
        words = [line[2:] for line in self._lines[start:first]]
        command = "\n".join(words)
        if not command.strip():
            raise self._error(start, "a command must follow the $")
        last = end
        while last > first and self._is_comment_or_empty(last - 1):
            last -= 1

        while last < end and self._lines[last].strip():  # comments only behind an empty line
            last += 1
        expected = tuple(map(_unescaped, self._lines[first:last]))
        step = TranscriptStep(command, start + 1, first, expected)
        self.steps.append(step)

    def _is_comment_or_empty(self, index: int) -> bool:
        line = self._lines[index]
        return not line.strip() or line.startswith("#")

    def _read_files(self, index: int) -> None:
        name = ""
        content: dict[str, list[str]] = {}
        for number, line in enumerate(self._lines[index:], index):
            match = _FILE.fullmatch(line)
            if match is None:
                content[name].append(line)
                continue
            name = match[1]
            if name in content:
                raise self._error(number, f"the file {name} is there already")
            if name.startswith("/") or ".." in name.split("/"):
                message = f"the file {name} is outside the folder of the transcript"
                raise self._error(number, message)
            content[name] = []

        self.files = {name: "\n".join([*lines, ""]) for name, lines in content.items()}

    def _error(self, index: int, message: str) -> TranscriptError:
        number = index + 1
        return TranscriptError(f"{self._path}:{number}: {message}")


def _unescaped(line: str) -> str:
    """Return the output that a line expects: a backslash before what else had a meaning goes."""
    if not line.startswith("\\"):
        return line
    return _ESCAPED.sub(lambda match: match[0][1:], line, count=1)


# --- comparing ------------------------------------------------------------------------------------


def rendered(stdout: str, stderr: str, status: int) -> list[str]:
    """Return the lines of a transcript for what a command printed; empty ones at the end are
    dropped."""
    lines = _lines(stdout)
    for line in _lines(stderr):
        lines.append(f"! {line}".rstrip())
    if status:
        lines.append(f"[{status}]")
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _lines(text: str) -> list[str]:
    if not text:
        return []
    lines = text.removesuffix("\n").split("\n")
    return [line.rstrip() for line in lines]


def line_matcher(expected: Sequence[str]) -> Callable[[str, str], bool]:
    """Return the test whether a line is as expected; blanks at its end never count.

    Placeholders stand in for texts of other lengths: among lines with any, two or more blanks match
    each other.
    """
    if any(_PLACEHOLDER.search(line) for line in expected):
        return _matches_pattern
    return _is_equal


def _is_equal(expected: str, printed: str) -> bool:
    return expected.rstrip() == printed


def _matches_pattern(expected: str, printed: str) -> bool:
    pattern = _pattern(expected.rstrip())
    return pattern.fullmatch(printed) is not None


@lru_cache(maxsize=4096)
def _pattern(expected: str) -> re.Pattern[str]:
    pattern = ""
    if expected.startswith(ANY_LINES):
        pattern = rf"(?!{_SPECIAL.pattern})"
    for part in re.split(rf"({_PLACEHOLDER.pattern}| {{2,}})", expected):
        pattern += _pattern_of_part(part)
    return re.compile(pattern)


def _pattern_of_part(part: str) -> str:
    """Return the pattern of a placeholder, of two or more blanks, or of a text."""
    if part in PLACEHOLDERS:
        return f"(?:{PLACEHOLDERS[part]})"
    if part.startswith("  "):
        return " {2,}"
    return re.escape(part)


def aligned(expected: Sequence[str], printed: Sequence[str]) -> list[tuple[str, str]]:
    """Return the lines of both with marks: ``" "`` for an expected line that matches, ``-`` for one
    that does not, and ``+`` for a printed line that was not expected. As many expected lines as
    possible match.

    A line of ``...`` matches only if the line behind it does.
    """
    best = _continuations(expected, printed)
    lines: list[tuple[str, str]] = []
    i = j = 0
    while i < len(expected) or j < len(printed):
        choice = best[i][j]
        if choice.mark == "+":
            lines.append(("+", printed[j]))
        else:
            lines.append((choice.mark, expected[i]))
            i += 1
        j += choice.printed

    return lines


class _Choice(NamedTuple):
    """The best continuation from a pair of positions.

    :ivar score: higher is better.
    :ivar mark: that of its first line.
    :ivar printed: how many printed lines that line stands for.
    """

    score: float
    mark: str
    printed: int


def _continuations(expected: Sequence[str], printed: Sequence[str]) -> list[list[_Choice]]:
    """Return the best continuation from each pair of positions, filled from the end."""
    matches = line_matcher(expected)
    width = len(printed) + 1
    nothing_left = _Choice(0.0, "", 0)
    rows = [[nothing_left] * width for _ in range(len(expected) + 1)]
    for i in reversed(range(len(rows))):
        row = rows[i]
        for j in reversed(range(width)):
            choices: list[_Choice] = []
            if i < len(expected):
                below = rows[i + 1]
                choices += _choices_of_line(expected[i : i + 2], printed, j, below, matches)
                choices.append(_Choice(below[j].score - 0.01, "-", 0))
            if j < len(printed):
                right = row[j + 1]
                choices.append(_Choice(right.score - 0.01, "+", 1))
            if choices:
                row[j] = max(choices, key=_score_of)
    return rows


def _score_of(choice: _Choice) -> float:
    return choice.score


def _choices_of_line(
    expected: Sequence[str],
    printed: Sequence[str],
    start: int,
    below: Sequence[_Choice],
    matches: Callable[[str, str], bool],
) -> Iterator[_Choice]:
    """Yield the ways in which an expected line matches printed ones from ``start`` on.

    :param expected: the line, and the one behind it where there is one.
    :param below: the best continuations behind the line.
    """
    line, *behind = expected
    if line.strip() == ANY_LINES:
        for end in _ends_of_any_lines(behind, printed, start, matches):
            count = end - start
            score = 1 - 0.001 * count + below[end].score
            yield _Choice(score, " ", count)
    elif start < len(printed) and matches(line, printed[start]):
        continuation = below[start + 1]
        yield _Choice(1 + continuation.score, " ", 1)


def _ends_of_any_lines(
    behind: Sequence[str],
    printed: Sequence[str],
    start: int,
    matches: Callable[[str, str], bool],
) -> Iterator[int]:
    """Yield the positions to which a line of ``...`` may reach from ``start``.

    :param behind: the expected line behind it, where there is one: a position is that of a line
        that matches it, else the end.
    """
    for end in range(start, len(printed)):
        line = printed[end]
        if behind and matches(behind[0], line):
            yield end
        if _SPECIAL.match(line):
            return
    if not behind:
        yield len(printed)


def is_as_expected(step: TranscriptStep, printed: Sequence[str]) -> bool:
    """Return whether a step printed what is expected."""
    expected = step.expected
    if len(expected) == len(printed):
        matches = line_matcher(expected)
        if all(map(matches, expected, printed)):
            return True
    if not any(line.strip() == ANY_LINES for line in expected):
        return False
    return all(mark == " " for mark, _ in aligned(expected, printed))


# --- updating -------------------------------------------------------------------------------------


def updated(transcript: Transcript, differences: Sequence[StepDifference]) -> str:
    """Return the text of a transcript that expects what was printed. Expected lines that match stay
    as they are."""
    lines = list(transcript.lines)
    for step, printed in reversed(differences):
        index, new = step.start, []
        for mark, line in aligned(step.expected, printed):
            if mark == "+":
                new.append(_escaped(line))
                continue
            if mark == " ":
                new.append(lines[index])
            index += 1
        lines[step.start : index] = new
    return "\n".join(lines) + "\n"


def replace(path: Path, text: str) -> None:
    """Replace the text of a file, whole or not at all. Raises OSError."""
    target = path.resolve()
    new = target.with_name(f".{target.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        shutil.copymode(target, new)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _escaped(line: str) -> str:
    """Return a printed line as a transcript has it."""
    if re.match(r"\\*(?:[$#>]|--) ", line):
        return f"\\{line}"
    return line


def report(transcript: Transcript, differences: Sequence[StepDifference], path: str) -> str:
    """Return the steps that differ, each as a diff below its command.

    :param path: of the transcript, as it is to be printed.
    """
    parts = []
    for step, printed in differences:
        parts.append(f"{path}:{step.line}: $ {step.command}")
        parts += [f"{mark} {line}".rstrip() for mark, line in aligned(step.expected, printed)]
    count = len(differences)
    parts.append(
        f"{count} of {len(transcript.steps)} commands printed something else (-: expected, +: "
        f"printed)"
    )
    return "\n".join(parts)


def cluster_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a transcript or of ini options as :meth:`Cluster.temporary` takes
    them.

    ``clock=system`` is the system's time, ``seed=random`` no seed. Raises ValueError.
    """
    result: dict[str, Any] = {
        name: value for name, value in settings.items() if name not in (*FILE_SETTINGS, CONTAINERS)
    }
    of_file = {name: settings[name] for name in FILE_SETTINGS if name in settings}
    if CONTAINERS in settings:
        of_file["kubelet"] = {CONTAINERS: settings[CONTAINERS]}
    if of_file:
        result["settings"] = of_file
    nodes = result.get("nodes")
    if isinstance(nodes, str):
        if not nodes.isdecimal():
            raise ValueError(f"nodes={nodes}: must be a number")
        result["nodes"] = int(nodes)

    if result.get("clock") == "system":
        result["clock"] = None
    seed = result.get("seed")
    if seed == "random":
        result["seed"] = None
    elif isinstance(seed, str) and re.fullmatch(r"-?\d+", seed):
        result["seed"] = int(seed)

    return result
