"""ReplicationControllers (``pkg/registry/core/replicationcontroller``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.kinds.core.podtemplates.strategy import (
    WorkloadStrategy,
    name_warnings,
    template_warnings,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.replicationcontrollers import defaults, validation


class ReplicationControllerStrategy(WorkloadStrategy):
    selectable = ("status.replicas",)

    def default(self, obj: Object) -> None:
        defaults.default_replication_controller(obj)

    def empty_status(self) -> Object:
        return {"replicas": 0}

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_replication_controller(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_replication_controller(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_replica_set_status_update(obj, old)  # of the same fields

    def warnings_on_create(self, obj: Object) -> list[str]:
        return name_warnings(obj) + template_warnings(obj)

    def default_propagation(self) -> str:
        """Orphan the pods, as before there was garbage collection."""
        return "Orphan"
