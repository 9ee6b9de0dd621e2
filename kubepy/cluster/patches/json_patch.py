"""JSON patches (RFC 6902) as ``evanphx/json-patch`` v4 applies them, which is more than the RFC allows.

``replace`` adds what a map does not have, ``copy`` of what is not there makes a null, indexes may be negative, and of a
path the first part is never looked at. Changes the document.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

Operation = dict[str, Any]
Container = dict[str, Any] | list[Any]
_MISSING = "missing value"


class OperationError(Exception):
    """An operation that cannot be applied, in the library's words."""


class Patcher:
    """Applies operations to a document, which must be a map or list.

    ``copied_limit``: how many bytes of JSON copies may add up to, 0 for any number.
    """

    def __init__(self, document: Container, copied_limit: int = 0) -> None:
        self.document = document
        self._limit = copied_limit
        self._copied = 0

    def apply(self, operation: Operation) -> None:
        """Raises OperationError."""
        kind = operation.get("op")
        kind = kind if isinstance(kind, str) else "unknown"
        act: Callable[[Operation], None] | None = getattr(self, f"_{kind}", None) if kind in KINDS else None
        if act is None:
            raise OperationError(f"Unexpected kind: {kind}")
        act(operation)

    def _add(self, operation: Operation) -> None:
        path = _path(operation, "add operation failed to decode path", brief=True)
        place, key = self._find(path, f'add operation does not apply: doc is missing path: "{path}"')
        _within(f"error in add for path: '{path}'", _add, place, key, operation.get("value"))

    def _remove(self, operation: Operation) -> None:
        path = _path(operation, "remove operation failed to decode path", brief=True)
        place, key = self._find(path, f'remove operation does not apply: doc is missing path: "{path}"')
        _within(f"error in remove for path: '{path}'", _remove, place, key)

    def _replace(self, operation: Operation) -> None:
        path = _path(operation, "replace operation failed to decode path")
        place, key = self._find(path, f"replace operation does not apply: doc is missing path: {path}")
        try:
            _get(place, key)
        except OperationError:
            raise OperationError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None
        _set(place, key, operation.get("value"))

    def _move(self, operation: Operation) -> None:
        source = _path(operation, "move operation failed to decode from", "from")
        place, key = self._find(source, f"move operation does not apply: doc is missing from path: {source}")
        value = _within(f"error in move for path: '{key}'", _get, place, key)
        _within(f"error in move for path: '{key}'", _remove, place, key)
        path = _path(operation, "move operation failed to decode path")
        place, key = self._find(path, f"move operation does not apply: doc is missing destination path: {path}")
        _within(f"error in move for path: '{path}'", _add, place, key, value)

    def _test(self, operation: Operation) -> None:
        path = _path(operation, "test operation failed to decode path")
        place, key = self._find(path, f"test operation does not apply: is missing path: {path}")
        found = _within(f"error in test for path: '{path}'", _get, place, key)
        if not _is_same(found, operation.get("value")):
            raise OperationError(f"testing value {path} failed: test failed")

    def _copy(self, operation: Operation) -> None:
        source = _path(operation, "copy operation failed to decode from", "from")
        place, key = self._find(source, f"copy operation does not apply: doc is missing from path: {source}")
        value = _within(f"error in copy for from: '{source}'", _get, place, key)
        path = _path(operation, "copy operation failed to decode path", brief=True)
        place, key = self._find(path, f"copy operation does not apply: doc is missing destination path: {path}")
        self._charge(value)
        _within("error while adding value during copy", _add, place, key, copy.deepcopy(value))

    def _charge(self, value: Any) -> None:
        self._copied += 0 if value is None else len(json.dumps(value, separators=(",", ":")))
        if 0 < self._limit < self._copied:
            raise OperationError(f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}"
                                 f", exceeding the limit {self._limit}")

    def _find(self, pointer: str, missing: str) -> tuple[Container, str]:
        """What holds the place that a pointer names, and its last part. Raises OperationError."""
        parts = [_unescaped(part) for part in pointer.split("/")]
        found: Any = self.document if len(parts) > 1 else None
        for part in parts[1:-1]:
            try:
                found = _get(found, part)
            except OperationError:
                found = None
            if not isinstance(found, dict | list):
                break
        if not isinstance(found, dict | list):
            raise OperationError(f"{missing}: {_MISSING}")
        return found, parts[-1]


KINDS = ("add", "remove", "replace", "move", "test", "copy")


def _path(operation: Operation, action: str, name: str = "path", *, brief: bool = False) -> str:
    """``path`` or ``from`` of an operation. Raises OperationError; ``brief``: not saying what is wrong with it."""
    path = operation.get(name)
    if isinstance(path, str):
        return path
    field = "operation missing path field" if name == "path" else "operation, missing from field"
    raise OperationError(f"{action}: {_MISSING}" if brief else f"{action}: {field}: {_MISSING}")


def _unescaped(part: str) -> str:
    return re.sub("~[01]", lambda found: "/" if found[0] == "~1" else "~", part)


def _within(action: str, act: Callable[..., Any], *args: Any) -> Any:
    try:
        return act(*args)
    except OperationError as error:
        raise OperationError(f"{action}: {error}") from None


# --- containers ---------------------------------------------------------------------------------------------------


def _get(place: Container, key: str) -> Any:
    """None for what a map does not have."""
    return place.get(key) if isinstance(place, dict) else place[_index(key, len(place))]


def _set(place: Container, key: str, value: Any) -> None:
    if isinstance(place, dict):
        place[key] = value
    else:
        place[_index(key, len(place))] = value


def _add(place: Container, key: str, value: Any) -> None:
    if isinstance(place, dict):
        place[key] = value
    elif key == "-":
        place.append(value)
    else:
        try:
            place.insert(_index(key, len(place) + 1), value)
        except NotANumberError as error:
            raise OperationError(f"value was not a proper array index: '{key}': {error}") from None


def _remove(place: Container, key: str) -> None:
    if isinstance(place, dict) and key not in place:
        raise OperationError(f"Unable to remove nonexistent key: {key}: {_MISSING}")
    if isinstance(place, dict):
        del place[key]
    else:
        del place[_index(key, len(place))]


class NotANumberError(OperationError):
    """A part of a path that is no index."""


def _index(key: str, size: int) -> int:
    """An index in a list of that size, negative ones counted from its end. Raises OperationError."""
    if not re.fullmatch("[+-]?[0-9]+", key, re.ASCII):
        raise NotANumberError(f'strconv.Atoi: parsing "{key}": invalid syntax')
    index = int(key)
    if not -size <= index < size:
        raise OperationError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % size


def _is_same(left: Any, right: Any) -> bool:
    """Equal as they are written: 1 is neither 1.0 nor true."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return type(left) is type(right) and bool(left == right)
