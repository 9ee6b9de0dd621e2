"""Fields that the transformers of kustomize change, kind by kind.

Upstream: ``kustomize/api/internal/konfig/builtinpluginconsts``, ``api/filters/fieldspec``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kubepy.cli.kustomization.resources import KustomizedResource, ResId

# Takes the map that holds a field, and the field's name.
FieldFunction = Callable[[dict[str, Any], str], None]


class FieldSpec(NamedTuple):
    """A path (``spec/template/spec/containers[]/image``) in objects of a kind; ``create``: add missing fields."""

    path: str
    kind: str = ""
    group: str = ""
    create: bool = False

    def is_for(self, resource_id: ResId) -> bool:
        return resource_id.is_selected(self.group, "", self.kind)


# The paths of pod specs, by kind.
POD_SPECS = {
    "Pod": "spec",
    "PodTemplate": "template/spec",
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"), "spec/template/spec"),
    "CronJob": "spec/jobTemplate/spec/template/spec",
}
CONTROLLERS = {**{kind: path for kind, path in POD_SPECS.items() if kind not in ("PodTemplate", "ReplicaSet")},
               "ReplicationController": "spec/template/spec"}


def _in_pods(*paths: str, specs: dict[str, str] = POD_SPECS) -> list[FieldSpec]:
    return [FieldSpec(f"{prefix}/{path}", kind) for kind, prefix in specs.items() for path in paths]


# --- labels and annotations ---------------------------------------------------------------------------------------

_IGNORED = "DuringSchedulingIgnoredDuringExecution"
_AFFINITIES = [f"spec/template/spec/affinity/{kind}/{term}/labelSelector/matchLabels"
               for kind in ("podAffinity", "podAntiAffinity")
               for term in (f"preferred{_IGNORED}/podAffinityTerm", f"required{_IGNORED}")]

METADATA_LABELS = [FieldSpec("metadata/labels", create=True)]
TEMPLATE_LABELS = [
    *(FieldSpec("spec/template/metadata/labels", kind, create=True)
      for kind in ("ReplicationController", "Deployment", "ReplicaSet", "DaemonSet")),
    FieldSpec("spec/template/metadata/labels", "StatefulSet", "apps", create=True),
    FieldSpec("spec/template/metadata/labels", "Job", "batch", create=True),
    FieldSpec("spec/jobTemplate/metadata/labels", "CronJob", "batch", create=True),
    FieldSpec("spec/jobTemplate/spec/template/metadata/labels", "CronJob", "batch", create=True),
    FieldSpec("spec/volumeClaimTemplates[]/metadata/labels", "StatefulSet", "apps", create=True),
]
SELECTOR_LABELS = [
    FieldSpec("spec/selector", "Service", create=True),
    FieldSpec("spec/selector", "ReplicationController", create=True),
    *(FieldSpec("spec/selector/matchLabels", kind, create=True) for kind in ("Deployment", "ReplicaSet", "DaemonSet")),
    FieldSpec("spec/selector/matchLabels", "StatefulSet", "apps", create=True),
    *(FieldSpec(path, kind, "apps") for kind in ("Deployment", "StatefulSet")
      for path in (*_AFFINITIES, "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels")),
    FieldSpec("spec/selector/matchLabels", "Job", "batch"),
    FieldSpec("spec/jobTemplate/spec/selector/matchLabels", "CronJob", "batch"),
    FieldSpec("spec/selector/matchLabels", "PodDisruptionBudget", "policy"),
    *(FieldSpec(path, "NetworkPolicy", "networking.k8s.io")
      for path in ("spec/podSelector/matchLabels", "spec/ingress/from/podSelector/matchLabels",
                   "spec/egress/to/podSelector/matchLabels")),
]
COMMON_LABELS = [*SELECTOR_LABELS, *METADATA_LABELS, *TEMPLATE_LABELS]
COMMON_ANNOTATIONS = [spec._replace(path=spec.path.replace("/labels", "/annotations"))
                      for spec in (*METADATA_LABELS, *TEMPLATE_LABELS) if "Claim" not in spec.path]

# --- others -------------------------------------------------------------------------------------------------------

NAMESPACES = [
    FieldSpec("metadata/name", "Namespace", create=True),
    FieldSpec("spec/service/namespace", "APIService", "apiregistration.k8s.io", create=True),
    FieldSpec("spec/conversion/webhook/clientConfig/service/namespace", "CustomResourceDefinition",
              "apiextensions.k8s.io"),
]
REPLICAS = [FieldSpec("spec/replicas", kind, create=True)
            for kind in ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")]
IMAGES = [f"{spec}/{path}" for spec in ("spec", "spec/template/spec")
          for path in ("containers[]/image", "initContainers[]/image", "volumes[]/image/reference")]


_TEXTS_OF_CONTAINERS = [f"{containers}/{path}" for containers in ("containers", "initContainers")
                        for path in ("args", "command", "env/value", "volumeMounts/mountPath")]
_WITH_VARIABLES = {kind: path for kind, path in POD_SPECS.items() if kind != "PodTemplate"}
_WITH_SERVERS = {kind: path for kind, path in _WITH_VARIABLES.items() if kind not in ("CronJob", "StatefulSet")}
# The fields in which ``$(NAME)`` stands for a variable.
VARIABLES = [
    *_in_pods(*_TEXTS_OF_CONTAINERS, specs=_WITH_VARIABLES),
    *_in_pods("volumes/nfs/server", specs=_WITH_SERVERS),
    FieldSpec("spec/jobTemplate/spec/template/volumes/nfs/server", "CronJob"),
    FieldSpec("spec/volumeClaimTemplates/spec/nfs/server", "StatefulSet"),
    FieldSpec("spec/nfs/server", "PersistentVolume"),
    FieldSpec("spec/template/metadata/annotations", "Deployment"),
    *(FieldSpec(f"spec/{path}", "Ingress") for path in ("rules/host", "tls/hosts", "tls/secretName")),
    *(FieldSpec(f"spec/ports/{path}", "Service") for path in ("port", "targetPort")),
    FieldSpec("metadata/labels"), FieldSpec("metadata/annotations"),
]


class NameReference(NamedTuple):
    """The fields that hold the name of a kind of object."""

    kind: str
    group: str
    fields: list[FieldSpec]


_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"


def _values(key: str, source: str) -> list[str]:
    return [f"{containers}/{path}" for containers in ("containers", "initContainers")
            for path in (f"env/valueFrom/{key}/name", f"envFrom/{source}/name")]


def _annotations(*names: str) -> list[FieldSpec]:
    return [FieldSpec("metadata/annotations/" + name.replace("/", "\\/"), "Ingress") for name in names]


NAME_REFERENCES = [
    *(NameReference(kind, "", [FieldSpec("spec/scaleTargetRef/name", "HorizontalPodAutoscaler")])
      for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")),
    NameReference("ConfigMap", "", [
        *_in_pods("volumes/configMap/name", "volumes/projected/sources/configMap/name",
                  *_values("configMapKeyRef", "configMapRef")),
        FieldSpec("spec/configSource/configMap", "Node"),
        FieldSpec("rules/resourceNames", "Role"), FieldSpec("rules/resourceNames", "ClusterRole"),
        *_annotations("nginx.ingress.kubernetes.io/fastcgi-params-configmap"),
    ]),
    NameReference("Secret", "", [
        *_in_pods("volumes/secret/secretName", "imagePullSecrets/name", "volumes/projected/sources/secret/name",
                  *_values("secretKeyRef", "secretRef")),
        FieldSpec("spec/tls/secretName", "Ingress"),
        *_annotations("ingress.kubernetes.io/auth-secret", "nginx.ingress.kubernetes.io/auth-secret",
                      "nginx.ingress.kubernetes.io/auth-tls-secret"),
        FieldSpec("imagePullSecrets/name", "ServiceAccount"),
        *(FieldSpec(f"parameters/{name}", "StorageClass")
          for name in ("secretName", "adminSecretName", "userSecretName", "secretRef")),
        FieldSpec("rules/resourceNames", "Role"), FieldSpec("rules/resourceNames", "ClusterRole"),
        FieldSpec("spec/azureFile/secretName", "PersistentVolume"),
    ]),
    NameReference("Service", "", [
        FieldSpec("spec/serviceName", "StatefulSet", "apps"),
        *(FieldSpec(path, "Ingress")
          for path in ("spec/rules/http/paths/backend/serviceName", "spec/backend/serviceName",
                       "spec/rules/http/paths/backend/service/name", "spec/defaultBackend/service/name")),
        FieldSpec("spec/service/name", "APIService", "apiregistration.k8s.io"),
        FieldSpec("webhooks/clientConfig/service", "ValidatingWebhookConfiguration", _ADMISSION),
        FieldSpec("webhooks/clientConfig/service", "MutatingWebhookConfiguration", _ADMISSION),
    ]),
    NameReference("Role", _RBAC, [FieldSpec("roleRef/name", "RoleBinding", _RBAC)]),
    NameReference("ClusterRole", _RBAC, [FieldSpec("roleRef/name", "RoleBinding", _RBAC),
                                         FieldSpec("roleRef/name", "ClusterRoleBinding", _RBAC)]),
    NameReference("ServiceAccount", "", [
        FieldSpec("subjects", "RoleBinding", _RBAC), FieldSpec("subjects", "ClusterRoleBinding", _RBAC),
        *_in_pods("serviceAccountName", specs=CONTROLLERS),
    ]),
    NameReference("PersistentVolumeClaim", "",
                  _in_pods("volumes/persistentVolumeClaim/claimName", specs=CONTROLLERS)),
    NameReference("PersistentVolume", "", [FieldSpec("spec/volumeName", "PersistentVolumeClaim"),
                                           FieldSpec("rules/resourceNames", "ClusterRole")]),
    NameReference("StorageClass", "storage.k8s.io", [
        FieldSpec("spec/storageClassName", "PersistentVolume"),
        FieldSpec("spec/storageClassName", "PersistentVolumeClaim"),
        FieldSpec("spec/volumeClaimTemplates/spec/storageClassName", "StatefulSet"),
    ]),
    NameReference("PriorityClass", "scheduling.k8s.io", _in_pods("priorityClassName", specs=CONTROLLERS)),
    NameReference("IngressClass", "networking.k8s.io", [FieldSpec("spec/ingressClassName", "Ingress")]),
    NameReference("ValidatingAdmissionPolicy", _ADMISSION,
                  [FieldSpec("spec/policyName", "ValidatingAdmissionPolicyBinding", _ADMISSION)]),
]


# --- visiting -----------------------------------------------------------------------------------------------------


def apply(resource: KustomizedResource, specs: list[FieldSpec], change: FieldFunction) -> None:
    """Change the fields of a resource that the specs name."""
    for spec in specs:
        if spec.is_for(resource.id):
            visit(resource.object, split_path(spec.path), change, create=spec.create)


def split_path(path: str) -> list[str]:
    """Split a path at its slashes, but not at ``\\/``."""
    return [part.replace("\0", "/") for part in path.replace("\\/", "\0").split("/")]


def visit(node: Any, parts: list[str], change: FieldFunction, *, create: bool = False) -> None:
    """Follow a path, through all items of lists on the way; ``create`` adds the maps that are missing."""
    for holder in _holders(node, parts[:-1], create):
        name = parts[-1].removesuffix("[]")
        if name in holder or create:
            change(holder, name)


def _holders(node: Any, parts: list[str], create: bool) -> Iterator[dict[str, Any]]:
    if isinstance(node, list):
        for item in node:
            yield from _holders(item, parts, create)
    elif isinstance(node, dict) and not parts:
        yield node
    elif isinstance(node, dict):
        name = parts[0].removesuffix("[]")
        if create and node.get(name) is None and not parts[0].endswith("[]"):
            node[name] = {}
        yield from _holders(node.get(name), parts[1:], create)
