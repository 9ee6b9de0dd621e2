"""``kubepy scale``. Upstream: ``kubectl/pkg/cmd/scale/scale.go``, ``kubectl/pkg/scale``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.request import MERGE_PATCH, Patch, PatchOptions, UpdateOptions
from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, int_flag, string_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import CHANGE_CAUSE, record
from kubepy.cli.runtime.options import (
    CLIENT,
    NONE,
    SERVER,
    UNNAMED,
    DryRunOptions,
    KustomizeOptions,
    PrintFlags,
    RecordOptions,
    SelectorOptions,
    filename_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.quoting import quote


class ScaleOptions(SelectorOptions, KustomizeOptions, PrintFlags, DryRunOptions, RecordOptions):
    """The flags of ``scale``."""

    replicas: int = int_flag("replicas", help="The new desired number of replicas. Required.")
    current_replicas: int = int_flag(
        "current-replicas",
        default=-1,
        help="Precondition for current size. -1 (default) for no condition.",
    )
    resource_version: str = string_flag(
        "resource-version", help="Precondition for resource version."
    )
    timeout: float = duration_flag(
        "timeout",
        help="The length of time to wait before giving up on a scale operation, "
        "zero means don't wait.",
    )
    all: bool = bool_flag(
        "all", help="Select all resources in the namespace of the specified resource types."
    )
    filename: list[str] = filename_flag("identifying the resource to set a new size")


@command(
    "scale [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME)",
    ScaleOptions,
    examples="""
# Give a Deployment three pods
kubepy scale deploy/web --replicas=3

# Only if it has two now
kubepy scale deploy/web --current-replicas=2 --replicas=4

# The workload of a file
kubepy scale -f web.yaml --replicas=2

# Several workloads
kubepy scale deploy/web sts/store --replicas=2

# Stop a StatefulSet, whose claims stay
kubepy scale sts/store --replicas=0
""",
)
def scale(factory: Factory, options: ScaleOptions) -> None:
    """Set a new size for a deployment, replica set, replication controller, or stateful set.

    The preconditions --current-replicas and --resource-version are validated before the scaling is attempted."""  # noqa: E501
    options.require("replicas")
    strategy = factory.dry_run_strategy(options)
    printer = printer_for(factory, options, "scaled", strategy)
    if options.replicas < 0:
        raise CliError(
            "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0"
        )

    if options.current_replicas < -1:
        raise CliError("The --current-replicas must specify an integer of -1 or greater")
    infos, errors = Builder(factory, options, bare_types=options.all).do().infos()
    if options.resource_version and len(infos) > 1:
        raise CliError("cannot use --resource-version with multiple resources")
    if not infos:
        raise_all(errors)
        raise CliError("no objects passed to scale")
    for info in infos:
        printer(scaled(factory, options, info, strategy))
    raise_all(errors)


def scaled(factory: Factory, options: ScaleOptions, info: Info, strategy: str) -> Object:
    """Scale one object, unless it is a dry run on the client; returns the object to print."""
    if strategy == CLIENT:
        return with_replicas(info, options.replicas)
    replicas = scale_one(factory, options, info, dry_run=strategy == SERVER)
    if strategy == NONE and options.timeout:

        def is_scaled() -> bool:
            scale = factory.client.get(
                info.resource.gvr, info.name, namespace=info.namespace, subresource="scale"
            )
            return bool(scale.get("status", {}).get("replicas", 0) == options.replicas)

        if not is_scaled() and not factory.driver.wait_until(is_scaled, options.timeout):
            raise CliError(f"timed out waiting for {quote(info.name)} to be synced")

    obj = with_replicas(info, replicas)
    if options.record:
        obj = {**obj, "metadata": {**obj["metadata"]}}
        record(obj, options)
    if options.record and strategy == NONE:
        cause = {
            "metadata": {
                "annotations": {CHANGE_CAUSE: obj["metadata"]["annotations"][CHANGE_CAUSE]}
            }
        }
        factory.client.patch(
            info.resource.gvr,
            info.name,
            Patch(MERGE_PATCH, cause),
            namespace=info.namespace,
            options=PatchOptions(field_manager=UNNAMED),
        )

    return obj


def scale_one(factory: Factory, options: ScaleOptions, info: Info, *, dry_run: bool) -> int:
    """Set the size; returns the new size. With preconditions the scale is read, checked and written
    in one step."""
    client = factory.client
    resource = info.resource.gvr
    if options.current_replicas == -1 and not options.resource_version:
        answer = client.patch(
            resource,
            info.name,
            Patch(MERGE_PATCH, {"spec": {"replicas": options.replicas}}),
            namespace=info.namespace,
            subresource="scale",
            options=PatchOptions(dry_run=dry_run, field_manager=UNNAMED),
        )
        return _replicas(answer)

    with client.joined():
        current = client.get(resource, info.name, namespace=info.namespace, subresource="scale")
        replicas = _replicas(current)
        version = current["metadata"]["resourceVersion"]
        if options.current_replicas not in (-1, replicas):
            raise CliError(f"Expected replicas to be {options.current_replicas}, was {replicas}")
        if options.resource_version not in ("", version):
            raise CliError(
                f"Expected resource version to be {options.resource_version}, was {version}"
            )
        changed = {**current, "spec": {**current.get("spec", {}), "replicas": options.replicas}}
        return _replicas(
            client.update(
                resource,
                changed,
                namespace=info.namespace,
                subresource="scale",
                options=UpdateOptions(dry_run=dry_run, field_manager=UNNAMED),
            )
        )


def _replicas(scale: Object) -> int:
    replicas: int = scale.get("spec", {}).get("replicas", 0)
    return replicas


def with_replicas(info: Info, replicas: int) -> Object:
    if info.resource.group not in ("apps", ""):
        return info.content
    return {**info.content, "spec": {**info.content.get("spec", {}), "replicas": replicas}}
