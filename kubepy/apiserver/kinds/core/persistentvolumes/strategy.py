"""PersistentVolumes (``pkg/registry/core/persistentvolume``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, status_of
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.persistentvolumes import defaults, validation


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
        status = obj.setdefault("status", {})
        before = status_of(old)
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
