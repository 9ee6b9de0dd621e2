"""The results of commands and scripts that are run on a cluster, and of requests to it."""

from __future__ import annotations

from typing import NamedTuple


class CommandResult(NamedTuple):
    """The output of a command line and its exit status; true if that is 0."""

    stdout: str
    stderr: str
    status: int

    def __bool__(self) -> bool:
        return self.status == 0


class AnsweredRequest(NamedTuple):
    """A request that a server has answered.

    :ivar path: as it was sent, without the query.
    :ivar query: the parameters, without the question mark.
    :ivar code: the HTTP status of the answer; a watch has it from its beginning.
    """

    method: str
    path: str
    query: str
    user_agent: str
    code: int


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
