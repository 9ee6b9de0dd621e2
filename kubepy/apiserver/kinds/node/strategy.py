"""RuntimeClasses (``pkg/registry/node``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.strategy import Strategy
from kubepy.apiserver.validation.fields import Errors, validate_immutable
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver import defaults
    from kubepy.apiserver.kinds.core.pods.validation import scheduling as pod_scheduling
    from kubepy.apiserver.validation import fields, resources


class RuntimeClassStrategy(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        defaults.round_up_all((obj.get("overhead") or {}).get("podFixed"))

    def validate(self, obj: Object) -> list[FieldError]:
        errors: Errors = []
        handler = obj.get("handler", "")
        if not handler:
            errors.append(required("handler"))
        else:
            errors += [
                invalid_value("handler", handler, problem)
                for problem in names.dns1123_label(handler)
            ]

        overhead = obj.get("overhead")
        if overhead is not None:
            resources.validate_resource_requirements(
                {"limits": overhead.get("podFixed")}, [], "overhead", errors
            )

        scheduling = obj.get("scheduling")
        if scheduling is not None:
            fields.validate_labels(
                scheduling.get("nodeSelector"), "scheduling.nodeSelector", errors
            )
            pod_scheduling.validate_tolerations(
                nested_list(scheduling, "tolerations"), "scheduling.tolerations", errors
            )

        return errors

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors = self.validate(obj)
        validate_immutable(obj.get("handler"), old.get("handler"), "handler", errors)
        return errors
