"""Processes that are killed between two calls that change something.

A process is forked from this one, with the code loaded. In it, the functions of ``os`` and the
statements of SQLite that change a file count down; at zero the process ends as ``kill -9`` ends it:
nothing is flushed, no ``finally`` runs, locks are released.
"""

from __future__ import annotations

import builtins
import io
import os
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kubepy.storage.folder import renames
from kubepy.storage.folder.files import StateFolder
from kubepy.storage.folder.store import FolderStore

KILLED = 137
FAILED = 3
NEVER = 1 << 60
CHANGING = (
    "utime",
    "replace",
    "rename",
    "link",
    "symlink",
    "unlink",
    "remove",
    "mkdir",
    "rmdir",
    "truncate",
    "ftruncate",
    "chmod",
    "fchmod",
)
_ACKNOWLEDGED, _DONE, _KILLED_AT, _FAILED = b"a", b"d", b"k", b"f"


class Death(NamedTuple):
    """The end of a process: killed or not, its acknowledged transactions, the call at which it was
    killed.

    ``error`` is the traceback of work that failed by itself, ``ticks`` the number of calls of work
    that ended.
    """

    killed: bool
    acknowledged: int
    done: bool
    at: str
    error: str
    ticks: int


class Killer:
    """A counter that lets a number of changing calls happen, then kills the process; only used in a
    forked child.

    :param report: a descriptor to which the process writes before it dies.
    """

    def __init__(self, after: int, report: int) -> None:
        self.after = after
        self.count = 0
        self._report = report
        self._write = os.write

    def tick(self, call: str) -> None:
        if self.is_due():
            self.die(call)
        self.count += 1

    def is_due(self) -> bool:
        return self.count == self.after

    def die(self, call: str) -> None:
        self.say(_KILLED_AT, call)
        os._exit(KILLED)

    def say(self, word: bytes, text: str = "") -> None:
        self._write(self._report, word + text.encode(errors="replace").replace(b"\0", b"?") + b"\0")

    def arm(self) -> None:
        """Replace the functions that change files by counting ones. Nothing is synced: a killed
        process loses nothing that the kernel has."""
        os.fsync = os.fdatasync = lambda descriptor: None
        StateFolder.sync_all = lambda folder: None  # type: ignore[method-assign]
        for name in CHANGING:
            setattr(os, name, self._counted(f"os.{name}", getattr(os, name)))
        renames.renameat2 = self._counted("renameat2", renames.renameat2)
        self._arm_open()
        self._arm_write()
        self._arm_sqlite()

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            self.tick(f"{name} {_words(arguments)}")
            return function(*arguments, **options)

        return run

    def _arm_open(self) -> None:
        real_os_open, real_open = os.open, builtins.open

        def os_open(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
                self.tick(f"os.open {path}")
            return real_os_open(path, flags, *arguments, **options)

        def open_file(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+"):
                return real_open(file, mode, *arguments, **options)
            self.tick(f"open {file}")
            return CountedFile(real_open(file, mode, *arguments, **options), self)

        os.open = os_open  # type: ignore[assignment]
        builtins.open = io.open = open_file  # type: ignore[assignment]

    def _arm_write(self) -> None:
        real = os.write

        def write(descriptor: int, data: bytes) -> int:
            self.tick("os.write")
            if self.is_due() and len(data) > 1:
                real(descriptor, data[: len(data) // 2])
                self.die("os.write, half of it")
            self.count += 1
            return real(descriptor, data)

        os.write = write

    def _arm_sqlite(self) -> None:
        killer, real = self, sqlite3.connect

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                return super().execute(
                    "PRAGMA synchronous = OFF" if "synchronous =" in sql else sql, *parameters
                )

            def close(self) -> None:
                killer.tick("close of the index")
                super().close()

        def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = real(*arguments, **{"factory": Connection, **options})
            if arguments[0] != ":memory:":
                connection.set_trace_callback(StatementCounter(killer))
            return connection

        sqlite3.connect = connect  # type: ignore[assignment]


class StatementCounter:
    """A counter of one connection's statements that change something, including the end of their
    transaction."""

    def __init__(self, killer: Killer) -> None:
        self._killer = killer
        self._is_writing = False

    def __call__(self, statement: str) -> None:
        word = statement.lstrip().partition(" ")[0].rstrip(";").upper()
        if word in ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER"):
            self._is_writing = True
        elif word in ("COMMIT", "ROLLBACK", "END") and self._is_writing:
            self._is_writing = False
        elif "IMMEDIATE" not in statement[:20] and "journal_mode" not in statement:
            return
        self._killer.tick(f"SQLite {statement[:80]}")


class CountedFile:
    """A file opened for writing by ``open``; data in its buffer is lost with the process."""

    def __init__(self, file: Any, killer: Killer) -> None:
        self._file = file
        self._killer = killer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> CountedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def flush(self) -> None:
        self._killer.tick(f"flush of {self._file.name}")
        self._file.flush()

    def close(self) -> None:
        if not self._file.closed:
            self._killer.tick(f"close of {self._file.name}")
        self._file.close()


def _words(arguments: tuple[Any, ...]) -> str:
    return " ".join(argument for argument in arguments if isinstance(argument, str))


def acknowledge_transactions(acknowledge: Callable[[], None]) -> None:
    """Call a function after each transaction of a store, and after the creation of a cluster."""
    transaction, initialize = FolderStore._transaction, FolderStore.initialize

    @contextmanager
    def acknowledged(self: FolderStore, **options: Any) -> Iterator[Any]:
        with transaction(self, **options) as opened:
            yield opened
        acknowledge()

    def initialized(folder: Any, settings: Any) -> None:
        initialize(folder, settings)
        acknowledge()

    FolderStore._transaction = acknowledged  # type: ignore[method-assign]
    FolderStore.initialize = initialized  # type: ignore[method-assign,assignment]


def in_child(run: Callable[[int], None]) -> tuple[int, bytes]:
    """Run a function in a forked child with a descriptor to write to; return its exit status and
    output.

    An exception in the child ends it with FAILED and its traceback as the last thing written.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        write = os.write
        try:
            os.close(reading)
            run(writing)
            os._exit(0)
        except BaseException:
            write(
                writing, _FAILED + traceback.format_exc().encode(errors="replace")[-4000:] + b"\0"
            )
            os._exit(FAILED)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()
    except BaseException:
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said


def run_killed(after: int, work: Callable[[], None]) -> Death:
    """Run work in a process that is killed before its changing call number ``after``, counted from
    0."""

    def run(report: int) -> None:
        killer = Killer(after, report)
        acknowledge_transactions(lambda: killer.say(_ACKNOWLEDGED))
        killer.arm()
        work()
        killer.say(_DONE, str(killer.count))

    status, said = in_child(run)
    words = [
        (message[:1], message[1:].decode(errors="replace"))
        for message in said.split(b"\0")
        if message
    ]
    texts = dict(words)
    error = texts.get(_FAILED, "" if status in (0, KILLED) else f"ended with {status}")
    return Death(
        status == KILLED,
        sum(word == _ACKNOWLEDGED for word, _ in words),
        _DONE in texts,
        texts.get(_KILLED_AT, ""),
        error,
        int(texts.get(_DONE, "0")),
    )
