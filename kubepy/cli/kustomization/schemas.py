"""What kustomize knows of types: those without namespaces, and the keys by which their lists are
merged.

kustomize 5.8 has the OpenAPI of Kubernetes v1.21.2; to it, everything newer is a custom resource.
``openapi`` in a kustomization replaces that by a file. As upstream, the schemas are one for a whole
build. Upstream: ``kyaml/openapi``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from kubepy.api.meta import Object
from kubepy.api.schema import openapi
from kubepy.cli.errors import CliError

VERSION = "v1.21.2"
_CLUSTER_SCOPED = {
    "v1": "ComponentStatus Namespace Node NodeProxyOptions PersistentVolume",
    "admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "certificates.k8s.io": "CertificateSigningRequest",
    "networking.k8s.io": "IngressClass",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment",
}
CLUSTER_SCOPED = {
    *((version, kind) for group, kinds in _CLUSTER_SCOPED.items() for kind in kinds.split()
      for version in ((group,) if group == "v1" else (f"{group}/v1", f"{group}/v1beta1"))),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema"), ("policy/v1beta1", "PodSecurityPolicy"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration"),
}  # fmt: skip
# Kinds that v1.36 has and v1.21 had not, by API version, and fields with merge keys.
_NEWER_KINDS = {
    "admissionregistration.k8s.io/v1": (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
    "authentication.k8s.io/v1": ("SelfSubjectReview",),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "flowcontrol.apiserver.k8s.io/v1": ("FlowSchema", "PriorityLevelConfiguration"),
    "networking.k8s.io/v1": ("IPAddress", "ServiceCIDR"),
    "resource.k8s.io/v1": (
        "DeviceClass",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
    ),
    "storage.k8s.io/v1": ("CSIStorageCapacity", "VolumeAttributesClass"),
}
_NEWER_FIELDS = {
    ("PodSpec", "resourceClaims"),
    ("PodSpec", "schedulingGates"),
    ("EphemeralContainer", "ports"),
    ("ContainerStatus", "allocatedResourcesStatus"),
    ("ContainerStatus", "volumeMounts"),
    ("PodStatus", "hostIPs"),
    ("PodStatus", "resourceClaimStatuses"),
    ("MutatingWebhook", "matchConditions"),
    ("ValidatingWebhook", "matchConditions"),
    ("JSONSchemaProps", "x-kubernetes-validations"),
}
# Old versions with the merge keys of today's.
_SAME_KEYS = {
    "batch/v1beta1": "batch/v1",
    "admissionregistration.k8s.io/v1beta1": "admissionregistration.k8s.io/v1",
    "storage.k8s.io/v1beta1": "storage.k8s.io/v1",
}


class FieldSchema(Protocol):
    """The schema of a type or field, as far as merging needs it."""

    @property
    def merge_keys(self) -> list[str] | None:
        """Return the keys by which a list is merged, none for texts; None for a list that is
        replaced."""

    def field(self, name: str) -> FieldSchema | None:
        """Return the schema of a field or of a map's value, None if it is unknown."""

    def elements(self) -> FieldSchema | None:
        """Return the schema of a list's items, None if it is unknown."""


class BuiltInSchema:
    """A built-in type of v1.21.2."""

    def __init__(self, schema: openapi.Schema) -> None:
        self._schema = schema

    @property
    def merge_keys(self) -> list[str] | None:
        if "merge" not in self._schema.patch_strategies:
            return None
        keys = self._schema.list_map_keys or [self._schema.merge_key]
        return [key for key in keys if key]

    def field(self, name: str) -> BuiltInSchema | None:
        if (self._schema.go_name, name) in _NEWER_FIELDS:
            return None
        schema = self._schema.field(name) or self._schema.values()
        if schema is None:
            return None
        return BuiltInSchema(schema)

    def elements(self) -> BuiltInSchema | None:
        schema = self._schema.items()
        if schema is None:
            return None
        return BuiltInSchema(schema)


def built_in_definition(name: str) -> BuiltInSchema | None:
    """Return the built-in type of a full name, None if there is none."""
    try:
        return BuiltInSchema(openapi.Schema({"$ref": f"#/$defs/{name}"}))
    except KeyError:
        return None


class DefinedSchema:
    """A definition of the file that ``openapi`` names."""

    def __init__(self, node: Object, definitions: Object) -> None:
        self._definitions = definitions
        self._node = node

    @property
    def merge_keys(self) -> list[str] | None:
        if "merge" not in str(self._node.get("x-kubernetes-patch-strategy", "")).split(","):
            return None
        keys = self._node.get("x-kubernetes-list-map-keys") or [
            self._node.get("x-kubernetes-patch-merge-key")
        ]
        if isinstance(keys, list):
            return [str(key) for key in keys if key]
        return []

    def field(self, name: str) -> FieldSchema | None:
        properties = self._node.get("properties")
        node = properties.get(name) if isinstance(properties, dict) else None
        return self._resolved(node or self._node.get("additionalProperties"))

    def elements(self) -> FieldSchema | None:
        return self._resolved(
            self._node.get("items") if self._node.get("type") in ("array", ["array"]) else None
        )

    def _resolved(self, node: Any) -> FieldSchema | None:
        """Follow references, to built-in types too."""
        for _ in range(len(self._definitions) + 1):
            if not isinstance(node, dict):
                return None
            if not (reference := node.get("$ref")):
                return DefinedSchema(node, self._definitions)
            name = str(reference).rpartition("#/definitions/")[2]
            if name not in self._definitions:
                if active.has_built_in:
                    return built_in_definition(name)
                return None
            node = self._definitions[name]
        return None


class Schemas:
    """The schemas of a build."""

    def __init__(self) -> None:
        self._is_set = False
        self._definitions: dict[tuple[str, str], DefinedSchema] = {}
        self._cluster_scoped: dict[tuple[str, str], bool] = {}
        self.has_built_in = True
        self._used = False

    def configure(self, settings: dict[str, str], document: Any, *, top: bool) -> None:
        """Apply the field ``openapi`` of a kustomization; below the top it counts only if nothing
        was set before.

        :param document: the content of the file that it names, or None.
        :raises CliError: for a document that is no OpenAPI, or an unknown version.
        """
        if self._is_set and not top:
            return
        version = settings.get("version", "")
        if document is None:
            if version not in ("", VERSION):
                raise CliError("the specified OpenAPI version is not built in")
            self._is_set = bool(version)
            return

        if "version" in settings:
            raise CliError("builtin version and custom schema provided, cannot use both")
        definitions = document.get("definitions") if isinstance(document, dict) else ""
        if not isinstance(definitions, dict | None) or any(
            not isinstance(node, dict) for node in (definitions or {}).values()
        ):
            raise CliError("invalid schema file: it has no map of definitions")

        self._is_set = True
        self.has_built_in = self._used
        for node in (definitions or {}).values():
            for types in _types_of(node):
                self._definitions[types] = DefinedSchema(node, definitions or {})
        paths = document.get("paths")
        for path, operations in (paths if isinstance(paths, dict) else {}).items():
            for types in _types_of(operations.get("get") if isinstance(operations, dict) else None):
                is_namespaced = "namespaces/{namespace}" in str(path)
                self._cluster_scoped[types] = not is_namespaced and self._cluster_scoped.get(
                    types, True
                )

    def is_cluster_scoped(self, api_version: str, kind: str) -> bool:
        """Return whether a type certainly has no namespaces."""
        if (api_version, kind) in CLUSTER_SCOPED:
            return True
        self._used = True
        return self._cluster_scoped.get((api_version, kind), False)

    def of(self, api_version: str, kind: str) -> FieldSchema | None:
        """Return the schema of a type, None for an unknown one."""
        self._used = True
        if defined := self._definitions.get((api_version, kind)):
            return defined
        if not self.has_built_in or kind in _NEWER_KINDS.get(api_version, ()):
            return None
        schema = openapi.schema_for(_SAME_KEYS.get(api_version, api_version), kind)
        if schema is None:
            return None
        return BuiltInSchema(schema)


def _types_of(node: Any) -> Iterator[tuple[str, str]]:
    """Yield the API versions and kinds that a definition or operation is marked with."""
    marks = node.get("x-kubernetes-group-version-kind") if isinstance(node, dict) else None
    if isinstance(marks, dict):
        marks = [marks]
    for mark in marks if isinstance(marks, list) else ():
        group, version, kind = (
            mark.get(part, "") if isinstance(mark, dict) else ""
            for part in ("group", "version", "kind")
        )
        if isinstance(version, str) and isinstance(kind, str):
            yield f"{group}/{version}" if group else version, kind


active = Schemas()


@contextmanager
def renewed() -> Iterator[Schemas]:
    """Use new schemas during a build."""
    global active
    before = active
    active = Schemas()
    try:
        yield active
    finally:
        active = before
