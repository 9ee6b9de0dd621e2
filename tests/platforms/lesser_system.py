"""Take from this process what Windows and macOS lack, before kubepy is imported.

``python -m tests.platforms.lesser_system WORDS`` runs a command line of kubepy so;
``--lines`` runs those of the standard input, one after the other in one process, and
``--import-all`` imports every module of the package, and prints those that cannot be imported.
"""

from __future__ import annotations

import multiprocessing.connection  # before AF_UNIX goes: on Windows it does not look for it
import multiprocessing.reduction
import os
import pkgutil
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType

MODULES = frozenset({"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "inotify_simple"})
OS_NAMES = (
    "O_CLOEXEC",
    "O_DIRECTORY",
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "chown",
    "fchmod",
    "fork",
    "geteuid",
    "getgid",
    "getuid",
    "killpg",
    "posix_fallocate",
    "pwrite",
    "sched_getaffinity",
    "set_blocking",
    "statvfs",
    "sync",
    "uname",
)
SIGNAL_NAMES = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGALRM", "setitimer")


class Refusal(MetaPathFinder):
    """A finder that says of MODULES that there are none, whoever asks."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def take_away() -> None:
    """Remove modules, functions and constants from this process."""
    for name in MODULES:
        sys.modules.pop(name, None)
    usage = shutil.disk_usage("/")
    sys.meta_path.insert(0, Refusal())
    for module, names in ((os, OS_NAMES), (signal, SIGNAL_NAMES), (socket, ("AF_UNIX",))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for supported in (os.supports_fd, os.supports_dir_fd, os.supports_effective_ids):
        supported.clear()
    multiprocessing.reduction.HAVE_SEND_HANDLE = False  # then there is no forkserver
    shutil.disk_usage = lambda path: usage  # type: ignore[assignment]
    import ctypes

    ctypes.CDLL = refuse_library  # type: ignore[assignment,misc]


def refuse_library(name: str | None, **options: object) -> None:
    """Refuse as Windows does for no name. Raises TypeError."""
    raise TypeError("bad argument type for built-in operation")


def import_libraries() -> None:
    """Import libraries that ask for the name of the system, and so need what this one has.

    filelock has a lock of its own for Windows, which ends with its process as this one does: it
    keeps the whole of ``os``.
    """
    import filelock  # noqa: F401

    whole = ModuleType("os")
    whole.__dict__.update(os.__dict__)
    for name, module in list(sys.modules.items()):
        if name.startswith("filelock") and hasattr(module, "os"):
            module.os = whole  # type: ignore[attr-defined]


def import_extras() -> None:
    """Import the libraries of the package's extras that ask for the name of the system."""
    for name in ("mcp.server.stdio", "uvicorn.server"):
        with suppress(ImportError):
            import_module(name)


def unimportable() -> list[str]:
    """Return the modules of kubepy that cannot be imported, each with the reason."""
    import kubepy

    problems = []
    for module in pkgutil.walk_packages(kubepy.__path__, "kubepy."):
        if module.name.endswith("__main__"):
            continue
        try:
            import_module(module.name)
        except Exception as error:
            problems.append(f"{module.name}: {error!r}")
    return problems


def main(words: list[str]) -> int:
    """Run a command line, or import all modules; returns the exit status."""
    import_libraries()
    if words == ["--import-all"]:
        import_extras()
    take_away()
    if words == ["--import-all"]:
        problems = unimportable()
        print("\n".join(problems))
        return bool(problems)
    return run_lines() if words == ["--lines"] else run_words(words)


def run_words(words: list[str]) -> int:
    """Run a command line."""
    from kubepy.cli.main import main as run

    return run(words, program="kubepy", stderr=sys.stdout)


def run_lines() -> int:
    """Run the command lines of the standard input, each after a line that shows it, until one
    fails."""
    for line in sys.stdin:
        print(f"$ {line.rstrip()}")
        if status := run_words(line.split()):
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
