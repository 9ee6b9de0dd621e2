"""Ingresses, their classes, and NetworkPolicies (``pkg/registry/networking/*/strategy.go``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list, spec_of
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.networking import validation
    from kubepy.apiserver.validation import formats


class _CountedStrategy(Strategy):
    """Generation rises when the spec changes."""

    has_generation = True

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))


class IngressStrategy(_CountedStrategy):
    has_status = True

    def empty_status(self) -> Object:
        return {"loadBalancer": {}}

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_ingress(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_ingress(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_ingress_status(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.ingress_warnings(obj)


class IngressClassStrategy(_CountedStrategy):
    def default(self, obj: Object) -> None:
        parameters = spec_of(obj).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_ingress_class(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_ingress_class(obj, old)


class IPAddressStrategy(Strategy):
    def validate_name(self, name: str) -> list[str]:
        """Require an address as it is usually written."""
        return formats.canonical_ip(name)

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_ip_address(obj)


class ServiceCIDRStrategy(Strategy):
    has_status = True

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_service_cidr(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_service_cidr(obj, old)


class NetworkPolicyStrategy(_CountedStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for rule in (*nested_list(spec, "ingress"), *nested_list(spec, "egress")):
            for port in nested_list(rule, "ports"):
                port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_network_policy(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_network_policy(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.network_policy_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)
