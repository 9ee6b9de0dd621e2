"""``cordon`` and ``uncordon``."""

from __future__ import annotations

from kubepy.apiserver.client import STRATEGIC_MERGE_PATCH
from kubepy.cli.errors import CliError, is_expected
from kubepy.cli.runtime.builder import MISSING_RESOURCE
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import CLIENT, SERVER, UNNAMED, dry_run, dry_run_flag, selector_flag
from kubepy.cli.runtime.infos import Info, resource_text
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.quoting import quote

FLAGS = [dry_run_flag(), selector_flag()]


@verb("cordon", "cordon NODE", flags=FLAGS, examples="""
    # Keep new pods away from a node
    kubepy cordon node-1

    # From all nodes of a pool
    kubepy cordon -l pool=old
""")
def cordon(factory: Factory, given: Invocation) -> None:
    """Mark node as unschedulable."""
    require_nodes(given, "cordon NODE")
    strategy = dry_run(factory, given)
    mark_each(factory, given, nodes_of(factory, given), strategy, unschedulable=True)


@verb("uncordon", "uncordon NODE", flags=FLAGS, examples="""
    # Let pods come to a node again
    kubepy uncordon node-1

    # All nodes with a label
    kubepy uncordon -l zone=a
""")
def uncordon(factory: Factory, given: Invocation) -> None:
    """Mark node as schedulable."""
    require_nodes(given, "uncordon NODE")
    strategy = dry_run(factory, given)
    mark_each(factory, given, nodes_of(factory, given), strategy, unschedulable=False)


def require_nodes(given: Invocation, usage: str) -> None:
    """Raise UsageError unless there are names or a selector, and not both."""
    if not given.args and not given.changed("selector"):
        given.usage_error(f"USAGE: {usage} [flags]")
    if given.args and given.selector:
        given.usage_error("error: cannot specify both a node name and a --selector option")


def nodes_of(factory: Factory, given: Invocation) -> list[Info]:
    """The nodes named, or those of the selector. Raises CliError for other types."""
    if not given.args and not given.selector:
        raise CliError(MISSING_RESOURCE)
    if not all(given.args):
        raise CliError("resource name may not be empty")
    args = [word if "/" in word else f"nodes/{word}" for word in given.args] or ["nodes"]
    infos = find(factory, given, args=args, retrieve=False).all_infos()
    if len({info.resource.key for info in infos}) > 1:
        raise CliError("you may only specify a single resource type")
    for info in infos:
        info.object = info.object or info.get(factory)
        if info.resource.key != "nodes":
            raise CliError(f"error: expected resource of type node, got {quote(resource_text(info.resource))}")
    return infos


def mark_each(factory: Factory, given: Invocation, infos: list[Info], strategy: str, *, unschedulable: bool) -> None:
    """Set or clear spec.unschedulable and say so; a node that is so already is only mentioned.

    What can't be written is said as well, and like upstream's command this one goes on.

    :param strategy: the dry run, see ``flagsets.dry_run``.
    """
    word = "cordon" if unschedulable else "uncordon"
    for info in infos:
        is_so = bool(info.content.get("spec", {}).get("unschedulable")) == unschedulable
        try:
            if not is_so and strategy != CLIENT:
                _mark(factory, info.name, unschedulable, dry_run=strategy == SERVER)
        except Exception as error:
            if not is_expected(error):
                raise
            factory.say(f"error: unable to {word} node {quote(info.name)}: {error}")
            continue
        printer_for(factory, given, f"already {word}ed" if is_so else f"{word}ed", strategy)(info.content)


def _mark(factory: Factory, name: str, unschedulable: bool, *, dry_run: bool) -> None:
    patch = {"spec": {"unschedulable": True if unschedulable else None}}
    factory.client.patch("nodes", name, patch, STRATEGIC_MERGE_PATCH, dry_run=dry_run, field_manager=UNNAMED)
