"""Command lines that a server runs on its cluster for those who ask it for plans and diagnoses."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kubepy.server.application import CommandOutcome, RunCommand

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster


def runner(main: Callable[..., int]) -> RunCommand:
    """Return a function that runs a command line, without the program's name, on an open cluster.

    :param main: :func:`kubepy.cli.main.main`.
    """

    def run(cluster: LocalCluster, words: Sequence[str], stdin: str) -> CommandOutcome:
        stdout, stderr = io.StringIO(), io.StringIO()
        status = main(
            words, stdin=io.StringIO(stdin), stdout=stdout, stderr=stderr, open_cluster=cluster
        )
        return CommandOutcome(status, stdout.getvalue(), stderr.getvalue())

    return run
