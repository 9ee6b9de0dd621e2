"""``kubepy get --watch``: the objects, and then every change of them. Upstream: ``get.go``
(watch)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.settings import IMPLIED
from kubepy.cli.errors import CliError
from kubepy.cli.get_flags import GetOptions, style_for
from kubepy.cli.get_output import object_printer
from kubepy.cli.runtime.builder import Builder, listed, resource_of
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Result, Scope
from kubepy.cli.runtime.output import document, requested, shown_object
from kubepy.cli.runtime.tables import Style, format_lines, lines
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api import types as go_types
    from kubepy.cli.runtime import sorting

POLL_SECONDS = 0.1
EVENTS = {"ADDED": "ADDED   ", "MODIFIED": "MODIFIED", "DELETED": "DELETED "}


class Event(NamedTuple):
    """A change of an object that the watch follows; ``type``: ADDED, MODIFIED or DELETED."""

    type: str
    object: Object


# Prints events that happened together.
Show = Callable[[Sequence[Event]], None]
Known = dict[tuple[str, str], Object]


def watch(factory: Factory, options: GetOptions) -> None:
    """Print the objects that exist, and then every change, until interrupted."""
    if options.sort_by:
        factory.say(
            "warning: --watch requested, --sort-by will be ignored for watch events received"
            if options.watch
            else "warning: --watch-only requested, --sort-by will be ignored"
        )

    result = Builder(factory, options, bare_types=True, latest=True).do()
    if len(result.scopes) <= 1:
        types = {
            resource_of(factory, word.partition("/")[0]).key for word in options.args if "/" in word
        }
    else:
        types = set()

    if len(result.scopes) > 1 or len(types) > 1:
        raise CliError("you may only specify a single resource type")
    since = factory.client.revision()
    if any("watch" not in scope.resource.verbs for scope in result.scopes):
        raise api_errors.method_not_allowed()
    if result.scopes:
        scope = result.scopes[0]
        infos = Result(listed(factory, scope)).all_infos()
    else:
        if options.ignore_not_found:
            result.ignore_not_found()
        infos = result.all_infos()
        if not infos:
            return
        scope = Scope(infos[0].resource, infos[0].namespace, "", f"metadata.name={infos[0].name}")

    show = _printer(factory, options, scope.resource)
    if infos and not options.watch_only:
        show([Event("ADDED", info.content) for info in infos])
    if len(infos) > 1 and not result.scopes:
        # As Result.Watch: each name and each file is a source, of which one may have one object.
        if infos[0].source and len({info.source for info in infos}) == 1:
            raise CliError(
                "watch is only supported on individual resources and resource collections - "
                f"{len(infos)} resources were found"
            )
        raise CliError("you may only watch a single resource or type of resource at a time")

    factory.stdout.flush()
    _follow(
        factory, scope, since, {(info.namespace, info.name): info.content for info in infos}, show
    )


# --- printing -------------------------------------------------------------------------------------


def _printer(factory: Factory, options: GetOptions, resource: Resource) -> Show:
    if options.wants_table:
        return _row_printer(factory, options, resource)
    if options.output_watch_events:
        return _event_printer(factory, options)
    print_object = object_printer(factory, options)

    def show(events: Sequence[Event]) -> None:
        for event in events:
            print_object(event.object)

    return show


def _row_printer(factory: Factory, options: GetOptions, resource: Resource) -> Show:
    """Print rows, with a header before the first and where the kind changes; columns never get
    narrower."""
    style = style_for(resource, options, options.style)._replace(subresource="")
    widths: list[int] = []
    headed = ""  # the kind of the latest header

    def show(events: Sequence[Event]) -> None:
        nonlocal headed
        text: list[str] = []
        for kind, group in groupby(events, key=lambda event: str(event.object["kind"])):
            rows = list(group)
            row_resource = resource
            if kind != resource.kind:  # files may hold several kinds
                row_resource = (
                    factory.scheme.for_kind(rows[0].object["apiVersion"], kind) or resource
                )
            text += _rows(
                factory,
                options,
                row_resource,
                rows,
                style._replace(headers=style.headers and kind != headed),
            )
            headed = kind

        factory.print(format_lines(text, widths), end="")

    return show


def _rows(
    factory: Factory, options: GetOptions, resource: Resource, events: list[Event], style: Style
) -> list[str]:
    objects = [event.object for event in events]
    if options.watch and options.sort_by and len(objects) > 1:
        objects = sorting.sorted_by(options.sort_by, objects)
    text = lines(resource, objects, style, factory.cluster.clock.now())
    if not options.output_watch_events:
        return text
    heads = (["EVENT"] if style.headers else []) + [EVENTS[event.type] for event in events]
    return [f"{head}\t{line}" for head, line in zip(heads, text, strict=True)]


def _event_printer(factory: Factory, options: GetOptions) -> Show:
    """Print events as objects of their own; as kubectl's, JSON is on one line, and managedFields
    are in all."""
    style, _ = requested(options)
    printer = object_printer(factory, options, typed=True)

    def show(events: Sequence[Event]) -> None:
        for event in events:
            if style == "name":
                printer(event.object)
                continue
            obj = go_types.in_key_order(shown_object(factory, event.object, managers=True))
            whole = {"type": event.type, "object": obj}
            if style == "json":
                factory.print(document("json", whole, typed=True, indent=0), end="")
            else:
                printer(whole)

    return show


# --- changes --------------------------------------------------------------------------------------


def _follow(factory: Factory, scope: Scope, since: int, known: Known, show: Show) -> None:
    """Show every change until --request-timeout has passed.

    Raises CliError once the type is not served any more: an API server closes such watches.
    """

    def show_changes() -> None:
        nonlocal since
        since, events = changes_since(factory, scope, since, known)
        for event in events:
            show([event])
        factory.stdout.flush()

    for _ in factory.ticks(POLL_SECONDS):
        factory.driver.react(show_changes)
        show_changes()
        if not factory.scheme.is_served(scope.resource.key):
            raise CliError("watch closed before UntilWithoutRetry timeout")


def changes_since(
    factory: Factory, scope: Scope, since: int, known: Known
) -> tuple[int, list[Event]]:
    """Return the events after a revision, in order, and the revision reached; brings ``known`` up
    to date."""
    try:
        reached, changes = factory.client.changes(since)
    except api_errors.Expired:
        reached = factory.client.revision()
        keys = []
    else:
        keys = [
            (change.key.namespace, change.key.name, change.old if change.new is None else None)
            for change in changes
            if change.key.resource == scope.resource.key
        ]
        if not keys and not (
            changes and scope.resource.key in IMPLIED
        ):  # a new namespace has a ServiceAccount
            return reached, []

    if not factory.scheme.is_served(scope.resource.key):
        return reached, [
            event
            for namespace, name, last in keys
            if last is not None
            for event in _step(known, (namespace, name), {}, last)
        ]

    now = {
        (info.namespace, info.name): info.content
        for info in Result(listed(factory, scope)).all_infos()
    }
    events = [
        event
        for namespace, name, last in keys
        for event in _step(known, (namespace, name), now, last)
    ]
    for key in [*known.keys() - now.keys(), *now]:  # changes that the log no longer holds
        events += _step(known, key, now, None)
    return reached, events


def _step(known: Known, key: tuple[str, str], now: Known, last: Object | None) -> Iterator[Event]:
    """Yield the event of one change. ``last``: the object's last state, if it was deleted."""
    before = known.get(key)
    after = None if last is not None else now.get(key)
    if after is not None:
        known[key] = after
        if before is None:
            yield Event("ADDED", after)
        elif before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]:
            yield Event("MODIFIED", after)
    elif before is not None:
        del known[key]
        yield Event("DELETED", last or before)
