"""The options of a request: its query, and the body of a deletion, read and validated as an API
server does.

Upstream: ``apimachinery/pkg/runtime/conversion.go`` (how text becomes a value),
``pkg/apis/meta/v1/validation``, ``pkg/apis/meta/internalversion/validation``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.api.selectors import SelectorError, parse_fields, parse_labels
from kubepy.apiserver.request import (
    APPLY_PATCH,
    CreateOptions,
    DeleteOptions,
    PatchOptions,
    UpdateOptions,
    WriteOptions,
)
from kubepy.apiserver.validation.metadata import FIELD_MANAGER_MAX_LENGTH, validate_field_manager
from kubepy.quoting import quote
from kubepy.server.messages import HttpRequest, RequestInfo

_INT64 = 2**63
_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_POLICIES = ("Foreground", "Background", "Orphan")
_MATCHES = ("Exact", "NotOlderThan")


class ListParameters(NamedTuple):
    """``metav1.ListOptions``: the query of a list, a watch, or the deletion of a collection.

    :ivar limit: 0 for none.
    :ivar send_initial_events: None where the client does not say.
    """

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    watch: bool = False
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None


# --- values ---------------------------------------------------------------------------------------


def flag(request: HttpRequest, name: str) -> bool | None:
    """Return a boolean parameter, None if it is not there: all but ``0`` and ``false`` is true."""
    if name not in request.query:
        return None
    return request.parameter(name) != "0" and request.parameter(name).lower() != "false"


def integer(request: HttpRequest, name: str) -> int | None:
    """Return a number, None if it is not there. Raises BadRequest in the words of
    ``strconv.ParseInt``."""
    if name not in request.query:
        return None
    text = request.parameter(name)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise errors.BadRequest(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text) if len(digits) < 30 else _INT64
    if not -_INT64 <= number < _INT64:
        raise errors.BadRequest(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def _validate_dry_run(values: list[str]) -> list[FieldError]:
    return (
        [errors.not_supported("dryRun", values, ["All"])]
        if any(value != "All" for value in values)
        else []
    )


def _refuse(kind: str, problems: list[FieldError]) -> None:
    if problems:
        raise errors.invalid(f"{kind}.meta.k8s.io", "", problems)


# --- writes ---------------------------------------------------------------------------------------


def manager_of(user_agent: str) -> str:
    """Return the field manager of a client that names none: its User-Agent up to the first
    slash."""
    name = ""
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        if len((name + character).encode()) > FIELD_MANAGER_MAX_LENGTH:
            break
        name += character
    return name or "unknown"


def _write_options(request: HttpRequest, kind: str, problems: list[FieldError]) -> WriteOptions:
    """Return the options that creations, updates and patches share.

    :param problems: what else is wrong with them; it comes first.
    """
    dry_run, manager = request.query.get("dryRun", []), request.parameter("fieldManager")
    field_validation = request.parameter("fieldValidation")
    problems = [*problems, *validate_field_manager(manager), *_validate_dry_run(dry_run)]
    if field_validation not in _FIELD_VALIDATIONS:
        problems.append(
            errors.not_supported("fieldValidation", field_validation, _FIELD_VALIDATIONS)
        )
    _refuse(kind, problems)
    return WriteOptions(
        bool(dry_run),
        manager or manager_of(request.header("user-agent")),
        field_validation or "Warn",
        force=bool(flag(request, "force")),
    )


def create_options(request: HttpRequest) -> CreateOptions:
    """Read the options of a creation. Raises Invalid."""
    return _write_options(request, "CreateOptions", [])


def update_options(request: HttpRequest) -> UpdateOptions:
    """Read the options of an update. Raises Invalid."""
    return _write_options(request, "UpdateOptions", [])


def patch_options(request: HttpRequest, patch_type: str) -> PatchOptions:
    """Read the options of a patch of that media type. Raises Invalid."""
    problems = []
    if patch_type == APPLY_PATCH and not request.parameter("fieldManager"):
        problems.append(errors.required("fieldManager", "is required for apply patch"))
    if patch_type != APPLY_PATCH and flag(request, "force") is not None:
        problems.append(errors.forbidden_field("force", "may not be specified for non-apply patch"))
    return _write_options(request, "PatchOptions", problems)


# --- deletions ------------------------------------------------------------------------------------


class DeleteParameters(NamedTuple):
    """The options of a deletion, and those that only the answer depends on."""

    options: DeleteOptions
    orphan_dependents: bool | None = None


def deletion_of_query(request: HttpRequest) -> Object:
    """Return the DeleteOptions that a query makes, as the body of a request could have them. Raises
    BadRequest."""
    options: Object = {
        "gracePeriodSeconds": integer(request, "gracePeriodSeconds"),
        "orphanDependents": flag(request, "orphanDependents"),
        "ignoreStoreReadErrorWithClusterBreakingPotential": flag(
            request, "ignoreStoreReadErrorWithClusterBreakingPotential"
        ),
        "dryRun": request.query.get("dryRun"),
        "preconditions": {
            name: request.parameter(name)
            for name in ("uid", "resourceVersion")
            if request.parameter(name)
        },
    }
    if "propagationPolicy" in request.query:
        options["propagationPolicy"] = request.parameter("propagationPolicy")
    return options


def read_deletion(options: Object) -> DeleteParameters:
    """Validate ``metav1.DeleteOptions``. Raises Invalid."""
    policy, orphans = options.get("propagationPolicy"), options.get("orphanDependents")
    dry_run: list[str] = options.get("dryRun") or []
    problems: list[FieldError] = []
    if policy is not None and orphans is not None:
        problems.append(
            errors.invalid_value(
                "propagationPolicy",
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )

    if policy is not None and policy not in _POLICIES:
        problems.append(errors.not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    problems += _validate_dry_run(dry_run)
    _refuse("DeleteOptions", problems)
    if orphans is not None:
        policy = "Orphan" if orphans else "Background"
    preconditions: dict[str, Any] = options.get("preconditions") or {}
    return DeleteParameters(
        DeleteOptions(
            options.get("gracePeriodSeconds"),
            policy,
            preconditions.get("uid"),
            preconditions.get("resourceVersion"),
            bool(dry_run),
        ),
        orphans,
    )


# --- lists ----------------------------------------------------------------------------------------


def list_parameters(request: HttpRequest, info: RequestInfo) -> ListParameters:
    """Return the parameters of a list or watch; the name of an old-style watch of one object is a
    field selector.

    Raises BadRequest for what cannot be read, Invalid for what does not go together.
    """
    timeout_seconds = integer(request, "timeoutSeconds")  # upstream reads it before the limit
    parameters = ListParameters(
        request.parameter("labelSelector"),
        request.parameter("fieldSelector"),
        integer(request, "limit") or 0,
        request.parameter("continue"),
        request.parameter("resourceVersion"),
        request.parameter("resourceVersionMatch"),
        timeout_seconds,
        info.verb == "watch",
        bool(flag(request, "allowWatchBookmarks")),
        flag(request, "sendInitialEvents"),
    )
    try:
        parse_labels(parameters.label_selector)
        terms = parse_fields(parameters.field_selector)
    except SelectorError as error:
        raise errors.BadRequest(str(error)) from None

    if (
        parameters.send_initial_events is None
        and not parameters.resource_version_match
        and parameters.watch
        and (parameters.resource_version in ("", "0"))
    ):
        parameters = parameters._replace(
            send_initial_events=True, resource_version_match="NotOlderThan"
        )

    validate = _validate_watch if parameters.watch else _validate_list
    _refuse("ListOptions", validate(parameters))
    if not info.name:
        return parameters
    required = f"metadata.name={info.name}"
    if terms and not any(
        term.matches({"metadata.name": info.name})
        and term.field == "metadata.name"
        and not term.negated
        for term in terms
    ):
        raise errors.BadRequest("fieldSelector metadata.name doesn't match requested name")

    return parameters if terms else parameters._replace(field_selector=required)


def _validate_list(parameters: ListParameters) -> list[FieldError]:
    match, version, problems = parameters.resource_version_match, parameters.resource_version, []
    if match:
        field = "resourceVersionMatch"
        if not version:
            problems.append(
                errors.forbidden_field(
                    field, f"{field} is forbidden unless resourceVersion is provided"
                )
            )
        if parameters.continue_token:
            problems.append(
                errors.forbidden_field(field, f"{field} is forbidden when continue is provided")
            )
        if match not in _MATCHES:
            problems.append(errors.not_supported(field, match, [*_MATCHES, ""]))
        if match == "Exact" and version == "0":
            problems.append(
                errors.forbidden_field(
                    field, f'{field} "exact" is forbidden for resourceVersion "0"'
                )
            )

    if parameters.send_initial_events is not None:
        problems.append(
            errors.forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")
        )

    return problems


def _validate_watch(parameters: ListParameters) -> list[FieldError]:
    match, field, problems = parameters.resource_version_match, "resourceVersionMatch", []
    if parameters.send_initial_events is not None and match != "NotOlderThan":
        problems.append(
            errors.forbidden_field(
                field, f"sendInitialEvents requires setting {field} to NotOlderThan"
            )
        )

    if match:
        if parameters.send_initial_events is None:
            problems.append(
                errors.forbidden_field(
                    field, f"{field} is forbidden for watch unless sendInitialEvents is provided"
                )
            )
        if match != "NotOlderThan":
            problems.append(errors.not_supported(field, match, ["NotOlderThan"]))
        if parameters.continue_token:
            problems.append(
                errors.forbidden_field(field, f"{field} is forbidden when continue is provided")
            )

    return problems
