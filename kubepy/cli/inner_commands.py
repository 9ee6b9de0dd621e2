"""Command lines that are run in this process on a cluster that is open: on forks, and for those who
ask a server for plans and diagnoses."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kubepy.results import CommandResult

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import RunCommand


def runner(main: Callable[..., int]) -> RunCommand:
    """Return a function that runs a command line, without the program's name, on an open cluster.

    :param main: :func:`kubepy.cli.main.main`.
    """

    def run(cluster: LocalCluster, words: Sequence[str], stdin: str) -> CommandResult:
        stdout, stderr = io.StringIO(), io.StringIO()
        status = main(
            words, stdin=io.StringIO(stdin), stdout=stdout, stderr=stderr, open_cluster=cluster
        )
        return CommandResult(stdout.getvalue(), stderr.getvalue(), status)

    return run
