"""``kubepy attach``, and the attaching of ``run`` and ``debug``.

Upstream: ``kubectl/pkg/cmd/attach/attach.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.errors import InternalError, Status
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.cli.errors import CliError
from kubepy.cli.inside.execute import check_is_running
from kubepy.cli.inside.pods import (
    PODS,
    SessionOptions,
    attachable_pod,
    find_or_default_container,
    named_object,
    require_containers,
)
from kubepy.cli.inside.streams import ByteWriter, StreamedSession, has_terminal
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag
from kubepy.cli.runtime.options import NOTHING
from kubepy.kubelet.inside import NoContainers
from kubepy.kubelet.logs import LogOptions
from kubepy.kubelet.sessions import attach_to, log_of

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

RECORDED = (
    "All commands and output from this session will be recorded in container logs, including "
    "credentials and sensitive information passed through the command prompt."
)
PROMPT = "If you don't see a command prompt, try pressing enter."


class AttachOptions(SessionOptions):
    """The flags of ``attach``."""

    detach_keys: str = string_flag("detach-keys", default="ctrl-p,ctrl-q", help=NOTHING)


class Attachment(NamedTuple):
    """The options of an attachment.

    :ivar command: the command that attaches again, for the message at the end.
    """

    command: str
    container: str = ""
    stdin: bool = False
    tty: bool = False
    quiet: bool = False


@command(
    "attach (POD | TYPE/NAME) -c CONTAINER",
    AttachOptions,
    examples="""
# What a pod prints from now on
kubepy attach web

# Of one of its containers
kubepy attach web -c sidecar

# With stdin, in a terminal
kubepy attach web -c sidecar -i -t

# The first pod of a ReplicaSet
kubepy attach rs/web
""",
)
def attach(factory: Factory, options: AttachOptions) -> None:
    """Attach to a process that is already running inside an existing container."""
    words = options.args
    if not words:
        raise CliError("at least 1 argument is required for attach")
    if len(words) > 2:
        raise CliError(
            "expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw "
            f"{len(words)}: [{' '.join(words)}]"
        )
    if options.pod_running_timeout <= 0:
        raise CliError("--pod-running-timeout must be higher than zero")
    require_containers(factory, "attach")
    factory.catch_up()
    resource, obj = named_object(
        factory, options, words, "cannot attach to multiple objects at a time"
    )
    pod = attachable_pod(
        factory,
        resource,
        obj,
        options.pod_running_timeout,
    )
    check_is_running(pod, "attach")
    attachment = Attachment(
        options.line.path, options.container, options.stdin, options.tty, options.quiet
    )
    attach_pod(factory, pod, attachment)


def attach_pod(factory: Factory, pod: Object, attachment: Attachment) -> None:
    """Attach to a container of a pod until it ends. Raises CliError, Status, NoContainers."""
    try:
        container = find_or_default_container(
            factory,
            pod,
            attachment.container,
            attachment.quiet,
        )
    except CliError as error:
        raise CliError(f"cannot attach to the container: {error}") from None
    name = container["name"]
    tty = bool(container.get("tty"))
    if attachment.tty and not tty and not attachment.quiet:
        factory.say(f"error: Unable to use a TTY - container {name} did not allocate one")
    reads = attachment.stdin
    tty = has_terminal(factory, tty and reads, attachment.quiet)
    if not attachment.quiet:
        factory.say(RECORDED)
        factory.say(PROMPT)
    reads = reads and bool(container.get("stdin"))
    try:
        session = attach_to(factory.client, cast("Pod", pod), name, stdin=reads)
    except InternalError as error:  # as kubectl shows the Status of a stream
        raise CliError(error.message) from None
    StreamedSession(
        factory,
        session,
        reads=reads,
        tty=tty,
    ).run()
    if reads and tty and not attachment.quiet:
        factory.print(_reattach_message(pod, name, attachment.command))


def _reattach_message(pod: Object, container: str, command_name: str) -> str:
    again = f"'{command_name} {name_of(pod)} -c {container} -n {namespace_of(pod)} -i -t'"
    ephemeral = pod["spec"].get("ephemeralContainers") or ()
    if any(entry["name"] == container for entry in ephemeral):
        return (
            "Session ended, the ephemeral container will not be restarted but may be reattached "
            f"using {again} if it is still running"
        )
    return f"Session ended, resume using {again} command"


def attach_or_log(factory: Factory, pod: Object, attachment: Attachment) -> None:
    """Attach to a container, or print its log if it cannot be attached to. Raises CliError,
    Status."""
    try:
        attach_pod(factory, pod, attachment)
    except (CliError, NoContainers, Status) as error:
        factory.say(
            f"warning: couldn't attach to pod/{name_of(pod)}, falling back to streaming logs: "
            f"{error}"
        )
        print_log(factory, pod, attachment)


def print_log(factory: Factory, pod: Object, attachment: Attachment) -> None:
    """Print the log of a container as it is. Raises CliError, Status."""
    container = find_or_default_container(
        factory,
        pod,
        attachment.container,
        attachment.quiet,
    )
    client = factory.client
    present = cast("Pod", client.get(PODS, name_of(pod), namespace=namespace_of(pod)))
    log = log_of(client, present, LogOptions(container["name"]))
    if log is not None:
        ByteWriter(factory.stdout).write(log.data)
