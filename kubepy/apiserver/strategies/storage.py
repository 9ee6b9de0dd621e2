"""Claims, volumes and what is behind them (``pkg/registry/core/persistentvolume*``,
``pkg/registry/storage``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.defaults import core as defaults
    from kubepy.apiserver.validation import claims
    from kubepy.apiserver.validation import storage as validation

# Kinds and groups of the sources that ``dataSource`` may name.
_KNOWN_SOURCES = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))


class PersistentVolumeClaimStrategy(Strategy):
    has_status = True
    assigned = ("storageClassName", "volumeName")

    def default(self, obj: Object) -> None:
        defaults.default_claim(obj)

    def empty_status(self) -> Object:
        return {"phase": "Pending"}

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        _unite_data_sources(obj["spec"], {})

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        _unite_data_sources(obj["spec"], old["spec"])

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return claims.validate_claim(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return claims.validate_claim_update(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return claims.validate_claim_status(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return claims.claim_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


def _unite_data_sources(spec: Object, old_spec: Object) -> None:
    """Let ``dataSource`` and ``dataSourceRef`` agree where they can; drop a source of an unknown
    kind."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if (
        reference is not None
        and reference.get("namespace")
        and old_spec.get("dataSourceRef") is None
    ):
        spec.pop("dataSourceRef")  # across namespaces: behind a gate that is off in v1.36
        reference = None
    if (
        source is not None
        and reference is None
        and old_spec.get("dataSource") is None
        and (source.get("kind"), source.get("apiGroup") or "") not in _KNOWN_SOURCES
    ):
        spec.pop("dataSource")
        source = None
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


class PersistentVolumeStrategy(Strategy):
    """``lastPhaseTransitionTime`` is left to the writer of the phase: a strategy has no clock."""

    has_status = True

    def default(self, obj: Object) -> None:
        defaults.default_volume_object(obj)

    def prepare_for_create(self, obj: Object) -> None:
        created = obj["metadata"].get("creationTimestamp")
        obj["status"] = {
            "phase": "Pending",
            **({"lastPhaseTransitionTime": created} if created else {}),
        }

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")
        status, before = obj.setdefault("status", {}), old.get("status") or {}
        if status.get("phase") == before.get("phase") and "lastPhaseTransitionTime" not in status:
            restore(status, before, "lastPhaseTransitionTime")

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_volume(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_volume_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.volume_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


class StorageClassStrategy(Strategy):
    def default(self, obj: Object) -> None:
        defaults.default_storage_class(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_storage_class(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_storage_class(obj) + validation.validate_storage_class_update(
            obj, old
        )

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.storage_class_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


class VolumeAttributesClassStrategy(Strategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_attributes_class(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_attributes_class(obj, old)
