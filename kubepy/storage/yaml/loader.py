"""Read manifests as kubectl does (apimachinery ``util/yaml``): a stream of JSON objects, or YAML
documents.

Documents are cut at lines that begin with ``---`` before any is parsed, so the lines in a message
count from the start of their document, as upstream's do; :attr:`YamlError.line` counts from the
start of the text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.lazy import lazy_imports
from kubepy.storage.errors import NumberRangeError, RepeatedKeyError, YamlError
from kubepy.storage.yaml.scalars import INT64_MAX, INT64_MIN, MAX_DIGITS, resolve, resolve_v3

with lazy_imports():
    from kubepy.storage.yaml import (
        constructor,
    )  # imports ruamel.yaml, which takes longer than reading JSON

TOO_DEEP = "exceeded max depth"


class Document(NamedTuple):
    """One document: a JSON value (an object in a sound manifest), and the line of the text where it
    begins."""

    object: Any
    line: int


class DocumentText(NamedTuple):
    """The text of a document, and the line of the whole text where it begins."""

    text: str
    line: int


def load_all(
    text: str, *, old_booleans: bool = True, unique_keys: bool = False, blank: str | None = None
) -> list[Document]:
    """Return the documents of a manifest without the empty ones. Raises YamlError.

    Without ``old_booleans`` ``yes``, ``no``, ``on``, ``off``, ``y`` and ``n`` are text, as they are
    to kustomize. Of equal keys the last counts; with ``unique_keys`` they are an error. ``blank``
    takes the place of a null that is not written out (``key:``).
    """
    return list(load_each(text, old_booleans=old_booleans, unique_keys=unique_keys, blank=blank))


def load_each(
    text: str, *, old_booleans: bool = True, unique_keys: bool = False, blank: str | None = None
) -> Iterator[Document]:
    """Yield the documents one by one: those before one that cannot be read are given before
    YamlError is raised.

    A text that begins with a brace is read as JSON first, and as YAML from where that fails
    (``YAMLOrJSONDecoder``); if it does not begin with YAML there either, the error is the one of
    JSON.
    """
    rest = DocumentText(text, 1)
    if not text.lstrip().startswith("{"):
        yield from _load_yaml(rest, old_booleans, unique_keys, blank)
        return
    failure: YamlError | None = None
    for document in _load_json(text, unique_keys):
        if isinstance(document, Document):
            yield document
        else:
            rest, failure = document

    if not failure:
        return
    documents = _load_yaml(rest, old_booleans, unique_keys, blank)
    try:
        first = next(documents, None)
    except YamlError:
        raise failure from None

    if first:
        yield first
        yield from documents


def read_json(text: str) -> Any:
    """Return the one JSON value that a text is. Raises YamlError in the words of Go's
    ``json.Unmarshal``."""
    decoder = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_no_constant)
    try:
        value, end = decoder.raw_decode(text, _blank_end(text, 0))
        if _MAY_HAVE_SURROGATES.search(text):
            value = _sound(value)
    except NumberRangeError as error:
        raise NumberRangeError(error.digits, _line_of(text, error.digits, 0)) from None
    except RecursionError:
        raise YamlError(TOO_DEEP, 1) from None
    except json.JSONDecodeError as error:
        failure = _syntax_error(error)
        message = re.sub(r"^json: offset \d+: ", "", failure.message)
        raise YamlError(
            message.replace("unexpected EOF", "unexpected end of JSON input"), failure.line
        ) from None

    if rest := text[end:].lstrip():
        raise YamlError(
            f"invalid character {_go_char(rest[0])} after top-level value",
            text.count("\n", 0, end) + 1,
        )

    return value


class _Pairs(list[tuple[str, Any]]):
    """A map of a JSON text, as its keys and values."""


def repeats_keys(text: str) -> bool:
    """Return whether a map of a JSON text has the same key twice."""
    is_repeating = False

    def note(pairs: list[tuple[str, Any]]) -> None:
        nonlocal is_repeating
        is_repeating = is_repeating or len({key for key, _ in pairs}) < len(pairs)

    json.loads(text, object_pairs_hook=note, parse_int=str)
    return is_repeating


def key_paths(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the path of each key of a JSON text in its order, and whether its map has had the same
    key before."""
    return _key_paths(json.loads(text, object_pairs_hook=_Pairs, parse_int=str), "")


def _key_paths(value: Any, path: str) -> Iterator[tuple[str, bool]]:
    if isinstance(value, _Pairs):
        keys: set[str] = set()
        for key, inner in value:
            place = f"{path}.{key}" if path else key
            yield place, key in keys
            keys.add(key)
            yield from _key_paths(inner, place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _key_paths(item, f"{path}[{index}]")


_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:\s"]+)')


def indented_json(text: str) -> str:
    """Return the JSON value that a text is, a line for each of its parts, as ``json.Indent`` writes
    it: order, numbers and escapes stay as they are. Raises YamlError as ``read_json``."""
    read_json(text)
    tokens = _TOKEN.findall(text)
    lines = [""]
    depth = 0
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else ""
        if token in "]}":
            depth -= 1
            if before not in "[{":
                lines.append("  " * depth)
        elif before and before in "[{,":
            lines.append("  " * depth)
        lines[-1] += ": " if token == ":" else token
        depth += token in "[{"

    return "\n".join(lines)


# --- YAML -----------------------------------------------------------------------------------------


def _load_yaml(
    stream: DocumentText, old_booleans: bool, unique_keys: bool, blank: str | None
) -> Iterator[Document]:
    resolver = resolve if old_booleans else resolve_v3
    if blank is not None:
        resolved = resolver
        resolver = lambda text: resolved(text) if text else blank  # noqa: E731
    for document in split(stream):
        value, line = constructor.construct(document.text, document.line, resolver, unique_keys)
        if value is not None and (blank is None or value != blank):
            yield Document(value, line)


def split(stream: DocumentText) -> Iterator[DocumentText]:
    """Cut at separator lines (``YAMLReader``). The first may begin with its separator; the others
    are without."""
    if stream.text and "---" not in stream.text and "\r" not in stream.text:
        yield stream._replace(text=stream.text.removesuffix("\n") + "\n")
        return
    lines: list[str] = []
    start = stream.line
    text_lines = stream.text.removesuffix("\n").split("\n") if stream.text else []
    for number, line in enumerate(text_lines, stream.line):
        line = line.removesuffix("\r")
        if line.startswith("---"):
            rest = line[3:].strip()
            if rest and not rest.startswith("#"):
                raise YamlError(f"invalid Yaml document separator: {rest}", number)
            if lines:
                yield DocumentText("\n".join(lines) + "\n", start)
                lines = []
                start = number + 1
                continue
        lines.append(line)

    if lines:
        yield DocumentText("\n".join(lines) + "\n", start)


# --- JSON -----------------------------------------------------------------------------------------


def _load_json(text: str, unique_keys: bool) -> Iterator[Document | tuple[DocumentText, YamlError]]:
    """Yield the JSON objects at the start of a text; then, if there is more, the text that is to be
    read as YAML and the reason why it is no JSON.

    After two objects the text counts as JSON, and what follows has to be JSON too. Raises
    YamlError.
    """
    decoder = json.JSONDecoder(
        parse_int=_integer,
        parse_float=_float,
        parse_constant=_no_constant,
        object_pairs_hook=_unique_keys if unique_keys else None,
    )
    position = _blank_end(text, 0)
    count = 0
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            value, end = decoder.raw_decode(text, position)
            value = _sound(value)
        except NumberRangeError as error:
            raise NumberRangeError(error.digits, _line_of(text, error.digits, position)) from None
        except RecursionError:
            raise YamlError(TOO_DEEP, line) from None
        except json.JSONDecodeError as error:
            failure = _syntax_error(error)
            if count > 1:
                raise failure from None
            yield DocumentText(text[position:], line), failure
            return
        except RepeatedKeyError as error:
            raise YamlError(str(error), line) from None
        if value is not None:
            yield Document(value, line)
        position = _blank_end(text, end)
        count = count + 1


def _line_of(text: str, digits: str, start: int) -> int:
    """Return the line of a number in the value that starts at a position."""
    return text.count("\n", 0, max(text.find(digits, start), start)) + 1


def _blank_end(text: str, start: int) -> int:
    return len(text) - len(text[start:].lstrip())


def _integer(digits: str) -> int | float:
    """Return an integer, or a float if it does not fit into int64 (apimachinery's ``util/json``).

    Raises NumberRangeError.
    """
    if len(digits) > MAX_DIGITS:
        return _float(digits)
    value = int(digits)
    if INT64_MIN <= value <= INT64_MAX:
        return value
    return float(value)


def _float(digits: str) -> float:
    """Return the number as a float. Raises NumberRangeError if it is too large for one."""
    value = float(digits)
    if math.isinf(value):
        raise NumberRangeError(digits)
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj: dict[str, Any] = {}
    for key, value in pairs:
        if key in obj:
            raise RepeatedKeyError(key)
        obj[key] = value
    return obj


def _no_constant(name: str) -> None:
    raise json.JSONDecodeError("Expecting value", name, 0)


_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_HAVE_SURROGATES = re.compile(r"\\u[dD]|[\ud800-\udfff]")  # in a text of JSON


def _sound(value: Any) -> Any:
    """Replace lone surrogates, as Go does when it reads: they cannot be written to a file."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_sound(key): _sound(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_sound(item) for item in value]
    return value


# Python's messages in the words of Go's scanner (``encoding/json/scanner.go``).
_LOOKING_FOR = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key "
    "string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Invalid control character at": "in string literal",
    "Invalid control character": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}


def _syntax_error(error: json.JSONDecodeError) -> YamlError:
    at = error.pos
    while at < len(error.doc) and error.doc[at] in " \t\r\n":
        at += 1
    if at >= len(error.doc) or error.msg.startswith("Unterminated string"):
        return YamlError("unexpected EOF", error.lineno)
    reason = _LOOKING_FOR.get(error.msg, "looking for beginning of value")
    word = next((word for word in ("true", "false", "null") if error.doc[at] == word[0]), None)
    if error.msg == "Expecting value" and word is not None:  # where a literal goes on otherwise
        wrong = next(
            (
                index
                for index, char in enumerate(word)
                if error.doc[at + index : at + index + 1] != char
            ),
            0,
        )
        at = at + wrong
        reason = f"in literal {word} (expecting {_go_char(word[wrong])})"

    if at >= len(error.doc):
        return YamlError("unexpected EOF", error.lineno)
    if error.msg == "Expecting ',' delimiter" and _in_array(error.doc, at):
        reason = "after array element"
    offset = len(error.doc[:at].encode()) + 1
    return YamlError(
        f"json: offset {offset}: invalid character {_go_char(error.doc[at])} {reason}", error.lineno
    )


def _go_char(char: str) -> str:
    """Return a character as ``quoteChar`` of Go's scanner does."""
    named = {"'": "\\'", '"': '"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
    return f"'{named.get(char, char)}'"


def _in_array(text: str, at: int) -> bool:
    """Return whether the innermost bracket that is open before a position is a list's."""
    without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', "", text[:at])
    open_brackets: list[str] = []
    for char in re.findall(r"[][{}]", without_strings):
        if char in "[{":
            open_brackets.append(char)
        elif open_brackets:
            open_brackets.pop()
    return bool(open_brackets) and open_brackets[-1] == "["
