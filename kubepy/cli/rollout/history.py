"""``rollout history``, and the revisions of a workload.

Those of a DaemonSet or StatefulSet are ControllerRevisions, those of a Deployment its ReplicaSets. Upstream:
``kubectl/pkg/cmd/rollout/rollout_history.go``, ``kubectl/pkg/polymorphichelpers/history.go``.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from kubepy.api.errors import Status
from kubepy.api.meta import Object, annotations_of, is_controlled_by, labels_of, name_of, namespace_of
from kubepy.api.objects.deployments import revision_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import from_label_selector
from kubepy.api.types import DecodeError
from kubepy.apiserver.client import Client
from kubepy.cli.describers import pods as describe_pods
from kubepy.cli.describers.writer import PADDING, PrefixWriter
from kubepy.cli.errors import CliError
from kubepy.cli.rollout import RolloutOptions, latest_objects
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import CHANGE_CAUSE
from kubepy.cli.runtime.options import PrintFlags
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.tables import Layout, align
from kubepy.quoting import quote
from kubepy.runtime.history import apply_revision, number_of


class HistoryOptions(RolloutOptions, PrintFlags):
    """The flags of ``rollout history``."""

    revision: int = int_flag("revision", help="See the details, including podTemplate of the revision specified.")


@command("history (TYPE NAME | TYPE/NAME)", HistoryOptions, examples="""
    # The revisions of a DaemonSet and what caused each
    kubepy rollout history ds/log-agent

    # The pod template of one of them
    kubepy rollout history ds/log-agent --revision=2
""")
def history(factory: Factory, options: HistoryOptions) -> None:
    """View previous rollout revisions and configurations."""
    options.require_resources()
    if options.revision < 0:
        raise CliError(f"revision must be a positive integer: {options.revision}")

    def show(info: Info) -> None:
        require_revisions(info.resource, "history", "history viewer")
        revisions = revisions_of(factory.client, info.resource, info.content)
        if not options.output:
            heading = f"with revision #{options.revision}" if options.revision else ""
            text = f"{heading}\n{history_text(info.content, revisions, options.revision)}"
            printer_for(factory, options, text)(info.content)
            return
        printer = printer_for(factory, options, "", typed=True)
        for revision in [_revision(revisions, options.revision)] if options.revision else revisions:
            if revision.source["kind"] == "ReplicaSet":
                printer(revision.source)
            else:
                printer({**info.content, "spec": {**info.content["spec"], "template": revision.template}})

    latest_objects(factory, options).visit(show)


def history_text(obj: Object, revisions: list[Revision], number: int) -> str:
    """Return the table of revisions, or the template of one. Raises CliError for a revision that does not exist."""
    if not revisions:
        return "No rollout history found."
    if not number:
        return align(["REVISION\tCHANGE-CAUSE",
                      *(f"{revision.number}\t{revision.change_cause}" for revision in revisions)], Layout(PADDING))
    revision = _revision(revisions, number)
    template = revision.template
    if obj["kind"] == "Deployment" and revision.change_cause != "<none>":  # shown among the template's annotations
        metadata = template.get("metadata", {})
        annotations = {**(metadata.get("annotations") or {}), CHANGE_CAUSE: revision.change_cause}
        template = {**template, "metadata": {**metadata, "annotations": annotations}}
    writer = PrefixWriter()
    describe_pods.template(writer, template)
    return writer.raw()


def _revision(revisions: list[Revision], number: int) -> Revision:
    revision = next((revision for revision in revisions if revision.number == number), None)
    if revision is None:
        raise CliError("unable to find the specified revision")
    return revision


# --- the revisions of a workload ----------------------------------------------------------------------------------

# Kinds that upstream's visitor knows (apps.KindVisitor); any other is an error of its own.
KNOWN_KINDS = {"DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Pod", "Job", "CronJob",
               "ReplicationController"}


class Revision(NamedTuple):
    """A revision of a workload.

    :ivar source: the ReplicaSet or ControllerRevision that stores the revision.
    """

    number: int
    source: Object
    workload: Object

    @property
    def template(self) -> Object:
        """The pod template that the workload had. Raises CliError for a ControllerRevision without one."""
        if self.source["kind"] == "ReplicaSet":
            return cast(Object, self.source["spec"]["template"])
        try:
            return cast(Object, apply_revision(self.workload, self.source)["spec"]["template"])
        except (Status, DecodeError) as error:
            raise CliError(f"unable to parse history {name_of(self.source)}") from error

    @property
    def change_cause(self) -> str:
        return annotations_of(self.source).get(CHANGE_CAUSE) or "<none>"


def require_revisions(resource: Resource, retrieving: str, missing: str) -> None:
    """Raise upstream's error for a kind without revisions.

    :param retrieving: "history" or "rollbacker". :param missing: "history viewer" or "rollbacker".
    """
    if resource.key in REVISION_RESOURCES:
        return
    if resource.kind in KNOWN_KINDS:
        raise CliError(f"no {missing} has been implemented for {quote(resource.qualified_kind)}")
    raise CliError(f"error retrieving {retrieving} for {quote(resource.qualified_kind)}, no visitor method exists for "
                   f"{{{resource.group} {resource.kind}}}")


REVISION_RESOURCES = {
    "daemonsets.apps": "controllerrevisions.apps",
    "deployments.apps": "replicasets.apps",
    "statefulsets.apps": "controllerrevisions.apps",
}


def revisions_of(client: Client, resource: Resource, obj: Object) -> list[Revision]:
    """Return the revisions of a workload in order; of several with one number, the last in key order counts."""
    selector = from_label_selector(obj["spec"]["selector"])
    sources: dict[int, Object] = {}
    for source in client.list(REVISION_RESOURCES[resource.key], namespace=namespace_of(obj)).items:
        if is_controlled_by(source, obj) and selector.matches(labels_of(source)):
            sources[revision_of(source) if source["kind"] == "ReplicaSet" else number_of(source)] = source
    return [Revision(number, sources[number], obj) for number in sorted(sources)]
