"""The file of an operator: plain Python with ``operator(cluster)``, ``workload(cluster)``."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from kubepy.clusters import Cluster
from kubepy.quoting import printable
from kubepy.storage import FolderError


class OperatorSource(NamedTuple):
    """A file of an operator as it was read.

    :ivar path: of the file, as it was named.
    """

    path: str
    text: str


class Operator:
    """An operator that can be started again and again: each time its file is run anew, so that no
    memory of one process, module variables included, is left to the next.

    Raises FolderError for a file that is no Python, or has neither function.
    """

    def __init__(self, source: OperatorSource) -> None:
        self.path = source.path
        self._code = _compiled(source)
        names = self._run_file()
        functions = [names.get(name) for name in ("operator", "workload")]
        if not any(map(callable, functions)):
            raise FolderError(
                printable(f"{source.path}: has neither operator(cluster) nor workload(cluster)")
            )

    def start(self, cluster: Cluster) -> None:
        """Start the operator: let it add its controllers to a cluster. Raises FolderError for what
        the file raises."""
        operator = self._run_file().get("operator")
        if callable(operator):
            self._call("operator", operator, cluster)

    def workload(self, cluster: Cluster) -> None:
        """Call the workload, where there is one. Raises FolderError for what it raises."""
        workload = self._run_file().get("workload")
        if callable(workload):
            self._call("workload", workload, cluster)

    def _run_file(self) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "operator", "__file__": self.path}
        self._call("the file", exec, self._code, names)
        return names

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            function(*arguments)
        except FolderError:
            raise
        except (Exception, SystemExit) as error:
            place = self.place_of(error)
            kind = type(error).__name__
            message = f"{place}: {what}: {kind}: {error}"
            raise FolderError(printable(message)) from error

    def place_of(self, error: BaseException) -> str:
        """Return the line of the file at which an exception was raised, or passed last."""
        return place_in(self.path, error)


def place_in(path: str, error: BaseException) -> str:
    """Return the line of a file at which an exception was raised, or passed last."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    if not lines:
        return path
    return f"{path}:{lines[-1]}"


def _compiled(source: OperatorSource) -> CodeType:
    try:
        return compile(source.text, source.path, "exec")
    except (SyntaxError, ValueError) as error:
        place = source.path
        line = getattr(error, "lineno", None)
        if line:
            place = f"{source.path}:{line}"
        reason = getattr(error, "msg", None) or str(error)
        message = f"{place}: {reason}"
        raise FolderError(printable(message)) from None
