"""klog's lines: a header with severity, time, process and place, a message, and values as
``key="value"``.

The place is the module and line of kubepy that does the work. Upstream: ``k8s.io/klog/v2``, ``-v``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import CodeType
from typing import TYPE_CHECKING

from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.clock import Clock

Value = str | int | bool | float | datetime | timedelta | list[str]


class Logger:
    """Writes lines up to a verbosity.

    :param verbosity: the value of ``-v``.
    :param write: takes a line without its end.
    :param clock: the time of the cluster.
    :param modules: the verbosity of single modules (``--vmodule``), by patterns of their names.
    """

    def __init__(
        self,
        verbosity: int,
        write: Callable[[str], None],
        clock: Clock,
        modules: Mapping[str, int] | None = None,
    ) -> None:
        self.verbosity = verbosity
        self._write = write
        self.clock = clock
        self._modules = dict(modules or {})

    @property
    def highest(self) -> int:
        """The verbosity above which nothing is written."""
        levels = self._modules.values()
        return max(self.verbosity, *levels, 0)

    def info(self, level: int, place: str, message: str, values: Mapping[str, Value]) -> None:
        """Write a line if the verbosity is as high as its level."""
        if level > self.verbosity and level > self.verbosity_of(place):
            return
        line = header("I", self.clock, place)
        line += f" {quote(message)}"
        for key, value in values.items():
            line += f" {key}={formatted(value)}"
        self._write(line)

    def verbosity_of(self, place: str) -> int:
        """Return the verbosity of the first pattern that matches the module of a place, else the
        general one."""
        if not self._modules:
            return self.verbosity
        from fnmatch import fnmatchcase

        path = place.rpartition(":")[0]
        module = path.removesuffix("/__init__.py").removesuffix(".py")
        names = module.split("/")
        for pattern, level in self._modules.items():
            if any(fnmatchcase(name, pattern) for name in names):
                return level
        return self.verbosity


def header(severity: str, clock: Clock, place: str) -> str:
    """Return the beginning of a line: ``I1122 17:42:05.123456   12345 deployment.go:598]``.

    Where time is the cluster's own, the number of the process is 1: lines repeat with their
    command.
    """
    process = 1 if clock.own else os.getpid()
    moment = f"{clock.now():%m%d %H:%M:%S.%f}"
    return f"{severity}{moment} {process:7} {place}]"


def place_of(code: CodeType) -> str:
    """Return the place of a function: ``job.py:31``, ``deployment/__init__.py:70``."""
    folder, name = os.path.split(code.co_filename)
    if name == "__init__.py":
        package = os.path.basename(folder)
        name = f"{package}/{name}"
    return f"{name}:{code.co_firstlineno}"


def go_duration(seconds: float) -> str:
    """Return a short time as Go prints it, down to microseconds: ``812µs``, ``1.25ms``,
    ``2.5s``."""
    if seconds < 0.001:
        microseconds = seconds * 1e6
        return f"{microseconds:.0f}µs"
    number, unit = (seconds * 1e3, "ms") if seconds < 1 else (seconds, "s")
    digits = f"{number:.3f}".rstrip("0").rstrip(".")
    return f"{digits}{unit}"


def formatted(value: Value) -> str:
    """Return a value as klog's KVFormat: numbers as they are, texts quoted, those of several lines
    as a block."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, datetime):
        return quote(f"{value:%Y-%m-%d %H:%M:%S.%f} +0000 UTC")
    if isinstance(value, timedelta):
        return quote(go_duration(value.total_seconds()))
    if isinstance(value, list):
        items = [quote(item) for item in value]
        joined = ",".join(items)
        return f"[{joined}]"
    if "\n" in value:
        block = value.removesuffix("\n").replace("\n", "\n\t")
        return f"<\n\t{block}\n >"
    return quote(value)
