"""Leases and RuntimeClasses (``pkg/registry/{coordination/lease,node/runtimeclass}``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.apiserver.validation.fields import Errors, validate_immutable, validate_nonnegative


class LeaseStrategy(Strategy):
    """Coordinated leader election is behind a gate that is off: its fields are dropped."""

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
        from kubepy.apiserver.defaults.quantities import round_up_all

        round_up_all((obj.get("overhead") or {}).get("podFixed"))

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.api.values.names import dns1123_label
        from kubepy.apiserver.validation.fields import validate_labels
        from kubepy.apiserver.validation.pods.scheduling import validate_tolerations
        from kubepy.apiserver.validation.resources import validate_resource_requirements

        errors: Errors = []
        handler = obj.get("handler", "")
        if not handler:
            errors.append(required("handler"))
        errors.extend(invalid_value("handler", handler, why) for why in (dns1123_label(handler) if handler else ()))
        if (overhead := obj.get("overhead")) is not None:
            validate_resource_requirements({"limits": overhead.get("podFixed")}, [], "overhead", errors)
        if (scheduling := obj.get("scheduling")) is not None:
            validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", errors)
            validate_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations", errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors = self.validate(obj)
        validate_immutable(obj.get("handler"), old.get("handler"), "handler", errors)
        return errors
