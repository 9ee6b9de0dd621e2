"""CustomResourceDefinitions except for their schemas.

Upstream: ``apiextensions-apiserver/pkg/apis/apiextensions/validation``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_many,
)
from kubepy.api.meta import Object, annotations_of, name_of, nested_list, nested_map, status_of
from kubepy.api.schema.structural import find_field
from kubepy.api.values.goformat import Ordered
from kubepy.api.values.names import dns1035_label, dns1123_subdomain
from kubepy.apiserver.kinds.admissionregistration.validation import validate_webhook_client
from kubepy.apiserver.kinds.apiextensions.validation.schemas import validate_schema
from kubepy.apiserver.validation.fields import (
    Errors,
    json_view,
    semantically_equal,
    validate_choice,
    validate_format,
    validate_immutable,
)
from kubepy.lazy import lazy_imports

with lazy_imports():  # only definitions of protected groups are looked at for URLs
    from kubepy.api.values import gourls

APPROVAL = "api-approved.kubernetes.io"
REVIEW_VERSIONS = ("v1", "v1beta1")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
# The parts of a version that the internal type keeps once if all versions have the same: key → its
# name there.
_COMMON = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def validate_definition(definition: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a definition, or an update of ``old``."""
    errors: Errors = []
    spec = definition["spec"]
    status = status_of(definition)
    name = name_of(definition)
    expected_name = f"{spec['names']['plural']}.{spec.get('group', '')}"
    if old is None and name != expected_name:
        detail = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid_value("metadata.name", name, detail))
    old_versions = [] if old is None else nested_list(old["spec"], "versions")
    old_schemas = {
        version.get("name", ""): nested_map(version, "schema", "openAPIV3Schema")
        for version in old_versions
    }
    _validate_spec(spec, old_schemas, errors)
    if old is not None:
        _validate_kept(spec, old, errors)
    validate_names(status.get("acceptedNames") or {}, "status.acceptedNames", errors)
    _validate_stored_versions(status.get("storedVersions"), nested_list(spec, "versions"), errors)
    _validate_approval(definition, old, errors)

    preserved_before = old is not None and old["spec"].get("preserveUnknownFields")
    if spec.get("preserveUnknownFields") and not preserved_before:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema "
            "instead"
        )
        errors.append(invalid_value("spec.preserveUnknownFields", True, detail))

    return errors


def _validate_kept(spec: Object, old: Object, errors: Errors) -> None:
    """Refuse changes of group and plural, and of scope and kind once the definition is
    established."""
    names = spec["names"]
    old_spec = old["spec"]
    old_names = old_spec["names"]
    if is_established(old):
        validate_immutable(spec.get("scope"), old_spec.get("scope"), "spec.scope", errors)
        validate_immutable(names.get("kind"), old_names.get("kind"), "spec.names.kind", errors)
    validate_immutable(spec.get("group"), old_spec.get("group"), "spec.group", errors)
    validate_immutable(names.get("plural"), old_names.get("plural"), "spec.names.plural", errors)


def _validate_approval(definition: Object, old: Object | None, errors: Errors) -> None:
    """Require an annotation about approval in the groups of the Kubernetes community."""
    group = definition["spec"].get("group", "")
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    state, detail = _approval(definition)
    if old is not None and _approval(old)[0] == state:
        return
    path = f"metadata.annotations[{APPROVAL}]"
    if state == "missing":
        errors.append(required(path, detail))
    elif state == "invalid":
        annotation = definition["metadata"]["annotations"][APPROVAL]
        errors.append(invalid_value(path, annotation, detail))


def is_established(definition: Object) -> bool:
    conditions = nested_list(definition, "status", "conditions")
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in conditions
    )


# --- the spec -------------------------------------------------------------------------------------


def _validate_spec(spec: Object, old_schemas: dict[str, Object], errors: Errors) -> None:
    _validate_group(spec.get("group", ""), errors)
    validate_choice(spec.get("scope", ""), ("Cluster", "Namespaced"), "spec.scope", errors)
    versions = nested_list(spec, "versions")
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))

    common = _common_parts(versions)
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name", "")
        if complaints := dns1035_label(name):
            errors.append(invalid_value(f"{path}.name", name, ",".join(complaints)))
        warning = version.get("deprecationWarning")
        if warning is not None:
            complaints = _check_warning(warning, bool(version.get("deprecated")))
            validate_format(warning, complaints, f"{path}.deprecationWarning", errors)
        own = {key: value for key, value in version.items() if key not in common}
        places = {_COMMON[key]: f"{path}.{key}" for key in _COMMON if key in own}
        _validate_content(own, places, [version], old_schemas, errors)

    if len({version.get("name") for version in versions}) != len(versions):
        errors.append(
            invalid_value(
                "spec.versions", _shown(versions, common), "must contain unique version names"
            )
        )

    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", _shown(versions, common), detail))
    names = spec["names"]
    errors.extend(
        required(f"spec.names.{field}")
        for field in ("plural", "singular", "kind", "listKind")
        if not names.get(field)
    )
    validate_names(names, "spec.names", errors)
    places = {_COMMON[key]: f"spec.{_COMMON[key]}" for key in common}
    _validate_content(common, places, versions, old_schemas, errors)
    _validate_conversion(spec.get("conversion"), bool(spec.get("preserveUnknownFields")), errors)


def _validate_group(group: str, errors: Errors) -> None:
    if not group:
        errors.append(required("spec.group"))
    elif complaints := dns1123_subdomain(group):
        errors.append(invalid_value("spec.group", group, ",".join(complaints)))
    elif "." not in group:
        detail = "should be a domain with at least one dot"
        errors.append(invalid_value("spec.group", group, detail))


def _common_parts(versions: list[Object]) -> Object:
    """Return the parts that are the same in all versions."""
    if not versions:
        return {}
    common: Object = {}
    for key in _COMMON:
        part = versions[0].get(key)
        if all(semantically_equal(version.get(key), part) for version in versions):
            common[key] = part
    return common


def _check_warning(warning: str, deprecated: bool) -> list[str]:
    """Return complaints about the warning of a version."""
    if not deprecated:
        return ["can only be set for deprecated versions"]
    complaints = []
    if len(warning.encode()) > 256:
        complaints.append("must be <= 256 characters long")
    if not warning:
        complaints.append("must not be an empty string")
    unprintable = next(
        (index for index, letter in enumerate(warning) if not letter.isprintable()), None
    )
    if unprintable is not None:
        at = len(warning[:unprintable].encode())
        complaints.append(
            f"must only contain printable UTF-8 characters; non-printable character found at "
            f"index {at}"
        )

    return complaints


def _validate_content(
    content: Object,
    places: dict[str, str],
    versions: list[Object],
    old_schemas: dict[str, Object],
    errors: Errors,
) -> None:
    """Validate schema, subresources, columns and selectable fields of a version, or of all.
    ``places``: their paths."""
    with_status = any("status" in (version.get("subresources") or {}) for version in versions)
    schema = (content.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None:
        is_new = old_schemas.get(versions[0].get("name", "")) != schema
        path = f"{places['validation']}.openAPIV3Schema"
        validate_schema(schema, path, errors, with_status=with_status, is_new=is_new)
    if scale := (content.get("subresources") or {}).get("scale"):
        _validate_scale(scale, f"{places['subresources']}.scale", errors)
    for index, column in enumerate(nested_list(content, "additionalPrinterColumns")):
        _validate_column(column, f"{places['additionalPrinterColumns']}[{index}]", errors)
    if fields := content.get("selectableFields"):
        whole = schema or nested_map(versions[0], "schema", "openAPIV3Schema")
        validate_selectable_fields(fields, whole, places["selectableFields"], errors)


def _validate_scale(scale: Object, path: str, errors: Errors) -> None:
    for field, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        at = f"{path}.{field}"
        if not scale.get(field):
            errors.append(required(at))
        else:
            detail = f"should be a json path under {root[:-1]}"
            _validate_path_under(scale[field], (root,), detail, at, errors)
    if selector := scale.get("labelSelectorPath"):
        detail = "should be a json path under either .spec or .status"
        at = f"{path}.labelSelectorPath"
        _validate_path_under(selector, (".spec.", ".status."), detail, at, errors)


def _validate_column(column: Object, path: str, errors: Errors) -> None:
    if not column.get("name"):
        errors.append(required(f"{path}.name"))
    kind = column.get("type", "")
    format_ = column.get("format", "")

    detail = "must be one of " + ",".join(COLUMN_TYPES)
    if not kind:
        errors.append(required(f"{path}.type", detail))
    elif kind not in COLUMN_TYPES:
        errors.append(invalid_value(f"{path}.type", kind, detail))

    if format_ and format_ not in COLUMN_FORMATS:
        errors.append(
            invalid_value(f"{path}.format", format_, "must be one of " + ",".join(COLUMN_FORMATS))
        )

    if not column.get("jsonPath"):
        errors.append(required(f"{path}.JSONPath"))
    elif not column["jsonPath"].startswith("."):
        detail = "must be a simple json path starting with ."
        errors.append(invalid_value(f"{path}.JSONPath", column["jsonPath"], detail))


def _shown(versions: list[Object], common: Object) -> list[Object]:
    """Return versions as Go prints the internal type: without common parts, schemas with JSON
    names."""

    def own(version: Object, key: str) -> Any:
        if key in common:
            return None
        return json_view(_PARTS[key], version.get(key))

    return [
        Ordered(
            {
                "Name": version.get("name", ""),
                "Served": bool(version.get("served")),
                "Storage": bool(version.get("storage")),
                "Deprecated": bool(version.get("deprecated")),
                "DeprecationWarning": version.get("deprecationWarning"),
                "Schema": own(version, "schema"),
                "Subresources": own(version, "subresources"),
                "AdditionalPrinterColumns": own(version, "additionalPrinterColumns"),
                "SelectableFields": own(version, "selectableFields"),
            }
        )
        for version in versions
    ]


_PARTS = {
    "schema": "apiextensions/v1.CustomResourceValidation",
    "subresources": "apiextensions/v1.CustomResourceSubresources",
    "additionalPrinterColumns": "[]apiextensions/v1.CustomResourceColumnDefinition",
    "selectableFields": "[]apiextensions/v1.SelectableField",
}


def validate_names(names: Object, path: str, errors: Errors) -> None:
    """Validate the names of a definition, those of its spec or the accepted ones of its status."""
    for field in ("plural", "singular"):
        name = names.get(field)
        complaints = dns1035_label(name) if name else []
        if complaints:
            errors.append(invalid_value(f"{path}.{field}", name, ",".join(complaints)))

    for field in ("kind", "listKind"):
        name = names.get(field)
        complaints = dns1035_label(name.lower()) if name else []
        if complaints:
            detail = "may have mixed case, but should otherwise match: " + ",".join(complaints)
            errors.append(invalid_value(f"{path}.{field}", name, detail))

    _validate_labels(nested_list(names, "shortNames"), f"{path}.shortNames", errors)

    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(
            invalid_value(
                f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"
            )
        )

    _validate_labels(nested_list(names, "categories"), f"{path}.categories", errors)


def _validate_labels(names: list[str] | tuple[()], path: str, errors: Errors) -> None:
    errors.extend(
        invalid_value(f"{path}[{index}]", name, ",".join(complaints))
        for index, name in enumerate(names)
        if (complaints := dns1035_label(name))
    )


# --- subresources and columns ---------------------------------------------------------------------


def _validate_path_under(
    json_path: str, roots: tuple[str, ...], detail: str, path: str, errors: Errors
) -> None:
    if not json_path.startswith("."):
        errors.append(invalid_value(path, json_path, "must be a simple json path starting with ."))
    elif not json_path.startswith(roots):
        errors.append(invalid_value(path, json_path, detail))


# --- conversion -----------------------------------------------------------------------------------


def _validate_conversion(conversion: Object | None, preserve: bool, errors: Errors) -> None:
    if conversion is None:
        return
    path = "spec.conversion"
    strategy = conversion.get("strategy", "")
    if strategy != "None" and preserve:
        detail = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid_value(f"{path}.strategy", strategy, detail))
    validate_choice(strategy, ("None", "Webhook"), f"{path}.strategy", errors)
    webhook = conversion.get("webhook") or {}

    client = webhook.get("clientConfig")
    versions = nested_list(webhook, "conversionReviewVersions")
    if strategy == "Webhook":
        if client is None:
            errors.append(
                required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
            )
        else:
            validate_webhook_client(client, f"{path}.webhookClientConfig", errors)
        at = f"{path}.conversionReviewVersions"
        if not versions:
            errors.append(required(at))
        for index, version in enumerate(versions):
            complaints = dns1035_label(version)
            if version in versions[:index]:
                complaints = ["duplicate version"]
            validate_format(version, complaints, f"{at}[{index}]", errors)
        if versions and not set(versions) & set(REVIEW_VERSIONS):
            detail = "must include at least one of " + ", ".join(REVIEW_VERSIONS)
            errors.append(invalid_value(at, versions, detail))
        return

    for field, value in (
        ("webhookClientConfig", client),
        ("conversionReviewVersions", versions or None),
    ):
        if value is not None:
            detail = "should not be set when strategy is not set to Webhook"
            errors.append(forbidden_field(f"{path}.{field}", detail))


# --- stored versions and approval -----------------------------------------------------------------


def _validate_stored_versions(
    stored: list[str] | None, versions: list[Object], errors: Errors
) -> None:
    path = "status.storedVersions"
    if not stored:
        errors.append(invalid_value(path, stored, "must have at least one stored version"))
        return
    names = [version.get("name", "") for version in versions]

    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            errors.append(
                invalid_value(path, stored, f"must have the storage version {version['name']}")
            )

    for index, name in enumerate(stored):
        if name not in names:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                f"remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions"
            )
            errors.append(invalid_value(f"{path}[{index}]", name, detail))


def _approval(definition: Object) -> tuple[str, str]:
    """Return the state of the annotation, and the error that it deserves: missing, valid,
    invalid."""
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    annotation = annotations_of(definition).get(APPROVAL, "")
    if not annotation:
        return "missing", f'protected groups must have approval annotation "{APPROVAL}", {see}'
    if annotation.startswith("unapproved") or _is_absolute_url(annotation):
        return "valid", ""
    return "invalid", (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a '
        f"reason "
        f'starting with "unapproved", {see}'
    )


def _is_absolute_url(text: str) -> bool:
    """Tell whether a text is a URL with a scheme and a host."""
    try:
        url = gourls.parse_request_uri(text)
    except gourls.GoUrlError:
        return False
    return bool(url.scheme and url.host)


# --- selectable fields ----------------------------------------------------------------------------


MAX_SELECTABLE_FIELDS = 8


def validate_selectable_fields(
    fields: list[Object], schema: Object, path: str, errors: Errors
) -> None:
    known_paths: set[str] = set()
    for index, field in enumerate(fields):
        at = f"{path}[{index}].jsonPath"
        json_path = field.get("jsonPath", "")
        if not json_path:
            errors.append(required(at))
            continue
        try:
            target = find_field(schema, json_path, arrays=False).schema
        except ValueError as error:
            errors.append(invalid_value(at, json_path, f"is an invalid path: {error}"))
            continue
        if json_path.split(".")[1] == "metadata":
            errors.append(invalid_value(at, json_path, "must not point to fields in metadata"))
        if target.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with "
                "formats are allowed."
            )
            errors.append(invalid_value(at, json_path, detail))
        if json_path in known_paths:
            errors.append(duplicate(at, json_path))
        known_paths.add(json_path)

    if len(known_paths) > MAX_SELECTABLE_FIELDS:
        errors.append(too_many(path, len(known_paths), MAX_SELECTABLE_FIELDS))
