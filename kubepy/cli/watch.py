"""``kubepy get --watch``: the objects, and then every change of them. Upstream: ``get.go`` (watch)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.getting import for_type, is_table, object_printer, style_of
from kubepy.cli.runtime.infos import Info, Result, Scope
from kubepy.cli.runtime.output import document, in_sorted_order, requested, told
from kubepy.cli.runtime.resources import find, listed, resource_of
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.tables import Style, format_lines, lines
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

POLL_SECONDS = 0.1
EVENTS = {"ADDED": "ADDED   ", "MODIFIED": "MODIFIED", "DELETED": "DELETED "}


class Event(NamedTuple):
    """``type``: ADDED, MODIFIED or DELETED, of what the watch sees."""

    type: str
    object: Object


# Prints what happened together.
Show = Callable[[Sequence[Event]], None]
Known = dict[tuple[str, str], Object]


def watch(session: Session, given: Invocation) -> None:
    """Print what is there, and then every change, until interrupted."""
    if given.sort_by:
        session.say("warning: --watch requested, --sort-by will be ignored for watch events received" if given.watch
                    else "warning: --watch-only requested, --sort-by will be ignored")
    result = find(session, given, bare_types=True, latest=True)
    if len(result.scopes) > 1 or _names_several_types(session, given.args):
        raise CliError("you may only specify a single resource type")
    since = session.client.revision()
    infos = _there(session, result, given)
    if not infos and not result.scopes:
        return
    resource = result.scopes[0].resource if result.scopes else infos[0].resource
    show = _printer(session, given, resource)
    if infos and not given.watch_only:
        show([Event("ADDED", info.content) for info in infos])
    if len(infos) > 1 and not result.scopes:
        raise _too_many(infos)
    session.stdout.flush()
    _follow(session, _scope(result, infos), since, {(one.namespace, one.name): one.content for one in infos}, show)


def _too_many(infos: list[Info]) -> CliError:
    """``Result.Watch``: each name and each file is a source of its own, of which there may be one, with one object."""
    if infos[0].source and len({info.source for info in infos}) == 1:
        return CliError("watch is only supported on individual resources and resource collections - "
                        f"{len(infos)} resources were found")
    return CliError("you may only watch a single resource or type of resource at a time")


def _names_several_types(session: Session, args: Sequence[str]) -> bool:
    """Whether words like ``cm/a`` are of more than one type."""
    return len({resource_of(session, word.partition("/")[0]).key for word in args if "/" in word}) > 1


def _there(session: Session, result: Result, given: Invocation) -> list[Info]:
    if result.scopes:
        return Result(listed(session, result.scopes[0])).all_infos()
    if given.ignore_not_found:
        result.ignore_not_found()
    return result.all_infos()


def _scope(result: Result, infos: list[Info]) -> Scope:
    if result.scopes:
        return result.scopes[0]
    return Scope(infos[0].resource, infos[0].namespace, "", f"metadata.name={infos[0].name}")


# --- printing -----------------------------------------------------------------------------------------------------


def _printer(session: Session, given: Invocation, resource: Resource) -> Show:
    if is_table(given):
        return _row_printer(session, given, resource)
    print_one = _event_printer(session, given) if given.output_watch_events else _object_printer(session, given)

    def show(events: Sequence[Event]) -> None:
        for event in events:
            print_one(event)

    return show


def _row_printer(session: Session, given: Invocation, resource: Resource) -> Show:
    """The header before the first row and where the kind changes, and no column ever narrower than it was."""
    style = for_type(style_of(given), given, resource)._replace(subresource="")
    widths: list[int] = []
    headed = ""  # the kind of the latest header

    def show(events: Sequence[Event]) -> None:
        nonlocal headed
        text: list[str] = []
        for kind, group in groupby(events, key=lambda event: str(event.object["kind"])):
            head = style.headers and kind != headed
            text += _rows(session, given, _of_kind(session, resource, kind, events), list(group),
                          style._replace(headers=head))
            headed = kind
        session.print(format_lines(text, widths), end="")

    return show


def _of_kind(session: Session, resource: Resource, kind: str, events: Sequence[Event]) -> Resource:
    """The type of the objects of a kind; files may hold several."""
    if kind == resource.kind:
        return resource
    version = next(event.object["apiVersion"] for event in events if event.object["kind"] == kind)
    return session.scheme.for_kind(version, kind) or resource


def _rows(session: Session, given: Invocation, resource: Resource, events: list[Event], style: Style) -> list[str]:
    objects = [event.object for event in events]
    if given.watch and given.sort_by:
        objects = _sorted(given.sort_by, objects)
    text = lines(resource, objects, style, session.cluster.clock.now())
    if not given.output_watch_events:
        return text
    heads = (["EVENT"] if style.headers else []) + [EVENTS[event.type] for event in events]
    return [f"{head}\t{line}" for head, line in zip(heads, text, strict=True)]


def _sorted(field: str, objects: list[Object]) -> list[Object]:
    from kubepy.cli.runtime.sorting import sorted_by

    return sorted_by(field, objects) if len(objects) > 1 else objects


def _object_printer(session: Session, given: Invocation) -> Callable[[Event], None]:
    printer = object_printer(session, given)
    return lambda event: printer(event.object)


def _event_printer(session: Session, given: Invocation) -> Callable[[Event], None]:
    """Events as objects of their own; kubectl has JSON of them on one line, and managedFields in all."""
    style, _ = requested(given)
    printer = object_printer(session, given, typed=True)

    def print_event(event: Event) -> None:
        if style == "name":
            printer(event.object)
            return
        whole = {"type": event.type, "object": in_sorted_order(told(session, event.object, managers=True))}
        if style == "json":
            session.print(document("json", whole, typed=True, indent=0), end="")
        else:
            printer(whole)

    return print_event


# --- changes ------------------------------------------------------------------------------------------------------


def _follow(session: Session, scope: Scope, since: int, known: Known, show: Show) -> None:
    """Show every change until the request's time is over.

    Raises CliError once the type is not served any more: an API server closes such watches.
    """
    for _ in session.ticks(POLL_SECONDS):
        since, events = _changes(session, scope, since, known)
        for event in events:
            show([event])
        session.stdout.flush()
        if not session.scheme.is_served(scope.resource.key):
            raise CliError("watch closed before UntilWithoutRetry timeout")


def _changes(session: Session, scope: Scope, since: int, known: Known) -> tuple[int, list[Event]]:
    """What the watch sees of what happened after a revision, in order; ``known`` becomes what it sees now."""
    try:
        reached, changes = session.client.changes(since)
    except api_errors.Expired:
        reached, keys = session.client.revision(), []
    else:
        keys = [(change.key.namespace, change.key.name, change.old if change.new is None else None)
                for change in changes if change.key.resource == scope.resource.key]
        if not keys:
            return reached, []
    if not session.scheme.is_served(scope.resource.key):
        return reached, [event for namespace, name, last in keys if last is not None
                         for event in _step(known, (namespace, name), {}, last)]
    now = {(info.namespace, info.name): info.content for info in Result(listed(session, scope)).all_infos()}
    events = [event for namespace, name, last in keys for event in _step(known, (namespace, name), now, last)]
    for key in [*known.keys() - now.keys(), *now]:  # what the log no longer told
        events += _step(known, key, now, None)
    return reached, events


def _step(known: Known, key: tuple[str, str], now: Known, last: Object | None) -> Iterator[Event]:
    """What one change means to the watch. ``last``: the object's last state, if it was deleted."""
    before, after = known.get(key), None if last is not None else now.get(key)
    if after is not None:
        known[key] = after
        if before is None:
            yield Event("ADDED", after)
        elif before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]:
            yield Event("MODIFIED", after)
    elif before is not None:
        del known[key]
        yield Event("DELETED", last or before)
