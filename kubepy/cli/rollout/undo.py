"""``rollout undo``."""

from __future__ import annotations

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.describers import pods as describe_pods
from kubepy.cli.describers.writer import LAST_APPLIED, PrefixWriter
from kubepy.cli.errors import prefixed
from kubepy.cli.rollout.flags import COMMON, latest_objects, require_resources
from kubepy.cli.rollout.revisions import require_revisions, revisions_of
from kubepy.cli.rollout.rollback import Rollback, plan_rollback, require_not_paused
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flagsets import CLIENT, SERVER, UNNAMED, dry_run, dry_run_flag, output_flags
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

EXAMPLES = """
    # Back to what was before
    kubepy rollout undo ds/log-agent

    # Back to revision 3, but only show what that would restore
    kubepy rollout undo ds/log-agent --to-revision=3 --dry-run=client
"""

FLAGS = [*COMMON, *output_flags(), dry_run_flag(),
         integer("to-revision", help="The revision to rollback to. Default to 0 (last revision).")]

APPLIED_WARNING = (
    "Warning: resource {name} was previously managed with 'kubectl apply'. Rolling back will not update the "
    f"{LAST_APPLIED} annotation, which may cause unexpected behavior on future 'kubectl apply' operations. "
    "Consider using 'kubectl apply' with your previous configuration file instead."
)


@verb("undo", "undo (TYPE NAME | TYPE/NAME)", flags=FLAGS, examples=EXAMPLES)
def undo(factory: Factory, given: Invocation) -> None:
    """Roll back to a previous rollout."""
    require_resources(given)
    strategy = dry_run(factory, given)

    def roll_back(info: Info) -> None:
        if LAST_APPLIED in annotations_of(info.content):
            factory.say(APPLIED_WARNING.format(name=info.object_name))
        require_revisions(info.resource, "rollbacker", "rollbacker")
        revisions = revisions_of(factory.client, info.resource, info.content)
        plan = plan_rollback(info.content, revisions, given.to_revision)
        result = carry_out(factory, given, info, plan, strategy)
        printer_for(factory, given, result, strategy, typed=True)(info.content)

    latest_objects(factory, given).visit(roll_back)


def carry_out(factory: Factory, given: Invocation, info: Info, plan: Rollback, strategy: str) -> str:
    """Send the patch, unless it is a client's dry run or there is nothing to change; returns what to say."""
    if strategy == CLIENT:
        return _would_restore(info.content, plan.template)
    require_not_paused(info.content)
    if plan.patch is None:
        return f"skipped rollback (current template already matches revision {given.to_revision})"
    try:
        factory.client.patch(info.resource.gvr, info.name, Patch(plan.patch_type, plan.patch), namespace=info.namespace,
                             options=PatchOptions(dry_run=strategy == SERVER, field_manager=UNNAMED))
    except api_errors.Status as error:
        raise prefixed(error, f"failed restoring revision {given.to_revision}: ") from error
    return "rolled back"


def _would_restore(obj: Object, template: Object) -> str:
    writer = PrefixWriter()
    describe_pods.template(writer, template)
    return writer.raw() if obj["kind"] == "Deployment" else f"will roll back to {writer.raw()}"
