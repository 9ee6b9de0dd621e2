"""Types of the checker, and the overloads of all functions (cel-go's ``common/types`` and
``common/decls``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from kubepy.api.cel.values import TYPE_NAMES, CelError, kind_of, kind_of_type


class Type(NamedTuple):
    """A type: ``list(int)`` is ``Type("list", (INT,))``. ``fields``: of an object. One letter is a
    type parameter."""

    name: str
    params: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = None

    def __str__(self) -> str:
        if self.fields is not None:
            return "object"
        name = "null" if self.name == "null" else TYPE_NAMES.get(self.name, self.name)
        if self.params:
            return f"{name}({', '.join(map(str, self.params))})"
        return name

    @property
    def is_parameter(self) -> bool:
        return len(self.name) == 1


BOOL, INT, UINT, DOUBLE, STRING, BYTES = (
    Type(name) for name in ("bool", "int", "uint", "double", "string", "bytes")
)
DYN = Type("dyn")
NULL = Type("null")
TYPE = Type("type")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(inner: Type) -> Type:
    return Type("optional", (inner,))


class Overload(NamedTuple):
    """One way to call a function. The target of a member function is the first parameter."""

    params: tuple[Type, ...]
    result: Type
    is_member: bool
    run: Callable[..., Any]


OVERLOADS: dict[str, list[Overload]] = {}
_SIGNATURE = re.compile(
    r"(?:(?P<target>[A-Za-z]+(?:<.*?>)?)\.)?(?P<name>[^()\s]+)\((?P<params>.*)\) -> (?P<result>.+)"
)
_NAMESPACES = ("sets", "lists", "strings", "jsonpatch")  # not types, though they stand before a dot


Run = TypeVar("Run", bound=Callable[..., Any])


def overload(*signatures: str, namespace: bool = False) -> Callable[[Run], Run]:
    """Register a function under signatures such as ``string.charAt(int) -> string`` or
    ``size(list<A>) -> int``.

    ``namespace``: the word before the dot is part of the name, although there is a type of that
    name.
    """

    def register(run: Run) -> Run:
        for signature in signatures:
            match = _SIGNATURE.fullmatch(signature)
            assert match is not None, signature
            name = match["name"]
            target = match["target"]
            params = tuple(parse_type(text) for text in _split(match["params"]))
            if target and (namespace or target in _NAMESPACES):
                name = f"{target}.{name}"
                target = None
            if target:
                params = (parse_type(target), *params)
            added = Overload(params, parse_type(match["result"]), bool(target), run)
            OVERLOADS.setdefault(name, []).append(added)
        return run

    return register


@cache
def parse_type(text: str) -> Type:
    """Read a type of a signature: ``map<string, list<A>>``."""
    name, _, rest = text.strip().partition("<")
    return Type(name, tuple(parse_type(part) for part in _split(rest.removesuffix(">"))))


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas that are not inside angle brackets."""
    depth = 0
    start = 0
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
    shown = (
        f"{kinds[0]}.{name}({', '.join(kinds[1:])})" if is_member else f"{name}({', '.join(kinds)})"
    )
    raise CelError(f"no such overload: {shown}")


@cache
def _implementation(
    name: str, types: tuple[type, ...], is_member: bool
) -> Callable[..., Any] | None:
    """Return the function of the first overload that accepts values of these Python types, None if
    there is none."""
    kinds = [kind_of_type(python_type) for python_type in types]
    for candidate in OVERLOADS.get(name, ()):
        if (
            candidate.is_member == is_member
            and len(candidate.params) == len(kinds)
            and all(
                param.is_parameter or param.name in ("dyn", kind)
                for param, kind in zip(candidate.params, kinds, strict=True)
            )
        ):
            return candidate.run
    return None
