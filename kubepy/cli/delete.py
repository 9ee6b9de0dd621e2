"""``kubepy delete``: objects by file, name, label or all of a type. Upstream: ``kubectl/pkg/cmd/delete/delete.go``."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from kubepy.cli.errors import CliError, raise_all, unless_missing, with_source
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, parse_bool
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import duration_flag as duration
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    NONE,
    SERVER,
    all_namespaces_flag,
    dry_run,
    dry_run_flag,
    field_selector_flag,
    filename_flags,
    raw_flag,
    selector_flag,
)
from kubepy.cli.runtime.infos import Info, Result, printed_kind
from kubepy.cli.runtime.output import SUFFIXES
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.quoting import printable, quote

IMMEDIATE = ("Immediate deletion does not wait for confirmation that the running resource has been terminated. The "
             "resource may continue to run on the cluster indefinitely.")
WEEK = 7 * 24 * 3600.0
POLICIES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


def deletion_flags(what: str, *, wait: bool = True) -> list[Flag]:
    """What delete, apply --force and replace --force take; ``wait``: the default of --wait."""
    return [
        *filename_flags(what),
        string("cascade", default="background", no_value="background", help='Must be "background", "orphan", or '
               '"foreground". How to delete the dependents (e.g. the pods of a DaemonSet).'),
        boolean("force", help="If true, immediately remove resources and bypass graceful deletion."),
        integer("grace-period", default=-1, help="Period of time in seconds given to the resource to terminate "
                "gracefully. Ignored if negative."),
        duration("timeout", help="The length of time to wait before giving up on a delete, zero means as long as it "
                 "takes."),
        boolean("wait", default=wait, help="If true, wait for resources to be gone before returning."),
    ]


FLAGS = [
    *deletion_flags("containing the resource to delete."),
    selector_flag(),
    field_selector_flag(),
    boolean("all", help="Delete all resources, in the namespace of the specified resource types."),
    all_namespaces_flag(),
    boolean("ignore-not-found", help='Treat "resource not found" as a successful delete. On with --all, -l and '
            "--field-selector."),
    boolean("now", help="If true, resources are signaled for immediate shutdown (same as --grace-period=1)."),
    boolean("interactive", "i", help="If true, ask before deleting."),
    raw_flag("DELETE"),
    string("output", "o", help='Output mode. Use "-o name" for shorter output (resource/name).'),
    dry_run_flag(),
]


class Options(NamedTuple):
    """How to delete. ``grace`` -1: as each object says."""

    grace: int
    force: bool
    policy: str
    dry_run: str
    short: bool


@verb("delete", "delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)])", flags=FLAGS, examples="""
# Delete what a file describes
kubepy delete -f manifests/nginx-ds.yaml

# Delete a DaemonSet and leave its pods
kubepy delete ds/nginx-ds --cascade=orphan

# Delete all pods with a label, without waiting
kubepy delete pods -l app=nginx-ds --wait=false
""")
def delete(factory: Factory, given: Invocation) -> None:
    """Delete resources by file names, stdin, resources and names, or by resources and label selector.

    Waits until the objects are gone, and runs the controllers meanwhile."""
    options = complete(factory, given)
    if given.raw:
        from kubepy.cli import raw_writes

        if given.interactive:
            raise CliError("--interactive can not be used with --raw")
        raw_writes.delete(factory, given, given.output)
        return
    result = find(factory, given, retrieve=False, everything=given.all)
    if given.ignore_not_found or ((given.all or given.selector or given.field_selector)
                                  and not given.changed("ignore-not-found")):
        result.ignore_not_found()
    validate(factory, given, options)
    if given.interactive and not _confirmed(factory, result := result.kept()):
        return
    deleted = delete_all(factory, result, options, warn_cluster_scope=factory.namespace_given
                         and not given.all_namespaces)
    if given.wait and options.dry_run == NONE:
        wait_until_gone(factory, deleted, given.timeout or WEEK)


def complete(factory: Factory, given: Invocation) -> Options:
    """Raises CliError for values that contradict each other."""
    grace: int = given.grace_period
    if given.flag("now"):
        if grace != -1:
            raise CliError("--now and --grace-period cannot be specified together")
        grace = 1
    if grace == 0 and not given.force:
        grace = 1
    if given.force and grace < 0:
        grace = 0
    strategy = dry_run(factory, given)
    return Options(grace, given.force, propagation_policy(factory, given.cascade), strategy,
                   given.flag("output", "") == "name")


def propagation_policy(factory: Factory, cascade: str) -> str:
    """The API's name of a ``--cascade`` value; the old boolean ones warn."""
    if cascade in POLICIES:
        return POLICIES[cascade]
    try:
        meant = "background" if parse_bool(cascade) else "orphan"
    except ValueError:
        raise CliError(f'invalid cascade value ({printable(cascade)}). Must be "background", "foreground", or '
                       '"orphan"') from None
    factory.say(f"warning: --cascade={cascade} is deprecated (boolean value) and can be replaced with "
                f"--cascade={meant}.")
    return POLICIES[meant]


def validate(factory: Factory, given: Invocation, options: Options) -> None:
    if given.output not in ("", "name"):
        raise CliError(f"unexpected -o output mode: {given.output}. We only support '-o name'")
    if given.all and given.selector:
        raise CliError("cannot set --all and --selector at the same time")
    if given.all and given.field_selector:
        raise CliError("cannot set --all and --field-selector at the same time")
    warn_of_force(factory, options)


def warn_of_force(factory: Factory, options: Options) -> None:
    if options.force and options.grace > 0:
        raise CliError("--force and --grace-period greater than 0 cannot be specified together")
    if options.force:
        factory.warn(IMMEDIATE)


def delete_all(factory: Factory, result: Result, options: Options, *, warn_cluster_scope: bool = False) -> list[Info]:
    """Delete what was found, with a line for each; returns what was deleted, with each object's last state."""
    deleted: list[Info] = []
    seen = 0

    def delete_one(info: Info) -> None:
        nonlocal seen
        seen += 1
        factory.progress.show("deleting", seen)
        if warn_cluster_scope and not info.resource.namespaced:
            factory.warn("deleting cluster-scoped resources, not scoped to the provided namespace")
        if options.dry_run != CLIENT:
            delete_object(factory, info, options)
        print_deleted(factory, info, options)
        deleted.append(info)

    raise_all(result.errors_of(delete_one))
    if not seen:
        factory.print("No resources found")
    return deleted


def delete_object(factory: Factory, info: Info, options: Options) -> None:
    """Ask for one deletion; the answer becomes the Info's object."""
    from kubepy.apiserver.request import DeleteOptions

    if not info.name:
        raise with_source(CliError("resource name may not be empty"), "deleting", info.source)
    asked = DeleteOptions(grace_period_seconds=options.grace if options.grace >= 0 else None,
                          propagation_policy=options.policy, dry_run=options.dry_run == SERVER)
    try:
        info.object = factory.client.delete(info.resource.key, info.name, namespace=info.namespace, options=asked)
    except Exception as error:
        raise with_source(error, "deleting", info.source) from None


def print_deleted(factory: Factory, info: Info, options: Options) -> None:
    if options.short:
        factory.print(info.printed_name)
        return
    done = "force deleted" if options.grace == 0 else "deleted"
    place = f" from {printable(info.namespace)} namespace" if info.resource.namespaced else ""
    factory.print(f"{printed_kind(info.resource)} {quote(info.name)} {done}{place}{SUFFIXES[options.dry_run]}")


def wait_until_gone(factory: Factory, infos: list[Info], timeout: float) -> None:
    """Wait for the objects in turn; one of another uid is not the one that was deleted. Raises CliError for the first
    that is still there when the time is over."""
    clock = factory.cluster.clock
    deadline = clock.monotonic() + timeout
    for number, info in enumerate(infos, 1):
        factory.progress.show("waiting until gone", number, len(infos))
        if not is_gone(factory, info, deadline - clock.monotonic(), f"{number}/{len(infos)} {info.object_name}"):
            raise CliError(f"timed out waiting for the condition on {info.object_name}")


def is_gone(factory: Factory, info: Info, timeout: float, about: str = "") -> bool:
    """Whether an object is gone, or another has its name, before the time is over. ``about``: what is waited for."""
    return _is_gone(factory, info) or factory.driver.wait_until(partial(_is_gone, factory, info), timeout, about)


def _is_gone(factory: Factory, info: Info) -> bool:
    found = unless_missing(factory.client.get, info.resource.gvr, info.name, namespace=info.namespace)
    return found is None or found["metadata"].get("uid") != info.content["metadata"].get("uid")


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
