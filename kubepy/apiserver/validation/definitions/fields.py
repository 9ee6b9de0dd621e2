"""The selectable fields of CustomResourceDefinitions: paths into a schema.

Upstream: ``ValidateCustomResourceSelectableFields``, ``schema/cel.ValidFieldPath``.
"""

from __future__ import annotations

from kubepy.api.errors import duplicate, invalid_value, required, too_many
from kubepy.api.meta import Object
from kubepy.api.schema.fieldpaths import find_field
from kubepy.apiserver.validation.fields import Errors

MAX_SELECTABLE_FIELDS = 8


def validate_selectable_fields(fields: list[Object], schema: Object, path: str, errors: Errors) -> None:
    seen = set()
    for index, field in enumerate(fields):
        at, json_path = f"{path}[{index}].jsonPath", field.get("jsonPath", "")
        if not json_path:
            errors.append(required(at))
            continue
        try:
            found = find_field(schema, json_path, arrays=False).schema
        except ValueError as error:
            errors.append(invalid_value(at, json_path, f"is an invalid path: {error}"))
            continue
        if json_path.split(".")[1] == "metadata":
            errors.append(invalid_value(at, json_path, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            why = ("must point to a field of type string, boolean or integer. Enum string fields and strings with "
                   "formats are allowed.")
            errors.append(invalid_value(at, json_path, why))
        if json_path in seen:
            errors.append(duplicate(at, json_path))
        seen.add(json_path)
    if len(seen) > MAX_SELECTABLE_FIELDS:
        errors.append(too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
