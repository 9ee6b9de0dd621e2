"""The ``kubepy`` program. Imports are inside the handler of Ctrl-C, so that it never shows a traceback."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper


def run() -> int:
    """Run the process's own command line; returns the exit status."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # the shell has closed it (``>&-``)
                setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":  # UTF-8 in any locale
            stream.reconfigure(encoding="utf-8", errors=stream.errors)
    try:
        from kubepy.cli.main import main

        status = main([as_text(word) for word in sys.argv[1:]])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output has closed the pipe, as `head` does: that is no error to report.
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        print(f"error: write /dev/stdout: {(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1
    return status


def as_text(word: str) -> str:
    """Return a word of the command line as UTF-8 in any locale; invalid bytes become ``�`` as in Go."""
    if word.isascii():
        return word
    return os.fsencode(word).decode(errors="replace")


def _drop_output() -> None:
    """Discard buffered output: the reader has closed the pipe, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(run())
