"""``set image``, ``set resources`` and ``set serviceaccount``: change pods and pod templates.

Upstream: ``kubectl/pkg/cmd/set/{set_image,set_resources,set_serviceaccount}.go``.
"""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime.command import bringing, command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag
from kubepy.cli.runtime.options import KustomizeOptions, RecordOptions, local_flag
from kubepy.cli.set.change import (
    SetOptions,
    SetSelectedOptions,
    Setter,
    all_containers,
    pod_spec_of,
    refuse_all_of_selected,
    select_containers,
    split_pairs,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api.values import quantity


# --- image ----------------------------------------------------------------------------------------


class SetImageOptions(SetSelectedOptions, RecordOptions):
    """The flags of ``set image``."""

    local: bool = local_flag("set image")


@bringing
@command(
    "image (-f FILENAME | TYPE NAME) CONTAINER=IMAGE ...",
    SetImageOptions,
    examples="""
# A new image for one container
kubepy set image ds/log-agent agent=fluent-bit:3.1

# For two containers at once
kubepy set image deploy/pair nginx=nginx:1.28 redis=redis:8

# For all containers of a workload
kubepy set image sts/store '*=postgres:17'

# Of all Deployments and DaemonSets with a label
kubepy set image deploy,ds -l tier=front '*=nginx:1.28'

# Print a changed file, without a cluster
kubepy set image -f web.yaml web=nginx:1.28 --local -o yaml
""",
)
def image(factory: Factory, options: SetImageOptions) -> None:
    """Update existing container image(s) of resources.

    Possible resources: pods, replication controllers, deployments, daemon sets, stateful sets, cron jobs, replica sets.
    """  # noqa: E501
    setter = Setter(factory, options, "image updated")
    resources, images = split_pairs(options.args, "image")
    infos = setter.infos(resources)
    problems: list[Exception] = []
    if not resources and not options.filename and not options.kustomize:
        problems.append(
            CliError(
                "one or more resources must be specified as <resource> <name> or <resource>/<name>"
            )
        )

    if not images:
        problems.append(CliError("at least one image update is required"))
    elif len(images) > 1 and "*" in images:
        problems.append(
            CliError(
                "all containers are already specified by *, but saw more than one"
                " container_name=container_image pairs"
            )
        )

    raise_all(problems)
    setter.refuse_local_server()
    refuse_all_of_selected(options)
    errors: list[Exception] = []

    def change(obj: Object) -> None:
        errors.extend(set_images(pod_spec_of(obj), images))

    setter.change_each(
        infos, change, errors=errors, failed="failed to patch image update to pod template: "
    )


def set_images(spec: Object, images: dict[str, str]) -> list[Exception]:
    """Set the images of containers by name (``*``: all). Return an error for each name that no
    container has."""
    errors: list[Exception] = []
    for name, new_image in images.items():
        containers = [
            container for container in all_containers(spec) if name in ("*", container["name"])
        ]
        for container in containers:
            container["image"] = new_image
        if not containers:
            errors.append(CliError(f"error: unable to find container named {quote(name)}"))
    return errors


# --- resources ------------------------------------------------------------------------------------


class SetResourcesOptions(SetSelectedOptions, RecordOptions):
    """The flags of ``set resources``."""

    local: bool = local_flag("set resources")
    containers: str = string_flag(
        "containers",
        "c",
        "*",
        help="The names of containers in the selected pod templates to change - may use wildcards.",
    )
    limits: str = string_flag(
        "limits",
        help="The resource limits for this container. For example, 'cpu=100m,memory=256Mi'.",
    )
    requests: str = string_flag(
        "requests",
        help="The resource requests for this container. For example, 'cpu=100m,memory=256Mi'.",
    )


@command(
    "resources (-f FILENAME | TYPE NAME) ([--limits=LIMITS & --requests=REQUESTS])",
    SetResourcesOptions,
    examples="""
# Limits for one container
kubepy set resources deploy/web -c web --limits=cpu=200m,memory=256Mi

# Requests and limits for all containers
kubepy set resources ds/log-agent --requests=cpu=50m,memory=64Mi --limits=cpu=100m,memory=128Mi

# Take requests and limits away
kubepy set resources deploy/web --requests=cpu=0,memory=0 --limits=cpu=0,memory=0

# Print a changed file, without a cluster
kubepy set resources -f web.yaml --limits=memory=512Mi --local -o yaml
""",
)
def resources(factory: Factory, options: SetResourcesOptions) -> None:
    """Specify compute resource requirements (CPU, memory) for any resource that defines a pod template."""  # noqa: E501
    setter = Setter(factory, options, "resource requirements updated")
    infos = setter.infos(options.args)
    setter.refuse_local_server()
    refuse_all_of_selected(options)
    if not options.limits and not options.requests:
        raise CliError(
            "you must specify an update to requests or limits (in the form of --requests/--limits)"
        )

    requirements = {
        "limits": parse_amounts(options.limits),
        "requests": parse_amounts(options.requests),
    }
    errors: list[Exception] = []

    def change(obj: Object) -> None:
        containers = select_containers(pod_spec_of(obj), options.containers)
        if not containers:
            errors.append(CliError(f"error: unable to find container named {options.containers}"))
        for container in containers:
            for kind, amounts in requirements.items():
                if amounts:
                    container.setdefault("resources", {}).setdefault(kind, {}).update(amounts)

    setter.change_each(
        infos, change, errors=errors, failed="failed to patch resources update to pod template "
    )


def parse_amounts(text: str) -> Object:
    """Parse ``cpu=100m,memory=256Mi`` into a resource list of canonical quantities. Raises
    CliError."""
    amounts: Object = {}
    for part in text.split(",") if text else []:
        name, equals, amount = part.partition("=")
        if not equals or "=" in amount:
            raise CliError(
                printable(f"Invalid argument syntax {part}, expected <resource>=<value>")
            )
        try:
            amounts[name] = str(quantity.Quantity.parse(amount))
        except ValueError as error:
            raise CliError(str(error)) from None
    return amounts


# --- serviceaccount -------------------------------------------------------------------------------


class SetServiceAccountOptions(SetOptions, KustomizeOptions, RecordOptions):
    """The flags of ``set serviceaccount``."""

    local: bool = local_flag("set serviceaccount")


@command(
    "serviceaccount (-f FILENAME | TYPE NAME) SERVICE_ACCOUNT",
    SetServiceAccountOptions,
    examples="""
    # Run the pods of a deployment as another service account
    kubepy set serviceaccount deployment/web runner

    # Only show what that would change
    kubepy set serviceaccount deployment/web runner --dry-run=client -o yaml
""",
)
def serviceaccount(factory: Factory, options: SetServiceAccountOptions) -> None:
    """Update the service account of pod template resources."""
    setter = Setter(factory, options, "serviceaccount updated")
    setter.refuse_local_server()
    if not options.args:
        raise CliError("serviceaccount is required")
    *words, name = options.args

    def change(obj: Object) -> None:
        pod_spec_of(obj)["serviceAccountName"] = name

    setter.change_each(
        setter.infos(words, drops_words=True),
        change,
        failed="failed to patch ServiceAccountName ",
        always=True,
    )
