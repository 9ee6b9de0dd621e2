"""``rollout undo``: bring a workload back to an earlier revision.

:func:`plan_rollback` builds the patch, before anything is written; :func:`_send` sends it.
Upstream: ``kubectl/pkg/cmd/rollout/rollout_undo.go``,
``kubectl/pkg/polymorphichelpers/rollback.go``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, name_of
from kubepy.api.objects.deployments import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    same_template,
    template_without_hash,
)
from kubepy.apiserver.request import JSON_PATCH, STRATEGIC_MERGE_PATCH, Patch, PatchOptions
from kubepy.cli.describers import pods as describe_pods
from kubepy.cli.describers.writer import PrefixWriter
from kubepy.cli.errors import CliError, prefixed
from kubepy.cli.rollout import RolloutOptions, latest_objects
from kubepy.cli.rollout.revisions import Revision, require_revisions, revisions_of
from kubepy.cli.runtime.command import bringing, command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.cli.runtime.options import CLIENT, SERVER, UNNAMED, DryRunOptions, PrintFlags
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.runtime.history import holds

with lazy_imports():
    from kubepy.api import errors as api_errors

# A Deployment keeps these of its own annotations; all others come from the old ReplicaSet.
KEPT_ANNOTATIONS = {
    LAST_APPLIED,
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
}
APPLIED_WARNING = (
    "Warning: resource {name} was previously managed with 'kubectl apply'. Rolling back will not "
    "update the "
    f"{LAST_APPLIED} annotation, which may cause unexpected behavior on future 'kubectl apply' "
    f"operations. "
    "Consider using 'kubectl apply' with your previous configuration file instead."
)


class UndoOptions(RolloutOptions, PrintFlags, DryRunOptions):
    """The flags of ``rollout undo``."""

    to_revision: int = int_flag(
        "to-revision", help="The revision to rollback to. Default to 0 (last revision)."
    )


@bringing
@command(
    "undo (TYPE NAME | TYPE/NAME)",
    UndoOptions,
    examples="""
# Roll back to the previous revision
kubepy rollout undo ds/log-agent

# To a revision of rollout history
kubepy rollout undo deploy/web --to-revision=1

# Print the object that it would become
kubepy rollout undo ds/log-agent --to-revision=1 --dry-run=server -o yaml
""",
)
def undo(factory: Factory, options: UndoOptions) -> None:
    """Roll back to a previous rollout."""
    options.require_resources()
    strategy = factory.dry_run_strategy(options)

    def roll_back(info: Info) -> None:
        if LAST_APPLIED in annotations_of(info.content):
            factory.say(APPLIED_WARNING.format(name=info.object_name))
        require_revisions(info.resource, "rollbacker", "rollbacker")
        revisions = revisions_of(factory.client, info.resource, info.content)
        rollback = plan_rollback(info.content, revisions, options.to_revision)
        if strategy == CLIENT:
            writer = PrefixWriter()
            describe_pods.template(writer, rollback.target.template)
            is_deployment = info.content["kind"] == "Deployment"
            message = writer.raw() if is_deployment else f"will roll back to {writer.raw()}"
        else:
            message = _send(factory, options, info, rollback, dry_run=strategy == SERVER)
        printer_for(factory, options, message, strategy, typed=True)(info.content)

    latest_objects(factory, options).visit(roll_back)


def _send(
    factory: Factory, options: UndoOptions, info: Info, rollback: Rollback, *, dry_run: bool
) -> str:
    """Send the patch of a rollback, unless nothing changes; returns the message for it."""
    require_not_paused(info.content)
    if rollback.patch is None:
        return f"skipped rollback (current template already matches revision {options.to_revision})"
    try:
        factory.client.patch(
            info.resource.gvr,
            info.name,
            Patch(rollback.patch_type, rollback.patch),
            namespace=info.namespace,
            options=PatchOptions(dry_run=dry_run, field_manager=UNNAMED),
        )
    except api_errors.Status as error:
        raise prefixed(error, f"failed restoring revision {options.to_revision}: ") from error
    return "rolled back"


def require_not_paused(obj: Object) -> None:
    """Raise CliError for a paused Deployment."""
    if obj["kind"] == "Deployment" and obj["spec"].get("paused"):
        raise CliError(
            "you cannot rollback a paused deployment; resume it first with 'kubectl rollout "
            "resume' and"
            " try again"
        )


# --- the patch ------------------------------------------------------------------------------------


class Rollback(NamedTuple):
    """The patch that goes back to a revision; ``patch`` is None when the workload already has its
    template."""

    target: Revision
    patch: Any
    patch_type: str


def plan_rollback(obj: Object, revisions: list[Revision], number: int) -> Rollback:
    """Build the patch that brings ``obj`` to revision ``number`` (0: the one before). Raises
    CliError."""
    if number < 0:
        raise CliError(f"unable to find specified revision {number} in history")
    is_deployment = obj["kind"] == "Deployment"
    if number == 0 and len(revisions) < 2:
        raise CliError(
            f"no rollout history found for deployment {quote(name_of(obj))}"
            if is_deployment
            else "no last revision to roll back to"
        )

    target = find_revision(revisions, number)
    if not is_deployment:
        is_current = holds(target.source, obj["spec"]["template"])
        return Rollback(
            target, None if is_current else target.source["data"], STRATEGIC_MERGE_PATCH
        )

    if same_template(target.template, obj["spec"]["template"]):
        return Rollback(target, None, JSON_PATCH)
    annotations = {
        key: value for key, value in annotations_of(obj).items() if key in KEPT_ANNOTATIONS
    }
    annotations |= {
        key: value
        for key, value in annotations_of(target.source).items()
        if key not in KEPT_ANNOTATIONS
    }
    return Rollback(
        target,
        [
            {
                "op": "replace",
                "path": "/spec/template",
                "value": template_without_hash(target.template),
            },
            {"op": "replace", "path": "/metadata/annotations", "value": annotations},
        ],
        JSON_PATCH,
    )


def find_revision(revisions: list[Revision], number: int) -> Revision:
    """Return the revision to roll back to; 0 is the one before the newest. Raises CliError."""
    for revision in revisions:
        if number != 0 and revision.number == number:
            return revision
    if number != 0 or len(revisions) < 2:
        raise CliError(f"unable to find specified revision {number} in history")
    return revisions[-2]
