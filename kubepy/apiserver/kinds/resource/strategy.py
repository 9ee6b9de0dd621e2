"""Devices and claims to them (``pkg/registry/resource``). Nothing allocates devices."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object, nested_list, nested_map, spec_of, status_of
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import Errors, semantically_equal
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.apiserver.kinds.core.persistentvolumeclaims import (
        validation as persistentvolumeclaims_validation,
    )
    from kubepy.apiserver.kinds.resource.validation import claims, slices
    from kubepy.apiserver.validation import fields


class DeviceClassStrategy(Strategy):
    has_generation = True
    allow_create_on_update = False

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        claims.validate_class(obj["spec"], None, errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        claims.validate_class(obj["spec"], old["spec"], errors)
        return errors


class ResourceSliceStrategy(DeviceClassStrategy):
    """Drops the fields of features that are off: lists as attributes, and resources of nodes that
    devices map to."""

    selectable = ("spec.nodeName", "spec.driver")

    def not_selectable(self, field: str) -> str:
        return (
            f"field label not supported for {self.resource.api_version}, "
            f"Kind={self.resource.kind}: "
            f"{printable(field)}"
        )

    def prepare_for_create(self, obj: Object) -> None:
        for device in nested_list(obj["spec"], "devices"):
            device.pop("nodeAllocatableResourceMappings", None)
            for attribute in (device.get("attributes") or {}).values():
                for field in ("bools", "ints", "strings", "versions"):
                    attribute.pop(field, None)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        slices.validate_slice(obj["spec"], None, errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        slices.validate_slice(obj["spec"], old["spec"], errors)
        return errors


class ResourceClaimStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        _default_requests(spec_of(obj))

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keep the spec; and drop the statuses of devices that are no longer allocated."""
        restore(obj, old, "spec")
        status = status_of(obj)
        before, now = (
            [claims.device_key(result) for result in claims.allocation_results(part)]
            for part in (status_of(old), status)
        )
        gone = [key for key in before if key not in now]
        if devices := status.pop("devices", None):
            status["devices"] = [
                device for device in devices if claims.device_key(device) not in gone
            ]
            if not status["devices"]:
                del status["devices"]

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        claims.validate_claim_spec(obj["spec"], "spec", errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return _refuse_change(obj, old, "resource.ResourceClaimSpec")

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        claims.validate_claim_status(obj, old, errors)
        return errors


class ResourceClaimTemplateStrategy(Strategy):
    def default(self, obj: Object) -> None:
        _default_requests(nested_map(obj, "spec", "spec"))

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        persistentvolumeclaims_validation.validate_template_metadata(
            obj["spec"].get("metadata") or {}, "spec.metadata", errors
        )
        claims.validate_claim_spec(obj["spec"].get("spec") or {}, "spec.spec", errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return _refuse_change(obj, old, "resource.ResourceClaimTemplateSpec")


def _refuse_change(obj: Object, old: Object, type_name: str) -> list[FieldError]:
    if semantically_equal(obj.get("spec"), old.get("spec")):
        return []
    return [invalid_value("spec", fields.go_view(type_name, obj.get("spec")), fields.IMMUTABLE)]


def _default_requests(spec: Object) -> None:
    requests = []
    for request in nested_list(spec, "devices", "requests"):
        if request.get("exactly") is not None:
            requests.append(request["exactly"])
        requests += nested_list(request, "firstAvailable")
    for request in requests:
        if not request.get("allocationMode"):
            request["allocationMode"] = "ExactCount"
        if request["allocationMode"] == "ExactCount" and not request.get("count"):
            request["count"] = 1
        for toleration in nested_list(request, "tolerations"):
            if not toleration.get("operator"):
                toleration["operator"] = "Equal"
