"""``taint``: put taints on nodes, and take them off. Upstream:
``kubectl/pkg/cmd/taint/{taint,utils}.go``."""

from __future__ import annotations

import copy
from typing import NamedTuple

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.errors import CliError, UnprefixedError, raise_all
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import two_way_patch
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    PrintFlags,
    SelectorOptions,
    ValidateOptions,
    field_manager_flag,
    split_args,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api.values import names

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class TaintOptions(
    PrintFlags, DryRunOptions, ValidateOptions, SelectorOptions, FieldManagerOptions
):
    """The flags of ``taint``."""

    field_manager: str = field_manager_flag("kubectl-taint")
    overwrite: bool = bool_flag(
        "overwrite",
        help="If true, allow taints to be overwritten, otherwise reject taint "
        "updates that overwrite existing taints.",
    )
    all: bool = bool_flag("all", help="Select all nodes in the cluster.")


class TaintChanges(NamedTuple):
    """Taints to put on a node, and taints to take off it (without an effect: all with that key)."""

    add: list[Object]
    remove: list[Object]


class ChangedTaints(NamedTuple):
    """The new list of taints, the name of the operation, and errors for taints that are not
    there."""

    taints: list[Object]
    operation: str
    errors: list[str]


@command(
    "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
    TaintOptions,
    examples="""
# Keep pods without a toleration away from a node
kubepy taint node node-1 gpu=reserved:NoSchedule

# Give that taint another value
# (a key and an effect have one at most)
kubepy taint node node-1 gpu=broken:NoSchedule --overwrite

# A taint without a value, which also removes the pods that are there
kubepy taint node node-1 maintenance:NoExecute

# Remove one taint
kubepy taint node node-1 gpu:NoSchedule-

# Remove all taints with a key
kubepy taint node node-1 maintenance-

# Discourage pods from all nodes with a label
kubepy taint nodes -l disk=slow speed=low:PreferNoSchedule
""",
)
def taint(factory: Factory, options: TaintOptions) -> None:
    """Update the taints on one or more nodes.

    A taint is key=value:effect, or key:effect without a value; the effect is NoSchedule, PreferNoSchedule or NoExecute.
    """  # noqa: E501
    strategy = factory.dry_run_strategy(options)
    validation = options.field_validation()
    resources, taints = split_args(options.args, "taint", is_taint)
    if not resources:
        raise CliError("one or more resources must be specified as <resource> <name>")
    if not taints:
        raise CliError("at least one taint update is required")
    try:
        changes = parse_changes(taints)
    except CliError as error:
        options.usage_error(str(error))

    resource = factory.scheme.find(resources[0])
    if resource is None:
        name = resources[0].lower().partition(".")[0]
        raise UnprefixedError(f"the server doesn't have a resource type {quote(name)}")
    if resource.key != "nodes":
        raise CliError(
            f"invalid resource type {resources[0].lower()}, only node types are supported"
        )

    require_no_conflict(changes)
    if options.all and options.selector:
        raise CliError("setting 'all' parameter with a non empty selector is prohibited")
    if not options.all and not options.selector and len(resources) < 2:
        raise CliError(
            "at least one resource name must be specified since 'all' parameter is not set"
        )

    args = ["nodes"] if options.all or options.selector else ["nodes", *resources[1:]]
    Builder(factory, options, args=args, everything=options.all).do().visit(
        lambda info: _taint_node(factory, options, info, changes, strategy, validation)
    )


def is_taint(word: str) -> bool:
    """Return whether a word puts a taint on or takes one off, rather than naming a resource."""
    return "=" in word or ":" in word or word.endswith("-")


def _taint_node(
    factory: Factory,
    options: TaintOptions,
    info: Info,
    changes: TaintChanges,
    strategy: str,
    validation: str,
) -> None:
    changed = change_taints(
        info.name, nested_list(info.content.get("spec", {}), "taints"), changes, options.overwrite
    )
    raise_all(CliError(error) for error in changed.errors)
    node = copy.deepcopy(info.content)
    node.setdefault("spec", {})["taints"] = changed.taints
    if not changed.taints:
        del node["spec"]["taints"]
    printer = printer_for(factory, options, changed.operation, strategy, typed=True)
    if strategy != CLIENT:
        patch, patch_type = two_way_patch(info.content, node)
        node = factory.client.patch(
            "nodes",
            info.name,
            Patch(patch_type, patch),
            options=PatchOptions(
                dry_run=strategy == SERVER,
                field_manager=options.field_manager,
                field_validation=validation,
            ),
        )

    printer(node)


# --- taints ---------------------------------------------------------------------------------------


def parse_changes(words: list[str]) -> TaintChanges:
    """Parse ``key=value:effect``, ``key:effect``, ``key:effect-``, ``key-``. Raises CliError."""
    changes = TaintChanges([], [])
    for word in words:
        if word.endswith("-"):
            taint = parse_taint(word[:-1])
            taint.pop("value", None)
            changes.remove.append(taint)
            continue
        taint = parse_taint(word)
        if "effect" not in taint:
            raise CliError(printable(f"invalid taint spec: {word}"))
        if any(_has_same_effect(taint, other) for other in changes.add):
            text = f"{{{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>}}"
            raise CliError(f"duplicated taints with the same key and effect: {text}")
        changes.add.append(taint)

    return changes


def parse_taint(text: str) -> Object:
    """Parse a taint. Raises CliError with upstream's message."""
    parts = text.split(":")
    if len(parts) > 2:
        raise CliError(printable(f"invalid taint spec: {text}"))
    if len(parts) == 2 and parts[1] not in EFFECTS:
        raise CliError(printable(f"invalid taint effect: {parts[1]}, unsupported taint effect"))
    key, *values = parts[0].split("=") if len(parts) == 2 else [text]
    if len(values) > 1:
        raise CliError(printable(f"invalid taint spec: {text}"))
    problems = (names.label_value(values[0]) if values else []) or names.qualified_name(key)
    if problems:
        raise CliError(printable(f"invalid taint spec: {text}, {'; '.join(problems)}"))
    taint: Object = {"effect": parts[1], "key": key} if len(parts) == 2 else {"key": key}
    if values and values[0]:
        taint["value"] = values[0]
    return taint


def _has_same_effect(taint: Object, other: Object) -> bool:
    return bool(taint["key"] == other["key"] and taint.get("effect") == other.get("effect"))


def require_no_conflict(changes: TaintChanges) -> None:
    """Raise CliError for a taint that is both added and removed."""
    conflicts = [
        f"{removed['key']}={removed.get('effect', '')}"
        for added in changes.add
        for removed in changes.remove
        if _is_removed(added, removed)
    ]
    if conflicts:
        raise CliError(
            "can not both modify and remove the following taint(s) in the same command: "
            + ", ".join(conflicts)
        )


def _is_removed(taint: Object, removed: Object) -> bool:
    return bool(
        taint["key"] == removed["key"]
        and removed.get("effect", taint.get("effect")) == taint.get("effect")
    )


def change_taints(
    name: str, old: list[Object], changes: TaintChanges, overwrite: bool
) -> ChangedTaints:
    """Return the new taints of a node. Raises CliError when a taint is there and may not be
    overwritten."""
    present = [
        added["key"] for added in changes.add for taint in old if _has_same_effect(added, taint)
    ]
    if present and not overwrite:
        raise CliError(
            f"node {name} already has {','.join(present)} taint(s) with same effect(s) and"
            " --overwrite is false"
        )

    taints = [
        *changes.add,
        *(
            taint
            for taint in old
            if not any(_has_same_effect(taint, added) for added in changes.add)
        ),
    ]
    has_added = len(taints) != len(old)
    has_removed = False
    errors = []
    for removed in changes.remove:
        kept = [taint for taint in taints if not _is_removed(taint, removed)]
        has_removed = len(kept) != len(taints)
        if not has_removed:
            if removed.get("effect"):
                text = f"{removed['key']}:{removed['effect']}"
            else:
                text = str(removed["key"])
            errors.append(f"taint {quote(text)} not found")
        taints = kept

    if (has_added and has_removed) or overwrite:
        return ChangedTaints(taints, "modified", errors)
    return ChangedTaints(taints, "tainted" if has_added else "untainted", errors)
