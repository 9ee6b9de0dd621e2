"""What the API answers when it refuses: one exception, :class:`Status`, and the constructors of its reasons.

The words are upstream's ``k8s.io/apimachinery/pkg/api/errors`` and ``util/validation/field``. The CLI turns a Status
into kubectl's line in one place (``kubepy.cli.errors``); nothing else formats them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubepy.quoting import printable, quote


class Cause(NamedTuple):
    """One entry of ``status.details.causes``."""

    reason: str
    message: str
    field: str = ""


class Status(Exception):
    """An API error: ``metav1.Status`` with ``status: Failure``.

    ``resource`` is the plural with its group (``daemonsets.apps``), ``kind`` the qualified kind (``DaemonSet.apps``).
    """

    def __init__(self, code: int, reason: str, message: str, *, name: str = "", kind: str = "", resource: str = "",
                 causes: Sequence[Cause] = (), retry_after_seconds: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.name = name
        self.kind = kind
        self.resource = resource
        self.causes = causes
        self.retry_after_seconds = retry_after_seconds

    def __str__(self) -> str:
        return self.message


def not_found(resource: str, name: str) -> Status:
    return Status(404, "NotFound", f"{resource} {quote(name)} not found", name=name, resource=resource)


def already_exists(resource: str, name: str) -> Status:
    return Status(409, "AlreadyExists", f"{resource} {quote(name)} already exists", name=name, resource=resource)


def conflict(resource: str, name: str, why: str) -> Status:
    message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {why}"
    return Status(409, "Conflict", message, name=name, resource=resource)


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def bad_request(message: str) -> Status:
    return Status(400, "BadRequest", message)


def forbidden(resource: str, name: str, why: str, causes: Sequence[Cause] = ()) -> Status:
    """``resource "name" is forbidden: why`` (without a name: ``resource is forbidden: why``)."""
    subject = f"{resource} {quote(name)}" if name else resource
    message = f"{subject} is forbidden: {why}"
    return Status(403, "Forbidden", message, name=name, resource=resource, causes=causes)


def method_not_allowed() -> Status:
    """What a request gets whose path is served, but not to its verb."""
    return Status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def method_not_supported(resource: str, action: str) -> Status:
    return Status(405, "MethodNotAllowed", f"{action} is not supported on resources of kind {quote(resource)}")


def too_many_requests(message: str, retry_after_seconds: int = 0, causes: Sequence[Cause] = ()) -> Status:
    return Status(429, "TooManyRequests", message, causes=causes, retry_after_seconds=retry_after_seconds)


def unsupported_media_type(message: str) -> Status:
    return Status(415, "UnsupportedMediaType", message)


def internal_error(why: str) -> Status:
    return Status(500, "InternalError", f"Internal error occurred: {why}")


def no_such_resource() -> Status:
    """What a request to a path that the server does not serve gets (a missing subresource, for one)."""
    return Status(404, "NotFound", "the server could not find the requested resource")


def invalid(kind: str, name: str, errors: Iterable[FieldError]) -> Status:
    """``Kind.group "name" is invalid: ...`` (422); ``kind`` carries its group: ``DaemonSet.apps``."""
    found = list(errors)
    causes = [Cause(error.reason, error.body(), printable(error.field)) for error in found]
    lines = list(dict.fromkeys(str(error) for error in found))  # upstream's aggregate drops repeats
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    message = f"{kind} {quote(name)} is invalid: {text}"
    return Status(422, "Invalid", message, name=name, kind=kind, causes=causes)


# --- field errors -------------------------------------------------------------------------------------------------


def show_value(value: Any) -> str:
    """A value as upstream's ``field.Error`` prints it: strings quoted (``%q``), floats as Go prints them, the rest as
    ``encoding/json`` writes it: maps by their keys, structs (Ordered) by their fields."""
    from kubepy.api.values.goformat import format_float, in_go_order, quote, to_json

    if isinstance(value, str):
        return quote(value)
    return format_float(value) if isinstance(value, float) else to_json(in_go_order(value), sort_keys=False)


class FieldError(NamedTuple):
    """One error at a field path, ``field.Error`` upstream. ``reason`` is its CauseType (``FieldValueInvalid``…)."""

    reason: str
    field: str
    text: str

    def body(self) -> str:
        return self.text

    def __str__(self) -> str:
        return f"{printable(self.field)}: {self.text}"


WHOLE_OBJECT = "[]"  # the path of an error about no field in particular: ``field.NewPath("")``


def _detailed(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, _detailed("Required value", detail))


def invalid_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, _detailed(f"Invalid value: {show_value(value)}", detail))


def invalid_without_value(path: str, detail: str) -> FieldError:
    """The same where the value is too large to be shown (``OmitValueType``)."""
    return FieldError("FieldValueInvalid", path, _detailed("Invalid value", detail))


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueTypeInvalid", path, _detailed(f"Invalid value: {show_value(value)}", detail))


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The supported values are printed in the order given; upstream sorts sets before it passes them."""
    values = ", ".join(show_value(one) for one in supported)
    text = f"Unsupported value: {show_value(value)}" + (f": supported values: {values}" if values else "")
    return FieldError("FieldValueNotSupported", path, text)


def forbidden_field(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, _detailed("Forbidden", detail))


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", path, f"Duplicate value: {show_value(value)}")


def field_not_found(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", path, f"Not found: {show_value(value)}")


def too_long(path: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    return FieldError("FieldValueTooMany", path, f"Too many: {actual}: must have at most {limit} items")
