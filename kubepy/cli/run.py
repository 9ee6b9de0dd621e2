"""``kubepy run``. Upstream: ``kubectl/pkg/cmd/run/run.go``,
``kubectl/pkg/generate/versioned/run.go``."""

from __future__ import annotations

import re

from kubepy.api.meta import Object
from kubepy.api.objects.images import is_image_reference
from kubepy.api.values.gonumbers import NumberError, atoi
from kubepy.apiserver.request import CreateOptions
from kubepy.cli.create.objects import metadata, save_config
from kubepy.cli.create.service_objects import ServiceSettings, parse_pairs, service
from kubepy.cli.delete import DeleteFlags, propagation_policy
from kubepy.cli.errors import CliError, is_expected, raise_all
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import (
    bool_flag,
    duration_flag,
    int_flag,
    string_array_flag,
    string_flag,
    string_slice_flag,
)
from kubepy.cli.runtime.objects import record
from kubepy.cli.runtime.options import (
    CLIENT,
    NONE,
    NOTHING,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    PrintFlags,
    RecordOptions,
    SaveConfigOptions,
    field_manager_flag,
)
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.overrides import OverrideOptions, overridden
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.cli.inside import running
    from kubepy.kubelet import inside


class RunOptions(
    OverrideOptions,
    PrintFlags,
    DryRunOptions,
    SaveConfigOptions,
    FieldManagerOptions,
    RecordOptions,
    DeleteFlags,
):
    """The flags of ``run``."""

    image: str = string_flag("image", help="The image for the container to run.")
    image_pull_policy: str = string_flag(
        "image-pull-policy",
        help="The image pull policy for the container: Always, IfNotPresent or Never.",
    )
    annotations: list[str] = string_array_flag(
        "annotations", help="Annotations to apply to the pod."
    )
    env: list[str] = string_array_flag(
        "env", help="Environment variables to set in the container (KEY=VALUE)."
    )
    port: str = string_flag("port", help="The port that this container exposes.")
    labels: str = string_flag(
        "labels", "l", help="Comma separated labels to apply to the pod. Default: run=NAME."
    )
    restart: str = string_flag(
        "restart",
        default="Always",
        help="The restart policy for this pod: Always, OnFailure, Never.",
    )
    command: bool = bool_flag(
        "command",
        help="If true and extra arguments are present, use them as the command of "
        "the container, rather than as its arguments.",
    )
    expose: bool = bool_flag(
        "expose", help="If true, create a ClusterIP service for the pod. Requires --port."
    )
    privileged: bool = bool_flag(
        "privileged", help="If true, run the container in privileged mode."
    )
    stdin: bool = bool_flag(
        "stdin",
        "i",
        help="Keep stdin open on the container, and attach to it.",
    )
    tty: bool = bool_flag("tty", "t", help="Allocate a terminal for the container.")
    leave_stdin_open: bool = bool_flag(
        "leave-stdin-open", help="Leave stdin open after the first attach completes."
    )
    attach: bool = bool_flag(
        "attach",
        help="If true, wait for the pod to start running, and then attach to it as if 'attach' "
        "were called. Default false, unless -i is set, in which case the default is true.",
    )
    rm: bool = bool_flag(
        "rm", help="If true, delete the pod after it exits. Only valid when attaching to it."
    )
    quiet: bool = bool_flag("quiet", "q", help="If true, suppress prompt messages.")
    detach_keys: str = string_flag("detach-keys", default="ctrl-p,ctrl-q", help=NOTHING)
    pod_running_timeout: float = duration_flag(
        "pod-running-timeout",
        default=60.0,
        help="How long to wait until the pod is running, and after its end until it is over.",
    )
    field_manager: str = field_manager_flag("kubectl-run")
    filename: list[str] = string_slice_flag("filename", "f", help=NOTHING)
    kustomize: str = string_flag("kustomize", "k", help=NOTHING)
    recursive: bool = bool_flag("recursive", "R", help=NOTHING)
    cascade: str = string_flag("cascade", default="background", no_value="background", help=NOTHING)
    force: bool = bool_flag("force", help=NOTHING)
    grace_period: int = int_flag("grace-period", default=-1, help=NOTHING)
    timeout: float = duration_flag("timeout", help=NOTHING)
    wait: bool = bool_flag("wait", help=NOTHING)


PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")
RESTART_POLICIES = ("Always", "OnFailure", "Never")


@command(
    'run NAME --image=image [--env="key=value"] [--port=port] [--dry-run=server|client] '
    "[--command] -- "
    "[COMMAND] [args...]",
    RunOptions,
    creates=True,
    examples="""
# A pod with one container
kubepy run shell --image=busybox

# With a port that the container listens on
kubepy run cache --image=redis:7 --port=6379

# With variables
kubepy run worker --image=worker:3 --env=LEVEL=debug --env=QUEUE=mail

# With labels in place of run=NAME
kubepy run canary --image=nginx:1.27 --labels=app=web,track=canary

# With arguments for the image's own command
kubepy run fetcher --image=fetcher:1 -- --depth=3 https://example.com

# With another command
kubepy run greeting --image=busybox --restart=Never --command -- echo hello

# With fields that no flag is for
kubepy run picky --image=busybox --overrides='{"spec":{"nodeSelector":{"disk":"ssd"}}}'

# And a service in front of it
kubepy run front --image=nginx:1.27 --port=80 --expose

# Print the pod that would be made
kubepy run draft --image=busybox --dry-run=client -o yaml
""",
)
def run(factory: Factory, options: RunOptions) -> None:
    """Create and run a particular image in a pod."""
    options.require("image")
    strategy = factory.dry_run_strategy(options)
    printer = printer_for(factory, options, "created", strategy, typed=True)
    policy = propagation_policy(factory, options.cascade)
    validate(options, strategy)
    is_attached = attaches(options)
    if is_attached and not inside.runs_containers(factory.client):
        raise CliError(
            "attaching is not supported: no containers run here, pods are simulated "
            "(--attach=false "
            "creates the pod only)"
        )
    pod = _created(factory, options, overridden(options, pod_of(factory, options)), strategy)
    created = [pod]
    errors: list[Exception] = []
    if options.expose:
        try:
            created.append(_expose(factory, options, printer, strategy))
        except Exception as error:
            if not is_expected(error):
                raise
            errors.append(error)

    if is_attached:
        program = options.line.path.rpartition(" ")[0]
        run = running.AttachedRun(
            f"{program} attach",
            policy,
            options.pod_running_timeout,
            options.restart,
            options.stdin,
            options.tty,
            options.quiet,
            options.rm,
            not options.leave_stdin_open,
        )
        factory.tell_unknowns()
        running.attach_to_created(factory, run, created, pod)
        return
    printer(pod)
    raise_all(errors)


def validate(options: RunOptions, strategy: str) -> None:
    """Raise CliError, or UsageError with a pointer to the help, for wrong flags."""
    if not options.args:
        options.usage_error("NAME is required for run")
    if not options.image:
        raise CliError("--image is required")
    if not is_image_reference(options.image):
        raise CliError(f"Invalid image name {quote(options.image)}: invalid reference format")
    if options.tty and not options.stdin:
        options.usage_error("-i/--stdin is required for containers with -t/--tty=true")
    if options.expose and not options.port:
        options.usage_error("--port must be set when exposing a service")
    if options.restart and options.restart not in RESTART_POLICIES:
        options.usage_error(printable(f"invalid restart policy: {options.restart}"))
    _validate_attach(options, strategy)
    if options.image_pull_policy not in PULL_POLICIES:
        options.usage_error(f"invalid image pull policy: {options.image_pull_policy}")


def _validate_attach(options: RunOptions, strategy: str) -> None:
    attach = attaches(options)
    if options.rm and not attach:
        options.usage_error("--rm should only be used for attached containers")
    if attach and strategy != NONE:
        options.usage_error(
            "--dry-run=[server|client] can't be used with attached containers options (--attach, "
            "--stdin, or --tty)"
        )


def attaches(options: RunOptions) -> bool:
    """Tell whether the command attaches to its pod."""
    if options.changed("attach"):
        return options.attach
    return options.stdin


# --- objects --------------------------------------------------------------------------------------


def pod_of(factory: Factory, options: RunOptions) -> Object:
    """Return the pod, its fields in Go's order. Raises CliError."""
    name = options.args[0]
    labels = parse_pairs(options.labels) if options.labels else {"run": name}
    spec = {
        "containers": [_container(options, name)],
        "restartPolicy": options.restart or "Always",
        "dnsPolicy": "ClusterFirst",
    }
    if wrong := [text for text in options.annotations if text.find("=") < 1]:
        raise CliError(f"invalid annotations format: {', '.join(wrong)}")
    annotations = dict(sorted(text.split("=", 1) for text in options.annotations))
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata(factory, name, labels=labels, annotations=annotations),
        "spec": spec,
        "status": {},
    }


def _container(options: RunOptions, name: str) -> Object:
    words = options.args[1:]
    try:
        ports = [{"containerPort": atoi(options.port)}] if options.port else []
    except NumberError as error:
        raise CliError(str(error)) from None

    fields = {
        "name": name,
        "image": options.image,
        "command": words if options.command else [],
        "args": [] if options.command else words,
        "ports": ports,
        "env": [_variable(text) for text in options.env],
    }
    more = {
        "imagePullPolicy": options.image_pull_policy,
        "securityContext": {"privileged": True} if options.privileged else {},
        "stdin": options.stdin,
        "stdinOnce": options.stdin and not options.leave_stdin_open,
        "tty": options.tty,
    }
    return {**_filled(fields), "resources": {}, **_filled(more)}


def _filled(fields: Object) -> Object:
    return {key: value for key, value in fields.items() if value}


def _variable(text: str) -> Object:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[-._a-zA-Z][-._a-zA-Z0-9]*", name):
        raise CliError(printable(f"invalid env: {text}"))
    return _filled({"name": name, "value": value})


def _expose(factory: Factory, options: RunOptions, printer: Printer, strategy: str) -> Object:
    """Create the service of ``--expose``, and print it before its pod; return it."""
    name = options.args[0]
    labels = parse_pairs(options.labels) if options.labels else {}
    settings = ServiceSettings(name, labels or {"run": name}, [options.port], labels, {})
    obj = service(settings, metadata(factory, name, labels=labels))
    created = _created(factory, options, obj, strategy)
    printer(created)
    if options.output == "yaml":
        factory.print("---")
    return created


def _created(factory: Factory, options: RunOptions, obj: Object, strategy: str) -> Object:
    if options.record:
        record(obj, options)
    if strategy == CLIENT:
        return obj
    if options.save_config:
        save_config(obj)
    return factory.client.create(
        f"{obj['kind'].lower()}s",
        obj,
        namespace=factory.namespace,
        options=CreateOptions(dry_run=strategy == SERVER, field_manager=options.field_manager),
    )
