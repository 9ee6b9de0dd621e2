"""A check of the arguments with which Python programs call: their annotations say what is
allowed."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from reprlib import Repr
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

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
    signature = inspect.signature(function)
    types = functools.cache(
        lambda: get_type_hints(function)
    )  # later: it may name what its module defines below it

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in types():
                check(name, value, types()[name])
        return function(*args, **kwargs)

    return call


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
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is Any or origin is Literal:
        return annotation is Any or isinstance(value, str)  # the function says which words it knows
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in inner)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(entry, inner[1]) for key, entry in value.items()
        )
    if origin is Sequence:
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str | bytes | bytearray)
            and all(fits(entry, inner[0]) for entry in value)
        )
    if isinstance(value, bool):
        return annotation is bool
    return isinstance(value, int | float if annotation is float else origin or annotation)


def description(annotation: Any) -> str:
    """Describe what an annotation allows: ``a string, a whole number or None``."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        *nouns, last = (description(option) for option in inner)
        return f"{', '.join(nouns)} or {last}"
    if origin is Literal:
        return "a string"
    if origin is Sequence or (origin is Mapping and inner[1] is str):
        return (
            f"{'a list' if origin is Sequence else 'a dict'} of "
            f"{description(inner[-1]).removeprefix('a ')}s"
        )
    return NOUNS.get(origin or annotation, getattr(annotation, "__name__", str(annotation)))
