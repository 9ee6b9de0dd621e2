"""JSON patches (RFC 6902) as ``evanphx/json-patch`` v4 applies them, which is more than the RFC allows.

``replace`` adds what a map does not have, ``copy`` of what is not there makes a null, indexes may be negative, and of a
path the first part is never looked at. The operations are those of the jsonpatch package, each applied in this way, and
with what that library says when it cannot be.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jsonpatch import JsonPatch, JsonPatchException, PatchOperation
from jsonpointer import JsonPointer, unescape

from kubepy.api.values.gonumbers import NumberError, atoi
from kubepy.quoting import quote

Container = dict[str, Any] | list[Any]
_MISSING = "missing value"


class OperationError(JsonPatchException):
    """An operation that cannot be applied, in the library's words."""


class Patcher:
    """Applies operations to a document, which must be a map or list, and changes it.

    ``copied_limit``: how many bytes of JSON copies may add up to, 0 for any number.
    """

    def __init__(self, document: Container, copied_limit: int = 0) -> None:
        self.document = document
        self._limit = copied_limit
        self._copied = 0

    def apply(self, operation: Mapping[str, Any]) -> None:
        """Raises OperationError."""
        kind = operation.get("op")
        if not isinstance(kind, str) or kind not in _Patch.operations:
            raise OperationError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        if kind == "copy":
            self._charge(operation)
        self.document = _Patch([operation], pointer_cls=_Pointer).apply(self.document, in_place=True)

    def _charge(self, operation: Mapping[str, Any]) -> None:
        try:
            value = _get(*_source(operation, "copy").holder(self.document, ""))
        except OperationError:
            return  # applying it says what is wrong
        self._copied += 0 if value is None else len(json.dumps(value, separators=(",", ":")))
        if 0 < self._limit < self._copied:
            raise OperationError(f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}"
                                 f", exceeding the limit {self._limit}")


class _Pointer(JsonPointer):
    """A path, cut at its slashes whatever stands before the first."""

    def __init__(self, pointer: str) -> None:
        self.parts = [unescape(part) for part in pointer.split("/")]

    def holder(self, document: Any, missing: str) -> tuple[Container, str]:
        """What holds the place that the path names, and its last part. Raises OperationError."""
        found: Any = document if len(self.parts) > 1 else None
        for part in self.parts[1:-1]:
            try:
                found = _get(found, part)
            except OperationError:
                found = None
            if not isinstance(found, dict | list):
                break
        if not isinstance(found, dict | list):
            raise OperationError(f"{missing}: {_MISSING}")
        return found, self.parts[-1]


def _target(operation: Mapping[str, Any], kind: str, *, brief: bool = False) -> _Pointer:
    """The path of an operation. Raises OperationError; ``brief``: not saying what is wrong with it."""
    if isinstance(path := operation.get("path"), str):
        return _Pointer(path)
    why = _MISSING if brief else f"operation missing path field: {_MISSING}"
    raise OperationError(f"{kind} operation failed to decode path: {why}")


def _source(operation: Mapping[str, Any], kind: str) -> _Pointer:
    if isinstance(path := operation.get("from"), str):
        return _Pointer(path)
    raise OperationError(f"{kind} operation failed to decode from: operation, missing from field: {_MISSING}")


# --- operations ---------------------------------------------------------------------------------------------------


class _Operation(PatchOperation):
    """An operation whose path is looked at when it is applied."""

    def __init__(self, operation: Mapping[str, Any], pointer_cls: type[JsonPointer] = _Pointer) -> None:
        self.pointer_cls = pointer_cls
        self.operation = dict(operation)
        self.location = operation.get("path", "")

    @property
    def value(self) -> Any:
        return copy.deepcopy(self.operation.get("value"))


class _Add(_Operation):
    def apply(self, obj: Container) -> Container:
        target = _target(self.operation, "add", brief=True)
        place, key = target.holder(obj, f"add operation does not apply: doc is missing path: {quote(self.location)}")
        _within(f"error in add for path: '{self.location}'", _add, place, key, self.value)
        return obj


class _Remove(_Operation):
    def apply(self, obj: Container) -> Container:
        target = _target(self.operation, "remove", brief=True)
        place, key = target.holder(obj, f"remove operation does not apply: doc is missing path: {quote(self.location)}")
        _within(f"error in remove for path: '{self.location}'", _remove, place, key)
        return obj


class _Replace(_Operation):
    def apply(self, obj: Container) -> Container:
        target = _target(self.operation, "replace")
        place, key = target.holder(obj, f"replace operation does not apply: doc is missing path: {self.location}")
        try:
            _get(place, key)
        except OperationError:
            raise OperationError(f"replace operation does not apply: doc is missing key: {self.location}: "
                                 f"{_MISSING}") from None
        _set(place, key, self.value)
        return obj


class _Move(_Operation):
    def apply(self, obj: Container) -> Container:
        source = _source(self.operation, "move")
        missing = "move operation does not apply: doc is missing"
        place, key = source.holder(obj, f"{missing} from path: {self.operation['from']}")
        value = _within(f"error in move for path: '{key}'", _get, place, key)
        _within(f"error in move for path: '{key}'", _remove, place, key)
        place, key = _target(self.operation, "move").holder(obj, f"{missing} destination path: {self.location}")
        _within(f"error in move for path: '{self.location}'", _add, place, key, value)
        return obj


class _Test(_Operation):
    def apply(self, obj: Container) -> Container:
        target = _target(self.operation, "test")
        place, key = target.holder(obj, f"test operation does not apply: is missing path: {self.location}")
        found = _within(f"error in test for path: '{self.location}'", _get, place, key)
        if not _is_same(found, self.operation.get("value")):
            raise OperationError(f"testing value {self.location} failed: test failed")
        return obj


class _Copy(_Operation):
    def apply(self, obj: Container) -> Container:
        source = _source(self.operation, "copy")
        missing = "copy operation does not apply: doc is missing"
        place, key = source.holder(obj, f"{missing} from path: {self.operation['from']}")
        value = _within(f"error in copy for from: '{self.operation['from']}'", _get, place, key)
        target = _target(self.operation, "copy", brief=True)
        place, key = target.holder(obj, f"{missing} destination path: {self.location}")
        _within("error while adding value during copy", _add, place, key, copy.deepcopy(value))
        return obj


class _Patch(JsonPatch):
    operations = MappingProxyType({"add": _Add, "remove": _Remove, "replace": _Replace, "move": _Move, "test": _Test,
                                   "copy": _Copy})


def _within(action: str, act: Callable[..., Any], *args: Any) -> Any:
    try:
        return act(*args)
    except OperationError as error:
        raise OperationError(f"{action}: {error}") from None


class StrictPatcher(Patcher):
    """As version 5 of that library, with which kustomize patches: what a map does not have can't be read."""

    def apply(self, operation: Mapping[str, Any]) -> None:
        """Raises OperationError."""
        kind, path = operation.get("op"), operation.get("path")
        if kind == "replace" and isinstance(path, str) and self._lacks(path) is not None:
            raise OperationError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}")
        source = operation.get("from")
        if kind in ("move", "copy") and isinstance(source, str) and (key := self._lacks(source)) is not None:
            where = f"move for path: '{key}'" if kind == "move" else f"copy for from: '{source}'"
            raise OperationError(f"error in {where}: unable to get nonexistent key: {key}: {_MISSING}")
        super().apply(operation)

    def _lacks(self, path: str) -> str | None:
        """The key that the path's map does not have; None if it has it, or is no map."""
        try:
            place, key = _Pointer(path).holder(self.document, "")
        except OperationError:
            return None  # applying it says what is wrong
        return key if isinstance(place, dict) and key not in place else None


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
    try:
        index = atoi(key)
    except NumberError as error:
        raise NotANumberError(str(error)) from None
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
