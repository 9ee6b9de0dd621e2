"""Plan which entries of a document stay, change, go and come, before any text is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kubepy.storage.yaml.constructor import merged
from kubepy.storage.yaml.emitter import in_order
from kubepy.storage.yaml.roundtrip.layout import CollectionEntry, DocumentLayout
from kubepy.storage.yaml.roundtrip.matching import match, same
from kubepy.storage.yaml.roundtrip.nodes import ALIAS, MAPPING, YamlNode

_GONE = object()
MERGED = object()  # the value of an entry that brings the entries of other mappings (``<<``)


class Slot(NamedTuple):
    """An entry of a collection as it is to be: ``place`` is where it stands among the present ones,
    None for a new one."""

    place: int | None
    name: str
    value: Any


class EditPlan:
    """The changes from a document to an object. Nodes in ``rigid`` are to be written anew as a
    whole."""

    def __init__(self, layout: DocumentLayout, obj: Any, rigid: Iterable[YamlNode] = ()) -> None:
        self._layout = layout
        self._rigid = {id(node) for node in rigid}
        self._has_aliases = bool(layout.composer.aliases)
        self._anchored: dict[int, Any] = {}
        assert layout.composer.root is not None
        if self._has_aliases:
            self._note(layout.composer.root, obj)

    def _note(self, node: YamlNode, value: Any) -> None:
        """Remember what each anchored node becomes, in the order of the text."""
        if node.anchor is not None and node.kind != ALIAS:
            self._anchored[id(node)] = value
        if self.is_edited_within(node, value):
            entries = self._layout.entries(node)
            values = {
                slot.place: slot.value for slot in self.slots(node, value) if slot.place is not None
            }
            for place in sorted(values):
                if values[place] is not MERGED:
                    self._note(entries[place].value, values[place])

    def is_rigid(self, node: YamlNode) -> bool:
        """Return whether a node is to be written anew as a whole."""
        return id(node) in self._rigid

    def is_edited_within(self, node: YamlNode, value: Any) -> bool:
        """Return whether a collection stays one of its kind, so that its entries change one by one.
        An empty one does not: it takes the style of what is around it."""
        if not node.has_kind_of(value) or self.is_rigid(node) or not node.children:
            return False
        if node.is_flow:
            return self._layout.has_brackets(node)
        return bool(value)

    def stands(self, node: YamlNode, value: Any) -> bool:
        """Return whether the text of a node means the value as it is, with all that its aliases
        will mean."""
        if self.is_rigid(node):
            return False
        if not self._has_aliases:
            return same(node.value, value)
        if node.kind == ALIAS:
            return same(self._meaning(node), value)
        return same(node.value, value) and all(
            self.stands(child, child.value) for child in node.children
        )

    def _meaning(self, alias: YamlNode) -> Any:
        return self._anchored.get(id(alias.target), _GONE)

    # --- entries ---

    def slots(self, node: YamlNode, value: Any) -> list[Slot]:
        """Return the entries of a collection as they are to be, in order.

        New keys of a mapping come after the nearest key that precedes them in the order in which
        kubepy writes mappings.
        """
        entries = self._layout.entries(node)
        if node.kind != MAPPING:
            matches = match([entry.value.value for entry in entries], value)
            return [Slot(place, "", item) for place, item in zip(matches, value, strict=True)]
        brought = self._kept_merges(entries, value)
        slots = [
            Slot(place, entry.name or "", MERGED if entry.name is None else value[entry.name])
            for place, entry in enumerate(entries)
            if (brought is not None if entry.name is None else entry.name in value)
        ]
        present = {slot.name for slot in slots if slot.value is not MERGED}
        present |= {name for name, item in (brought or {}).items() if same(item, value[name])}
        if len(present) == len(value):
            return slots
        return self._with_new(node, slots, value, present)

    def _with_new(
        self, node: YamlNode, slots: list[Slot], value: dict[str, Any], present: set[str]
    ) -> list[Slot]:
        """Add the keys of ``value`` that are not present yet.

        Those that precede all others come in front of the first of the others, behind the keys
        after its neighbour.
        """
        places = {slot.name: place for place, slot in enumerate(slots) if slot.value is not MERGED}
        last_merge = max(
            (place for place, slot in enumerate(slots) if slot.value is MERGED), default=-1
        )
        names = in_order(value)
        first = next((places[name] for name in names if name in places), 0)
        # No key may come before one on the line of its ``-``, which would have to move to a line of
        # its own.
        may_come_first = True
        if not node.is_flow and slots and slots[0].place == 0:
            start = self._layout.entries(node)[0].start
            may_come_first = not self._layout.text[self._layout.line_start(start) : start].strip()
        new: dict[
            tuple[int, int], list[Slot]
        ] = {}  # by their rank: the place of the slot before them
        rank = (first - 1, 1) if first or may_come_first else (0, 0)
        for name in names:
            if name in places:
                rank = places[name], 0
            elif name not in present:
                new.setdefault(max(rank, (last_merge, 0)), []).append(Slot(None, name, value[name]))

        old = {(place, -1): [slot] for place, slot in enumerate(slots)}
        return [
            slot
            for _, ranked in sorted((old | new).items(), key=lambda item: item[0])
            for slot in ranked
        ]

    def _kept_merges(
        self, entries: list[CollectionEntry], value: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return the entries that ``<<`` will bring; None where the mapping cannot be ``value``
        with the merges left in it, a merged mapping is removed, or it is too complex."""
        brought: dict[str, Any] = {}
        last_merge = 0
        for place, entry in enumerate(entries):
            if entry.name is None:
                if entry.value.kind not in (ALIAS, MAPPING):
                    sources = entry.value.children
                else:
                    sources = [entry.value]
                values = [
                    self._meaning(source) if source.kind == ALIAS else source.value
                    for source in sources
                ]
                if not all(isinstance(mapping, dict) for mapping in values):
                    return None
                brought.update(merged(values))
                last_merge = place

        hidden = {
            entry.name for entry in entries[:last_merge] if entry.name is not None
        } & brought.keys()
        is_kept = brought.keys() <= value.keys() and all(
            same(brought[name], value[name]) for name in hidden
        )
        return brought if is_kept else None
