"""Write the text of changed collections and scalars: in block style (one line or more for each
entry), and in flow style (``{a: 1, b: [x, y]}``, JSON too). New values of scalars take the style of
the old ones."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kubepy.storage.yaml.emitter import (
    atom,
    double_quote,
    dump_entry,
    dump_item,
    literal,
    quote,
    string,
)
from kubepy.storage.yaml.roundtrip.layout import CollectionEntry, DocumentLayout, EntryLines
from kubepy.storage.yaml.roundtrip.matching import increasing
from kubepy.storage.yaml.roundtrip.nodes import ALIAS, MAPPING, SCALAR, YamlNode
from kubepy.storage.yaml.roundtrip.plan import MERGED, EditPlan, Slot

_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_TO_COMMA = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*,")
_MAY_BE_PLAIN_IN_FLOW = re.compile(r"[\w./][\w./ -]*(?<! )", re.ASCII)
_NOT_PRINTABLE = re.compile("[^\\n\\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")


# --- block style ---


class BlockEditor:
    """Writes a document, and the block collections in it, as a plan wants them."""

    def __init__(self, layout: DocumentLayout, plan: EditPlan) -> None:
        self._layout = layout
        self._text = layout.text
        self._plan = plan
        self._flow = FlowEditor(layout, plan)

    def document(self, root: YamlNode, value: dict[str, Any]) -> str:
        """Return the whole text with the root's changes made in it."""
        if root.is_flow:
            return (
                self._text[: root.start]
                + self._flow.collection(root, value)
                + self._text[root.end :]
            )
        composer = self._layout.composer
        start = self._layout.line_end(
            self._layout.after_properties(root) if root.anchor else composer.start
        )
        end = len(self._text) if composer.end is None else composer.end
        return self._text[:start] + _append(
            self.collection(root, value, start, end), self._text[end:]
        )

    def collection(self, node: YamlNode, value: Any, start: int, end: int) -> str:
        """Return the lines of a block collection whose lines are a span now. Where the span begins
        within a line, the text begins as if that line were blank before it."""
        chunks, tail_start = self._layout.chunks(node, start, end)
        slots = self._plan.slots(node, value)
        staying = increasing([slot.place for slot in slots])
        leads, tail = self._leads(chunks, staying, self._text[tail_start:end])
        text = ""
        if (
            staying and slots[0].place not in staying
        ):  # what is new comes behind the comments that stand apart
            first = min(staying)
            text, leads[first] = leads[first], ""

        column = self._layout.column(node)
        pad = " " * column
        for slot in slots:
            if slot.place is None:
                is_mapping = node.kind == MAPPING
                text += (
                    dump_entry(slot.name, slot.value, pad)
                    if is_mapping
                    else dump_item(slot.value, pad)
                )
                continue
            chunk = chunks[slot.place]
            lead = leads[slot.place] if slot.place in staying else ""
            comments = self._text[
                chunk.attached : max(chunk.attached, self._layout.line_start(chunk.entry.start))
            ]
            text = _append(text, lead + comments + self._entry(chunk, column, slot.value))

        return _append(text, tail)

    def _leads(
        self, chunks: list[EntryLines], staying: set[int], tail: str
    ) -> tuple[list[str], str]:
        """Return the lines apart before each chunk, and after the last; they stay when the entry
        behind them goes."""
        leads = []
        carried = ""
        for index, chunk in enumerate(chunks):
            lead = _join(carried, self._text[chunk.lead : chunk.attached])
            carried = "" if index in staying else lead
            leads.append(lead)
        if carried:
            tail = _join(carried, tail) if carried.strip() or tail else ""
        if 0 not in staying and staying and not chunks[0].lead < chunks[0].attached:
            leads[min(staying)] = leads[min(staying)].lstrip("\n")
        return leads, tail

    # --- entries ---

    def _entry(self, chunk: EntryLines, column: int, value: Any) -> str:
        """Return the lines of a present entry with its new value."""
        entry = chunk.entry
        node = chunk.entry.value
        pad = " " * column
        if value is MERGED or self._plan.stands(node, value):
            return pad + self._text[entry.start : chunk.end]
        if entry.mark >= 0 and self._plan.is_edited_within(node, value):
            return pad + self._edited_within(chunk, value)
        comments = (
            self._layout.comments(entry.start, chunk.end) if self._plan.is_rigid(node) else []
        )
        salvaged = "".join(f"{pad}{comment}\n" for comment in comments)
        if entry.mark < 0 or salvaged:
            return salvaged + (
                dump_entry(entry.name, value, pad) if entry.name else dump_item(value, pad)
            )

        if isinstance(value, dict | list) and value:
            return pad + self._with_collection(chunk, column, value)
        return pad + self._with_scalar(chunk, column, value)

    def _edited_within(self, chunk: EntryLines, value: Any) -> str:
        """Return an entry whose value stays a collection of its kind."""
        entry = chunk.entry
        node = chunk.entry.value
        if node.is_flow:
            edited = self._flow.collection(node, value)
            return self._text[entry.start : node.start] + edited + self._text[node.end : chunk.end]
        start = self._layout.inner_start(entry)
        head = self._text[entry.start : start]
        body = self.collection(node, value, start, chunk.end)
        if head.endswith("\n"):
            return head + body
        column = self._layout.column(node)
        begins_there = len(body) - len(body.lstrip(" ")) == column and body[column] != "\n"
        if begins_there:
            return head + body[column:]
        return f"{head.rstrip(' ')}\n{body}"

    def _with_collection(self, chunk: EntryLines, column: int, value: Any) -> str:
        """Return an entry whose value becomes a collection, in block style."""
        entry = chunk.entry
        pad = " " * column
        anchor = _anchor(entry.value)
        head = (
            self._text[entry.start : entry.mark]
            + (f" {anchor}" if anchor else "")
            + self._comment_beside(entry)
        )
        after = self._comments_after(chunk)
        if entry.name:
            return f"{head}\n" + dump_entry("k", value, pad).partition("\n")[2] + after
        item = dump_item(value, pad)[column + 1 :]
        return (head + item if head == "-" else f"{head}\n{pad} {item}") + after

    def _with_scalar(self, chunk: EntryLines, column: int, value: Any) -> str:
        """Return an entry whose value becomes a scalar or an empty collection."""
        entry = chunk.entry
        node = chunk.entry.value
        is_block_scalar = node.style in ("|", ">")
        is_inline = not node.is_block and not is_block_scalar
        start = node.start if is_inline and node.start < node.end else entry.mark
        if start > entry.mark:
            head = self._text[entry.start : start]
        else:
            head = self._text[entry.start : entry.mark] + " "

        if anchor := _anchor(node):
            head += f"{anchor} "
        if node.has_kind_of(value):
            after = self._comments_of_collection(chunk)
        else:
            after = self._comments_after(chunk)

        text: str | None = None
        if is_block_scalar and isinstance(value, str):
            header, _, body = self._text[self._layout.content_start(node) : entry.end].partition(
                "\n"
            )
            text = literal_like(header, body, value, column)

        text = text or block_scalar(
            node, value, column + len(head), column + 2, may_have_lines="#" not in after
        )
        if text.startswith("|"):
            header, _, body = text.partition("\n")
            return f"{head}{header}{self._comment_beside(entry)}\n{body}\n{after}"
        if is_inline:  # a comment, or blanks that somebody left
            rest = self._text[entry.end : self._layout.line_end(entry.end + 1)].rstrip("\n")
        else:
            rest = self._comment_beside(entry)

        return f"{head}{text}{rest}\n{after}"

    # --- comments ---

    def _comment_beside(self, entry: CollectionEntry) -> str:
        """Return the comment at the end of the line of an entry's key, or of its value if that is a
        scalar."""
        node = entry.value
        if node.style in ("|", ">"):
            line = self._text[node.start : self._layout.line_end(node.start + 1)]
            blank = len(line) - len(line.partition("#")[0].rstrip())
            if "#" in line:
                return line[len(line) - blank :].rstrip("\n")
            return ""

        if not node.is_block:
            return self._layout.end_comment(entry.end)
        start = self._layout.inner_start(entry)
        if self._text[start - 1] != "\n":
            return ""
        has_properties = node.anchor is not None or node.has_tag
        return self._layout.end_comment(
            self._layout.after_properties(node) if has_properties else entry.mark
        )

    def _comments_after(self, chunk: EntryLines) -> str:
        """Return the comments after an entry that belong to it; those within a block collection go
        with that."""
        node = chunk.entry.value
        if node.is_block:
            return ""
        return self._text[self._layout.line_end(chunk.entry.end) : chunk.end]

    def _comments_of_collection(self, chunk: EntryLines) -> str:
        """Return the comments that belong to a block collection itself: they stay when all its
        entries go."""
        entry = chunk.entry
        if not entry.value.is_block:
            return self._comments_after(chunk)
        start = self._layout.inner_start(entry)
        chunks, tail_start = self._layout.chunks(entry.value, start, chunk.end)
        _, tail = self._leads(chunks, set(), self._text[tail_start : chunk.end])
        return tail if tail.strip() else ""


def _anchor(node: YamlNode) -> str:
    """Return the anchor of a node with its ``&``, "" where it has none."""
    if node.anchor and node.kind != ALIAS:
        return f"&{node.anchor}"
    return ""


def _append(text: str, following: str) -> str:
    """Put one run of lines after another; blank lines after a scalar that keeps them (``|+``) would
    become its."""
    return text + (_BLANK_LINES.sub("", following) if text.endswith("\n\n") else following)


def _join(carried: str, lead: str) -> str:
    """Put one stretch of blank lines and comments after another, without doubling the blank lines
    between them."""
    ends_blank = not carried.rpartition("\n")[0].rpartition("\n")[2].strip() if carried else False
    if ends_blank and (not lead or not lead.partition("\n")[0].strip()):
        carried = carried.rstrip("\n") + ("\n" if carried.strip() else "")
    return carried + lead


# --- flow style ---


class _Piece(NamedTuple):
    """An entry's text with the blanks and comments around it: ``after`` is the comment behind its
    comma."""

    lead: str
    body: str
    tail: str
    after: str


class _Shape(NamedTuple):
    """The looks of the entries of a collection.

    :ivar style: the quote of its strings.
    :ivar lead: the text before the first entry.
    :ivar indent: the column of the entries, None on a single line.
    :ivar base: the column of the closing bracket.
    """

    style: str
    lead: str
    indent: int | None
    base: int


class FlowEditor:
    """Writes the flow collections of a document as a plan wants them."""

    def __init__(self, layout: DocumentLayout, plan: EditPlan) -> None:
        self._layout = layout
        self._text = layout.text
        self._plan = plan

    def collection(self, node: YamlNode, value: Any) -> str:
        """Return the text of a collection with brackets, its anchor and tag included."""
        pieces, closing, ends_with_comma = self._pieces(node)
        shape = self._shape(node, pieces, closing)
        slots = self._plan.slots(node, value)
        written = [
            self._piece(slot, node, pieces, shape, is_first=not place)
            for place, slot in enumerate(slots)
        ]
        text = self._text[node.start : self._layout.content_start(node) + 1]
        is_comment = False
        for place, piece in enumerate(written):
            comma = "," if ends_with_comma or place < len(written) - 1 else ""
            text += _on_own_line(piece.lead, shape) if is_comment else piece.lead
            text += (
                piece.body
                + (piece.tail if comma or "#" in piece.tail else "")
                + comma
                + piece.after
            )
            is_comment = bool(piece.after)

        if not written and "#" not in closing:
            closing = ""
        return (
            text
            + (_on_own_line(closing, shape) if is_comment else closing)
            + self._text[node.end - 1]
        )

    def _pieces(self, node: YamlNode) -> tuple[list[_Piece], str, bool]:
        """Return the pieces, the text between the last and the closing bracket, and whether a comma
        follows the last."""
        pieces: list[_Piece] = []
        position = self._layout.content_start(node) + 1
        has_comma = False
        for entry in self._layout.entries(node):
            match = _TO_COMMA.match(self._text, entry.end)
            has_comma = match is not None
            end = match.end() if match else entry.end
            after = self._layout.end_comment(end)
            tail = self._text[entry.end : end - has_comma]
            pieces.append(
                _Piece(
                    self._text[position : entry.start],
                    self._text[entry.start : entry.end],
                    tail,
                    after,
                )
            )
            position = end + len(after)

        return pieces, self._text[position : node.end - 1], has_comma

    def _shape(self, node: YamlNode, pieces: list[_Piece], closing: str) -> _Shape:
        root = self._layout.composer.root
        samples = [*node.children, *(root.children if root and root.is_flow else [])]
        sample = next(
            (child for child in samples if child.kind == SCALAR and isinstance(child.value, str)),
            None,
        )
        indents = [_last_line(piece.lead) for piece in pieces if "\n" in piece.lead]
        start = self._layout.line_start(node.start)
        own = len(self._text[start:]) - len(self._text[start:].lstrip(" "))
        base = len(_last_line(closing)) if "\n" in closing and not closing.strip() else own
        indent = None
        if indents:
            indent = len(indents[0])
        elif "\n" in closing:
            indent = base + 2

        return _Shape(
            sample.style if sample else "", pieces[0].lead if pieces else "", indent, base
        )

    def _piece(
        self, slot: Slot, node: YamlNode, pieces: list[_Piece], shape: _Shape, *, is_first: bool
    ) -> _Piece:
        """Return the text of an entry as it is to be."""
        if slot.place is None:
            if slot.name == "" and not isinstance(node.value, dict):
                key = ""
            else:
                key = f"{_flow_key(slot.name, shape)}: "
            lead = " "
            if shape.indent is not None:
                lead = "\n" + " " * shape.indent
            elif is_first:
                lead = shape.lead if not shape.lead.strip() else ""
            return _Piece(lead, key + _flow_value(slot.value, shape), "", "")

        piece = pieces[slot.place]
        if is_first and slot.place and "\n" not in piece.lead:
            piece = piece._replace(lead=shape.lead)
        elif not is_first and not slot.place and shape.indent is None:
            piece = piece._replace(lead=" ")

        entry = self._layout.entries(node)[slot.place]
        if slot.value is MERGED or self._plan.stands(entry.value, slot.value):
            return piece
        return piece._replace(body=self._entry(entry, slot.value, shape))

    def _entry(self, entry: CollectionEntry, value: Any, shape: _Shape) -> str:
        node = entry.value
        if self._plan.is_edited_within(node, value):
            return self._text[entry.start : node.start] + self.collection(node, value)
        style = node.style if node.kind == SCALAR and isinstance(node.value, str) else shape.style
        text = _flow_value(value, shape._replace(style=style))
        if entry.mark < 0:
            return f"{self._text[entry.start : entry.key_end]}: {text}"
        if node.start == node.end and not node.is_collection:
            return f"{self._text[entry.start : entry.mark]} {text}"
        anchor = _anchor(node)
        return self._text[entry.start : node.start] + (f"{anchor} " if anchor else "") + text


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]


def _on_own_line(text: str, shape: _Shape) -> str:
    """Begin a line of its own: the text before ends with a comment."""
    has_own = text.lstrip(" \t\r").startswith("\n")
    if has_own:
        return text
    return "\n" + " " * (shape.indent or shape.base) + text.lstrip(" ")


def _flow_key(name: str, shape: _Shape) -> str:
    if name == "<<":
        return '"<<"'
    return flow_scalar(name, shape.style)


def _flow_value(value: Any, shape: _Shape) -> str:
    """Return a value in flow style, laid out as the collection that it comes into."""
    if not value or not isinstance(value, dict | list):
        return flow_scalar(value, shape.style)
    step = 0 if shape.indent is None else max(shape.indent - shape.base, 1)
    inner = shape._replace(indent=shape.indent and shape.indent + step, base=shape.base + step)
    if isinstance(value, dict):
        parts = [
            f"{_flow_key(name, shape)}: {_flow_value(item, inner)}" for name, item in value.items()
        ]
    else:
        parts = [_flow_value(item, inner) for item in value]

    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if shape.indent is None:
        return opening + ", ".join(parts) + closing
    pad = "\n" + " " * (shape.indent + step)
    return opening + pad + f",{pad}".join(parts) + "\n" + " " * shape.indent + closing


# --- scalars ---


def flow_scalar(value: Any, style: str) -> str:
    """Return a scalar, or an empty collection, for one line and any place."""
    if not isinstance(value, str):
        return atom(value)
    if style == '"':
        return double_quote(value)
    if style == "'" and not _NOT_PRINTABLE.search(value) and not {"\n", "\t"} & set(value):
        return "'" + value.replace("'", "''") + "'"
    text = quote(value)
    if text[0] in "'\"" or _MAY_BE_PLAIN_IN_FLOW.fullmatch(text):
        return text
    return double_quote(value)


def block_scalar(
    node: YamlNode, value: Any, column: int, indent: int, *, may_have_lines: bool
) -> str:
    """Return a scalar, or an empty collection, as the value of an entry of a block collection.

    ``column``: where it begins; ``indent``: where its further lines stand. Without
    ``may_have_lines`` it takes one.
    """
    if not isinstance(value, str):
        return atom(value)
    style = node.style if node.kind == SCALAR and isinstance(node.value, str) else ""
    if not may_have_lines:
        if style == '"' or "\n" in value:
            return double_quote(value)
        return quote(value)
    if style == '"' and ("\n" not in value or "\n" in node.value):
        return double_quote(value)
    if style == "'" and "\n" not in value:
        return flow_scalar(value, style)
    if style == "" and node.kind == SCALAR and "\n" not in value:
        return quote(value)
    return string(value, column, " " * indent)


def literal_like(header: str, body: str, value: str, column: int) -> str | None:
    """Return a ``|`` block at the indentation of another, whose collection stands at ``column``;
    None where the value cannot be one."""
    explicit = re.search(r"[1-9]", header.partition("#")[0])
    first = re.search(r"^( *)[^ \n]", body, re.MULTILINE)
    steps = 2
    if explicit:
        steps = int(explicit[0])
    elif first:
        steps = len(first[1]) - column
    if not value.strip(" \n") or _NOT_PRINTABLE.search(value) or not 0 < steps < 10:
        return None
    return literal(value, " " * (column + steps), steps)
