"""``kubepy get --watch``: the objects, and then every change of them. Upstream: ``get.go`` (watch)."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.cli.get import is_table, object_printer, style_of
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.errors import CliError, is_status
from kubepy.cli.runtime.resources import Info, Result, Scope, find, listed
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.tables import format_lines, lines
from kubepy.cluster.objects.meta import Object

POLL_SECONDS = 0.2
EVENTS = {"ADDED": "ADDED   ", "MODIFIED": "MODIFIED", "DELETED": "DELETED "}

# Prints one object with what happened to it.
Show = Callable[[str, Object], None]


def watch(session: Session, given: Invocation) -> None:
    """Print what is there, and then every change, until interrupted."""
    result = find(session, given, bare_types=True, latest=True)
    if len(result.scopes) > 1:
        raise CliError("you may only specify a single resource type")
    since = session.client.revision()
    scope, infos = _target(session, result, given)
    if scope is None:
        return
    show = _printer(session, given, scope)
    known = {(info.namespace, info.name): info.content for info in infos}
    if not given.watch_only:
        for info in infos:
            show("ADDED", info.content)
    session.stdout.flush()
    _follow(session, scope, since, known, show)


def _target(session: Session, result: Result, given: Invocation) -> tuple[Scope | None, list[Info]]:
    if result.scopes:
        return result.scopes[0], Result(listed(session, result.scopes[0])).all_infos()
    if given.ignore_not_found:
        result.ignore("NotFound")
    infos = result.all_infos()
    if not infos:
        return None, []
    if len(infos) > 1:
        raise CliError("watch is only supported on individual resources and resource collections - "
                       f"{len(infos)} resources were found")
    info = infos[0]
    return Scope(info.resource, info.namespace, "", f"metadata.name={info.name}"), infos


def _printer(session: Session, given: Invocation, scope: Scope) -> Show:
    if not is_table(given):
        printer = object_printer(session, given)
        return lambda event, obj: printer({"type": event, "object": obj} if given.output_watch_events else obj)
    headers = not given.no_headers

    def show_row(event: str, obj: Object) -> None:
        nonlocal headers
        style = style_of(given, scope.resource, given.show_kind)._replace(headers=headers)
        text = lines(scope.resource, [obj], style, session.cluster.clock.now())
        if given.output_watch_events:
            text = [f"{'EVENT' if headers and at == 0 else EVENTS[event]}\t{line}" for at, line in enumerate(text)]
        headers = False
        session.print(format_lines(text), end="")

    return show_row


def _follow(session: Session, scope: Scope, since: int, known: dict[tuple[str, str], Object], show: Show) -> None:
    """List again whenever something changed, and print what is not as it was."""
    while True:
        try:
            reached, events = session.client.changes(since)
        except Exception as error:
            if not is_status(error, "Expired"):
                raise
            reached, events = session.client.revision(), None
        since = reached
        if events is None or any(event.key.resource == scope.resource.key for event in events):
            _show_changes(session, scope, known, show)
        session.cluster.clock.sleep(POLL_SECONDS)


def _show_changes(session: Session, scope: Scope, known: dict[tuple[str, str], Object], show: Show) -> None:
    now = {(info.namespace, info.name): info.content for info in Result(listed(session, scope)).all_infos()}
    for key, obj in now.items():
        if key not in known:
            show("ADDED", obj)
        elif known[key]["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            show("MODIFIED", obj)
    for key in known.keys() - now.keys():
        show("DELETED", known[key])
    known.clear()
    known.update(now)
    session.stdout.flush()
