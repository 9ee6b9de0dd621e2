"""A running cluster, asked through the kubectl on the PATH. It is only read.

The requests: discovery, as ``kubectl api-resources`` makes it, and one list of each resource that
can be listed, in parts of 500 objects. They follow one another, a tenth of a second apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kubepy.api.scheme import BUILT_IN
from kubepy.apiserver.client import COMPONENT_STATUSES
from kubepy.importing.errors import SourceError
from kubepy.importing.files import SourceFile

KUBECTL = "kubectl"
PAUSE = 0.1  # seconds between two requests
CHUNK = 500  # objects of a part
REQUEST_TIMEOUT = "60s"
# The same objects under another name.
REPEATED = ("events.events.k8s.io",)


class LiveSource(NamedTuple):
    """A running cluster, and what is asked of it.

    :ivar program: the path of kubectl.
    :ivar context: of the kubeconfig; "" for the current one.
    :ivar kubeconfig: its file; "" for the usual one.
    :ivar namespace: "" for all.
    :ivar kinds: the resources to ask for, as kubectl names them; () for all.
    """

    program: str
    context: str = ""
    kubeconfig: str = ""
    namespace: str = ""
    kinds: Sequence[str] = ()

    def command(self, *words: str) -> list[str]:
        """Return a command line of kubectl."""
        chosen = [f"--request-timeout={REQUEST_TIMEOUT}"]
        if self.context:
            chosen.append(f"--context={self.context}")
        if self.kubeconfig:
            chosen.append(f"--kubeconfig={self.kubeconfig}")
        return [self.program, *words, *chosen]

    @property
    def shown(self) -> str:
        """The cluster as messages name it."""
        return f"context {self.context}" if self.context else "the current context"


class KubectlRun(NamedTuple):
    """The output of a kubectl, and its exit status."""

    status: int
    output: bytes
    complaint: str

    @property
    def reason(self) -> str:
        """The last line that it has printed on stderr."""
        lines = [line for line in self.complaint.splitlines() if line.strip()]
        if lines:
            return lines[-1].strip().removeprefix("error: ")
        return f"exit status {self.status}"


def find_kubectl(named: str = "") -> str:
    """Return the path of a kubectl that is not this program. Raises SourceError.

    :param named: the one that the user names, by its path or its name.
    """
    if named and os.path.dirname(named):
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise SourceError(f"{named}: there is no such program")
        return named
    name = named or KUBECTL
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK) and not _is_own(path):
            return path
    raise SourceError(f"there is no {name} on the PATH other than kubepy: --kubectl names one")


def _is_own(path: str) -> bool:
    """Tell whether a program is kubepy under the name of kubectl."""
    real = os.path.realpath(path)
    return real == os.path.realpath(sys.argv[0]) or os.path.basename(real).startswith("kubepy")


def files_of_cluster(
    source: LiveSource,
    show: Callable[[str, int, int], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[SourceFile]:
    """Yield the objects of a running cluster as files, one for each resource; one that cannot be
    read has a problem. Raises SourceError where the cluster does not answer.

    :param show: is called with what is done, the number of the request, and that of all.
    """
    requests, problem = _requests(source)
    if problem:
        yield _file(source, "api-resources", problem=f"not all resources are known: {problem}")
    for number, (name, is_namespaced) in enumerate(requests, 1):
        show(f"asking for {name}", number, len(requests))
        if number > 1:
            sleep(PAUSE)
        answer = _run(source, _list_words(source, name, is_namespaced))
        if answer.status:
            yield _file(
                source,
                name,
                resource=name,
                problem=f"{name}: {answer.reason}",
            )
            continue
        yield _file(
            source,
            name,
            answer.output,
            resource=name,
        )


def _file(
    source: LiveSource, name: str, data: bytes = b"", *, resource: str = "", problem: str = ""
) -> SourceFile:
    """Return an answer as a file of a source."""
    return SourceFile(
        f"{name}.json",
        f"{name} of {source.shown}",
        lambda: data,
        problem=problem,
        resource=resource,
    )


def _list_words(source: LiveSource, name: str, is_namespaced: bool) -> list[str]:
    words = ["get", name, "--output=json", f"--chunk-size={CHUNK}"]
    if not is_namespaced:
        return words
    return [*words, f"--namespace={source.namespace}" if source.namespace else "--all-namespaces"]


def _requests(source: LiveSource) -> tuple[list[tuple[str, bool]], str]:
    """Return the resources to ask for, and whether each is in namespaces; and the reason why there
    may be others, "" where all are known. Raises SourceError."""
    problem = ""
    requests: list[tuple[str, bool]] = []
    for is_namespaced in (False, True):
        words = [
            "api-resources",
            "--verbs=list",
            "--output=wide",
            "--no-headers",
            f"--namespaced={str(is_namespaced).lower()}",
        ]
        answer = _run(source, words)
        rows = [line.split() for line in answer.output.decode("utf-8", "replace").splitlines()]
        if answer.status and not rows:
            raise SourceError(f"{source.shown}: {answer.reason}")
        if answer.status:
            problem = answer.reason
        for row in rows:
            name = _name_of_row(row)
            if _is_wanted(name, row, source):
                requests.append((name, is_namespaced))
    if source.kinds and not requests:
        raise SourceError(f"{source.shown}: has no {', '.join(source.kinds)}")
    return requests, problem


def _name_of_row(row: Sequence[str]) -> str:
    """Return a resource with its group. A row has the plural, short names where there are any, the
    apiVersion, ``true`` or ``false``, and the kind."""
    version = next(row[index - 1] for index in range(2, 4) if row[index] in ("true", "false"))
    group = version.rpartition("/")[0]
    return f"{row[0]}.{group}" if group else row[0]


def _is_wanted(name: str, row: Sequence[str], source: LiveSource) -> bool:
    if name in REPEATED or name in _COMPUTED or ".metrics.k8s.io" in f".{name}":
        return False
    if not source.kinds:
        return True
    plural = row[0]
    short_names = row[1].split(",") if row[2] not in ("true", "false") else []
    kind_at = 3 if row[2] in ("true", "false") else 4
    kind = row[kind_at].lower() if len(row) > kind_at else ""
    known = {name.lower(), plural.lower(), kind, *short_names}
    return any(wanted.lower() in known for wanted in source.kinds)


_COMPUTED = frozenset(
    resource.key
    for resource in BUILT_IN
    if not resource.is_stored or resource.key == COMPONENT_STATUSES
)


def _run(source: LiveSource, words: Sequence[str]) -> KubectlRun:
    try:
        run = subprocess.run(
            source.command(*words), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        raise SourceError(f"{source.program}: {error.strerror}") from None
    return KubectlRun(run.returncode, run.stdout, run.stderr.decode("utf-8", "replace"))
