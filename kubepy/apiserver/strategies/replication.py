"""ReplicationControllers and PodTemplates (``pkg/registry/core/{replicationcontroller,podtemplate}``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.apps import WorkloadStrategy, name_warnings
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.apiserver.strategies.templates import drop_disabled_fields, template_warnings
from kubepy.apiserver.validation.fields import semantically_equal


class ReplicationControllerStrategy(WorkloadStrategy):
    selectable = ("status.replicas",)

    def default(self, obj: Object) -> None:
        from kubepy.apiserver.defaults.core import default_replication_controller

        default_replication_controller(obj)

    def empty_status(self) -> Object:
        return {"replicas": 0}

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.apps import validate_replication_controller

        return validate_replication_controller(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.apps import validate_replication_controller

        return validate_replication_controller(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.apps import validate_replica_set_status_update

        return validate_replica_set_status_update(obj, old)  # of the same fields

    def warnings_on_create(self, obj: Object) -> list[str]:
        return name_warnings(obj) + template_warnings(obj)

    def default_propagation(self) -> str:
        """As it was before there was garbage collection."""
        return "Orphan"


class PodTemplateStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        from kubepy.apiserver.defaults.pods import default_pod_template

        default_pod_template(obj["template"])

    def prepare_for_create(self, obj: Object) -> None:
        drop_disabled_fields(obj["template"]["spec"])

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        drop_disabled_fields(obj["template"]["spec"])

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj["template"], old["template"])

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.apps import validate_template_object

        return validate_template_object(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.apps import validate_template_object

        return validate_template_object(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        from kubepy.apiserver.validation.pods.warnings import warnings_for_template

        return warnings_for_template(obj["template"], "template")

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj) if self.spec_changed(obj, old) else []
