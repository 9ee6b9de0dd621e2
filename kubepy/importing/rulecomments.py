"""The comments above learned rules in the text of ``kubepy.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from ruamel import yaml as ruamel_yaml

if TYPE_CHECKING:
    from kubepy.importing.learning import LearnedRule

BEGIN = "# Learned from "
WIDEST = 110  # characters of a comment


def with_comments(text: str, rules: Sequence[LearnedRule]) -> str:
    """Return the text of ``kubepy.yaml`` with a comment above each learned rule, and without those
    of earlier ones.

    :param text: holds these rules under ``kubelet.rules``, in their order, after all others.
    """
    kept = [line for line in text.splitlines(keepends=True) if not _is_comment(line)]
    text = "".join(kept)
    items = _rule_nodes(text)
    if not rules or len(items) < len(rules):
        return text
    lines = text.splitlines(keepends=True)
    learned_items = items[-len(rules) :]
    for item, rule in reversed([*zip(learned_items, rules, strict=True)]):
        number = item.start_mark.line
        line = lines[number]
        indent = line[: line.index("-")]
        lines.insert(number, f"{indent}# {_shortened(rule.comment)}\n")
    return "".join(lines)


def own_rules(text: str, rules: Sequence[Any]) -> list[Any]:
    """Return the rules that were not learned: those without the comment of one.

    :param text: the text of ``kubepy.yaml``; "" for a cluster that has none: all were learned.
    :param rules: as that text has them.
    """
    items = _rule_nodes(text)
    if len(items) != len(rules):
        return []
    lines = text.splitlines()
    own: list[Any] = []
    for item, rule in zip(items, rules, strict=True):
        number = item.start_mark.line
        if number == 0 or not _is_comment(lines[number - 1]):
            own.append(rule)
    return own


def _is_comment(line: str) -> bool:
    """Tell whether a line is the comment of a learned rule."""
    return line.lstrip().startswith(BEGIN)


def _rule_nodes(text: str) -> Sequence[Any]:
    """Return the nodes of the rules in a text; none where it has no list of rules."""
    loader = ruamel_yaml.YAML(typ="safe")
    node = loader.compose(text)
    for field in ("kubelet", "rules"):
        values = {} if node is None else {key.value: value for key, value in node.value}
        node = values.get(field)
    if node is None or not isinstance(node.value, list):
        return ()
    items: Sequence[Any] = node.value
    return items


def _shortened(comment: str) -> str:
    shown = printable(" ".join(comment.split()))
    if len(shown) > WIDEST:
        return f"{shown[: WIDEST - 1]}…"
    return shown
