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
from collections.abc import Callable, Mapping, Sequence
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
FOLDER = "folder"


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
        raise TranscriptError(
            f"{path}:{line}: not UTF-8: byte 0x{content[error.start]:02x}"
        ) from None
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
        end_of_steps = next(
            (index for index, line in enumerate(self._lines) if _FILE.fullmatch(line)),
            len(self._lines),
        )
        starts = [
            index for index, line in enumerate(self._lines[:end_of_steps]) if line.startswith("$ ")
        ]
        for index, line in enumerate(self._lines[: starts[0] if starts else end_of_steps]):
            if line.startswith(_SETTINGS):
                self._read_settings(index)
            elif line.strip() and not line.startswith("#"):
                raise self._error(index, "a command ($ …) or a comment (# …) must come first")

        if not starts:
            raise self._error(len(self._lines) - 1, "there is no command ($ …)")
        for start, end in zip(starts, [*starts[1:], end_of_steps], strict=True):
            self._read_step(start, end)
        self._read_files(end_of_steps)

    def _read_settings(self, index: int) -> None:
        try:
            words = shlex.split(self._lines[index].removeprefix(_SETTINGS))
        except ValueError as error:
            raise self._error(index, f"{_SETTINGS} {str(error).lower()}") from None
        for word in words:
            name, equals, value = word.partition("=")
            if name not in (*OPTIONS, *FILE_SETTINGS, FOLDER) or bool(equals) == (name == FOLDER):
                known = ", ".join([*(f"{known}=" for known in (*OPTIONS, *FILE_SETTINGS)), FOLDER])
                raise self._error(index, f"unknown setting {word!r}: must be one of {known}")
            self.settings[name] = value

    def _read_step(self, start: int, end: int) -> None:
        first = start + 1
        while first < end and self._lines[first].startswith("> "):
            first += 1
        command = "\n".join(
            [self._lines[start][2:], *(line[2:] for line in self._lines[start + 1 : first])]
        )
        if not command.strip():
            raise self._error(start, "a command must follow the $")
        last = end
        while last > first and (
            not self._lines[last - 1].strip() or self._lines[last - 1].startswith("#")
        ):
            last -= 1

        while last < end and self._lines[last].strip():  # comments only behind an empty line
            last += 1
        expected = tuple(
            _ESCAPED.sub(lambda match: match[0][1:], line, count=1)
            if line.startswith("\\")
            else line
            for line in self._lines[first:last]
        )
        self.steps.append(TranscriptStep(command, start + 1, first, expected))

    def _read_files(self, index: int) -> None:
        name = ""
        content: dict[str, list[str]] = {}
        for number, line in enumerate(self._lines[index:], index):
            if match := _FILE.fullmatch(line):
                name = match[1]
                if name in content:
                    raise self._error(number, f"the file {name} is there already")
                if name.startswith("/") or ".." in name.split("/"):
                    raise self._error(
                        number, f"the file {name} is outside the folder of the transcript"
                    )
                content[name] = []
            else:
                content[name].append(line)

        self.files = {name: "\n".join([*lines, ""]) for name, lines in content.items()}

    def _error(self, index: int, message: str) -> TranscriptError:
        return TranscriptError(f"{self._path}:{index + 1}: {message}")


# --- comparing ------------------------------------------------------------------------------------


def rendered(stdout: str, stderr: str, status: int) -> list[str]:
    """Return the lines of a transcript for what a command printed; empty ones at the end are
    dropped."""
    errors = [f"! {line}".rstrip() for line in _lines(stderr)]
    lines = [*_lines(stdout), *errors, *([f"[{status}]"] if status else [])]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.removesuffix("\n").split("\n")] if text else []


def line_matcher(expected: Sequence[str]) -> Callable[[str, str], bool]:
    """Return the test whether a line is as expected; blanks at its end never count.

    Placeholders stand in for texts of other lengths: among lines with any, two or more blanks match
    each other.
    """
    if not any(map(_PLACEHOLDER.search, expected)):
        return lambda expected, printed: expected.rstrip() == printed
    return lambda expected, printed: bool(_pattern(expected.rstrip()).fullmatch(printed))


@lru_cache(maxsize=4096)
def _pattern(expected: str) -> re.Pattern[str]:
    parts = re.split(rf"({_PLACEHOLDER.pattern}| {{2,}})", expected)
    start = rf"(?!{_SPECIAL.pattern})" if expected.startswith(ANY_LINES) else ""
    return re.compile(start + "".join(map(_part_pattern, parts)))


def _part_pattern(part: str) -> str:
    if part in PLACEHOLDERS:
        return f"(?:{PLACEHOLDERS[part]})"
    return " {2,}" if part.startswith("  ") else re.escape(part)


def aligned(expected: Sequence[str], printed: Sequence[str]) -> list[tuple[str, str]]:
    """Return the lines of both with marks: ``" "`` for an expected line that matches, ``-`` for one
    that does not, and ``+`` for a printed line that was not expected. As many expected lines as
    possible match.

    A line of ``...`` matches only if the line behind it does.
    """
    n, m = len(expected), len(printed)
    matches = line_matcher(expected)
    # The best continuation from each pair of positions: its score, the mark of its first line, and
    # how many printed lines that line stands for. Filled from the end.
    best: list[list[tuple[float, str, int]]] = [[(0.0, "", 0)] * (m + 1) for _ in range(n + 1)]
    for i in range(n, -1, -1):
        for j in range(m, -1, -1):
            choices: list[tuple[float, str, int]] = []
            if i < n and expected[i].strip() == ANY_LINES:
                special = next((end for end in range(j, m) if _SPECIAL.match(printed[end])), m)
                ends = (
                    end
                    for end in range(j, special + 1)
                    if (i + 1 == n and end == m)
                    or (i + 1 < n and end < m and matches(expected[i + 1], printed[end]))
                )
                choices += [
                    (1 - 0.001 * (end - j) + best[i + 1][end][0], " ", end - j) for end in ends
                ]
            elif i < n and j < m and matches(expected[i], printed[j]):
                choices.append((1 + best[i + 1][j + 1][0], " ", 1))
            if i < n:
                choices.append((best[i + 1][j][0] - 0.01, "-", 0))
            if j < m:
                choices.append((best[i][j + 1][0] - 0.01, "+", 1))
            if choices:
                best[i][j] = max(choices, key=lambda choice: choice[0])

    lines: list[tuple[str, str]] = []
    i = j = 0
    while i < n or j < m:
        _, mark, count = best[i][j]
        lines.append((mark, printed[j] if mark == "+" else expected[i]))
        i, j = i + (mark != "+"), j + count

    return lines


def is_as_expected(step: TranscriptStep, printed: Sequence[str]) -> bool:
    """Return whether a step printed what is expected."""
    expected = step.expected
    if len(expected) == len(printed) and all(map(line_matcher(expected), expected, printed)):
        return True
    return ANY_LINES in map(str.strip, expected) and all(
        mark == " " for mark, _ in aligned(expected, printed)
    )


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
    return f"\\{line}" if re.match(r"\\*(?:[$#>]|--) ", line) else line


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
        name: value for name, value in settings.items() if name not in FILE_SETTINGS
    }
    if others := {name: settings[name] for name in FILE_SETTINGS if name in settings}:
        result["settings"] = others
    if "nodes" in result and isinstance(result["nodes"], str):
        if not result["nodes"].isdecimal():
            raise ValueError(f"nodes={result['nodes']}: must be a number")
        result["nodes"] = int(result["nodes"])

    if result.get("clock") == "system":
        result["clock"] = None
    if result.get("seed") == "random":
        result["seed"] = None
    elif isinstance(result.get("seed"), str) and re.fullmatch(r"-?\d+", result["seed"]):
        result["seed"] = int(result["seed"])

    return result
