"""Change the object in a text and leave the text as somebody wrote it: comments, order, quotes,
style, line ends.

ruamel.yaml's parser gives the span of each node in the text (``nodes``, ``layout``). The changes
are planned first (``plan``, ``matching``), then only the spans of changed scalars, removed entries
and new ones are written (``editors``). ruamel.yaml's own round trip is not used: it sets line
width, indentation and quotes of a whole file anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from kubepy.storage.errors import YamlError
from kubepy.storage.yaml.emitter import dump
from kubepy.storage.yaml.loader import DocumentText, load_all, split
from kubepy.storage.yaml.roundtrip.editors import BlockEditor
from kubepy.storage.yaml.roundtrip.layout import DocumentLayout, UnsupportedError, comments_of
from kubepy.storage.yaml.roundtrip.matching import same
from kubepy.storage.yaml.roundtrip.nodes import YamlNode, compose
from kubepy.storage.yaml.roundtrip.plan import MERGED, EditPlan

MAX_TRIES = 40
# characters that are written and read again at most to find a construct that cannot be edited
MAX_TRIED = 2_000_000
_BOM = "\ufeff"


def merge(text: bytes, obj: dict[str, Any]) -> bytes:
    """Return the text of a file with ``obj`` in place of the object that it holds.

    What did not change stays byte for byte, and comments stay unless what they annotate is removed.
    A construct that cannot be edited in place is written anew as a whole, its comments above it. A
    text that cannot be read is replaced.
    """
    try:
        decoded = text.decode()
        if _means(decoded, obj):
            return text
        bom = _BOM if decoded.startswith(_BOM) else ""
        content = decoded.removeprefix(bom)
        end = "" if content.endswith("\n") else "\n"
        document = _Document(content.replace("\r\n", "\n") + end)
        merged = next((attempt for attempt in document.attempts(obj) if _means(attempt, obj)), None)
        merged = merged or document.rewritten(obj)
        return (bom + _with_line_ends(merged.removesuffix(end), content)).encode()
    except (UnicodeDecodeError, YamlError, UnsupportedError, RecursionError):
        return dump(obj).encode()


def _means(text: str, obj: dict[str, Any]) -> bool:
    """Return whether a reader of manifests takes a text for the object."""
    try:
        documents = load_all(text, unique_keys=True)
    except (YamlError, RecursionError):
        return False
    return len(documents) == 1 and same(documents[0].object, obj)


class _Document:
    """The one document of a text that is not empty, and the text before and after it.

    Raises YamlError, and UnsupportedError where there is none.
    """

    def __init__(self, text: str) -> None:
        for part in split(DocumentText(text, 1)):
            composer = compose(part.text)
            if composer.root is not None and isinstance(composer.root.value, dict):
                break
        else:
            raise UnsupportedError
        start = sum(len(line) + 1 for line in text.split("\n")[: part.line - 1])
        self._before, self._after = text[:start], text[start + len(part.text) :]
        self._root: YamlNode = composer.root
        self._layout = DocumentLayout(part.text, composer)

    def attempts(self, obj: dict[str, Any]) -> Iterator[str]:
        """Yield the text with the change in it; then the same with one of the changed collections
        written anew as a whole, the innermost first."""
        yield from self._attempt(obj, ())
        for node in self._changed(obj)[: min(MAX_TRIES, MAX_TRIED // len(self._layout.text))]:
            yield from self._attempt(obj, (node,))

    def _attempt(self, obj: dict[str, Any], rigid: tuple[YamlNode, ...]) -> Iterator[str]:
        try:
            editor = BlockEditor(self._layout, EditPlan(self._layout, obj, rigid))
            yield self._before + editor.document(self._root, obj) + self._after
        except (UnsupportedError, RecursionError):
            return

    def _changed(self, obj: dict[str, Any]) -> list[YamlNode]:
        """Return the collections and scalars below the root that change, the innermost first."""
        changed: list[tuple[int, YamlNode]] = []
        plan = EditPlan(self._layout, obj)
        pending: list[tuple[int, YamlNode, Any]] = [(0, self._root, obj)]
        while pending:
            depth, node, value = pending.pop()
            if node.is_flow or not plan.is_edited_within(node, value):
                continue
            entries = self._layout.entries(node)
            present = [
                slot
                for slot in plan.slots(node, value)
                if slot.place is not None and slot.value is not MERGED
            ]
            for child, new in ((entries[slot.place or 0].value, slot.value) for slot in present):
                if not plan.stands(child, new):
                    changed.append((depth, child))
                    pending.append((depth + 1, child, new))

        return [node for _, node in sorted(changed, key=lambda item: -item[0])]

    def rewritten(self, obj: dict[str, Any]) -> str:
        """Return the object as kubepy writes it, below all comments."""
        inner = self._layout.comments(0, len(self._layout.text))
        comments = [*comments_of(self._before), *inner, *comments_of(self._after)]
        merged = "".join(f"{comment}\n" for comment in comments) + dump(obj)
        return merged if _means(merged, obj) else dump(obj)


def _with_line_ends(merged: str, old: str) -> str:
    """Give lines the ends (``\\n`` or ``\\r\\n``) they had, new ones those that most have."""
    windows = old.count("\r\n")
    if not windows:
        return merged
    if windows == old.count("\n"):
        return merged.replace("\n", "\r\n")
    before = old.splitlines(keepends=True)
    after = merged.split("\n")
    ends = ["\r\n" if windows > old.count("\n") / 2 else "\n"] * (len(after) - 1)
    matcher = SequenceMatcher(None, [line.rstrip("\r\n") for line in before], after)
    for block in matcher.get_matching_blocks():
        for offset in range(min(block.size, len(ends) - block.b)):
            ends[block.b + offset] = "\r\n" if before[block.a + offset].endswith("\r\n") else "\n"
    return "".join(line + end for line, end in zip(after, [*ends, ""], strict=True))
