"""The revisions of a workload: ControllerRevisions of a DaemonSet or StatefulSet, ReplicaSets of a Deployment."""

from __future__ import annotations

from typing import NamedTuple, cast

from kubepy.api.errors import Status
from kubepy.api.meta import Object, annotations_of, is_controlled_by, labels_of, name_of, namespace_of
from kubepy.api.objects.deployments import revision_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import from_label_selector
from kubepy.api.types import DecodeError
from kubepy.apiserver.client import Client
from kubepy.cli.errors import CliError
from kubepy.quoting import quote
from kubepy.runtime.history import apply_revision, number_of

CHANGE_CAUSE = "kubernetes.io/change-cause"
# Kinds that upstream's visitor knows (apps.KindVisitor); any other is an error of its own.
KNOWN_KINDS = {"DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Pod", "Job", "CronJob",
               "ReplicationController"}


class Revision(NamedTuple):
    """One revision: its number, the object that keeps it, and the workload that it is of."""

    number: int
    keeper: Object
    workload: Object

    @property
    def template(self) -> Object:
        """The pod template that the workload had. Raises CliError for a ControllerRevision that keeps none."""
        if self.keeper["kind"] == "ReplicaSet":
            return cast(Object, self.keeper["spec"]["template"])
        try:
            return cast(Object, apply_revision(self.workload, self.keeper)["spec"]["template"])
        except (Status, DecodeError) as error:
            raise CliError(f"unable to parse history {name_of(self.keeper)}") from error

    @property
    def change_cause(self) -> str:
        return annotations_of(self.keeper).get(CHANGE_CAUSE) or "<none>"


def require_revisions(resource: Resource, retrieving: str, missing: str) -> None:
    """Raise upstream's error for a kind without revisions.

    :param retrieving: "history" or "rollbacker". :param missing: "history viewer" or "rollbacker".
    """
    if resource.key in KEEPERS:
        return
    if resource.kind in KNOWN_KINDS:
        raise CliError(f"no {missing} has been implemented for {quote(resource.qualified_kind)}")
    raise CliError(f"error retrieving {retrieving} for {quote(resource.qualified_kind)}, no visitor method exists for "
                   f"{{{resource.group} {resource.kind}}}")


KEEPERS = {
    "daemonsets.apps": "controllerrevisions.apps",
    "deployments.apps": "replicasets.apps",
    "statefulsets.apps": "controllerrevisions.apps",
}


def revisions_of(client: Client, resource: Resource, obj: Object) -> list[Revision]:
    """All revisions of a workload, by number; of several with one number the last in key order counts."""
    selector = from_label_selector(obj["spec"]["selector"])
    keepers = client.list(KEEPERS[resource.key], namespace=namespace_of(obj)).items
    mine = [one for one in keepers if is_controlled_by(one, obj) and selector.matches(labels_of(one))]
    found = {_number_of(keeper): keeper for keeper in mine}
    return [Revision(number, found[number], obj) for number in sorted(found)]


def _number_of(keeper: Object) -> int:
    return revision_of(keeper) if keeper["kind"] == "ReplicaSet" else number_of(keeper)


def find_revision(revisions: list[Revision], number: int) -> Revision:
    """The revision to roll back to; 0 is the one before the newest. Raises CliError."""
    for one in revisions:
        if number != 0 and one.number == number:
            return one
    if number != 0 or len(revisions) < 2:
        raise CliError(f"unable to find specified revision {number} in history")
    return revisions[-2]
