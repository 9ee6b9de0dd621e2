"""The bounds of a process that runs other people's command lines on this machine.

:mod:`kubepy.cli.mcp.permitted` decides which command lines run. This holds where that has a
mistake, and where a manifest asks for more than its command line shows (a kustomization names
addresses and other folders, a webhook has a URL): an audit hook of Python (PEP 578), which cannot
be taken out again, refuses to start programs, to reach the network, and to open files but those of
the cluster, of the call and of Python itself.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any

import kubepy
from kubepy import system
from kubepy.cli.mcp.permitted import RefusedError

MEMORY = 4 * 1024**3  # bytes of address space
PROGRAMS = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    }
)
# Audit events with the number of the arguments that are paths which are changed.
CHANGES = {
    "os.chmod": 1,
    "os.chown": 1,
    "os.link": 2,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.utime": 1,
    "shutil.rmtree": 1,
}
LISTS = frozenset({"os.listdir", "os.scandir", "glob.glob"})
LOOKUPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
# Files of the system that Python or a library reads by itself.
SYSTEM_FILES = (
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/etc/localtime",
    "/usr/lib/zoneinfo",
    "/usr/share/zoneinfo",
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
NO_NETWORK = "this server asks no other machine"


class Sandbox:
    """The limits of a process, which hold from :meth:`close` on.

    :param readable: folders and files that may be read.
    :param writable: folders in which files may be changed as well.
    :param endpoints: hosts and ports that may be reached: those of the etcd that holds the cluster.
    """

    def __init__(
        self,
        readable: Iterable[str],
        writable: Iterable[str],
        endpoints: Iterable[tuple[str, int]] = (),
    ) -> None:
        self._writable = _roots(writable)
        self._readable = (*_roots([*readable, *_python_folders(), *SYSTEM_FILES]), *self._writable)
        self._hosts = {host for host, _ in endpoints}
        self._addresses = set(endpoints) | set(_resolved(endpoints))
        self._checks: dict[str, Callable[[tuple[Any, ...]], None]] = {
            "open": self._check_open,
            "socket.bind": self._refuse_port,
            "socket.connect": self._check_connection,
            "socket.sendmsg": self._check_connection,
            "socket.sendto": self._check_connection,
            "sqlite3.connect": self._check_database,
            **dict.fromkeys(PROGRAMS, _refuse_program),
            **dict.fromkeys(LISTS, self._check_listing),
            **dict.fromkeys(LOOKUPS, self._check_lookup),
        }

    def close(self) -> None:
        """Put the limits into force, for the rest of the process."""
        system.limit_memory(MEMORY)
        sys.addaudithook(self._check)

    def _check(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise an error for an event that is not allowed."""
        check = self._checks.get(event)
        if check is not None:
            check(arguments)
        elif (count := CHANGES.get(event)) is not None:
            for path in arguments[:count]:
                self._require(path, self._writable)

    # --- files

    def _check_open(self, arguments: tuple[Any, ...]) -> None:
        path, mode, flags = arguments
        writes = bool(flags & WRITING)
        if isinstance(mode, str):
            writes = writes or any(letter in mode for letter in "wax+")
        self._require(path, self._writable if writes else self._readable)

    def _check_listing(self, arguments: tuple[Any, ...]) -> None:
        self._require(arguments[0], self._readable)

    def _check_database(self, arguments: tuple[Any, ...]) -> None:
        path = os.fsdecode(arguments[0]).removeprefix("file:").partition("?")[0]
        if path not in ("", ":memory:"):
            self._require(path, self._writable)

    def _require(self, path: Any, roots: tuple[str, ...]) -> None:
        """Raise PermissionError unless a path is below one of the roots. A number is a file that is
        open already."""
        if isinstance(path, int):
            return
        name = os.fsdecode(path if path is not None else ".")
        if name in SYSTEM_FILES:
            return
        real = os.path.realpath(name)
        if not any(real == root or real.startswith(f"{root}{os.sep}") for root in roots):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    # --- the network

    def _check_connection(self, arguments: tuple[Any, ...]) -> None:
        """Allow the addresses of etcd, and data on a connection that is open."""
        address = arguments[1] if len(arguments) > 1 else None
        if address is None:
            return
        if not isinstance(address, tuple) or address[:2] not in self._addresses:
            raise PermissionError(errno.EACCES, NO_NETWORK)

    def _check_lookup(self, arguments: tuple[Any, ...]) -> None:
        host = arguments[0]
        if host is not None and host not in self._hosts:
            raise socket.gaierror(socket.EAI_FAIL, NO_NETWORK)

    def _refuse_port(self, arguments: tuple[Any, ...]) -> None:
        raise PermissionError(errno.EACCES, "this server opens no ports")


def _refuse_program(arguments: tuple[Any, ...]) -> None:
    raise RefusedError("this server starts no programs")


def _roots(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if path))


def _python_folders() -> list[str]:
    """Return the folders from which Python imports."""
    own = os.path.dirname(kubepy.__file__)
    libraries = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]
    return [own, *libraries]


def _resolved(endpoints: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the addresses of hosts; none for a host that has none now."""
    addresses = []
    for host, port in endpoints:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            continue
        addresses += [(str(entry[4][0]), port) for entry in found]
    return addresses
