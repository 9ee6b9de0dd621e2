"""An object as the bytes of its file, and as the JSON of its row. A file holds neither
resourceVersion nor managedFields."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage import frozen
from kubepy.storage.folder.database import DamagedError, Row
from kubepy.storage.folder.paths import path_of
from kubepy.storage.frozen import shared
from kubepy.storage.model import Key, Object

with lazy_imports():
    from kubepy.storage import yaml
    from kubepy.storage.yaml import roundtrip

MAX_DEPTH = 200
SHARED_BEYOND = 4000  # objects in memory, from which on those that are decoded share parts
MAX_DECODED = 50_000  # objects kept in memory
DECODED_TOGETHER = 64
_SCALARS = frozenset((str, int, bool, type(None)))  # most values, each of which JSON can say
MAX_VALUES = 500_000  # an alias bomb is small as a file and has no end as an object
_PLACED = r"^(?:error converting YAML to JSON: )?yaml: (?:line \d+: )?"  # the problem has its line
# Nested conflicts (a merge of merges, a file renamed on both sides) have longer markers.
_MERGE_MARKER = rb"(?m)^(?:<{7,}|>{7,}|\|{7,}) "


class ContentError(Exception):
    """The content of a file cannot be an object.

    :ivar line: the line to blame, 0 for the whole file.
    :ivar keeps_object: the object that the file had before counts as it last was.
    """

    def __init__(self, line: int, reason: str, *, keeps_object: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
        self.keeps_object = keeps_object


class UnnamedError(ContentError):
    """An object does not say its name."""


class FileContent(NamedTuple):
    """The one document of a file, and the line it starts at."""

    object: Object
    line: int


def from_json(text: str, revision: int) -> Object:
    """Return the object of a row. Raises DamagedError."""
    try:
        obj: Object = json.loads(text)
        obj["metadata"]["resourceVersion"] = str(revision)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(str(error)) from error
    return shared(obj)


class Decoder:
    """Objects of rows, each decoded once: a process that runs for long lists the same ones again
    and again."""

    def __init__(self) -> None:
        self._objects: dict[
            Key, tuple[int, int, Object]
        ] = {}  # with the hash of the JSON, and the revision
        self._last: dict[str, Object] = {}  # the object of each resource that was decoded last

    def object(self, key: Key, text: str, revision: int) -> Object:
        """Return the object of a row. Raises DamagedError."""
        return self._known(key, text, revision) or self.remember(
            key, text, revision, from_json(text, revision)
        )

    def objects(self, rows: Sequence[Row], *, kept: bool = True) -> list[Object]:
        """Return the objects of live rows; those that are not ``kept`` are decoded again next time.

        Raises DamagedError.
        """
        known = [self._known(row.key, row.json or "", row.revision) for row in rows]
        unknown = [row for row, obj in zip(rows, known, strict=True) if obj is None]
        decoded = iter(
            [
                self.remember(row.key, row.json or "", row.revision, obj) if kept else obj
                for row, obj in zip(unknown, _decode_together(unknown), strict=True)
            ]
        )
        return [next(decoded) if obj is None else obj for obj in known]

    def passing(self, row: Row) -> Object:
        """Return the object of a live row, without remembering it. Raises DamagedError."""
        text = row.json or ""
        return self._known(row.key, text, row.revision) or from_json(text, row.revision)

    def _known(self, key: Key, text: str, revision: int) -> Object | None:
        known = self._objects.get(key)
        return (
            known[2]
            if known is not None and known[1] == revision and known[0] == hash(text)
            else None
        )

    def remember(self, key: Key, text: str, revision: int, obj: Object) -> Object:
        """Keep the object of a row, which is not decoded again then; return it."""
        if len(self._objects) >= MAX_DECODED:
            self._objects.clear()
        elif (
            len(self._objects) >= SHARED_BEYOND
            and not frozen.is_on
            and (like := self._last.get(key.resource)) is not None
        ):
            share_parts(obj, like)
        self._objects[key] = hash(text), revision, obj
        self._last[key.resource] = obj
        return obj

    def forget(self, keys: Iterable[Key]) -> None:
        """Forget objects that were deleted."""
        for key in keys:
            self._objects.pop(key, None)


def share_parts(obj: Object, like: Mapping[str, Any]) -> None:
    """Let an object have the parts of another one where both are the same, so that the pods of one
    template take less than half of the memory. Equal numbers of other types, and maps in another
    order, are not the same."""
    for name, part in obj.items():
        other: Any = like.get(name)
        if part.__class__ is not other.__class__:
            continue
        if part == other and (part.__class__ is str or repr(part) == repr(other)):
            obj[name] = other
        elif part.__class__ is dict:
            share_parts(part, other)
        elif part.__class__ is list:
            for item, other_item in zip(part, other, strict=False):
                if item.__class__ is other_item.__class__ is dict:
                    share_parts(item, other_item)


def _decode_together(rows: Sequence[Row]) -> Iterator[Object]:
    """Yield the objects of live rows. Raises DamagedError.

    Those of one JSON text share the strings of their keys, so that many objects take three quarters
    of the memory, and half of the time.
    """
    for start in range(0, len(rows), DECODED_TOGETHER):
        part = rows[start : start + DECODED_TOGETHER]
        try:
            objects = json.loads(f"[{','.join([row.json or '' for row in part])}]")
            for row, obj in zip(part, objects, strict=True):
                obj["metadata"]["resourceVersion"] = str(row.revision)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(str(error)) from error
        yield from map(shared, objects) if frozen.is_on else objects


def to_file(obj: Object, written: yaml.Written | None = None) -> bytes:
    """Return the content of an object's file in canonical form.

    :param written: as of :func:`yaml.dump`.
    """
    return yaml.dump(_content_of(obj), written).encode()


def to_edited_file(obj: Object, present: bytes) -> bytes:
    """Return the content of an object's file in the form that somebody gave the present content:
    comments, order and quotes stay where the object did not change."""
    return roundtrip.merge(present, _content_of(obj))


def _content_of(obj: Object) -> Object:
    """Return what an object's file has of it."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("managedFields", "resourceVersion")
    }
    return {**obj, "metadata": metadata}


def managers_of(obj: Object) -> bytes | None:
    """Return the content of an object's file of managers; None unless server-side apply has touched
    the object."""
    managers = obj["metadata"].get("managedFields") or []
    if not any(
        isinstance(manager, dict) and manager.get("operation") == "Apply" for manager in managers
    ):
        return None
    return yaml.dump({"managedFields": managers}).encode()


def recorded_managers(text: str) -> bytes | None:
    """Return the same from the JSON of an object's row."""
    return managers_of(json.loads(text)) if '"managedFields"' in text else None


def parse(data: bytes) -> FileContent:
    """Return the one object in the bytes of a file. Raises ContentError."""
    if marker := re.search(_MERGE_MARKER, data):
        raise ContentError(_line_at(data, marker.start()), "has merge conflict markers")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ContentError(_line_at(data, error.start), "is not UTF-8 text") from None

    try:
        documents = yaml.load_all(
            text, unique_keys=True
        )  # of equal keys the last would count, and the others be lost
    except yaml.YamlError as error:
        raise ContentError(error.line, re.sub(_PLACED, "", error.message)) from None
    except RecursionError:
        raise ContentError(0, "is nested too deeply") from None

    if not documents:
        raise ContentError(0, "is empty")
    if len(documents) > 1:
        raise ContentError(documents[1].line, "has more than one document")
    document = documents[0]
    if not isinstance(document.object, dict):
        raise ContentError(document.line, "is not an object")
    _check_values(document.object, document.line)
    return FileContent(document.object, document.line)


def _line_at(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _check_values(obj: Object, line: int) -> None:
    """Refuse what JSON cannot say or what grows out of all bounds: aliases, NaN, odd keys,
    cycles."""
    pending: list[tuple[Any, int]] = [(obj, 0)]
    count = 1
    while pending:
        value, depth = pending.pop()
        inner: Collection[Any] = ()
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise ContentError(line, "has a key that is not a string")
            inner = value.values()
        elif isinstance(value, list):
            inner = value
        elif isinstance(value, float) and not math.isfinite(value):
            raise ContentError(line, "has a number that JSON cannot hold")
        elif value is not None and not isinstance(value, str | int | float):
            raise ContentError(line, f"has a value that JSON cannot hold ({type(value).__name__})")
        count += len(inner)
        if count > MAX_VALUES or (inner and depth >= MAX_DEPTH):
            raise ContentError(
                line, "grows too large when its aliases are expanded or is nested too deeply"
            )
        pending += [(child, depth + 1) for child in inner if child.__class__ not in _SCALARS]


def check_place(obj: Object, key: Key | None, directory_key: Key, file_path: str, line: int) -> Key:
    """Return the key of an object that was read from a file. Raises ContentError where the file is
    not its place.

    :param key: the key of the file's path, None when the name was cut and only the object can tell.
    :param directory_key: has the resource and the namespace of the file's folder.
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise UnnamedError(line, "has no metadata")
    name, namespace = metadata.get("name"), metadata.get("namespace", directory_key.namespace)
    if not isinstance(name, str) or not name:
        raise UnnamedError(line, "has no metadata.name")
    object_key = directory_key._replace(name=name)
    if key is not None and name != key.name:
        raise ContentError(line, f"is named {quote(name)}, not {quote(key.name)}")
    if key is None and path_of(object_key) != file_path:
        raise ContentError(
            line, f"is the object {quote(name)}, whose file is {path_of(object_key)}"
        )

    if (namespace or "") != directory_key.namespace:
        expected = (
            f", not {quote(directory_key.namespace)}"
            if directory_key.namespace
            else " but lies among the cluster-scoped objects"
        )
        raise ContentError(line, f"has the namespace {quote(str(namespace))}{expected}")

    return object_key
