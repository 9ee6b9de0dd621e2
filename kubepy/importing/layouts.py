"""The things that only the path of a file tells, in the dumps that people have: the kind of objects
that do not say it, and whose log a file is.

| dump | places |
| --- | --- |
| ``kubectl cluster-info dump`` | ``NAMESPACE/pods.json``, ``NAMESPACE/POD/logs.txt`` |
| must-gather | ``namespaces/NAMESPACE/pods/POD/CONTAINER/CONTAINER/logs/current.log`` |
| support bundle | ``cluster-resources/pods/NAMESPACE.json``, |
| | ``cluster-resources/pods/logs/NAMESPACE/POD/CONTAINER.log`` |
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from kubepy.api.scheme import BUILT_IN, Resource

_LOG_PATHS = (
    re.compile(
        r"(?:.*/)?namespaces/(?P<namespace>[^/]+)/pods/(?P<pod>[^/]+)/(?P<container>[^/]+)"
        r"/[^/]+/logs/(?P<run>current|previous)\.log"
    ),
    re.compile(
        r"(?:.*/)?pods/logs/(?P<namespace>[^/]+)/(?P<pod>[^/]+)/(?P<container>[^/]+?)"
        r"(?:-(?P<run>previous))?\.log"
    ),
)
_START = re.compile(
    r"^==== START logs for container (?P<container>\S+) of pod "
    r"(?P<namespace>[^\s/]+)/(?P<pod>\S+) ====\n",
    re.MULTILINE,
)
_NO_LOG = re.compile(r"(?:Create|Request) log error: [^\n]*\n?")  # of a container without one
# Names that are neither the plural, the kind nor a short name of a resource.
_OTHER_NAMES = {"pvcs": "persistentvolumeclaims", "pvs": "persistentvolumes"}


class PodLog(NamedTuple):
    """The log of a container of a pod.

    :ivar is_previous: of the run before the present one.
    """

    namespace: str
    pod: str
    container: str
    text: str
    is_previous: bool = False


def log_of_path(path: str, text: str) -> PodLog | None:
    """Return the log that a file holds, by its path; None for a file that is none."""
    for pattern in _LOG_PATHS:
        match = pattern.fullmatch(path)
        if match is not None:
            return PodLog(
                match["namespace"],
                match["pod"],
                match["container"],
                text,
                match["run"] == "previous",
            )
    return None


def may_hold_logs(path: str) -> bool:
    """Tell whether a file may hold logs that are marked with their containers, or is one."""
    name = path.rpartition("/")[2]
    return name == "logs.txt" or any(pattern.fullmatch(path) for pattern in _LOG_PATHS)


def split_marked_logs(text: str) -> tuple[str, list[PodLog]]:
    """Return a text without the logs that ``cluster-info dump`` marks in it, and these."""
    logs: list[PodLog] = []
    rest: list[str] = []
    position = 0
    while (start := _START.search(text, position)) is not None:
        container, namespace, pod = start["container"], start["namespace"], start["pod"]
        mark = f"==== END logs for container {container} of pod {namespace}/{pod} ====\n"
        end = text.find(mark, start.end())
        if end < 0:
            end = len(text)
        rest.append(text[position : start.start()])
        log = text[start.end() : end]
        if not _NO_LOG.fullmatch(log):
            logs.append(
                PodLog(
                    namespace,
                    pod,
                    container,
                    log,
                )
            )
        position = min(end + len(mark), len(text))
    rest.append(text[position:])
    return "".join(rest), logs


def resource_of_path(path: str) -> Resource | None:
    """Return the resource of objects that do not say their kind: that of the folder, else that of
    the name of the file; None where neither names one."""
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    parent = folders[-1] if folders else ""
    names = _resources_by_name()
    return names.get(_normalized(parent)) or names.get(_normalized(stem))


def namespace_of_path(path: str) -> str:
    """Return the namespace that a file of a support bundle is about: its name."""
    return path.rpartition("/")[2].partition(".")[0]


def _normalized(name: str) -> str:
    name = name.lower().replace("-", "").replace("_", "")
    return _OTHER_NAMES.get(name, name)


@cache
def _resources_by_name() -> dict[str, Resource]:
    """Return the built-in resources by their plurals and kinds, without dashes. Of a name that
    several groups have the first in the scheme counts."""
    by_name: dict[str, Resource] = {}
    for resource in BUILT_IN:
        if resource.is_stored:
            for name in (resource.plural, resource.kind.lower()):
                by_name.setdefault(name, resource)
    return by_name
