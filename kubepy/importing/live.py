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
_NAMESPACED = (["true"], ["false"])  # a cell of ``kubectl api-resources``


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


class ListedResource(NamedTuple):
    """A resource, as ``kubectl api-resources`` lists it.

    :ivar categories: the names under which it is asked for together with others: ``all``.
    """

    plural: str
    short_names: Sequence[str]
    group: str
    version: str
    is_namespaced: bool
    kind: str
    categories: Sequence[str]

    @property
    def name(self) -> str:
        """The plural with the group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def is_named(self, kind: str) -> bool:
        """Tell whether kubectl takes a word for this resource: ``deploy``, ``deployment.apps``,
        ``deployments.v1.apps``, ``all``."""
        word, _, rest = kind.lower().partition(".")
        if not rest and word in self.categories:
            return True
        if word not in (self.plural, self.kind.lower(), *self.short_names):
            return False
        return rest in ("", self.group, f"{self.version}.{self.group}")


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
    for number, resource in enumerate(requests, 1):
        name = resource.name
        show(f"asking for {name}", number, len(requests))
        if number > 1:
            sleep(PAUSE)
        answer = _run(source, _list_words(source, resource))
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


def _list_words(source: LiveSource, resource: ListedResource) -> list[str]:
    words = ["get", resource.name, "--output=json", f"--chunk-size={CHUNK}"]
    if not resource.is_namespaced:
        return words
    return [*words, f"--namespace={source.namespace}" if source.namespace else "--all-namespaces"]


def _requests(source: LiveSource) -> tuple[list[ListedResource], str]:
    """Return the resources to ask for, and the reason why there may be others, "" where all are
    known. Raises SourceError."""
    resources: list[ListedResource] = []
    problem = ""
    for is_namespaced in ("false", "true"):
        words = [
            "api-resources",
            "--verbs=list",
            "--output=wide",
            "--no-headers",
            f"--namespaced={is_namespaced}",
        ]
        answer = _run(source, words)
        rows = answer.output.decode("utf-8", "replace").splitlines()
        if answer.status and not rows:
            raise SourceError(f"{source.shown}: {answer.reason}")
        if answer.status:
            problem = answer.reason
        resources += [_parse_row(row, source) for row in rows if row.strip()]
    askable = [resource for resource in resources if _is_askable(resource.name)]
    if not source.kinds:
        return askable, problem
    _require_kinds(source, askable, problem)
    return [
        resource for resource in askable if any(resource.is_named(kind) for kind in source.kinds)
    ], problem


def _parse_row(row: str, source: LiveSource) -> ListedResource:
    """Read a line of ``kubectl api-resources``. Raises SourceError for another one.

    It has the plural, short names where there are any, the apiVersion, ``true`` or ``false``, the
    kind, the verbs, and categories where there are any.
    """
    cells = row.split()
    at = next((index for index in (2, 3) if cells[index : index + 1] in _NAMESPACED), 0)
    if not at or len(cells) <= at + 1:
        raise SourceError(
            f"{source.shown}: kubectl api-resources does not list resources: {row.strip()}"
        )
    group, _, version = cells[at - 1].rpartition("/")
    return ListedResource(
        cells[0],
        tuple(cells[1].split(",")) if at == 3 else (),
        group,
        version,
        cells[at] == "true",
        cells[at + 1],
        tuple(cells[at + 3].split(",")) if len(cells) > at + 3 else (),
    )


def _is_askable(name: str) -> bool:
    """Tell whether a resource is one of stored objects that no other resource has as well."""
    return name not in REPEATED and name not in _COMPUTED and ".metrics.k8s.io" not in f".{name}"


def _require_kinds(source: LiveSource, resources: Sequence[ListedResource], problem: str) -> None:
    """Raise SourceError where the user names kinds that the cluster does not have.

    :param problem: the reason why there may be others, "" where all are known.
    """
    unknown = [
        kind for kind in source.kinds if not any(resource.is_named(kind) for resource in resources)
    ]
    if unknown:
        reason = f", or discovery does not tell of it: {problem}" if problem else ""
        names = ", ".join(unknown)
        raise SourceError(f"{source.shown}: has no {names} that could be imported{reason}")


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
