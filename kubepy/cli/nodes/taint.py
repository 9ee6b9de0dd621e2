"""``taint``."""

from __future__ import annotations

import copy
from typing import NamedTuple

from kubepy.cli.errors import CliError, UnprefixedError, raise_all
from kubepy.cli.nodes.taints import Changes, change_taints, parse_changes, require_no_conflict
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    field_validation,
    output_flags,
    selector_flag,
    validate_flag,
)
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import two_way_patch
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.quoting import quote

EXAMPLES = """
    # Keep new pods away from a node, but for those that tolerate it
    kubepy taint nodes node-1 dedicated=batch:NoSchedule

    # Take it off again, whatever its effect
    kubepy taint nodes node-1 dedicated-

    # Every node of a pool
    kubepy taint nodes -l pool=gpu gpu=yes:NoExecute
"""

FLAGS = [
    *output_flags(), dry_run_flag(), validate_flag(), selector_flag(), field_manager_flag("kubectl-taint"),
    boolean("overwrite", help="If true, allow taints to be overwritten, otherwise reject taint updates that overwrite "
            "existing taints."),
    boolean("all", help="Select all nodes in the cluster."),
]


@verb("taint", "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N", flags=FLAGS,
      examples=EXAMPLES)
def taint(factory: Factory, given: Invocation) -> None:
    """Update the taints on one or more nodes.

    A taint is key=value:effect, or key:effect without a value; the effect is NoSchedule, PreferNoSchedule or NoExecute.
    """
    request = Request(dry_run(factory, given), field_validation(given))
    words, taints = split_words(given.args)
    if not words:
        raise CliError("one or more resources must be specified as <resource> <name>")
    if not taints:
        raise CliError("at least one taint update is required")
    try:
        changes = parse_changes(taints)
    except CliError as error:
        given.usage_error(str(error))
    _validate(factory, given, words, changes)
    selects = given.all or given.selector
    find(factory, given, args=["nodes"] if selects else ["nodes", *words[1:]], everything=given.all).visit(
        lambda info: _change(factory, given, info, changes, request))


class Request(NamedTuple):
    """How a taint is written: see ``flagsets.dry_run`` and ``flagsets.field_validation``."""

    strategy: str
    validation: str


def split_words(words: list[str]) -> tuple[list[str], list[str]]:
    """Resources first, then taints. Raises CliError."""
    resources: list[str] = []
    taints: list[str] = []
    for word in words:
        if "=" in word or ":" in word or word.endswith("-"):
            taints.append(word)
        elif taints:
            raise CliError(f"all resources must be specified before taint changes: {word}")
        else:
            resources.append(word)
    return resources, taints


def _validate(factory: Factory, given: Invocation, words: list[str], changes: Changes) -> None:
    found = factory.scheme.find(words[0])
    if found is None:
        raise UnprefixedError(f'the server doesn\'t have a resource type {quote(words[0].lower().partition(".")[0])}')
    if found.key != "nodes":
        raise CliError(f"invalid resource type {words[0].lower()}, only node types are supported")
    require_no_conflict(changes)
    if given.all and given.selector:
        raise CliError("setting 'all' parameter with a non empty selector is prohibited")
    if not given.all and not given.selector and len(words) < 2:
        raise CliError("at least one resource name must be specified since 'all' parameter is not set")


def _change(factory: Factory, given: Invocation, info: Info, changes: Changes, request: Request) -> None:
    node = info.content
    changed = change_taints(info.name, node.get("spec", {}).get("taints") or [], changes, given.overwrite)
    raise_all(CliError(error) for error in changed.errors)
    wanted = copy.deepcopy(node)
    wanted.setdefault("spec", {})["taints"] = changed.taints
    if not changed.taints:
        del wanted["spec"]["taints"]
    printer = printer_for(factory, given, changed.operation, request.strategy, typed=True)
    if request.strategy != CLIENT:
        patch, patch_type = two_way_patch(node, wanted)
        wanted = factory.client.patch("nodes", info.name, patch, patch_type, dry_run=request.strategy == SERVER,
                                      field_manager=given.field_manager, field_validation=request.validation)
    printer(wanted)
