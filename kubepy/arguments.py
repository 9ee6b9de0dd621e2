"""A check of the arguments with which Python programs call: their annotations say what is
allowed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from reprlib import Repr
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

P = ParamSpec("P")
R = TypeVar("R")

NOUNS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Mapping: "a dict",
    datetime: "a datetime",
    timedelta: "a timedelta",
    os.PathLike: "a path",
}
_shown = Repr()
_shown.maxstring = _shown.maxother = 60


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function raise TypeError, before it begins, for an argument of another type than is
    annotated.

    A string that has no UTF-8 form is a ValueError.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        parameters = parameters_of(function)
        bound = parameters.signature.bind(*args, **kwargs)
        for name, value in parameters.named(bound.arguments).items():
            if name in parameters.types:
                check(name, value, parameters.types[name])
        return function(*args, **kwargs)

    return call


class Parameters:
    """The parameters of a function.

    :ivar signature: binds arguments to them.
    :ivar types: their types by their names, and that of the result as ``return``; those of
        further keywords, which a TypedDict names, stand among them.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        from inspect import signature  # takes 6 ms, which importing a checked function needs not

        self.signature = signature(function)
        self.types = get_type_hints(function)
        self._function = function.__qualname__
        self._further = ""  # the parameter that takes further keywords
        for name, annotation in list(self.types.items()):
            if get_origin(annotation) is Unpack:
                self._further = name
                del self.types[name]
                self.types.update(get_type_hints(get_args(annotation)[0]))

    def named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return bound arguments with the further keywords among them. Raises TypeError for an
        unknown keyword."""
        named = dict(arguments)
        for name, value in named.pop(self._further, {}).items():
            if name not in self.types:
                raise TypeError(f"{self._function}() got an unexpected keyword argument {name!r}")
            named[name] = value
        return named


@functools.cache
def parameters_of(function: Callable[..., object]) -> Parameters:
    """Return the parameters of a function, at its first call: its annotations may name what its
    module defines below it, or imports lazily."""
    return Parameters(function)


def check(name: str, value: Any, annotation: Any) -> None:
    """Check an argument. Raises TypeError, ValueError."""
    if not fits(value, annotation):
        raise TypeError(f"{name}={_shown.repr(value)}: must be {description(annotation)}")
    texts: Iterable[Any] = ()
    if isinstance(value, str):
        texts = [value]
    elif isinstance(value, Mapping | list | tuple):
        texts = value
    for text in texts:
        if isinstance(text, str) and not is_unicode(text):
            raise ValueError(
                f"{name}={_shown.repr(value)}: has a character that UTF-8 cannot encode"
            )


def is_unicode(text: str) -> bool:
    """Return whether a text has an encoding: no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def fits(value: Any, annotation: Any) -> bool:
    """Return whether a value has the type of an annotation. True and False are no numbers."""
    if annotation is Any:
        return True
    origin = get_origin(annotation)
    inner = get_args(annotation)
    if origin is Literal:
        return isinstance(value, str)  # the function says which words it knows
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in inner)
    if origin is Mapping:
        return isinstance(value, Mapping) and has_entries(value, *inner)
    if origin is Sequence:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
            return False
        return all(fits(entry, inner[0]) for entry in value)
    if isinstance(value, bool):
        return annotation is bool
    if annotation is float:
        return isinstance(value, int | float)
    return isinstance(value, origin or annotation)


def has_entries(value: Mapping[Any, Any], key_type: Any, entry_type: Any) -> bool:
    """Return whether all keys and values of a mapping have these types."""
    for key, entry in value.items():
        if not fits(key, key_type) or not fits(entry, entry_type):
            return False
    return True


def description(annotation: Any) -> str:
    """Describe what an annotation allows: ``a string, a whole number or None``."""
    origin = get_origin(annotation)
    inner = get_args(annotation)
    if origin in (Union, UnionType):
        *nouns, last = (description(option) for option in inner)
        return f"{', '.join(nouns)} or {last}"
    if origin is Literal:
        return "a string"
    if origin is Sequence or (origin is Mapping and inner[1] is str):
        container = "a list" if origin is Sequence else "a dict"
        item = description(inner[-1])
        return f"{container} of {item.removeprefix('a ')}s"
    return NOUNS.get(origin or annotation, getattr(annotation, "__name__", str(annotation)))
