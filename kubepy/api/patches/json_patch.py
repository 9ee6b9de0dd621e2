"""JSON patches (RFC 6902) as ``evanphx/json-patch`` v4 applies them, which is more than the RFC
allows.

``replace`` adds a key that a map does not have, ``copy`` of a missing key makes a null, indexes may
be negative, and the first part of a path is ignored. :class:`Patcher` finds the places that an
operation names, with evanphx's errors, and hands jsonpatch an operation that the RFC allows.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointer, unescape

from kubepy.api.patches.elements import same
from kubepy.api.values.gonumbers import NumberError, atoi
from kubepy.quoting import quote

Container = dict[str, Any] | list[Any]
_MISSING = "missing value"


class OperationError(JsonPatchException):
    """An operation that cannot be applied, in the words of evanphx/json-patch."""


class TestFailedError(OperationError):
    """A value is not what an operation ``test`` says."""

    __test__ = False  # pytest takes the name for that of tests


class Patcher:
    """Applies operations to a document, which must be a map or list, and changes it.

    ``copied_limit``: the number of bytes of JSON that copies may add up to, 0 for any number.
    ``strict``: reading a key that a map does not have is an error, as in version 5, which kustomize
    uses.
    """

    def __init__(self, document: Container, copied_limit: int = 0, *, strict: bool = False) -> None:
        self.document = document
        self._copied_limit = copied_limit
        self._copied = 0
        self._strict = strict

    def apply(self, operation: Mapping[str, Any]) -> None:
        """Apply an operation. Raises OperationError."""
        match operation.get("op"):
            case "add":
                self.add(operation)
            case "remove":
                self.remove(operation)
            case "replace":
                self.replace(operation)
            case "move":
                self.move(operation)
            case "test":
                self.test(operation)
            case "copy":
                self.copy(operation)
            case kind:
                raise OperationError(
                    f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}"
                )

    def add(self, operation: Mapping[str, Any]) -> None:
        path = _path(operation, "add", _MISSING)
        place = self._place(
            path, f"add operation does not apply: doc is missing path: {quote(path)}"
        )
        with _context(f"error in add for path: '{path}'"):
            self._run("add", place.new_pointer(), operation.get("value"))

    def remove(self, operation: Mapping[str, Any]) -> None:
        path = _path(operation, "remove", _MISSING)
        place = self._place(
            path, f"remove operation does not apply: doc is missing path: {quote(path)}"
        )
        with _context(f"error in remove for path: '{path}'"):
            place.require_key()
            self._run("remove", place.pointer())

    def replace(self, operation: Mapping[str, Any]) -> None:
        path = _path(operation, "replace")
        if not path:
            if not isinstance(operation.get("value"), dict | list):
                raise OperationError("replace operation value must be object or array")
            self.document = copy.deepcopy(operation["value"])
            return

        place = self._place(path, f"replace operation does not apply: doc is missing path: {path}")
        try:
            self._read(place)
        except OperationError:
            raise OperationError(
                f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
            ) from None

        # RFC 6902's replace wants a key that is there; add sets a map's key in any case, but would
        # insert into a list.
        kind = "add" if isinstance(place.container, dict) else "replace"
        self._run(kind, place.pointer(), operation.get("value"))

    def move(self, operation: Mapping[str, Any]) -> None:
        source = _source(operation, "move")
        missing = "move operation does not apply: doc is missing"
        place = self._place(source, f"{missing} from path: {source}")
        with _context(f"error in move for path: '{place.key}'"):
            value = self._read(place)
            place.require_key()
        self._run("remove", place.pointer())
        path = _path(operation, "move")
        place = self._place(path, f"{missing} destination path: {path}")
        with _context(f"error in move for path: '{path}'"):
            self._run("add", place.new_pointer(), value)

    def test(self, operation: Mapping[str, Any]) -> None:
        path = _path(operation, "test")
        value: Any = self.document
        if path:
            place = self._place(path, f"test operation does not apply: is missing path: {path}")
            with _context(f"error in test for path: '{path}'"):
                value = place.value()
        if not same(value, operation.get("value")):
            raise TestFailedError(f"testing value {path} failed: test failed")

    def copy(self, operation: Mapping[str, Any]) -> None:
        source = _source(operation, "copy")
        missing = "copy operation does not apply: doc is missing"
        place = self._place(source, f"{missing} from path: {source}")
        with _context(f"error in copy for from: '{source}'"):
            value = self._read(place)
        self._copied += 0 if value is None else len(json.dumps(value, separators=(",", ":")))
        if 0 < self._copied_limit < self._copied:
            raise OperationError(
                f"Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}"
                f", exceeding the limit {self._copied_limit}"
            )

        path = _path(operation, "copy", _MISSING)
        place = self._place(path, f"{missing} destination path: {path}")
        with _context("error while adding value during copy"):
            self._run("add", place.new_pointer(), value)

    def _run(self, kind: str, pointer: str, value: Any = None) -> None:
        operation = {"op": kind, "path": pointer, "value": copy.deepcopy(value)}
        self.document = JsonPatch([operation]).apply(self.document, in_place=True)

    def _place(self, path: str, missing: str) -> _Place:
        """Find the place that a path names. Raises OperationError with ``missing`` if nothing can
        be there."""
        _, *parts = (unescape(part) for part in path.split("/"))
        container: Any = self.document if parts else None
        pointer: list[str] = []
        for part in parts[:-1]:
            if not isinstance(container, dict | list):
                break
            place = _Place(container, pointer, part)
            try:
                container = place.value()
                pointer = [*pointer, place.pointer_part()]
            except OperationError:
                container = None

        if not isinstance(container, dict | list):
            raise OperationError(f"{missing}: {_MISSING}")
        return _Place(container, pointer, parts[-1])

    def _read(self, place: _Place) -> Any:
        if self._strict and isinstance(place.container, dict) and place.key not in place.container:
            raise OperationError(f"unable to get nonexistent key: {place.key}: {_MISSING}")
        return place.value()


class _Place(NamedTuple):
    """A place in a document: the container, the container's pointer, and a key or index in the
    container."""

    container: Container
    parents: list[str]
    key: str

    def value(self) -> Any:
        """Return the value at this place, None for a key that a map does not have. Raises
        OperationError."""
        if isinstance(self.container, dict):
            return self.container.get(self.key)
        return self.container[_index(self.key, len(self.container))]

    def require_key(self) -> None:
        """Raise OperationError if a map does not have the key."""
        if isinstance(self.container, dict) and self.key not in self.container:
            raise OperationError(f"Unable to remove nonexistent key: {self.key}: {_MISSING}")

    def pointer_part(self) -> str:
        """Return the key, or the index counted from the start. Raises OperationError."""
        if isinstance(self.container, dict):
            return self.key
        return str(_index(self.key, len(self.container)))

    def pointer(self) -> str:
        """Return the RFC's pointer to this place. Raises OperationError."""
        return str(JsonPointer.from_parts([*self.parents, self.pointer_part()]).path)

    def new_pointer(self) -> str:
        """Return the RFC's pointer to a value that is to be added here. Raises OperationError."""
        part = self.key
        if isinstance(self.container, list) and part != "-":
            try:
                part = str(_index(part, len(self.container) + 1))
            except NotANumberError as error:
                raise OperationError(
                    f"value was not a proper array index: '{part}': {error}"
                ) from None
        return str(JsonPointer.from_parts([*self.parents, part]).path)


class NotANumberError(OperationError):
    """A part of a path that is not an index."""


def _index(key: str, size: int) -> int:
    """Return an index in a list of that size, negative ones counted from its end. Raises
    OperationError."""
    try:
        index = atoi(key)
    except NumberError as error:
        raise NotANumberError(str(error)) from None
    if not -size <= index < size:
        raise OperationError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % size


def _path(
    operation: Mapping[str, Any],
    kind: str,
    problem: str = f"operation missing path field: {_MISSING}",
) -> str:
    if isinstance(path := operation.get("path"), str):
        return path
    raise OperationError(f"{kind} operation failed to decode path: {problem}")


def _source(operation: Mapping[str, Any], kind: str) -> str:
    if isinstance(path := operation.get("from"), str):
        return path
    raise OperationError(
        f"{kind} operation failed to decode from: operation, missing from field: {_MISSING}"
    )


@contextmanager
def _context(action: str) -> Iterator[None]:
    """Put the action in front of the message of an OperationError."""
    try:
        yield
    except OperationError as error:
        raise OperationError(f"{action}: {error}") from None
