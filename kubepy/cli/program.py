"""The ``kubepy`` program. Imports are inside the handler of Ctrl-C, so that it never shows a
traceback.

Through a link named ``kubectl`` it is kubectl in every word. kubectl itself runs ``kubectl-kubepy``
as a plugin, and asks ``kubectl_complete-kubepy`` to complete the plugin's words
(``kubectl/pkg/cmd/plugin/plugin_completion.go``).
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from kubepy.cli.names import KUBECTL, KUBEPY, PLUGIN

# Objects of Python between two searches for cycles of unused ones (gc.set_threshold). Commands make
# many objects and hardly any such cycle: with Python's own 700, listing 25,000 pods takes twice the
# time.
GC_THRESHOLDS = (200_000, 20, 10)

# What the first word of a process stands for: the program's name in messages, and the words before
# the given ones.
_CALLED: dict[str, tuple[str, list[str]]] = {
    "kubectl": (KUBECTL, []),
    "kubectl-kubepy": (PLUGIN, []),
    "kubectl_complete-kubepy": (PLUGIN, ["__complete"]),
}


def run() -> int:
    """Run the process's own command line, and end the process; returns the exit status where it
    cannot end yet."""
    gc.set_threshold(*GC_THRESHOLDS)
    return leave(run_words())


def leave(status: int) -> int:
    """End the process without taking apart all that it has loaded, which takes a fifth of the time
    of ``get``.

    What is registered for the end of the process runs. Returns the status if other threads or a
    profiler are at work.
    """
    threading = sys.modules.get("threading")
    if sys.getprofile() or sys.gettrace() or (threading and threading.active_count() > 1):
        return status
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def run_words() -> int:
    """Run the words that the process was started with; returns the exit status."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # the shell has closed it (``>&-``)
                setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))

    if sys.stdout.isatty() or sys.stderr.isatty():
        from kubepy.terminal import guard_process

        guard_process()

    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if (
            isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8"
        ):  # UTF-8 in any locale
            stream.reconfigure(encoding="utf-8", errors=stream.errors)

    try:
        from kubepy.cli.main import main

        program, words = called_as(sys.argv)
        status = main(words, program=program)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output has closed the pipe, as `head` does: that is no error to report.
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        print(
            f"error: write /dev/stdout: {(error.strerror or str(error)).lower()}", file=sys.stderr
        )
        return 1

    return status


def called_as(argv: Sequence[str]) -> tuple[str, list[str]]:
    """Return the program's name by the link or script that was called, and the words of the command
    line.

    A script named kubectl that ends in ``exec kubepy "$@"`` counts as a link: where sh is dash,
    ``$_`` still names it.
    """
    called = os.path.basename(argv[0])
    if called == KUBEPY and os.path.basename(os.environ.get("_", "")) == KUBECTL:
        called = KUBECTL
    program, before = _CALLED.get(called, (KUBEPY, []))
    return program, [*before, *(as_text(word) for word in argv[1:])]


def as_text(word: str) -> str:
    """Return a word of the command line as UTF-8 in any locale; invalid bytes become ``�`` as in
    Go."""
    if word.isascii():
        return word
    return os.fsencode(word).decode(errors="replace")


def _drop_output() -> None:
    """Discard buffered output: the reader has closed the pipe, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(run())
