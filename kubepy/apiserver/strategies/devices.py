"""Devices and claims of them: stored and defaulted; nothing here allocates them (``pkg/registry/resource``)."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import Errors, semantically_equal, validate_immutable
from kubepy.quoting import printable


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

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        validate_immutable(obj.get("spec"), old.get("spec"), "spec", errors)
        return errors


class ResourceClaimTemplateStrategy(Strategy):
    def default(self, obj: Object) -> None:
        _default_requests((obj.get("spec") or {}).get("spec") or {})

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors: Errors = []
        validate_immutable(obj.get("spec"), old.get("spec"), "spec", errors)
        return errors


def _default_requests(spec: Object) -> None:
    for request in _requests(spec):
        if not request.get("allocationMode"):
            request["allocationMode"] = "ExactCount"
        if request["allocationMode"] == "ExactCount" and not request.get("count"):
            request["count"] = 1
        for toleration in request.get("tolerations") or ():
            if not toleration.get("operator"):
                toleration["operator"] = "Equal"


def _requests(spec: Object) -> Iterator[Object]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly") is not None:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()
