"""The results of commands and scripts that Python programs run on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kubepy.server.application import AnsweredRequest


class CommandResult(NamedTuple):
    """The output of a command line and its exit status; true if that is 0."""

    stdout: str
    stderr: str
    status: int

    def __bool__(self) -> bool:
        return self.status == 0


class ScriptResult(NamedTuple):
    """The output of a script, its exit status, and the requests that it has made; true if the
    status is 0.

    :ivar requests: those of kubectl and of all other clients, in the order of their answers:
        ``method``, ``path``, ``query``, ``user_agent``, ``code``.
    """

    returncode: int
    stdout: str
    stderr: str
    requests: list[AnsweredRequest]

    def __bool__(self) -> bool:
        return self.returncode == 0
