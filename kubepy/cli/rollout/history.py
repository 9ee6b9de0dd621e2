"""``rollout history``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.describers import pods as describe_pods
from kubepy.cli.describers.writer import PADDING, PrefixWriter
from kubepy.cli.errors import CliError
from kubepy.cli.rollout.flags import COMMON, latest_objects, require_resources, require_revision
from kubepy.cli.rollout.revisions import CHANGE_CAUSE, Revision, require_revisions, revisions_of
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flagsets import output_flags
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.tables import Layout, align
from kubepy.cli.runtime.verbs import Invocation, verb

EXAMPLES = """
    # The revisions of a DaemonSet and what caused each
    kubepy rollout history ds/log-agent

    # The pod template of one of them
    kubepy rollout history ds/log-agent --revision=3
"""

FLAGS = [*COMMON, *output_flags(), integer("revision", help="See the details, including podTemplate of the revision "
                                           "specified.")]


@verb("history", "history (TYPE NAME | TYPE/NAME)", flags=FLAGS, examples=EXAMPLES)
def history(factory: Factory, given: Invocation) -> None:
    """View previous rollout revisions and configurations."""
    require_resources(given)
    require_revision(given)

    def show(info: Info) -> None:
        require_revisions(info.resource, "history", "history viewer")
        revisions = revisions_of(factory.client, info.resource, info.content)
        if given.output:
            _print_objects(factory, given, info, revisions)
        else:
            _print_text(factory, given, info, revisions)

    latest_objects(factory, given).visit(show)


def _print_text(factory: Factory, given: Invocation, info: Info, revisions: list[Revision]) -> None:
    which = f"with revision #{given.revision}" if given.revision else ""
    text = f"{which}\n{history_text(info.content, revisions, given.revision)}"
    printer_for(factory, given, text)(info.content)


def history_text(obj: Object, revisions: list[Revision], number: int) -> str:
    """The table of revisions, or the template of one. Raises CliError for one that is not there."""
    if not revisions:
        return "No rollout history found."
    if number:
        one = _require(revisions, number)
        writer = PrefixWriter()
        describe_pods.template(writer, _template_with_cause(obj, one))
        return writer.raw()
    return align(["REVISION\tCHANGE-CAUSE", *(f"{one.number}\t{one.change_cause}" for one in revisions)],
                 Layout(PADDING))


def _require(revisions: list[Revision], number: int) -> Revision:
    found = next((one for one in revisions if one.number == number), None)
    if found is None:
        raise CliError("unable to find the specified revision")
    return found


def _template_with_cause(obj: Object, revision: Revision) -> Object:
    """A Deployment's template shows its change cause among the annotations."""
    if obj["kind"] != "Deployment" or revision.change_cause == "<none>":
        return revision.template
    metadata = revision.template.get("metadata", {})
    annotations = {**(metadata.get("annotations") or {}), CHANGE_CAUSE: revision.change_cause}
    return {**revision.template, "metadata": {**metadata, "annotations": annotations}}


def _print_objects(factory: Factory, given: Invocation, info: Info, revisions: list[Revision]) -> None:
    printer = printer_for(factory, given, "", typed=True)
    for one in [_require(revisions, given.revision)] if given.revision else revisions:
        printer(_as_of(info.content, one))


def _as_of(obj: Object, revision: Revision) -> Object:
    """The workload as it was at a revision; for a Deployment its ReplicaSet."""
    if revision.keeper["kind"] == "ReplicaSet":
        return revision.keeper
    return {**obj, "spec": {**obj["spec"], "template": revision.template}}
