"""``kubepy timeline``: the steps that happened in the cluster, as text, JSON or a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubepy.api.clock import format_exact_time
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command, reading
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import AllNamespacesOptions, SelectorOptions, output_flag
from kubepy.cli.runtime.output import document
from kubepy.cli.timeline_text import TimelineText
from kubepy.insight import Timeline
from kubepy.insight.timeline import read_timeline, start_of, timeline_document
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage import Key

with lazy_imports():
    from kubepy.insight import revisions
    from kubepy.insight.picture import html, svg, trace

NAMESPACES = "namespaces"


class TimelineOptions(SelectorOptions, AllNamespacesOptions):
    """The flags of ``timeline``."""

    since: str = string_flag(
        "since",
        help="Show the steps from this time on, inclusive: a time such as "
        "2026-01-01T12:00:00Z, or how long ago in the cluster's time (90s, 30m, 2d). Default: all "
        "that is kept.",
    )
    output: str = output_flag("text, json, html, svg, trace", "text")


@reading
@command(
    "timeline [TYPE/NAME...]",
    TimelineOptions,
    examples="""
# What happened in the cluster, as far as it is kept
kubepy timeline

# The last hour of a DaemonSet and its pods
kubepy timeline ds/log-agent --since=1h

# The pods that came to a node and left it
kubepy timeline node/node-1

# A picture for a browser: one file, which needs no network
kubepy timeline ds/log-agent -o html > rollout.html

# A file for chrome://tracing or Perfetto
kubepy timeline -o trace > trace.json

# Every step for a program, from this time on
kubepy timeline -o json --since=2026-01-01T00:00:00Z
""",
)
def timeline(factory: Factory, options: TimelineOptions) -> None:
    """Show what happened: a row for each pod, in which a character stands for a moment, and what else there was.

    Without an object it is about the whole cluster, or the namespace that -n names. A workload is shown with all that
    it owns, a node with its pods, a namespace with everything in it; objects that are deleted by now, too. What
    happened is kept for 24 hours of the cluster's time (timeline.keep in kubepy.yaml). Nothing is changed."""  # noqa: E501
    if options.output not in RENDERERS:
        raise CliError(
            f"unable to match a printer suitable for the output format {quote(options.output)}, "
            f"allowed "
            f"formats are: {','.join(RENDERERS)}"
        )

    infos = named_objects(factory, options)
    factory.catch_up()
    try:
        now = factory.cluster.clock.now()
        since = start_of(options.since, now, "--since") if options.changed("since") else None
    except ValueError as error:
        raise CliError(str(error)) from None

    subjects = [
        Key(info.resource.key, info.namespace if info.resource.namespaced else "", info.name)
        for info in infos
    ]
    if not options.args and factory.namespace_given and not options.all_namespaces:
        subjects = [Key(NAMESPACES, "", factory.namespace)]
    shown = read_timeline(factory.cluster, since, subject=subjects or None)
    for info in infos if not shown.steps else ():
        info.get(factory)  # an error for one that never was there
    if options.output != "text":
        if options.output in WITH_ROLLOUTS:
            shown = revisions.with_rollouts(factory.cluster, shown)
        factory.print(RENDERERS[options.output](shown), end="")
    elif shown.steps:
        text = TimelineText(factory.stdout, shown, subjects=subjects, plain=factory.options.ascii)
        factory.print("\n".join(text.lines()))
    else:
        factory.say(nothing_happened(factory, shown, options.since))


RENDERERS: Mapping[str, Callable[[Timeline], str]] = {
    "text": lambda _: "",
    "json": lambda shown: document("json", timeline_document(shown), typed=True),
    "html": lambda shown: html.render_html(shown),
    "svg": lambda shown: svg.render_svg(shown),
    "trace": lambda shown: trace.render_trace(shown),
}

WITH_ROLLOUTS = ("html", "svg")  # formats that name what revisions brought


def named_objects(factory: Factory, options: TimelineOptions) -> list[Info]:
    """Return the objects that the words name, deleted ones as well; those of a type where no name
    follows it."""
    if not options.args and not options.selector:
        return []
    infos: list[Info] = []
    Builder(factory, options, bare_types=True, retrieve=False, related=True).do().visit(
        infos.append
    )
    if not infos:
        factory.say(
            "No resources found"
            if options.all_namespaces
            else f"No resources found in {factory.namespace} namespace."
        )
        raise SilentExit(0)
    return infos


def nothing_happened(factory: Factory, shown: Timeline, since: str) -> str:
    """Return the message for a timeline without steps."""
    if not factory.cluster.settings.timeline.keep:
        return "No history is kept: timeline.keep in kubepy.yaml is 0."
    if since:
        return f"Nothing has happened since {format_exact_time(shown.since)}."
    return "There is no history."
