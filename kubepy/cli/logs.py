"""``kubepy logs``: what containers print. Upstream: ``kubectl/pkg/cmd/logs``,
``kubectl/pkg/polymorphichelpers``."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from kubepy.api.clock import parse_optional_time, parse_time
from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import (
    Object,
    annotations_of,
    name_of,
    namespace_of,
    nested_list,
    spec_of,
    status_of,
    uid_of,
)
from kubepy.api.objects.pods import get_condition, is_pod_ready
from kubepy.api.scheme import Resource
from kubepy.api.selectors import from_label_selector, from_set
from kubepy.api.types.special import DecodeError, decode_time
from kubepy.cli.errors import CliError
from kubepy.cli.inside.streams import ByteWriter
from kubepy.cli.runtime.builder import resource_of
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, int_flag, string_flag
from kubepy.cli.runtime.options import Options
from kubepy.kubelet import inside
from kubepy.kubelet.logs import (
    ContainerLog,
    LogFollower,
    LogOptions,
    goes_on,
    read_log,
    validate_log_options,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.cli.runtime import driver

USAGE = (
    "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required "
    "argument for the "
    "logs command"
)
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
TAIL_OF_SELECTED = 10
_CONTAINERS = (
    ("initContainers", " (init)"),
    ("containers", ""),
    ("ephemeralContainers", " (ephem)"),
)
_PHASES = {"Running": 0, "Unknown": 1, "Pending": 2}


class LogsOptions(Options):
    """The flags of ``logs``."""

    all_containers: bool = bool_flag("all-containers", help="Get all containers' logs in the pods.")
    all_pods: bool = bool_flag(
        "all-pods", help="Get the logs of all pods, with the names of their sources."
    )
    container: str = string_flag("container", "c", help="Print the logs of this container.")
    follow: bool = bool_flag("follow", "f", help="Stream the logs until the containers have ended.")
    ignore_errors: bool = bool_flag(
        "ignore-errors", help="If watching or following, go on after errors."
    )
    insecure_skip_tls_verify_backend: bool = bool_flag(
        "insecure-skip-tls-verify-backend", help="Without effect here."
    )
    limit_bytes: int = int_flag(
        "limit-bytes", help="Maximum bytes of logs to return. Defaults to no limit."
    )
    max_log_requests: int = int_flag(
        "max-log-requests", default=5, help="The number of logs to follow at once with a selector."
    )
    pod_running_timeout: float = duration_flag(
        "pod-running-timeout", default=20.0, help="Without effect here."
    )
    prefix: bool = bool_flag("prefix", help="Prefix each line with its pod and container.")
    previous: bool = bool_flag(
        "previous", "p", help="Print the logs of the previous instance of the container."
    )
    selector: str = string_flag("selector", "l", help="The pods with these labels.")
    since: float = duration_flag(
        "since", help="Only logs newer than a relative duration like 5s, 2m, or 3h."
    )
    since_time: str = string_flag("since-time", help="Only logs after a date (RFC3339).")
    tail: int = int_flag(
        "tail", default=-1, help="Lines of recent log to print: all, with a selector 10."
    )
    timestamps: bool = bool_flag("timestamps", help="Include timestamps on each line.")


class LogRequest(NamedTuple):
    """The log of one container that is asked for."""

    pod: Object
    container: str
    options: LogOptions


@ticking
@command(
    "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]",
    LogsOptions,
    examples="""
# What the annotation kubepy.dev/log of the pod says
kubepy logs web

# Of one container, and of all of them
kubepy logs web -c sidecar
kubepy logs web --all-containers --prefix

# Of a pod of a Deployment, until its container ends
kubepy logs -f deployment/web

# The last line of each pod with a label
kubepy logs -l app=web --tail=1

# Of the run before the last restart
kubepy logs web --previous
""",
)
def logs(factory: Factory, options: LogsOptions) -> None:
    """Print the logs for a container in a pod or specified resource.

    Where containers are modelled (docs/containers.md), it is what their programs have printed. Otherwise a log is empty
    unless the pod's annotation kubepy.dev/log, or kubepy.dev/log.CONTAINER, says what its containers print when they
    start."""  # noqa: E501
    subject = _subject(options)
    since_time = _since_time(options)
    factory.catch_up()
    pods = _pods(factory, options, subject)
    log_options = _log_options(options, since_time)
    requests = [
        request for pod in pods for request in _requests(factory, options, pod, log_options)
    ]
    if options.follow and len(requests) > options.max_log_requests:
        raise CliError(
            f"you are attempting to follow {len(requests)} log streams, but maximum allowed "
            f"concurrency is "
            f"{options.max_log_requests}, use --max-log-requests to increase the limit"
        )

    shown = []
    for request in requests:
        log = ShownLog(factory, options, request)
        shown.append(log)
        try:
            log.show()
        except Status as error:
            if not options.ignore_errors:
                raise
            factory.print(f"error: {error.message}")

    if options.follow:
        _follow(factory, shown)


def _subject(options: LogsOptions) -> str:
    """Return the POD or TYPE/NAME, and take over an inline container. Raises CliError,
    UsageError."""
    args = options.args
    if (not args and not options.selector) or len(args) > 2:
        options.usage_error(USAGE)
    if args and options.selector:
        options.usage_error("only a selector (-l) or a POD name is allowed")
    if len(args) == 2:
        if options.container:
            raise CliError("only one of -c or an inline [CONTAINER] arg is allowed")
        options.container = args[1]
    if args:
        return args[0]
    return ""


def _since_time(options: LogsOptions) -> datetime | None:
    """Return the time of --since-time, None without the flag. Raises CliError."""
    try:
        moment = decode_time(options.since_time) if options.since_time else None
    except DecodeError as error:
        raise CliError(str(error)) from None
    if moment:
        return parse_time(moment)
    return None


def _log_options(options: LogsOptions, since_time: datetime | None) -> LogOptions:
    """Return the options of each request. Raises CliError."""
    if since_time and options.since:
        raise CliError("at most one of `sinceTime` or `sinceSeconds` may be specified")
    if options.all_containers and options.container:
        raise CliError(
            f"--all-containers=true should not be specified with container name {options.container}"
        )

    if options.tail < -1:
        raise CliError("--tail must be greater than or equal to -1")
    if options.limit_bytes < 0:
        raise CliError("--limit-bytes must be greater than 0")
    if options.since < 0:
        raise CliError("--since must be greater than 0")
    tail = None if options.tail < 0 else options.tail
    if options.selector and not options.changed("tail"):
        tail = None if options.follow else TAIL_OF_SELECTED
    return LogOptions(
        "",
        options.follow,
        options.previous,
        max(round(options.since), 1) if options.since else None,
        since_time,
        options.timestamps,
        tail,
        options.limit_bytes or None,
    )


# --- pods -----------------------------------------------------------------------------------------


def _pods(factory: Factory, options: LogsOptions, subject: str) -> list[Object]:
    """Return the pods whose logs are asked for. Raises CliError, Status."""
    client = factory.client
    namespace = factory.namespace
    if options.selector:
        pods = client.list("pods", namespace=namespace, label_selector=options.selector).items
        if not pods:
            factory.say(f"No resources found in {namespace} namespace.")
        return pods

    word, slash, name = subject.partition("/")
    resource = resource_of(factory, word) if slash else factory.scheme.by_key("pods")
    try:
        obj = client.get(resource.gvr, name if slash else word, namespace=namespace)
    except NotFound as error:
        raise CliError(
            f"error from server (NotFound): {error.message} in namespace {quote(namespace)}"
        ) from None

    if resource.key == "pods":
        return [obj]
    return _chosen(
        factory,
        options,
        f"{word}/{name}",
        client.list("pods", namespace=namespace, label_selector=_selector_of(resource, obj)).items,
    )


def _selector_of(resource: Resource, obj: Object) -> str:
    """Return the selector of an object's pods (``SelectorsForObject``). Raises CliError."""
    selector = spec_of(obj).get("selector")
    if resource.key in ("services", "replicationcontrollers"):
        if not selector:
            raise CliError(
                f"cannot get the logs from *v1.{resource.kind}: invalid service '{name_of(obj)}': "
                f"Service "
                "is defined without a selector"
            )
        return str(from_set(selector))
    if resource.group not in ("apps", "batch") or not selector:
        kind = f"*{resource.version}.{resource.kind}"
        raise CliError(f"cannot get the logs from {kind}: selector for {kind} not implemented")
    return str(from_label_selector(selector))


def _chosen(
    factory: Factory, options: LogsOptions, subject: str, pods: list[Object]
) -> list[Object]:
    """Return the pod of a workload that has most to say, or all of its pods. Raises CliError if
    there are none."""
    if not pods:
        raise CliError("timed out waiting for the condition")
    pods = sorted(pods, key=_by_logging)
    if options.all_pods:
        return pods
    if len(pods) > 1:
        factory.say(f"Found {len(pods)} pods, using pod/{name_of(pods[0])}")
    return pods[:1]


def _by_logging(pod: Object) -> tuple[Any, ...]:
    """Return a key by which pods with much to say come first (``podutils.ByLogging``)."""
    status = status_of(pod)
    ready = is_pod_ready(pod)
    since = (get_condition(pod, "Ready") or {}).get("lastTransitionTime") if ready else None
    restarts = max(
        (entry.get("restartCount", 0) for entry in nested_list(status, "containerStatuses")),
        default=0,
    )
    far = datetime.max.replace(tzinfo=UTC)
    return (
        not pod["spec"].get("nodeName"),
        _PHASES.get(status.get("phase", ""), 0),
        not ready,
        parse_time(since) if since else far,
        -restarts,
        parse_optional_time(pod["metadata"].get("creationTimestamp")),
    )


# --- containers -----------------------------------------------------------------------------------


def _requests(
    factory: Factory, options: LogsOptions, pod: Object, log_options: LogOptions
) -> Iterator[LogRequest]:
    names = {
        container["name"]: note
        for field, note in _CONTAINERS
        for container in pod["spec"].get(field) or ()
    }
    if options.all_containers:
        for name in names:
            yield LogRequest(pod, name, log_options._replace(container=name))
        return

    name = options.container or _default_container(
        factory,
        pod,
        names,
        is_quiet=options.all_pods,
    )
    if name not in names:
        raise CliError(
            f"container {name} is not valid for pod {name_of(pod)} out of: {_listed(names)}"
        )

    yield LogRequest(pod, name, log_options._replace(container=name))


def _default_container(
    factory: Factory, pod: Object, names: dict[str, str], *, is_quiet: bool
) -> str:
    """Return the container that counts where none is named, and say so where there are several."""
    chosen = annotations_of(pod).get(DEFAULT_CONTAINER, "")
    if chosen in names:
        return chosen
    if chosen:
        factory.say(f"Default container name {quote(chosen)} not found in pod {name_of(pod)}")
    first = str(pod["spec"]["containers"][0]["name"])
    if len(names) > 1 and not is_quiet:
        factory.say(f"Defaulted container {quote(first)} out of: {_listed(names)}")
    return first


def _listed(names: dict[str, str]) -> str:
    """Write the names of containers with their notes, those of init containers last."""
    ordered = sorted(names, key=lambda name: ("", " (ephem)", " (init)").index(names[name]))
    return ", ".join(f"{name}{names[name]}" for name in ordered)


# --- logs -----------------------------------------------------------------------------------------


class ShownLog:
    """The log of a container, which is printed and may be followed."""

    def __init__(self, factory: Factory, options: LogsOptions, request: LogRequest) -> None:
        self._factory = factory
        self._request = request
        self._prefix = ""
        if options.prefix or options.all_pods:
            self._prefix = f"[pod/{name_of(request.pod)}/{request.container}] "
        self._is_followed = options.follow
        self._out = ByteWriter(factory.stdout)
        self._part = b""  # of a line whose end has not come
        self._log: ContainerLog | None = None
        self._follower: LogFollower | None = None

    def show(self) -> None:
        """Print the log as it is. Raises Status."""
        request = self._request
        validate_log_options(name_of(request.pod), request.options)
        self._log = self._read()
        if self._log is not None:
            self._print(self._log.data)
            self._follower = LogFollower(self._log, request.options)

    @property
    def is_open(self) -> bool:
        """Tell whether the container was running."""
        return self._log is not None and self._log.is_open

    def go_on(self) -> bool:
        """Print what has come since; tell whether more may come."""
        log = self._log
        follower = self._follower
        if log is None or follower is None or not log.is_open:
            return False
        has_more = goes_on(log, self._read)
        pod = self._pod()
        if pod is None or uid_of(pod) != log.run.partition("/")[0]:
            self._flush()
            return False
        reader = inside.log_reader(self._factory.client, cast(Any, pod))
        lines = reader(self._request.container, log.number)
        has_more = has_more and not follower.has_all
        self._log = log._replace(is_open=has_more)
        self._print(follower.take(lines))
        return has_more

    def next_time(self) -> datetime | None:
        """Return when something goes on by itself in the container; None: never."""
        pod = self._pod()
        if pod is None or not self.is_open:
            return None
        client = self._factory.client
        return inside.next_time_of(client, cast(Any, pod), self._request.container)

    def _pod(self) -> Object | None:
        pod = self._request.pod
        try:
            return self._factory.client.get("pods", name_of(pod), namespace=namespace_of(pod))
        except NotFound:
            return None

    def _read(self) -> ContainerLog | None:
        """Return the log as it is now. Raises Status."""
        client = self._factory.client
        pod = self._request.pod

        def find_node(name: str) -> Any:
            try:
                return client.get("nodes", name)
            except NotFound:
                return None

        present = cast(Any, client.get("pods", name_of(pod), namespace=namespace_of(pod)))
        reader = inside.log_reader(client, present)
        return read_log(present, self._request.options, find_node, client.clock.now(), reader)

    def _print(self, data: bytes) -> None:
        for line in io.BytesIO(data):
            self._part += line
            waits = self._is_followed and self.is_open
            if line.endswith(b"\n") or not waits:
                self._flush()
        if not self.is_open:
            self._flush()

    def _flush(self) -> None:
        """Print the line that has come, whole or not."""
        if self._part:
            self._out.write(self._prefix.encode() + self._part)
            self._part = b""


def _follow(factory: Factory, logs: list[ShownLog]) -> None:
    """Print what comes until all containers have ended."""
    followed = [log for log in logs if log.is_open]

    def have_ended() -> bool:
        states = [log.go_on() for log in followed]
        factory.stdout.flush()
        return not any(states)

    def next_time() -> datetime | None:
        moments = [log.next_time() for log in followed]
        return min((moment for moment in moments if moment is not None), default=None)

    if followed:
        timeout = factory.options.timeout_seconds() or None
        factory.driver.wait_until(have_ended, timeout, retry=driver.Retry(next_time, goes_on=True))
