"""Edits collections in block style: one line or more for each entry."""

from __future__ import annotations

import re
from typing import Any

from kubepy.storage.yaml.emitter import dump_entry, dump_item
from kubepy.storage.yaml.roundtrip.flow import FlowEditor
from kubepy.storage.yaml.roundtrip.layout import Chunk, Entry, Layout
from kubepy.storage.yaml.roundtrip.matching import increasing
from kubepy.storage.yaml.roundtrip.nodes import ALIAS, MAPPING, Node
from kubepy.storage.yaml.roundtrip.plan import MERGED, Plan, Slot
from kubepy.storage.yaml.roundtrip.scalars import block_scalar, literal_like

_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")


class BlockEditor:
    """Writes a document, and the block collections in it, as a plan wants them."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        self._layout = layout
        self._text = layout.text
        self._plan = plan
        self._flow = FlowEditor(layout, plan)

    def document(self, root: Node, value: dict[str, Any]) -> str:
        """The whole text with the root's changes made in it."""
        if root.is_flow:
            return self._text[:root.start] + self._flow.collection(root, value) + self._text[root.end:]
        composer = self._layout.composer
        start = self._layout.line_end(self._layout.after_properties(root) if root.anchor else composer.start)
        end = len(self._text) if composer.end is None else composer.end
        return self._text[:start] + _after_text(self.collection(root, value, start, end), self._text[end:])

    def collection(self, node: Node, value: Any, start: int, end: int) -> str:
        """The lines of a block collection whose lines are a span now. Where the span begins within a line, the text
        begins as if that line were blank before it."""
        chunks, tail_start = self._layout.chunks(node, start, end)
        slots = self._plan.slots(node, value)
        staying = increasing([slot.place for slot in slots])
        leads, tail = self._leads(chunks, staying, self._text[tail_start:end])
        text = ""
        if staying and slots[0].place not in staying:  # what is new comes behind the comments that stand apart
            first = min(staying)
            text, leads[first] = leads[first], ""
        column = self._layout.column(node)
        for slot in slots:
            if slot.place is None:
                text += self._new(node, slot, column)
                continue
            chunk = chunks[slot.place]
            lead = leads[slot.place] if slot.place in staying else ""
            text = _after_text(text, lead + self._attached(chunk) + self._entry(chunk, column, slot.value))
        return _after_text(text, tail)

    def _attached(self, chunk: Chunk) -> str:
        """The comments directly above an entry."""
        start = self._layout.line_start(chunk.entry.start)
        return self._text[chunk.attached:start] if chunk.attached < start else ""

    def _leads(self, chunks: list[Chunk], staying: set[int], tail: str) -> tuple[list[str], str]:
        """Return the lines apart before each chunk, and after the last; they stay when the entry behind them goes."""
        leads, carried = [], ""
        for index, chunk in enumerate(chunks):
            lead = _joined(carried, self._text[chunk.lead:chunk.attached])
            carried = "" if index in staying else lead
            leads.append(lead)
        if carried:
            tail = _joined(carried, tail) if carried.strip() or tail else ""
        if 0 not in staying and staying and not chunks[0].lead < chunks[0].attached:
            leads[min(staying)] = leads[min(staying)].lstrip("\n")
        return leads, tail

    def _new(self, node: Node, slot: Slot, column: int) -> str:
        pad = " " * column
        return dump_entry(slot.name, slot.value, pad) if node.kind == MAPPING else dump_item(slot.value, pad)

    # --- entries ---

    def _entry(self, chunk: Chunk, column: int, value: Any) -> str:
        """The lines of a present entry with its new value."""
        entry, node, pad = chunk.entry, chunk.entry.value, " " * column
        if value is MERGED or self._plan.stands(node, value):
            return pad + self._text[entry.start:chunk.end]
        if entry.mark >= 0 and self._plan.is_edited_within(node, value):
            return pad + self._edited_within(chunk, value)
        comments = self._layout.comments(entry.start, chunk.end) if self._plan.is_rigid(node) else []
        salvaged = "".join(f"{pad}{comment}\n" for comment in comments)
        if entry.mark < 0 or salvaged:
            name = entry.name or ""
            return salvaged + (dump_item(value, pad) if not entry.name else dump_entry(name, value, pad))
        if isinstance(value, dict | list) and value:
            return pad + self._with_collection(chunk, column, value)
        return pad + self._with_scalar(chunk, column, value)

    def _edited_within(self, chunk: Chunk, value: Any) -> str:
        entry, node = chunk.entry, chunk.entry.value
        if node.is_flow:
            edited = self._flow.collection(node, value)
            return self._text[entry.start:node.start] + edited + self._text[node.end:chunk.end]
        start = self._layout.inner_start(entry)
        head, body = self._text[entry.start:start], self.collection(node, value, start, chunk.end)
        if head.endswith("\n"):
            return head + body
        column = self._layout.column(node)
        begins_there = len(body) - len(body.lstrip(" ")) == column and body[column] != "\n"
        return head + body[column:] if begins_there else f"{head.rstrip(' ')}\n{body}"

    def _with_collection(self, chunk: Chunk, column: int, value: Any) -> str:
        """An entry whose value becomes a collection, in block style."""
        entry = chunk.entry
        head = self._text[entry.start:entry.mark] + _anchor(entry.value) + self._comment_beside(entry)
        pad = " " * column
        after = self._after(chunk)
        if entry.name:
            return f"{head}\n" + dump_entry("k", value, pad).partition("\n")[2] + after
        item = dump_item(value, pad)[column + 1:]
        return (head + item if head == "-" else f"{head}\n{pad} {item}") + after

    def _with_scalar(self, chunk: Chunk, column: int, value: Any) -> str:
        """An entry whose value becomes a scalar or an empty collection."""
        entry, node = chunk.entry, chunk.entry.value
        is_inline = not node.is_block and node.style not in ("|", ">")
        start = node.start if is_inline and node.start < node.end else entry.mark
        head = self._text[entry.start:start] if start > entry.mark else self._text[entry.start:entry.mark] + " "
        head += _anchor(node).lstrip() + (" " if _anchor(node) else "")
        after = self._apart_within(chunk) if node.has_kind_of(value) else self._after(chunk)
        literal = self._literal(entry, value, column) if node.style in ("|", ">") and isinstance(value, str) else None
        text = literal or block_scalar(
            node, value, column + len(head), column + 2, may_have_lines="#" not in after)
        if text.startswith("|"):
            header, _, body = text.partition("\n")
            return f"{head}{header}{self._comment_beside(entry)}\n{body}\n{after}"
        return f"{head}{text}{self._rest_of_line(entry)}\n{after}"

    def _literal(self, entry: Entry, value: str, column: int) -> str | None:
        start = self._layout.content_start(entry.value)
        header, _, body = self._text[start:entry.end].partition("\n")
        return literal_like(header, body, value, column)

    def _comment_beside(self, entry: Entry) -> str:
        """The comment at the end of the line of an entry's key, or of its value if that is a scalar."""
        node = entry.value
        if node.style in ("|", ">"):
            line = self._text[node.start:self._layout.line_end(node.start + 1)]
            blank = len(line) - len(line.partition("#")[0].rstrip())
            return line[len(line) - blank:].rstrip("\n") if "#" in line else ""
        if not node.is_block:
            return self._layout.end_comment(entry.end)
        start = self._layout.inner_start(entry)
        if self._text[start - 1] != "\n":
            return ""
        properties = node.anchor is not None or node.has_tag
        return self._layout.end_comment(self._layout.after_properties(node) if properties else entry.mark)

    def _rest_of_line(self, entry: Entry) -> str:
        """The rest of the last line of a value: a comment, or blanks that somebody left."""
        node = entry.value
        if node.is_block or node.style in ("|", ">"):
            return self._comment_beside(entry)
        return self._text[entry.end:self._layout.line_end(entry.end + 1)].rstrip("\n")

    def _after(self, chunk: Chunk) -> str:
        """The comments after an entry that belong to it; those within a collection that is no more go with it."""
        node = chunk.entry.value
        return "" if node.is_block else self._text[self._layout.line_end(chunk.entry.end):chunk.end]


    def _apart_within(self, chunk: Chunk) -> str:
        """The comments that belong to a block collection itself: they stay when all its entries go."""
        entry = chunk.entry
        if not entry.value.is_block:
            return self._after(chunk)
        start = self._layout.inner_start(entry)
        chunks, tail_start = self._layout.chunks(entry.value, start, chunk.end)
        _, tail = self._leads(chunks, set(), self._text[tail_start:chunk.end])
        return tail if tail.strip() else ""


def _anchor(node: Node) -> str:
    return f" &{node.anchor}" if node.anchor is not None and node.kind != ALIAS else ""


def _after_text(text: str, following: str) -> str:
    """Two runs of lines, one after the other; blank lines after a scalar that keeps them (``|+``) would become its."""
    return text + (_BLANK_LINES.sub("", following) if text.endswith("\n\n") else following)


def _joined(carried: str, lead: str) -> str:
    """Two stretches of blank lines and comments, one after the other, without doubling the blank lines between them."""
    ends_blank = not carried.rpartition("\n")[0].rpartition("\n")[2].strip() if carried else False
    if ends_blank and (not lead or not lead.partition("\n")[0].strip()):
        carried = carried.rstrip("\n") + ("\n" if carried.strip() else "")
    return carried + lead
