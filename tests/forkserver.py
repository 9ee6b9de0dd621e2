"""kubepy's program as forks of a process that has imported it: for tests of what commands do, not
of how they start.

A fresh ``kubepy get`` spends three quarters of its time on Python's start and on imports. The
program of a :class:`ForkServer` is a script that sends its words, environment, working directory
and standard streams to the server, which forks for each. The fork runs ``kubepy.cli.program.run``
as a fresh process does, and nothing that another command left in memory is there. Signals go on to
the fork; its exit status, or the signal that ended it, comes back.

The three streams must be open. Tests of the start itself (``called_as``, locales, closed streams,
what a command imports) run the real program.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
# Modules of the standard library that are built in, so that the script starts in the time of a bare
# Python.
SCRIPT = """#!{python} -IS
import _signal, _socket, marshal, posix, sys
connection = _socket.socket(_socket.AF_UNIX)
connection.connect({address!r})
call = marshal.dumps((sys.argv, posix.environ))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, posix.open(".", posix.O_RDONLY)))
connection.sendmsg([len(call).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
connection.sendall(call)
process = int.from_bytes(connection.recv(4), "big")
for number in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM):
    _signal.signal(number, lambda number, frame: posix.kill(process, number))
status = int.from_bytes(connection.recv(4), "big", signed=True)
if status < 0:
    if -status != _signal.SIGKILL:
        _signal.signal(-status, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -status)
posix._exit(status)
"""  # noqa: E501


class ForkServer:
    """A process that forks for each call of ``program``.

    :ivar folder: holds the program alone, for a PATH.
    :ivar program: the path of a script that does what ``kubepy`` does.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "kubepy"
        self._socket_folder = tempfile.mkdtemp(
            prefix="kubepy-"
        )  # short: a socket's path has at most 107 bytes
        address = os.path.join(self._socket_folder, "socket")
        self.program.write_text(SCRIPT.format(python=sys._base_executable, address=address))
        self.program.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forkserver", address],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def is_idle(self) -> bool:
        """Return whether no call is at work."""
        process = self._process.pid
        return not Path(f"/proc/{process}/task/{process}/children").read_text()

    def close(self) -> None:
        """End the server, which ends its forks."""
        self._process.communicate()
        os.rmdir(self._socket_folder)


def import_program() -> None:
    """Import all that commands import, and put it out of reach of the garbage collector, which
    would copy its pages. Commands that change an object of the store raise TypeError."""
    import kubepy
    from kubepy.storage import frozen

    frozen.is_on = True
    for module in pkgutil.walk_packages(kubepy.__path__, "kubepy."):
        if not module.name.startswith(("kubepy.server", "kubepy.testing", "kubepy.__main__")):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


class Server:
    """The loop of the forking process: accepts calls, and passes exit statuses back."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._callers: dict[int, socket.socket] = {}  # by the process that runs the call
        self._ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake)
        self._poll = select.poll()
        for descriptor in (self._listener.fileno(), self._ended, sys.stdin.fileno()):
            self._poll.register(descriptor, select.POLLIN)

    def run(self) -> None:
        """Serve until stdin ends."""
        print("ready", flush=True)
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == sys.stdin.fileno():
                    return self._close()
                if descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor == self._ended:
                    os.read(self._ended, 4096)
                else:  # the caller has been killed
                    [process] = [
                        process
                        for process, caller in self._callers.items()
                        if caller.fileno() == descriptor
                    ]
                    os.kill(process, signal.SIGKILL)
                    self._poll.unregister(descriptor)
            self._return_statuses()

    def _accept(self) -> None:
        caller, _ = self._listener.accept()
        process = os.fork()
        if process == 0:
            run_call(caller)
        self._callers[process] = caller
        self._poll.register(caller, 0)  # tells only that the other end is closed
        with suppress(OSError):
            caller.sendall(process.to_bytes(4, "big"))

    def _return_statuses(self) -> None:
        while self._callers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            with self._callers.pop(process) as caller:
                with suppress(KeyError):
                    self._poll.unregister(caller)
                with suppress(OSError):
                    caller.sendall(
                        os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True)
                    )

    def _close(self) -> None:
        for process in self._callers:
            os.kill(process, signal.SIGKILL)
        os.unlink(self._listener.getsockname())


def run_call(caller: socket.socket) -> None:
    """Run a command line in place of its caller, and end this process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, descriptors, _, _ = socket.recv_fds(caller, 4, 4)
    call: tuple[list[str], dict[bytes, bytes]] = marshal.loads(
        receive(caller, int.from_bytes(head, "big"))
    )
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.fchdir(descriptors[3])
    os.closerange(3, max(*descriptors, caller.fileno()) + 1)
    sys.argv[:] = call[0]
    os.environb.clear()
    os.environb.update(call[1])
    time.tzset()
    sys.stdin, sys.stdout, sys.stderr = (open_stream(number) for number in range(3))
    from kubepy.cli.program import run

    status: Any = 1
    try:
        status = run()
    except SystemExit as error:
        status = error.code or 0
    finally:
        sys.stdout.flush()
        os._exit(status)


def receive(caller: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += caller.recv(size - len(data))
    return data


def open_stream(number: int) -> Any:
    """Open a standard stream as Python does at its start."""
    if number == 0:
        return open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    return open(
        number,
        "w",
        encoding="utf-8",
        errors="surrogateescape" if number == 1 else "backslashreplace",
        closefd=False,
        buffering=1 if number == 2 or os.isatty(number) else -1,
    )


if __name__ == "__main__":
    import_program()
    Server(sys.argv[1]).run()
