"""Reviews of access (``pkg/apis/authorization/validation``)."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api import selectors
from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.goformat import Ordered
from kubepy.apiserver.validation.fields import (
    Errors,
    json_view,
    validate_label_name,
    validate_label_values,
    validate_operator,
)

SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def validate_access(spec: Object, *, of_subject: bool = False) -> list[FieldError]:
    """Check that a review is about a resource or about a path, not both.

    :param of_subject: it is about another user, who must be named.
    """
    errors: Errors = []
    resource = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        errors.append(
            invalid_value(
                "spec.nonResourceAttributes",
                _path_view(path),
                "cannot be specified in combination with resourceAttributes",
            )
        )

    if resource is None and path is None:
        errors.append(
            invalid_value(
                "spec.resourceAttributes",
                None,
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )
        )

    if of_subject and not spec.get("user") and not spec.get("groups"):
        errors.append(
            invalid_value(
                "spec.user", spec.get("user", ""), "at least one of user or group must be specified"
            )
        )

    for kind in ("fieldSelector", "labelSelector"):
        selector = (resource or {}).get(kind)
        if selector is not None:
            _validate_selector_attributes(selector, f"spec.resourceAttributes.{kind}", errors)

    return errors


def _path_view(path: Object) -> Ordered:
    """Return the attributes of a path as Go prints their internal type."""
    return Ordered({"Path": path.get("path", ""), "Verb": path.get("verb", "")})


def _validate_selector_attributes(selector: Object, path: str, errors: Errors) -> None:
    raw = selector.get("rawSelector", "")
    requirements = nested_list(selector, "requirements")
    if raw and requirements:
        errors.append(
            invalid_value(
                f"{path}.rawSelector", raw, "may not specified at the same time as requirements"
            )
        )

    if not raw and not requirements:
        errors.append(
            required(
                f"{path}.requirements",
                f"when {path} is specified, requirements or rawSelector is required",
            )
        )

    is_of_fields = path.endswith("fieldSelector")
    for index, requirement in enumerate(requirements):
        at = f"{path}.requirements[{index}]"
        if is_of_fields and not requirement.get("key"):
            errors.append(required(f"{at}.key", "must be specified"))
        if requirement.get("operator") in SELECTOR_OPERATORS:  # newer clients may know others
            validate_operator(requirement, at, errors)
        if not is_of_fields:
            validate_label_name(requirement.get("key", ""), f"{at}.key", errors)
            validate_label_values(requirement.get("values"), f"{at}.values", errors)


def validate_empty_metadata(
    metadata: Object, detail: str = "must be empty", ignored: tuple[str, ...] = ("managedFields",)
) -> list[FieldError]:
    if all(field in ignored for field in metadata):
        return []
    return [invalid_value("metadata", json_view("meta/v1.ObjectMeta", metadata), detail)]


def validate_local_access(review: Object) -> list[FieldError]:
    """Check that a review is about the namespace in which it is made."""
    metadata = review["metadata"]
    spec = review["spec"]

    namespace = metadata.get("namespace", "")
    asked = spec.get("resourceAttributes")
    errors = validate_empty_metadata(
        metadata, "must be empty except for namespace", ("managedFields", "namespace")
    )
    if asked is not None and asked.get("namespace", "") != namespace:
        errors.append(
            invalid_value(
                "spec.resourceAttributes.namespace",
                asked.get("namespace", ""),
                "must match metadata.namespace",
            )
        )

    path = spec.get("nonResourceAttributes")
    if path is not None:
        errors.append(
            invalid_value(
                "spec.nonResourceAttributes", _path_view(path), "disallowed on this kind of request"
            )
        )

    return errors


def ignored_selectors(attributes: Object) -> Iterator[tuple[str, str]]:
    """Yield the selectors of a review that cannot be read, each with what becomes of it."""

    def is_field(requirement: Object) -> bool:
        return (
            requirement.get("operator") in ("In", "NotIn")
            and len(nested_list(requirement, "values")) == 1
        )

    def is_label(requirement: Object) -> bool:
        return requirement.get("operator") in SELECTOR_OPERATORS

    for kind, is_readable, parse in (
        ("fieldSelector", is_field, selectors.parse_fields),
        ("labelSelector", is_label, selectors.parse_labels),
    ):
        selector = attributes.get(kind) or {}
        requirements = nested_list(selector, "requirements")
        readable = [requirement for requirement in requirements if is_readable(requirement)]
        if len(readable) < len(requirements):
            yield kind, "partially ignored" if readable else "ignored"
        elif raw := selector.get("rawSelector"):
            try:
                parse(raw)
            except selectors.SelectorError:
                yield kind, "ignored"
