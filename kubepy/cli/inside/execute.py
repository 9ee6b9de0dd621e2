"""``kubepy exec``. Upstream: ``kubectl/pkg/cmd/exec/exec.go``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kubepy.api.errors import InternalError
from kubepy.api.meta import Object, name_of, status_of
from kubepy.api.objects.pods import TERMINAL_PHASES
from kubepy.cli.errors import CliError
from kubepy.cli.inside.pods import (
    SessionOptions,
    all_container_names,
    attachable_pod,
    find_container,
    find_or_default_container,
    named_object,
    require_containers,
)
from kubepy.cli.inside.streams import StreamedSession, end_with, has_terminal
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_slice_flag
from kubepy.cli.runtime.options import FilenameOptions
from kubepy.kubelet.sessions import exec_in

if TYPE_CHECKING:
    from kubepy.api.typed import Pod


class ExecOptions(SessionOptions, FilenameOptions):
    """The flags of ``exec``."""

    filename: list[str] = string_slice_flag(
        "filename", "f", help="The file of the resource to exec into."
    )


@command(
    "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]",
    ExecOptions,
    examples="""
# The date of a pod, in its first container
kubepy exec web -- date

# In one of its containers
kubepy exec web -c sidecar -- ls -l /data

# A script from stdin
kubepy exec -i web -- sh < check.sh

# A shell
kubepy exec -it web -- sh

# In the first pod of a Deployment, and of a Service
kubepy exec deploy/web -- env
kubepy exec svc/web -- cat /etc/hostname
""",
)
def exec_(factory: Factory, options: ExecOptions) -> None:
    """Execute a command in a container.

    The command is one of the words that the model knows (docs/simulated.md); it works on the files of the model, and
    ends in the cluster's time. A program that is not known does nothing, and a line on stderr says so."""  # noqa: E501
    words = _subject(options)
    dash = options.line.dash
    command_words = options.args[dash:] if dash >= 0 else []
    if options.pod_running_timeout <= 0:
        options.usage_error("--pod-running-timeout must be higher than zero")
    if not words and not options.filename:
        raise CliError("pod, type/name or --filename must be specified")
    if not command_words:
        raise CliError("you must specify at least one command for the container")
    require_containers(factory, "exec")
    factory.catch_up()
    resource, obj = named_object(
        factory, options, words, "cannot exec into multiple objects at a time"
    )
    pod = attachable_pod(
        factory,
        resource,
        obj,
        options.pod_running_timeout,
    )
    check_is_running(pod, "exec into")
    container = chosen_container(
        factory,
        pod,
        options.container,
        options.quiet,
    )
    reads = options.stdin
    tty = has_terminal(factory, options.tty and reads, options.quiet)
    try:
        session = exec_in(
            factory.client, cast("Pod", pod), container["name"], command_words, stdin=reads, tty=tty
        )
    except InternalError as error:  # as kubectl shows the Status of a stream
        raise CliError(error.message) from None
    end_with(
        factory,
        StreamedSession(
            factory,
            session,
            reads=reads,
            tty=tty,
        ).run(),
    )


def _subject(options: ExecOptions) -> list[str]:
    """Return the POD or TYPE/NAME. Raises UsageError for a command without ``--``."""
    args = options.args
    dash = options.line.dash
    if dash < 0 and (len(args) > 1 or (args and options.filename)):
        options.usage_error(
            "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead"
        )
    if args and dash != 0:
        return args[:1]
    return []


def check_is_running(pod: Object, purpose: str) -> None:
    """Raise CliError for a pod that has ended."""
    phase = status_of(pod).get("phase")
    if phase in TERMINAL_PHASES:
        raise CliError(f"cannot {purpose} a container in a completed pod; current phase is {phase}")


def chosen_container(factory: Factory, pod: Object, name: str, quiet: bool) -> Object:
    """Return the container of ``-c``, or the default one. Raises CliError."""
    if not name:
        return find_or_default_container(
            factory,
            pod,
            "",
            quiet,
        )
    container = find_container(pod, name)
    if container is None:
        raise CliError(
            f"container {name} is not valid for pod {name_of(pod)} out of: "
            f"{all_container_names(pod)}"
        )
    return container
