"""StorageClasses and VolumeAttributesClasses (``pkg/apis/storage/validation``)."""

from __future__ import annotations

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.kinds.core.pods.validation.warnings import DEPRECATED_LABELS
from kubepy.apiserver.validation.fields import (
    Errors,
    label_key,
    semantically_equal,
    validate_format,
    validate_immutable,
    validate_label_name,
    validate_optional_choice,
)

MAX_PARAMETERS = 512
MAX_PARAMETER_BYTES = 256 * 1024


def validate_storage_class(storage_class: Object) -> list[FieldError]:
    errors: Errors = []
    _validate_driver_name(storage_class.get("provisioner", ""), "provisioner", errors)
    _validate_parameters(storage_class.get("parameters") or {}, errors)
    if policy := storage_class.get("reclaimPolicy"):
        validate_optional_choice(policy, ("Delete", "Retain"), "reclaimPolicy", errors)
    mode = storage_class.get("volumeBindingMode")
    if mode is None:
        errors.append(required("volumeBindingMode"))
    validate_optional_choice(
        mode, ("Immediate", "WaitForFirstConsumer"), "volumeBindingMode", errors
    )

    known_terms: list[dict[str, set[str]]] = []
    for index, term in enumerate(nested_list(storage_class, "allowedTopologies")):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        expressions: dict[str, set[str]] = {}
        for position, expression in enumerate(nested_list(term, "matchLabelExpressions")):
            at = f"{path}[{position}]"
            key = expression.get("key", "")
            values = nested_list(expression, "values")
            if not values:
                errors.append(required(f"{at}.values"))
            errors.extend(
                duplicate(f"{at}.values[{number}]", value)
                for number, value in enumerate(values)
                if value in values[:number]
            )
            validate_label_name(key, f"{at}.key", errors)
            if key in expressions:
                errors.append(duplicate(f"{at}.key", key))
            expressions[key] = set(values)
        if (
            not expressions or expressions in known_terms
        ):  # upstream: a term without expressions is a duplicate too
            errors.append(duplicate(path, ""))
        known_terms.append(expressions)

    return errors


def _validate_driver_name(name: str, path: str, errors: Errors) -> None:
    """Require a qualified name, whatever its case."""
    if not name:
        errors.append(required(path))
    else:
        validate_format(name, label_key(name.lower()), path, errors)


def _validate_parameters(parameters: dict[str, str], errors: Errors) -> None:
    if len(parameters) > MAX_PARAMETERS:
        errors.append(too_long("parameters", MAX_PARAMETERS))
        return
    if "" in parameters:
        errors.append(invalid_value("parameters", "", "field can not be empty."))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > MAX_PARAMETER_BYTES:
        errors.append(too_long("parameters", MAX_PARAMETER_BYTES))


def validate_storage_class_update(new: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        validate_immutable(new.get(field), old.get(field), field, errors)
    return errors


def validate_attributes_class(
    attributes_class: Object, old: Object | None = None
) -> list[FieldError]:
    """Validate a VolumeAttributesClass, which no update may change."""
    errors: Errors = []
    driver = attributes_class.get("driverName", "")
    parameters = attributes_class.get("parameters") or {}
    if old is not None:
        errors.extend(
            forbidden_field(field, f"updates to {field} are forbidden.")
            for field in ("driverName", "parameters")
            if not semantically_equal(attributes_class.get(field), old.get(field))
        )
    _validate_driver_name(driver, "driverName", errors)
    if not parameters:
        errors.append(required("parameters", "must contain at least one key/value pair"))
    _validate_parameters(parameters, errors)
    return errors


def storage_class_warnings(storage_class: Object) -> list[str]:
    warnings = []
    for index, term in enumerate(nested_list(storage_class, "allowedTopologies")):
        for position, expression in enumerate(nested_list(term, "matchLabelExpressions")):
            detail = DEPRECATED_LABELS.get(expression.get("key"))
            if detail:
                path = f"allowedTopologies[{index}].matchLabelExpressions[{position}].key"
                warnings.append(f"{path}: {detail}")
    return warnings
