"""Namespaces, ConfigMaps, Secrets, Events and ServiceAccounts
(``pkg/registry/core/*/strategy.go``)."""

from __future__ import annotations

from base64 import b64encode
from types import MappingProxyType

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, annotations_of, nested_list, spec_of
from kubepy.api.types import Decoded, decode
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver.kinds.core import validation


KUBERNETES_FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"
NEW_EVENTS = "events.k8s.io/v1"
# The fields of core events that events.k8s.io names otherwise
# (``pkg/apis/events/v1/conversion.go``).
EVENT_FIELDS = {
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "involvedObject": "regarding",
    "lastTimestamp": "deprecatedLastTimestamp",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
}
_CORE_EVENT_FIELDS = {name: field for field, name in EVENT_FIELDS.items()}


class NamespaceStrategy(Strategy):
    has_status = True
    selectable = ("status.phase",)

    def validate_name(self, name: str) -> list[str]:
        return names.dns1123_label(name)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        spec.setdefault("finalizers", [])
        if not spec["finalizers"]:
            del spec["finalizers"]
        if not status.get("phase"):
            status["phase"] = "Active"
        _label_with_name(obj)

    def empty_status(self) -> Object:
        return {"phase": "Active"}

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        _label_with_name(obj)
        finalizers = nested_list(obj["spec"], "finalizers")
        if KUBERNETES_FINALIZER not in finalizers:
            obj["spec"]["finalizers"] = [*finalizers, KUBERNETES_FINALIZER]

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        restore(obj["spec"], spec_of(old), "finalizers")

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_namespace(obj)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_namespace_status_update(obj)

    def validate_subresource_update(
        self, obj: Object, old: Object, subresource: str
    ) -> list[FieldError]:
        if subresource != "finalize":
            return super().validate_subresource_update(obj, old, subresource)
        return validation.validate_namespace_finalize(obj)


def _label_with_name(obj: Object) -> None:
    """Label a namespace with its name, so that selectors can name it."""
    metadata = obj["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}


class ConfigMapStrategy(Strategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_config_map(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        fixed = validation.validate_immutable_data(obj, old, ("data", "binaryData"))
        return fixed + validation.validate_config_map(obj)


class SecretStrategy(Strategy):
    selectable = ("type",)

    def default(self, obj: Object) -> None:
        """Move ``stringData``, which is only for writing, into ``data``."""
        if not obj.get("type"):
            obj["type"] = "Opaque"
        if written := obj.pop("stringData", None):
            encoded = {key: b64encode(value.encode()).decode() for key, value in written.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_secret(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_secret_type_kept(obj, old) + validation.validate_secret(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.secret_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)


class EventStrategy(Strategy):
    """Events of both groups, stored as those of core; ``events.k8s.io`` has other names for some
    fields."""

    selectable_aliases = MappingProxyType(
        {
            **{
                f"regarding.{field}": f"involvedObject.{field}"
                for field in (
                    "kind",
                    "namespace",
                    "name",
                    "uid",
                    "apiVersion",
                    "resourceVersion",
                    "fieldPath",
                )
            },
            "reportingController": "reportingComponent",
        }
    )
    allow_create_on_update = True
    selectable = (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    )

    def decode(self, obj: Object) -> Decoded:
        decoded = super().decode(obj)
        return decoded._replace(object=decode(self.to_stored_version(decoded.object)).object)

    def in_version(self, obj: Object, api_version: str) -> Object:
        if obj.get("apiVersion") == api_version:
            return obj
        renamed = {EVENT_FIELDS.get(field, field): value for field, value in obj.items()}
        return decode(renamed | {"apiVersion": api_version}).object

    def to_stored_version(self, config: Object) -> Object:
        if config.get("apiVersion") != NEW_EVENTS:
            return config
        renamed = {_CORE_EVENT_FIELDS.get(field, field): value for field, value in config.items()}
        return {**renamed, "apiVersion": "v1"}

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_event(obj)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        obj = self.to_stored_version(obj)
        fields = super().selectable_fields(obj)
        component = (obj.get("source") or {}).get("component", "")
        fields["source"] = component or fields["reportingComponent"]
        return fields


class ServiceAccountStrategy(Strategy):
    def prepare_for_create(self, obj: Object) -> None:
        _clean_secret_references(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _clean_secret_references(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        annotation = "kubernetes.io/enforce-mountable-secrets"
        if annotation not in annotations_of(obj):
            return []
        return [
            f"metadata.annotations[{annotation}]: deprecated in v1.32+; prefer separate "
            f"namespaces to isolate "
            "access to mounted secrets"
        ]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        if self.warnings_on_create(old):
            return []
        return self.warnings_on_create(obj)


def _clean_secret_references(obj: Object) -> None:
    """Keep only the name of references to secrets."""
    if obj.get("secrets"):
        obj["secrets"] = [
            {"name": secret["name"]} for secret in obj["secrets"] if secret.get("name")
        ]
