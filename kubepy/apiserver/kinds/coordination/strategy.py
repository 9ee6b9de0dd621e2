"""Leases (``pkg/registry/coordination``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy
from kubepy.apiserver.validation.fields import Errors, validate_nonnegative


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
        seconds = spec.get("leaseDurationSeconds")
        if seconds is not None and seconds <= 0:
            errors.append(
                invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
            )
        validate_nonnegative(spec.get("leaseTransitions"), "spec.leaseTransitions", errors)
        return errors
