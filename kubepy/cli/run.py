"""``kubepy run``. Upstream: ``kubectl/pkg/cmd/run/run.go``, ``kubectl/pkg/generate/versioned/run.go``."""

from __future__ import annotations

import re

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import NumberError, atoi
from kubepy.apiserver.request import CreateOptions
from kubepy.cli.create.objects import metadata, save_config
from kubepy.cli.create.service_objects import Service, parse_pairs, service
from kubepy.cli.delete import deletion_flags, propagation_policy
from kubepy.cli.errors import CliError, is_expected, raise_all
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import duration_flag as duration
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    NONE,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    output_flags,
    record_flag,
    save_config_flag,
)
from kubepy.cli.runtime.objects import record
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.overrides import overridden, override_flags
from kubepy.cli.runtime.verbs import NOTHING, Invocation, changed_flag, verb
from kubepy.quoting import printable, quote

FLAGS = [
    string("image", help="The image for the container to run."),
    string("image-pull-policy", help="The image pull policy for the container: Always, IfNotPresent or Never."),
    string_array("annotations", help="Annotations to apply to the pod."),
    string_array("env", help="Environment variables to set in the container (KEY=VALUE)."),
    string("port", help="The port that this container exposes."),
    string("labels", "l", help="Comma separated labels to apply to the pod. Default: run=NAME."),
    string("restart", default="Always", help="The restart policy for this pod: Always, OnFailure, Never."),
    boolean("command", help="If true and extra arguments are present, use them as the command of the container, rather "
            "than as its arguments."),
    boolean("expose", help="If true, create a ClusterIP service for the pod. Requires --port."),
    boolean("privileged", help="If true, run the container in privileged mode."),
    boolean("stdin", "i", help="Keep stdin open on the container. Nothing can be attached to: give --attach=false."),
    boolean("tty", "t", help="Allocate a terminal for the container."),
    boolean("leave-stdin-open", help="Leave stdin open after the first attach completes."),
    boolean("attach", help="Not supported: no containers run here."),
    boolean("rm", help="Not supported: it needs --attach."),
    boolean("quiet", "q", help="If true, suppress prompt messages."),
    string("detach-keys", default="ctrl-p,ctrl-q", help=NOTHING),
    duration("pod-running-timeout", default=60.0, help=NOTHING),
    *override_flags(),
    *output_flags(),
    dry_run_flag(),
    save_config_flag(),
    field_manager_flag("kubectl-run"),
    record_flag(),
    *(changed_flag(flag, help=NOTHING) for flag in deletion_flags("to use to replace the resource.", wait=False)),
]
PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")
RESTART_POLICIES = ("Always", "OnFailure", "Never")


@verb("run", "run NAME --image=image [--env=\"key=value\"] [--port=port] [--dry-run=server|client] [--command] -- "
      "[COMMAND] [args...]", flags=FLAGS, creates=True, examples="""
# A pod of one container
kubepy run box --image=busybox:1.36 -- sleep 3600

# Only show the pod
kubepy run box --image=busybox:1.36 --dry-run=client -o yaml

# A pod and a service in front of it
kubepy run web --image=nginx:1.25 --port=80 --expose
""")
def run(factory: Factory, given: Invocation) -> None:
    """Create and run a particular image in a pod."""
    given.require("image")
    strategy = dry_run(factory, given)
    printer = printer_for(factory, given, "created", strategy, typed=True)
    propagation_policy(factory, given.cascade)
    validate(given, strategy)
    pod = _created(factory, given, overridden(given, pod_of(factory, given)), strategy)
    errors: list[Exception] = []
    if given.expose:
        try:
            _expose(factory, given, printer, strategy)
        except Exception as error:
            if not is_expected(error):
                raise
            errors.append(error)
    printer(pod)
    raise_all(errors)


def validate(given: Invocation, strategy: str) -> None:
    """Raises CliError for what cannot be meant, UsageError for wrong flags."""
    if not given.args:
        given.usage_error("NAME is required for run")
    if not given.image:
        raise CliError("--image is required")
    if not is_image_reference(given.image):
        raise CliError(f"Invalid image name {quote(given.image)}: invalid reference format")
    if given.tty and not given.stdin:
        given.usage_error("-i/--stdin is required for containers with -t/--tty=true")
    if given.expose and not given.port:
        given.usage_error("--port must be set when exposing a service")
    if given.restart and given.restart not in RESTART_POLICIES:
        given.usage_error(printable(f"invalid restart policy: {given.restart}"))
    _validate_attach(given, strategy)
    if given.image_pull_policy not in PULL_POLICIES:
        given.usage_error(f"invalid image pull policy: {given.image_pull_policy}")


def _validate_attach(given: Invocation, strategy: str) -> None:
    attach = given.attach or (given.stdin and not given.changed("attach"))
    if given.rm and not attach:
        given.usage_error("--rm should only be used for attached containers")
    if attach and strategy != NONE:
        given.usage_error("--dry-run=[server|client] can't be used with attached containers options (--attach, "
                          "--stdin, or --tty)")
    if attach:
        raise CliError("attaching is not supported: no containers run here, pods are simulated (--attach=false "
                       "creates the pod only)")


_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_PATH_PART}(?:/{_PATH_PART})*"
    r"(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?", re.ASCII)


def is_image_reference(text: str) -> bool:
    """``github.com/distribution/reference``: ``registry:5000/group/name:tag@sha256:…``."""
    return _REFERENCE.fullmatch(text) is not None


# --- objects ------------------------------------------------------------------------------------------------------


def pod_of(factory: Factory, given: Invocation) -> Object:
    """The pod, its fields in Go's order. Raises CliError."""
    name = given.args[0]
    labels = parse_pairs(given.labels) if given.labels else {"run": name}
    spec = {"containers": [_container(given, name)], "restartPolicy": given.restart or "Always",
            "dnsPolicy": "ClusterFirst"}
    made = metadata(factory, name, labels=labels, annotations=_annotations(given))
    return {"kind": "Pod", "apiVersion": "v1", "metadata": made, "spec": spec, "status": {}}


def _container(given: Invocation, name: str) -> Object:
    words = given.args[1:]
    fields = {
        "name": name,
        "image": given.image,
        "command": words if given.command else [],
        "args": [] if given.command else words,
        "ports": [{"containerPort": _port(given.port)}] if given.port else [],
        "env": [_variable(text) for text in given.env],
    }
    more = {
        "imagePullPolicy": given.image_pull_policy,
        "securityContext": {"privileged": True} if given.privileged else {},
        "stdin": given.stdin,
        "stdinOnce": given.stdin and not given.leave_stdin_open,
        "tty": given.tty,
    }
    return {**_filled(fields), "resources": {}, **_filled(more)}


def _filled(fields: Object) -> Object:
    return {key: value for key, value in fields.items() if value}


def _port(text: str) -> int:
    try:
        return atoi(text)
    except NumberError as error:
        raise CliError(str(error)) from None


def _variable(text: str) -> Object:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[-._a-zA-Z][-._a-zA-Z0-9]*", name):
        raise CliError(printable(f"invalid env: {text}"))
    return _filled({"name": name, "value": value})


def _annotations(given: Invocation) -> dict[str, str]:
    wrong = [text for text in given.annotations if text.find("=") < 1]
    if wrong:
        raise CliError(f"invalid annotations format: {', '.join(wrong)}")
    pairs = (text.partition("=") for text in given.annotations)
    return dict(sorted((key, value) for key, _, value in pairs))


def _expose(factory: Factory, given: Invocation, printer: Printer, strategy: str) -> None:
    """The service of ``--expose``, printed before its pod."""
    name = given.args[0]
    labels = parse_pairs(given.labels) if given.labels else {}
    wanted = Service(name, labels or {"run": name}, [given.port], labels, {})
    made = service(wanted, metadata(factory, name, labels=labels))
    printer(_created(factory, given, made, strategy))
    if given.output == "yaml":
        factory.print("---")


def _created(factory: Factory, given: Invocation, obj: Object, strategy: str) -> Object:
    if given.record:
        record(obj, given)
    if strategy == CLIENT:
        return obj
    if given.save_config:
        save_config(obj)
    return factory.client.create(f"{obj['kind'].lower()}s", obj, namespace=factory.namespace,
                                 options=CreateOptions(dry_run=strategy == SERVER, field_manager=given.field_manager))
