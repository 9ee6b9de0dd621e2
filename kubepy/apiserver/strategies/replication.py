"""ReplicationControllers and PodTemplates (``pkg/registry/core/{replicationcontroller,podtemplate}``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.apps import WorkloadStrategy, name_warnings
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.apiserver.strategies.templates import drop_disabled_fields, template_warnings
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.defaults import core as core_defaults
    from kubepy.apiserver.defaults import pods as pods_defaults
    from kubepy.apiserver.validation import apps as apps_validation
    from kubepy.apiserver.validation.pods import warnings as warnings_validation


class ReplicationControllerStrategy(WorkloadStrategy):
    selectable = ("status.replicas",)

    def default(self, obj: Object) -> None:
        core_defaults.default_replication_controller(obj)

    def empty_status(self) -> Object:
        return {"replicas": 0}

    def validate(self, obj: Object) -> list[FieldError]:
        return apps_validation.validate_replication_controller(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return apps_validation.validate_replication_controller(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return apps_validation.validate_replica_set_status_update(obj, old)  # of the same fields

    def warnings_on_create(self, obj: Object) -> list[str]:
        return name_warnings(obj) + template_warnings(obj)

    def default_propagation(self) -> str:
        """As it was before there was garbage collection."""
        return "Orphan"


class PodTemplateStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        pods_defaults.default_pod_template(obj["template"])

    def prepare_for_create(self, obj: Object) -> None:
        drop_disabled_fields(obj["template"]["spec"])

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        drop_disabled_fields(obj["template"]["spec"])

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj["template"], old["template"])

    def validate(self, obj: Object) -> list[FieldError]:
        return apps_validation.validate_template_object(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return apps_validation.validate_template_object(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return warnings_validation.warnings_for_template(obj["template"], "template")

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj) if self.spec_changed(obj, old) else []
