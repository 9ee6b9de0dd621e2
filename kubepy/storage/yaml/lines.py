"""The line of a field in the text of a manifest.

A field is named as the API server names it in an error: ``spec.template.spec.containers[0].image``,
``metadata.annotations[example.org/a]``. Only a file that is refused pays for a second look at its
text.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

_INDEX = re.compile(r"\[(\d+)\]")


def line_of(text: str, field: str) -> int:
    """Return the line of a field, or of what should hold it where it is not in the text.

    0 for a text that ruamel.yaml cannot read although go-yaml can (``[nginx:1.27]``), and where not
    even the first part of the field is there.
    """
    try:
        node = YAML(typ="rt", pure=True).compose(text.replace("\r\n", "\n"))
    except YAMLError:
        return 0
    line = 0
    rest = field
    while rest and (step := _step(node, rest)) is not None:
        line, node, rest = step
    return line


def _step(node: Any, path: str) -> tuple[int, Any, str] | None:
    """Return the line and the node of the first part of a path, and the rest of the path; None if
    the node lacks it.

    A key may hold dots itself, so the longest key that the path begins with counts.
    """
    if isinstance(node, MappingNode):
        steps: list[tuple[int, tuple[int, Any, str]]] = []  # with the length of the key
        for key, value in node.value:
            rest = _rest_after(path, str(key.value)) if isinstance(key, ScalarNode) else None
            if rest is not None:
                steps.append((len(key.value), (key.start_mark.line + 1, value, rest)))
        if steps:
            return max(steps, key=lambda step: step[0])[1]
        return None
    index = _INDEX.match(path)
    if isinstance(node, SequenceNode) and index and int(index[1]) < len(node.value):
        item = node.value[int(index[1])]
        return item.start_mark.line + 1, item, path[index.end() :].removeprefix(".")
    return None


def _rest_after(path: str, key: str) -> str | None:
    """Return the rest of a path that begins with a key, in brackets or not; None if it does not."""
    if path.startswith(f"[{key}]"):
        return path[len(key) + 2 :].removeprefix(".")
    rest = path.removeprefix(key)
    if key and path.startswith(key) and (not rest or rest[0] in ".["):
        return rest.removeprefix(".")
    return None
