"""The state of the processes of a container: plain data with a JSON form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from kubepy.api.clock import format_micro_time, parse_time

Frame = list[Any]  # its kind, the script, the number of the node, how far it is, and what it holds

NULL, SINK, FILE, SOURCE, PIPE_END, PIPE_BEGIN = "null", "sink", "file", "source", "out", "in"
HUP, INT, QUIT, KILL, PIPE, TERM, CHLD, USR1 = 1, 2, 3, 9, 13, 15, 17, 10
SIGNALS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9,
    "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16,
    "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24,
    "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30, "SYS": 31,
}  # fmt: skip
SIGNAL_NAMES = {number: name for name, number in SIGNALS.items()}
LOOPS = ("loop", "for", "arithmetic_for")
IGNORED = frozenset({17, 18, 23, 28})  # signals that do nothing to a process that has no trap


@dataclass(slots=True)
class OpenFile:
    """An open file, which several processes may share.

    :ivar kind: ``null``; ``sink``: the standard output or error of a session (``stream``);
        ``file``: a file that is written at its end (``path``); ``source``: one that is read
        (``path``, ``offset``); ``in`` and ``out``: the writing and the reading end of a pipe.
    """

    kind: str
    path: str = ""
    offset: int = 0
    pipe: int = 0
    session: int = 0
    stream: str = ""

    def to_json(self) -> list[Any]:
        """Return the handle as JSON."""
        return [self.kind, self.path, self.offset, self.pipe, self.session, self.stream]

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        """Read what :meth:`to_json` has returned."""
        return cls(*value)


@dataclass(slots=True)
class Pipe:
    """Bytes that were written and not yet read.

    :ivar is_fed: somebody outside of the machine may write more.
    """

    data: bytes = b""
    is_fed: bool = False


@dataclass(slots=True)
class ShellState:
    """The state of a shell beside its frames.

    :ivar outer_loops: the loops around the subshell that it is.
    :ivar is_tested: it is a subshell within a condition, where ``set -e`` ends nothing.
    :ivar files: how many process substitutions there have been.
    """

    variables: dict[str, str] = field(default_factory=dict)
    exported: list[str] = field(default_factory=list)
    readonly: list[str] = field(default_factory=list)
    functions: dict[str, list[int]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    zero: str = "sh"
    args: list[str] = field(default_factory=list)
    options: str = ""
    pipefail: bool = False
    traps: dict[str, str] = field(default_factory=dict)
    jobs: list[int] = field(default_factory=list)
    last_job: int = 0
    main_pid: int = 0
    umask: int = 0o022
    getopts: list[int] = field(default_factory=lambda: [1, 0])
    has_braces: bool = False
    outer_loops: int = 0
    files: int = 0
    is_tested: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON, without what is usual."""
        usual = ShellState()
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value != getattr(usual, name)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` has returned."""
        return cls(**value)

    def copy(self) -> ShellState:
        """Return a copy for a subshell: traps are not inherited, but for ignored signals."""
        return ShellState(
            variables=dict(self.variables),
            exported=list(self.exported),
            readonly=list(self.readonly),
            functions=dict(self.functions),
            aliases=dict(self.aliases),
            zero=self.zero,
            args=list(self.args),
            options=self.options,
            pipefail=self.pipefail,
            traps={name: action for name, action in self.traps.items() if not action},
            main_pid=self.main_pid,
            umask=self.umask,
            getopts=list(self.getopts),
            has_braces=self.has_braces,
            files=self.files,
        )


@dataclass(slots=True)
class Block:
    """The reason why a process waits.

    :ivar kind: ``until`` (a moment), ``child`` (all of ``pids`` have ended), ``read`` (data or the
        end of handle ``handle``), ``end`` (the end of what it reads), ``write`` (room in a pipe),
        ``file`` (a change of the files after ``version``), ``never``.
    """

    kind: str
    moment: datetime | None = None
    pids: list[int] = field(default_factory=list)
    handle: int = 0
    version: int = 0

    def to_json(self) -> list[Any]:
        """Return the block as JSON."""
        moment = format_micro_time(self.moment) if self.moment else None
        return [self.kind, moment, self.pids, self.handle, self.version]

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        """Read what :meth:`to_json` has returned."""
        kind, moment, pids, handle, version = value
        return cls(
            kind,
            parse_time(moment) if moment else None,
            pids,
            handle,
            version,
        )


@dataclass(slots=True)
class Process:
    """A process: a shell or a program.

    :ivar session: the pid of the process that was started from outside, to whose output this one's
        belongs.
    :ivar handles: the numbers of its open files by descriptor.
    :ivar frames: the stack of what it does; none for one that has ended.
    :ivar code: the exit status once it has ended, with ``ended``.
    :ivar owner: the name of its user, where that is another one than the container's.
    """

    pid: int
    parent: int
    session: int
    argv: list[str]
    cwd: str
    shell: ShellState
    started: datetime
    handles: dict[int, int] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    status: int = 0
    block: Block | None = None
    signals: list[int] = field(default_factory=list)
    code: int | None = None
    signal: int = 0
    ended: datetime | None = None
    unknown_ends: float | None = None
    exiting: int | None = None
    is_unsteady: bool = False
    files_version: int = 0
    owner: str = ""

    @property
    def is_alive(self) -> bool:
        """Tell whether the process has not ended."""
        return self.code is None

    def to_json(self) -> dict[str, Any]:
        """Return the process as JSON."""
        return {
            "ids": [self.pid, self.parent, self.session],
            "argv": self.argv,
            "cwd": self.cwd,
            "shell": self.shell.to_json(),
            "started": format_micro_time(self.started),
            "handles": {str(number): handle for number, handle in self.handles.items()},
            "frames": self.frames,
            "status": self.status,
            "block": self.block.to_json() if self.block else None,
            "signals": self.signals,
            "end": [self.code, self.signal, format_micro_time(self.ended) if self.ended else None],
            "unknown_ends": self.unknown_ends,
            "exiting": self.exiting,
            "steady": [self.is_unsteady, self.files_version, self.owner],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` has returned."""
        pid, parent, session = value["ids"]
        code, signal, ended = value["end"]
        is_unsteady, files_version, *owner = value["steady"]
        return cls(
            pid,
            parent,
            session,
            value["argv"],
            value["cwd"],
            ShellState.from_json(value["shell"]),
            parse_time(value["started"]),
            handles={int(number): handle for number, handle in value["handles"].items()},
            frames=value["frames"],
            status=value["status"],
            block=Block.from_json(value["block"]) if value["block"] else None,
            signals=value["signals"],
            code=code,
            signal=signal,
            ended=parse_time(ended) if ended else None,
            unknown_ends=value["unknown_ends"],
            exiting=value["exiting"],
            is_unsteady=is_unsteady,
            files_version=files_version,
            owner="".join(owner),
        )


def loop_heights(frames: Sequence[Frame]) -> list[int]:
    """Return where the loops of a function, or of a script, are on the stack; the inner first."""
    heights = []
    for height in range(len(frames) - 1, -1, -1):
        kind = frames[height][0]
        if kind == "call":
            break
        if kind in LOOPS:
            heights.append(height)
    return heights
