"""Runtime classes, leases, and devices (``pkg/registry/{node,coordination,resource}``). Nothing allocates devices."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import Object
from kubepy.apiserver.strategies import Strategy, restore
from kubepy.apiserver.validation.fields import Errors, semantically_equal, validate_immutable, validate_nonnegative
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver.defaults import core as defaults
    from kubepy.apiserver.validation import fields, resources
    from kubepy.apiserver.validation.pods import scheduling as pod_scheduling


class LeaseStrategy(Strategy):
    """Drops the fields of coordinated leader election, which is behind a gate that is off."""

    allow_create_on_update = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: Object) -> None:
        for field in ("strategy", "preferredHolder"):
            obj["spec"].pop(field, None)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        if (seconds := spec.get("leaseDurationSeconds")) is not None and seconds <= 0:
            errors.append(invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        validate_nonnegative(spec.get("leaseTransitions"), "spec.leaseTransitions", errors)
        return errors


class RuntimeClassStrategy(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        defaults.round_up_all((obj.get("overhead") or {}).get("podFixed"))

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        handler = obj.get("handler", "")
        if not handler:
            errors.append(required("handler"))
        else:
            errors += [invalid_value("handler", handler, problem) for problem in names.dns1123_label(handler)]
        if (overhead := obj.get("overhead")) is not None:
            resources.validate_resource_requirements({"limits": overhead.get("podFixed")}, [], "overhead", errors)
        if (scheduling := obj.get("scheduling")) is not None:
            fields.validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", errors)
            pod_scheduling.validate_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations",
                                                errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors = self.validate(obj)
        validate_immutable(obj.get("handler"), old.get("handler"), "handler", errors)
        return errors


# --- devices -------------------------------------------------------------------------------------------------------


class DeviceClassStrategy(Strategy):
    has_generation = True
    allow_create_on_update = False

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))


class ResourceSliceStrategy(DeviceClassStrategy):
    selectable = ("spec.nodeName", "spec.driver")

    def not_selectable(self, field: str) -> str:
        return (f"field label not supported for {self.resource.api_version}, Kind={self.resource.kind}: "
                    f"{printable(field)}")

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        for field in ("driver", "nodeName"):
            validate_immutable(obj["spec"].get(field), old["spec"].get(field), f"spec.{field}", errors)
        return errors


class ResourceClaimStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        _default_requests(obj.get("spec") or {})

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        resources.validate_device_requests(obj.get("spec") or {}, "spec", errors)
        return errors

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        validate_immutable(obj.get("spec"), old.get("spec"), "spec", errors)
        return errors


class ResourceClaimTemplateStrategy(Strategy):
    def default(self, obj: Object) -> None:
        _default_requests((obj.get("spec") or {}).get("spec") or {})

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        resources.validate_device_requests((obj.get("spec") or {}).get("spec") or {}, "spec.spec", errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        validate_immutable(obj.get("spec"), old.get("spec"), "spec", errors)
        return errors


def _default_requests(spec: Object) -> None:
    requests = []
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly") is not None:
            requests.append(request["exactly"])
        requests += request.get("firstAvailable") or ()
    for request in requests:
        if not request.get("allocationMode"):
            request["allocationMode"] = "ExactCount"
        if request["allocationMode"] == "ExactCount" and not request.get("count"):
            request["count"] = 1
        for toleration in request.get("tolerations") or ():
            if not toleration.get("operator"):
                toleration["operator"] = "Equal"
