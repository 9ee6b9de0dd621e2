"""Functions of strings: cel-go's ``ext/strings.go`` and Kubernetes' regular expressions, URLs and
formats.

Upstream of the latter: ``apiserver/pkg/cel/library/{regex,urls,format}.go``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kubepy.api.cel.operators import to_string
from kubepy.api.cel.types import overload
from kubepy.api.cel.values import NONE, CelError, Duration, Format, OptionalValue, Uint
from kubepy.api.schema import formats
from kubepy.api.values import gourls, names
from kubepy.api.values.gonumbers import NumberError, atoi
from kubepy.api.values.goregex import GoRegex, GoRegexError, compile_go
from kubepy.api.values.gourls import GoUrl, GoUrlError
from kubepy.quoting import quote


@overload("string.contains(string) -> bool")
def _contains(text: str, part: str) -> bool:
    return part in text


@overload("string.startsWith(string) -> bool")
def _starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@overload("string.endsWith(string) -> bool")
def _ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@overload("string.charAt(int) -> string")
def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


@overload("string.indexOf(string) -> int", "string.indexOf(string, int) -> int")
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


@overload("string.lastIndexOf(string) -> int", "string.lastIndexOf(string, int) -> int")
def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is not None and not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if start is None:
        return text.rfind(part)
    return text.rfind(part, 0, start + len(part))


@overload("string.lowerAscii() -> string")
def _lower(text: str) -> str:
    return "".join(character.lower() if character.isascii() else character for character in text)


@overload("string.upperAscii() -> string")
def _upper(text: str) -> str:
    return "".join(character.upper() if character.isascii() else character for character in text)


@overload(
    "string.replace(string, string) -> string", "string.replace(string, string, int) -> string"
)
def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


@overload("string.split(string) -> list<string>", "string.split(string, int) -> list<string>")
def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        if limit < 0 or limit >= len(text):
            return list(text)
        return [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, -1 if limit < 0 else limit - 1)


@overload("string.substring(int) -> string", "string.substring(int, int) -> string")
def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    for index in (start, stop):
        if not 0 <= index <= len(text):
            raise CelError(f"index out of range: {index}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


@overload("string.trim() -> string")
def _trim(text: str) -> str:
    return text.strip()


@overload("list<string>.join() -> string", "list<string>.join(string) -> string")
def _join(items: list[str], separator: str = "") -> str:
    return separator.join(items)


@overload("strings.quote(string) -> string")
def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# --- format ---------------------------------------------------------------------------------------


@overload("string.format(list<dyn>) -> string")
def _format(pattern: str, args: list[Any]) -> str:
    """Format values: ``"%s is %d".format([a, b])``."""
    parts: list[str] = []
    rest = pattern
    used = 0
    while "%" in rest:
        before, _, rest = rest.partition("%")
        parts.append(before)
        if rest.startswith("%"):
            parts.append("%")
            rest = rest[1:]
            continue
        precision, verb, rest = _clause(rest)
        if used >= len(args):
            raise CelError(f"index {used} out of range")
        parts.append(_formatted(verb, precision, args[used]))
        used += 1

    return "".join([*parts, rest])


MAX_PRECISION = 1_000_000  # the largest of Go's fmt


def _clause(rest: str) -> tuple[int, str, str]:
    """Read a precision and a verb; return them and the text after them."""
    precision = 6
    if rest.startswith("."):
        digits = rest[1 : 1 + len(rest[1:]) - len(rest[1:].lstrip("0123456789"))]
        rest = rest[1 + len(digits) :]
        try:
            precision = atoi(digits or "0")
        except NumberError as error:
            raise CelError(f"error while converting precision to integer: {error}") from None
        if precision > MAX_PRECISION:
            raise CelError(f"precision {precision} is larger than {MAX_PRECISION}")
    if not rest:
        raise CelError("could not parse formatting clause: unexpected end of string")
    return precision, rest[0], rest[1:]


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _formatted(verb: str, precision: int, value: Any) -> str:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    match verb:
        case "s":
            return shown(value)
        case "d" if is_whole:
            return str(int(value))
        case "f" if isinstance(value, float) or is_whole:
            return f"{float(value):.{precision}f}"
        case "e" if isinstance(value, float) or is_whole:
            number, _, power = f"{float(value):.{precision}e}".partition("e")
            return f"{number}×10{power.removeprefix('+').translate(_RAISED)}"
        case "b" if isinstance(value, int):
            return f"{int(value):b}"
        case "o" if is_whole:
            return f"{int(value):o}"
        case "x" | "X" if is_whole:
            return format(int(value), verb)
        case "x" | "X" if isinstance(value, str | bytes):
            digits = (value.encode() if isinstance(value, str) else value).hex()
            if verb == "X":
                return digits.upper()
            return digits

    raise CelError(f"error during formatting: unrecognized formatting clause {quote(verb)}")


def shown(value: Any) -> str:
    """Format a value as ``%s`` does."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(_inner(item) for item in value)}]"
    if isinstance(value, dict):
        entries = (f"{_inner(key)}: {_inner(value[key])}" for key in sorted(value, key=str))
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, bool | int | float | str | bytes | Uint | datetime | Duration):
        return to_string(value)
    return str(value)


def _inner(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return shown(value)


# --- regular expressions --------------------------------------------------------------------------


def _compiled(pattern: str) -> GoRegex:
    try:
        return compile_go(pattern)
    except GoRegexError as error:
        raise CelError(str(error)) from None


@overload("string.matches(string) -> bool", "matches(string, string) -> bool")
def _matches(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text)


@overload("string.find(string) -> string")
def _find(text: str, pattern: str) -> str:
    return _compiled(pattern).find(text) or ""


@overload("string.findAll(string) -> list<string>", "string.findAll(string, int) -> list<string>")
def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _compiled(pattern).find_all(text, limit)


@overload("jsonpatch.escapeKey(string) -> string")
def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


# --- URLs -----------------------------------------------------------------------------------------


@overload("isURL(string) -> bool")
def _is_url(text: str) -> bool:
    return gourls.is_request_uri(text)


@overload("url(string) -> url")
def _url(text: str) -> GoUrl:
    try:
        gourls.parse_request_uri(text)
        return gourls.parse(text)
    except GoUrlError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


@overload("url.getScheme() -> string")
def _scheme(url: GoUrl) -> str:
    return url.scheme


@overload("url.getHost() -> string")
def _host(url: GoUrl) -> str:
    return url.host


@overload("url.getHostname() -> string")
def _hostname(url: GoUrl) -> str:
    return url.hostname


@overload("url.getPort() -> string")
def _port(url: GoUrl) -> str:
    return url.port


@overload("url.getEscapedPath() -> string")
def _path(url: GoUrl) -> str:
    return url.escaped_path


@overload("url.getQuery() -> map<string, list<string>>")
def _query(url: GoUrl) -> dict[str, list[str]]:
    return url.query()


# --- formats --------------------------------------------------------------------------------------

_NAME_CHECKS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": names.dns1123_label,
    "dns1123Subdomain": names.dns1123_subdomain,
    "dns1035Label": names.dns1035_label,
    "qualifiedName": names.qualified_name,
    "labelValue": names.label_value,
    "dns1123LabelPrefix": lambda text: names.dns1123_label(names.mask_trailing_dash(text)),
    "dns1123SubdomainPrefix": lambda text: names.dns1123_subdomain(names.mask_trailing_dash(text)),
    "dns1035LabelPrefix": lambda text: names.dns1035_label(names.mask_trailing_dash(text)),
}
# Formats of schemas that expressions may name too.
_SCHEMA_FORMATS = {
    "uri": "uri",
    "uuid": "uuid",
    "byte": "byte",
    "date": "date",
    "datetime": "date-time",
}
_NAMED = (*_NAME_CHECKS, *_SCHEMA_FORMATS)

for _name in _NAMED:
    overload(f"format.{_name}() -> format", namespace=True)(lambda name=_name: Format(name))


@overload("format.named(string) -> optional<format>", namespace=True)
def _named(name: str) -> OptionalValue:
    if name in _NAMED:
        return OptionalValue(Format(name), has_value=True)
    return NONE


@overload("format.validate(string) -> optional<list<string>>")
def validate_format(named: Format, text: str) -> OptionalValue:
    """Return the problems of a text that does not have the format, none if it has."""
    if named.name in _NAME_CHECKS:
        problems = _NAME_CHECKS[named.name](text)
    elif named.name == "uri":
        problems = _uri_problems(text)
    elif formats.fits(_SCHEMA_FORMATS[named.name], text):
        problems = []
    else:
        problems = [f"invalid {named.name}"]
    if problems:
        return OptionalValue(problems, has_value=True)
    return NONE


def _uri_problems(text: str) -> list[str]:
    """Return the parser's own reason: it says more than that the format does not fit."""
    try:
        gourls.parse_request_uri(text)
    except GoUrlError as error:
        return [str(error)]
    return []
