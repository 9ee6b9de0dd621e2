"""The errors that the API answers with: a tree of exceptions, and the functions that word them as
upstream does.

    Status                        500, or what the answer says: ``metav1.Status`` with ``status: Failure``
    ├── BadRequest                400
    ├── Unauthorized              401
    ├── Forbidden                 403
    ├── NotFound                  404
    ├── MethodNotAllowed          405
    ├── NotAcceptable             406
    ├── AlreadyExists             409
    ├── Conflict                  409
    ├── Expired                   410
    ├── RequestEntityTooLarge     413
    ├── UnsupportedMediaType      415
    ├── Invalid                   422
    ├── TooManyRequests           429
    ├── InternalError             500
    ├── ServiceUnavailable        503
    └── Timeout                   504

The words are those of upstream's ``k8s.io/apimachinery/pkg/api/errors`` and
``util/validation/field``. The CLI turns a Status into kubectl's line in one place,
``kubepy.cli.errors``.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api.values import goformat

INTERNAL_ERROR = "Internal error occurred: "


class Cause(NamedTuple):
    """One entry of ``status.details.causes``."""

    reason: str
    message: str
    field: str = ""


class Status(Exception):
    """An API error. ``code`` is the HTTP status, ``reason`` the StatusReason; each class has its
    own.

    ``resource`` is the plural with its group (``daemonsets.apps``), ``kind`` the qualified kind
    (``DaemonSet.apps``).
    """

    code = 500
    reason = ""
    continue_token = ""  # with which a list in chunks that has expired may go on all the same
    has_details = False  # the answer has ``details`` even if they are empty

    def __init__(
        self,
        message: str,
        *,
        name: str = "",
        kind: str = "",
        resource: str = "",
        causes: Sequence[Cause] = (),
        retry_after_seconds: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.name = name
        self.kind = kind
        self.resource = resource
        self.causes = causes
        self.retry_after_seconds = retry_after_seconds

    def __str__(self) -> str:
        return self.message

    def with_message(self, message: str) -> Self:
        """Return the same error with another message."""
        status = type(self)(
            message,
            name=self.name,
            kind=self.kind,
            resource=self.resource,
            causes=self.causes,
            retry_after_seconds=self.retry_after_seconds,
        )
        status.code = self.code
        status.reason = self.reason
        return status

    def as_object(self) -> dict[str, Any]:
        """Return the error as a server sends it: a ``metav1.Status``, its fields in Go's order."""
        subject, _, group = (self.kind or self.resource).partition(".")
        causes = [
            _without_empty({"reason": cause.reason, "message": cause.message, "field": cause.field})
            for cause in self.causes
        ]
        details = _without_empty(
            {
                "name": self.name,
                "group": group,
                "kind": subject,
                "causes": causes,
                "retryAfterSeconds": self.retry_after_seconds,
            }
        )
        if isinstance(self, InternalError) and not details:
            details = {"causes": [{"message": self.message.removeprefix(INTERNAL_ERROR)}]}
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        return {
            **_without_empty(status),
            **({"details": details} if details or self.has_details else {}),
            "code": self.code,
        }


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value or name == "metadata"}


class BadRequest(Status):
    code = 400
    reason = "BadRequest"


class Unauthorized(Status):
    code = 401
    reason = "Unauthorized"


class Forbidden(Status):
    code = 403
    reason = "Forbidden"
    has_details = True


class NotFound(Status):
    """The object does not exist, or the server has no resource at the path."""

    code = 404
    reason = "NotFound"
    has_details = True


class MethodNotAllowed(Status):
    """The resource at the path does not support the verb of the request.

    :ivar allow: the methods that it supports.
    """

    code = 405
    reason = "MethodNotAllowed"
    has_details = True
    allow: Sequence[str] = ()


class NotAcceptable(Status):
    """There is no representation that the client accepts."""

    code = 406
    reason = "NotAcceptable"


class AlreadyExists(Status):
    code = 409
    reason = "AlreadyExists"
    has_details = True


class Conflict(Status):
    """The object is not in the state that the request expects; nothing was changed."""

    code = 409
    reason = "Conflict"
    has_details = True


class Expired(Status):
    """The requested changes are no longer known; the client must list again."""

    code = 410
    reason = "Expired"


class RequestEntityTooLarge(Status):
    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(Status):
    code = 415
    reason = "UnsupportedMediaType"


class Invalid(Status):
    """Fields of the object are refused; ``causes`` names them."""

    code = 422
    reason = "Invalid"
    has_details = True


class TooManyRequests(Status):
    """The request may succeed later: an eviction that a PodDisruptionBudget does not allow now."""

    code = 429
    reason = "TooManyRequests"


class InternalError(Status):
    code = 500
    reason = "InternalError"


class ServiceUnavailable(Status):
    code = 503
    reason = "ServiceUnavailable"


class Timeout(Status):
    """The request was not answered in time; it may have been carried out nevertheless."""

    code = 504
    reason = "Timeout"
    has_details = True


def status_of(
    message: str,
    reason: str,
    code: int,
    *,
    name: str = "",
    kind: str = "",
    causes: Sequence[Cause] = (),
) -> Status:
    """Make the error of a Status that another server has answered with; its reason decides about
    the class."""
    known: type[Status] = next(
        (known for known in Status.__subclasses__() if known.reason == reason != ""), Status
    )
    status = known(message, name=name, kind=kind, causes=causes)
    status.code = code
    status.reason = reason
    return status


def not_found(resource: str, name: str) -> NotFound:
    return NotFound(f"{resource} {quote(name)} not found", name=name, resource=resource)


def already_exists(resource: str, name: str) -> AlreadyExists:
    return AlreadyExists(f"{resource} {quote(name)} already exists", name=name, resource=resource)


def conflict(resource: str, name: str, detail: str) -> Conflict:
    message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {detail}"
    return Conflict(message, name=name, resource=resource)


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def forbidden(resource: str, name: str, detail: str, causes: Sequence[Cause] = ()) -> Forbidden:
    """Make ``resource "name" is forbidden: detail``, or without a name
    ``resource is forbidden: detail``."""
    subject = f"{resource} {quote(name)}" if name else resource
    return Forbidden(
        f"{subject} is forbidden: {detail}", name=name, resource=resource, causes=causes
    )


def method_not_allowed(allow: Sequence[str] = ()) -> MethodNotAllowed:
    """Make the answer to a verb that a served path does not have.

    :param allow: the HTTP methods that it has.
    """
    error = MethodNotAllowed("the server does not allow this method on the requested resource")
    error.allow = allow
    return error


def method_not_supported(resource: str, action: str) -> MethodNotAllowed:
    return MethodNotAllowed(
        f"{action} is not supported on resources of kind {quote(resource)}", resource=resource
    )


def internal_error(detail: str) -> InternalError:
    return InternalError(f"{INTERNAL_ERROR}{detail}")


def no_such_resource() -> NotFound:
    """Make the answer to a path that the server does not serve, such as a subresource that the kind
    does not have."""
    return NotFound("the server could not find the requested resource")


def invalid(kind: str, name: str, errors: Iterable[FieldError]) -> Invalid:
    """Make ``Kind.group "name" is invalid: …``; ``kind`` carries its group: ``DaemonSet.apps``."""
    errors = list(errors)
    causes = [Cause(error.reason, error.body(), printable(error.field)) for error in errors]
    lines = list(
        dict.fromkeys(str(error) for error in errors)
    )  # upstream's aggregate drops repeats
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return Invalid(f"{kind} {quote(name)} is invalid: {text}", name=name, kind=kind, causes=causes)


# --- field errors ---------------------------------------------------------------------------------


def show_value(value: Any) -> str:
    """Print a value as upstream's ``field.Error`` does: strings quoted (``%q``), floats as Go does,
    the rest as JSON.

    Maps are in the order of their keys, structs (Ordered) in that of their fields.
    """
    if isinstance(value, str):
        return goformat.quote(value)
    if isinstance(value, float):
        return goformat.format_float(value)
    return goformat.to_json(goformat.in_go_order(value), sort_keys=False)


class FieldError(NamedTuple):
    """One error at a field path, ``field.Error`` upstream. ``reason`` is its CauseType
    (``FieldValueInvalid``…)."""

    reason: str
    field: str
    text: str

    def body(self) -> str:
        return self.text

    def __str__(self) -> str:
        return f"{printable(self.field)}: {self.text}"


WHOLE_OBJECT = "[]"  # the path of an error about no field in particular: ``field.NewPath("")``


def _detailed(head: str, detail: str) -> str:
    if detail:
        return f"{head}: {detail}"
    return head


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, _detailed("Required value", detail))


def invalid_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(
        "FieldValueInvalid", path, _detailed(f"Invalid value: {show_value(value)}", detail)
    )


def invalid_without_value(path: str, detail: str) -> FieldError:
    """Make an error about a value that is too large to be shown (``OmitValueType``)."""
    return FieldError("FieldValueInvalid", path, _detailed("Invalid value", detail))


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(
        "FieldValueTypeInvalid", path, _detailed(f"Invalid value: {show_value(value)}", detail)
    )


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Make an error that lists the supported values in the order given; upstream sorts sets before
    it passes them."""
    values = ", ".join(show_value(supported_value) for supported_value in supported)
    text = f"Unsupported value: {show_value(value)}" + (
        f": supported values: {values}" if values else ""
    )
    return FieldError("FieldValueNotSupported", path, text)


def forbidden_field(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, _detailed("Forbidden", detail))


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", path, f"Duplicate value: {show_value(value)}")


def field_not_found(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", path, f"Not found: {show_value(value)}")


def too_long(path: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    return FieldError("FieldValueTooLong", path, f"Too long: may not be more than {limit} {unit}")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError(
        "FieldValueTooMany", path, f"Too many: {actual}: must have at most {limit} {unit}"
    )
