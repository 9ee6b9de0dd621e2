"""Nodes (``pkg/registry/core/node``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, spec_of
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.nodes import defaults, validation


class NodeStrategy(Strategy):
    """A node's status comes with its creation (its kubelet writes it); an ordinary update keeps the
    old one."""

    assigned = ("podCIDR", "podCIDRs", "providerID")
    selectable = ("spec.unschedulable",)

    def default(self, obj: Object) -> None:
        defaults.default_node(obj)

    def prepare_for_create(self, obj: Object) -> None:
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "status")
        if "configSource" not in (spec_of(old)):
            obj["spec"].pop("configSource", None)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_node(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_node(obj) + validation.validate_node_update(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_node_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.node_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"spec.unschedulable": "true" if spec_of(obj).get("unschedulable") else "false"}
