"""The comments above learned rules in the text of ``kubepy.yaml``."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubepy.importing.words import one_line
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
    if not rules:
        return text
    text = _with_rules_in_lines(text)
    items = _rule_nodes(text)
    if len(items) < len(rules):
        return text
    lines = text.splitlines(keepends=True)
    learned_items = items[-len(rules) :]
    for item, rule in reversed([*zip(learned_items, rules, strict=True)]):
        number = _line_of(item, lines)
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
        number = _line_of(item, lines)
        if number == 0 or not _is_comment(lines[number - 1]):
            own.append(rule)
    return own


def _is_comment(line: str) -> bool:
    """Tell whether a line is the comment of a learned rule."""
    return line.lstrip().startswith(BEGIN)


def _line_of(item: Any, lines: Sequence[str]) -> int:
    """Return the number of the line with the "-" of a rule; its content may begin below it. A rule
    in braces and brackets has none: the line in which it begins."""
    number: int = item.start_mark.line
    dash = number
    while dash > 0 and not lines[dash].lstrip().startswith("-"):
        dash -= 1
    return dash if lines[dash].lstrip().startswith("-") else number


def _with_rules_in_lines(text: str) -> str:
    """Return a text in which each rule has lines of its own. What holds the rules may be written in
    braces and brackets, where no comment fits."""
    nodes = _nodes_of_rules(text)
    if len(nodes) < 3 or not any(node.flow_style for node in nodes):
        return text
    lines = text.splitlines(keepends=True)
    begin, end = _lines_of_kubelets(nodes, lines)
    before = "".join(lines[begin:end])
    after = _in_block_style(before)
    lost = [
        line.lstrip()
        for line in lines[begin:end]
        if line.lstrip().startswith("#") and line.strip() not in after
    ]
    return "".join([*lines[:begin], *lost, after, *lines[end:]])


def _lines_of_kubelets(nodes: Sequence[Any], lines: Sequence[str]) -> tuple[int, int]:
    """Return the first of the lines with the settings of kubelets and the one after the last: all
    lines, where these cannot be read without the others."""
    everything = 0, len(lines)
    settings, kubelet, _ = nodes
    if settings.flow_style:
        return everything
    begin = kubelet.start_mark.line
    while not lines[begin].startswith("kubelet", lines[begin][0] in "\"'"):
        begin -= 1
    mark = kubelet.end_mark  # of lines with dashes and indents: where the next setting begins
    end = mark.line if mark.column == 0 else mark.line + 1
    has_alias = any("*" in line for line in lines[begin:end])
    return everything if has_alias else (begin, end)


def _in_block_style(text: str) -> str:
    """Return a text with settings of kubelets in which their rules are a list with dashes."""
    editor = ruamel_yaml.YAML()
    editor.preserve_quotes = True
    editor.width = sys.maxsize
    settings = editor.load(text)
    for part in (settings, settings["kubelet"], settings["kubelet"]["rules"]):
        part.fa.set_block_style()
    output = io.StringIO()
    editor.dump(settings, output)
    return output.getvalue()


def _rule_nodes(text: str) -> Sequence[Any]:
    """Return the nodes of the rules in a text; none where it has no list of rules."""
    nodes = _nodes_of_rules(text)
    if len(nodes) < 3 or not isinstance(nodes[2].value, list):
        return ()
    items: Sequence[Any] = nodes[2].value
    return items


def _nodes_of_rules(text: str) -> list[Any]:
    """Return the node of the settings, that of ``kubelet`` in it, and that of its rules, as far as
    they are there."""
    node = ruamel_yaml.YAML(typ="safe").compose(text)
    nodes = [] if node is None else [node]
    for field in ("kubelet", "rules"):
        values = {key.value: value for key, value in node.value} if nodes else {}
        node = values.get(field)
        if node is None:
            break
        nodes.append(node)
    return nodes


def _shortened(comment: str) -> str:
    shown = printable(one_line(comment))
    if len(shown) > WIDEST:
        return f"{shown[: WIDEST - 1]}…"
    return shown
