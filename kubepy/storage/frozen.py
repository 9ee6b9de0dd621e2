"""Objects that raise TypeError when they are changed: shared ones, in Python's development mode
(``PYTHONDEVMODE=1``) and in the tests of kubepy. Otherwise all functions return what they get.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
is_on = sys.flags.dev_mode  # tests set it, too


def _refuse(self: object, *args: object, **named: object) -> NoReturn:
    raise TypeError("this object is shared: copy it before you change it")


class FrozenDict(dict[str, Any]):
    """A map of a shared object. What is made of it (``{**it}``, ``dict(it)``, ``it.copy()``) is an
    ordinary one, whose values are shared."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return {key: thaw(item) for key, item in self.items()}


class FrozenList(list[Any]):
    """A list of a shared object."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: Any) -> list[Any]:
        return [thaw(item) for item in self]


def shared(value: T) -> T:
    """Return an object that is about to be shared, frozen where such are."""
    return _frozen(value) if is_on else value


def _frozen(value: Any) -> Any:
    if isinstance(value, (FrozenDict, FrozenList)):
        return value
    if isinstance(value, dict):
        return FrozenDict({key: _frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList([_frozen(item) for item in value])
    return value


_PLAIN: dict[type, type] = {FrozenDict: dict, FrozenList: list}


def plain_type(value: object) -> type:
    """Return the type of a JSON value, of which a shared map or list is a subclass."""
    kind = type(value)
    return _PLAIN.get(kind, kind)


def thawed(value: T) -> T:
    """Return an object that code goes through which tells plain types from others: a frozen one is
    copied."""
    return thaw(value) if is_on else value


def thaw(value: Any) -> Any:
    """Return a copy of JSON data in ordinary dicts and lists."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value
