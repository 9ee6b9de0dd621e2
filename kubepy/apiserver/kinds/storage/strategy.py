"""Storage classes, CSI drivers, nodes and capacities, and volume attachments
(``pkg/registry/storage``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.storage import defaults
    from kubepy.apiserver.kinds.storage.validation import classes, csi


class CSIDriverStrategy(Strategy):
    has_generation = True
    first_generation = 0
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field, value in (
            ("attachRequired", True),
            ("podInfoOnMount", False),
            ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("requiresRepublish", False),
            ("seLinuxMount", False),
        ):
            spec.setdefault(field, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, obj: Object) -> list[FieldError]:
        return csi.validate_driver(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return csi.validate_driver(obj, old)


class CSINodeStrategy(Strategy):
    allow_unconditional_update = False

    def validate(self, obj: Object) -> list[FieldError]:
        return csi.validate_node(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return csi.validate_node(obj, old)


class CSIStorageCapacityStrategy(Strategy):
    allow_unconditional_update = False

    def validate(self, obj: Object) -> list[FieldError]:
        return csi.validate_capacity(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return csi.validate_capacity(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return csi.capacity_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


class VolumeAttachmentStrategy(Strategy):
    has_status = True
    allow_unconditional_update = False

    def empty_status(self) -> Object:
        return {"attached": False}

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return csi.validate_attachment(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return csi.validate_attachment(obj, old)


class StorageClassStrategy(Strategy):
    def default(self, obj: Object) -> None:
        defaults.default_storage_class(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return classes.validate_storage_class(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return classes.validate_storage_class(obj) + classes.validate_storage_class_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return classes.storage_class_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


class VolumeAttributesClassStrategy(Strategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return classes.validate_attributes_class(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return classes.validate_attributes_class(obj, old)
