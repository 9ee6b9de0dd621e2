"""``kubepy delete``: objects by file, name, label or all of a type. Upstream:
``kubectl/pkg/cmd/delete/delete.go``."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

from kubepy.apiserver.request import DeleteOptions
from kubepy.cli.errors import CliError, raise_all, unless_missing, with_source
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, int_flag, parse_bool, string_flag
from kubepy.cli.runtime.infos import Info, Result, printed_kind
from kubepy.cli.runtime.options import (
    CLIENT,
    NONE,
    SERVER,
    AllNamespacesOptions,
    DryRunOptions,
    FieldSelectorOptions,
    KustomizeOptions,
    RawOptions,
    SelectorOptions,
    filename_flag,
    raw_flag,
)
from kubepy.cli.runtime.output import SUFFIXES
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.cli import raw

IMMEDIATE = (
    "Immediate deletion does not wait for confirmation that the running resource has been "
    "terminated. The "
    "resource may continue to run on the cluster indefinitely."
)
POLICIES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


class DeleteFlags(KustomizeOptions):
    """The flags of delete that apply --force and replace --force take as well."""

    filename: list[str] = filename_flag("containing the resource to delete.")
    cascade: str = string_flag(
        "cascade",
        default="background",
        no_value="background",
        help='Must be "background", '
        '"orphan", or "foreground". How to delete the dependents (e.g. the pods of a '
        "DaemonSet).",
    )
    force: bool = bool_flag(
        "force", help="If true, immediately remove resources and bypass graceful deletion."
    )
    grace_period: int = int_flag(
        "grace-period",
        default=-1,
        help="Period of time in seconds given to the resource to "
        "terminate gracefully. Ignored if negative.",
    )
    timeout: float = duration_flag(
        "timeout",
        help="The length of time to wait before giving up on a delete, zero "
        "means as long as it takes.",
    )
    wait: bool = bool_flag(
        "wait", default=True, help="If true, wait for resources to be gone before returning."
    )


class DeleteCommandFlags(
    DeleteFlags,
    SelectorOptions,
    FieldSelectorOptions,
    AllNamespacesOptions,
    RawOptions,
    DryRunOptions,
):
    """The flags of ``delete``."""

    all: bool = bool_flag(
        "all", help="Delete all resources, in the namespace of the specified resource types."
    )
    ignore_not_found: bool = bool_flag(
        "ignore-not-found",
        help='Treat "resource not found" as a successful delete. '
        "On with --all, -l and --field-selector.",
    )
    now: bool = bool_flag(
        "now",
        help="If true, resources are signaled for immediate shutdown (same as --grace-period=1).",
    )
    interactive: bool = bool_flag("interactive", "i", help="If true, ask before deleting.")
    raw: str = raw_flag("DELETE")
    output: str = string_flag(
        "output", "o", help='Output mode. Use "-o name" for shorter output (resource/name).'
    )


class DeletionSettings(NamedTuple):
    """The settings that objects are deleted with.

    :param grace: seconds; -1: as each object says.
    :param short: print names only.
    """

    grace: int
    force: bool
    policy: str
    dry_run: str
    short: bool


@command(
    "delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)])",
    DeleteCommandFlags,
    examples="""
# The objects of a file
kubepy delete -f web.yaml

# The objects of a kustomization
kubepy delete -k overlays/production

# The objects of all files that a pattern matches
kubepy delete -f 'old-*.yaml'

# Objects that another program names
kubepy get pods -l app=canary -o name | xargs kubepy delete

# Objects of two types with the same names
kubepy delete deploy,service web video

# A workload, whose pods stay
kubepy delete ds/log-agent --cascade=orphan

# All objects of two types with a label, without waiting for the end of them
kubepy delete pods,services -l app=old --wait=false

# A pod with the shortest grace period
kubepy delete pod task --now

# A pod of a node that will not come back
kubepy delete pod stuck --force --grace-period=0

# All pods of a namespace
kubepy delete pods --all -n staging

# Only after a question
kubepy delete pods --all --interactive
""",
)
def delete(factory: Factory, options: DeleteCommandFlags) -> None:
    """Delete resources by file names, stdin, resources and names, or by resources and label selector.

    Waits until the objects are gone, and runs the controllers meanwhile."""  # noqa: E501
    grace = options.grace_period
    if options.now:
        if grace != -1:
            raise CliError("--now and --grace-period cannot be specified together")
        grace = 1

    deletion = deletion_of(
        factory, options, grace, factory.dry_run_strategy(options), short=options.output == "name"
    )
    if options.raw:
        if options.interactive:
            raise CliError("--interactive can not be used with --raw")
        raw.delete(factory, options, options.output)
        return

    result = Builder(factory, options, retrieve=False, everything=options.all, related=True).do()
    if options.ignore_not_found or (
        (options.all or options.selector or options.field_selector)
        and not options.changed("ignore-not-found")
    ):
        result.ignore_not_found()

    if options.output not in ("", "name"):
        raise CliError(f"unexpected -o output mode: {options.output}. We only support '-o name'")
    if options.all and options.selector:
        raise CliError("cannot set --all and --selector at the same time")
    if options.all and options.field_selector:
        raise CliError("cannot set --all and --field-selector at the same time")
    warn_of_force(factory, deletion)
    if options.interactive and not _confirmed(factory, result := result.kept()):
        return
    deleted = delete_all(
        factory,
        result,
        deletion,
        warn_cluster_scope=factory.namespace_given and not options.all_namespaces,
    )
    if options.wait and deletion.dry_run == NONE:
        wait_until_gone(factory, deleted, options.timeout or None)


def deletion_of(
    factory: Factory, options: DeleteFlags, grace: int, strategy: str, *, short: bool
) -> DeletionSettings:
    """Return the settings that the flags ask for, with ``grace`` for --grace-period. Raises
    CliError."""
    if grace == 0 and not options.force:
        grace = 1
    if options.force and grace < 0:
        grace = 0
    return DeletionSettings(
        grace, options.force, propagation_policy(factory, options.cascade), strategy, short
    )


def propagation_policy(factory: Factory, cascade: str) -> str:
    """Return the API's name of a ``--cascade`` value; the old boolean ones warn. Raises
    CliError."""
    if cascade in POLICIES:
        return POLICIES[cascade]
    try:
        replacement = "background" if parse_bool(cascade) else "orphan"
    except ValueError:
        raise CliError(
            f'invalid cascade value ({printable(cascade)}). Must be "background", "foreground", or '
            '"orphan"'
        ) from None
    factory.say(
        f"warning: --cascade={cascade} is deprecated (boolean value) and can be replaced with "
        f"--cascade={replacement}."
    )
    return POLICIES[replacement]


def warn_of_force(factory: Factory, deletion: DeletionSettings) -> None:
    if deletion.force and deletion.grace > 0:
        raise CliError("--force and --grace-period greater than 0 cannot be specified together")
    if deletion.force:
        factory.warn(IMMEDIATE)


def delete_all(
    factory: Factory,
    result: Result,
    deletion: DeletionSettings,
    *,
    warn_cluster_scope: bool = False,
) -> list[Info]:
    """Delete objects, with a line for each; returns those that were deleted, with their last
    states."""
    deleted: list[Info] = []
    count = 0

    def delete_one(info: Info) -> None:
        nonlocal count
        count += 1
        factory.progress.show("deleting", count)
        if warn_cluster_scope and not info.resource.namespaced:
            factory.warn("deleting cluster-scoped resources, not scoped to the provided namespace")
        if deletion.dry_run != CLIENT:
            delete_object(factory, info, deletion)
        print_deleted(factory, info, deletion)
        deleted.append(info)

    raise_all(result.errors_of(delete_one))
    if not count:
        factory.print("No resources found")
    return deleted


def delete_object(factory: Factory, info: Info, deletion: DeletionSettings) -> None:
    """Delete one object; the Info holds the cluster's answer."""
    if not info.name:
        raise with_source(CliError("resource name may not be empty"), "deleting", info.source)
    options = DeleteOptions(
        grace_period_seconds=deletion.grace if deletion.grace >= 0 else None,
        propagation_policy=deletion.policy,
        dry_run=deletion.dry_run == SERVER,
    )
    try:
        info.object = factory.client.delete(
            info.resource.gvr, info.name, namespace=info.namespace, options=options
        )
    except Exception as error:
        raise with_source(error, "deleting", info.source) from None


def print_deleted(factory: Factory, info: Info, deletion: DeletionSettings) -> None:
    if deletion.short:
        factory.print(info.printed_name)
        return
    operation = "force deleted" if deletion.grace == 0 else "deleted"
    place = f" from {printable(info.namespace)} namespace" if info.resource.namespaced else ""
    factory.print(
        f"{printed_kind(info.resource)} {quote(info.name)} "
        f"{operation}{place}{SUFFIXES[deletion.dry_run]}"
    )


def wait_until_gone(factory: Factory, infos: list[Info], timeout: float | None) -> None:
    """Wait for the objects in turn, for ever without a timeout; an object of another uid is a new
    one.

    Raises CliError for the first that still exists when the time is over.
    """
    clock = factory.cluster.clock
    deadline = math.inf if timeout is None else clock.monotonic() + timeout
    for number, info in enumerate(infos, 1):
        factory.progress.show("waiting until gone", number, len(infos))
        left = None if timeout is None else deadline - clock.monotonic()
        if not is_gone(factory, info, left, f"{number}/{len(infos)} {info.object_name}"):
            raise CliError(f"timed out waiting for the condition on {info.object_name}")


def is_gone(factory: Factory, info: Info, timeout: float | None, about: str = "") -> bool:
    """Return whether an object is deleted before the time is over. ``about``: its name in the
    progress."""
    return _is_gone(factory, info) or factory.driver.wait_until(
        partial(_is_gone, factory, info), timeout, about
    )


def _is_gone(factory: Factory, info: Info) -> bool:
    obj = unless_missing(factory.client.get, info.resource.gvr, info.name, namespace=info.namespace)
    return obj is None or obj["metadata"].get("uid") != info.content["metadata"].get("uid")


def _confirmed(factory: Factory, result: Result) -> bool:
    infos, _ = result.infos()
    if not infos:
        return True
    factory.print(f"You are about to delete the following {len(infos)} resource(s):")
    for info in infos:
        factory.print(info.printed_name)
    factory.print("Do you want to continue? (y/N): ", end="")
    factory.stdout.flush()
    if factory.stdin.readline().strip().lower() == "y":
        return True
    factory.print("deletion is cancelled")
    return False
