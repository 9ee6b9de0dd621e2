"""Compose a document into nodes that know their span in the text and their value.

Spans are half open ranges of characters. libyaml's marks are exact for scalars and flow
collections; a block collection ends with its last entry (``layout``).
"""

from __future__ import annotations

from typing import Any

from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
)

from kubepy.storage.yaml.constructor import DocumentReader, key_text, read_document
from kubepy.storage.yaml.scalars import resolve

SCALAR = "scalar"
MAPPING = "mapping"
SEQUENCE = "sequence"
ALIAS = "alias"


class YamlNode:
    """One key or value of a document.

    :ivar value: the value to a reader of manifests.
    :ivar children: keys and values in turn, or items.
    :ivar merge: the span of the ``<<`` before a value that is merged into its mapping, None for
        others.
    :ivar target: the node that an alias stands for.
    """

    def __init__(self, event: Any) -> None:
        kind = type(event)
        self.kind = _KINDS.get(kind, SEQUENCE)
        self.start: int = event.start_mark.index
        self.end: int = event.end_mark.index
        self.anchor: str | None = event.anchor
        self.has_tag = kind is not AliasEvent and event.tag is not None
        self.style: str = (event.style or "") if kind is ScalarEvent else ""
        self.is_flow = bool(getattr(event, "flow_style", False))
        self.value: Any = None
        self.children: list[YamlNode] = []
        self.is_key = False
        self.merge: tuple[int, int] | None = None
        self.target: YamlNode | None = None

    @property
    def is_collection(self) -> bool:
        return self.kind in (MAPPING, SEQUENCE)

    @property
    def is_block(self) -> bool:
        """Return whether this is a collection in block style."""
        return self.is_collection and not self.is_flow

    def has_kind_of(self, value: Any) -> bool:
        """Return whether a value is a collection of this node's kind."""
        if self.is_collection:
            return isinstance(value, dict if self.kind == MAPPING else list)
        return False

    def pairs(self) -> list[tuple[YamlNode | None, YamlNode]]:
        """Return keys with their values; the key of an item and of a merged value is None."""
        key: YamlNode | None = None
        pairs: list[tuple[YamlNode | None, YamlNode]] = []
        for child in self.children:
            if child.is_key:
                key = child
            else:
                pairs.append((key, child))
                key = None
        return pairs


_KINDS = {ScalarEvent: SCALAR, MappingStartEvent: MAPPING, AliasEvent: ALIAS}


class Composer(DocumentReader):
    """Reads a document as DocumentReader does, and keeps its nodes.

    :ivar start: the start of the content: after the line of the ``---``.
    :ivar end: the position of the ``...``, None without one.
    """

    def __init__(self, text: str, hidden: str) -> None:
        super().__init__(text, resolve, True, hidden)
        self._read_event = self.next_event
        self.next_event = self._remember_event
        self._event: Any = None
        self._before: Any = None
        self._parent: YamlNode | None = None
        self._reads_key = False
        self._anchored: dict[str, YamlNode] = {}
        self.root: YamlNode | None = None
        self.scalars: list[YamlNode] = []
        self.aliases: list[YamlNode] = []
        self.start = 0
        self.end: int | None = None

    def _remember_event(self) -> Any:
        self._before, self._event = self._event, self._read_event()
        if type(self._event) is DocumentStartEvent and self._event.explicit:
            self.start = self._event.end_mark.index
        elif type(self._event) is DocumentEndEvent and self._event.explicit:
            self.end = self._event.start_mark.index
        return self._event

    def read_node(self, event: Any) -> Any:
        """Return the value of the node that begins with an event, and keep the node."""
        node = YamlNode(event)
        parent = self._parent
        if parent is None:
            self.root = node
        else:
            is_after_key = bool(parent.children) and parent.children[-1].is_key
            if (
                parent.kind == MAPPING and not is_after_key and not self._reads_key
            ):  # after a ``<<``, which is no node
                node.merge = self._before.start_mark.index, self._before.end_mark.index
            parent.children.append(node)

        if node.kind == ALIAS:
            node.target = self._anchored.get(node.anchor or "")
            self.aliases.append(node)
        elif node.anchor is not None:
            self._anchored[node.anchor] = node

        if node.kind == SCALAR:
            self.scalars.append(node)
        self._parent = node
        node.value = super().read_node(event)
        self._parent = parent
        node.end = self._event.end_mark.index
        return node.value

    def read_key(self, event: Any) -> Any:
        """Return the key that begins with an event, and keep its node."""
        parent = self._parent
        assert parent is not None
        at = len(parent.children)
        self._reads_key = True
        value = super().read_key(event)
        self._reads_key = False
        if len(parent.children) == at:  # a plain key, which was read without ``read_node``
            scalar = YamlNode(event)
            parent.children.append(scalar)
            self.scalars.append(scalar)
        key = parent.children[at]
        key.is_key = True
        key.value = value if isinstance(value, str) else key_text(value, None)
        return value


def compose(text: str) -> Composer:
    """Compose the nodes of the first document of a text. Raises YamlError."""
    composers: list[Composer] = []

    def make(readable: str, hidden: str) -> Composer:
        composers.append(Composer(readable, hidden))
        return composers[-1]

    read_document(text, 1, make)
    return composers[-1]
