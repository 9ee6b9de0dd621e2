"""Types as the checker knows them, and the functions that there are for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from kubepy.api.cel.values import TYPE_NAMES, CelError, kind_of, kind_of_type


class Type(NamedTuple):
    """``list(int)`` is ``Type("list", (INT,))``. ``fields``: of an object. A name of one letter stands for any type."""

    name: str
    params: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = None

    def __str__(self) -> str:
        if self.fields is not None:
            return "object"
        name = "null" if self.name == "null" else TYPE_NAMES.get(self.name, self.name)
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    @property
    def is_parameter(self) -> bool:
        return len(self.name) == 1


BOOL, INT, UINT, DOUBLE, STRING, BYTES = (Type(name) for name in ("bool", "int", "uint", "double", "string", "bytes"))
DYN, NULL, TYPE = Type("dyn"), Type("null"), Type("type")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(inner: Type) -> Type:
    return Type("optional", (inner,))


class Overload(NamedTuple):
    """One way to call a function. Of a member function the target is the first parameter."""

    params: tuple[Type, ...]
    result: Type
    is_member: bool
    run: Callable[..., Any]


OVERLOADS: dict[str, list[Overload]] = {}
_SIGNATURE = re.compile(r"(?:(?P<target>[A-Za-z]+(?:<.*?>)?)\.)?(?P<name>[^()\s]+)\((?P<params>.*)\) -> (?P<result>.+)")
_NAMESPACES = ("sets", "lists", "strings")  # no types of these names


Run = TypeVar("Run", bound=Callable[..., Any])


def overload(*signatures: str, namespace: bool = False) -> Callable[[Run], Run]:
    """Registers a function under signatures such as ``string.charAt(int) -> string`` or ``size(list<A>) -> int``.

    ``namespace``: what is before the dot is part of the name, though there is a type of that name.
    """

    def register(run: Run) -> Run:
        for signature in signatures:
            name, found = _parsed(signature, run, namespace)
            OVERLOADS.setdefault(name, []).append(found)
        return run

    return register


def _parsed(signature: str, run: Callable[..., Any], namespace: bool) -> tuple[str, Overload]:
    found = _SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    name, target = found["name"], found["target"]
    params = tuple(parse_type(text) for text in _split(found["params"]))
    if target and (namespace or target in _NAMESPACES):
        name, target = f"{target}.{name}", None
    if target:
        params = (parse_type(target), *params)
    return name, Overload(params, parse_type(found["result"]), bool(target), run)


@cache
def parse_type(text: str) -> Type:
    """``map<string, list<A>>``."""
    name, _, rest = text.strip().partition("<")
    return Type(name, tuple(parse_type(part) for part in _split(rest.removesuffix(">"))))


def _split(text: str) -> Iterator[str]:
    """Parts between commas that are not inside angle brackets."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


def call(name: str, args: list[Any], *, is_member: bool = False) -> Any:
    """Call the overload that fits the values. Raises CelError."""
    run = _implementation(name, tuple(map(type, args)), is_member)
    if run is not None:
        return run(*args)
    if not name[0].isalpha():
        raise CelError("no such overload")
    kinds = [TYPE_NAMES.get(kind_of(arg), kind_of(arg)) for arg in args]
    shown = f"{kinds[0]}.{name}({', '.join(kinds[1:])})" if is_member else f"{name}({', '.join(kinds)})"
    raise CelError(f"no such overload: {shown}")


@cache
def _implementation(name: str, types: tuple[type, ...], is_member: bool) -> Callable[..., Any] | None:
    """The function of the first overload that takes values of these Python types, None if there is none."""
    kinds = [kind_of_type(one) for one in types]
    for one in OVERLOADS.get(name, ()):
        if one.is_member == is_member and len(one.params) == len(kinds) and all(map(_fits, one.params, kinds)):
            return one.run
    return None


def _fits(wanted: Type, kind: str) -> bool:
    return wanted.is_parameter or wanted.name in ("dyn", kind)
