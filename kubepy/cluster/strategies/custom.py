"""Custom resources (``apiextensions-apiserver/pkg/registry/customresource/strategy.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.cluster.errors import FieldError
from kubepy.cluster.objects.meta import Object, clone
from kubepy.cluster.schema.structural import fill_in, prune, validate
from kubepy.cluster.scheme import Resource
from kubepy.cluster.strategies.strategy import Strategy
from kubepy.cluster.types import Decoded, decode
from kubepy.cluster.validation.scales import validate_count, validate_selector

_ALL_ALLOWED = {"x-kubernetes-preserve-unknown-fields": True}


class CustomStrategy(Strategy):
    """A custom resource: its definition says what it holds, and generation rises with anything but metadata."""

    has_generation = True
    allow_unconditional_update = False

    def __init__(self, resource: Resource, definition: Object) -> None:
        super().__init__(resource)
        self._schema = self.schema = _schema_of(definition, resource.version)

    def decode(self, obj: Object) -> Decoded:
        object_, unknown = decode(clone(obj))
        return Decoded(object_, [*unknown, *prune(self._schema, object_)])

    def default(self, obj: Object) -> None:
        fill_in(self._schema, obj)

    def validate(self, obj: Object) -> list[FieldError]:
        wrong = validate(self._schema, obj)
        if self.resource.scale_paths:
            wrong += validate_count(obj, self.resource.scale_paths[0])
        return wrong + self._validate_scale_status(obj)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validate(self._schema, obj) + self._validate_scale_status(obj)

    def _validate_scale_status(self, obj: Object) -> list[FieldError]:
        if not self.resource.scale_paths:
            return []
        _, replicas, selector = self.resource.scale_paths
        return validate_count(obj, replicas) + validate_selector(obj, selector)

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return _content(obj) != _content(old)


class CustomWithStatusStrategy(CustomStrategy):
    """A custom resource with a status subresource: then status is no part of what generation counts."""

    has_status = True

    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Only status changes, and of metadata nothing but managedFields."""
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


def _schema_of(definition: Object, version: str) -> Mapping[str, Any]:
    for one in definition["spec"]["versions"]:
        if one["name"] == version:
            schema: Mapping[str, Any] = (one.get("schema") or {}).get("openAPIV3Schema") or _ALL_ALLOWED
            return schema
    return _ALL_ALLOWED
