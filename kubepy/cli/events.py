"""``kubepy events``. Upstream: ``kubectl/pkg/cmd/events``."""

from __future__ import annotations

from datetime import UTC, datetime

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, namespace_of
from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.cli.runtime.builder import warn_of_short_name
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.flagsets import all_namespaces_flag, chunk_size_flag, output_flags
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.tables import escaped, format_lines
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.cli.watch import POLL_SECONDS
from kubepy.quoting import quote

FLAGS = [
    all_namespaces_flag(),
    boolean("watch", "w", help="After listing the requested events, watch for more events."),
    string("for", help="Filter events to only those pertaining to the specified resource (TYPE/NAME)."),
    strings("types", help="Output only events of given types: Normal, Warning."),
    boolean("no-headers", help="When using the default output format, don't print headers."),
    chunk_size_flag(),
    *output_flags(),
]
TYPES = ("normal", "warning")
NEVER = datetime.min.replace(tzinfo=UTC)
HEADERS = "LAST SEEN\tTYPE\tREASON\tOBJECT\tMESSAGE"


@verb("events", "events [(-o|--output=)FORMAT] [--for TYPE/NAME] [--watch] [--types=Normal,Warning]", flags=FLAGS,
      examples="""
# What happened in this namespace within the last hour
kubepy events

# What went wrong with a DaemonSet
kubepy events --for ds/nginx-ds --types=Warning
""")
def events(factory: Factory, given: Invocation) -> None:
    """Display events, the oldest first.

    Events are kept for an hour."""
    wrong = [one for one in given.types if one.lower() not in TYPES]
    subject = field_selector(factory, given.flag("for"))
    if wrong:
        raise CliError("valid --types are Normal or Warning")
    show = EventPrinter(factory, given)
    found = _listed(factory, given, subject)
    if given.watch:
        _follow(factory, given, subject, show)
    elif found:
        show(sorted(found, key=event_time))
    else:
        place = "" if given.all_namespaces else f" in {factory.namespace} namespace"
        factory.say(f"No events found{place}.")


def field_selector(factory: Factory, subject: str) -> str:
    """What chooses the events of ``TYPE/NAME``. Raises CliError."""
    if not subject:
        return ""
    parts = subject.split("/")
    if len(parts) == 1:
        raise CliError("--for must be in resource/name form")
    if len(parts) > 2:
        raise CliError("arguments in resource/name form may not have more than one slash")
    resource = factory.scheme.find(parts[0])
    if resource is None:
        name, dot, group = parts[0].partition(".")
        place = f" in group {quote(group)}" if dot else ""
        raise UnprefixedError(f"the server doesn't have a resource type {quote(name)}{place}")
    warn_of_short_name(factory, parts[0])
    return (f"involvedObject.kind={resource.kind},involvedObject.apiVersion={resource.api_version},"
            f"involvedObject.name={parts[1]}")


def _listed(factory: Factory, given: Invocation, subject: str) -> list[Object]:
    namespace = None if given.all_namespaces else factory.namespace
    found = factory.client.list("events", namespace=namespace, field_selector=subject).items
    types = [one.lower() for one in given.types]
    return [one for one in found if not types or one.get("type", "").lower() in types]


def event_time(event: Object) -> datetime:
    """When it was seen last: what events are sorted by."""
    series = event.get("series") or {}
    time = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return parse_time(time) if time else NEVER


class EventPrinter:
    """Prints lists of events: as a table with one header, or as ``-o`` says."""

    def __init__(self, factory: Factory, given: Invocation) -> None:
        self.factory = factory
        self.given = given
        self.headers = not given.no_headers
        self.print = printer_for(factory, given) if given.output or given.template else None

    def __call__(self, found: list[Object], *, single: bool = False) -> None:
        if self.print is None:
            self._table(found)
        elif single:
            self.print(found[0])
        elif self.given.output.lower() != "name":  # upstream can't name a list, and says nothing of it
            self.print({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": found})

    def _table(self, found: list[Object]) -> None:
        now = self.factory.cluster.clock.now()
        with_namespace = self.given.all_namespaces
        head = f"NAMESPACE\t{HEADERS}" if with_namespace else HEADERS
        rows = [line for event in found for line in row(event, now, with_namespace=with_namespace).split("\n")]
        self.factory.print(format_lines([head, *rows] if self.headers else rows), end="")
        self.headers = False


def row(event: Object, now: datetime, *, with_namespace: bool) -> str:
    """The cells of an event, separated by tabs; a message of several lines has them all."""
    from kubepy.cli.describers.writer import event_age

    subject = event.get("involvedObject") or {}
    cells = [event_age(event, now), event.get("type", ""), event.get("reason", ""),
             f"{subject.get('kind', '')}/{subject.get('name', '')}", event.get("message", "").strip()]
    return "\t".join([*([namespace_of(event)] if with_namespace else []), *map(escaped, cells)])


def _follow(factory: Factory, given: Invocation, subject: str, show: EventPrinter) -> None:
    """Print every event as it comes, and those that are there first, until the request's time is over."""
    seen: dict[str, str] = {}
    for _ in factory.ticks(POLL_SECONDS):
        for event in sorted(_listed(factory, given, subject), key=event_time):
            meta = event["metadata"]
            if seen.get(meta["uid"]) != meta["resourceVersion"]:
                seen[meta["uid"]] = meta["resourceVersion"]
                show([event], single=True)
        factory.stdout.flush()
