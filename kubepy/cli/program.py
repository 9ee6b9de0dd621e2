"""The ``kubepy`` program. Here nothing is imported before somebody catches Ctrl-C, which never shows a traceback."""

from __future__ import annotations

import sys
from io import TextIOWrapper


def run() -> int:
    """Run the process's own command line; returns the exit status."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_closed_streams()
    _speak_utf8()
    try:
        from kubepy.cli.main import main

        status = main([as_text(word) for word in sys.argv[1:]])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has left: nothing to say, and nobody to say it to.
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        print(f"error: write /dev/stdout: {(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1
    return status


def as_text(word: str) -> str:
    """A word of the command line as UTF-8, whatever the locale says; bytes that are none become ``�`` as in Go."""
    if word.isascii():
        return word
    import os

    return os.fsencode(word).decode(errors="replace")


def _open_closed_streams() -> None:
    """What the shell has closed (``>&-``) is None to Python."""
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _speak_utf8() -> None:
    """What is read and printed is UTF-8, whatever the locale says."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def _drop_output() -> None:
    """What has not been written yet never will be."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(run())
