"""Builds JSON values from the events of libyaml, as go-yaml v2's decoder and sigs.k8s.io/yaml do together.

ruamel.yaml's C parser gives the events; what scalars, keys, anchors and merges mean is go-yaml's (``decode.go``).
Importing this module imports ruamel.yaml, which takes longer than parsing does: ``loader`` imports it when needed.
"""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import ScannerError

from kubepy.storage.yaml.errors import RepeatedKeyError, YamlError
from kubepy.storage.yaml.scalars import INT64_MAX, INT64_MIN, Scalar, format_float, is_timestamp, resolve

# What a plain scalar means.
Resolver = Callable[[str], Scalar]

_PREFIX = "tag:yaml.org,2002:"
_UNFINISHED = object()  # what an anchor stands for while its own value is being read


def construct(text: str, first_line: int, resolver: Resolver = resolve, unique_keys: bool = False) -> tuple[Any, int]:
    """The value of the first document of a text, and the line where it begins, counted on from ``first_line``.

    Raises YamlError, with ``unique_keys`` also for a mapping with equal keys. What follows the first document is not
    looked at, as go-yaml does not either.
    """
    return read_document(text, first_line, lambda text, hidden: DocumentReader(text, resolver, unique_keys, hidden))


def read_document(text: str, first_line: int, reader: Callable[[str, str], DocumentReader], hidden: str = ""
                  ) -> tuple[Any, int]:
    """The same, read by the DocumentReader that ``reader`` makes of a text and of ``hidden``: the character that stands
    in it for colons that are no more than characters ("": none)."""
    document = reader(text, hidden)
    try:
        value, line = document.read_or_drain()
    except RepeatedKeyError as error:
        raise YamlError(str(error), first_line + document.line) from None
    except _Refused as error:
        raise YamlError(f"error converting YAML to JSON: {error}", first_line + document.line) from None
    except RecursionError:
        raise YamlError("error converting YAML to JSON: yaml: exceeded max depth", first_line) from None
    except MarkedYAMLError as error:
        if error.problem == "found unexpected ':'":
            hidden = hidden or _unused(text)
            return read_document(_hide_colons(text, error.problem_mark.index, hidden), first_line, reader, hidden)
        raise YamlError(f"error converting YAML to JSON: yaml: {_go_words(error)}", _line(error, first_line)) from None
    except ReaderError as error:
        line = first_line + text.count("\n", 0, error.position)
        raise YamlError(f"error converting YAML to JSON: yaml: {error.reason}", line) from None
    except UnicodeEncodeError:  # bytes that were no UTF-8, smuggled through as lone surrogates
        raise YamlError("error converting YAML to JSON: yaml: invalid leading UTF-8 octet", first_line) from None
    return value, first_line + line


def _line(error: MarkedYAMLError, first_line: int) -> int:
    mark = error.problem_mark or error.context_mark
    return first_line + (mark.line if mark is not None else 0)


def _go_words(error: MarkedYAMLError) -> str:
    """The problem with its line as go-yaml gives it (``parser.fail``): one too few unless the scanner found it."""
    line = error.problem_mark.line if error.problem_mark is not None else 0
    if line:
        line += isinstance(error, ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return f"{where}{error.problem or 'unknown problem parsing YAML content'}"


class _Refused(Exception):
    """What go-yaml or sigs.k8s.io/yaml refuses after parsing."""


class _UnknownAnchor(_Refused):
    pass


# go-yaml takes nginx:1.27 between brackets for text, libyaml for a mistake: so such colons are hidden from it. To hide
# one that is within a word in quotes or a comment does no harm.
_INNER_COLON = re.compile(r"""(?<=[^\s"'\[\]{},]):(?=\S)""")
_PRIVATE_USE = range(0xE000, 0xF900)


def _unused(text: str) -> str:
    return next(chr(code) for code in _PRIVATE_USE if chr(code) not in text)


def _hide_colons(text: str, at: int, hidden: str) -> str:
    return text[:at] + hidden + _INNER_COLON.sub(hidden, text[at + 1:])


def _restored(event: Any, hidden: str) -> Any:
    if type(event) is ScalarEvent:
        event.value = event.value.replace(hidden, ":")
        event.tag = event.tag and event.tag.replace(hidden, ":")
    return event


class DocumentReader:
    """Reads one document from the events of libyaml."""

    def __init__(self, text: str, resolver: Resolver, unique_keys: bool, hidden: str) -> None:
        get_event = CParser(text).get_event
        self._next = (lambda: _restored(get_event(), hidden)) if hidden else get_event
        self._resolve = resolver
        self._unique_keys = unique_keys
        self._anchors: dict[str, Any] = {}
        self._nodes = 0
        self._aliased = 0
        self.line = 0

    def read_or_drain(self) -> tuple[Any, int]:
        """Read; what is refused counts only if the rest of the document can be parsed, as upstream parses first."""
        try:
            return self.read()
        except _UnknownAnchor:  # found by upstream's parser
            raise
        except _Refused:
            while not isinstance(self._next(), DocumentEndEvent):
                pass
            raise

    def read(self) -> tuple[Any, int]:
        self._next()  # the start of the stream
        if not isinstance(self._next(), DocumentStartEvent):
            return None, 0
        root = self._next()
        value = self._node(root)
        self._next()  # the end of the document: what stands before it has to be sound
        return value, root.start_mark.line

    def _node(self, event: Any) -> Any:
        self._nodes += 1
        kind = type(event)
        if kind is AliasEvent:
            return self._alias(event)
        if event.anchor is None:
            return self._value(event, kind)
        self._anchors[event.anchor] = _UNFINISHED
        value = self._anchors[event.anchor] = self._value(event, kind)
        return value

    def _value(self, event: Any, kind: type) -> Any:
        if kind is ScalarEvent:
            return _json_value(self._scalar(event))
        return self._mapping() if kind is MappingStartEvent else self._sequence()

    def _scalar(self, event: Any) -> Scalar:
        if event.implicit[0]:
            return self._resolve(event.value)
        if event.tag is None:
            return str(event.value)
        self.line = event.start_mark.line
        return _tagged(event.tag, event.value)

    def _sequence(self) -> list[Any]:
        items: list[Any] = []
        following, node = self._next, self._node
        while type(event := following()) is not SequenceEndEvent:
            items.append(node(event))
        return items

    def _mapping(self) -> dict[str, Any]:
        """Later keys replace earlier ones, and so do those that a merge (``<<``) brings."""
        obj: dict[str, Any] = {}
        own: set[str] = set()  # not what a merge brings: that may be overridden
        following, node, unique = self._next, self._node, self._unique_keys
        while type(event := following()) is not MappingEndEvent:
            if type(event) is ScalarEvent and event.value == "<<" and _is_merge(event):
                obj.update(merged(node(following())))
                continue
            key, value = self._key(event), node(following())
            text = key if type(key) is str else key_text(key, value)
            if unique and text in own:
                self.line = event.start_mark.line
                raise RepeatedKeyError(text)
            own.add(text)
            obj[text] = value
        return obj

    def _key(self, event: Any) -> Any:
        if type(event) is not ScalarEvent or event.anchor is not None:
            return self._node(event)
        self._nodes += 1
        return self._scalar(event)

    def _alias(self, event: Any) -> Any:
        self.line = event.start_mark.line
        if event.anchor not in self._anchors:
            raise _UnknownAnchor(f"yaml: unknown anchor '{event.anchor}' referenced")
        value = self._anchors[event.anchor]
        if value is _UNFINISHED:
            raise _Refused(f"yaml: anchor '{event.anchor}' value contains itself")
        return self._copy(value)

    def _copy(self, value: Any) -> Any:
        """What an alias stands for is decoded anew, so that no two places of an object share a part."""
        self._nodes += 1
        self._aliased += 1
        if self._aliased > 100 and self._nodes > 1000 and self._aliased / self._nodes > _allowed_ratio(self._nodes):
            raise _Refused("yaml: document contains excessive aliasing")
        if isinstance(value, dict):
            self._nodes += len(value)  # upstream counts keys too
            self._aliased += len(value)
            return {key: self._copy(item) for key, item in value.items()}
        return [self._copy(item) for item in value] if isinstance(value, list) else value


def _allowed_ratio(nodes: int) -> float:
    """How much of a document may come from aliases: 99 % of a small one, 10 % of a huge one (``allowedAliasRatio``)."""
    low, high = 400_000, 4_000_000
    return 0.99 - 0.89 * (min(max(nodes, low), high) - low) / (high - low)


def _is_merge(event: Any) -> bool:
    return bool(event.implicit[0]) or event.tag == _PREFIX + "merge"


def merged(value: Any) -> dict[str, Any]:
    """The entries that a merge brings; of several mappings the first counts."""
    sources = value[::-1] if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _Refused("yaml: map merge requires map or sequence of maps as the value")
    return {key: item for source in sources for key, item in source.items()}


def _json_value(value: Scalar) -> Scalar:
    """A number as it comes out of JSON: without a fraction an integer, past int64 a float."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _Refused(f"json: unsupported value: {'NaN' if value != value else '+Inf' if value > 0 else '-Inf'}")
        if value.is_integer() and abs(value) < 1e21:
            value = int(value)
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        return float(value)
    return value


def _tagged(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit tag; one that is not YAML's own makes it a string (``resolve``)."""
    name = tag.removeprefix(_PREFIX)
    if name == "binary":
        return _binary(text)
    if name not in ("bool", "int", "float", "null", "timestamp") or not tag.startswith(_PREFIX):
        return text
    value = resolve(text)
    found = "timestamp" if is_timestamp(text) else _TAGS[type(value)]
    if name == "float" and found == "int":
        return float(value or 0)
    if name != found:
        raise _Refused(f"yaml: cannot decode !!{found} `{text}` as a !!{name}")
    return value


_TAGS = {bool: "bool", int: "int", float: "float", type(None): "null", str: "str"}


def _binary(text: str) -> str:
    try:
        return b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except ValueError:
        raise _Refused("yaml: !!binary value contains invalid base64 data") from None


def key_text(key: Any, value: Any) -> str:
    """A key that is no string, as sigs.k8s.io/yaml makes one of it."""
    if isinstance(key, dict | list):
        raise _Refused(f"yaml: invalid map key: {_go_syntax(key)}")
    if key is None:
        shown = _go_syntax(value)
        raise _Refused(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int) and key > INT64_MAX:
        raise _Refused(f"unsupported map key of type: uint64, key: {key:#x}, value: {_go_syntax(value)}")
    return _float32_text(key) if isinstance(key, float) else str(key)


def _float32_text(value: float) -> str:
    """``strconv.FormatFloat(value, 'g', -1, 32)``: the shortest digits that a 32-bit float tells apart."""
    if not abs(value) <= 3.4028235677973366e38:
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    single = struct.pack("f", value)
    texts = (f"{value:.{digits}e}" for digits in range(17))
    return format_float(next(float(text) for text in texts if struct.pack("f", float(text)) == single))


def _go_syntax(value: Any) -> str:
    """A value as Go's ``%#v`` prints it."""
    if isinstance(value, dict):
        entries = ", ".join(f"{_go_syntax(key)}:{_go_interface(item)}" for key, item in sorted(value.items()))
        return f"map[interface {{}}]interface {{}}{{{entries}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_interface, value))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "<nil>" if value is None else json.dumps(value)


def _go_interface(value: Any) -> str:
    return "interface {}(nil)" if value is None else _go_syntax(value)
