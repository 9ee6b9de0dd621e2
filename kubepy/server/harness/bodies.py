"""The bodies of requests for harnesses: JSON objects with few fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.server.messages import HttpRequest

Check = Callable[[Any], bool]
REASON_OF_UNKNOWN = "FieldValueForbidden"


class BodyField(NamedTuple):
    """A field of a body.

    :ivar form: says what its value must be.
    :ivar default: the value where the field is missing; None: it must be there.
    """

    is_good: Check
    form: str
    default: Any = None


def is_text(value: Any) -> bool:
    """Tell whether a value is a text that UTF-8 can encode, without the character 0."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_filled_text(value: Any) -> bool:
    return is_text(value) and bool(value.strip())


def is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def read_body(request: HttpRequest, kind: str, fields: Mapping[str, BodyField]) -> dict[str, Any]:
    """Return the fields of a body; an empty body has none. Raises BadRequest, Invalid.

    :param kind: names the body in errors: ``Reset``.
    """
    content = _parse(request.body)
    problems = [
        errors.forbidden_field(_shown(name), _known(fields))
        for name in content
        if name not in fields
    ]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        value = content.get(name)
        if value is None:  # as in all of the API a null is no value
            value = field.default
            if value is None:
                problems.append(errors.required(name, f"must be {field.form}"))
        elif not field.is_good(value):
            problems.append(errors.invalid_value(name, value, f"must be {field.form}"))
        values[name] = value
    if problems:
        raise errors.invalid(kind, "", problems)
    return values


def _parse(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        content = json.loads(body)
    except ValueError as error:  # also a text that is not UTF-8
        raise errors.BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise errors.BadRequest("the body must be a JSON object")
    return content


def _shown(name: str) -> str:
    """Return the name of an unknown field, as an error can show it."""
    return name.encode(errors="replace").decode()


def _known(fields: Mapping[str, BodyField]) -> str:
    if not fields:
        return "unknown field: there are none"
    return f"unknown field: must be one of {', '.join(fields)}"
