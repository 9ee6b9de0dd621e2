"""Defaults of StorageClasses (``storage/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object


def default_storage_class(storage_class: Object) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")
