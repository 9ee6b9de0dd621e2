"""EndpointSlices (``pkg/registry/discovery/endpointslice``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.discovery import validation


class EndpointSliceStrategy(Strategy):
    """``deprecatedTopology`` is read-only; generation rises with labels too."""

    has_generation = True

    def default(self, obj: Object) -> None:
        for port in nested_list(obj, "ports"):
            for field, value in (("name", ""), ("protocol", "TCP")):
                if port.get(field) is None:
                    port[field] = value

    def prepare_for_create(self, obj: Object) -> None:
        for endpoint in nested_list(obj, "endpoints"):
            endpoint.pop("deprecatedTopology", None)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        if semantically_equal(obj.get("endpoints"), old.get("endpoints")):
            restore(obj, old, "endpoints")
        else:
            self.prepare_for_create(obj)

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(_counted(obj), _counted(old))

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_slice(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_slice(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        if obj.get("addressType") == "FQDN":
            fqdn = ["spec.addressType: FQDN endpoints are deprecated"]
        else:
            fqdn = []
        return fqdn + self.warnings_on_update(obj, obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return validation.slice_warnings(obj)


def _counted(obj: Object) -> Object:
    return {**obj, "metadata": {"labels": obj["metadata"].get("labels")}}
