"""Admission webhooks: the AdmissionReviews that programs outside answer
(``apiserver/pkg/admission/plugin/webhook``).

:class:`MutatingWebhooks` lets mutating webhooks change an object, :func:`validate` lets validating
ones refuse it. The calls themselves are in :mod:`kubepy.apiserver.webhookcalls`.
"""

from __future__ import annotations

import base64
import binascii
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.patches.json_patch import OperationError
from kubepy.api.scheme import Resource
from kubepy.api.types import DecodeError
from kubepy.apiserver.admission.matching import (
    EXEMPT,
    matched_resource,
    namespace_matches,
    object_matches,
    request_attributes,
)
from kubepy.apiserver.admission.mutation import Reinvocation, patched_document, take_over
from kubepy.apiserver.managedfields import tracking
from kubepy.apiserver.server import Attributes
from kubepy.apiserver.webhookcalls import Answer, WebhookCall, allows_everything, resolve
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage.errors import YamlError
from kubepy.storage.yaml import read_json

with lazy_imports():  # the language of match conditions is loaded for webhooks that have some
    from kubepy.api.cel import values as cel_values
    from kubepy.apiserver.admission import policyparts

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
REVIEW_GROUP = "admission.k8s.io"
REVIEW_KIND = "AdmissionReview"
REVIEW_VERSIONS = ("v1", "v1beta1")
_EMPTY = (
    "subResource",
    "requestSubResource",
    "name",
    "namespace",
)  # fields that are left out when they are empty
_JSON_WORDS = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
}
_RESPONSE_TYPES: dict[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}


class CallingError(Exception):
    """A webhook that could not be asked (``ErrCallingWebhook``): its failurePolicy decides what
    follows."""


class Hook(NamedTuple):
    """One webhook of a configuration. ``uid`` tells it from all others."""

    uid: str
    spec: Object

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def ignores_failure(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")


class Invocation(NamedTuple):
    """A webhook that is to be called, with the resource in the version that it has asked for."""

    hook: Hook
    resource: Resource


class Review(NamedTuple):
    """The part of an answer that decides: a Status that refuses, or else a patch."""

    denial: errors.Status | None
    patch: list[Any]


def _hooks(configurations: Sequence[Object]) -> Iterator[Hook]:
    """Yield the webhooks of configurations, which come in the order of their names."""
    for configuration in configurations:
        for index, spec in enumerate(configuration.get("webhooks") or ()):
            yield Hook(f"{configuration['kind']}/{configuration['metadata']['name']}/{index}", spec)


def _invocation(hook: Hook, attributes: Attributes) -> Invocation | None:
    """Decide whether a webhook is called (``ShouldCallHook``). Raises Forbidden for conditions that
    fail."""
    spec = hook.spec
    if not namespace_matches(spec.get("namespaceSelector"), attributes) or not object_matches(
        spec.get("objectSelector"), attributes
    ):
        return None

    resource = matched_resource(
        spec.get("rules") or (), attributes, spec.get("matchPolicy") or "Equivalent"
    )
    if resource is None:
        return None
    if allows_everything(
        spec.get("clientConfig") or {},
        attributes.server.webhooks.services,
        attributes.transaction.get,
    ):
        return None
    if conditions := spec.get("matchConditions"):
        try:
            if not policyparts.conditions_hold(
                conditions, _in_version(attributes, resource), resource
            ):
                return None
        except cel_values.CelError as error:
            if hook.ignores_failure:
                return None
            raise errors.forbidden(attributes.resource.key, attributes.name, str(error)) from None

    return Invocation(hook, resource)


# --- mutating -------------------------------------------------------------------------------------


class MutatingWebhooks:
    """The mutating webhooks of one request, which may complete or refuse its object."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        is_exempt = attributes.resource.key in EXEMPT
        self._hooks = [] if is_exempt else list(_hooks(attributes.transaction.list(MUTATING)))
        self.reinvocation = Reinvocation()

    def admit(self) -> None:
        """Call all webhooks that are about the request. Raises Status."""
        for hook in self._hooks:
            _mutate(hook, self._attributes, self.reinvocation)
        self.reinvocation.end_pass(self._attributes.obj)

    def admit_again(self) -> None:
        """Call those that have asked for it, after whom something has changed. Raises Status."""
        self.reinvocation.begin_again(self._attributes.obj)
        for hook in self._hooks:
            if hook.uid in self.reinvocation.due:
                _mutate(hook, self._attributes, self.reinvocation)


def _mutate(hook: Hook, attributes: Attributes, reinvocation: Reinvocation) -> None:
    """Call a webhook if it is about the request, and apply its patch to the object. Raises
    Status."""
    invocation = _invocation(hook, attributes)
    if invocation is None:
        return
    _check_dry_run(hook, attributes)
    seen = _in_version(attributes, invocation.resource)
    [answer] = _answers([(invocation, seen)], attributes)
    try:
        review = _read(hook, answer, attributes, mutating=True)
    except CallingError as error:
        if not hook.ignores_failure:
            raise _failed_calling(hook, error) from None
        review = Review(None, [])

    if (
        review.denial is None
        and review.patch
        and apply_patch(invocation, review.patch, seen, attributes)
    ):
        reinvocation.note_change()

    if hook.spec.get("reinvocationPolicy") == "IfNeeded":
        reinvocation.add(hook.uid)
    if review.denial is not None:
        raise review.denial


def apply_patch(
    invocation: Invocation, patch: list[Any], seen: Attributes, attributes: Attributes
) -> bool:
    """Change the object of a request by a patch of what a webhook has seen of it; tell whether that
    changed it."""
    hook, resource = invocation
    if attributes.is_deletion:
        raise errors.internal_error(
            f"admission webhook {quote(hook.name)} attempted to modify the object, which is "
            "not supported for this operation"
        )

    try:
        patched = patched_document(seen.obj, patch)
        return take_over(patched, attributes, resource)
    except (OperationError, DecodeError) as error:
        raise errors.internal_error(str(error)) from None


# --- validating -----------------------------------------------------------------------------------


def validate(attributes: Attributes) -> None:
    """Ask all validating webhooks that are about the request, at the same time; the first refusal
    counts.

    Raises Status.
    """
    if attributes.resource.key in EXEMPT:
        return
    hooks = _hooks(attributes.transaction.list(VALIDATING))
    invocations = [
        invocation for hook in hooks if (invocation := _invocation(hook, attributes)) is not None
    ]
    refusals: list[errors.Status] = []
    calls = []
    for invocation in invocations:
        try:
            _check_dry_run(invocation.hook, attributes)
            calls.append((invocation, _in_version(attributes, invocation.resource)))
        except errors.BadRequest as error:
            refusals.append(error)

    for (invocation, _), answer in zip(calls, _answers(calls, attributes), strict=True):
        try:
            if (
                denial := _read(invocation.hook, answer, attributes, mutating=False).denial
            ) is not None:
                refusals.append(denial)
        except CallingError as error:
            if not invocation.hook.ignores_failure:
                refusals.append(_failed_calling(invocation.hook, error))

    if refusals:
        raise refusals[0]


# --- the call -------------------------------------------------------------------------------------


def _failed_calling(hook: Hook, error: CallingError) -> errors.InternalError:
    return errors.internal_error(f"failed calling webhook {quote(hook.name)}: {error}")


def _is_dry_run(attributes: Attributes) -> bool:
    """Return whether webhooks are to have no side effects."""
    return attributes.transaction.dry_run or attributes.context.is_prediction


def _check_dry_run(hook: Hook, attributes: Attributes) -> None:
    """Refuse a dry run that a webhook would not know for one. Raises BadRequest."""
    if _is_dry_run(attributes) and hook.spec.get("sideEffects") not in ("None", "NoneOnDryRun"):
        raise errors.BadRequest(f"admission webhook {quote(hook.name)} does not support dry run")


def _in_version(attributes: Attributes, resource: Resource) -> Attributes:
    """Return a request with its objects as a webhook sees them: in its version, with complete
    managedFields."""
    if attributes.body is not None:
        return attributes
    old = None if attributes.old is None else _shown(attributes.old, attributes, resource)
    return attributes._replace(obj=_shown(attributes.obj, attributes, resource), old=old)


def _shown(obj: Object, attributes: Attributes, resource: Resource) -> Object:
    strategy = attributes.scope.strategy
    if obj["metadata"].get("managedFields"):
        obj = tracking.shown(attributes.resource, strategy.field_schema(), obj)
    [shown] = attributes.server.in_version(
        resource, [obj], attributes.transaction.get, attributes.context
    )
    return shown


def _answers(
    invocations: Sequence[tuple[Invocation, Attributes]], attributes: Attributes
) -> list[Answer]:
    """Call the webhooks. Raises CallsPending."""
    if not invocations:
        return []
    server = attributes.server
    calls = []
    for (hook, resource), seen in invocations:
        timeout = hook.spec.get("timeoutSeconds") or 10
        endpoint = resolve(
            hook.spec.get("clientConfig") or {},
            timeout,
            server.webhooks.services,
            attributes.transaction.get,
        )
        version = next(
            (
                version
                for version in hook.spec.get("admissionReviewVersions") or ()
                if version in REVIEW_VERSIONS
            ),
            "v1",
        )
        request = json.dumps(admission_request(seen, resource), separators=(",", ":"))
        calls.append(
            WebhookCall(
                hook.uid, endpoint, timeout, f"{REVIEW_GROUP}/{version}", REVIEW_KIND, request
            )
        )

    return server.webhooks.answers(calls, attributes.context)


def admission_request(seen: Attributes, resource: Resource) -> Object:
    """Make the AdmissionRequest of a review, without its uid, in upstream's order of fields."""
    described = request_attributes(seen, resource)
    del described["dryRun"]
    described = {name: value for name, value in described.items() if value or name not in _EMPTY}
    return {
        **described,
        "object": None if seen.is_deletion else seen.obj,
        "oldObject": seen.obj if seen.is_deletion else seen.old,
        "dryRun": _is_dry_run(seen),
        "options": operation_options(seen),
    }


def operation_options(attributes: Attributes) -> Object:
    """Return the options of the request as its CreateOptions, UpdateOptions or DeleteOptions."""
    request = attributes.scope.request
    options: Object = {
        "kind": f"{attributes.operation.title()}Options",
        "apiVersion": "meta.k8s.io/v1",
    }
    if _is_dry_run(attributes):
        options["dryRun"] = ["All"]
    if not attributes.is_deletion:
        if manager := request.write_options.field_manager:
            options |= {
                "fieldManager": manager,
                "fieldValidation": request.write_options.field_validation,
            }
        return options

    deletion = request.delete_options
    preconditions = {"uid": deletion.uid, "resourceVersion": deletion.resource_version}
    optional = {
        "gracePeriodSeconds": deletion.grace_period_seconds,
        "propagationPolicy": deletion.propagation_policy,
        "preconditions": {name: value for name, value in preconditions.items() if value is not None}
        or None,
    }
    return options | {name: value for name, value in optional.items() if value is not None}


# --- the answer -----------------------------------------------------------------------------------


def _read(hook: Hook, answer: Answer, attributes: Attributes, *, mutating: bool) -> Review:
    """Check an answer, and print its warnings (``VerifyAdmissionResponse``). Raises
    CallingError."""
    if answer.problem:
        raise CallingError(f"{answer.stage}: {answer.problem}")
    response = _response(answer.review)
    version = str(answer.review.get("apiVersion") or "")
    is_v1 = answer.sent_as == f"{REVIEW_GROUP}/v1"
    try:
        if response is None:
            raise ValueError("webhook response was absent")
        if is_v1:
            check_v1_response(response, answer, version, mutating=mutating)
    except ValueError as error:
        raise CallingError(f"received invalid webhook response: {error}") from None

    patch = _patch(response) if mutating else []
    for warning in map(str, response.get("warnings") or ()):
        if warning and not any(
            unicodedata.category(letter) == "Cc" for letter in warning
        ):  # no header can hold it
            attributes.context.warn(warning)

    if response.get("allowed"):
        return Review(None, patch)
    return Review(denial_of(hook, response.get("status")), [])


def _response(review: Mapping[str, Any]) -> Object | None:
    """Return the response of a review, with fields of the right types. Raises CallingError."""
    response = review.get("response")
    if response is None:
        return None
    if not isinstance(response, dict):
        raise _mistyped(response, "AdmissionReview.response", "v1.AdmissionResponse")
    for name, (type_, go_type) in _RESPONSE_TYPES.items():
        if (value := response.get(name)) is not None and not isinstance(value, type_):
            raise _mistyped(value, f"AdmissionResponse.response.{name}", go_type)
    status = response.get("status") or {}
    for name, (type_, go_type) in {
        "message": (str, "string"),
        "reason": (str, "v1.StatusReason"),
        "code": (int, "int32"),
        "details": (dict, "v1.StatusDetails"),
    }.items():
        if (value := status.get(name)) is not None and not isinstance(value, type_):
            raise _mistyped(value, f"Status.response.status.{name}", go_type)

    return response


def _mistyped(value: object, field: str, go_type: str) -> CallingError:
    return CallingError(
        f"failed to call webhook: json: cannot unmarshal {_JSON_WORDS[type(value)]} into Go struct "
        f"field {field} of type {go_type}"
    )


def check_v1_response(response: Object, answer: Answer, version: str, *, mutating: bool) -> None:
    """Check what ``v1`` requires of a response. Raises ValueError."""
    if response.get("uid", "") != answer.uid:
        raise ValueError(
            f"expected response.uid={quote(answer.uid)}, got {quote(response.get('uid') or '')}"
        )

    kind = str(answer.review.get("kind") or "")
    if version != f"{REVIEW_GROUP}/v1" or kind != REVIEW_KIND:
        got = version if "/" in version else f"/{version}"
        raise ValueError(
            f"expected webhook response of {REVIEW_GROUP}/v1, Kind={REVIEW_KIND}, got {got}, "
            f"Kind={kind}"
        )

    patch = response.get("patch")
    patch_type = response.get("patchType")
    if not mutating:
        for name, value in (("patch", patch), ("patchType", patch_type)):
            if value or (name == "patchType" and value is not None):
                raise ValueError(f"validating webhook may not return response.{name}")
        return

    if patch and patch_type is None:
        raise ValueError("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise ValueError("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise ValueError('webhook returned invalid response.patchType of ""')
    if patch and response.get("allowed") and patch_type != "JSONPatch":
        raise CallingError(f"unsupported patch type {quote(str(patch_type))}")


def _patch(response: Object) -> list[Any]:
    """Decode the JSON patch of a response. Raises CallingError."""
    text = response.get("patch") or ""
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error:
        at = next(
            (at for at, char in enumerate(text) if not (char.isalnum() or char in "+/=")),
            len(text) // 4 * 4,
        )
        raise CallingError(
            f"failed to call webhook: illegal base64 data at input byte {at}"
        ) from None

    if not content or not response.get("allowed"):
        return []
    undecodable = "received undecodable patch in webhook response: "
    try:
        patch = read_json(content.decode(errors="replace"))
    except YamlError as error:
        raise CallingError(f"{undecodable}{error.message}") from None

    if patch is None:
        return []
    if not isinstance(patch, list):
        word = _JSON_WORDS[type(patch)]
        raise CallingError(
            f"{undecodable}json: cannot unmarshal {word} into Go value of type jsonpatch.Patch"
        )

    for operation in patch:
        if not isinstance(operation, dict):
            word = _JSON_WORDS.get(type(operation), "null")
            raise CallingError(
                f"{undecodable}json: cannot unmarshal {word} into Go value of type "
                f"jsonpatch.Operation"
            )

    return patch


def denial_of(hook: Hook, status: Object | None) -> errors.Status:
    """Make the error of a request that a webhook has denied (``ToStatusErr``)."""
    status = status or {}
    message = status.get("message") or status.get("reason")
    reason = status.get("reason") or ""
    denied = f"admission webhook {quote(hook.name)} denied the request"
    code = status.get("code") or 0
    details = status.get("details") or {}
    kind = str(details.get("kind") or "")
    group = str(details.get("group") or "")
    causes = [
        errors.Cause(
            str(cause.get("reason", "")), str(cause.get("message", "")), str(cause.get("field", ""))
        )
        for cause in details.get("causes") or ()
        if isinstance(cause, dict)
    ]
    return errors.status_of(
        f"{denied}: {message}" if message else f"{denied} without explanation",
        reason,
        max(code, 400),
        name=str(details.get("name") or ""),
        kind=f"{kind}.{group}" if kind and group else kind,
        causes=causes,
    )
