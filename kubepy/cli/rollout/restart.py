"""``rollout restart``, ``pause`` and ``resume``: small changes of the object itself.

Upstream: ``kubectl/pkg/cmd/rollout/rollout_{restart,pause,resume}.go``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from kubepy.api.meta import Object, nested_map
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.errors import AggregateError, CliError
from kubepy.cli.rollout import RolloutOptions, latest_objects
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import two_way_patch
from kubepy.cli.runtime.options import FieldManagerOptions, PrintFlags, field_manager_flag
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
RESTARTABLE = {"DaemonSet", "Deployment", "StatefulSet"}


class RestartOptions(RolloutOptions, PrintFlags, FieldManagerOptions):
    """The flags of ``rollout restart``, ``pause`` and ``resume``."""

    field_manager: str = field_manager_flag("kubectl-rollout")


@command(
    "restart RESOURCE",
    RestartOptions,
    examples="""
# Replace the pods of a DaemonSet
kubepy rollout restart ds/log-agent

# Of a StatefulSet, from the last to the first
kubepy rollout restart sts/store

# Of all Deployments with a label
kubepy rollout restart deployment -l app=web

# Of all Deployments of a namespace
kubepy rollout restart deployment -n shop
""",
)
def restart(factory: Factory, options: RestartOptions) -> None:
    """Restart a resource: its pods are replaced as in a rollout."""
    now = factory.cluster.clock.timestamp()

    def stamp(obj: Object) -> None:
        if obj["kind"] not in RESTARTABLE:
            raise CliError("restarting is not supported")
        if obj["spec"].get("paused"):
            raise CliError("can't restart paused deployment (run rollout resume first)")
        metadata = obj["spec"]["template"].setdefault("metadata", {})
        metadata["annotations"] = {**nested_map(metadata, "annotations"), RESTARTED_AT: now}

    _change_each(
        factory,
        options,
        stamp,
        "restarted",
        lambda name: CliError(
            f"failed to create patch for {name}: if restart has already been triggered within the "
            f"past second, please wait"
            " before attempting to trigger another"
        ),
    )


@command(
    "pause RESOURCE",
    RestartOptions,
    examples="""
# Change a Deployment in several steps: pause it, so that
# no step starts a rollout,
kubepy rollout pause deployment/web

# and go on after the last
kubepy rollout resume deployment/web

# Pause all Deployments with a label
kubepy rollout pause deploy -l tier=front
""",
)
def pause(factory: Factory, options: RestartOptions) -> None:
    """Mark the provided resource as paused: changes of it are not rolled out until it is resumed."""  # noqa: E501

    def set_paused(obj: Object) -> None:
        if obj["kind"] != "Deployment":
            raise CliError("pausing is not supported")
        if obj["spec"].get("paused"):
            raise CliError("is already paused")
        obj["spec"]["paused"] = True

    _change_each(factory, options, set_paused, "paused", _unpatchable)


@command(
    "resume RESOURCE",
    RestartOptions,
    examples="""
    # Roll out what has been collected
    kubepy rollout resume deployment/web

    # All deployments with a label
    kubepy rollout resume deploy -l tier=front
""",
)
def resume(factory: Factory, options: RestartOptions) -> None:
    """Resume a paused resource."""

    def unset_paused(obj: Object) -> None:
        if obj["kind"] != "Deployment":
            raise CliError("resuming is not supported")
        if not obj["spec"].pop("paused", False):
            raise CliError("is not paused")

    _change_each(factory, options, unset_paused, "resumed", _unpatchable)


def _unpatchable(name: str) -> CliError:
    return CliError(f"failed to create patch for {name}")


def _change_each(
    factory: Factory,
    options: RestartOptions,
    change: Callable[[Object], None],
    operation: str,
    unchanged: Callable[[str], CliError],
) -> None:
    """Change every workload and print it; errors are raised together at the end.

    :param change: changes the object. Raises CliError.
    :param operation: printed of a changed object: "paused".
    :param unchanged: makes the error for an object (by its name) that does not change.
    """
    options.require_resources()
    infos, errors = latest_objects(factory, options).infos()
    if not infos and not errors:
        factory.say(printable(f"No resources found in {factory.namespace} namespace."))
    for info in infos:
        try:
            changed = _change(factory, options, info, change, unchanged)
            printer_for(factory, options, operation, typed=True)(changed)
        except CliError as error:
            errors.append(error)
    if errors:
        raise AggregateError(errors)


def _change(
    factory: Factory,
    options: RestartOptions,
    info: Info,
    change: Callable[[Object], None],
    unchanged: Callable[[str], CliError],
) -> Object:
    changed = copy.deepcopy(info.content)
    try:
        change(changed)
    except CliError as error:
        raise CliError(f"error: {info.resource.key} {quote(info.name)} {error}") from None

    patch, patch_type = two_way_patch(info.content, changed)
    if not patch:
        raise unchanged(info.name)
    try:
        return factory.client.patch(
            info.resource.gvr,
            info.name,
            Patch(patch_type, patch),
            namespace=info.namespace,
            options=PatchOptions(field_manager=options.field_manager),
        )
    except api_errors.Status as error:
        raise CliError(f"failed to patch: {error}") from error
