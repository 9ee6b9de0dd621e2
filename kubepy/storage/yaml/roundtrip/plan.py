"""Decides which entries of a document stay, change, go and come, before any text is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kubepy.storage.yaml.constructor import merged
from kubepy.storage.yaml.emitter import in_order
from kubepy.storage.yaml.roundtrip.layout import Entry, Layout
from kubepy.storage.yaml.roundtrip.matching import match, same
from kubepy.storage.yaml.roundtrip.nodes import ALIAS, MAPPING, Node

_GONE = object()
MERGED = object()  # the value of an entry that brings what others define (``<<``)


class Slot(NamedTuple):
    """An entry of a collection as it is to be: ``place`` is where it stands among the present ones, None for a new
    one."""

    place: int | None
    name: str
    value: Any


class Plan:
    """The changes from a document to an object. Nodes in ``rigid`` are to be written anew as a whole."""

    def __init__(self, layout: Layout, obj: Any, rigid: Iterable[Node] = ()) -> None:
        self._layout = layout
        self._rigid = {id(node) for node in rigid}
        self._has_aliases = bool(layout.composer.aliases)
        self._anchored: dict[int, Any] = {}
        assert layout.composer.root is not None
        if self._has_aliases:
            self._note(layout.composer.root, obj)

    def _note(self, node: Node, value: Any) -> None:
        """Remember what each anchored node becomes, in the order of the text."""
        if node.anchor is not None and node.kind != ALIAS:
            self._anchored[id(node)] = value
        if self.is_edited_within(node, value):
            entries = self._layout.entries(node)
            values = {slot.place: slot.value for slot in self.slots(node, value) if slot.place is not None}
            for place in sorted(values):
                if values[place] is not MERGED:
                    self._note(entries[place].value, values[place])

    def is_rigid(self, node: Node) -> bool:
        return id(node) in self._rigid

    def is_edited_within(self, node: Node, value: Any) -> bool:
        """Tell whether a collection stays one of its kind, so that its entries change one by one. An empty one does
        not: it takes the style of what is around it."""
        if not node.has_kind_of(value) or self.is_rigid(node) or not node.children:
            return False
        return self._layout.has_brackets(node) if node.is_flow else bool(value)

    def stands(self, node: Node, value: Any) -> bool:
        """Tell whether the text of a node means the value as it is, with all that its aliases will mean."""
        if self.is_rigid(node):
            return False
        if not self._has_aliases:
            return same(node.value, value)
        if node.kind == ALIAS:
            return same(self._meaning(node), value)
        return same(node.value, value) and all(self.stands(child, child.value) for child in node.children)

    def _meaning(self, alias: Node) -> Any:
        return self._anchored.get(id(alias.target), _GONE)

    # --- entries ---

    def slots(self, node: Node, value: Any) -> list[Slot]:
        """The entries of a collection as they are to be, in order."""
        if node.kind == MAPPING:
            return self._mapping_slots(node, value)
        matches = match([entry.value.value for entry in self._layout.entries(node)], value)
        return [Slot(place, "", item) for place, item in zip(matches, value, strict=True)]

    def _mapping_slots(self, node: Node, value: dict[str, Any]) -> list[Slot]:
        """New keys come after the nearest key that precedes them in the order in which kubepy writes mappings."""
        entries = self._layout.entries(node)
        brought = self._brought(entries)
        keeps_merges = brought is not None and self._can_keep(entries, brought, value)
        slots = [Slot(place, entry.name or "", MERGED if entry.name is None else value[entry.name])
                 for place, entry in enumerate(entries)
                 if (keeps_merges if entry.name is None else entry.name in value)]
        present = {slot.name for slot in slots if slot.value is not MERGED}
        if keeps_merges and brought:
            present |= {name for name, item in brought.items() if same(item, value[name])}
        if len(present) == len(value):
            return slots
        return self._with_new(node, slots, value, present)

    def _with_new(self, node: Node, slots: list[Slot], value: dict[str, Any], present: set[str]) -> list[Slot]:
        """Put keys that come before all others in front of the first of those, behind what follows its neighbour."""
        places = {slot.name: place for place, slot in enumerate(slots) if slot.value is not MERGED}
        last_merge = max((place for place, slot in enumerate(slots) if slot.value is MERGED), default=-1)
        names = in_order(value)
        first = next((places[name] for name in names if name in places), 0)
        new: dict[tuple[int, int], list[Slot]] = {}  # by their rank: the place of the slot before them
        rank = (first - 1, 1) if first or self._may_come_first(node, slots) else (0, 0)
        for name in names:
            if name in places:
                rank = places[name], 0
            elif name not in present:
                new.setdefault(max(rank, (last_merge, 0)), []).append(Slot(None, name, value[name]))
        old = {(place, -1): [slot] for place, slot in enumerate(slots)}
        return [slot for _, ranked in sorted((old | new).items(), key=lambda item: item[0]) for slot in ranked]

    def _may_come_first(self, node: Node, slots: list[Slot]) -> bool:
        """Tell whether a key may come before all others: not before one on the line of its ``-``, which would have
        to move to a line of its own."""
        if node.is_flow or not slots or slots[0].place != 0:
            return True
        start = self._layout.entries(node)[0].start
        return not self._layout.text[self._layout.line_start(start):start].strip()

    # --- merges ---

    def _brought(self, entries: list[Entry]) -> dict[str, Any] | None:
        """The entries that ``<<`` will bring; None: what it stands for is gone, or it is too complex."""
        brought: dict[str, Any] = {}
        for entry in entries:
            if entry.name is None:
                sources = entry.value.children if entry.value.kind not in (ALIAS, MAPPING) else [entry.value]
                values = [self._meaning(source) if source.kind == ALIAS else source.value for source in sources]
                if not all(isinstance(value, dict) for value in values):
                    return None
                brought.update(merged(values))
        return brought

    def _can_keep(self, entries: list[Entry], brought: dict[str, Any], value: dict[str, Any]) -> bool:
        """Tell whether a mapping can be what it is to be with the merges left in it."""
        if not brought.keys() <= value.keys():
            return False
        if not brought:
            return True
        last_merge = max(place for place, entry in enumerate(entries) if entry.name is None)
        hidden = {entry.name for entry in entries[:last_merge] if entry.name is not None} & brought.keys()
        return all(same(brought[name], value[name]) for name in hidden)
