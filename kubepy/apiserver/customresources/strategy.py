"""Custom resources (``apiextensions-apiserver/pkg/registry/customresource/strategy.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kubepy.api import errors
from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object, clone, is_being_deleted, name_of, nested_list, nested_map
from kubepy.api.schema.customresources import deprecation_of
from kubepy.api.schema.openapi import Schema, definition
from kubepy.api.schema.structural import (
    drop_nulls,
    fill_in,
    prune,
    schema_of_lists,
    validate_lists,
)
from kubepy.api.schema.validating import validate, validate_part
from kubepy.api.scheme import Resource
from kubepy.api.types import Decoded, decode
from kubepy.apiserver.customresources.validation import (
    finalizer_warnings,
    validate_count,
    validate_embedded,
    validate_selector,
)
from kubepy.apiserver.strategy import ListObjects, Strategy
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    pass

with lazy_imports():
    from kubepy.api.cel import rules

_BLOCKING = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_NOT_CHECKED = invalid_value(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_ALL_ALLOWED = {"x-kubernetes-preserve-unknown-fields": True}


def with_metadata(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a custom resource's schema with the fields that every object has."""
    common = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": definition(_METADATA),
    }
    return {
        "type": "object",
        **schema,
        "properties": {**(schema.get("properties") or {}), **common},
    }


class CustomStrategy(Strategy):
    """A custom resource with the schema of its definition; generation rises with anything but
    metadata."""

    has_generation = True
    allow_unconditional_update = False

    def __init__(self, resource: Resource, definition: Object) -> None:
        super().__init__(resource)
        self._spec = definition["spec"]
        self._versions = {
            f"{resource.group}/{version['name']}": version for version in self._spec["versions"]
        }
        self._schema = self.schema = _schema_of(self._versions[resource.api_version])
        # Their language is only loaded for schemas that have rules.
        self._rules = (
            rules.RuleSet(self._schema) if "x-kubernetes-validations" in str(self._schema) else None
        )
        self._field_schema: Schema | None = None  # keeps what was asked for of its fields
        self._is_going = is_being_deleted(definition)
        self._revision = _revision_of(definition)
        self.selectable = tuple(
            selectable_field["jsonPath"].removeprefix(".")
            for selectable_field in nested_list(
                self._versions[resource.api_version], "selectableFields"
            )
        )

    def field_schema(self) -> Schema:
        if self._field_schema is None:
            self._field_schema = Schema(with_metadata(self.schema))
        return self._field_schema

    @cached_property
    def _lists(self) -> Mapping[str, Any]:
        """The part of the schema that is about lists whose items must differ."""
        return schema_of_lists(self._schema)

    @property
    def conversion(self) -> Object:
        """The part of the definition that says how its versions are converted."""
        conversion: Object = self._spec.get("conversion") or {}
        return conversion

    @property
    def versions(self) -> Iterable[str]:
        """The apiVersions of the definition, served or not."""
        return self._versions

    def decode(self, obj: Object) -> Decoded:
        object_, unknown = decode(clone(obj))
        unknown = [*unknown, *prune(self._schema, object_)]
        drop_nulls(self._schema, object_)
        return Decoded(object_, unknown)

    def read_stored(self, obj: Object) -> Object:
        """Prune and default an object that was stored before the definition became what it is, by
        the schema of the version in which it is stored."""
        if not _has_revision(obj) or _revision_of(obj) >= self._revision:
            return obj
        version = self._versions.get(str(obj.get("apiVersion")))
        if version is None:
            return obj
        read: Object = clone(obj)
        schema = _schema_of(version)
        prune(schema, read)
        drop_nulls(schema, read)
        fill_in(schema, read)
        return read

    def complete(self, obj: Object) -> Object:
        """Prune and default an object that was converted to this version; ``obj`` belongs to this
        call."""
        prune(self._schema, obj)
        fill_in(self._schema, obj)
        return obj

    def warnings_of_version(self, api_version: str) -> list[str]:
        if api_version == self.resource.api_version and not self.resource.is_older:
            return []  # every request for the resource is warned of
        if warning := deprecation_of(self._spec, self._versions[api_version]):
            return [warning]
        return []

    def begin_create(self, obj: Object, list_objects: ListObjects) -> None:
        if self._is_going:
            raise errors.forbidden(
                self.resource.key,
                name_of(obj),
                "create not allowed while custom resource definition is terminating",
            )

    def default(self, obj: Object) -> None:
        fill_in(self._schema, obj)

    def validate(self, obj: Object) -> list[FieldError]:
        wrong = [
            *validate(self._schema, obj),
            *self._validate_scale(obj),
            *validate_embedded(self._schema, obj),
            *validate_lists(self._lists, obj),
        ]
        return wrong + self._validate_rules(wrong, obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        wrong = [
            *validate(self._schema, obj, old=old),
            *self._validate_scale(obj),
            *validate_embedded(self._schema, obj),
        ]
        if not validate_lists(self._lists, old):
            wrong += validate_lists(self._lists, obj)
        return wrong + self._validate_rules(wrong, obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        wrong = []
        if "status" in obj:
            schema = nested_map(self._schema, "properties", "status")
            wrong = validate_part(schema, obj["status"], "status", old.get("status"))
        wrong += self._validate_scale_status(obj)
        if not validate_lists(self._lists, old):
            wrong += validate_lists(self._lists, obj)
        return wrong + self._validate_rules(wrong, obj, old)

    def _validate_rules(
        self, wrong: list[FieldError], obj: Object, old: Object | None = None
    ) -> list[FieldError]:
        """Check the CEL rules, unless the object violates its schema already."""
        if self._rules is None:
            return []
        if any(error.reason in _BLOCKING for error in wrong):
            return [_NOT_CHECKED]
        if old is None:
            return self._rules.validate(obj)
        return self._rules.validate(obj, old)

    def _validate_scale(self, obj: Object) -> list[FieldError]:
        if not self.resource.scale_paths:
            return []
        return validate_count(obj, self.resource.scale_paths[0]) + self._validate_scale_status(obj)

    def _validate_scale_status(self, obj: Object) -> list[FieldError]:
        if not self.resource.scale_paths:
            return []
        _, replicas, selector = self.resource.scale_paths
        return validate_count(obj, replicas) + validate_selector(obj, selector)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return finalizer_warnings(nested_list(obj["metadata"], "finalizers"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        known = nested_list(old["metadata"], "finalizers")
        return finalizer_warnings(
            [
                finalizer
                for finalizer in nested_list(obj["metadata"], "finalizers")
                if finalizer not in known
            ]
        )

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return _content(obj) != _content(old)


class CustomWithStatusStrategy(CustomStrategy):
    """A custom resource with a status subresource; generation does not rise with status."""

    has_status = True

    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keep everything but status and managedFields."""
        status = obj.get("status")
        obj.clear()
        obj.update({**old, "metadata": dict(old["metadata"])})
        obj.pop("status", None)
        if status is not None:
            obj["status"] = status

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return {**_content(obj), "status": None} != {**_content(old), "status": None}


def _content(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key != "metadata"}


def _schema_of(version: Object) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or _ALL_ALLOWED
    return schema


def _has_revision(obj: Object) -> bool:
    """Tell whether an object has the resourceVersion of a stored one; that of a dry run may have
    none, or what a webhook has made of it."""
    version: str = obj["metadata"].get("resourceVersion", "")
    return version.isdecimal()


def _revision_of(obj: Object) -> int:
    """Return an object's resourceVersion as a number; 0 if it has none."""
    return int(obj["metadata"].get("resourceVersion") or 0)
