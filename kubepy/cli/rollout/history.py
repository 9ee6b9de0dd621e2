"""``rollout history``: the revisions of a workload, or one of them.

Upstream: ``kubectl/pkg/cmd/rollout/rollout_history.go``,
``kubectl/pkg/polymorphichelpers/history.go``.
"""

from __future__ import annotations

from itertools import pairwise

from kubepy.api.meta import Object, nested_map
from kubepy.cli.describers import pods as describe_pods
from kubepy.cli.describers.writer import PADDING, PrefixWriter
from kubepy.cli.errors import CliError
from kubepy.cli.rollout import RolloutOptions, latest_objects
from kubepy.cli.rollout.revisions import Revision, RevisionPair, require_revisions, revisions_of
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import CHANGE_CAUSE
from kubepy.cli.runtime.options import PrintFlags
from kubepy.cli.runtime.output import FORMATS, name_printer, printer_for
from kubepy.cli.runtime.tables import Layout, align
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy import terminal


class HistoryOptions(RolloutOptions, PrintFlags):
    """The flags of ``rollout history``."""

    revision: int = int_flag(
        "revision", help="See the details, including podTemplate of the revision specified."
    )


@ticking
@command(
    "history (TYPE NAME | TYPE/NAME)",
    HistoryOptions,
    examples="""
    # The revisions of a DaemonSet and what caused each
    kubepy rollout history ds/log-agent

    # The pod template of one of them
    kubepy rollout history ds/log-agent --revision=2

    # The revisions with what each of them changed
    kubepy rollout history ds/log-agent -o wide
""",
)
def history(factory: Factory, options: HistoryOptions) -> None:
    """View previous rollout revisions and configurations.

    With "-o wide" a last column says what each revision changed against the one before; "rollout diff" shows all of
    it."""  # noqa: E501
    options.require_resources()
    if options.revision < 0:
        raise CliError(f"revision must be a positive integer: {options.revision}")

    is_wide = options.output == "wide" and not options.template
    formats = (
        (*FORMATS, "wide") if options.output != "wide" else FORMATS
    )  # wide goes with no template

    def show(info: Info) -> None:
        require_revisions(info.resource, "history", "history viewer")
        revisions = revisions_of(factory.client, info.resource, info.content)
        if is_wide and revisions and not options.revision:
            name_printer(factory, f"\n{wide_table(factory, info, revisions)}")(info.content)
            return
        if is_wide or not options.output:
            heading = f"with revision #{options.revision}" if options.revision else ""
            text = f"{heading}\n{history_text(info.content, revisions, options.revision)}"
            if is_wide:
                printer = name_printer(factory, text)
            else:
                printer = printer_for(factory, options, text, formats=formats)
            printer(info.content)
            return

        printer = printer_for(factory, options, "", formats=formats, typed=True)
        for revision in [_revision(revisions, options.revision)] if options.revision else revisions:
            if revision.source["kind"] == "ReplicaSet":
                printer(revision.source)
            else:
                printer(
                    {
                        **info.content,
                        "spec": {**info.content["spec"], "template": revision.template},
                    }
                )

    latest_objects(factory, options).visit(show)


def history_text(obj: Object, revisions: list[Revision], number: int) -> str:
    """Return the table of revisions, or the template of one. Raises CliError for a revision that
    does not exist."""
    if not revisions:
        return "No rollout history found."
    if not number:
        return align(
            [
                "REVISION\tCHANGE-CAUSE",
                *(f"{revision.number}\t{revision.change_cause}" for revision in revisions),
            ],
            Layout(PADDING),
        )

    revision = _revision(revisions, number)
    template = revision.template
    if (
        obj["kind"] == "Deployment" and revision.change_cause != "<none>"
    ):  # shown among the template's annotations
        metadata = template.get("metadata", {})
        annotations = {**nested_map(metadata, "annotations"), CHANGE_CAUSE: revision.change_cause}
        template = {**template, "metadata": {**metadata, "annotations": annotations}}

    writer = PrefixWriter()
    describe_pods.template(writer, template)
    return writer.raw()


def wide_table(factory: Factory, info: Info, revisions: list[Revision]) -> str:
    """Return the table of revisions with what each changed; a terminal gets lines that fit in its
    width."""
    changes = [
        "<none>",
        *(
            printable(RevisionPair(*pair).summary(factory.cluster, info.resource))
            for pair in pairwise(revisions)
        ),
    ]
    table = align(
        [
            "REVISION\tCHANGE-CAUSE\tCHANGE",
            *(
                f"{revision.number}\t{printable(revision.change_cause)}\t{change}"
                for revision, change in zip(revisions, changes, strict=True)
            ),
        ],
        Layout(PADDING),
    )
    if not factory.stdout.isatty():
        return table
    width = terminal.width_of(factory.stdout)
    return "".join(f"{terminal.shortened(line, width)}\n" for line in table.splitlines())


def _revision(revisions: list[Revision], number: int) -> Revision:
    revision = next((revision for revision in revisions if revision.number == number), None)
    if revision is None:
        raise CliError("unable to find the specified revision")
    return revision
