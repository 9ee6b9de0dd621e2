"""Edits collections in flow style: ``{a: 1, b: [x, y]}``, JSON too."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kubepy.storage.yaml.roundtrip.layout import Entry, Layout
from kubepy.storage.yaml.roundtrip.nodes import ALIAS, SCALAR, Node
from kubepy.storage.yaml.roundtrip.plan import MERGED, Plan, Slot
from kubepy.storage.yaml.roundtrip.scalars import flow_scalar

_TO_COMMA = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*,")


class _Piece(NamedTuple):
    """An entry's text with the blanks and comments around it: ``after`` is the comment behind its comma."""

    lead: str
    body: str
    tail: str
    after: str


class _Shape(NamedTuple):
    """The looks of the entries of a collection: ``style`` is the quote of its strings, ``lead`` the text before the
    first; ``indent`` and ``base`` are the columns of entries and closing bracket, None on a single line."""

    style: str
    lead: str
    indent: int | None
    base: int


class FlowEditor:
    """Writes the flow collections of a document as a plan wants them."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        self._layout = layout
        self._text = layout.text
        self._plan = plan

    def collection(self, node: Node, value: Any) -> str:
        """The text of a collection with brackets, its anchor and tag included."""
        pieces, closing, ends_with_comma = self._pieces(node)
        shape = self._shape(node, pieces, closing)
        slots = self._plan.slots(node, value)
        written = [self._piece(slot, node, pieces, shape, is_first=not place) for place, slot in enumerate(slots)]
        text = self._text[node.start:self._layout.content_start(node) + 1]
        is_comment = False
        for place, piece in enumerate(written):
            comma = "," if ends_with_comma or place < len(written) - 1 else ""
            text += _on_own_line(piece.lead, shape) if is_comment else piece.lead
            text += piece.body + (piece.tail if comma or "#" in piece.tail else "") + comma + piece.after
            is_comment = bool(piece.after)
        if not written and "#" not in closing:
            closing = ""
        return text + (_on_own_line(closing, shape) if is_comment else closing) + self._text[node.end - 1]

    def _pieces(self, node: Node) -> tuple[list[_Piece], str, bool]:
        """The pieces, what stands between the last and the closing bracket, and whether a comma follows the last."""
        pieces: list[_Piece] = []
        position, has_comma = self._layout.content_start(node) + 1, False
        for entry in self._layout.entries(node):
            match = _TO_COMMA.match(self._text, entry.end)
            has_comma = match is not None
            end = match.end() if match else entry.end
            after = self._layout.end_comment(end)
            tail = self._text[entry.end:end - has_comma]
            pieces.append(_Piece(self._text[position:entry.start], self._text[entry.start:entry.end], tail, after))
            position = end + len(after)
        return pieces, self._text[position:node.end - 1], has_comma

    def _shape(self, node: Node, pieces: list[_Piece], closing: str) -> _Shape:
        root = self._layout.composer.root
        samples = [*node.children, *(root.children if root and root.is_flow else [])]
        sample = next((child for child in samples if child.kind == SCALAR and isinstance(child.value, str)), None)
        indents = [_last_line(piece.lead) for piece in pieces if "\n" in piece.lead]
        start = self._layout.line_start(node.start)
        own = len(self._text[start:]) - len(self._text[start:].lstrip(" "))
        base = len(_last_line(closing)) if "\n" in closing and not closing.strip() else own
        indent = len(indents[0]) if indents else base + 2 if "\n" in closing else None
        return _Shape(sample.style if sample else "", pieces[0].lead if pieces else "", indent, base)

    def _piece(self, slot: Slot, node: Node, pieces: list[_Piece], shape: _Shape, *, is_first: bool) -> _Piece:
        if slot.place is None:
            key = "" if slot.name == "" and not isinstance(node.value, dict) else f"{_key(slot.name, shape.style)}: "
            return _Piece(_lead(shape, is_first=is_first), key + _rendered(slot.value, shape), "", "")
        piece = pieces[slot.place]
        if is_first and slot.place and "\n" not in piece.lead:
            piece = piece._replace(lead=shape.lead)
        elif not is_first and not slot.place and shape.indent is None:
            piece = piece._replace(lead=" ")
        entry = self._layout.entries(node)[slot.place]
        if slot.value is MERGED or self._plan.stands(entry.value, slot.value):
            return piece
        return piece._replace(body=self._entry(entry, slot.value, shape))

    def _entry(self, entry: Entry, value: Any, shape: _Shape) -> str:
        node = entry.value
        if self._plan.is_edited_within(node, value):
            return self._text[entry.start:node.start] + self.collection(node, value)
        style = node.style if node.kind == SCALAR and isinstance(node.value, str) else shape.style
        text = _rendered(value, shape._replace(style=style))
        if entry.mark < 0:
            return f"{self._text[entry.start:entry.key_end]}: {text}"
        if node.start == node.end and not node.is_collection:
            return f"{self._text[entry.start:entry.mark]} {text}"
        anchor = f"&{node.anchor} " if node.anchor and node.kind != ALIAS else ""
        return self._text[entry.start:node.start] + anchor + text


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]


def _on_own_line(text: str, shape: _Shape) -> str:
    """Begin a line of its own: the text before ends with a comment."""
    has_own = text.lstrip(" \t\r").startswith("\n")
    return text if has_own else "\n" + " " * (shape.indent or shape.base) + text.lstrip(" ")


def _lead(shape: _Shape, *, is_first: bool) -> str:
    if shape.indent is not None:
        return "\n" + " " * shape.indent
    return (shape.lead if not shape.lead.strip() else "") if is_first else " "


def _key(name: str, style: str) -> str:
    return '"<<"' if name == "<<" else flow_scalar(name, style)


def _rendered(value: Any, shape: _Shape) -> str:
    """A value in flow style, laid out as the collection that it comes into."""
    if not value or not isinstance(value, dict | list):
        return flow_scalar(value, shape.style)
    step = 0 if shape.indent is None else max(shape.indent - shape.base, 1)
    inner = shape._replace(indent=shape.indent and shape.indent + step, base=shape.base + step)
    if isinstance(value, dict):
        parts = [f"{_key(name, shape.style)}: {_rendered(item, inner)}" for name, item in value.items()]
    else:
        parts = [_rendered(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if shape.indent is None:
        return opening + ", ".join(parts) + closing
    pad = "\n" + " " * (shape.indent + step)
    return opening + pad + f",{pad}".join(parts) + "\n" + " " * shape.indent + closing
