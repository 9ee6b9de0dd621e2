"""The ``kubepy`` program. Here nothing is imported before somebody catches Ctrl-C, which never shows a traceback."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the process's own command line; returns the exit status."""
    try:
        from kubepy.cli.main import main

        status = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has left: nothing to say, and nobody to say it to.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


if __name__ == "__main__":
    sys.exit(run())
