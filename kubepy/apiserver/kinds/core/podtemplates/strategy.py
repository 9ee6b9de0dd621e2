"""Pod templates: the common part of the kinds that have one, and PodTemplates
(``pkg/registry/core/podtemplate``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.kinds.core.pods.gates import drop_disabled_fields
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver.kinds.core.pods import defaults as pod_defaults
    from kubepy.apiserver.kinds.core.pods.validation import warnings as pod_warnings
    from kubepy.apiserver.kinds.core.podtemplates import validation


def template_of(obj: Object) -> Object:
    template: Object = obj["spec"].get("template") or {}
    return template


def drop_disabled_template_fields(obj: Object) -> None:
    drop_disabled_fields(template_of(obj).get("spec") or {})


def template_warnings(obj: Object, path: str = "spec.template") -> list[str]:
    return pod_warnings.warnings_for_template(template_of(obj), path)


class WorkloadStrategy(Strategy):
    """The common part of DaemonSets, Deployments, ReplicaSets and StatefulSets: status, generation,
    template."""

    has_status = True
    has_generation = True
    has_observer = True

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        drop_disabled_template_fields(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled_template_fields(obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Labels may change with the status, upstream."""
        restore(obj, old, "spec")

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))

    def warnings_on_create(self, obj: Object) -> list[str]:
        return template_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        changed = obj["metadata"].get("generation") != old["metadata"].get("generation")
        return template_warnings(obj) if changed else []


def name_warnings(obj: Object) -> list[str]:
    """Warn of a name that is no host name: the names of pods come from it."""
    complaints = names.dns1123_label(obj["metadata"].get("name", ""))
    if not complaints:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
        "behavior; a DNS "
        f"label is recommended: [{' '.join(complaints)}]"
    ]


class PodTemplateStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        pod_defaults.default_pod_template(obj["template"])

    def prepare_for_create(self, obj: Object) -> None:
        drop_disabled_fields(obj["template"]["spec"])

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        drop_disabled_fields(obj["template"]["spec"])

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj["template"], old["template"])

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_template_object(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_template_object(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_warnings.warnings_for_template(obj["template"], "template")

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        if self.spec_changed(obj, old):
            return self.warnings_on_create(obj)
        return []
