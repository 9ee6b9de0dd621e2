"""``--record``: the command line as the change cause. Upstream: ``cli-runtime/pkg/genericclioptions``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.runtime.command import Invocation

CHANGE_CAUSE = "kubernetes.io/change-cause"


def record(obj: Object, given: Invocation) -> None:
    """Annotate an object with the command line that changes it; changes the object."""
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), CHANGE_CAUSE: command_line(given)}


def cause(given: Invocation) -> Object:
    """The merge patch that does the same in the cluster."""
    return {"metadata": {"annotations": {CHANGE_CAUSE: command_line(given)}}}


def command_line(given: Invocation) -> str:
    """The command with its words and, behind them, the flags in the order they were given in."""
    program = given.path.partition(" ")[0]
    return " ".join([program, *given.typed, *given.args, *(f"--{name}={text}" for name, text in given.flags)])
