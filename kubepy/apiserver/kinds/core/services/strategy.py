"""Services (``pkg/registry/core/service/strategy.go``). Addresses and ports:
``kubepy.api.objects.services``."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list, status_of
from kubepy.apiserver.strategy import ListObjects, Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.objects import services
    from kubepy.api.values import names
    from kubepy.apiserver.kinds.core.services import allocation, defaults, validation


class ServiceStrategy(Strategy):
    has_status = True
    allow_create_on_update = True
    selectable = ("spec.clusterIP", "spec.type")

    def default(self, obj: Object) -> None:
        defaults.default_service(obj)

    def validate_name(self, name: str) -> list[str]:
        """Allow a label, which since v1.36 may begin with a digit."""
        return names.dns1123_label(name)

    def empty_status(self) -> Object:
        return {"loadBalancer": {}}

    def begin_create(self, obj: Object, list_objects: ListObjects) -> None:
        _drop_internal_traffic_policy(obj)
        allocation.allocate_on_create(obj, list_objects(self.resource.key), self._subnet)

    def begin_update(self, obj: Object, old: Object, list_objects: ListObjects) -> None:
        _drop_internal_traffic_policy(obj)
        allocation.allocate_on_update(obj, old, list_objects(self.resource.key), self._subnet)

    @property
    def _subnet(self) -> str:
        return self.settings.networking.service_subnet

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        _drop_type_dependent_fields(obj, old)

    def prepare_for_edit(self, obj: Object, old: Object) -> None:
        """Keep what was allocated and the file leaves out; drop what its type cannot have, whatever
        it was before."""
        allocation.keep_allocated(obj, old)
        _drop_type_dependent_fields(obj, {**obj, "spec": {**obj["spec"], "type": "LoadBalancer"}})
        _drop_internal_traffic_policy(obj)
        self.prepare_for_update(obj, old)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_service(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_service_update(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_service_status(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.service_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


def _drop_internal_traffic_policy(obj: Object) -> None:
    """Drop what a Service that is a name elsewhere never shows
    (``defaultOnReadInternalTrafficPolicy``)."""
    if obj["spec"].get("type") == "ExternalName":
        obj["spec"].pop("internalTrafficPolicy", None)


def _drop_type_dependent_fields(obj: Object, old: Object) -> None:
    """Drop fields of the old type that the new one cannot have, unless the client changed them
    itself."""
    spec = obj["spec"]
    old_spec = old["spec"]
    if old_spec.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        has_same_ip = spec.get("clusterIP") == old_spec.get("clusterIP")
        if has_same_ip and spec.get("clusterIPs") == old_spec.get("clusterIPs"):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_if_same(spec, old_spec, "ipFamilies")
        _drop_if_same(spec, old_spec, "ipFamilyPolicy")

    if services.needs_node_ports(old) and not services.needs_node_ports(obj):
        _drop_node_ports(spec, old_spec)
    if services.needs_health_check(old) and not services.needs_health_check(obj):
        _drop_if_same(spec, old_spec, "healthCheckNodePort")
    if old_spec.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_if_same(spec, old_spec, "allocateLoadBalancerNodePorts")
        _drop_if_same(spec, old_spec, "loadBalancerClass")
    if defaults.is_externally_accessible(old_spec) and not defaults.is_externally_accessible(spec):
        _drop_if_same(spec, old_spec, "externalTrafficPolicy")
    if spec.get("type") != "LoadBalancer":
        obj["status"] = {**(status_of(obj)), "loadBalancer": {}}


def _drop_node_ports(spec: Object, old_spec: Object) -> None:
    """Drop the node ports, unless the client asks for a new one."""
    old_node_ports = {port.get("nodePort") for port in nested_list(old_spec, "ports")}
    ports = nested_list(spec, "ports")
    node_ports = {port["nodePort"] for port in ports if port.get("nodePort")}
    if node_ports <= old_node_ports:
        for port in ports:
            port.pop("nodePort", None)


def _drop_if_same(spec: Object, old_spec: Object, field: str) -> None:
    if spec.get(field) == old_spec.get(field):
        spec.pop(field, None)
