"""PersistentVolumeClaims (``pkg/registry/core/persistentvolumeclaim``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.persistentvolumeclaims import defaults, validation


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
        return validation.validate_claim(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_claim_update(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_claim_status(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.claim_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


def _unite_data_sources(spec: Object, old_spec: Object) -> None:
    """Let ``dataSource`` and ``dataSourceRef`` agree where they can; drop a source of an unknown
    kind."""
    source = spec.get("dataSource")
    reference = spec.get("dataSourceRef")
    is_elsewhere = reference is not None and reference.get("namespace")
    if is_elsewhere and old_spec.get("dataSourceRef") is None:
        spec.pop("dataSourceRef")  # across namespaces: behind a gate that is off in v1.36
        reference = None
    is_alone = source is not None and reference is None
    if is_alone and old_spec.get("dataSource") is None and not _is_known_source(source):
        spec.pop("dataSource")
        source = None
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _is_known_source(source: Object | None) -> bool:
    return (
        source is not None and (source.get("kind"), source.get("apiGroup") or "") in _KNOWN_SOURCES
    )
