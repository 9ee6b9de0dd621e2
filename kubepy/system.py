"""Functions of operating systems that some systems lack: owners and modes of files, links, locks,
limits of a process, signals, and ways to start processes.

Linux has all of them. Windows has no owners, no modes and no limits; macOS lacks a few calls;
WebAssembly (Pyodide) has neither processes nor threads. Every other module asks this one, and none
looks for the name of a system itself. docs/platforms.md says what users see of it.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

from kubepy.lazy import load

if TYPE_CHECKING:
    import asyncio
    import ctypes
    import socket

IS_WINDOWS = sys.platform == "win32"
HAS_PROCESSES = sys.platform not in ("emscripten", "wasi")
# Whether a file has an owner and modes that keep other users from reading it.
HAS_OWNERS = hasattr(os, "geteuid") or hasattr(os, "getuid")

# Numbers of Linux, for the processes of simulated containers.
SIGHUP, SIGINT, SIGQUIT = 1, 2, 3

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)  # Windows translates line ends without it
_COMMON = _NO_FOLLOW | _CLOSE_ON_EXEC | _BINARY
READ = os.O_RDONLY | _COMMON
READ_LINKED = os.O_RDONLY | _CLOSE_ON_EXEC | _BINARY  # through a symbolic link, too
READ_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # beside READ: a pipe gives what it has
READ_FOLDER = READ | getattr(os, "O_DIRECTORY", 0)
READ_LINKED_FOLDER = READ_LINKED | getattr(os, "O_DIRECTORY", 0)
WRITE = os.O_WRONLY | os.O_CREAT | _COMMON
WRITE_NEW = WRITE | os.O_EXCL
UPDATE = os.O_RDWR | _COMMON

_REPLACE_SECONDS = 2.0  # how long a reader of a file may keep Windows from replacing it
_REPLACE_PAUSE = 0.005


def _module(name: str) -> Any:
    """Return a module that some systems lack, None there."""
    try:
        return load(name)
    except ImportError:
        return None


# --- owners ---------------------------------------------------------------------------------------


def user_id() -> int:
    """Return the number of the user of this process; 0, which all files have, without owners."""
    for name in ("geteuid", "getuid"):
        if hasattr(os, name):
            return int(getattr(os, name)())
    return 0


def is_usable_folder(path: str) -> bool:
    """Return whether this user may make files in a folder."""
    is_effective = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK | os.X_OK, effective_ids=is_effective)


def is_open_to_others(mode: int) -> bool:
    """Return whether the modes of a file let other users read or change it, on a system with
    owners."""
    return HAS_OWNERS and bool(mode & 0o077)


# --- files ----------------------------------------------------------------------------------------


def sync_file(path: str) -> None:
    """Make the content of a file durable. Raises OSError."""
    _sync(path, UPDATE)


def sync_folder(path: str, *, linked: bool = True) -> None:
    """Make the entries of a folder durable; on Windows, where no folder can be opened, the system
    alone sees to that.

    :param linked: the path may be a symbolic link to the folder.

    Raises OSError.
    """
    if IS_WINDOWS:
        return
    _sync(path, READ_LINKED_FOLDER if linked else READ_FOLDER)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(folder: str) -> None:
    """Make everything on the file system of a folder durable: ``syncfs(2)``, or ``sync`` where the
    system has none.

    On Windows, which has neither, each file was made durable when it was written. Raises OSError.
    """
    library = c_library()
    syncfs = getattr(library, "syncfs", None)
    if syncfs is None or library is None:
        if hasattr(os, "sync"):
            os.sync()
        return
    ctypes = load("ctypes")
    descriptor = os.open(folder, READ_LINKED_FOLDER)
    try:
        if syncfs(descriptor) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
    finally:
        os.close(descriptor)


def can_sync_all() -> bool:
    """Return whether many files can be made durable at once, after they were written."""
    return hasattr(os, "sync")


def set_times(descriptor: int, path: str, ns: tuple[int, int]) -> None:
    """Set when an open file was read and changed last, in nanoseconds. Raises OSError."""
    if os.utime in os.supports_fd:
        os.utime(descriptor, ns=ns)
    else:
        os.utime(path, ns=ns)


def set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file, where files have one. Raises OSError."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)


def replace(source: str, target: str) -> None:
    """Give a file the name of another, which it replaces.

    Windows refuses that as long as somebody reads the other; such a reader is waited for. Raises
    OSError.
    """
    deadline = time.monotonic() + _REPLACE_SECONDS
    while True:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if not IS_WINDOWS or time.monotonic() > deadline:
                raise
        time.sleep(_REPLACE_PAUSE)


def name_new(source: str, target: str) -> None:
    """Give a finished file a name that is free, and keep its first name where the system can.

    Raises FileExistsError, OSError.
    """
    if hasattr(os, "link"):
        os.link(source, target)
    elif os.path.lexists(target):
        raise FileExistsError(target)
    else:
        os.rename(source, target)


def reserve(descriptor: int, size: int) -> None:
    """Give an open file so many bytes of the disk, which are zeros. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    missing = size - os.lseek(descriptor, 0, os.SEEK_END)
    while missing > 0:
        missing -= os.write(descriptor, bytes(min(missing, 1 << 16)))


def free_bytes(folder: str) -> float:
    """Return how much is free for this user on the disk of a folder, infinity where the disk does
    not tell. Raises OSError."""
    if not hasattr(os, "statvfs"):
        return float(load("shutil").disk_usage(folder).free)
    disk = os.statvfs(folder)
    if not disk.f_blocks:
        return inf
    return disk.f_frsize * (disk.f_bavail if user_id() else disk.f_bfree)


def is_locked(descriptor: int) -> bool | None:
    """Return whether another process holds the lock of an open file (``flock(2)``); None where
    that cannot be asked. The lock is this process's afterwards, if it is free. Raises OSError."""
    fcntl = _module("fcntl")
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def is_being_written(descriptor: int) -> bool:
    """Return whether somebody has an open file open for writing, as far as the system tells this
    user.

    Linux gives a lease for reading only where nobody has. It is given back at once. Should somebody
    open the file in between, the signal is one that is ignored by default, in place of SIGIO, which
    ends a process.
    """
    fcntl = _module("fcntl")
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    signal = load("signal")
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


# --- the process ----------------------------------------------------------------------------------


def c_library() -> ctypes.CDLL | None:
    """Return the C library that this process is linked to, None where there is none."""
    if not HAS_PROCESSES:
        return None
    try:
        library: ctypes.CDLL = load("ctypes").CDLL(None, use_errno=True)
    except (OSError, TypeError):  # Windows has none of this kind
        return None
    return library


def allow_open_files(count: int) -> None:
    """Raise the limit of open files of this process as far as it may."""
    resource = _module("resource")
    if resource is None:  # there is no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def limit_memory(size: int) -> None:
    """Give this process so many bytes of address space and no core file, where there are such
    limits."""
    resource = _module("resource")
    if resource is None:
        return
    for limit, wanted in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        if hard == resource.RLIM_INFINITY or wanted < hard:
            resource.setrlimit(limit, (wanted, wanted))


def limit_cpu(seconds: float) -> None:
    """End this process when it has used so many more seconds of CPU, where there is such a
    limit."""
    resource = _module("resource")
    if resource is None:
        return
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used + seconds) + 1
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def machine() -> tuple[str, str]:
    """Return the names of the operating system and of the processor, as ``uname`` prints them."""
    if hasattr(os, "uname"):
        names = os.uname()
        return names.sysname, names.machine
    platform = load("platform")
    return platform.system(), platform.machine()


def has_lost_reader(descriptor: int) -> bool:
    """Return whether the reader of a pipe is gone, as far as the system tells before a write."""
    select = load("select")
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def set_nonblocking(descriptor: int) -> None:
    """Let writes to a full pipe fail at once, where the system can."""
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, False)


def end_group(pid: int) -> None:
    """End a process that leads a session, and those that it has started in it. Raises
    ProcessLookupError."""
    signal = load("signal")
    if hasattr(os, "killpg"):
        os.killpg(pid, signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGTERM)  # on Windows that ends it at once


def is_end_by_cpu_limit(status: int) -> bool:
    """Return whether a process has ended by its limit of :func:`limit_cpu`."""
    signal = load("signal")
    number = getattr(signal, "SIGXCPU", None)
    return number is not None and status == -number


@contextmanager
def alarm(seconds: float, ring: Callable[[], None]) -> Iterator[None]:
    """Call a function, which may raise, in the main thread when a block takes longer; on a system
    without timers of signals nothing is called.

    The timer that was set before, pytest's for example, goes on after the block.
    """
    signal = load("signal")
    if not hasattr(signal, "setitimer"):
        yield
        return
    handler = signal.signal(signal.SIGALRM, lambda number, frame: ring())
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    start = time.monotonic()
    try:
        yield
    finally:
        if left:
            spent = time.monotonic() - start
            left = max(left - spent, 0.001)
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, handler)


def is_running(pid: int) -> bool:
    """Return whether there is a process of a number. Raises OverflowError."""
    if IS_WINDOWS:
        return _is_running_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True


def _is_running_on_windows(pid: int) -> bool:
    """Ask Windows, where ``os.kill`` would end the process."""
    ctypes = load("ctypes")
    query_limited_information, still_active = 0x1000, 259
    kernel: Any = getattr(ctypes, "windll").kernel32  # noqa: B009  # on Windows alone
    handle = kernel.OpenProcess(query_limited_information, False, pid)
    if not handle:
        return False
    status = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(status))
    kernel.CloseHandle(handle)
    return bool(status.value == still_active)


@contextmanager
def signals_in(
    loop: asyncio.AbstractEventLoop, numbers: Sequence[int], receive: Callable[[int], None]
) -> Iterator[None]:
    """Let a function of an event loop take signals for the length of a block."""
    signal = load("signal")
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            loop.add_signal_handler(number, receive, number)
    except NotImplementedError:  # Windows
        for number in numbers:
            signal.signal(number, lambda given, _: loop.call_soon_threadsafe(receive, given))
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def queued_to_send(descriptor: int) -> int:
    """Return how many bytes of a connection the other machine has not confirmed yet (``tcp(7)``),
    0 where the system does not tell. Raises OSError."""
    fcntl, termios = _module("fcntl"), _module("termios")
    if not hasattr(termios, "TIOCOUTQ"):
        return 0
    answer = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


def has_terminals() -> bool:
    """Return whether :func:`single_keys` can be had."""
    return _module("termios") is not None


@contextmanager
def single_keys(descriptor: int) -> Iterator[None]:
    """Let a terminal give each key as it is pressed, for the length of a block; what was typed
    before is dropped (``termios(3)``)."""
    termios, tty = load("termios"), load("tty")
    settings = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, settings)


def unix_socket() -> socket.socket:
    """Return a new socket of a path in the file system. Raises OSError where there are none."""
    sockets = load("socket")
    if not hasattr(sockets, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, "this system has no sockets in files")
    created: socket.socket = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    return created
