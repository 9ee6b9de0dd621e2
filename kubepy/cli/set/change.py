"""Changing objects one by one: the change, its patch, the request, and what is said of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    filename_flags,
    local_flag,
    output_flags,
    record_flag,
)
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import record, two_way_patch, type_name, typed
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.verbs import Invocation, find
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

LOCAL_RESOURCE = """error: you must specify resources by --filename when --local is set.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'"""
# Changes an object in place. Raises CliError for one that it cannot change.
Change = Callable[[Object], None]


def common_flags(verb: str, *, recorded: bool = True) -> list[Flag]:
    """The flags that all commands of `set` take; most take a selector, too."""
    return [
        *filename_flags("identifying the resource to get from the cluster."),
        *output_flags(), dry_run_flag(), field_manager_flag("kubectl-set"), local_flag(f"set {verb}"),
        boolean("all", help="Select all resources in the namespace of the specified resource types."),
        *([record_flag()] if recorded else []),
    ]


class Reply(NamedTuple):
    """How a command writes and tells of it: see ``flagsets.dry_run`` and ``output.printer_for``."""

    strategy: str
    print: Printer


def reply_of(factory: Factory, given: Invocation, done: str) -> Reply:
    """What --dry-run and -o ask for; an object that was changed is printed as ``done`` ("image updated").

    It comes before anything is looked up, since a wrong flag is told before a missing object. Raises CliError.
    """
    strategy = dry_run(factory, given)
    return Reply(strategy, printer_for(factory, given, done, strategy, typed=True))


def refuse_contradictions(given: Invocation, reply: Reply) -> None:
    """Raise CliError for flags that exclude each other."""
    refuse_local_server(given, reply)
    refuse_all_of_selected(given)


def refuse_all_of_selected(given: Invocation) -> None:
    if given.all and given.flag("selector"):
        raise CliError("cannot set --all and --selector at the same time")


def refuse_local_server(given: Invocation, reply: Reply) -> None:
    """Raise CliError for a command that may not ask the cluster, and is to ask it for a dry run."""
    if given.local and reply.strategy == SERVER:
        raise CliError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")


def found_for(factory: Factory, given: Invocation, args: Sequence[str], *, drops_words: bool = False) -> Result:
    """The objects to change, each as the cluster has it, or as its file says with --local.

    With --local words are refused, since nothing can be looked up (``drops_words``: they are dropped).
    """
    if given.local and args and not drops_words:
        raise CliError(LOCAL_RESOURCE)
    args = () if given.local else args
    return find(factory, given, args=args, bare_types=given.all, latest=not given.local, local=given.local,
                typed=True)


def infos_for(factory: Factory, given: Invocation, args: Sequence[str], *, drops_words: bool = False) -> list[Info]:
    """All objects to change, see :func:`found_for`."""
    infos = found_for(factory, given, args, drops_words=drops_words).all_infos()
    for info in infos:
        as_typed(given, info)
    return infos


def as_typed(given: Invocation, info: Info) -> None:
    """Raise CliError for an object of a type that commands which know types do not know."""
    type_name(info.content)
    if given.local:
        info.object = typed(info.content, info.source)


def change_each(factory: Factory, given: Invocation, infos: Sequence[Info], change: Change, reply: Reply, *,
                failed: str, errors: list[Exception] | None = None, always: bool = False) -> None:
    """Change every object and print it.

    :param failed: what comes before the message of a patch that the API refuses.
    :param errors: filled by ``change`` with errors that do not stop it; all errors are raised at the end.
    :param always: print also an object that the change leaves as it was.
    """
    errors = [] if errors is None else errors
    for info in infos:
        try:
            changed = changed_copy(given, info, change)
        except CliError as error:
            errors.append(CliError(f"error: {_name(given, info)} {error}\n"))
            continue
        try:
            send(factory, given, info, changed, reply, always=always)
        except api_errors.Status as error:
            errors.append(CliError(f"{failed}{error}"))
    raise_all(errors)


def changed_copy(given: Invocation, info: Info, change: Change) -> Object:
    """The object as it is to be. Raises CliError."""
    changed = copy.deepcopy(info.content)
    change(changed)
    if given.flag("record"):
        record(changed, given)
    return changed


def send(factory: Factory, given: Invocation, info: Info, changed: Object, reply: Reply, *, always: bool) -> None:
    """Patch the object and print it; ``always``: also one that does not change. Raises Status."""
    patch, patch_type = two_way_patch(info.content, changed)
    if not patch and not always:
        return
    is_sent = not given.local and reply.strategy != CLIENT
    reply.print(_patched(factory, given, info, patch, patch_type, reply.strategy) if is_sent else changed)


def _patched(factory: Factory, given: Invocation, info: Info, patch: Object, patch_type: str,
             strategy: str) -> Object:
    return factory.client.patch(info.resource.gvr, info.name, Patch(patch_type, patch), namespace=info.namespace,
                                options=PatchOptions(dry_run=strategy == SERVER, field_manager=given.field_manager))


def _name(given: Invocation, info: Info) -> str:
    """How an object is named that cannot be changed; what was only read from a file has no resource to name."""
    if not given.local:
        return info.object_name
    return f"{info.printed_name}\n" if info.resource.group else info.printed_name
