"""Taints as `taint` reads and changes them. Upstream: ``k8s.io/kubectl/pkg/cmd/taint/utils.go``."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.quoting import printable, quote

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Changes(NamedTuple):
    """Taints to put on a node, and taints to take off it (without an effect: all with that key)."""

    add: list[Object]
    remove: list[Object]


class Changed(NamedTuple):
    """The new list of taints, what to call the operation, and what was not found."""

    taints: list[Object]
    operation: str
    errors: list[str]


def parse_changes(words: list[str]) -> Changes:
    """``key=value:effect``, ``key:effect``, ``key:effect-``, ``key-``. Raises CliError."""
    changes = Changes([], [])
    for word in words:
        if word.endswith("-"):
            taint = parse_taint(word[:-1])
            taint.pop("value", None)
            changes.remove.append(taint)
            continue
        taint = parse_taint(word)
        if "effect" not in taint:
            raise CliError(printable(f"invalid taint spec: {word}"))
        if any(_same(taint, other) for other in changes.add):
            shown = f"{{{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>}}"
            raise CliError(f"duplicated taints with the same key and effect: {shown}")
        changes.add.append(taint)
    return changes


def parse_taint(text: str) -> Object:
    """One taint; raises CliError in upstream's words."""
    from kubepy.api.values.names import label_value, qualified_name

    parts = text.split(":")
    if len(parts) > 2:
        raise CliError(printable(f"invalid taint spec: {text}"))
    if len(parts) == 2 and parts[1] not in EFFECTS:
        raise CliError(printable(f"invalid taint effect: {parts[1]}, unsupported taint effect"))
    key, *values = parts[0].split("=") if len(parts) == 2 else [text]
    if len(values) > 1:
        raise CliError(printable(f"invalid taint spec: {text}"))
    wrong = (label_value(values[0]) if values else []) or qualified_name(key)
    if wrong:
        raise CliError(printable(f"invalid taint spec: {text}, {'; '.join(wrong)}"))
    taint: Object = {"effect": parts[1], "key": key} if len(parts) == 2 else {"key": key}
    if values and values[0]:
        taint["value"] = values[0]
    return taint


def _same(one: Object, other: Object) -> bool:
    return bool(one["key"] == other["key"] and one.get("effect") == other.get("effect"))


def require_no_conflict(changes: Changes) -> None:
    """Nothing may be added and removed at once. Raises CliError."""
    found = [f"{gone['key']}={gone.get('effect', '')}" for new in changes.add for gone in changes.remove
             if new["key"] == gone["key"] and gone.get("effect", new["effect"]) == new["effect"]]
    if found:
        raise CliError("can not both modify and remove the following taint(s) in the same command: "
                       + ", ".join(found))


def change_taints(name: str, old: list[Object], changes: Changes, overwrite: bool) -> Changed:
    """What a node's taints become. Raises CliError when one is there already and may not be overwritten."""
    there = [new["key"] for new in changes.add for taint in old if _same(new, taint)]
    if there and not overwrite:
        raise CliError(f"node {name} already has {','.join(there)} taint(s) with same effect(s) and"
                       " --overwrite is false")
    taints = [*changes.add, *(taint for taint in old if not any(_same(taint, new) for new in changes.add))]
    added = len(taints) != len(old)
    removed, errors = False, []
    for gone in changes.remove:
        left = [taint for taint in taints if not _removes(gone, taint)]
        removed = len(left) != len(taints)
        if not removed:
            errors.append(f"taint {quote(_text(gone))} not found")
        taints = left
    if (added and removed) or overwrite:
        return Changed(taints, "modified", errors)
    return Changed(taints, "tainted" if added else "untainted", errors)


def _removes(gone: Object, taint: Object) -> bool:
    return bool(gone["key"] == taint["key"] and gone.get("effect", taint.get("effect")) == taint.get("effect"))


def _text(taint: Object) -> str:
    return f"{taint['key']}:{taint['effect']}" if taint.get("effect") else str(taint["key"])
