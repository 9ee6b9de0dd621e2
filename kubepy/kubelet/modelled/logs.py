"""The logs of the containers whose processes are modelled: small values of the cluster, a run each.

A kubelet rotates a log at 10 MiB and shows the newest file; here a log keeps its last 256 KiB.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import format_micro_time, parse_time

LOG = "log/"  # the small value of a run's log: this, the pod's uid, the container, the run
LONGEST = 256 * 1024  # characters
LAST_LINES, LAST_BYTES = 80, 2048  # of a log that stands for a termination message


class PrintedText(NamedTuple):
    """The output of a process at a moment: whole lines, but for the last."""

    time: datetime
    stream: str
    text: str


def log_name(uid: str, container: str, run: int) -> str:
    """Return the name of the value that holds a log."""
    return f"{LOG}{uid}/{container}/{run}"


def parse_log(text: str | None) -> list[PrintedText]:
    """Read a log."""
    if text is None:
        return []
    return [PrintedText(parse_time(time), stream, part) for time, stream, part in json.loads(text)]


def dump_log(entries: list[PrintedText]) -> str:
    """Return a log as text, in ASCII: lone surrogates stand for bytes that are no UTF-8. Of one
    that is too long the end is returned."""
    length = 0
    kept: list[list[str]] = []
    for entry in reversed(entries):
        length += len(entry.text)
        if length > LONGEST and kept:
            break
        kept.append([format_micro_time(entry.time), entry.stream, entry.text])
    return json.dumps(kept[::-1], separators=(",", ":"))


def join_output(entries: list[PrintedText], output: list[tuple[datetime, str, bytes]]) -> None:
    """Append what was printed; parts of one line are put together, with the time of its begin."""
    for time, stream, data in output:
        text = data.decode("utf-8", "surrogateescape")
        last = entries[-1] if entries else None
        if (last is not None and last.stream == stream and not last.text.endswith("\n")) or (
            last is not None and last.stream == stream and last.time == time
        ):
            entries[-1] = last._replace(text=last.text + text)
        else:
            entries.append(PrintedText(time, stream, text))


def last_lines(entries: list[PrintedText]) -> str:
    """Return the end of a log, as valid text."""
    data = "".join(entry.text for entry in entries).encode("utf-8", "surrogateescape")
    text = data.decode("utf-8", "replace")
    lines = text.splitlines(keepends=True)[-LAST_LINES:]
    return "".join(lines)[-LAST_BYTES:]


class LogStore:
    """Reads and writes logs.

    :param value: returns a small value of the cluster by its name, or None.
    :param set_value: sets one; None removes it.
    """

    def __init__(
        self, value: Callable[[str], str | None], set_value: Callable[[str, str | None], object]
    ) -> None:
        self._value = value
        self._set_value = set_value

    def read(self, uid: str, container: str, run: int) -> list[PrintedText]:
        """Return the log of a run."""
        return parse_log(self._value(log_name(uid, container, run)))

    def append(
        self, uid: str, container: str, run: int, output: list[tuple[datetime, str, bytes]]
    ) -> None:
        """Append to the log of a run. What is older than the log's last line is in it already: a
        program of which the log was imported is run again from its begin."""
        entries = self.read(uid, container, run)
        if entries:
            output = [part for part in output if part[0] >= entries[-1].time]
        join_output(entries, output)
        self._set_value(log_name(uid, container, run), dump_log(entries))

    def remove(self, uid: str, container: str, run: int) -> None:
        """Remove the log of a run."""
        name = log_name(uid, container, run)
        if self._value(name) is not None:
            self._set_value(name, None)
