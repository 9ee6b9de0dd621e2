"""DaemonSets, Deployments, ReplicaSets, StatefulSets and ControllerRevisions
(``pkg/registry/apps/*/strategy.go``)."""

from __future__ import annotations

from kubepy.api.errors import BadRequest, FieldError
from kubepy.api.meta import Object, annotations_of, nested_list, spec_of
from kubepy.api.values.gonumbers import NumberError, parse_int
from kubepy.apiserver.kinds.core.podtemplates.strategy import (
    WorkloadStrategy,
    name_warnings,
    template_of,
    template_warnings,
)
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver.kinds.apps import defaults, validation
    from kubepy.apiserver.kinds.core.persistentvolumeclaims import validation as claims_validation
    from kubepy.apiserver.kinds.core.replicationcontrollers import (
        validation as replicationcontrollers_validation,
    )


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(WorkloadStrategy):
    """The template has a generation of its own, in an annotation that only the server changes."""

    def default(self, obj: Object) -> None:
        defaults.default_daemon_set(obj)

    def empty_status(self) -> Object:
        return {
            "currentNumberScheduled": 0,
            "desiredNumberScheduled": 0,
            "numberMisscheduled": 0,
            "numberReady": 0,
        }

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        _set_template_generation(obj, max(_template_generation(obj), 1))

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        changed = not semantically_equal(template_of(obj), template_of(old))
        _set_template_generation(obj, _template_generation(old) + changed)

    def prepare_for_edit(self, obj: Object, old: Object) -> None:
        """Count on from the file's own template generation, which may come from another branch."""
        counted = {**old, "metadata": dict(old["metadata"])}
        _set_template_generation(counted, max(_template_generation(obj), _template_generation(old)))
        self.prepare_for_update(obj, counted)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        _set_template_generation(obj, _template_generation(old))

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_daemon_set(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_daemon_set(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_daemon_set_status_update(obj, old)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        if _template_generation(obj) != _template_generation(old):
            return template_warnings(obj)
        return []


def _template_generation(obj: Object) -> int:
    """Return the template's generation. Raises BadRequest if it is no number, as upstream's
    conversion does."""
    text = annotations_of(obj).get(TEMPLATE_GENERATION, "0")
    try:
        return parse_int(text)
    except NumberError as error:
        raise BadRequest(str(error)) from None


def _set_template_generation(obj: Object, generation: int) -> None:
    annotations = annotations_of(obj)
    obj["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: str(generation)}


class ControllerRevisionStrategy(Strategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_controller_revision(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_controller_revision(obj, old)


class DeploymentStrategy(WorkloadStrategy):
    def default(self, obj: Object) -> None:
        defaults.default_deployment(obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        restore(obj["metadata"], old["metadata"], "labels")

    def spec_changed(self, obj: Object, old: Object) -> bool:
        """Annotations count: the controller copies them to the ReplicaSets."""
        new = obj["metadata"].get("annotations")
        before = old["metadata"].get("annotations")
        return super().spec_changed(obj, old) or not semantically_equal(new, before)

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_deployment(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_deployment(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_deployment_status_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return name_warnings(obj) + template_warnings(obj)


class ReplicaSetStrategy(WorkloadStrategy):
    def default(self, obj: Object) -> None:
        defaults.default_replica_set(obj)

    def empty_status(self) -> Object:
        return {"replicas": 0}

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_replica_set(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_replica_set(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return replicationcontrollers_validation.validate_replica_set_status_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return name_warnings(obj) + template_warnings(obj)


class StatefulSetStrategy(WorkloadStrategy):
    def validate_name(self, name: str) -> list[str]:
        """Require a DNS label: the names of pods come from this name."""
        return names.dns1123_label(name)

    def default(self, obj: Object) -> None:
        defaults.default_stateful_set(obj)

    def empty_status(self) -> Object:
        return {"availableReplicas": 0, "replicas": 0}

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        _drop_max_unavailable(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        _drop_max_unavailable(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_stateful_set(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_stateful_set(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_stateful_set_status_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return template_warnings(obj) + _claim_warnings(obj, "") + _history_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return (
            super().warnings_on_update(obj, old)
            + _claim_warnings(obj, ".Spec")
            + _history_warnings(obj)
        )


def _drop_max_unavailable(obj: Object) -> None:
    """Drop ``maxUnavailable``, which is behind a gate that is off in v1.36."""
    rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate")
    if rolling is not None:
        rolling.pop("maxUnavailable", None)


def _claim_warnings(obj: Object, suffix: str) -> list[str]:
    warnings: list[str] = []
    for index, claim in enumerate(nested_list(obj["spec"], "volumeClaimTemplates")):
        path = f"spec.volumeClaimTemplates[{index}]{suffix}"
        warnings += claims_validation.claim_spec_warnings(spec_of(claim), path)
    return warnings


def _history_warnings(obj: Object) -> list[str]:
    if (obj["spec"].get("revisionHistoryLimit") or 0) >= 0:
        return []
    return [
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= "
        "0 is recommended"
    ]
