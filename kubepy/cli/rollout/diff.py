"""``rollout diff``: the changes between two revisions of a workload.

kubectl has no such command. What counts as a revision is what ``rollout undo`` brings back: the pod
template, and of a Deployment also the annotations that are its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubepy.api.meta import Object, annotations_of, name_of, namespace_of
from kubepy.api.scheme import Resource
from kubepy.apiserver.cluster import LocalCluster
from kubepy.cli.errors import CliError
from kubepy.cli.rollout import RolloutOptions, latest_objects
from kubepy.cli.rollout.changes import DiffLine, PathStep, RevisionChange, diff_lines, map_changes
from kubepy.cli.rollout.revisions import (
    Revision,
    RevisionPair,
    changes_of_templates,
    require_revisions,
    revisions_of,
)
from kubepy.cli.rollout.undo import KEPT_ANNOTATIONS, find_revision
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import CHANGE_CAUSE, without_defaults
from kubepy.cli.runtime.options import output_flag
from kubepy.cli.runtime.output import JSON_AND_YAML, document, no_printer
from kubepy.quoting import printable, quote
from kubepy.terminal import Colour, Painter

COLOURS = {"+": Colour.GREEN, "-": Colour.RED, "~": Colour.YELLOW}


class RolloutDiffOptions(RolloutOptions):
    """The flags of ``rollout diff``."""

    output: str = output_flag("json, yaml, kyaml")
    from_revision: int = int_flag(
        "from-revision",
        help="The revision to compare with. Default to 0 (the one before --to-revision).",
    )
    to_revision: int = int_flag(
        "to-revision", help="The revision that is compared. Default to 0 (the current revision)."
    )


@ticking
@command(
    "diff (TYPE NAME | TYPE/NAME)",
    RolloutDiffOptions,
    examples="""
# What the last rollout of a DaemonSet changed
kubepy rollout diff ds/log-agent

# What has changed since revision 1
kubepy rollout diff ds/log-agent --from-revision=1

# What "rollout undo --to-revision=1" would change while
# 2 is the current revision
kubepy rollout diff ds/log-agent --from-revision=2 --to-revision=1

# For a program
kubepy rollout diff ds/log-agent -o json
""",
)
def diff(factory: Factory, options: RolloutDiffOptions) -> None:
    """Show what changed between two revisions of a workload: without flags, between the current one and the one before.

    Containers, variables and volumes are named ("containers[web].image"). Paths begin in the spec of the pod;
    "template.labels" and "template.annotations" are those of the pod template, "annotations" those of the workload that
    a revision keeps. The exit status is 0 with and without differences."""  # noqa: E501
    options.require_resources()
    for number in (options.from_revision, options.to_revision):
        if number < 0:
            raise CliError(f"revision must be a positive integer: {number}")
    style = options.output.lower()
    if style not in ("", *JSON_AND_YAML):
        raise no_printer(options.output, JSON_AND_YAML)
    printed = 0

    def show(info: Info) -> None:
        nonlocal printed
        require_revisions(info.resource, "history", "history viewer")
        printed += 1
        revisions = revisions_of(factory.client, info.resource, info.content)
        pair = choose(info.content, revisions, options.from_revision, options.to_revision)
        if style:
            text = document(style, revision_diff(factory.cluster, info.resource, pair), typed=True)
            factory.print(("---\n" if printed > 1 and style == "yaml" else "") + text, end="")
        else:
            factory.print(("\n" if printed > 1 else "") + diff_text(factory, info, pair))

        if not options.to_revision and changes_of_templates(
            pair.workloads(factory.cluster, info.resource)[1], info.content
        ):
            factory.say(
                f"note: the pod template of {info.printed_name} has been changed since, which is "
                f"not a "
                f"revision yet{': it is paused' if info.content['spec'].get('paused') else ''}"
            )

    latest_objects(factory, options).visit(show)


def choose(
    obj: Object, revisions: Sequence[Revision], from_number: int, to_number: int
) -> RevisionPair:
    """Return the revisions to compare, of which 0 means the default. Raises CliError for one that
    does not exist."""
    if not revisions:
        raise CliError(f"no rollout history found for {obj['kind'].lower()} {quote(name_of(obj))}")
    new = find_revision(list(revisions), to_number) if to_number else revisions[-1]
    if from_number:
        return RevisionPair(find_revision(list(revisions), from_number), new)
    before = [revision for revision in revisions if revision.number < new.number]
    if not before:
        raise CliError(
            f"there is no revision before revision {new.number} of {obj['kind'].lower()} "
            f"{quote(name_of(obj))}"
        )
    return RevisionPair(before[-1], new)


# --- the changes ----------------------------------------------------------------------------------


def annotation_changes(pair: RevisionPair) -> list[RevisionChange]:
    """Return the changes of the workload's annotations: all that ``undo`` restores, or the
    change-cause alone."""

    def kept(revision: Revision) -> dict[str, str]:
        annotations = annotations_of(revision.source)
        if revision.source["kind"] == "ReplicaSet":
            return {key: value for key, value in annotations.items() if key not in KEPT_ANNOTATIONS}
        return {key: value for key, value in annotations.items() if key == CHANGE_CAUSE}

    return list(map_changes(kept(pair.old), kept(pair.new), (PathStep("annotations"),)))


def revision_diff(cluster: LocalCluster, resource: Resource, pair: RevisionPair) -> Object:
    """Return the differences for programs."""
    workload = pair.new.workload
    changes = [*annotation_changes(pair), *changes_of_templates(*pair.workloads(cluster, resource))]
    return {
        "kind": "RevisionDiff",
        "resource": resource.key,
        "namespace": namespace_of(workload),
        "name": name_of(workload),
        "fromRevision": pair.old.number,
        "toRevision": pair.new.number,
        "changes": [change.document for change in changes],
    }


# --- text -----------------------------------------------------------------------------------------


def diff_text(factory: Factory, info: Info, pair: RevisionPair) -> str:
    """Return the differences for people. What was added or removed is shown without the defaults in
    it."""
    cluster = factory.cluster
    paint = Painter(factory.stdout)
    old, new = pair.workloads(cluster, info.resource)
    changes = changes_of_templates(old, new)
    if any(change.is_one_sided for change in changes):
        bare = [without_defaults(cluster, info.resource, workload) for workload in (old, new)]
        bare_changes = {
            change.path: change
            for change in changes_of_templates(*bare)
            if change.is_one_sided and change.rest
        }
        changes = [
            bare_changes.get(change.path, change) if change.is_one_sided else change
            for change in changes
        ]

    heading = f"{info.printed_name} revision {pair.old.number} -> {pair.new.number}"
    changes = [*annotation_changes(pair), *changes]
    if not changes:
        return paint(printable(f"{heading}: no differences"), Colour.BOLD)
    lines = [line for change in changes for line in diff_lines(change)]
    return "\n".join(
        [paint(printable(heading), Colour.BOLD), *(painted(line, paint) for line in lines)]
    )


def painted(line: DiffLine, paint: Painter) -> str:
    """Return a line of a diff, its mark in front, in colours where they are shown."""
    mark, text, old, new = line.mark, *map(printable, line[1:])
    if old or new:
        return (
            f"{paint(mark, COLOURS['~'])} {text}{paint(old, COLOURS['-'])} -> "
            f"{paint(new, COLOURS['+'])}"
        )
    if mark == "~":
        return f"{paint(mark, COLOURS[mark])} {text}"
    return paint(f"{mark} {text}".rstrip(), *([COLOURS[mark]] if mark in COLOURS else []))
