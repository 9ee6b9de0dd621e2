"""The lines and comments of a text, and the node that each of them belongs to.

A block collection is a run of chunks, one for each entry: the comments directly above it at its own
indentation, the entry itself with the comments at the ends of its lines, and the comments after it
that are indented deeper than it. Blank lines and comments between two chunks belong to the
collection.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import NamedTuple

from kubepy.storage.yaml.roundtrip.nodes import MAPPING, Composer, YamlNode

_FILLER = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_FLOW_FILLER = re.compile(r"(?:[ \t\r\n,]+|#[^\n]*)*")
_ANCHOR = re.compile(r"&[\w-]+")
_TAG = re.compile(r"!(?:<[^>\s]*>|[^\s,\[\]{}]*)")
_COMMENT = re.compile(r"#[^\n]*")
_END_OF_LINE = re.compile(r"[ \t]*(#[^\n]*)?(?=\n|\Z)")


def comments_of(text: str) -> list[str]:
    """Return the comments of a text that holds nothing else."""
    return _COMMENT.findall(text)


class UnsupportedError(Exception):
    """A text is laid out in a way that this package does not know."""


class CollectionEntry(NamedTuple):
    """One entry of a mapping or list.

    :ivar name: the key; None for a merge (``<<``), "" for an item.
    :ivar start: the position of the key, ``?`` or ``-``.
    :ivar mark: the end of its ``:`` or ``-``, -1 where it has none.
    """

    name: str | None
    start: int
    key_end: int
    mark: int
    value: YamlNode
    end: int


class EntryLines(NamedTuple):
    """The lines of an entry: those apart from it begin at ``lead``, those attached to it at
    ``attached``."""

    entry: CollectionEntry
    lead: int
    attached: int
    end: int


class DocumentLayout:
    """One document's text and nodes."""

    def __init__(self, text: str, composer: Composer) -> None:
        self.text = text
        self.composer = composer
        self._entries: dict[int, list[CollectionEntry]] = {}

    # --- lines ---

    def line_start(self, position: int) -> int:
        """Return the start of the line of a position."""
        return self.text.rfind("\n", 0, position) + 1

    def line_end(self, position: int) -> int:
        """Return the start of the next line; the position itself if a line begins there."""
        if not position or self.text[position - 1] == "\n":
            return position
        return self.text.find("\n", position) + 1 or len(self.text)

    def column(self, node: YamlNode) -> int:
        """Return the column of the entries of a block collection."""
        start = self.entries(node)[0].start
        return start - self.line_start(start)

    def end_comment(self, position: int) -> str:
        """Return the comment on the rest of a line, with the blanks before it; "" where there is
        none."""
        match = _END_OF_LINE.match(self.text, position)
        return match[0] if match and match[1] else ""

    def comments(self, start: int, end: int) -> list[str]:
        """Return the comments in a span, without what looks like one within scalars."""
        gaps = self._gaps_between_scalars
        first = max(bisect_right(gaps, (start, len(self.text))) - 1, 0)
        return [
            match[0]
            for low, high in gaps[first : bisect_left(gaps, (end, 0))]
            for match in _COMMENT.finditer(self.text, max(low, start), min(high, end))
        ]

    @cached_property
    def _gaps_between_scalars(self) -> list[tuple[int, int]]:
        gaps = []
        position = 0
        for scalar in sorted(self.composer.scalars, key=lambda node: node.start):
            start = (
                self.text.find("\n", scalar.start) if scalar.style in ("|", ">") else scalar.start
            )
            gaps.append((position, start))
            position = max(scalar.end, start)
        return [*gaps, (position, len(self.text))]

    # --- entries ---

    def after_properties(self, node: YamlNode) -> int:
        """Return the end of the anchor and the tag of a node; its start where it has none."""
        position = node.start
        for _ in range((node.anchor is not None) + node.has_tag):
            match = _ANCHOR.match(self.text, position) or _TAG.match(self.text, position)
            if match is None:
                raise UnsupportedError
            end = match.end()
            position = self._skip(match.end())
        return end if position > node.start else node.start

    def content_start(self, node: YamlNode) -> int:
        """Return the start of a node's content, after its anchor and tag."""
        end = self.after_properties(node)
        return self._skip(end) if end > node.start else end

    def has_brackets(self, node: YamlNode) -> bool:
        """Return whether a node is a flow collection in brackets."""
        return node.is_flow and self.text[self.content_start(node)] in "[{"

    def entries(self, node: YamlNode) -> list[CollectionEntry]:
        """Return the entries of a collection as they stand."""
        entries = self._entries.get(id(node))
        if entries is None:
            entries = []
            position = self.content_start(node) + node.is_flow
            for key, value in node.pairs():
                entries.append(
                    self._entry(node, key, value, self._skip(position, over_commas=node.is_flow))
                )
                position = entries[-1].end
            self._entries[id(node)] = entries
        return entries

    def _entry(
        self, node: YamlNode, key: YamlNode | None, value: YamlNode, start: int
    ) -> CollectionEntry:
        if node.kind != MAPPING:
            if not node.is_flow and self.text[start] != "-":
                raise UnsupportedError
            mark = start if node.is_flow else start + 1
            return CollectionEntry("", start, start, mark, value, self._end_of(value, mark))
        name = None if key is None else str(key.value)
        key_start, key_end = value.merge or (start, start) if key is None else (key.start, key.end)
        if start != key_start and not (self.text[start] == "?" and start < key_start):
            raise UnsupportedError
        colon = self._skip(key_end)
        mark = colon + 1 if self.text[colon : colon + 1] == ":" else -1
        return CollectionEntry(
            name, start, key_end, mark, value, key_end if mark < 0 else self._end_of(value, mark)
        )

    def _end_of(self, value: YamlNode, mark: int) -> int:
        if value.is_block:
            return self.entries(value)[-1].end
        if value.start == value.end and not value.is_collection:
            return mark
        if value.style not in ("|", ">"):
            return value.end
        header, _, body = self.text[self.content_start(value) : value.end].partition("\n")
        if (
            "+" in header.partition("#")[0]
        ):  # the empty lines after it are kept, and so belong to it
            return value.end
        return value.end - len(body) + len(body.rstrip("\n")) + (1 if body.strip("\n") else 0)

    def _skip(self, position: int, *, over_commas: bool = False) -> int:
        """Return the end of blanks and comments."""
        match = (_FLOW_FILLER if over_commas else _FILLER).match(self.text, position)
        return match.end() if match else position

    # --- chunks ---

    def inner_start(self, entry: CollectionEntry) -> int:
        """Return the start of the lines of an entry's block collection; its first entry if that is
        on the same line."""
        value = entry.value
        first = self.entries(value)[0].start
        if self.text[self.line_start(first) : first].strip(" "):
            return first
        has_properties = value.anchor is not None or value.has_tag
        return self.line_end(self.after_properties(value) if has_properties else entry.mark)

    def chunks(self, node: YamlNode, start: int, end: int) -> tuple[list[EntryLines], int]:
        """Return the chunks of a block collection whose lines are a span, and the start of the
        lines after the last.

        The comments at the head of a document are the document's, not its first entry's.
        """
        column = self.column(node)
        chunks: list[EntryLines] = []
        entries = self.entries(node)
        for entry, following in zip(entries, [*entries[1:], None], strict=True):
            limit = self.line_start(following.start) if following else end
            is_head = node is self.composer.root and not chunks
            attached = self.line_start(entry.start)
            comment = " " * column + "#"
            while (
                not is_head
                and attached > start
                and self.text.startswith(comment, previous := self.line_start(attached - 1))
            ):
                attached = previous  # a comment directly above the entry
            attached = max(start, attached)
            stop = self._end_of_deeper_comments(self.line_end(entry.end), limit, column)
            chunks.append(EntryLines(entry, start, attached, stop))
            start = stop

        return chunks, start

    def _end_of_deeper_comments(self, start: int, limit: int, column: int) -> int:
        """Return the end of the comments from ``start`` that are indented deeper than
        ``column``."""
        end = start
        while start < limit:
            stop = self.line_end(start + 1)
            line = self.text[start:stop]
            if line.strip():
                if not line.lstrip().startswith("#") or len(line) - len(line.lstrip(" ")) <= column:
                    break
                end = stop
            start = stop
        return end
