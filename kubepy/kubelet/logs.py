"""The logs of containers, as the kubelet of a pod's node answers for them.

No containers run, so a log is empty, unless annotations of the pod say what its containers print
when they start: ``kubepy.dev/log`` for its ``containers``, ``kubepy.dev/log.NAME`` for any
container NAME. Upstream: ``pkg/registry/core/pod/rest/log.go``, ``pkg/kubelet/kubelet_pods.go``,
``pkg/apis/core/validation``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api import errors
from kubepy.api.clock import EPOCH, parse_time
from kubepy.api.meta import Object, annotations_of, name_of, namespace_of, uid_of
from kubepy.api.objects.nodes import is_down
from kubepy.kubelet.nodes import internal_ip
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import ContainerState, ContainerStatus, Node, Pod

# of a pod: the lines that its containers print; with .NAME after it: those of one container
LOG = "kubepy.dev/log"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_PULL_ERRORS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogOptions(NamedTuple):
    """``PodLogOptions``. ``stream`` may not be specified: the gate PodLogsQuerySplitStreams is
    off."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    since_seconds: int | None = None
    since_time: datetime | None = None
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str | None = None


class PrintedLine(NamedTuple):
    """A line that a container has printed, without its end; ``is_whole``: it has one."""

    time: datetime
    text: str
    is_whole: bool = True


class ContainerLog(NamedTuple):
    """The bytes of a log. ``is_open``: the container runs, so that more may come. ``run`` tells its
    runs apart.

    :ivar number: that of the run, 1 for the first.
    :ivar lines: all lines, of which the options have chosen some.
    """

    data: bytes
    run: str
    is_open: bool = False
    number: int = 1
    lines: tuple[PrintedLine, ...] = ()


def validate_log_options(pod_name: str, options: LogOptions) -> None:
    """Check the options of a request (``ValidatePodLogOptions``). Raises Invalid."""
    problems = []
    if options.tail_lines is not None and options.tail_lines < 0:
        problems.append(
            errors.invalid_value(
                "tailLines", options.tail_lines, "must be greater than or equal to 0"
            )
        )

    if options.limit_bytes is not None and options.limit_bytes < 1:
        problems.append(
            errors.invalid_value("limitBytes", options.limit_bytes, "must be greater than 0")
        )

    if options.since_seconds is not None and options.since_time is not None:
        problems.append(
            errors.forbidden_field(
                errors.WHOLE_OBJECT, "at most one of `sinceTime` or `sinceSeconds` may be specified"
            )
        )
    elif options.since_seconds is not None and options.since_seconds < 1:
        problems.append(
            errors.invalid_value("sinceSeconds", options.since_seconds, "must be greater than 0")
        )

    if options.stream is not None:
        problems.append(errors.forbidden_field("stream", "may not be specified"))
    if problems:
        raise errors.invalid("PodLogOptions", pod_name, problems)


def choose_container(pod: Pod, name: str) -> str:
    """Return the container that a request is about (``validateContainer``). Raises BadRequest."""
    names: list[str] = []
    for field in _CONTAINERS:
        of_field = cast("Object", pod["spec"]).get(field) or ()
        names += [container["name"] for container in of_field]
    if name and name not in names:
        raise errors.BadRequest(f"container {name} is not valid for pod {name_of(pod)}")
    if name:
        return name
    containers = pod["spec"].get("containers") or []
    if len(containers) == 1:
        return containers[0]["name"]
    raise errors.BadRequest(
        f"a container name must be specified for pod {name_of(pod)}, "
        f"choose one of: [{' '.join(names)}]"
    )


def read_log(
    pod: Pod,
    options: LogOptions,
    find_node: Callable[[str], Node | None],
    now: datetime,
    printed: Callable[[str, int], list[PrintedLine] | None] | None = None,
) -> ContainerLog | None:
    """Return the log of a container; None for a pod without a node.

    :param find_node: returns a node by its name, or None.
    :param printed: returns what a run of a container has printed, None where only the annotations
        of the pod tell it (``kubepy.kubelet.inside.log_reader``).

    Raises NotFound for a node that is not there, BadRequest for a container that there is not, or
    has no log, Status where the node's kubelet is down.
    """
    container = choose_container(pod, options.container)
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        return None
    node = find_node(node_name)
    if node is None:
        raise errors.not_found(
            "pods", node_name
        )  # upstream takes the resource of the request for the node's

    if is_down(node, now):
        address = f"{internal_ip(node)}:10250"
        url = f"https://{address}/containerLogs/{namespace_of(pod)}/{name_of(pod)}/{container}"
        raise errors.Status(f"Get {quote(url)}: dial tcp {address}: connect: connection refused")

    state = _state_with_log(pod, container, options.previous)
    ran = state.get("running") or state.get("terminated") or {}
    started = ran.get("startedAt") or (pod.get("status") or {}).get("startTime") or ""
    status: ContainerStatus = _status_of(pod, container) or {}
    run = status.get("restartCount", 0) + 1
    is_waiting = "waiting" in (status.get("state") or {})
    if options.previous and not is_waiting:
        run -= 1
    lines = None if printed is None else printed(container, run)
    if lines is None:
        moment = parse_time(started) if started else EPOCH
        lines = [PrintedLine(moment, line) for line in lines_of(pod, container)]
    data = _chosen(lines, options, now)
    name = f"{uid_of(pod)}/{status.get('restartCount', 0)}"
    return ContainerLog(
        data,
        name,
        bool(state.get("running")),
        run,
        tuple(lines),
    )


def _state_with_log(pod: Pod, container: str, previous: bool) -> ContainerState:
    """Return the run of a container whose log is asked for (``validateContainerLogStatus``). Raises
    BadRequest."""
    status = _status_of(pod, container)
    subject = f"container {quote(container)} in pod {quote(name_of(pod))}"
    if status is None:
        phase = (pod.get("status") or {}).get("phase")
        raise errors.BadRequest(
            f"{subject} is waiting to start: ContainerCreating"
            if phase in (None, "Pending")
            else f"{subject} is not available"
        )

    state = status.get("state") or {}
    last = status.get("lastState") or {}
    reason = (state.get("waiting") or {}).get("reason", "")
    if (
        reason == "CrashLoopBackOff" and not last
    ):  # a crash loop under way has runs that its status does not show
        return {}

    if previous:
        if not last.get("terminated"):
            raise errors.BadRequest(f"previous terminated {subject} not found")
        return last

    if state.get("running") or state.get("terminated"):
        return state
    if last.get("terminated"):
        return last
    if "waiting" not in state:
        raise errors.BadRequest(f"{subject} is waiting to start - no logs yet")
    raise errors.BadRequest(f"{subject} is waiting to start: {_PULL_ERRORS.get(reason, reason)}")


def _status_of(pod: Pod, container: str) -> ContainerStatus | None:
    statuses = cast("Object", pod.get("status") or {})
    return next(
        (
            status
            for field in _STATUSES
            for status in statuses.get(field) or ()
            if status["name"] == container
        ),
        None,
    )


def lines_of(pod: Pod, container: str) -> list[str]:
    """Return what a container prints when it starts."""
    annotations = annotations_of(pod)
    text = annotations.get(f"{LOG}.{container}")
    if text is None:
        containers = pod["spec"].get("containers") or ()
        is_main = any(own["name"] == container for own in containers)
        text = annotations.get(LOG, "") if is_main else ""
    lines = io.StringIO(text, newline="\n")
    return [line.removesuffix("\n") for line in lines]


def _chosen(lines: list[PrintedLine], options: LogOptions, now: datetime) -> bytes:
    """Return the chosen part of what a container has printed."""
    if options.tail_lines is not None:
        lines = lines[max(len(lines) - options.tail_lines, 0) :]
    since = options.since_time
    if options.since_seconds is not None:
        since = now - timedelta(seconds=options.since_seconds)
    if since is not None:
        lines = [line for line in lines if line.time >= since]
    data = b"".join(_shown(line, options) for line in lines)
    if options.limit_bytes is None:
        return data
    return data[: options.limit_bytes]


def _shown(line: PrintedLine, options: LogOptions) -> bytes:
    moment = ""
    if options.timestamps:
        moment = f"{line.time:%Y-%m-%dT%H:%M:%S}.{line.time.microsecond:06}000Z "
    end = "\n" if line.is_whole else ""
    return f"{moment}{line.text}{end}".encode("utf-8", "surrogateescape")


class LogFollower:
    """Returns what comes to the log of a run after it was shown."""

    def __init__(self, log: ContainerLog, options: LogOptions) -> None:
        self._lines = log.lines
        self._options = options
        self._left = None
        if options.limit_bytes is not None:
            self._left = options.limit_bytes - len(log.data)

    def take(self, lines: Sequence[PrintedLine] | None) -> bytes:
        """Return what is new in the lines of the run as they are now, None where nothing is kept of
        it."""
        if lines is None:
            return b""
        present = tuple(lines)
        begun, number = _common_part(self._lines, present)
        self._lines = present
        data = b""
        if begun is not None:
            rest = present[number - 1]
            shown = rest._replace(text=rest.text.removeprefix(begun.text))
            data = _shown(shown, self._options._replace(timestamps=False))
        since = self._options.since_time
        for line in present[number:]:
            if since is None or line.time >= since:
                data += _shown(line, self._options)
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        return data

    @property
    def has_all(self) -> bool:
        """Tell whether as many bytes have been shown as were asked for."""
        return self._left is not None and self._left <= 0


def _common_part(
    before: tuple[PrintedLine, ...], present: tuple[PrintedLine, ...]
) -> tuple[PrintedLine | None, int]:
    """Return how many of the present lines were there before, and the last of those as it was then
    if it had no end. A log that is too long has lost its first lines in the meantime."""
    for dropped in range(len(before)):
        number = len(before) - dropped
        last = before[-1]
        if number > len(present) or before[dropped:-1] != present[: number - 1]:
            continue
        if last == present[number - 1]:
            return None, number
        is_longer = present[number - 1].text.startswith(last.text)
        if not last.is_whole and is_longer and present[number - 1].time == last.time:
            return last, number
    return None, 0


def goes_on(log: ContainerLog, read: Callable[[], ContainerLog | None]) -> bool:
    """Tell whether the run whose log is followed goes on. A pod or container that is gone has
    ended.

    :param read: reads the log of the container as it is now.
    """
    try:
        present = read()
    except errors.Status:
        return False
    if present is None:
        return False
    if not present.is_open:
        return False
    return present.run == log.run
