"""An object as the bytes of a file, and back; and as the JSON of a row. A file holds neither resourceVersion nor
managedFields."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from kubepy.quoting import quote
from kubepy.storage.folder.database import DamagedError
from kubepy.storage.folder.paths import path_of
from kubepy.storage.model import Key, Object

MAX_DEPTH = 200
MAX_INTEGER = 2**63
MAX_DECODED = 50_000  # objects kept in memory
MAX_VALUES = 500_000  # an alias bomb is small as a file and has no end as an object
_WHOLE_FLOAT = re.compile(r"[0-9](?:\.0|e\+[0-9]+)[],}]")  # something in a JSON text that may be one
_PLACED = re.compile(r"^(?:error converting YAML to JSON: )?yaml: (?:line \d+: )?")  # the problem has its line
# Nested conflicts (a merge of merges, a file renamed on both sides) have longer markers.
_MERGE_MARKER = re.compile(rb"^(?:<{7,}|>{7,}|\|{7,}) ", re.MULTILINE)


class ContentError(Exception):
    """The content of a file cannot be an object: the line (0: the whole file), why, and whether the object that the
    file had before counts as it last was."""

    def __init__(self, line: int, why: str, *, keeps_object: bool = False) -> None:
        super().__init__(why)
        self.line = line
        self.why = why
        self.keeps_object = keeps_object


class Content(NamedTuple):
    """The one document of a file, and the line it starts at."""

    object: Object
    line: int


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def to_json(obj: Object) -> str:
    """An object as a row holds it: everything but the resourceVersion, which is the row's revision.

    Numbers without a fraction become integers in the object too, as they come back from a file. Raises ValueError for
    what JSON or a file cannot hold.
    """
    metadata = obj["metadata"]
    version = metadata.pop("resourceVersion", None)
    try:
        text = _encoder.encode(obj)
        if _WHOLE_FLOAT.search(text):
            _make_integers(obj)
            text = _encoder.encode(obj)
    except TypeError as error:
        raise ValueError(str(error)) from error
    finally:
        if version is not None:
            metadata["resourceVersion"] = version
    return text


def _make_integers(value: Any) -> None:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(entries):
        if isinstance(item, dict | list):
            _make_integers(item)
        elif isinstance(item, float) and item.is_integer() and -MAX_INTEGER <= item < MAX_INTEGER:
            value[key] = int(item)


def from_json(text: str, revision: int) -> Object:
    """The object of a row. Raises DamagedError."""
    try:
        obj: Object = json.loads(text)
        obj["metadata"]["resourceVersion"] = str(revision)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(str(error)) from error
    return obj


class Decoder:
    """Objects of rows, each decoded once: a process that runs for long lists the same ones again and again."""

    def __init__(self) -> None:
        self._objects: dict[Key, tuple[str, int, Object]] = {}

    def object(self, key: Key, text: str, revision: int) -> Object:
        """Raises DamagedError."""
        known = self._objects.get(key)
        if known is not None and known[1] == revision and known[0] == text:
            return known[2]
        if len(self._objects) >= MAX_DECODED:
            self._objects.clear()
        obj = from_json(text, revision)
        self._objects[key] = text, revision, obj
        return obj


def to_file(text: str) -> bytes:
    """The content of the file of an object in a row, in canonical form."""
    from kubepy.storage.yaml import dump

    return dump(_of_file(text)).encode()


def to_edited_file(text: str, present: bytes) -> bytes:
    """The content of the file of an object in a row, in the form that somebody gave the present content: comments,
    order, quotes stay where the object did not change."""
    from kubepy.storage.yaml.roundtrip import merge

    return merge(present, _of_file(text))


def _of_file(text: str) -> Object:
    obj: Object = json.loads(text)
    obj["metadata"].pop("managedFields", None)
    return obj


def managers_of(text: str) -> bytes | None:
    """The content of an object's file of managers; None unless server-side apply has touched it."""
    if '"managedFields"' not in text:
        return None
    managers = json.loads(text)["metadata"].get("managedFields") or []
    if not any(isinstance(one, dict) and one.get("operation") == "Apply" for one in managers):
        return None
    from kubepy.storage.yaml import dump

    return dump({"managedFields": managers}).encode()


def parse(data: bytes) -> Content:
    """The one object in the bytes of a file. Raises ContentError."""
    from kubepy.storage.yaml import YamlError, load_all

    text = _decode(data)
    try:
        documents = load_all(text, unique_keys=True)  # the last would count, and the others be lost
    except YamlError as error:
        raise ContentError(error.line, _PLACED.sub("", error.message)) from None
    except RecursionError:
        raise ContentError(0, "is nested too deeply") from None
    if len(documents) != 1:
        raise ContentError(*_not_one([document.line for document in documents]))
    document = documents[0]
    if not isinstance(document.object, dict):
        raise ContentError(document.line, "is not an object")
    _check_values(document.object, document.line)
    return Content(document.object, document.line)


def _decode(data: bytes) -> str:
    if marker := _MERGE_MARKER.search(data):
        raise ContentError(_line_of(data, marker.start()), "has merge conflict markers")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ContentError(_line_of(data, error.start), "is not UTF-8 text") from None


def _line_of(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _not_one(lines: list[int]) -> tuple[int, str]:
    return (lines[1], "has more than one document") if lines else (0, "is empty")


def _check_values(obj: Object, line: int) -> None:
    """Refuse what JSON cannot say or what grows out of all bounds: aliases, NaN, odd keys, cycles."""
    pending: list[tuple[Any, int]] = [(obj, 0)]
    seen = 0
    while pending:
        value, depth = pending.pop()
        seen += 1
        if seen > MAX_VALUES or depth > MAX_DEPTH:
            raise ContentError(line, "grows too large when its aliases are expanded or is nested too deeply")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise ContentError(line, "has a key that is not a string")
            pending.extend((child, depth + 1) for child in value.values())
        elif isinstance(value, list):
            pending.extend((child, depth + 1) for child in value)
        elif why := _wrong_scalar(value):
            raise ContentError(line, why)


def _wrong_scalar(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "has a number that JSON cannot hold"
    if value is None or isinstance(value, str | int | float):
        return ""
    return f"has a value that JSON cannot hold ({type(value).__name__})"


def check_place(obj: Object, key: Key | None, directory_key: Key, file_path: str, line: int) -> Key:
    """The key of an object that was read from a file; ``directory_key`` has the folder's resource and namespace.

    ``key`` is what the path says, None when the name was cut and only the object can tell. Raises ContentError.
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise ContentError(line, "has no metadata")
    name, namespace = metadata.get("name"), metadata.get("namespace", directory_key.namespace)
    if not isinstance(name, str) or not name:
        raise ContentError(line, "has no metadata.name")
    found = directory_key._replace(name=name)
    if key is not None and name != key.name:
        raise ContentError(line, f"is named {quote(name)}, not {quote(key.name)}")
    if key is None and path_of(found) != file_path:
        raise ContentError(line, f"is the object {quote(name)}, whose file is {path_of(found)}")
    if (namespace or "") != directory_key.namespace:
        raise ContentError(line, _wrong_namespace(namespace, directory_key.namespace))
    return found


def _wrong_namespace(namespace: Any, expected: str) -> str:
    if not expected:
        return f"has the namespace {quote(str(namespace))} but lies among the cluster-scoped objects"
    return f"has the namespace {quote(str(namespace))}, not {quote(expected)}"
