"""Build JSON values from the events of libyaml, as go-yaml v2's decoder and sigs.k8s.io/yaml do
together.

ruamel.yaml's C parser gives the events; scalars, keys, anchors and merges mean what go-yaml says
(``decode.go``). Importing this module imports ruamel.yaml, which takes longer than parsing does:
``loader`` imports it when needed.
"""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64decode
from collections.abc import Callable
from typing import Any

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

from kubepy.storage.errors import RepeatedKeyError, YamlError
from kubepy.storage.yaml.events import reader_of_events
from kubepy.storage.yaml.scalars import (
    INT64_MAX,
    INT64_MIN,
    Scalar,
    format_float,
    is_timestamp,
    resolve,
)

Resolver = Callable[[str], Scalar]  # gives the value of a plain scalar

_PREFIX = "tag:yaml.org,2002:"
_UNFINISHED = object()  # the value of an anchor while its own node is being read
# go-yaml takes nginx:1.27 between brackets for text, libyaml for a mistake: so such colons are
# hidden from it. To hide one that is within a word in quotes or a comment does no harm.
_INNER_COLON = re.compile(r"""(?<=[^\s"'\[\]{},]):(?=\S)""")
_PRIVATE_USE = range(0xE000, 0xF900)


def construct(
    text: str, first_line: int, resolver: Resolver = resolve, unique_keys: bool = False
) -> tuple[Any, int]:
    """Return the value of the first document of a text, and the line where it begins, counted on
    from ``first_line``.

    Raises YamlError, with ``unique_keys`` also for a mapping with equal keys. The text after the
    first document is ignored, as go-yaml ignores it.
    """
    return read_document(
        text, first_line, lambda text, hidden: DocumentReader(text, resolver, unique_keys, hidden)
    )


def read_document(
    text: str, first_line: int, reader: Callable[[str, str], DocumentReader], hidden: str = ""
) -> tuple[Any, int]:
    """Return the same as :func:`construct`, read by the DocumentReader that ``reader`` makes.

    ``reader`` takes a text and ``hidden``, the character that stands in it for colons that are no
    more than characters ("": none).
    """
    document = reader(text, hidden)
    try:
        value, line = document.read_or_drain()
    except RepeatedKeyError as error:
        raise YamlError(str(error), first_line + document.line) from None
    except _RefusedError as error:
        raise YamlError(
            f"error converting YAML to JSON: {error}", first_line + document.line
        ) from None
    except RecursionError:
        raise YamlError(
            "error converting YAML to JSON: yaml: exceeded max depth", first_line
        ) from None
    except MarkedYAMLError as error:
        if error.problem != "found unexpected ':'":
            raise _syntax_error(error, first_line) from None
        at = error.problem_mark.index
        hidden = hidden or next(chr(code) for code in _PRIVATE_USE if chr(code) not in text)
        return read_document(
            text[:at] + hidden + _INNER_COLON.sub(hidden, text[at + 1 :]),
            first_line,
            reader,
            hidden,
        )
    except ReaderError as error:
        line = first_line + text.count("\n", 0, error.position)
        raise YamlError(f"error converting YAML to JSON: yaml: {error.reason}", line) from None
    except UnicodeEncodeError:  # bytes that were no UTF-8, smuggled through as lone surrogates
        raise YamlError(
            "error converting YAML to JSON: yaml: invalid leading UTF-8 octet", first_line
        ) from None

    return value, first_line + line


def _syntax_error(error: MarkedYAMLError, first_line: int) -> YamlError:
    """Return the error with the line in its message as go-yaml gives it (``parser.fail``): one too
    few unless the scanner found it."""
    mark = error.problem_mark or error.context_mark
    message_line = error.problem_mark.line if error.problem_mark is not None else 0
    if message_line:
        message_line += isinstance(error, ScannerError)
    elif error.context_mark is not None:
        message_line = error.context_mark.line
    place = f"line {message_line}: " if message_line else ""
    problem = error.problem or "unknown problem parsing YAML content"
    line = first_line + (mark.line if mark is not None else 0)
    return YamlError(f"error converting YAML to JSON: yaml: {place}{problem}", line)


class _RefusedError(Exception):
    """A document that go-yaml or sigs.k8s.io/yaml refuses after parsing."""


class _UnknownAnchorError(_RefusedError):
    """An alias of an anchor that there is not, which go-yaml's parser itself refuses."""


class DocumentReader:
    """Reads one document from the events of libyaml.

    :ivar line: the line of the last scalar, key or alias that may be refused, counted from 0.
    """

    def __init__(self, text: str, resolver: Resolver, unique_keys: bool, hidden: str) -> None:
        get_event = reader_of_events(text)
        self.next_event: Callable[[], Any] = (
            (lambda: _with_colons(get_event(), hidden)) if hidden else get_event
        )
        self._resolve = resolver
        self._unique_keys = unique_keys
        self._anchors: dict[str, Any] = {}
        self._nodes = 0
        self._aliased = 0
        self.line = 0

    def read_or_drain(self) -> tuple[Any, int]:
        """Return the value and its line. A refusal counts only if the rest of the document can be
        parsed, as upstream parses first."""
        try:
            return self.read()
        except _UnknownAnchorError:
            raise
        except _RefusedError:
            while not isinstance(self.next_event(), DocumentEndEvent):
                pass
            raise

    def read(self) -> tuple[Any, int]:
        """Return the value of the document and the line where it begins, counted from 0."""
        self.next_event()  # the start of the stream
        if not isinstance(self.next_event(), DocumentStartEvent):
            return None, 0
        root = self.next_event()
        value = self.read_node(root)
        self.next_event()  # the end of the document: the text before it has to be sound
        return value, root.start_mark.line

    def read_node(self, event: Any) -> Any:
        """Return the value of the node that begins with an event."""
        self._nodes += 1
        kind = type(event)
        if kind is AliasEvent:
            self.line = event.start_mark.line
            if event.anchor not in self._anchors:
                raise _UnknownAnchorError(f"yaml: unknown anchor '{event.anchor}' referenced")
            value = self._anchors[event.anchor]
            if value is _UNFINISHED:
                raise _RefusedError(f"yaml: anchor '{event.anchor}' value contains itself")
            return self._copy(value)

        if event.anchor is None:
            return self._read_value(event, kind)
        self._anchors[event.anchor] = _UNFINISHED
        value = self._anchors[event.anchor] = self._read_value(event, kind)
        return value

    def _read_value(self, event: Any, kind: type) -> Any:
        if kind is ScalarEvent:
            return _json_value(self._scalar(event))
        if kind is MappingStartEvent:
            return self._read_mapping()
        items: list[Any] = []
        next_event = self.next_event
        read_node = self.read_node
        while type(item := next_event()) is not SequenceEndEvent:
            items.append(read_node(item))
        return items

    def _scalar(self, event: Any) -> Scalar:
        if event.implicit[0]:
            return self._resolve(event.value)
        if event.tag is None:
            return str(event.value)
        self.line = event.start_mark.line
        return _tagged_value(event.tag, event.value)

    def _read_mapping(self) -> dict[str, Any]:
        """Return a mapping: later keys replace earlier ones, and so do those that a merge (``<<``)
        brings."""
        obj: dict[str, Any] = {}
        own: set[str] = set()  # the keys that no merge brought; those of a merge may be overridden
        next_event = self.next_event
        read_node = self.read_node
        unique = self._unique_keys
        while type(event := next_event()) is not MappingEndEvent:
            if (
                type(event) is ScalarEvent
                and event.value == "<<"
                and (event.implicit[0] or event.tag == _PREFIX + "merge")
            ):
                obj.update(merged(read_node(next_event())))
                continue
            key = self.read_key(event)
            value_event = next_event()
            value = read_node(value_event)
            text = key if type(key) is str else key_text(key, value)
            if unique and text in own:
                self.refuse_repeated(text, event, value_event)
            own.add(text)
            obj[text] = value

        return obj

    def refuse_repeated(self, key: str, key_event: Any, value_event: Any) -> None:
        """Refuse a key that its mapping has already. Raises RepeatedKeyError."""
        self.line = key_event.start_mark.line
        raise RepeatedKeyError(key)

    def read_key(self, event: Any) -> Any:
        """Return the key of a mapping that begins with an event."""
        if type(event) is not ScalarEvent or event.anchor is not None:
            return self.read_node(event)
        self._nodes += 1
        return self._scalar(event)

    def _copy(self, value: Any) -> Any:
        """Copy the value of an anchor for an alias, so that no two places of an object share a
        part.

        Of a small document 99 % may come from aliases, of a huge one 10 % (``allowedAliasRatio``).
        """
        self._nodes += 1
        self._aliased += 1
        if self._aliased > 100 and self._nodes > 1000:
            low = 400_000
            high = 4_000_000
            allowed_ratio = 0.99 - 0.89 * (min(max(self._nodes, low), high) - low) / (high - low)
            if self._aliased / self._nodes > allowed_ratio:
                raise _RefusedError("yaml: document contains excessive aliasing")

        if isinstance(value, dict):
            self._nodes += len(value)  # upstream counts keys too
            self._aliased += len(value)
            return {key: self._copy(item) for key, item in value.items()}

        if isinstance(value, list):
            return [self._copy(item) for item in value]
        return value


class RepeatedKeysReader(DocumentReader):
    """Notes the keys that a mapping has more than once instead of refusing them.

    :ivar repeated: the keys, each with the line of its value, counted from 1.
    """

    def __init__(self, text: str, hidden: str) -> None:
        super().__init__(text, resolve, True, hidden)
        self.repeated: list[tuple[int, str]] = []

    def refuse_repeated(self, key: str, key_event: Any, value_event: Any) -> None:
        self.repeated.append((value_event.start_mark.line + 1, key))


def repeated_keys(text: str) -> list[tuple[int, str]]:
    """Return the keys that a mapping in a YAML document has more than once, each with the line of
    its value. Raises YamlError."""
    readers: list[RepeatedKeysReader] = []

    def new_reader(text: str, hidden: str) -> RepeatedKeysReader:
        readers.append(RepeatedKeysReader(text, hidden))
        return readers[-1]

    read_document(text, 1, new_reader)
    return readers[-1].repeated


def _with_colons(event: Any, hidden: str) -> Any:
    """Put the hidden colons back into a scalar."""
    if type(event) is ScalarEvent:
        event.value = event.value.replace(hidden, ":")
        event.tag = event.tag and event.tag.replace(hidden, ":")
    return event


def merged(value: Any) -> dict[str, Any]:
    """Return the entries that a merge brings; of several mappings the first counts."""
    sources = value[::-1] if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _RefusedError("yaml: map merge requires map or sequence of maps as the value")
    return {key: item for source in sources for key, item in source.items()}


def _json_value(value: Scalar) -> Scalar:
    """Return a number as it comes out of JSON: without a fraction an integer, past int64 a
    float."""
    if isinstance(value, float):
        if not math.isfinite(value):
            word = "+Inf" if value > 0 else "-Inf"
            if math.isnan(value):
                word = "NaN"
            raise _RefusedError(f"json: unsupported value: {word}")
        if value.is_integer() and abs(value) < 1e21:
            value = int(value)
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        return float(value)
    return value


_TAGS = {bool: "bool", int: "int", float: "float", type(None): "null", str: "str"}


def _tagged_value(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit tag; one that is not YAML's own makes it a
    string (``resolve``)."""
    name = tag.removeprefix(_PREFIX)
    if name == "binary":
        try:
            return b64decode("".join(text.split()), validate=True).decode(errors="replace")
        except ValueError:
            raise _RefusedError("yaml: !!binary value contains invalid base64 data") from None

    if name not in ("bool", "int", "float", "null", "timestamp") or not tag.startswith(_PREFIX):
        return text
    value = resolve(text)
    resolved_name = "timestamp" if is_timestamp(text) else _TAGS[type(value)]
    if name == "float" and resolved_name == "int":
        return float(value or 0)
    if name != resolved_name:
        raise _RefusedError(f"yaml: cannot decode !!{resolved_name} `{text}` as a !!{name}")
    return value


def key_text(key: Any, value: Any) -> str:
    """Return the string that sigs.k8s.io/yaml makes of a key that is none."""
    if isinstance(key, dict | list):
        raise _RefusedError(f"yaml: invalid map key: {_go_syntax(key)}")
    if key is None:
        raise _RefusedError(
            f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_go_syntax(value)}"
        )

    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int) and key > INT64_MAX:
        raise _RefusedError(
            f"unsupported map key of type: uint64, key: {key:#x}, value: {_go_syntax(value)}"
        )

    if not isinstance(key, float):
        return str(key)
    # ``strconv.FormatFloat(key, 'g', -1, 32)``: the shortest digits that a 32-bit float tells apart
    if not abs(key) <= 3.4028235677973366e38:
        if math.isnan(key):
            return ".nan"
        return ".inf" if key > 0 else "-.inf"

    single = struct.pack("f", key)
    texts = (f"{key:.{digits}e}" for digits in range(17))
    return format_float(
        next(float(text) for text in texts if struct.pack("f", float(text)) == single)
    )


def _go_syntax(value: Any) -> str:
    """Return a value as Go's ``%#v`` prints it."""
    if isinstance(value, dict):
        entries = ", ".join(
            f"{_go_syntax(key)}:{_go_interface(item)}" for key, item in sorted(value.items())
        )
        return f"map[interface {{}}]interface {{}}{{{entries}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_interface, value))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "<nil>" if value is None else json.dumps(value)


def _go_interface(value: Any) -> str:
    if value is None:
        return "interface {}(nil)"
    return _go_syntax(value)
