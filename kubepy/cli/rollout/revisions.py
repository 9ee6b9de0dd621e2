"""The revisions of a workload, and the changes of the pod template between two of them.

Those of a DaemonSet or StatefulSet are ControllerRevisions, those of a Deployment its ReplicaSets.
Upstream: ``kubectl/pkg/polymorphichelpers/history.go``.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from kubepy.api.errors import Status
from kubepy.api.meta import (
    Object,
    annotations_of,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
)
from kubepy.api.objects.deployments import revision_of, template_without_hash
from kubepy.api.scheme import Resource
from kubepy.api.selectors import from_label_selector
from kubepy.api.types import DecodeError
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.objects import CHANGE_CAUSE, defaulted
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.runtime.history import apply_revision, number_of

with lazy_imports():
    from kubepy.api.schema import openapi
    from kubepy.cli.rollout import changes as template_changes

# Kinds that upstream's visitor knows (apps.KindVisitor); any other is an error of its own.
KNOWN_KINDS = {
    "DaemonSet",
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "Pod",
    "Job",
    "CronJob",
    "ReplicationController",
}


class Revision(NamedTuple):
    """A revision of a workload.

    :ivar source: the ReplicaSet or ControllerRevision that stores the revision.
    """

    number: int
    source: Object
    workload: Object

    @property
    def template(self) -> Object:
        """The pod template that the workload had. Raises CliError for a ControllerRevision without
        one."""
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
    raise CliError(
        f"error retrieving {retrieving} for {quote(resource.qualified_kind)}, no visitor method "
        f"exists for "
        f"{{{resource.group} {resource.kind}}}"
    )


REVISION_RESOURCES = {
    "daemonsets.apps": "controllerrevisions.apps",
    "deployments.apps": "replicasets.apps",
    "statefulsets.apps": "controllerrevisions.apps",
}


def revisions_of(client: Client, resource: Resource, obj: Object) -> list[Revision]:
    """Return the revisions of a workload in order; of several with one number, the last in key
    order counts."""
    selector = from_label_selector(obj["spec"]["selector"])
    sources: dict[int, Object] = {}
    for source in client.list(REVISION_RESOURCES[resource.key], namespace=namespace_of(obj)).items:
        if is_controlled_by(source, obj) and selector.matches(labels_of(source)):
            sources[
                revision_of(source) if source["kind"] == "ReplicaSet" else number_of(source)
            ] = source
    return [Revision(number, sources[number], obj) for number in sorted(sources)]


# --- their changes --------------------------------------------------------------------------------


class RevisionPair(NamedTuple):
    """Two revisions that are compared."""

    old: Revision
    new: Revision

    def workloads(self, cluster: LocalCluster, resource: Resource) -> tuple[Object, Object]:
        """Return the workload with each pod template, defaulted: an old revision may leave defaults
        out."""
        old, new = (
            defaulted(
                cluster,
                resource,
                {
                    **workload,
                    "spec": {**workload["spec"], "template": template_without_hash(template)},
                },
            )
            for workload, template in (
                (self.old.workload, self.old.template),
                (self.new.workload, self.new.template),
            )
        )
        return old, new

    def summary(self, cluster: LocalCluster, resource: Resource) -> str:
        """Return the changes of the pod template in one line:
        ``image web nginx:1.15 -> 1.16, +env A``."""
        try:
            changes = changes_of_templates(*self.workloads(cluster, resource))
        except CliError:  # a revision that holds no pod template
            return "<unknown>"
        return template_changes.summary(changes, self.new.template) or "nothing"


def changes_of_templates(old: Object, new: Object) -> list[template_changes.RevisionChange]:
    """Return the changes between the pod templates of a workload as it was and as it became."""
    schema = openapi.schema_for(new["apiVersion"], new["kind"])
    for name in ("spec", "template"):
        schema = schema and schema.field(name)
    return template_changes.changes_of(old["spec"]["template"], new["spec"]["template"], schema)
