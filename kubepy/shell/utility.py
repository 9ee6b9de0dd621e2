"""The form of a program that is not one of the shell's own words.

A utility is a function of an :class:`Execution` that returns an exit status. It takes no time: it
gets all of its standard input, and what it prints is there at once. A program that takes time, or
that must read while others write, raises :class:`Delay` or is one of the machine's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kubepy.shell.files import FileSystem
from kubepy.shell.surroundings import Surroundings

# A process: its pid, its parent's, its user's number or name, and its command line.
ListedProcess = tuple[int, int, int | str, str]


class Unknown(Exception):
    """An option or a construct that the model does not know: the whole program is unknown then."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Delay(Exception):
    """A program that goes on for some seconds before it ends as it says.

    :ivar seconds: the time that it takes from now.
    :ivar status: its exit status then. What it has printed by now is there at once; ``out`` and
        ``err`` come at its end.
    """

    def __init__(self, seconds: float, status: int, *, out: bytes = b"", err: bytes = b"") -> None:
        super().__init__(f"{seconds} s")
        self.seconds = seconds
        self.status = status
        self.out = out
        self.err = err


@dataclass(slots=True)
class Execution:
    """One call of a program.

    :ivar name: the word that it was called by, without a folder.
    :ivar args: the words after it.
    :ivar stdin: all of standard input.
    :ivar user: the number of the user, 0 for root.
    :ivar group: the number of the user's primary group.
    :ivar groups: the numbers of further groups.
    :ivar has_busybox: the programs of the image are those of busybox.
    :ivar random: returns a number from 0 to 1 that is a function of the machine's seed.
    :ivar run: runs another program with its arguments and input, and returns its exit status, what
        it printed and its errors: for ``xargs``, ``find -exec``, ``timeout``. Raises Unknown.
    :ivar processes: the processes, for ``ps``.
    """

    name: str
    args: list[str]
    stdin: bytes
    env: dict[str, str]
    cwd: str
    files: FileSystem
    now: datetime
    hostname: str
    surroundings: Surroundings
    user: int = 0
    group: int = 0
    groups: Sequence[int] = ()
    has_busybox: bool = False
    pid: int = 1
    random: Callable[[], float] = lambda: 0.5
    run: Callable[[list[str], bytes], tuple[int, bytes, bytes]] | None = None
    processes: list[ListedProcess] = field(default_factory=list)
    started: datetime | None = None
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    is_steady: bool = True

    def out(self, text: str | bytes) -> None:
        """Print to standard output."""
        self.stdout += text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    def err(self, text: str | bytes) -> None:
        """Print to standard error."""
        self.stderr += text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    def reads_clock(self) -> None:
        """Note that the program looked at the time: it may say something else next time."""
        self.is_steady = False

    def reads_network(self) -> None:
        """Note that the program looked at the network."""
        self.is_steady = False


Utility = Callable[[Execution], int]
