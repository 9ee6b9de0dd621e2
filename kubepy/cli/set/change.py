"""Changing objects one by one: the change, its patch, the request, and what is said of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.errors import CliError, is_status, raise_all
from kubepy.cli.runtime.flags import Flag, boolean
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
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.record import record
from kubepy.cli.runtime.resources import find
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.two_way import two_way_patch
from kubepy.cli.runtime.typed import type_name, typed
from kubepy.cluster.objects.meta import Object

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


def refuse_contradictions(session: Session, given: Invocation) -> None:
    """Raise CliError for flags that exclude each other."""
    if given.local and dry_run(session, given) == SERVER:
        raise CliError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
    if given.all and given.flag("selector"):
        raise CliError("cannot set --all and --selector at the same time")


def infos_for(session: Session, given: Invocation, args: Sequence[str], *, drops_words: bool = False) -> list[Info]:
    """The objects to change. With --local words are refused, since nothing can be looked up (``drops_words``: they are
    dropped)."""
    if given.local and args and not drops_words:
        raise CliError(LOCAL_RESOURCE)
    args = () if given.local else args
    infos = find(session, given, args=args, bare_types=given.all, latest=not given.local, local=given.local).all_infos()
    for info in infos:
        type_name(info.content)
        if given.local:
            info.object = typed(info)
    return infos


def change_each(session: Session, given: Invocation, infos: Sequence[Info], change: Change, *, done: str,
                failed: str | None, errors: list[Exception] | None = None, always: bool = False,
                named: bool = True) -> None:
    """Change every object and print it as ``done`` ("image updated").

    :param failed: what comes before the message of a patch that the API refuses; None: it is told as the API's.
    :param errors: filled by ``change`` with errors that do not stop it; all errors are raised at the end.
    :param always: print also an object that the change leaves as it was.
    :param named: say which object it is that ``change`` refuses.
    """
    errors = [] if errors is None else errors
    strategy = dry_run(session, given)
    printer = printer_for(session, given, done, strategy, typed=True)
    for info in infos:
        try:
            changed = _changed(given, info, change)
        except CliError as error:
            errors.append(CliError(f"error: {_name(given, info)} {error}\n") if named else error)
            continue
        patch, patch_type = two_way_patch(info.content, changed)
        if not patch and not always:
            continue
        try:
            is_sent = not given.local and strategy != CLIENT
            printer(_send(session, given, info, patch, patch_type, strategy) if is_sent else changed)
        except Exception as error:
            if not is_status(error):
                raise
            errors.append(error if failed is None else CliError(f"{failed}{error}"))
    raise_all(errors)


def _send(session: Session, given: Invocation, info: Info, patch: Object, patch_type: str, strategy: str) -> Object:
    return session.client.patch(info.resource.key, info.name, patch, patch_type, namespace=info.namespace,
                                dry_run=strategy == SERVER, field_manager=given.field_manager)


def _name(given: Invocation, info: Info) -> str:
    """How an object is named that cannot be changed; what was only read from a file has no resource to name."""
    if not given.local:
        return info.object_name
    return f"{info.printed_name}\n" if info.resource.group else info.printed_name


def _changed(given: Invocation, info: Info, change: Change) -> Object:
    changed = copy.deepcopy(info.content)
    change(changed)
    if given.flag("record"):
        record(changed, given)
    return changed
