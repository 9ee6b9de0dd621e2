"""``kubepy events``. Upstream: ``kubectl/pkg/cmd/events``."""

from __future__ import annotations

from datetime import UTC, datetime

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, namespace_of, nested_map
from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.cli.runtime.builder import warn_of_short_name
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.options import AllNamespacesOptions, ChunkSizeOptions, PrintFlags
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.tables import escaped, format_lines
from kubepy.cli.watch import POLL_SECONDS
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.cli.describers import writer as describe_writer


class EventsOptions(AllNamespacesOptions, ChunkSizeOptions, PrintFlags):
    """The flags of ``events``."""

    watch: bool = bool_flag(
        "watch", "w", help="After listing the requested events, watch for more events."
    )
    for_: str = string_flag(
        "for", help="Filter events to only those pertaining to the specified resource (TYPE/NAME)."
    )
    types: list[str] = string_slice_flag(
        "types", help="Output only events of given types: Normal, Warning."
    )
    no_headers: bool = bool_flag(
        "no-headers", help="When using the default output format, don't print headers."
    )


TYPES = ("normal", "warning")
NEVER = datetime.min.replace(tzinfo=UTC)
HEADERS = "LAST SEEN\tTYPE\tREASON\tOBJECT\tMESSAGE"


@ticking
@command(
    "events [(-o|--output=)FORMAT] [--for TYPE/NAME] [--watch] [--types=Normal,Warning]",
    EventsOptions,
    examples="""
# The events of the current namespace
kubepy events

# Of all namespaces
kubepy events -A

# What happens to one object, from now on as well
kubepy events --for=deployment/web --watch

# Only what went wrong
kubepy events --types=Warning

# As YAML
kubepy events -o yaml
""",
)
def events(factory: Factory, options: EventsOptions) -> None:
    """Display events, the oldest first.

    Events are kept for an hour."""
    subject = field_selector(factory, options.for_)
    if any(kind.lower() not in TYPES for kind in options.types):
        raise CliError("valid --types are Normal or Warning")
    show = EventPrinter(factory, options)
    listed = _listed(factory, options, subject)
    if options.watch:
        _follow(factory, options, subject, show)
    elif listed:
        show(sorted(listed, key=event_time))
    else:
        place = "" if options.all_namespaces else f" in {factory.namespace} namespace"
        factory.say(f"No events found{place}.")


def field_selector(factory: Factory, subject: str) -> str:
    """Return the field selector of the events about ``TYPE/NAME``. Raises CliError."""
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
    return (
        f"involvedObject.kind={resource.kind},involvedObject.apiVersion={resource.api_version},"
        f"involvedObject.name={parts[1]}"
    )


def _listed(factory: Factory, options: EventsOptions, subject: str) -> list[Object]:
    factory.catch_up()
    namespace = None if options.all_namespaces else factory.namespace
    listed = factory.client.list("events", namespace=namespace, field_selector=subject).items
    types = [kind.lower() for kind in options.types]
    return [event for event in listed if not types or event.get("type", "").lower() in types]


def event_time(event: Object) -> datetime:
    """Return the time when an event was seen last, by which events are sorted."""
    series = nested_map(event, "series")
    time = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    if time:
        return parse_time(time)
    return NEVER


class EventPrinter:
    """A printer of lists of events: as a table with one header, or in the format of ``-o``."""

    def __init__(self, factory: Factory, options: EventsOptions) -> None:
        self.factory = factory
        self.options = options
        self.headers = not options.no_headers
        self.print = printer_for(factory, options) if options.output or options.template else None

    def __call__(self, listed: list[Object], *, single: bool = False) -> None:
        if self.print is None:
            now = self.factory.cluster.clock.now()
            with_namespace = self.options.all_namespaces
            head = f"NAMESPACE\t{HEADERS}" if with_namespace else HEADERS
            rows = [
                line
                for event in listed
                for line in row(event, now, with_namespace=with_namespace).split("\n")
            ]
            self.factory.print(format_lines([head, *rows] if self.headers else rows), end="")
            self.headers = False
        elif single:
            self.print(listed[0])
        elif (
            self.options.output.lower() != "name"
        ):  # upstream cannot name a list, and prints nothing
            self.print({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": listed})


def row(event: Object, now: datetime, *, with_namespace: bool) -> str:
    """Return the cells of an event, separated by tabs; a message of several lines keeps them
    all."""
    subject = nested_map(event, "involvedObject")
    cells = [
        describe_writer.event_age(event, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{subject.get('kind', '')}/{subject.get('name', '')}",
        event.get("message", "").strip(),
    ]
    return "\t".join([*([namespace_of(event)] if with_namespace else []), *map(escaped, cells)])


def _follow(factory: Factory, options: EventsOptions, subject: str, show: EventPrinter) -> None:
    """Print the events that exist, and then every new one, until --request-timeout has passed."""
    versions: dict[str, str] = {}  # by uid
    for _ in factory.ticks(POLL_SECONDS):
        factory.driver.react()
        for event in sorted(_listed(factory, options, subject), key=event_time):
            meta = event["metadata"]
            if versions.get(meta["uid"]) != meta["resourceVersion"]:
                versions[meta["uid"]] = meta["resourceVersion"]
                show([event], single=True)
        factory.stdout.flush()
