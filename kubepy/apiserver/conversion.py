"""Custom resources in another version of their definition
(``apiextensions-apiserver/pkg/apiserver/conversion``).

Storage keeps objects in the version that the definition names for it; a request sees them in its
own. Without a webhook only ``apiVersion`` differs. In both cases the result is pruned and defaulted
by the schema of its version.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any

from kubepy.api import errors
from kubepy.api.meta import Object, clone
from kubepy.apiserver.attempts import WebhookCalls
from kubepy.apiserver.customresources.strategy import CustomStrategy
from kubepy.apiserver.request import RequestContext
from kubepy.apiserver.validation.fields import Errors, validate_labels
from kubepy.apiserver.validation.metadata import validate_annotations
from kubepy.apiserver.webhookcalls import Answer, WebhookCall, resolve
from kubepy.quoting import quote
from kubepy.storage import Key

GROUP, KIND = "apiextensions.k8s.io", "ConversionReview"
TIMEOUT = 30  # seconds; a definition cannot choose
_GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "<nil>",
}
# What is invalid in one of many results, and in the only one, by the part of it.
ONE_OF_MANY = {
    "kind": "converted object at index {}",
    "object": "converted object at index {}",
    "metadata": "metadata in object at index {}",
}
ALONE = {"kind": "object at index {}", "object": "object", "metadata": "metadata"}


class ConversionError(Exception):
    """A result that is no conversion of the object, in upstream's words. ``part`` of it: kind,
    object or metadata."""

    def __init__(self, message: str, part: str = "kind") -> None:
        super().__init__(message)
        self.part = part


class Converter:
    """Converts the objects of one request.

    :param context: that of the request.
    :param get: reads an object: the Service of the webhook.
    """

    def __init__(
        self, webhooks: WebhookCalls, context: RequestContext, get: Callable[[Key], Object | None]
    ) -> None:
        self._webhooks = webhooks
        self._context = context
        self._get = get

    def convert(self, strategy: CustomStrategy, objects: Sequence[Object]) -> list[Object]:
        """Return custom resources in the version of a strategy; a webhook is called once for all of
        them.

        Raises Status, and CallsPending.
        """
        api_version = strategy.resource.api_version
        others = [obj for obj in objects if obj.get("apiVersion") != api_version]
        if not others:
            return list(objects)
        for obj in others:
            if str(obj.get("apiVersion")) not in strategy.versions:
                raise errors.Status(
                    f"request to convert CR from an invalid group/version: {obj.get('apiVersion')}"
                )

        if strategy.conversion.get("strategy") == "Webhook":
            converted = self._by_webhook(
                strategy.conversion.get("webhook") or {}, others, api_version
            )
        else:
            converted = [clone({**obj, "apiVersion": api_version}) for obj in others]

        completed = iter([strategy.complete(obj) for obj in converted])
        return [obj if obj.get("apiVersion") == api_version else next(completed) for obj in objects]

    def _by_webhook(self, webhook: Object, objects: list[Object], api_version: str) -> list[Object]:
        """Convert objects by a ConversionReview. Raises Status, and CallsPending."""
        first = objects[0]
        subject = (
            f"conversion webhook for {first.get('apiVersion', '')}, Kind={first.get('kind', '')}"
        )
        version = next(
            (
                version
                for version in webhook.get("conversionReviewVersions") or ()
                if version in ("v1", "v1beta1")
            ),
            None,
        )
        if version is None:
            raise errors.Status("no supported conversion review versions")
        client_config = dict(webhook.get("clientConfig") or {})
        if not b64decode(
            client_config.get("caBundle") or ""
        ).strip():  # bundles leave a blank one to be filled in
            client_config.pop("caBundle", None)

        endpoint = resolve(client_config, TIMEOUT, self._webhooks.services, self._get)
        request = json.dumps(
            {"desiredAPIVersion": api_version, "objects": objects}, separators=(",", ":")
        )
        call = WebhookCall("conversion", endpoint, TIMEOUT, f"{GROUP}/{version}", KIND, request)
        [answer] = self._webhooks.answers([call], self._context)
        try:
            results = converted_objects(answer)
        except ConversionError as error:
            raise errors.Status(f"{subject} failed: {error}") from None

        if len(results) != len(objects):
            raise errors.Status(
                f"{subject} returned {len(results)} objects, expected {len(objects)}"
            )

        converted = []
        for index, (obj, result) in enumerate(zip(objects, results, strict=True)):
            try:
                converted.append(checked(obj, result, api_version))
            except ConversionError as error:
                words = ONE_OF_MANY if len(objects) > 1 else ALONE
                invalid = words[error.part].format(index)
                raise errors.Status(f"{subject} returned invalid {invalid}: {error}") from None

        return converted


def converted_objects(answer: Answer) -> list[Any]:
    """Return the objects of an answer (``getConvertedObjectsFromResponse``). Raises
    ConversionError."""
    if answer.problem:
        raise ConversionError(answer.problem)
    review, response = answer.review, answer.review.get("response")
    if answer.sent_as == f"{GROUP}/v1" and (review.get("apiVersion"), review.get("kind")) != (
        answer.sent_as,
        KIND,
    ):
        got = str(review.get("apiVersion") or "")
        got = f"{got if '/' in got else f'/{got}'}, Kind={review.get('kind') or ''}"
        raise ConversionError(
            f"expected webhook response of {answer.sent_as}, Kind={KIND}, got {got}"
        )

    if response is None:
        raise ConversionError("no response provided")
    if not isinstance(response, dict):
        raise ConversionError(
            "json: cannot unmarshal into Go struct field ConversionReview.response of type "
            "v1.ConversionResponse"
        )

    if answer.sent_as == f"{GROUP}/v1" and response.get("uid", "") != answer.uid:
        raise ConversionError(
            f"expected response.uid={quote(answer.uid)}, got "
            f"{quote(str(response.get('uid') or ''))}"
        )

    result = response.get("result")
    status = result.get("status") or "" if isinstance(result, dict) else ""
    if status != "Success":
        message = result.get("message") if isinstance(result, dict) else ""
        raise ConversionError(
            str(message) if message else f"response.result.status was '{status}', not 'Success'"
        )

    objects = response.get("convertedObjects") or []
    if not isinstance(objects, list):
        raise ConversionError(
            "json: cannot unmarshal into Go struct field "
            "ConversionResponse.response.convertedObjects of type []runtime.RawExtension"
        )

    return objects


def checked(obj: Object, converted: Any, api_version: str) -> Object:
    """Check a converted object, and return it with the metadata that a conversion may not change.

    Labels and annotations are those of the result. Raises ConversionError.
    """
    if not isinstance(converted, dict):
        raise ConversionError(
            f"json: cannot unmarshal {_GO_TYPES[type(converted)]} into Go value of type "
            "map[string]interface {}"
        )

    if (version := str(converted.get("apiVersion") or "")) != api_version:
        raise ConversionError(f"invalid groupVersion (expected {api_version}, received {version})")
    if (kind := str(converted.get("kind") or "")) != obj["kind"]:
        raise ConversionError(f"invalid kind (expected {obj['kind']}, received {kind})")
    metadata, original = converted.get("metadata", {}), obj["metadata"]
    named = metadata if isinstance(metadata, dict) else {}
    for field, word in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        expected, actual = original.get(field, ""), named.get(field) or ""
        if expected != actual:
            raise ConversionError(f"must have the same {word}: {expected} != {actual}", "object")

    kept = clone(original)
    for field in ("labels", "annotations"):
        kept.pop(field, None)
        if (values := named.get(field)) is not None:
            check_values(field, values)
            if values != original.get(field):
                validate_values(field, values)
            kept[field] = dict(values)

    return {**converted, "metadata": kept}


def check_values(field: str, values: Any) -> None:
    """Check the types of labels or annotations. Raises ConversionError."""
    if not isinstance(values, dict):
        problem = f"invalid metadata.{field} of type {_GO_TYPES[type(values)]} in converted object"
        raise ConversionError(problem, "metadata")
    for name, value in values.items():
        if not isinstance(value, str):
            raise ConversionError(
                f"metadata.{field}[{name}] must be a string, but is {_GO_TYPES[type(value)]} in "
                "converted object",
                "metadata",
            )


def validate_values(field: str, values: Object) -> None:
    """Validate changed labels or annotations. Raises ConversionError."""
    problems: Errors = []
    if field == "labels":
        validate_labels(values, "metadata.labels", problems)
    else:
        problems += validate_annotations(values, "metadata.annotation")
    if problems:
        words = [str(problem) for problem in problems]
        raise ConversionError(words[0] if len(words) == 1 else f"[{', '.join(words)}]", "metadata")
