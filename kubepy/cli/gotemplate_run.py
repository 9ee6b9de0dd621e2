"""Filling in a Go template (``text/template/exec.go``, ``funcs.go``, and kubectl's ``exists`` and ``base64decode``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kubepy.cli.gotemplate import (
    Action,
    Block,
    Command,
    Dot,
    Field,
    Function,
    Jump,
    Literal,
    Pipeline,
    TemplateError,
    Text,
    Variable,
)
from kubepy.cluster.goformat import format_value

NO_VALUE = "<no value>"


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Run:
    """One use of a template. ``missing_ok``: a key that is not there is nothing, instead of an error."""

    def __init__(self, obj: Any, missing_ok: bool) -> None:
        self._missing_ok = missing_ok
        self._scopes: list[dict[str, Any]] = [{"$": obj}]
        self._dot = obj

    def render(self, nodes: Iterable[Any]) -> str:
        return "".join(self._node(node) for node in nodes)

    def _node(self, node: Any) -> str:
        match node:
            case Text(text):
                return text
            case Action(pipeline):
                value = self._pipeline(pipeline)
                return "" if pipeline.variables else shown(value)
            case Jump(keyword):
                raise _Break if keyword == "break" else _Continue
            case Block():
                return self._block(node)
        raise TemplateError(f"unknown node {node}")

    def _block(self, block: Block) -> str:
        self._scopes.append({})
        dot = self._dot
        try:
            value = self._pipeline(block.pipeline)
            if block.keyword == "range":
                return self._range(block, value)
            if not is_true(value):
                return self.render(block.otherwise)
            self._dot = value if block.keyword == "with" else dot
            return self.render(block.body)
        finally:
            self._dot = dot
            self._scopes.pop()

    def _range(self, block: Block, value: Any) -> str:
        entries = _entries(value)
        if not entries:
            return self.render(block.otherwise)
        output = []
        names = block.pipeline.variables
        for key, item in entries:
            self._dot = item
            scope = dict(zip(names, (key, item) if len(names) == 2 else (item,), strict=False))
            self._scopes.append(scope)
            try:
                output.append(self.render(block.body))
            except _Break:
                break
            except _Continue:
                continue
            finally:
                self._scopes.pop()
        return "".join(output)

    def _pipeline(self, pipeline: Pipeline) -> Any:
        value: Any = None
        for index, command in enumerate(pipeline.commands):
            value = self._command(command, [value] if index else [])
        for name in pipeline.variables[:1]:
            self._set(name, value, pipeline.assigns)
        return value

    def _set(self, name: str, value: Any, assigns: bool) -> None:
        if assigns:
            for scope in reversed(self._scopes):
                if name in scope:
                    scope[name] = value
                    return
        self._scopes[-1][name] = value

    def _command(self, command: Command, piped: list[Any]) -> Any:
        first = command.words[0]
        if isinstance(first, Function):
            arguments = [*(self._value(word) for word in command.words[1:]), *piped]
            return call(first.name, arguments)
        if len(command.words) > 1 or piped:
            raise TemplateError(f"can't give argument to non-function {_name(first)}")
        return self._value(first)

    def _value(self, node: Any) -> Any:
        match node:
            case Dot():
                return self._dot
            case Literal(value):
                return value
            case Variable(name):
                return self._variable(name)
            case Field(base, names):
                return self._field(self._value(base), names)
            case Function(name):
                return call(name, [])
            case Pipeline():
                return self._pipeline(node)
        raise TemplateError(f"unknown value {node}")

    def _variable(self, name: str) -> Any:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise TemplateError(f'undefined variable "{name}"')

    def _field(self, value: Any, names: Sequence[str]) -> Any:
        for index, name in enumerate(names):
            if value is None and index:
                raise TemplateError(f"nil pointer evaluating interface {{}}.{name}")
            if value is None:
                return None
            if not isinstance(value, dict):
                raise TemplateError(f"can't evaluate field {name} in type {_go_type(value)}")
            if name not in value and not self._missing_ok:
                raise TemplateError(f'map has no entry for key "{name}"')
            value = value.get(name)
        return value


def _name(node: Any) -> str:
    return "".join(f".{name}" for name in node.names) if isinstance(node, Field) else str(node)


def _go_type(value: Any) -> str:
    from kubepy.cluster.goformat import type_name

    return type_name(value)


def _entries(value: Any) -> list[tuple[Any, Any]]:
    if value is None:
        return []
    if isinstance(value, dict):
        return [(key, value[key]) for key in sorted(value)]
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return [(number, number) for number in range(value)]
    raise TemplateError(f"range can't iterate over {format_value(value)}")


def shown(value: Any) -> str:
    return NO_VALUE if value is None else format_value(value)


def is_true(value: Any) -> bool:
    return bool(value)


# --- functions ----------------------------------------------------------------------------------------------------


def call(name: str, arguments: list[Any]) -> Any:
    """A built-in function. Raises TemplateError."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise TemplateError(f"function {name} is not supported")
    try:
        return function(*arguments)
    except TypeError:
        raise TemplateError(f"wrong number of args for {name}: got {len(arguments)}") from None


def _and(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _or(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _length(value: Any) -> int:
    if not isinstance(value, (dict, list, str)):
        what = "nil pointer" if value is None else f"type {_go_type(value)}"
        raise TemplateError(f"error calling len: len of {what}")
    return len(value.encode()) if isinstance(value, str) else len(value)


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if value is None:
            raise TemplateError("error calling index: index of untyped nil")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list):
            if not isinstance(key, int) or not 0 <= key < len(value):
                raise TemplateError(f"error calling index: error calling index: index out of range: {key}")
            value = value[key]
        else:
            raise TemplateError(f"error calling index: can't index item of type {_go_type(value)}")
    return value


def _slice(value: Any, *bounds: int) -> Any:
    start, stop = [*bounds, *(0, len(value))[len(bounds):]][:2]
    if not 0 <= start <= stop <= len(value):
        raise TemplateError(f"error calling slice: index out of range: {stop}")
    return value[start:stop]


def _exists(value: Any, *keys: Any) -> bool:
    try:
        return _index(value, *keys) is not None
    except TemplateError:
        return False


def _equal(one: Any, *others: Any) -> bool:
    return any(type(one) is type(other) and one == other for other in others)


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def function(one: Any, other: Any) -> bool:
        if type(one) is not type(other) or not isinstance(one, (int, float, str)):
            raise TemplateError("incompatible types for comparison")
        return compare(one, other)

    return function


def _print(*values: Any) -> str:
    """``fmt.Sprint``: a space between neighbours that are no strings."""
    text = ""
    for index, value in enumerate(values):
        both_other = index and not isinstance(value, str) and not isinstance(values[index - 1], str)
        text += (" " if both_other else "") + format_value(value)
    return text


def _printf(template: str, *values: Any) -> str:
    """``fmt.Sprintf`` with the verbs that JSON values need: %s %v %q %d %f %t, with flags and widths."""
    import re

    rest = list(values)

    def fill(match: re.Match[str]) -> str:
        verb = match[3]
        if verb == "%":
            return "%"
        if not rest:
            return f"%!{verb}(MISSING)"
        value = rest.pop(0)
        return _formatted(match[1] + (match[2] or ""), verb, value)

    return re.sub(r"%([-+ 0#]*)(\d*(?:\.\d+)?)([a-zA-Z%])", fill, template)


def _formatted(flags: str, verb: str, value: Any) -> str:
    from kubepy.cluster.goformat import quote, type_name

    if verb == "T":
        return type_name(value)
    if verb == "d" and isinstance(value, int):
        return f"%{flags}d" % value
    if verb in "feg" and isinstance(value, (int, float)):
        return f"%{flags}{verb}" % value
    if verb == "q" and isinstance(value, str):
        return f"%{flags}s" % quote(value)
    if verb in "svt":
        return f"%{flags}s" % format_value(value)
    return f"%!{verb}({type_name(value)}={format_value(value)})"


def _base64_decode(text: str) -> str:
    import base64
    import binascii

    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError) as error:
        raise TemplateError(f"error calling base64decode: {error}") from None


def _html(*values: Any) -> str:
    from html import escape

    return escape(_print(*values), quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def _url_query(*values: Any) -> str:
    from urllib.parse import quote_plus

    return quote_plus(_print(*values))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": _and, "or": _or, "not": lambda value: not value, "len": _length, "index": _index, "slice": _slice,
    "exists": _exists, "eq": _equal, "ne": lambda one, other: not _equal(one, other),
    "lt": _compared(lambda one, other: one < other), "le": _compared(lambda one, other: one <= other),
    "gt": _compared(lambda one, other: one > other), "ge": _compared(lambda one, other: one >= other),
    "print": _print, "println": lambda *values: " ".join(map(format_value, values)) + "\n", "printf": _printf,
    "base64decode": _base64_decode, "html": _html, "urlquery": _url_query,
}
